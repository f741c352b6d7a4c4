//! dlpark's own import of a Python object, as a Python function.

use pyo3::prelude::*;

#[pymodule]
mod dlpark_peer {
    use super::*;
    use dlpark::ffi::DLDeviceType;
    use pyo3::exceptions::PyTypeError;

    /// Imports `object` through DLPack and releases it again.
    #[pyfunction]
    fn take(object: &Bound<'_, PyAny>) -> PyResult<()> {
        dlpark::python::from_dlpack(object.as_borrowed(), None, None).map(drop)
    }

    /// Returns the first element of three-dimensional float64 on the host.
    #[pyfunction]
    fn read(object: &Bound<'_, PyAny>) -> PyResult<f64> {
        let imported = dlpark::python::from_dlpack(object.as_borrowed(), None, None)?;
        let wrong = |what: String| PyTypeError::new_err(what);
        let field = imported.validate().map_err(|error| wrong(error.to_string()))?;
        if field.device().device_type != DLDeviceType::CPU || field.ndim() != 3 || field.num_elements() == 0 {
            return Err(wrong("allowed are three dimensions on the host".to_owned()));
        }
        // SAFETY: the producer's promise; the type is checked.
        unsafe { field.offset_data_ptr::<f64>().map(|first| *first) }.map_err(|error| wrong(error.to_string()))
    }
}
