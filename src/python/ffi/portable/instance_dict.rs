//! The names of an object's own attributes: unknown if its type has a `__dict__`, as nothing documented looks there without
//! making one.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Whether the instances of a type can have a `__dict__`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InstanceDict(bool);

impl InstanceDict {
    pub fn of(ty: &Bound<'_, PyType>, _may_create: bool) -> InstanceDict {
        // SAFETY: a live type; these fields do not change once it is ready.
        let (offset, flags) = unsafe { ((*ty.as_type_ptr()).tp_dictoffset, ffi::PyType_GetFlags(ty.as_type_ptr())) };
        InstanceDict(offset != 0 || flags & ffi::Py_TPFLAGS_MANAGED_DICT != 0)
    }

    /// Calls `seen` with the hash of the name of each attribute that an object has beside those of its type, and maybe of
    /// others. Returns `false` if only look-ups tell. Runs no foreign code.
    ///
    /// # Safety
    /// - This is the place for the object's type.
    pub unsafe fn hashes(self, _: &Bound<'_, PyAny>, _: impl FnMut(isize)) -> bool {
        !self.0
    }
}
