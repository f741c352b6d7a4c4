//! Borrows in the list that rust-numpy's extensions share: its table of functions, and what they read of an array.
//!
//! Source: `borrow/shared.rs` of rust-numpy 0.30, whose table has version 1.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull, null_mut};
use std::slice::from_raw_parts;

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, PyDataType_ELSIZE, get_type_object};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Extents;
use crate::python::ffi::numpy_api;

/// What an error says of a borrow in the shared list.
pub(super) const BORROWS: &str =
    "borrows (as PyReadonlyArray or PyReadwriteArray of rust-numpy, or in another extension)";

pub(super) type Acquire = unsafe extern "C" fn(*mut c_void, *mut PyArrayObject) -> c_int;
pub(super) type Release = unsafe extern "C" fn(*mut c_void, *mut PyArrayObject);

/// The table. `acquire` returns 0, -1 for an array that is borrowed already, -2 for a read-only one. Later versions append
/// fields.
#[repr(C)]
pub(super) struct Table {
    pub(super) version: u64,
    pub(super) flags: *mut c_void,
    pub(super) acquire: Acquire,
    pub(super) acquire_mut: Acquire,
    pub(super) release: Release,
    pub(super) release_mut: Release,
}

// SAFETY: never written to.
unsafe impl Sync for Table {}

/// A borrow in the list of another extension.
pub(super) struct Listed {
    pub(super) table: &'static Table,
    /// Kept alive by the argument, or by `view`.
    pub(super) array: NonNull<PyArrayObject>,
    pub(super) writes: bool,
    /// The array's own, which may be replaced.
    pub(super) dtype: Py<PyAny>,
    /// The array, if no argument keeps it.
    #[expect(dead_code, reason = "held for its drop")]
    pub(super) view: Option<Py<PyAny>>,
    pub(super) borrowed: Geometry,
}

impl Listed {
    /// Enters the array. Returns what `acquire` does.
    pub(super) fn acquire(&self) -> c_int {
        let acquire = if self.writes { self.table.acquire_mut } else { self.table.acquire };
        // SAFETY: callers are attached, and the argument or this struct keeps the array.
        unsafe { acquire(self.table.flags, self.array.as_ptr()) }
    }

    /// Whether the array is as it was when it was borrowed.
    #[cfg(not(Py_GIL_DISABLED))]
    pub(super) fn is_unchanged(&self, py: Python<'_>) -> bool {
        Geometry::of(py, self.array) == self.borrowed
    }

    /// A borrow, not entered yet, of all bytes of several arrays with the same last base, to write.
    #[cfg(not(Py_GIL_DISABLED))]
    pub(super) fn of_all(py: Python<'_>, listed: &[&Listed]) -> Option<Listed> {
        let first = listed.first()?;
        let bounds: Option<Vec<_>> = listed.iter().map(|one| one.borrowed.bounds()).collect();
        let low = bounds.as_ref()?.iter().map(|(low, _)| *low).min()?;
        let high = bounds?.iter().map(|(_, high)| *high).max()?;
        let bytes = numpy::dtype::<u8>(py).into_any();
        let (shape, byte_strides) = (Extents::from_elem(i64::try_from(high - low).ok()?, 1), Extents::from_elem(1, 1));
        let borrowed = Geometry { data: low, itemsize: 1, base: first.borrowed.base, shape, byte_strides };
        let view = view_of(py, first.array, &bytes, &borrowed)?;
        let array = NonNull::new(view.as_ptr())?.cast();
        let (dtype, view) = (bytes.unbind(), Some(view.unbind()));
        let all = Listed { table: first.table, array, writes: true, dtype, view, borrowed };
        all.is_unchanged(py).then_some(all)
    }

    /// Ends the borrow. rust-numpy looks for it by the array's shape, strides and last base, and ends the process if it is not
    /// there. So a borrow of an array that was changed meanwhile (`array.shape = ...`) is ended with a view that is as the array
    /// was; if that is not possible, it stays in the list.
    #[cold]
    pub(super) fn release(&self, py: Python<'_>) {
        let release = if self.writes { self.table.release_mut } else { self.table.release };
        let end = |array: NonNull<PyArrayObject>| {
            let unchanged = Geometry::of(py, array) == self.borrowed;
            if unchanged {
                // SAFETY: the thread is attached; an array; an equal one was acquired once and is released once.
                unsafe { release(self.table.flags, array.as_ptr()) }
            }
            unchanged
        };
        if !end(self.array)
            && let Some(view) = view_of(py, self.array, self.dtype.bind(py), &self.borrowed)
            && let Some(array) = NonNull::new(view.as_ptr())
        {
            end(array.cast());
        }
    }
}

