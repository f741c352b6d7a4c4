//! Finds the table of DLPack's C exchange API, which is an attribute of a type, and reads the `DLTensor` that it lends.
//!
//! Source: DLPack 1.3, `DLPackExchangeAPI`.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackVersion, DLTensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use crate::descriptor::Descriptor;
use crate::error::ExchangeError;
use crate::protocol::dlpack;
use crate::python::ffi::getattr;

/// The C function that fills in a borrowed `DLTensor`.
pub type Borrow = unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32;

/// The names of the functions in error messages.
pub const EXPORT: &str = "__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync";
pub const BORROW: &str = "__dlpack_c_exchange_api__.dltensor_from_py_object_no_sync";

const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";

/// Returns the table of a type in a supported version; a newer table may link to an older one.
pub fn table(ty: &Bound<'_, PyType>) -> PyResult<Option<&'static DLPackExchangeAPI>> {
    let name = intern!(ty.py(), "__dlpack_c_exchange_api__");
    // An attribute of the metaclass does not count: it may change without the type.
    if getattr::on_type(ty, name).is_none() {
        return Ok(None);
    }
    let Some(capsule) = getattr::getattr_opt(ty, name)? else { return Ok(None) };
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|error| {
        PyErr::from(ExchangeError::new(
            "__dlpack_c_exchange_api__",
            &"a capsule named 'dlpack_exchange_api'",
            &error.to_string(),
        ))
    })?;
    let mut header = capsule.pointer_checked(Some(CAPSULE_NAME))?.cast::<DLPackExchangeAPIHeader>().as_ptr();
    while !header.is_null() {
        // SAFETY: tables live for the rest of the process, and their header is the same in every version.
        let known = unsafe { &*header };
        if known.version.major == dlpack::VERSION.major {
            // SAFETY: tables of this major version have this layout.
            return Ok(Some(unsafe { &*header.cast::<DLPackExchangeAPI>() }));
        }
        header = known.prev_api;
    }
    Ok(None)
}

/// Describes an object by the `DLTensor` that the table of its type lends. `false` if the table refused, with an exception set.
#[inline]
pub fn read_lent(
    object: &Bound<'_, PyAny>,
    version: DLPackVersion,
    borrow: Borrow,
    descriptor: &mut Descriptor,
) -> PyResult<bool> {
    let mut lent = MaybeUninit::<DLTensor>::uninit();
    // SAFETY: the function is from the table of the object's type; on success the struct is filled, and its shape and strides
    // live until control returns to the producer. They are copied here.
    unsafe {
        if borrow(object.as_ptr().cast::<c_void>(), lent.as_mut_ptr()) != 0 {
            return Ok(false);
        }
        dlpack::read_into(descriptor, lent.assume_init_ref(), Some(version), DlpackFlags::empty())?;
    }
    Ok(true)
}
