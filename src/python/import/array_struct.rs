//! Imports NumPy's `__array_struct__`: host memory that a C struct in a capsule describes.
//!
//! Source: NumPy's page on the array interface, "C-struct access".

use pyo3::prelude::*;

use crate::device::Device;
use crate::error::ExchangeError;
use crate::protocol::array_interface::Descr;
use crate::protocol::array_struct::STRUCT;
use crate::python::convert::args;
use crate::python::ffi::numpy_api;
use crate::python::import::imported::Imported;
use crate::python::import::names::Name;
use crate::python::import::numpy_scalar::numpy_scalar;
use crate::python::import::request::{Ownership, Request};
use crate::python::import::{dictionary, type_info};
use crate::python::py_owner::PyOwner;
use crate::tensor::Owner;

pub(super) fn import(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    if numpy_scalar(object)?.is_some() {
        // The struct of a scalar points to a temporary.
        return Ok(false);
    }
    let Some(capsule) = type_info::attribute(object, Name::ArrayStruct)? else { return Ok(false) };
    let Some((found, descr)) = numpy_api::array_struct(&capsule)? else {
        let (got, allowed) = (args::shown(&capsule), "a capsule without a name, with a PyArrayInterface");
        return Err(ExchangeError::new(STRUCT.name, &allowed, &got).into());
    };
    let typestr = found.typestr();
    let descr = descr.map_or(Ok(Descr::Absent), |descr| dictionary::descr(&descr, &typestr))?;
    let dtype = dictionary::own_dtype(object, &typestr)?;
    found.into_interface(&typestr, dtype, descr)?.read_into(imported.descriptor, &STRUCT, Device::CPU)?;
    // The capsule keeps the memory; a description keeps the object itself.
    imported.owner_needs_object = request.ownership == Ownership::Borrow;
    let object = (request.ownership == Ownership::Share).then(|| PyOwner::new(object));
    Ok(imported.owned(Owner::foreign((object, PyOwner::new(&capsule)))))
}
