//! Whether an object may have attributes of its own: by its type, as nothing documented looks for a `__dict__` without making
//! one.

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

    /// Whether an object may have attributes beside those of its type. Runs no foreign code.
    ///
    /// # Safety
    /// - This is the place for the object's type.
    pub unsafe fn may_have_any(self, _: &Bound<'_, PyAny>) -> bool {
        self.0
    }
}
