//! The crate's [`Error`], which wraps the errors of all modules, and [`SignatureError`], which wraps any of them with a field's
//! name.

use std::sync::Arc;

use crate::device::DeviceError;
use crate::dims::DimsError;
use crate::dtype::DTypeError;
use crate::layout::LayoutError;
use crate::memory::OutOfMemory;
use crate::preset::PresetError;
use crate::protocol::ExchangeError;
use crate::tensor::IndexError;

/// Every error of this crate; each case holds the values that explain it. Cases may gain values: match them with `..`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid shape, layout or alignment.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An invalid or unknown preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// An invalid or unsupported element type.
    #[error(transparent)]
    DType(#[from] DTypeError),
    /// Invalid dims.
    #[error(transparent)]
    Dims(#[from] DimsError),
    /// An invalid or unavailable device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An invalid import from another library, or an invalid export request.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// An invalid index or list of axes.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Invalid arguments of a stencil.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A failed allocation.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Work that a signal has stopped, such as Ctrl+C: what it was writing is written in part.
    #[error("interrupted")]
    Interrupted,
    /// An error in one argument of a function.
    #[error("argument {argument:?}: {source}")]
    Argument {
        /// The name of the argument.
        argument: Box<str>,
        /// The error.
        source: Box<Error>,
    },
}

impl Error {
    /// Adds the name of the argument that the error is about.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let error = Tensor::zeros(&Spec::new(&[-1], DType::F64)).map_err(|error| error.in_argument("out")).unwrap_err();
    /// assert_eq!(error.to_string(), "argument \"out\": shape: extent -1 at axis 0; allowed is 0 or more");
    /// ```
    #[must_use]
    pub fn in_argument(self, argument: &str) -> Error {
        Error::Argument { argument: argument.into(), source: Box::new(self) }
    }
}

/// A result whose error is this crate's [`Error`] by default.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Tensor};
///
/// fn plane(extent: i64) -> dlfield::Result<Tensor> {
///     Tensor::zeros(&Spec::new(&[extent, extent], DType::F64))
/// }
///
/// assert!(plane(4).is_ok() && plane(-4).is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An invalid argument of a stencil, with the field's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A field that the signature does not have.
    #[error("field {field:?}: unexpected; allowed are {allowed}")]
    Unknown {
        /// The name given.
        field: Box<str>,
        /// The names of the signature.
        allowed: String,
    },
    /// A field that is not optional was not passed.
    #[error("field {field:?}: missing; a field may be left out if its FieldSpec says optional")]
    Missing {
        /// The name of the field.
        field: Box<str>,
    },
    /// A name that occurs twice.
    #[error("field {field:?}: named twice; allowed is each name once")]
    Twice {
        /// The name.
        field: Box<str>,
    },
    /// An error in one field.
    #[error("field {field:?}: {source}")]
    Field {
        /// The name of the field.
        field: Box<str>,
        /// The error.
        source: Box<Error>,
    },
    /// A named size on which two fields disagree.
    #[error("field {field:?}: size of {name}: {got}{}; field {other:?} has {name} = {wanted}", points(name, size, *extent))]
    Sizes {
        /// The field.
        field: Box<str>,
        /// The size.
        name: Arc<str>,
        /// Its value by this field.
        got: i128,
        /// The name with the offset that the field's extent has.
        size: String,
        /// The extent.
        extent: i64,
        /// The other field.
        other: Box<str>,
        /// The value by the other field.
        wanted: i128,
    },
    /// A written field that shares memory with another field.
    #[error(
        "field {field:?}: it is written, and shares memory with field {other:?}; allowed are written fields that \
         overlap no other: pass a copy of one, or set allow_overlap"
    )]
    Overlap {
        /// The written field.
        field: Box<str>,
        /// The other field.
        other: Box<str>,
    },
    /// A field that needs a temporary copy and shares memory with another field, which would not see the copy's changes.
    #[error(
        "field {field:?}: it shares memory with field {other:?}, and a temporary copy would replace only one of them, or \
         each by its own; allowed is the same array for both, with the same FieldSpec but for access, or arrays that fit"
    )]
    CopiedOverlap {
        /// The second field.
        field: Box<str>,
        /// The first field.
        other: Box<str>,
    },
}

/// How a size follows from an extent, if the two differ.
fn points(name: &str, size: &str, extent: i64) -> String {
    if name == size { String::new() } else { format!(", as {extent} points are {size}") }
}

impl SignatureError {
    /// Returns an error about one field.
    pub(crate) fn of(field: &str, source: impl Into<Error>) -> SignatureError {
        SignatureError::Field { field: field.into(), source: Box::new(source.into()) }
    }
}
