//! pyo3-dlpack's import of a Python object, as a Python function.

use pyo3::prelude::*;

#[pymodule]
mod pyo3_dlpack_peer {
    use super::*;
    use pyo3_dlpack::PyTensor;

    /// Imports `object` through DLPack and releases it again.
    #[pyfunction]
    fn take(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        PyTensor::from_pyany(py, object).map(drop)
    }
}
