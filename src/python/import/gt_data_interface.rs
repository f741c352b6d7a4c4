//! Imports the selected buffer of `__gt_data_interface__`, or of its older spelling `__gt_interface__`, and runs the hooks of that:
//! `acquire` before the memory is used, `release` afterwards. Stencils call both, and `touch`, around each call; see `signature`.
//!
//! Source: GDP 3.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::device::Device;
use crate::protocol::array_interface::{GT_GPU, HOST};
use crate::python::import::data_interface::Interface;
use crate::python::import::dictionary::{self, Entries};
use crate::python::import::request::{Imported, Release, Request};
use crate::python::import::{array_interface, type_info};
use crate::python::py_owner::ReleaseHook;
use crate::tensor::Owner;

pub fn import<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<bool> {
    let interface = Interface::of(object, request.device.or(request.near))?;
    // Absent ones are not kept: another protocol, whose look-up may add one, may be next.
    let Some(source) = interface.sources().first() else { return Ok(false) };
    let buffer = source.chosen(request.device)?;
    let dict = buffer.dict(source.name)?;
    let entries = Entries::of(dict)?;
    let held = if buffer.device == Device::CPU {
        let judge = HOST.named(source.name);
        dictionary::on_host(object, &entries, &judge, out.descriptor)?
    } else {
        let judge = GT_GPU.named(source.name);
        let found = dictionary::on_device(object, &entries, &judge)?;
        array_interface::check_order(&judge, request.stream, found.stream)?;
        found.read_into(out.descriptor, &judge, request.device.unwrap_or(buffer.device))?;
        out.producer_stream = found.stream;
        None
    };
    let found = out.owned_by(held, dict, object, request);
    out.interface = Some(interface);
    Ok(found)
}

/// Calls `acquire` of an imported object, and makes the owner call `release`, if elements are accessed right after the
/// import. Calls neither for memory from `__dlpack__`, which is ready for use.
pub fn run_acquire<'a>(object: &Bound<'a, PyAny>, request: &Request<'_>, out: &mut Imported<'a>) -> PyResult<()> {
    let is_ready = !request.access.accesses_elements() || out.protocol == "dlpack";
    if is_ready || !type_info::may_have_hooks(object)? {
        return Ok(());
    }
    if out.interface.is_none() {
        out.interface = Some(Interface::of(object, request.device.or(request.near))?);
    }
    let Some(hooks) = out.hooks(out.descriptor.device())? else { return Ok(()) };
    if let Some(acquire) = hooks.acquire {
        acquire.call0(object.py())?;
    }
    let Some(release) = hooks.release else { return Ok(()) };
    let release = Arc::new(ReleaseHook::new(release));
    out.release = Release(Some(Arc::clone(&release)));
    let owner = out.take_owner(object)?;
    // `release` is called before the memory is released.
    out.owner = Some(Owner::foreign((release, owner)));
    Ok(())
}
