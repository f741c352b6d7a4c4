//! Fields with the memory layout that a stencil needs, shared with every array library without a copy.
//!
//! Every module belongs to one of these flows; the feature `python` adds the fourth. Exports to Python, `export`, are in the crate
//! of the Python module, which builds on this one:
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
//! | none | everything else on this page | |
//! | `ndarray` | [`Tensor`] from and to arrays and vectors, views, loops over any view (`traverse`) | `ndarray`, `num-complex` |
//! | `cuda` | memory of CUDA devices, [`cuda`]; without it no CUDA device is available | `cudarc` |
//! | `python` | the module `python`: arguments and return values of extensions | `pyo3`, `numpy`, the feature `ndarray` |
//!
//! Without the feature `python` nothing in this crate depends on Python.

pub mod arithmetic;
pub mod descriptor;
pub mod device;
pub mod dims;
pub mod dtype;
pub mod error;
pub mod layout;
pub mod memory;
pub mod preflight;
pub mod preset;
pub mod protocol;
pub mod signature;
pub mod tensor;
#[cfg(feature = "ndarray")]
pub mod traverse;

mod copy;
#[cfg(feature = "python")]
#[doc(hidden)]
pub mod native;
#[cfg(feature = "python")]
pub mod python;

pub use copy::{can_cast, num_threads, set_num_threads};
#[cfg(feature = "cuda")]
pub use cudarc;
pub use descriptor::Descriptor;
pub use device::{Device, DeviceError};
pub use dims::{Dim, Dims, DimsError};
pub use dlpark;
pub use dtype::{DType, DTypeError};
pub use error::{Error, Result};
pub use layout::{AllocationLayout, Layout, LayoutError, Metadata, Padding, Spec};
pub use memory::{OutOfMemory, cuda};
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use preflight::{Preflight, Support, Target, Verdict, preflight};
pub use preset::{Alignment, LayoutRule, Preset, PresetError};
pub use protocol::ExchangeError;
pub use signature::{Access, BoundCall, FieldSpec, Signature, SignatureError, Size};
#[cfg(feature = "cuda")]
pub use tensor::CudaView;
pub use tensor::{Element, Index, IndexError, Owner, Tensor};