/// Makes an array on the memory of `base`. It is not to be read or written: its memory may be gone.
fn view_of<'py>(
    py: Python<'py>,
    base: NonNull<PyArrayObject>,
    dtype: &Bound<'py, PyAny>,
    geometry: &Geometry,
) -> Option<Bound<'py, PyAny>> {
    let Geometry { shape, byte_strides, data, .. } = geometry;
    let ndim = c_int::try_from(shape.len()).ok()?;
    let (shape, strides) = (shape.as_ptr().cast_mut().cast(), byte_strides.as_ptr().cast_mut().cast());
    // SAFETY: NumPy's own functions; the first takes over a reference to the dtype, the second one to the base. The address is
    // not read.
    unsafe {
        let ty = get_type_object(py, NpyTypes::PyArray_Type);
        let (dtype, data) = (dtype.clone().into_ptr().cast(), ptr::without_provenance_mut(*data));
        let flags = NPY_ARRAY_WRITEABLE;
        let made = PY_ARRAY_API.PyArray_NewFromDescr(py, ty, dtype, ndim, shape, strides, data, flags, null_mut());
        let Some(view) = Bound::from_owned_ptr_or_opt(py, made) else {
            // No memory.
            drop(PyErr::take(py));
            return None;
        };
        let base = Bound::from_borrowed_ptr(py, base.as_ptr().cast::<ffi::PyObject>()).into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, made.cast(), base) != 0 {
            drop(PyErr::take(py));
            return None;
        }
        Some(view)
    }
}

/// What rust-numpy reads of an array.
#[derive(PartialEq)]
pub(super) struct Geometry {
    pub(super) data: usize,
    itemsize: isize,
    pub(super) base: usize,
    shape: Extents,
    byte_strides: Extents,
}

impl Geometry {
    /// The caller passes an array, and no code runs meanwhile that could change it.
    pub(super) fn of(py: Python<'_>, array: NonNull<PyArrayObject>) -> Geometry {
        // SAFETY: an array; its numbers are valid until code runs that changes them.
        unsafe {
            let fields = &(*array.as_ptr()).fields;
            let ndim = usize::try_from(fields.nd).unwrap_or(0);
            let numbers = |first: *mut isize| match ndim {
                0 => Extents::new(),
                // SAFETY: as above; `isize` and `i64` agree on 64-bit machines, the only targets.
                _ => Extents::from_slice(from_raw_parts(first.cast::<i64>(), ndim)),
            };
            Geometry {
                data: fields.data.addr(),
                itemsize: PyDataType_ELSIZE(py, fields.descr),
                base: last_base(py, array),
                shape: numbers(fields.dimensions),
                byte_strides: numbers(fields.strides),
            }
        }
    }

    /// Describes the bytes of the elements, whatever their type. Returns whether that is possible.
    pub(super) fn describe(mut self, start: *mut u8, descriptor: &mut Descriptor) -> bool {
        self.shape.push(i64::try_from(self.itemsize).unwrap_or(i64::MAX));
        self.byte_strides.push(1);
        let exact =
            descriptor.set_with_byte_strides(start, Device::CPU, DType::U8, false, &self.shape, &self.byte_strides);
        // One dimension more than NumPy's is too many for a descriptor if NumPy's are the most that are possible.
        exact.is_ok() || {
            self.shape.pop();
            self.byte_strides.pop();
            self.bounds().is_some_and(|(low, high)| {
                let bytes = i64::try_from(high - low).unwrap_or(i64::MAX);
                descriptor
                    .set_with_byte_strides(start.with_addr(low), Device::CPU, DType::U8, false, &[bytes], &[1])
                    .is_ok()
            })
        }
    }

    /// The lowest address of an element, and the end of the highest.
    pub(super) fn bounds(&self) -> Option<(usize, usize)> {
        if self.shape.contains(&0) {
            return Some((self.data, self.data));
        }
        let (mut low, mut high) = (0i64, i64::try_from(self.itemsize).ok()?);
        for (extent, stride) in self.shape.iter().zip(&self.byte_strides) {
            let step = (extent - 1).checked_mul(*stride)?;
            (low, high) = (low.checked_add(step.min(0))?, high.checked_add(step.max(0))?);
        }
        let address = |offset: i64| self.data.checked_add_signed(isize::try_from(offset).ok()?);
        Some((address(low)?, address(high)?))
    }
}

/// The address of the object at the end of an array's chain of bases.
fn last_base(py: Python<'_>, array: NonNull<PyArrayObject>) -> usize {
    // SAFETY: an array, whose base is NULL or an object that it keeps alive; the same holds for bases that are arrays.
    unsafe {
        let mut last = Bound::from_borrowed_ptr(py, array.as_ptr().cast());
        while numpy_api::is_array(&last) {
            let base = (*last.as_ptr().cast::<PyArrayObject>()).fields.base;
            let Some(base) = Bound::from_borrowed_ptr_or_opt(py, base) else { break };
            last = base;
        }
        last.as_ptr().addr()
    }
}
