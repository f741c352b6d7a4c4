//! Attributes that may be absent, of objects and of types, and calls with little overhead.

#![allow(unsafe_code, reason = "the interpreter's own calls are used, and types are read as C structs")]

use std::ptr::null_mut;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};
use smallvec::{SmallVec, smallvec};

/// Calls a function with the values, of which the last ones are keyword arguments.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    values: &[&Bound<'py, PyAny>],
    keywords: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    // A slot in front, which `PY_VECTORCALL_ARGUMENTS_OFFSET` lets the callee use.
    let mut arguments: SmallVec<[_; 8]> = smallvec![null_mut()];
    arguments.extend(values.iter().map(|value| value.as_ptr()));
    let positional = values.len() - keywords.map_or(0, |keywords| keywords.len());
    let keywords = keywords.map_or(null_mut(), Bound::as_ptr);
    // SAFETY: all are live objects; as many values as keywords follow the positional arguments.
    unsafe {
        let (first, count) = (arguments.as_mut_ptr().add(1), positional | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET);
        let called = ffi::PyObject_Vectorcall(function.as_ptr(), first, count, keywords);
        Bound::from_owned_ptr_or_err(function.py(), called)
    }
}

/// Returns an attribute of the object; `None` if it is absent. Errors other than `AttributeError` reach the caller.
///
/// Most objects do not have most of the attributes looked up here. PyO3's call makes an `AttributeError` for them before Python 3.13.
pub fn getattr_opt<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    type Object = *mut ffi::PyObject;
    unsafe extern "C" {
        #[cfg_attr(not(Py_3_13), link_name = "_PyObject_LookupAttr")]
        fn PyObject_GetOptionalAttr(object: Object, name: Object, result: *mut Object) -> std::ffi::c_int;
    }
    let mut found = null_mut();
    // SAFETY: both are live objects; `found` becomes a new reference, or NULL if the attribute is absent or on an error.
    unsafe {
        if PyObject_GetOptionalAttr(object.as_ptr(), name.as_ptr(), &raw mut found) < 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Bound::from_owned_ptr_or_opt(object.py(), found))
    }
}

/// The one keyword of a call, as the tuple that vectorcall takes.
pub struct Keyword(&'static str, PyOnceLock<Py<PyTuple>>);

impl Keyword {
    pub const fn new(name: &'static str) -> Keyword {
        Keyword(name, PyOnceLock::new())
    }

    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let made = || PyTuple::new(py, [PyString::intern(py, self.0)]).map(Bound::unbind);
        Ok(self.1.get_or_try_init(py, made)?.bind(py))
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

/// Returns the attribute of a type or its bases, unbound: does not call back into Python code, and ignores the metaclass. The
/// private `_PyType_Lookup` would save nothing measurable.
pub fn on_type<'py>(ty: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // A look-up by a string fails only without memory, and then the attribute counts as absent.
    ty.mro().iter().find_map(|base| dictionary(base.cast().ok()?)?.get_item(name).ok().flatten())
}

/// Returns the module that defines a type, without calling back into Python code; `None` if the type does not name one.
///
/// Types in C name their module in `tp_name` alone, without an entry in the dictionary: so do Cython's classes, such as
/// `cupy.cuda.Device`.
pub fn module_of(ty: &Bound<'_, PyType>) -> Option<String> {
    let name = intern!(ty.py(), "__module__");
    let module = match on_type(ty, name) {
        Some(module) => module,
        // Without a metaclass the interpreter itself splits the C name.
        None if ty.is_exact_instance_of::<PyType>() => ty.getattr(name).ok()?,
        None => return None,
    };
    Some(module.cast::<PyString>().ok()?.to_string_lossy().into_owned())
}

/// Returns the dictionary of a type, without those of its bases.
fn dictionary<'py>(ty: &Bound<'py, PyType>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live type; the result is a new reference, or NULL without an error.
    #[cfg(Py_3_12)]
    let found = unsafe { Bound::from_owned_ptr_or_opt(ty.py(), ffi::PyType_GetDict(ty.as_type_ptr())) };
    // SAFETY: a live type, whose dictionary is NULL or a live object. Before `PyType_GetDict` the field was the documented way.
    #[cfg(not(Py_3_12))]
    let found = unsafe { Bound::from_borrowed_ptr_or_opt(ty.py(), (*ty.as_type_ptr()).tp_dict) };
    found?.cast_into().ok()
}

/// Defines an enumeration of texts that are looked up as attributes or keys, each of them interned.
macro_rules! interned {
    ($(#[$about:meta])* pub enum $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// All of them, in the order of the enumeration.
            pub const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// The text.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The text as an object.
            pub fn interned(self, py: Python<'_>) -> &Bound<'_, PyString> {
                match self { $($name::$variant => intern!(py, $text)),+ }
            }
        }
    };
}

pub(crate) use interned;
