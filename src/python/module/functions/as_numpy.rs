//! The Python function `as_numpy`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::Device;
use crate::python::convert::args;
use crate::python::copies;
use crate::python::ffi::numpy_api::is_exact;
use crate::python::import::not_an_array;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export;
use crate::python::module::values;

/// Keywords that others use, and what to write here.
const HINTS: [(&str, &str); 1] = [("dtype", "it shares elements as they are; pass field.astype(...)")];

/// Return the `numpy.ndarray` on the memory of any array that the host can read.
///
/// Parameters
/// ----------
/// obj
///     Any array that `from_dlpack` accepts. An exact `numpy.ndarray` of any dtype is returned as it is.
/// copy
///     None copies only if the producer has no memory to share; True always copies, also from a device; False never.
///
/// Returns
/// -------
/// numpy.ndarray
///     Same shape, strides and dtype as `obj`; read-only if the memory is.
///
/// Raises
/// ------
/// NoSuchBufferError
///     The host cannot read the memory, and `copy` is not True.
/// Error
///     As for `from_dlpack`.
///
/// Example
/// -------
/// >>> import dlfield as dl
/// >>> field = dl.zeros((2, 3), backend="gt:cpu_ifirst")
/// >>> dl.as_numpy(field).ctypes.data == field.ptr
/// True
#[pyfunction]
#[pyo3(signature = (obj, *, copy=None, **others), text_signature = "(obj, *, copy=None)")]
fn as_numpy<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    copy: Option<&Bound<'py, PyAny>>,
    others: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    args::no_keywords("as_numpy", others, &HINTS, &["obj", "copy"])?;
    let copy = copy.map_or(Ok(None), args::copy)?;
    if is_exact(obj) {
        let keep = pyo3::intern!(py, "K");
        return if copy == Some(true) { obj.call_method1(pyo3::intern!(py, "copy"), (keep,)) } else { Ok(obj.clone()) };
    }
    if let Ok(tensor) = obj.cast_exact::<PyTensor>()
        && copy != Some(true)
    {
        return export::numpy::view_of(tensor);
    }
    if copy != Some(true) {
        return export::numpy::view(py, &values::tensor(obj, copy)?);
    }
    let value = values::value(obj, Device::CPU, None)?.ok_or_else(|| not_an_array(obj))?;
    let copied = if value.descriptor().device().is_host_readable() {
        copies::copy_like(py, &value)?
    } else {
        copies::to(py, &value, Device::CPU, Some(true))?
    };
    export::numpy::view(py, &value.done(py, Ok(copied))?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(as_numpy, module)?)
}
