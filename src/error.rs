//! The aggregate of the modules' own errors, and the error of a field in a call, which wraps any of them.

use crate::device::DeviceError;
use crate::dims::DimsError;
use crate::dtype::DTypeError;
use crate::layout::LayoutError;
use crate::memory::OutOfMemory;
use crate::preset::PresetError;
use crate::protocol::ExchangeError;
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

/// What is wrong with the arguments of a stencil, by the field's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A field that the signature has not got.
    #[error("field {field:?}: unexpected; allowed are {allowed}")]
    Unknown {
        /// The name given.
        field: Box<str>,
        /// The names there are.
        allowed: String,
    },
    /// A field that was not given and is not optional.
    #[error("field {field:?}: missing; a field may be left out if its FieldSpec says optional")]
    Missing {
        /// The name of the field.
        field: Box<str>,
    },
    /// A name that stands twice.
    #[error("field {field:?}: named twice; allowed is each name once")]
    Twice {
        /// The name.
        field: Box<str>,
    },
    /// Something about one field.
    #[error("field {field:?}: {source}")]
    Field {
        /// The name of the field.
        field: Box<str>,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// A written field that shares memory with another one.
    #[error(
        "field {field:?}: it is written, and shares memory with field {other:?}; allowed are fields that do not touch \
         each other: pass a copy of one"
    )]
    Overlap {
        /// The field that is written.
        field: Box<str>,
        /// The other one.
        other: Box<str>,
    },
}

impl SignatureError {
    /// An error about one field.
    pub(crate) fn of(field: &str, source: impl Into<Error>) -> SignatureError {
        SignatureError::Field { field: field.into(), source: Box::new(source.into()) }
    }
}
