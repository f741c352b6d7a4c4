//! `dlfield.FieldSpec`, `dlfield.Signature` and the `Bound` that its `bind` returns.

mod argument;
mod bind;
mod bound;
mod field;
mod hooks;
mod spec;

use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use bound::PyBound;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use spec::PyFieldSpec;

use crate::classes::device::{PyDevice, parse_device};
use crate::classes::freelist;
use dlfield::device::Device;
use dlfield::native::args;
use dlfield::signature::{FieldSpec, Signature, SignatureError};

/// The fields that a stencil takes, checked at every call by `bind`.
///
/// Parameters
/// ----------
/// device
///     The device of all fields: a `Device`, its name, DLPack's pair, or a device of PyTorch, JAX or CuPy.
/// on_mismatch
///     What happens to a field with another device, dtype, alignment or layout than wanted. "raise": an error, or for
///     layout a `LayoutWarning`. "copy": the stencil gets a temporary copy, with one warning for each field; it is written
///     back after the call if the field is written. Dtypes are cast by NumPy's "same_kind" rule, both ways if written. The
///     host casts, so another dtype remains an error if the host can reach neither the field nor the copy.
/// allow_overlap
///     Whether written fields may share memory with other fields, as when an array is passed twice. The kernel is then
///     responsible for the order of its reads and writes. Fields with the same elements share one temporary copy; a
///     temporary copy of only one of two fields that overlap is an error.
/// fields
///     A `FieldSpec` for each field, by its name.
///
/// Raises
/// ------
/// LayoutError, DimsError, DTypeError, DeviceError
///     A `FieldSpec` whose parts do not fit together, or an invalid device.
/// TypeError
///     A field that is not a `FieldSpec`.
/// ValueError
///     Another value of `on_mismatch`.
///
/// Example
/// -------
/// >>> import dlfield as dl, numpy as np
/// >>> sig = dl.Signature(inp=dl.FieldSpec("float64", "IJ"), out=dl.FieldSpec("float64", "IJ", access="w"))
/// >>> with sig.bind(inp=np.ones((4, 5)), out=dl.zeros((5, 4), dims="JI")) as fields:
/// ...     fields.out.shape, fields.out.strides, fields.domain
/// ((4, 5), (8, 32), (4, 5))
#[pyclass(name = "Signature", module = "dlfield", frozen)]
pub(crate) struct PySignature {
    signature: Signature,
    /// The names, interned, in the signature's order.
    names: Vec<Py<PyString>>,
    /// Whether a field has the name of an attribute of `Bound`.
    hidden: Vec<bool>,
    copies: bool,
    /// Whether the user was warned that a field is copied.
    warned: Vec<AtomicBool>,
}

#[pymethods]
impl PySignature {
    #[new]
    #[pyo3(
        signature = (*, device=None, on_mismatch=None, allow_overlap=false, **fields),
        text_signature = "(*, device='cpu', on_mismatch='raise', allow_overlap=False, **fields)"
    )]
    fn new(
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        on_mismatch: Option<&Bound<'_, PyAny>>,
        allow_overlap: bool,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySignature> {
        let copies = on_mismatch.map_or(Ok(0), |given| args::choice("on_mismatch", given, &["raise", "copy"]))? == 1;
        let device = device.map_or(Ok(Device::CPU), parse_device)?;
        let (mut specs, mut names) = (Vec::new(), Vec::new());
        for (name, spec) in fields.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            specs.push((name.to_cow()?.into_owned(), PyFieldSpec::given(&name, &spec)?));
            names.push(PyString::intern(py, &name.to_cow()?).unbind());
        }
        let warned = names.iter().map(|_| AtomicBool::new(false)).collect();
        let hides = |name: &Py<PyString>| py.get_type::<PyBound>().hasattr(name);
        let hidden = names.iter().map(hides).collect::<PyResult<_>>()?;
        let signature = Signature::new(specs)?.with_device(device).with_overlap(allow_overlap);
        Ok(PySignature { signature, names, hidden, copies, warned })
    }

    /// The `FieldSpec` of each field, by name.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for ((_, spec), name) in self.signature.fields().iter().zip(&self.names) {
            fields.set_item(name, Py::new(py, PyFieldSpec(spec.clone()))?)?;
        }
        Ok(fields)
    }

    /// The device of all fields.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.signature.device())
    }

    /// "raise", or "copy" for temporary copies.
    #[getter]
    fn on_mismatch(&self) -> &'static str {
        if self.copies { "copy" } else { "raise" }
    }

    /// Whether written fields may share memory with other fields.
    #[getter]
    fn allow_overlap(&self) -> bool {
        self.signature.allows_overlap()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = "Signature(".to_owned();
        for (name, spec) in self.signature.fields() {
            text += &format!("{name}={}, ", PyFieldSpec(spec.clone()).text(py)?);
        }
        text += &format!("device='{}'", self.signature.device());
        if self.copies {
            text += ", on_mismatch='copy'";
        }
        if self.signature.allows_overlap() {
            text += ", allow_overlap=True";
        }
        Ok(text + ")")
    }
}

impl PySignature {
    fn spec(&self, place: usize) -> (&str, &FieldSpec) {
        let (name, spec) = &self.signature.fields()[place];
        (name, spec)
    }

    /// The position of the field that an interned attribute name refers to.
    fn attribute(&self, name: &Bound<'_, PyAny>) -> Option<usize> {
        self.names.iter().position(|known| name.is(known)).filter(|place| !self.hidden[*place])
    }

    /// The position of a field. Tries `guess` first: callers tend to name fields in the signature's order.
    fn place(&self, name: &Bound<'_, PyString>, guess: usize) -> PyResult<usize> {
        if self.names.get(guess).is_some_and(|known| name.is(known)) {
            return Ok(guess);
        }
        if let Some(place) = self.names.iter().position(|known| name.is(known)) {
            return Ok(place);
        }
        // Names that are built at run time are not interned.
        let text = name.to_string_lossy();
        let fields = self.signature.fields();
        if fields.get(guess).is_some_and(|(known, _)| **known == *text) {
            return Ok(guess);
        }
        let found = fields.iter().position(|(known, _)| **known == *text);
        found.ok_or_else(|| {
            let allowed: Vec<&str> = self.signature.fields().iter().map(|(name, _)| &**name).collect();
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            dlfield::Error::from(SignatureError::Unknown { field: text.into(), allowed }).into()
        })
    }

    /// Warns once that a field is copied. If the warning raises, the call fails, so the next call warns again.
    fn warn_once(&self, place: usize, warn: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
        let warned = &self.warned[place];
        if warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        warn().inspect_err(|_| warned.store(false, Ordering::Relaxed))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFieldSpec>()?;
    module.add_class::<PySignature>()?;
    module.add_class::<PyBound>()?;
    freelist::install::<PyBound>(module.py())?;
    bind::install(module.py())
}
