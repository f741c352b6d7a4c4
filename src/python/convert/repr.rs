//! The `repr` of arguments and of classes, for error messages.

use std::cell::Cell;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::python::ffi::getattr;
use crate::python::interrupt;

thread_local! {
    /// Whether a `__repr__` runs for a message.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// The end of a `__repr__`, also if it unwinds.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

/// How many entries of lists and tuples are looked at: a list may contain itself.
const MOST_ENTRIES: usize = 1000;

/// Whether an object is one of PyTorch's tensors, or a list or tuple with one among its first entries. `left` is how many more
/// are looked at.
fn has_tensor(value: &Bound<'_, PyAny>, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    if let Ok(list) = value.cast_exact::<PyList>() {
        return list.iter().any(|entry| has_tensor(&entry, left));
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return tuple.iter().any(|entry| has_tensor(&entry, left));
    }
    getattr::on_type(&value.get_type(), intern!(value.py(), "__torch_function__")).is_some()
}

/// A class, by module and name, as Python shows it. The text of one with a metaclass would be code of others, which may change memory that has views.
#[cold]
pub fn of_class(class: &Bound<'_, PyType>) -> String {
    if class.is_exact_instance_of::<PyType>()
        && let Some(text) = of(class)
    {
        return text;
    }
    let module = getattr::module_of(class).map_or_else(String::new, |module| format!("{module}."));
    let name = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string_lossy().into_owned());
    format!("<class '{module}{name}'>")
}

/// The `repr` of an object, if it has one. While another object's `__repr__` runs, only that of builtin classes: a `__repr__` that
/// calls dlfield, and fails there, would otherwise be called again by each of these calls, and take twice the time with each
/// level.
///
/// `None` also for PyTorch's tensors and for lists and tuples of them: their text is made of their elements, and PyTorch crashes
/// where the storage was freed.
pub fn of(value: &Bound<'_, PyAny>) -> Option<String> {
    if has_tensor(value, &mut { MOST_ENTRIES }) {
        return None;
    }
    let is_builtin = value.is_exact_instance_of::<PyType>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>();
    if !is_builtin && RUNS.get() {
        return None;
    }
    let running = (!is_builtin).then(|| {
        RUNS.set(true);
        Running
    });
    // A subclass of str may be returned, whose `__str__` is not called.
    let text = value.repr().map(|text| text.to_string_lossy().into_owned());
    drop(running);
    match text {
        Ok(text) => Some(text),
        Err(error) => {
            interrupt::put_off(value.py(), &error);
            None
        }
    }
}
