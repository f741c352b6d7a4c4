//! Python attributes that tensors and descriptors have in common.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::dims::{Dim, Dims};
use crate::layout::Layout;
use crate::python::ffi::new_error::new_error;

/// Labels as a tuple of strings.
pub(crate) fn labels<'py>(py: Python<'py>, dims: &Dims) -> PyResult<Bound<'py, PyTuple>> {
    static STANDARD: [PyOnceLock<Py<PyTuple>>; 4] = [const { PyOnceLock::new() }; 4];
    // GT4Py asks for them at each call, and most fields have these.
    match STANDARD.get(dims.len()).filter(|_| dims.is_standard()) {
        Some(made) => Ok(made.get_or_try_init(py, || new_labels(py, dims).map(Bound::unbind))?.bind(py).clone()),
        None => new_labels(py, dims),
    }
}

fn new_labels<'py>(py: Python<'py>, dims: &Dims) -> PyResult<Bound<'py, PyTuple>> {
    let label = |dim| match dim {
        Dim::I => intern!(py, "I").clone(),
        Dim::J => intern!(py, "J").clone(),
        Dim::K => intern!(py, "K").clone(),
        other => PyString::new(py, &other.to_string()),
    };
    PyTuple::new(py, dims.iter().map(label).collect::<SmallVec<[_; 6]>>())
}

/// As many zeros: the origin of a field without one.
pub(crate) fn zeros(py: Python<'_>, ndim: usize) -> PyResult<Bound<'_, PyTuple>> {
    static MADE: [PyOnceLock<Py<PyTuple>>; 4] = [const { PyOnceLock::new() }; 4];
    let new = || PyTuple::new(py, SmallVec::<[i64; 6]>::from_elem(0, ndim));
    // As for the labels.
    match MADE.get(ndim) {
        Some(made) => Ok(made.get_or_try_init(py, || new().map(Bound::unbind))?.bind(py).clone()),
        None => new(),
    }
}

/// Strides in bytes.
pub(crate) fn strides<'py>(py: Python<'py>, descriptor: &Descriptor) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, descriptor.byte_strides().collect::<SmallVec<[i64; 6]>>())
}

/// Ranks of the strides.
pub(crate) fn layout<'py>(py: Python<'py>, layout: &Layout) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, layout.iter().collect::<SmallVec<[u8; 8]>>())
}

/// Whether the elements are contiguous: "C" with the last index fastest, "F" with the first, "A" either.
pub(crate) fn contiguous(descriptor: &Descriptor, order: &str) -> PyResult<bool> {
    match order {
        "C" => Ok(descriptor.is_c_contiguous()),
        "F" => Ok(descriptor.is_f_contiguous()),
        "A" => Ok(descriptor.is_c_contiguous() || descriptor.is_f_contiguous()),
        _ => Err(new_error::<PyValueError>(format!("order: expected 'C', 'F', or 'A' for either, got '{order}'"))),
    }
}
