//! What can be wrong with the arguments of a stencil.

use crate::error::Error;

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
