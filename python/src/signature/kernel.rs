//! What the package's Python files need for signatures that come from annotations, and the other way round.

use pyo3::intern;
use pyo3::prelude::*;

use crate::signature::spec::PyFieldSpec;

/// Returns the same specification of a field that may be left out.
#[pyfunction]
#[pyo3(name = "_as_optional")]
fn as_optional(spec: &Bound<'_, PyFieldSpec>) -> PyFieldSpec {
    PyFieldSpec(spec.get().0.clone().optional(true))
}

/// Returns the signature that a function of `dlfield.annotations` makes of a stencil or of annotations. `options` are device,
/// on_mismatch and allow_overlap, where they are given.
pub(crate) fn signature_from<'py>(
    function: &str,
    source: &Bound<'py, PyAny>,
    options: (Option<&Bound<'py, PyAny>>, Option<&Bound<'py, PyAny>>, Option<&Bound<'py, PyAny>>),
) -> PyResult<Bound<'py, PyAny>> {
    let (device, on_mismatch, allow_overlap) = options;
    annotations(source.py())?.call_method1(function, (source, device, on_mismatch, allow_overlap))
}

/// Returns the dims of an annotation of a field; anything else, which may be dims, as it is.
pub(crate) fn dims_of<'py>(annotation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = annotation.py();
    annotations(py)?.call_method1(intern!(py, "dims_of"), (annotation,))
}

fn annotations(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "dlfield.annotations"))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(as_optional, module)?)
}
