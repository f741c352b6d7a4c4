//! What the package's Python files need for signatures that come from annotations, and the other way round.

use pyo3::call::PyCallArgs;
use pyo3::intern;
use pyo3::prelude::*;

use crate::python::module::signature::spec::PyFieldSpec;
use crate::python::package;

/// Returns the same specification of a field that may be left out.
#[pyfunction]
#[pyo3(name = "_as_optional")]
fn as_optional(spec: &Bound<'_, PyFieldSpec>) -> PyFieldSpec {
    PyFieldSpec(spec.get().0.clone().optional(true))
}

/// Returns the signature that a function of the package makes of a stencil or of annotations.
pub(crate) fn signature_from<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    package::functions(py)?.call_method1(function, arguments)
}

/// Returns the dims of an annotation of a field; anything else, which may be dims, as it is.
pub(crate) fn dims_of<'py>(annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = annotation.py();
    package::functions(py)?.call_method1(intern!(py, "dims_of"), (annotation,))
}

/// Registers the object with the package's functions.
#[pyfunction]
#[pyo3(name = "_register_package")]
fn register_package(obj: &Bound<'_, PyAny>) {
    package::register(obj);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(as_optional, module)?)?;
    module.add_function(wrap_pyfunction!(register_package, module)?)
}
