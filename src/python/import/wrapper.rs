//! Recognizes types that wrap an array: `xarray.DataArray` and `Variable`, fields of `gt4py.next`, host/device pairs.
//!
//! Their libraries are not imported here: such an object exists only if its library is imported.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::python::ffi::getattr;
use crate::python::ffi::getattr::loaded;

/// A kind of object that wraps an array, or two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// `xarray.DataArray` and its relatives.
    Xarray,
    /// A field of `gt4py.next`.
    Field,
    /// A host/device pair, which has the metadata of its buffers.
    Pair,
}

impl Wrapper {
    /// Returns the kind of wrapper of a type; `None` if its objects wrap no array.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Option<Wrapper>> {
        let py = ty.py();
        // The class is absent while the module is still being imported.
        if let Some(module) = loaded(py, "dlfield.storage.managed")?
            && let Some(pair) = getattr::getattr_opt(&module, intern!(py, "SoftwareManagedGPUStorage"))?
            && ty.is_subclass(&pair)?
        {
            return Ok(Some(Wrapper::Pair));
        }
        if let Some(xarray) = loaded(py, "xarray")? {
            // Some classes are absent in older versions, and while xarray is still being imported.
            for name in [intern!(py, "DataArray"), intern!(py, "Variable"), intern!(py, "NamedArray")] {
                if let Some(kind) = getattr::getattr_opt(&xarray, name)?
                    && ty.is_subclass(&kind)?
                {
                    return Ok(Some(Wrapper::Xarray));
                }
            }
        }
        let Some(module) = loaded(py, "gt4py.next.common")? else { return Ok(None) };
        // All fields derive from this `Protocol` class; `issubclass` would evaluate properties.
        let Some(field) = getattr::getattr_opt(&module, intern!(py, "Field"))? else { return Ok(None) };
        let derived = ty.mro().iter().any(|base| base.is(&field));
        Ok(derived.then_some(Wrapper::Field))
    }
}
