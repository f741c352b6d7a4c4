//! Imports NumPy's `__array_interface__`: host memory that a dictionary describes.
//!
//! Source: NumPy's page on the array interface, version 3.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};

use crate::protocol::array_interface::HOST;
use crate::python::ffi::getattr;
use crate::python::ffi::refcount::references;
use crate::python::import::dictionary;
use crate::python::import::dictionary::{Entries, Key};
use crate::python::import::imported::Imported;
use crate::python::import::names::Name;
use crate::python::import::numpy_scalar::numpy_scalar;
use crate::python::import::request::{Ownership, Request, refused_copy};
use crate::python::import::type_info::TypeInfo;
use crate::python::py_owner;
use crate::python::py_owner::PyOwner;
use crate::tensor::Owner;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    // The interface of a NumPy scalar, which its type has, points to a temporary.
    if TypeInfo::of(object)?.has_on_type(Name::ArrayInterface) && numpy_scalar(object)?.is_some() {
        return Ok(false);
    }
    let Some(value) = getattr::getattr_opt(object, Name::ArrayInterface.text(object.py()))? else { return Ok(false) };
    let dict = dictionary::of(HOST.name, &value)?;
    drop(value);
    check_copied(&dict, request)?;
    let held = dictionary::on_host(object, &Entries::of(&dict)?, &HOST, imported.descriptor)?;
    imported.owner_needs_object = held.is_none() && request.ownership == Ownership::Borrow;
    let owner = match (held, request.ownership) {
        // A buffer keeps its memory.
        (Some(held), _) => held,
        // Producers tie the memory to the dictionary too; a description keeps the object itself.
        (None, Ownership::Borrow) => py_owner::owner(dict.as_any()),
        (None, Ownership::Share) => Owner::foreign((PyOwner::new(object), PyOwner::new(dict.as_any()))),
    };
    Ok(imported.owned(owner))
}

/// Rejects a copy if the object's own memory is requested: bytes that only a fresh dictionary refers to were made for this
/// call, as Pillow does.
fn check_copied(dict: &Bound<'_, PyDict>, request: &Request<'_, '_>) -> PyResult<()> {
    if references(dict.as_any()) > 1 || !request.rejects_copy() {
        return Ok(());
    }
    let Some(data) = dictionary::entry(dict, Key::Data)? else { return Ok(()) };
    let owns = data.is_exact_instance_of::<PyBytes>() || data.is_exact_instance_of::<PyByteArray>();
    // One reference is the dictionary's, the other is `data`.
    if owns && references(&data) <= 2 {
        let reason = "the producer has copied its elements into \"data\" for this call";
        return Err(refused_copy(request.ownership, reason).into());
    }
    Ok(())
}
