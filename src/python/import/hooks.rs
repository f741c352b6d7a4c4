//! Runs the hooks of the data interface for imports: `acquire` before the memory is used, `release` afterwards.
//!
//! Source: GDP 3. Stencils call both, and `touch`, around each call; see `signature`.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::python::import::data_interface::Interface;
use crate::python::import::imported::{Imported, Release};
use crate::python::import::request::Request;
use crate::python::import::type_info::TypeInfo;
use crate::python::py_owner::ReleaseHook;
use crate::tensor::Owner;

/// Calls `acquire` of an imported object, and makes the owner call `release`, if elements are accessed right after the
/// import. Calls neither for memory from `__dlpack__`, which is ready for use.
pub(super) fn run_acquire<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    imported: &mut Imported<'_, 'py>,
) -> PyResult<()> {
    let is_ready = !request.access.accesses_elements() || imported.protocol == "dlpack";
    if is_ready || !TypeInfo::of(object)?.may_have_hooks(object) {
        return Ok(());
    }
    if imported.interface.is_none() {
        imported.interface = Some(Interface::of(object, request.device.or(request.near))?);
    }
    let Some(hooks) = imported.hooks(imported.descriptor.device())? else { return Ok(()) };
    if let Some(acquire) = hooks.acquire {
        acquire.call0(object.py())?;
    }
    let Some(release) = hooks.release else { return Ok(()) };
    let release = Arc::new(ReleaseHook::new(release));
    imported.release = Release(Some(Arc::clone(&release)));
    let owner = imported.take_owner(object)?;
    // `release` is called before the memory is released.
    imported.owner = Some(Owner::foreign((release, owner)));
    Ok(())
}

/// Whether the object may have a data interface with hooks.
pub fn may_have_hooks(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.may_have_hooks(object))
}
