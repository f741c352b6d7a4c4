//! Fields with the memory layout that a stencil needs, shared with every array library without a copy.
//!
//! Every module belongs to one of these flows; the feature `python` adds the fourth, and `export` is in the module `dlfield._native`
//! alone, `python/module`:
//!
//! ```text
//! in:     object -> python/import -> protocol -> Descriptor (+ Owner) -> Tensor or view -> export -> object
//! alloc:  Spec -> layout -> memory -> Tensor
//! call:   arguments -> python/import -> signature -> BoundCall -> kernel
//! rust:   arguments -> python/from_py -> ndarray views -> a Rust function -> Tensor -> python/into_py -> object
//! ```
//!
//! # Tour
//!
//! A [`Spec`] describes the field to allocate, a [`Preset`] supplies the defaults of a stencil backend, and a [`Tensor`] holds
//! the allocated field with its metadata and its owner:
//!
//! ```
//! use dlfield::{DType, Preset, Spec, Tensor};
//!
//! # fn main() -> dlfield::Result<()> {
//! let spec = Spec::new(&[66, 66, 40], DType::F64)
//!     .preset(Preset::find("gt:cpu_ifirst")?)
//!     .halo(&[(1, 1), (1, 1), (0, 0)]);
//! let field = Tensor::zeros(&spec)?;
//! assert_eq!(field.descriptor().strides(), [1, 66, 66 * 66]);
//! assert_eq!(field.domain_view().descriptor().shape(), [64, 64, 40]);
//! # Ok(())
//! # }
//! ```
//!
//! Its [`Descriptor`] holds address, device, element type, shape, strides and metadata. The constructor checks them, so every
//! descriptor is valid. Views are other descriptors with the same [`Owner`], and keep their metadata:
//!
//! ```
//! use dlfield::{DType, Index, Spec, Tensor};
//!
//! # fn main() -> dlfield::Result<()> {
//! let field = Tensor::zeros(&Spec::new(&[10, 8, 6], DType::F32))?;
//! let plane = field.view(&[Index::All, Index::At(3), Index::Range { start: 5, len: 6, step: -1 }])?;
//! assert_eq!(plane.descriptor().strides(), [48, -1]);
//! assert_eq!(plane.dims().to_string(), "I, K");
//! # Ok(())
//! # }
//! ```
//!
//! [`Tensor::to_versioned`] and [`Tensor::to_legacy`] export the same memory as a DLPack struct of either ABI, and
//! [`Tensor::from_managed`] imports one. The structs are those of the crate [`dlpark`].
//!
//! With the feature `ndarray`, arrays and vectors become tensors without a copy, and tensors have array views with any strides:
//!
#![cfg_attr(feature = "ndarray", doc = "```")]
#![cfg_attr(not(feature = "ndarray"), doc = "```ignore")]
//! use dlfield::Tensor;
//! use dlfield::ndarray::{Array2, Ix2};
//!
//! # fn main() -> dlfield::Result<()> {
//! let array = Array2::from_shape_fn((3, 4), |(i, j)| (4 * i + j) as f64);
//! let mut field = Tensor::from_array(array)?;
//! field.array_view_mut::<f64, Ix2>()?[[2, 3]] = 0.5;
//! let back: Array2<f64> = field.into_array()?;
//! assert_eq!(back.sum(), 55.5);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `python`, functions of a PyO3 crate take any Python array and return tensors: see the module `python` and
//! the example `examples/rust_extension`, whose README is a tutorial. A [`Signature`] declares the arguments of a stencil, dims
//! included.
//!
//! # Features
//!
//! | feature | adds | brings along |
//! |---|---|---|
//! | none | [`Tensor`], [`Spec`], [`Signature`]: allocation, copies, exchange by DLPack, checks of arguments | `dlpark`, `rayon-core`, `half` |
//! | `ndarray` | [`Tensor`] from and to arrays and vectors, views, loops over any view (`traverse`) | `ndarray`, `num-complex` |
//! | `python` | the module `python`: arguments and return values of extensions | `pyo3`, `numpy`, the feature `ndarray` |
//! | `cuda` | memory of CUDA devices, [`cuda`]; without it no CUDA device is available | `cudarc` |
//!
//! Without the feature `python` nothing in this crate depends on Python. A further feature, `module`, is for the package
//! `dlfield` alone.
//!
//! `cuda` leaves the version of CUDA to the program, as the versions that `cudarc` knows exclude each other: exactly one crate of a
//! program selects one. The oldest, 12.0, works with all newer drivers, which are loaded when first used:
//!
//! ```toml
//! dlfield = { version = "0.1", features = ["cuda"] }
//! cudarc = { version = "0.19", default-features = false, features = ["std", "driver", "cuda-12000", "dynamic-loading"] }
//! ```
//!
//! # Crates in the interface
//!
//! Crates whose types or traits are part of the interface are re-exported, so that their versions agree: [`dlpark`] for the structs
//! of DLPack; [`half`]; with the features `ndarray`, `num_complex`, `cudarc` and `pyo3`, under these names. No other crate's types are
//! in it.

