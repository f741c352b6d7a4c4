//! What a caller asks for, and what an importer returns.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple};

use super::data_interface::Interface;
use crate::device::{Device, DeviceError};
use crate::protocol::ExchangeError;
use crate::py::args;
use crate::py::errors::Kind;
use crate::py::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// What the caller does with the memory. Objects that keep several copies of it bring one up to date for that.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Access {
    /// Reads no elements, at least not yet: they may be out of date.
    #[default]
    Look,
    /// The same; a stencil calls the hooks of the data interface later.
    Stencil,
    Read,
    Write,
}

/// What the caller asks for.
#[derive(Default)]
pub(super) struct Request<'a, 'py> {
    pub(super) device: Option<Device>,
    /// The device that uses the memory: of several buffers the one nearest to it is taken.
    pub(super) near: Option<Device>,
    pub(super) access: Access,
    pub(super) copy: Option<bool>,
    pub(super) stream: Option<&'a Bound<'py, PyAny>>,
    /// The stream of the producer, on which work on the memory may still run, if the producer names it.
    pub(super) producer: Cell<Option<i64>>,
    /// Whether an importer found that the object has neither labels nor hooks. To look again takes as long as the import of a
    /// small array.
    pub(super) has_no_metadata: Cell<bool>,
    /// Whether the object was inside another one.
    pub(super) inside: bool,
    pub(super) cache: ImportCache<'py>,
}

/// Metadata cached during import, so that no object is asked twice.
#[derive(Default)]
pub(in crate::py) struct ImportCache<'py> {
    /// The device that the caller asks for.
    pub(super) device: Option<Device>,
    /// The object's data interface.
    pub(super) interface: OnceCell<Interface<'py>>,
    /// The array inside the object, if the object is a wrapper.
    pub(super) inner: OnceCell<Inner<'py>>,
    /// The object's `release` hook, to be called when the memory is released.
    pub(super) release: OnceCell<Arc<ReleaseHook>>,
}

/// An array that another object wraps.
pub(in crate::py) struct Inner<'py> {
    pub(super) array: Bound<'py, PyAny>,
    /// The protocol that it was imported by.
    pub(super) protocol: &'static str,
    pub(super) cache: Box<ImportCache<'py>>,
}

/// Who owns the memory that an importer described.
pub(super) enum Reading {
    /// This owner.
    Owned(Owner),
    /// The same, from a struct without a flag for read-only memory: taken for read-only, unless the caller knows better.
    ReadonlyUnknown(Owner),
    /// The object, which may move it. Only where the caller asked for a description.
    Borrowed,
}

impl Reading {
    /// The owner, if the producer passed one.
    pub(super) fn into_shared(self) -> Option<Owner> {
        match self {
            Reading::Owned(owner) | Reading::ReadonlyUnknown(owner) => Some(owner),
            Reading::Borrowed => None,
        }
    }
}

/// Whether the memory has to outlive the call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// No: for a description.
    Borrow,
    /// Yes: the import returns an owner.
    Share,
}

impl Access {
    /// Whether elements are read or written right after the import.
    pub(super) fn is_now(self) -> bool {
        matches!(self, Access::Read | Access::Write)
    }

    /// Whether elements are written, or the memory is kept: more than reading it for the length of a call.
    pub(super) fn takes(self, ownership: Ownership) -> bool {
        self == Access::Write || (self == Access::Read && ownership == Ownership::Share)
    }
}

/// The error for a copy where the memory itself is wanted.
pub(super) fn refused_copy(ownership: Ownership, reason: impl Into<String>) -> ExchangeError {
    let reason = reason.into();
    match ownership {
        Ownership::Borrow => ExchangeError::OnlyCopy { reason },
        Ownership::Share => ExchangeError::NeedsCopy { reason },
    }
}

/// Rejects `stream` for memory of a device that was exported before without one.
pub(super) fn check_exported(request: &Request<'_, '_>, found: Device) -> PyResult<()> {
    let Some(stream) = request.stream.filter(|stream| !stream.is_none()) else { return Ok(()) };
    if found == Device::CPU || stream.extract().is_ok_and(|number: i64| number == -1) {
        return Ok(());
    }
    let allowed = "None, or -1 where the caller sees to the order: obj is exported without a word about streams";
    Err(ExchangeError::Argument { argument: "stream", got: args::shown(stream), allowed }.into())
}

pub(in crate::py) fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if wanted != found => Err(DeviceError::Mismatch { found, wanted }.into()),
        _ => Ok(()),
    }
}

/// Whether the object's own memory is wanted, and not a copy of it.
pub(super) fn is_shared(request: &Request<'_, '_>, ownership: Ownership) -> bool {
    ownership == Ownership::Borrow || request.copy == Some(false)
}

/// The error for an object without any protocol.
#[cold]
pub(super) fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    // These have elements, but no memory to share.
    let is_copied = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    let fix = if is_copied { "; dl.from_array(...) copies it into a field" } else { "" };
    Kind::NotAnArray.error(format!(
        "obj: {} has no protocol of an array{fix}; allowed are objects with __dlpack__, __dlpack_c_exchange_api__, \
         __gt_data_interface__, __cuda_array_interface__, __hip_array_interface__, __array_interface__, the buffer \
         protocol or __array__, DLPack capsules, and what wraps one of these: xarray.DataArray, gt4py.next Field",
        object.get_type()
    ))
}
