//! The one place that names Python exceptions.

use pyo3::exceptions::{
    PyBufferError, PyException, PyIndexError, PyLookupError, PyMemoryError, PyModuleNotFoundError, PyRuntimeError,
    PyTypeError, PyUserWarning, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::Error;
use crate::protocol::ExchangeError;
use crate::signature::SignatureError;

/// `dlfield.Error` and the errors below it; each is the builtin exception too that a user would catch.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Layout,
    DType,
    Dims,
    Device,
    Exchange,
    NoSuchBuffer,
    NotAnArray,
}

impl Kind {
    /// Every kind, in the order of the enumeration.
    const ALL: [Kind; 7] =
        [Kind::Layout, Kind::DType, Kind::Dims, Kind::Device, Kind::Exchange, Kind::NoSuchBuffer, Kind::NotAnArray];

    /// Name, docstring and builtin bases.
    fn definition(self, py: Python<'_>) -> (&'static str, &'static str, Vec<Bound<'_, PyType>>) {
        let (value, ty) = (py.get_type::<PyValueError>(), py.get_type::<PyTypeError>());
        match self {
            Kind::Layout => {
                ("LayoutError", "A shape, layout, padding, alignment or preset that cannot be.", vec![value])
            }
            Kind::DType => ("DTypeError", "An element type that cannot be shared, or does not fit.", vec![ty]),
            Kind::Dims => ("DimsError", "Labels that are wrong, or contradict each other.", vec![value]),
            Kind::Device => {
                let runtime = py.get_type::<PyRuntimeError>();
                ("DeviceError", "A device that is not there, or not the one wanted.", vec![runtime])
            }
            Kind::Exchange => {
                let doc = "Something another library handed over, or asked for, that the protocol does not allow.";
                ("ExchangeError", doc, vec![py.get_type::<PyBufferError>(), value])
            }
            Kind::NoSuchBuffer => {
                let lookup = py.get_type::<PyLookupError>();
                ("NoSuchBufferError", "A buffer on a side where the object has none.", vec![lookup])
            }
            Kind::NotAnArray => ("NotAnArrayError", "An object that no protocol describes as an array.", vec![ty]),
        }
    }
}

static TYPES: PyOnceLock<(Py<PyType>, Vec<Py<PyType>>)> = PyOnceLock::new();

/// The module's classes. Another extension that this crate is built into has those of the module, so that what it raises
/// is caught by their names; classes of its own where the module, or NumPy that it needs, is not installed.
fn types(py: Python<'_>) -> PyResult<&(Py<PyType>, Vec<Py<PyType>>)> {
    TYPES.get_or_try_init(py, || match imported(py) {
        Err(error) if is_absence(py, &error)? => made(py),
        other => other,
    })
}

/// Whether an import of the module failed because something is not installed, and not because of anything wrong in it.
fn is_absence(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    if !error.is_instance_of::<PyModuleNotFoundError>(py) {
        return Ok(false);
    }
    let name = error.value(py).getattr(intern!(py, "name"))?;
    Ok(name.eq(intern!(py, "dlfield"))? || name.eq(intern!(py, "numpy"))?)
}

fn imported(py: Python<'_>) -> PyResult<(Py<PyType>, Vec<Py<PyType>>)> {
    let module = py.import(intern!(py, "dlfield"))?;
    let class = |name: &str| Ok::<_, PyErr>(module.getattr(name)?.cast_into::<PyType>()?.unbind());
    let all = Kind::ALL.iter().map(|kind| class(kind.definition(py).0)).collect::<PyResult<_>>()?;
    Ok((class("Error")?, all))
}

fn made(py: Python<'_>) -> PyResult<(Py<PyType>, Vec<Py<PyType>>)> {
    let exception = py.get_type::<PyException>();
    let root = subclass("Error", "The base of every error that dlfield raises on its own account.", vec![exception])?;
    let mut all = Vec::with_capacity(Kind::ALL.len());
    for kind in Kind::ALL {
        let (name, doc, builtin) = kind.definition(py);
        all.push(subclass(name, doc, std::iter::once(root.bind(py).clone()).chain(builtin).collect())?);
    }
    Ok((root, all))
}

/// A new exception type; unlike a `class` statement this may have several builtin bases from Rust.
fn subclass(name: &str, doc: &str, bases: Vec<Bound<'_, PyType>>) -> PyResult<Py<PyType>> {
    let py = bases[0].py();
    let body = PyDict::new(py);
    body.set_item("__module__", "dlfield")?;
    body.set_item("__doc__", doc)?;
    let made = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, body))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

