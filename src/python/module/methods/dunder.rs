//! Special methods of Python: indexing, copies, text.

#![allow(unsafe_code, reason = "an iterator is made through the interpreter's C API")]

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyTuple};
use pyo3::{ffi, intern};

use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::methods::{index, pickle};
use crate::python::module::ufunc;
use crate::python::{copies, package};

#[pymethods]
impl PyTensor {
    fn __len__(&self) -> PyResult<usize> {
        let extent = self.descriptor().shape().first();
        let extent = extent.ok_or_else(|| new_error::<PyTypeError>("len() of a tensor without dimensions"))?;
        Ok(usize::try_from(*extent).unwrap_or(usize::MAX))
    }

    /// Iterates over the views along the first dimension.
    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyIterator>> {
        if slf.get().descriptor().ndim() == 0 {
            return Err(new_error::<PyTypeError>("iteration over a tensor without dimensions"));
        }
        // SAFETY: the call takes any object with `__getitem__` and returns a new iterator or sets an error.
        let iterator = unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr()))? };
        Ok(iterator.cast_into::<PyIterator>()?)
    }

    /// Returns whether any element equals the value, as NumPy's arrays do.
    fn __contains__<'py>(slf: &Bound<'py, PyTensor>, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        let equal = slf.rich_compare(value, CompareOp::Eq)?;
        match equal.cast::<PyTensor>() {
            Ok(equal) => ufunc::reduced("any", "logical_or", equal, None, None)?.is_truthy(),
            Err(_) => equal.is_truthy(),
        }
    }

    fn __getitem__<'py>(slf: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        index::get(slf, key)
    }

    fn __setitem__(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        index::set(slf, key, value)
    }

    pub(crate) fn __copy__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        Ok(PyTensor::new(copies::copy_like(py, &self.0, "copy()")?))
    }

    /// Raises `ValueError`, as NumPy's arrays do.
    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        let fix = "numpy.delete(field, ...) returns an array without them";
        Err(new_error::<PyValueError>(format!("elements of a field cannot be deleted; {fix}")))
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyDict>) -> PyResult<PyTensor> {
        // A tensor holds no objects to copy deeply, and the `copy` module itself remembers what this returns.
        let _ = memo;
        self.__copy__(py)
    }

    fn __reduce_ex__<'py>(&self, py: Python<'py>, protocol: i64) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduce(py, &self.0, protocol)
    }

    fn __repr__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        package::functions(py)?.call_method1(intern!(py, "repr_text"), (slf, slf.get().attributes_text(py)?))
    }

    fn __str__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "str_text"), (slf,))
    }

    /// A drawing of the memory layout for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let halo_is_stated = slf.get().descriptor().halo().is_some();
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "repr_html"), (slf, halo_is_stated))
    }
}

impl PyTensor {
    /// The attributes that are shown after the values.
    pub(crate) fn attributes_text(&self, py: Python<'_>) -> PyResult<String> {
        let descriptor = self.descriptor();
        // Both only if the field states them: else they are zeros, and arithmetic does not compare them.
        let mut stated = String::new();
        if descriptor.halo().is_some() {
            stated += &format!(", halo={}", self.halo(py)?.repr()?);
        }
        if descriptor.origin().is_some() {
            stated += &format!(", origin={}", self.origin(py)?.repr()?);
        }
        Ok(format!(
            "shape={}, dtype={}, dims={}{stated}, layout={}, device='{}', alignment_size={}{}",
            self.shape(py)?.repr()?,
            descriptor.dtype(),
            self.dims(py)?.repr()?,
            self.layout(py)?.repr()?,
            descriptor.device(),
            self.0.alignment_size(),
            if descriptor.is_readonly() { ", readonly" } else { "" },
        ))
    }
}
