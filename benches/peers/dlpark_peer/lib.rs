//! dlpark's own import of a Python object, as a Python function.

use pyo3::prelude::*;

#[pymodule]
mod dlpark_peer {
    use super::*;
    use dlpark::DlpackFlags;
    use dlpark::ffi::DLDeviceType;
    use dlpark::python::ImportedDlpack;
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
            return Err(wrong("expected three dimensions on the host".to_owned()));
        }
        // SAFETY: the producer's promise; the type is checked.
        unsafe { field.offset_data_ptr::<f64>().map(|first| *first) }.map_err(|error| wrong(error.to_string()))
    }

    /// A float64 tensor on the host that stays imported.
    #[pyclass(unsendable)]
    struct Kept(ImportedDlpack);

    #[pyfunction]
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Kept> {
        dlpark::python::from_dlpack(object.as_borrowed(), None, None).map(Kept)
    }

    #[pymethods]
    impl Kept {
        /// The first six elements.
        fn values(&self) -> PyResult<Vec<f64>> {
            let wrong = |what: String| PyTypeError::new_err(what);
            let field = self.0.validate().map_err(|error| wrong(error.to_string()))?;
            if field.device().device_type != DLDeviceType::CPU {
                return Err(wrong("expected memory of the host".to_owned()));
            }
            let strides = field.strides_or_compact().map_err(|error| wrong(error.to_string()))?;
            // SAFETY: the producer's promise; the type is checked.
            let first = unsafe { field.offset_data_ptr::<f64>() }.map_err(|error| wrong(error.to_string()))?;
            let element = |n: usize| {
                let mut rest = n as i64;
                let mut offset = 0;
                for (extent, stride) in field.shape().iter().zip(strides.iter()).rev() {
                    offset += rest % extent * stride;
                    rest /= extent;
                }
                // SAFETY: the producer's promise.
                unsafe { first.offset(offset as isize).read_unaligned() }
            };
            Ok((0..field.num_elements().min(6)).map(element).collect())
        }

        /// Whether the tensor says that it may be written to, and its first element is set then.
        fn set_first(&mut self) -> PyResult<()> {
            let wrong = |what: String| PyTypeError::new_err(what);
            if self.0.flags().contains(DlpackFlags::READ_ONLY) {
                return Err(wrong("read-only".to_owned()));
            }
            let field = self.0.validate().map_err(|error| wrong(error.to_string()))?;
            // SAFETY: the producer's promise; the type is checked.
            let first = unsafe { field.offset_data_ptr::<f64>() }.map_err(|error| wrong(error.to_string()))?;
            // SAFETY: the producer's promise; the type is checked.
            unsafe { first.cast_mut().write_unaligned(9.0) };
            Ok(())
        }
    }
}
