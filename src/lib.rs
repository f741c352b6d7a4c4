//! Fields with the layout a stencil needs, shared without a copy with every array library.
//!
//! Three flows, and every module has its place on one of them:
//!
//! ```text
//! in:     object -> py/read -> protocol -> Descriptor (+ Owner) -> Tensor or view -> py/export -> object
//! alloc:  Spec -> layout -> memory -> Tensor
//! call:   arguments -> py/read -> signature -> Bound -> kernel
//! ```
//!
//! A [`Spec`] says what field is wanted, a [`Preset`] supplies what a stencil backend wants, and [`Tensor`] holds the
//! outcome together with its labels and its owner:
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
//! Without the feature `python` nothing here knows Python.

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

mod copy;
#[cfg(feature = "python")]
mod py;
#[cfg(feature = "python")]
pub mod python;

pub use copy::{can_cast, num_threads, set_num_threads};
pub use descriptor::Descriptor;
pub use device::{Device, DeviceError};
pub use dims::{Dim, Dims, DimsError};
pub use dlpark;
pub use dtype::{DType, DTypeError};
pub use error::{Error, Result};
pub use layout::{Layout, LayoutError, Padding, Placement, Spec};
pub use memory::OutOfMemory;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use preflight::{Preflight, Support, Target, Verdict, preflight};
pub use preset::{Alignment, LayoutRule, Preset, PresetError};
pub use protocol::ExchangeError;
pub use signature::{Access, Bound, FieldSpec, Signature, SignatureError};
#[cfg(feature = "ndarray")]
pub use tensor::Element;
pub use tensor::{Index, IndexError, Owner, Tensor};
