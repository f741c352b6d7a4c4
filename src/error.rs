//! One error over the modules' own.

use crate::device::DeviceError;
use crate::dims::DimsError;
use crate::dtype::DTypeError;
use crate::layout::LayoutError;
use crate::memory::OutOfMemory;
use crate::preset::PresetError;
use crate::protocol::ExchangeError;
use crate::signature::SignatureError;
use crate::tensor::IndexError;

/// Everything that can go wrong, each case with the values that tell what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shape, layout or alignment.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// An element type.
    #[error(transparent)]
    DType(#[from] DTypeError),
    /// Labels.
    #[error(transparent)]
    Dims(#[from] DimsError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Something another library handed over, or asked for.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// An index or a list of axes.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The arguments of a stencil.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Memory that cannot be had.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
