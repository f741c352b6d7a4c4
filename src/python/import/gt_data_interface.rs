//! Imports the selected buffer of `__gt_data_interface__`, or of its older spelling `__gt_interface__`.
//!
//! Source: GDP 3.

use pyo3::prelude::*;

use crate::device::Device;
use crate::protocol::array_interface::{GT_GPU, HOST};
use crate::python::import::data_interface::Interface;
use crate::python::import::dictionary::Entries;
use crate::python::import::imported::Imported;
use crate::python::import::request::{Ownership, Request};
use crate::python::import::{cuda_array_interface, dictionary};
use crate::python::py_owner::PyOwner;
use crate::tensor::Owner;

pub(super) fn import<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<bool> {
    let interface = Interface::of(object, request.device.or(request.near))?;
    if interface.sources().is_empty() {
        // Asked for again after another protocol, whose look-up may add it.
        return Ok(false);
    }
    let interface = imported.interface.insert(interface);
    let Some(source) = interface.sources().first() else { return Ok(false) };
    let buffer = source.chosen(request.device)?;
    let dict = buffer.dict(source.name)?;
    let entries = Entries::of(dict)?;
    let held = if buffer.device == Device::CPU {
        let judge = HOST.named(source.name);
        dictionary::on_host(object, &entries, &judge, imported.descriptor)?
    } else {
        let judge = GT_GPU.named(source.name);
        let found = dictionary::on_device(object, &entries, &judge)?;
        cuda_array_interface::check_order(&judge, request.stream, found.stream)?;
        found.read_into(imported.descriptor, &judge, request.device.unwrap_or(buffer.device))?;
        imported.producer_stream = found.stream;
        None
    };
    imported.owner_needs_object = held.is_none() && request.ownership == Ownership::Borrow;
    // A buffer keeps its memory; else producers tie it to the object or to the dictionary, and a description keeps the object itself.
    let owner = held.unwrap_or_else(|| {
        let object = (request.ownership == Ownership::Share).then(|| PyOwner::new(object));
        Owner::foreign((object, PyOwner::new(dict.as_any())))
    });
    Ok(imported.owned(owner))
}
