//! Functions for dlfield's tests: arguments of dlfield's types together with rust-numpy's and dlpark's, and arguments that are forgotten.

use pyo3::prelude::*;

/// Arrays of both kinds in one function.
#[pymodule]
pub mod mixed {
    use dlfield::Tensor;
    use dlfield::python::{In, OrCopy, Out};
    use dlpark::DlpackFlags;
    use ndarray::{Ix1, Ix2};
    use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn, PyReadwriteArray1, PyReadwriteArrayDyn};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    /// Takes an array to write, then one of rust-numpy to write.
    #[pyfunction]
    fn out_readwrite(_out: Out<'_, f64, Ix1>, _array: PyReadwriteArray1<'_, f64>) {}

    /// Takes an array to write, then one of rust-numpy to read.
    #[pyfunction]
    fn out_readonly(_out: Out<'_, f64, Ix1>, _array: PyReadonlyArray1<'_, f64>) {}

    /// Takes an array to read, then one of rust-numpy to write.
    #[pyfunction]
    fn in_readwrite(_inp: In<'_, f64, Ix1>, _array: PyReadwriteArray1<'_, f64>) {}

    /// Takes an array to read, then one of rust-numpy to read.
    #[pyfunction]
    fn in_readonly(_inp: In<'_, f64, Ix1>, _array: PyReadonlyArray1<'_, f64>) {}

    /// Takes an array of rust-numpy to write, then one to write.
    #[pyfunction]
    fn readwrite_out(_array: PyReadwriteArray1<'_, f64>, _out: Out<'_, f64, Ix1>) {}

    /// Takes an array of rust-numpy to read, then one to write.
    #[pyfunction]
    fn readonly_out(_array: PyReadonlyArray1<'_, f64>, _out: Out<'_, f64, Ix1>) {}

    /// Takes an array of rust-numpy to write, then one to read.
    #[pyfunction]
    fn readwrite_in(_array: PyReadwriteArray1<'_, f64>, _inp: In<'_, f64, Ix1>) {}

    /// Takes an array that may be copied, then one of rust-numpy to write. Returns whether the first was copied.
    #[pyfunction]
    fn copy_readwrite(inp: OrCopy<'_, f32, Ix1>, _array: PyReadwriteArray1<'_, f64>) -> bool {
        inp.is_copy()
    }

    /// Calls `function` while an array to write is borrowed.
    #[pyfunction]
    fn with_out<'py>(_out: Out<'py, f64, Ix1>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        function.call0()
    }

    /// Calls `function` while an array to read is borrowed.
    #[pyfunction]
    fn with_in<'py>(_inp: In<'py, f64, Ix1>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        function.call0()
    }

    /// Calls `function` while one array is borrowed to read and one to write.
    #[pyfunction]
    fn with_views<'py>(
        _inp: In<'py, f64, Ix2>,
        _out: Out<'py, f64, Ix2>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        function.call0()
    }

    /// Calls `function` while rust-numpy has borrowed an array to write.
    #[pyfunction]
    fn with_readwrite<'py>(
        array: PyReadwriteArrayDyn<'py, f64>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let called = function.call0();
        drop(array);
        called
    }

    /// Calls `function` while rust-numpy has borrowed each array to write.
    #[pyfunction]
    fn with_readwrites<'py>(
        arrays: Vec<PyReadwriteArrayDyn<'py, f64>>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let called = function.call0();
        drop(arrays);
        called
    }

    /// Calls `function` while rust-numpy has borrowed each array to read.
    #[pyfunction]
    fn with_readonly<'py>(
        arrays: Vec<PyReadonlyArrayDyn<'py, f64>>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let called = function.call0();
        drop(arrays);
        called
    }

    /// Returns the shape of an array that dlpark imports, and whether it is flagged as read-only.
    #[pyfunction]
    fn by_dlpark(x: &Bound<'_, PyAny>) -> PyResult<(Vec<i64>, bool)> {
        let imported = dlpark::python::from_dlpack(x.as_borrowed(), None, None)?;
        let is_readonly = imported.flags().contains(DlpackFlags::READ_ONLY);
        let field = imported.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((field.shape().to_vec(), is_readonly))
    }

    /// As `by_dlpark`, of an array that dlfield imports.
    #[pyfunction]
    fn for_dlpark(x: Tensor) -> PyResult<(Vec<i64>, bool)> {
        let managed = x.to_versioned(false)?;
        let is_readonly = managed.flags().contains(DlpackFlags::READ_ONLY);
        let field = managed.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((field.shape().to_vec(), is_readonly))
    }

    /// Forgets an argument, which stays borrowed.
    #[pyfunction]
    fn forget(out: Out<'_, f64, Ix1>) {
        std::mem::forget(out);
    }

    /// Forgets an argument of rust-numpy, which stays borrowed.
    #[pyfunction]
    fn forget_readwrite(array: PyReadwriteArray1<'_, f64>) {
        std::mem::forget(array);
    }
}
