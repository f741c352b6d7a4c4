//! `dlfield.FieldSpec`, `dlfield.Signature` and what its `bind` returns.

mod bind;
mod bound;
mod field;
mod hooks;
mod spec;

use std::sync::atomic::{AtomicBool, Ordering};

pub(super) use bound::PyBound;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use spec::PyFieldSpec;

use super::args;
use super::device::PyDevice;
use crate::device::Device;
use crate::signature::{FieldSpec, Signature, SignatureError};

/// The fields that a stencil takes, checked at every call by `bind`.
///
/// Parameters
/// ----------
/// device
///     Where all fields have to be: a `Device`, its name, or DLPack's pair.
/// on_mismatch
///     What becomes of a field of another dtype, layout, alignment or device than wanted. "raise": an error, or for
///     layout a `LayoutWarning`. "copy": a copy stands in for it, with a warning once for each field; it is copied back
///     after the call if the field is written. Dtypes are cast by NumPy's "same_kind" rule, both ways if written.
/// fields
///     A `FieldSpec` for each field, by its name.
///
/// Raises
/// ------
/// LayoutError, DimsError, DTypeError, DeviceError
///     A `FieldSpec` whose parts do not fit together, or no device.
/// TypeError
///     A field that is no `FieldSpec`.
/// ValueError
///     Another `on_mismatch`.
///
/// Example
/// -------
/// >>> import dlfield as dl, numpy as np
/// >>> sig = dl.Signature(inp=dl.FieldSpec("float64", "IJ"), out=dl.FieldSpec("float64", "IJ", access="w"))
/// >>> with sig.bind(inp=np.ones((4, 5)), out=dl.zeros((5, 4), dims="JI")) as fields:
/// ...     fields.out.shape, fields.out.strides, fields.domain
/// ((4, 5), (8, 32), (4, 5))
#[pyclass(name = "Signature", module = "dlfield", frozen)]
pub(super) struct PySignature {
    signature: Signature,
    /// The names, interned, in the signature's order.
    names: Vec<Py<PyString>>,
    copies: bool,
    /// Whether the user has been told that a field is copied.
    told: Vec<AtomicBool>,
}

#[pymethods]
impl PySignature {
    #[new]
    #[pyo3(
        signature = (*, device=None, on_mismatch="raise", **fields),
        text_signature = "(*, device='cpu', on_mismatch='raise', **fields)"
    )]
    fn new(
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        on_mismatch: &str,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySignature> {
        let copies = match on_mismatch {
            "raise" => false,
            "copy" => true,
            _ => {
                let message = format!("on_mismatch: {on_mismatch:?}; allowed is 'raise' or 'copy'");
                return Err(PyValueError::new_err(message));
            }
        };
        let device = device.map_or(Ok(Device::CPU), args::device)?;
        let (mut specs, mut names) = (Vec::new(), Vec::new());
        for (name, spec) in fields.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            specs.push((name.to_cow()?.into_owned(), PyFieldSpec::given(&name, &spec)?));
            names.push(PyString::intern(py, &name.to_cow()?).unbind());
        }
        let told = names.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(PySignature { signature: Signature::new(specs)?.device(device), names, copies, told })
    }

    /// What is wanted of each field, by name.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for ((_, spec), name) in self.signature.fields().iter().zip(&self.names) {
            fields.set_item(name, Py::new(py, PyFieldSpec(spec.clone()))?)?;
        }
        Ok(fields)
    }

    /// Where all fields have to be.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.signature.stated_device())
    }

    /// "raise", or "copy" for copies that stand in.
    #[getter]
    fn on_mismatch(&self) -> &'static str {
        if self.copies { "copy" } else { "raise" }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = "Signature(".to_owned();
        for (name, spec) in self.signature.fields() {
            text += &format!("{name}={}, ", PyFieldSpec(spec.clone()).text(py)?);
        }
        text += &format!("device='{}'", self.signature.stated_device());
        if self.copies {
            text += ", on_mismatch='copy'";
        }
        Ok(text + ")")
    }
}

impl PySignature {
    fn spec(&self, place: usize) -> (&str, &FieldSpec) {
        let (name, spec) = &self.signature.fields()[place];
        (name, spec)
    }

    /// Where a field stands. Callers tend to name them in the signature's order.
    fn place(&self, name: &Bound<'_, PyString>, guess: usize) -> PyResult<usize> {
        if self.names.get(guess).is_some_and(|known| name.is(known)) {
            return Ok(guess);
        }
        if let Some(place) = self.names.iter().position(|known| name.is(known)) {
            return Ok(place);
        }
        let text = name.to_cow()?;
        let found = self.signature.fields().iter().position(|(known, _)| **known == *text);
        found.ok_or_else(|| {
            let allowed: Vec<&str> = self.signature.fields().iter().map(|(name, _)| &**name).collect();
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            crate::Error::from(SignatureError::Unknown { field: text.into(), allowed }).into()
        })
    }

    /// Whether to tell the user now that a field is copied: once is enough.
    fn tells(&self, place: usize) -> bool {
        !self.told[place].swap(true, Ordering::Relaxed)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFieldSpec>()?;
    module.add_class::<PySignature>()?;
    module.add_class::<PyBound>()?;
    bind::install(module.py())
}
