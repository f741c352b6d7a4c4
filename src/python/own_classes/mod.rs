//! The classes `Tensor` and `Descriptor` of the module `dlfield._native`, as imports see them.
//!
//! Other extensions have no classes: they import a `dlfield.Tensor` by its C exchange API.

#[cfg(not(feature = "module"))]
mod disabled;
#[cfg(feature = "module")]
mod enabled;

use pyo3::prelude::*;

#[cfg(not(feature = "module"))]
pub(crate) use self::disabled::{description, tensor, text};
#[cfg(feature = "module")]
pub(crate) use self::enabled::{description, tensor, text};
use crate::descriptor::Descriptor;
use crate::tensor::Owner;

/// The parts of a `Descriptor`.
pub(crate) struct Description<'a, 'py> {
    /// The description of the memory.
    pub(crate) descriptor: &'a Descriptor,
    /// The described object.
    pub(crate) object: Bound<'py, PyAny>,
    /// The owner that the producer passed for the description, if any.
    pub(crate) owner: Option<&'a Owner>,
    /// Whether the owner keeps the memory only as long as the object lives.
    pub(crate) owner_needs_object: bool,
}

/// Returns the object to keep: for a `Descriptor` the object that it describes, as descriptors of descriptors would be a chain.
#[inline]
pub(crate) fn object_to_keep<'py>(object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    description(object).map_or_else(|| object.clone(), |described| described.object)
}
