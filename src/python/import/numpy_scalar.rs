//! Finds the element type of NumPy's scalars, which have array protocols but no memory of their own to share.

use numpy::PyArrayDescr;
use numpy::npyffi::NpyTypes;
use pyo3::intern;
use pyo3::prelude::*;

use crate::dtype::DType;
use crate::python::convert::dtype;
use crate::python::ffi::numpy_api;

/// Returns the element type of a `numpy.generic`; `None` for other objects.
pub(super) fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if !numpy_api::is_scalar(object, NpyTypes::PyGenericArrType_Type) {
        return Ok(None);
    }
    dtype::of_descriptor(&object.getattr(intern!(object.py(), "dtype"))?.cast_into::<PyArrayDescr>()?).map(Some)
}