impl Kind {
    /// An exception of this kind. Where the module is there and its import fails, that failure, with a note of what was to
    /// be raised.
    pub(super) fn error(self, message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| match types(py) {
            Ok((_, all)) => PyErr::from_type(all[self as usize].bind(py).clone(), message),
            Err(error) => noted(py, &format!("while raising dlfield.{}: {message}", self.definition(py).0), error),
        })
    }

    /// Whether an exception is of any of these kinds.
    pub(super) fn is_any(py: Python<'_>, error: &PyErr) -> bool {
        types(py).is_ok_and(|(_, all)| all.iter().any(|kind| error.get_type(py).is(kind)))
    }

    /// Whether an exception is of this kind.
    pub(super) fn is(self, py: Python<'_>, error: &PyErr) -> bool {
        types(py).is_ok_and(|(_, all)| error.is_instance(py, all[self as usize].bind(py)))
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let message = error.to_string();
        raised(error, message)
    }
}

/// The exception for an error, with a message that may say more.
fn raised(error: Error, message: String) -> PyErr {
    match error {
        Error::Signature(SignatureError::Field { source, .. }) => raised(*source, message),
        Error::Signature(SignatureError::Overlap { .. }) => Kind::Layout.error(message),
        Error::Signature(_) => PyTypeError::new_err(message),
        Error::Layout(_) | Error::Preset(_) => Kind::Layout.error(message),
        Error::DType(_) => Kind::DType.error(message),
        Error::Dims(_) => Kind::Dims.error(message),
        Error::Device(_) => Kind::Device.error(message),
        Error::Exchange(_) => Kind::Exchange.error(message),
        Error::Index(_) => PyIndexError::new_err(message),
        Error::Memory(_) => PyMemoryError::new_err(message),
    }
}

macro_rules! through_error {
    ($($part:ty),+) => {
        $(impl From<$part> for PyErr {
            fn from(error: $part) -> PyErr {
                Error::from(error).into()
            }
        })+
    };
}

through_error!(
    crate::LayoutError,
    crate::PresetError,
    crate::DTypeError,
    crate::DimsError,
    crate::DeviceError,
    crate::IndexError,
    ExchangeError
);

/// The exception that a C function of another library has set when it failed, or else one that names it.
#[cold]
pub(super) fn set_by(function: &'static str, object: &Bound<'_, PyAny>) -> PyErr {
    PyErr::take(object.py()).unwrap_or_else(|| silent(function, object.get_type()))
}

/// The error of a C function that has failed and set no exception.
pub(super) fn silent(function: &'static str, producer: impl ToString) -> PyErr {
    ExchangeError::Silent { function, producer: producer.to_string() }.into()
}

/// An error about one field of a stencil: one of ours says so in its message, any other in a note.
pub(super) fn about(py: Python<'_>, field: &str, error: PyErr) -> PyErr {
    if Kind::is_any(py, &error) {
        let named = PyErr::from_type(error.get_type(py), format!("field {field:?}: {}", error.value(py)));
        named.set_cause(py, error.cause(py));
        named.set_traceback(py, error.traceback(py));
        return named;
    }
    noted(py, &format!("field {field:?}"), error)
}

/// An error with a note.
pub(super) fn noted(py: Python<'_>, note: &str, error: PyErr) -> PyErr {
    // A note is lost only where there is no memory for it; what counts is the error itself.
    let _ = error.value(py).call_method1(intern!(py, "add_note"), (note,));
    error
}

static WARNING: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn warning(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || {
        let doc = "A field in a layout that is slow: for a stencil, or because a preset did not know its labels; or copied for it.";
        subclass("LayoutWarning", doc, vec![py.get_type::<PyUserWarning>()])
    };
    Ok(WARNING.get_or_try_init(py, make)?.bind(py))
}

/// Issues a `LayoutWarning` at the line that has called dlfield, from whichever of its Python files this is called.
#[cold]
pub(super) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import(intern!(py, "dlfield._warn"))?.call_method1(intern!(py, "warn"), (message,)).map(drop)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (root, all) = TYPES.get_or_try_init(py, || made(py))?;
    for ty in std::iter::once(root).chain(all) {
        module.add(ty.bind(py).name()?, ty)?;
    }
    module.add("LayoutWarning", warning(py)?)
}
