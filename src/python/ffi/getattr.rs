//! Attributes that may be absent, and calls with little overhead.

#![allow(unsafe_code, reason = "the interpreter's own call is used, for its speed")]

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{ffi, intern};

pub use crate::python::ffi::types::{module_of, on_type};

/// A method to call.
pub enum Method<'a, 'py> {
    /// A method of the object's type, by name: no bound method is made.
    OfType(&'a Bound<'py, PyAny>, &'a Bound<'py, PyString>),
    /// A callable that was looked up.
    Value(Bound<'py, PyAny>),
}

impl<'py> Method<'_, 'py> {
    /// Calls it with the values as keyword arguments.
    pub fn call<const N: usize>(
        &self,
        py: Python<'py>,
        values: [&Bound<'py, PyAny>; N],
        keywords: Option<&Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keywords = keywords.map_or(std::ptr::null_mut(), Bound::as_ptr);
        // Two slots in front: one for the object of a method, and one that `PY_VECTORCALL_ARGUMENTS_OFFSET` lets the callee
        // use.
        let mut arguments = [std::ptr::null_mut(); 4];
        const { assert!(N < 3, "more arguments than there is room for") };
        for (slot, value) in arguments[2..].iter_mut().zip(values) {
            *slot = value.as_ptr();
        }
        // SAFETY: all are live objects; `N` values follow the object, and each has its keyword.
        unsafe {
            let called = match self {
                Method::OfType(object, name) => {
                    arguments[1] = object.as_ptr();
                    let (first, flags) = (arguments.as_mut_ptr().add(1), 1 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET);
                    ffi::PyObject_VectorcallMethod(name.as_ptr(), first, flags, keywords)
                }
                Method::Value(function) => {
                    let (first, flags) = (arguments.as_mut_ptr().add(2), ffi::PY_VECTORCALL_ARGUMENTS_OFFSET);
                    ffi::PyObject_Vectorcall(function.as_ptr(), first, flags, keywords)
                }
            };
            Bound::from_owned_ptr_or_err(py, called)
        }
    }
}

/// Calls a function with positional arguments, followed by keyword arguments.
pub fn call_function<'py>(
    function: &Bound<'py, PyAny>,
    values: &[&Bound<'py, PyAny>],
    keywords: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    // A slot in front, which `PY_VECTORCALL_ARGUMENTS_OFFSET` lets the callee use.
    let mut arguments: smallvec::SmallVec<[_; 6]> = smallvec::smallvec![std::ptr::null_mut()];
    arguments.extend(values.iter().map(|value| value.as_ptr()));
    let positional = values.len() - keywords.len();
    // SAFETY: all are live objects; as many values as keywords follow the positional arguments.
    unsafe {
        let (first, count) = (arguments.as_mut_ptr().add(1), positional | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET);
        let called = ffi::PyObject_Vectorcall(function.as_ptr(), first, count, keywords.as_ptr());
        Bound::from_owned_ptr_or_err(function.py(), called)
    }
}

/// Returns an attribute of the object; `None` if it is absent. Errors other than `AttributeError` reach the caller.
///
/// Most objects do not have most of the attributes looked up here. This call makes no `AttributeError` for them; PyO3's makes one before
/// Python 3.13.
#[cfg(not(Py_3_13))]
pub fn getattr_opt<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    unsafe extern "C" {
        /// The name of `PyObject_GetOptionalAttr` in the headers of Python 3.11 and 3.12.
        fn _PyObject_LookupAttr(
            object: *mut ffi::PyObject,
            name: *mut ffi::PyObject,
            result: *mut *mut ffi::PyObject,
        ) -> std::ffi::c_int;
    }
    let mut found = std::ptr::null_mut();
    // SAFETY: both are live objects; `found` becomes a new reference, or NULL if the attribute is absent or on an error.
    unsafe {
        if _PyObject_LookupAttr(object.as_ptr(), name.as_ptr(), &raw mut found) < 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Bound::from_owned_ptr_or_opt(object.py(), found))
    }
}

/// Returns an attribute of the object; `None` if it is absent. Errors other than `AttributeError` reach the caller.
#[cfg(Py_3_13)]
pub fn getattr_opt<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    object.getattr_opt(name)
}

/// The one keyword of a call, as the tuple that vectorcall takes.
pub struct Keyword {
    name: &'static str,
    tuple: PyOnceLock<Py<PyTuple>>,
}

impl Keyword {
    pub const fn new(name: &'static str) -> Keyword {
        Keyword { name, tuple: PyOnceLock::new() }
    }

    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let made = || PyTuple::new(py, [PyString::intern(py, self.name)]).map(Bound::unbind);
        Ok(self.tuple.get_or_try_init(py, made)?.bind(py))
    }
}

/// Returns a module that is already imported; `None` also if a None in `sys.modules` forbids its import.
pub fn loaded<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    match modules.cast::<PyDict>() {
        Ok(modules) => Ok(modules.get_item(name)?.filter(|module| !module.is_none())),
        Err(_) => Ok(None),
    }
}
