//! `dlfield.Preset`.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::preset::{Alignment, LayoutRule, Preset};
use crate::python::convert::args;
use crate::python::convert::errors::{self, ErrorKind};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::device::PyDevice;
use crate::python::nearest::did_you_mean;

/// A named set of alignment, layout rule and device, chosen with `backend=`.
///
/// >>> import dlfield as dl
/// >>> dl.presets()["gtmc"]
/// Preset('gtmc', alignment=8, layout=(0, 2, 1), device='cpu')
#[pyclass(name = "Preset", module = "dlfield", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyPreset(pub(crate) Preset);

#[pymethods]
impl PyPreset {
    /// The name, as `backend=` takes it.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The device on which memory is allocated.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device())
    }

    /// Alignment in elements of the aligned index and of every row at that index; 1 means no alignment. Presets that align in bytes have
    /// 1: those of array frameworks, which align the start of the memory and keep rows compact, and "gt4py.next".
    #[getter]
    fn alignment(&self) -> u32 {
        match self.0.alignment() {
            Alignment::Elements(elements) => elements,
            // Of those that align something else.
            _ => 1,
        }
    }

    /// "C" or "F" (by index), or the ranks of I, J and K (by label; 0 is the largest stride), or "HorizontalFirst" of "gt4py.next".
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.0.layout() {
            LayoutRule::C => PyString::new(py, "C").into_any(),
            LayoutRule::F => PyString::new(py, "F").into_any(),
            LayoutRule::Grid(ranks) => PyTuple::new(py, ranks)?.into_any(),
            other => PyString::new(py, &format!("{other:?}")).into_any(),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let layout = self.layout(py)?.repr()?;
        Ok(format!(
            "Preset('{}', alignment={}, layout={layout}, device='{}')",
            self.0.name(),
            self.alignment(),
            self.0.device()
        ))
    }
}

/// The preset that `backend` names.
pub(crate) fn parse_preset(name: &Bound<'_, PyAny>) -> PyResult<Preset> {
    let text = args::string("backend", name)?.to_cow()?;
    Preset::find(&text).map_err(|_| ErrorKind::Layout.error(unknown(name.py(), &text)))
}

/// The message for a name that no preset has.
#[cold]
fn unknown(py: Python<'_>, name: &str) -> String {
    let known = Preset::all();
    let hint = did_you_mean(py, name, known.iter().map(Preset::name));
    let error = Preset::find(name).map_or_else(|error| error.to_string(), |_| String::new());
    format!("{error}; register_preset adds one{hint}")
}

/// What `presets` returns: a dictionary whose `KeyError` has the names, and the nearest one.
#[pyclass(name = "_Presets", module = "dlfield", extends = PyDict)]
pub(crate) struct PyPresets;

#[pymethods]
impl PyPresets {
    /// Copies and pickles are ordinary dictionaries.
    fn __reduce__<'py>(slf: &Bound<'py, PyPresets>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyDict>,))> {
        Ok((slf.py().get_type::<PyDict>(), (slf.as_super().copy()?,)))
    }

    fn __missing__(&self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(text) = name.cast::<PyString>() else { return Err(PyKeyError::new_err(name.clone().unbind())) };
        let message = unknown(name.py(), &text.to_string_lossy());
        Err(new_error::<PyKeyError>(message.trim_start_matches("backend: ")))
    }
}

/// Warns that a preset cannot map the labels to dimensions of the grid.
#[cold]
pub(crate) fn warn_of_labels(backend: &Bound<'_, PyAny>, dims: &str) -> PyResult<()> {
    let name = args::shown(backend);
    errors::warn(
        backend.py(),
        &format!(
            "backend: {name} orders strides by the dimensions I, J and K, and dims ({dims}) have none of them, so the strides \
             are in C order; label the grid's dimensions 'I', 'J' and 'K', or pass layout="
        ),
    )
}
