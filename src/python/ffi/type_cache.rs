//! A cache of what is known about types, by the field `tp_version_tag`.
//!
//! The interpreter gives each type a version that no other type ever had, and a new one whenever the type or one of its bases
//! changes. So what is cached for a version stays true, also if a type dies and another one gets its address. 0 means no
//! version: its entries are never used.
//!
//! `describe` of a PyTorch tensor takes 0.13 µs with the cache and 4.1 µs without, of an object with `__dlpack__` 1.1 and 54 µs
//! (one interleaved run, 2026-11-22).

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

/// A direct-mapped cache by the type's address, for one thread; types with the same slot replace each other.
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
