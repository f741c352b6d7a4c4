//! Hints for the attributes of NumPy's arrays that tensors lack.
//!
//! They are descriptors on the type, because a `__getattr__` would make the look-up of every attribute slower.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::classes::tensor::PyTensor;
use dlfield::native::new_error;

/// An attribute that is absent: looking it up raises `AttributeError`, as for any other name.
#[pyclass(name = "_Absent", module = "dlfield", frozen)]
struct Absent {
    name: Py<PyString>,
    /// Whether it is a method of NumPy's arrays.
    is_method: bool,
}

#[pymethods]
impl Absent {
    fn __get__(&self, instance: &Bound<'_, PyAny>, _owner: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let array = match instance.cast::<PyTensor>() {
            Ok(tensor) if tensor.get().descriptor().device().is_cuda() => "to_cupy()",
            _ => "to_numpy()",
        };
        let (name, call) = (self.name.bind(instance.py()), if self.is_method { "(...)" } else { "" });
        let message = format!("'Tensor' object has no attribute '{name}': use {array}.{name}{call}");
        Err(new_error::<PyAttributeError>(message))
    }
}

#[pymethods]
impl PyTensor {
    /// The names of the attributes, without those that tensors lack.
    fn __dir__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = slf.py();
        let own = py.get_type::<PyTensor>().getattr(intern!(py, "__dict__"))?;
        let names = py.get_type::<PyAny>().call_method1(intern!(py, "__dir__"), (slf,))?;
        let mut found = Vec::new();
        for name in names.try_iter()? {
            let name = name?;
            if !own.call_method1(intern!(py, "get"), (&name,))?.is_instance_of::<Absent>() {
                found.push(name);
            }
        }
        Ok(found)
    }
}

/// Adds a hint to the type for each attribute of NumPy's arrays that it lacks.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    // By import: without NumPy, the crate `numpy` would panic.
    let (ty, array) = (py.get_type::<PyTensor>(), py.import("numpy")?.getattr("ndarray")?);
    for name in array.dir()? {
        let name = name.cast_into::<PyString>()?;
        if name.to_cow()?.starts_with('_') || ty.hasattr(&name)? {
            continue;
        }
        let is_method = array.getattr(&name)?.is_callable();
        ty.setattr(&name, Bound::new(py, Absent { name: name.clone().unbind(), is_method })?)?;
    }
    Ok(())
}
