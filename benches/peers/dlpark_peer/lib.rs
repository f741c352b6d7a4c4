//! dlpark's own import of a Python object, as a Python function.

use pyo3::prelude::*;

#[pymodule]
mod dlpark_peer {
    use super::*;

    /// Import `object` through DLPack and release it again.
    #[pyfunction]
    fn take(object: &Bound<'_, PyAny>) -> PyResult<()> {
        dlpark::python::from_dlpack(object.as_borrowed(), None, None).map(drop)
    }
}