// The module needs all of it, an extension or a program without Python parts. So nothing is left out by hand but what needs
// another crate, and what is not used costs no time to compile.
#![cfg_attr(not(feature = "module"), allow(dead_code, unused_imports))]
// On docs.rs each item names the feature that it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// One error says what to do, and nothing else is reported.
#![cfg_attr(Py_LIMITED_API, allow(unused_imports))]

#[cfg(Py_LIMITED_API)]
compile_error!(
    "dlfield: the feature `abi3` of `pyo3` is enabled; arguments are checked through parts of Python's C API that the stable \
     ABI does not have: remove `abi3` and `abi3-py3*` from the features of `pyo3`, also in other crates of the program, and build one \
     extension for each Python version"
);

pub mod arithmetic;
mod debug;
mod descriptor;
mod device;
mod dims;
mod dtype;
mod error;
mod interrupt;
mod layout;
mod memory;
mod preflight;
mod preset;
mod protocol;
mod signature;
mod tensor;
#[cfg(feature = "ndarray")]
pub mod traverse;

mod copy;
#[cfg(all(feature = "python", not(Py_LIMITED_API)))]
pub mod python;

pub use copy::{ThreadError, can_cast, num_threads, set_num_threads};
#[cfg(feature = "cuda")]
pub use cudarc;
pub use descriptor::Descriptor;
pub use device::Device;
pub use dims::{Dim, Dims};
pub use dlpark;
pub use dtype::DType;
pub use error::{
    DTypeError, DTypeErrorKind, DeviceError, DeviceErrorKind, DimsError, DimsErrorKind, Error, ErrorOf, ExchangeError,
    ExchangeErrorKind, IndexError, IndexErrorKind, LayoutError, LayoutErrorKind, MemoryError, MemoryErrorKind, Result,
    SignatureError, SignatureErrorKind,
};
pub use half;
pub use layout::{AllocationLayout, Spec};
pub use layout::{Layout, MAX_NDIM, Metadata, Padding};
pub use memory::cuda;
#[cfg(feature = "ndarray")]
pub use ndarray;
#[cfg(feature = "ndarray")]
pub use num_complex;
pub use preflight::{Preflight, Support, Target, Verdict, preflight};
pub use preset::{Alignment, LayoutRule, Preset};
#[cfg(feature = "python")]
pub use pyo3;
#[cfg(feature = "ndarray")]
pub use signature::BorrowedCall;
pub use signature::{Access, BoundCall, FieldSpec, Signature, Size};
#[cfg(feature = "cuda")]
pub use tensor::CudaView;
#[cfg(feature = "ndarray")]
pub use tensor::ReadGuard;
pub use tensor::{Element, Index, Owner, Tensor};

/// Internals that this crate's tests and fuzz targets call. Anything here may change in any release.
#[doc(hidden)]
pub mod testing {
    pub use crate::descriptor::Spans;
    pub use crate::layout::extents::{Extents, Halo};
    pub use crate::layout::overlap::{Strided, overlap};
    pub use crate::layout::span::{byte_span, is_compact, is_contiguous, is_unshared};
    pub use crate::memory::{Block, Contents};

    /// The structs of the protocols.
    pub mod protocol {
        pub use crate::protocol::{array_interface, array_struct, buffer, dlpack, pep3118, typestr};
    }
}

/// Runs the examples of the page.
#[cfg(all(doctest, feature = "python"))]
#[doc = include_str!("../docs/kernels/rust.md")]
mod rust_page {}
