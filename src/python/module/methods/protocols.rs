//! Export: the protocols by which other libraries import the memory.

#![allow(unsafe_code, reason = "the buffer protocol's slots are unsafe")]

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::device::Device;
use crate::python::convert::device::DlpackPair;
use crate::python::module::classes::attribute_values;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::{export, ufunc};

#[pymethods]
impl PyTensor {
    /// Computes a ufunc by label: what NumPy calls for `np.add(a, b)`, `np.add.reduce(a)` and the like.
    ///
    /// Matches dimensions by label, regardless of their order; dimensions that an operand does not have, and sizes of 1, are repeated.
    /// Returns `NotImplemented` if an operand defines its own `__array_ufunc__`.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> np.add(dl.ones((2, 3), dims="IJ"), dl.ones(4, dims="K")).dims
    /// ('I', 'J', 'K')
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ufunc::array_ufunc(ufunc, method, inputs, kwargs)
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the interpreter's own struct.
        unsafe { export::buffer::fill(slf, view, flags) }
    }

    /// Returns the NumPy array on the same memory, cast or copied if requested.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, PyTensor>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::numpy::array(slf, dtype, copy)
    }

    /// Returns the elements as an array of PyArrow, which calls this in `pa.array(field)`: without a copy if PyArrow makes none
    /// of the NumPy array. PyArrow rejects fields with several dimensions.
    #[pyo3(signature = (r#type=None))]
    fn __arrow_array__<'py>(
        slf: &Bound<'py, PyTensor>,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let array = export::numpy::view_of(slf)?;
        py.import(intern!(py, "pyarrow"))?.call_method1(intern!(py, "array"), (array, r#type))
    }

    /// The priority among operands of several types: host/device pairs, and managed memory, come first.
    #[getter]
    fn __array_priority__(&self) -> f64 {
        if self.descriptor().device() == Device::CUDA_MANAGED { 11.0 } else { 10.0 }
    }

    /// NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::array_interface::interface(py, &self.0)
    }

    /// The CUDA array interface, version 3, if a GPU can read the memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::cuda_array_interface::interface(py, &self.0)
    }

    /// Labels of the dimensions, for GT4Py.
    #[getter]
    fn __gt_dims__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.dims(py)
    }

    /// Index of the first compute point in GT4Py's order: I, J, K, data dimensions. `origin` is in index order. GT4Py begins there and
    /// ends with the field: it has no word for an upper halo.
    #[getter]
    fn __gt_origin__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.descriptor().origin().is_none() && self.descriptor().halo().is_none() {
            return attribute_values::zeros(py, self.descriptor().ndim());
        }
        let (origin, dims) = (self.0.inline_origin(), self.0.dims());
        if dims.is_standard() {
            return PyTuple::new(py, &origin);
        }
        PyTuple::new(py, dims.gt4py_order().into_iter().map(|axis| origin[axis]).collect::<Vec<_>>())
    }

    /// GT4Py's data interface: the array interface with dims and halo, by device.
    #[getter]
    fn __gt_data_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::gt_data_interface::data_interface(py, &self.0)
    }

    /// Returns DLPack's pair of device type and id.
    fn __dlpack_device__(&self) -> (i64, i64) {
        let DlpackPair(code, id) = DlpackPair::of(self.descriptor().device());
        (code, id)
    }
}
