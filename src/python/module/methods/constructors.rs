//! Constructors that raise TypeError with what makes an object of the class: its functions do, not the class.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (*_args, **_keywords))]
    fn new_by_class(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyTensor> {
        Err(new_error::<PyTypeError>(
            "Tensor() makes no field; allocate one with dl.zeros(shape), dl.empty or dl.full, copy an array with \
             dl.from_array(data), or share its memory with dl.from_dlpack(obj)",
        ))
    }
}

#[pymethods]
impl PyDescriptor {
    #[new]
    #[pyo3(signature = (*_args, **_keywords))]
    fn new_by_class(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyDescriptor> {
        Err(new_error::<PyTypeError>("Descriptor() describes nothing; write dl.describe(obj)"))
    }
}
