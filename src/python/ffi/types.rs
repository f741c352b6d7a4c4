//! What the interpreter knows of a type: its version, where its instances have attributes of their own, and its attributes.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use pyo3::{ffi, intern};

/// A cache of facts about types, for one thread, by the field `tp_version_tag`. It is direct-mapped by the type's address;
/// types with the same slot replace each other.
///
/// The interpreter gives each type a version that no other type ever had, and a new one whenever the type or one of its bases
/// changes. So what is cached for a version stays true, also if a type dies and another one gets its address. 0 means no
/// version: its entries are never used.
///
/// `describe` of a PyTorch tensor takes 0.13 µs with the cache and 4.1 µs without, of an object with `__dlpack__` 1.1 and 54 µs
/// (one interleaved run, 2026-11-22).
pub struct TypeCache<T>([Cell<Option<Entry<T>>>; ENTRIES]);

/// A value for one version of a type.
#[derive(Clone, Copy)]
struct Entry<T> {
    version: TypeVersion,
    value: T,
}

/// A type in one version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TypeVersion {
    ty: *mut ffi::PyTypeObject,
    version: u32,
}

const ENTRIES: usize = 64;

impl TypeVersion {
    /// Returns the current version of an object's type. A type gets one with the first attribute that the interpreter looks
    /// up on it or on an instance.
    #[inline]
    pub fn of(object: &Bound<'_, PyAny>) -> TypeVersion {
        let ty = object.get_type_ptr();
        // SAFETY: the type of a live object. Without the GIL other threads may change the field, which the interpreter then does
        // atomically too.
        let version = unsafe { AtomicU32::from_ptr(&raw mut (*ty).tp_version_tag) }.load(Ordering::Acquire);
        TypeVersion { ty, version }
    }

    /// Whether the type has a version: without one nothing is cached for it.
    pub fn is_assigned(self) -> bool {
        self.version != 0
    }

    #[inline]
    fn place(self) -> usize {
        (self.ty.addr() >> 4 ^ self.ty.addr() >> 10) % ENTRIES
    }
}

impl<T: Copy> TypeCache<T> {
    pub const fn new() -> TypeCache<T> {
        TypeCache([const { Cell::new(None) }; ENTRIES])
    }

    /// Returns what is cached for the current version of an object's type.
    #[inline]
    pub fn get(&self, object: &Bound<'_, PyAny>) -> Option<T> {
        let current = TypeVersion::of(object);
        let entry = self.0[current.place()].get()?;
        (entry.version == current && current.is_assigned()).then_some(entry.value)
    }

    /// Caches a value for a type in the version that it had before the value was looked up: if code that ran since has
    /// changed the type, the entry is never used.
    pub fn set(&self, version: TypeVersion, value: T) {
        self.0[version.place()].set(Some(Entry { version, value }));
    }
}

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

    /// Whether an object certainly has no attributes except those of its type. Does not call back into Python code.
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
#[cfg(Py_3_12)]
fn dictionary<'py>(ty: &Bound<'py, PyType>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live type; the result is a new reference, or NULL without an error.
    let found = unsafe { Bound::from_owned_ptr_or_opt(ty.py(), ffi::PyType_GetDict(ty.as_type_ptr())) };
    found?.cast_into().ok()
}

/// Returns the dictionary of a type, without those of its bases. Before `PyType_GetDict` the field was the documented way.
#[cfg(not(Py_3_12))]
fn dictionary<'py>(ty: &Bound<'py, PyType>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live type, whose dictionary is NULL or a live object.
    let found = unsafe { Bound::from_borrowed_ptr_or_opt(ty.py(), (*ty.as_type_ptr()).tp_dict) };
    found?.cast_into().ok()
}
