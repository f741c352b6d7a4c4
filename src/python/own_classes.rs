//! The classes `Tensor` and `Descriptor` of the module `dlfield._native`, as far as imports have to know them.
//!
//! The module's crate defines them and registers them here. In other extensions that this crate is built into, no class is
//! registered: those import a `dlfield.Tensor` by its C exchange API.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi::PyTypeObject;
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::tensor::{Owner, Tensor};

/// Access to objects of the module's classes; each function returns `None` for other objects.
pub struct OwnClasses {
    /// Returns the tensor of a `Tensor`.
    pub tensor: for<'a> fn(&'a Bound<'_, PyAny>) -> Option<&'a Tensor>,
    /// Returns the parts of a `Descriptor`.
    pub description: for<'a, 'py> fn(&'a Bound<'py, PyAny>) -> Option<Description<'a, 'py>>,
    /// Returns a `Tensor` as text without its elements, which may be on a device.
    pub text: fn(&Bound<'_, PyAny>) -> Option<String>,
}

/// The parts of a `Descriptor`.
pub struct Description<'a, 'py> {
    /// The description of the memory.
    pub descriptor: &'a Descriptor,
    /// The described object.
    pub object: Bound<'py, PyAny>,
    /// The owner that the producer passed for the description, if any.
    pub owner: Option<&'a Owner>,
    /// Whether the owner keeps the memory only as long as the object lives.
    pub owner_needs_object: bool,
}

static CLASSES: OnceLock<OwnClasses> = OnceLock::new();

/// The classes, which are final and live as long as the process. Every import compares them with the object's type.
static TENSOR: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
static DESCRIPTOR: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

/// Registers the module's classes; later calls do nothing.
#[cfg(feature = "signature")]
pub fn register(
    classes: OwnClasses,
    tensor: &Bound<'_, pyo3::types::PyType>,
    descriptor: &Bound<'_, pyo3::types::PyType>,
) {
    CLASSES.get_or_init(|| classes);
    TENSOR.store(tensor.as_type_ptr(), Ordering::Relaxed);
    DESCRIPTOR.store(descriptor.as_type_ptr(), Ordering::Relaxed);
}

/// Returns the tensor of a `Tensor`; `None` for other objects.
#[inline]
pub(crate) fn tensor<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    if object.get_type_ptr() != TENSOR.load(Ordering::Relaxed) {
        return None;
    }
    CLASSES.get().and_then(|classes| (classes.tensor)(object))
}

/// Whether the object is a `Descriptor`.
#[inline]
pub(crate) fn is_description(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == DESCRIPTOR.load(Ordering::Relaxed)
}

/// Returns the parts of a `Descriptor`; `None` for other objects.
#[inline]
pub(crate) fn description<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<Description<'a, 'py>> {
    if !is_description(object) {
        return None;
    }
    CLASSES.get().and_then(|classes| (classes.description)(object))
}

/// Returns a `Tensor` as text without its elements; `None` for other objects.
pub(crate) fn text(object: &Bound<'_, PyAny>) -> Option<String> {
    CLASSES.get().and_then(|classes| (classes.text)(object))
}
