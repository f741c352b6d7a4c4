//! Finds the element type of NumPy's scalars, which have array protocols but no memory of their own to share.

use numpy::PyArrayDescr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::dtype::DType;
use crate::python::convert::dtype;
use crate::python::ffi::getattr::loaded;

/// Returns the element type of a `numpy.generic`; `None` for other objects.
pub(super) fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    if GENERIC.get(py).is_none() && loaded(py, "numpy")?.is_none() {
        // Scalars exist only if NumPy is imported.
        return Ok(None);
    }
    let generic = GENERIC.get_or_try_init(py, || {
        PyResult::Ok(py.import(intern!(py, "numpy"))?.getattr(intern!(py, "generic"))?.unbind())
    })?;
    if !object.is_instance(generic.bind(py))? {
        return Ok(None);
    }
    dtype::of_descriptor(&object.getattr(intern!(py, "dtype"))?.cast_into::<PyArrayDescr>()?).map(Some)
}
