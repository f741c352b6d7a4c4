//! Pickles and copies of specifications: the arguments that make them again.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::python::module::classes::attribute_values;
use crate::python::module::signature::PySignature;
use crate::python::module::signature::spec::PyFieldSpec;

/// Positional and keyword arguments of a call.
type Arguments<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

#[pymethods]
impl PyFieldSpec {
    /// The arguments that make the same specification, for `copy` and `pickle`.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        let (layout, alignment_size) = self.0.explicit();
        let keywords = PyDict::new(py);
        keywords.set_item("access", self.access())?;
        keywords.set_item("layout", layout.map(|layout| attribute_values::layout(py, layout)).transpose()?)?;
        keywords.set_item("alignment_size", alignment_size)?;
        keywords.set_item("shape", self.shape(py)?)?;
        keywords.set_item("boundary", self.boundary(py)?)?;
        keywords.set_item("optional", self.0.is_optional())?;
        keywords.set_item("backend", self.backend())?;
        Ok(((self.dtype_names(), self.dims(py)?).into_pyobject(py)?, keywords))
    }
}

#[pymethods]
impl PySignature {
    /// The arguments that make the same signature, for `copy` and `pickle`.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        let keywords = self.fields(py)?;
        keywords.set_item("device", self.device())?;
        keywords.set_item("on_mismatch", self.on_mismatch())?;
        keywords.set_item("allow_overlap", self.allow_overlap())?;
        Ok((PyTuple::empty(py), keywords))
    }
}
