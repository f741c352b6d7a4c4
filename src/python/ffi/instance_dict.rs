//! Whether an object has attributes of its own, without a look-up for each name.

#![allow(unsafe_code, reason = "PyO3 has no call for the dictionary of an object")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Where the instances of a type have their `__dict__`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum InstanceDict {
    /// Nowhere: they have no attributes but the type's.
    None,
    /// Its pointer is at this offset in the object; it may be NULL.
    At(usize),
    /// Where only the interpreter finds it, as for most classes of Python.
    Managed,
}

impl InstanceDict {
    /// Returns the place for the instances of a type.
    pub fn of(ty: &Bound<'_, PyType>) -> InstanceDict {
        // SAFETY: a live type; these fields do not change once it is ready.
        let (offset, flags) = unsafe { ((*ty.as_type_ptr()).tp_dictoffset, ffi::PyType_GetFlags(ty.as_type_ptr())) };
        let managed = flags & ffi::Py_TPFLAGS_MANAGED_DICT != 0;
        match usize::try_from(offset) {
            Ok(0) if !managed => InstanceDict::None,
            Ok(distance) if !managed => InstanceDict::At(distance),
            _ => InstanceDict::Managed,
        }
    }

    /// Whether an object certainly has no attributes beside those of its type. Does not call back into Python code.
    /// With `may_create`, a managed `__dict__` is created to look into it, which slows every later access to the attributes.
    ///
    /// # Safety
    /// - This is the place for the object's type.
    #[inline]
    pub unsafe fn is_empty(self, object: &Bound<'_, PyAny>, may_create: bool) -> bool {
        match self {
            InstanceDict::None => true,
            InstanceDict::At(distance) => {
                // SAFETY: by the type's `tp_dictoffset` the object has the pointer there. Another thread may set it meanwhile.
                let place = unsafe { AtomicPtr::<ffi::PyObject>::from_ptr(object.as_ptr().byte_add(distance).cast()) };
                place.load(Ordering::Relaxed).is_null()
            }
            InstanceDict::Managed if may_create => {
                // SAFETY: takes any object, and returns a new reference to its dictionary, or NULL with an error.
                let found = unsafe { ffi::PyObject_GenericGetDict(object.as_ptr(), null_mut()) };
                // SAFETY: a new reference, or NULL.
                match unsafe { Bound::from_owned_ptr_or_opt(object.py(), found) } {
                    // SAFETY: a live dictionary.
                    Some(dictionary) => unsafe { ffi::PyDict_Size(dictionary.as_ptr()) == 0 },
                    None => {
                        // Without memory for a dictionary: the look-ups report it.
                        drop(PyErr::take(object.py()));
                        false
                    }
                }
            }
            InstanceDict::Managed => false,
        }
    }
}
