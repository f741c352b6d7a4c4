//! dlpark's own import of a Python object, as a Python function.

use pyo3::prelude::*;

#[pymodule]
mod dlpark_peer {
    use super::*;

    /// Imports `object` through DLPack and releases it again.
    #[pyfunction]
    fn take(object: &Bound<'_, PyAny>) -> PyResult<()> {
        dlpark::python::from_dlpack(object.as_borrowed(), None, None).map(drop)
    }
}
