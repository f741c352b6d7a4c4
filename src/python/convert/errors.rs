//! The mapping of this crate's errors to Python exceptions.

use std::fmt::Display;

use pyo3::exceptions::{
    PyBufferError, PyException, PyIndexError, PyLookupError, PyMemoryError, PyModuleNotFoundError, PyRuntimeError,
    PyTypeError, PyUserWarning, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::{
    DTypeErrorKind, DeviceErrorKind, Error, ErrorOf, ExchangeError, LayoutErrorKind, SignatureErrorKind,
};
use crate::python::ffi::new_error::{new_error, new_error_of};
use crate::python::interrupt;
use crate::python::package;

/// The subclasses of `dlfield.Error`; each is also a subclass of the builtin exception that a user would catch.
#[derive(Clone, Copy)]
pub enum ErrorKind {
    Layout,
    DType,
    Dims,
    Device,
    Exchange,
    NoSuchBuffer,
    NotAnArray,
    Overlap,
}

impl ErrorKind {
    /// Every kind, in the order of the enumeration.
    const ALL: [ErrorKind; 8] = [
        ErrorKind::Layout,
        ErrorKind::DType,
        ErrorKind::Dims,
        ErrorKind::Device,
        ErrorKind::Exchange,
        ErrorKind::NoSuchBuffer,
        ErrorKind::NotAnArray,
        ErrorKind::Overlap,
    ];

    /// Name, docstring and builtin bases.
    fn definition(self, py: Python<'_>) -> (&'static str, &'static str, Vec<Bound<'_, PyType>>) {
        let (value, ty) = (py.get_type::<PyValueError>(), py.get_type::<PyTypeError>());
        match self {
            ErrorKind::Layout => {
                ("LayoutError", "An invalid shape, layout, padding, alignment or preset.", vec![value])
            }
            ErrorKind::DType => ("DTypeError", "An element type that cannot be shared, or does not fit.", vec![ty]),
            ErrorKind::Dims => ("DimsError", "Labels that are invalid, or contradict each other.", vec![value]),
            ErrorKind::Device => {
                let runtime = py.get_type::<PyRuntimeError>();
                ("DeviceError", "A device that does not exist, or is not the expected one.", vec![runtime])
            }
            ErrorKind::Exchange => {
                let doc = "Memory or a request of another library that the protocol does not allow.";
                ("ExchangeError", doc, vec![py.get_type::<PyBufferError>(), value])
            }
            ErrorKind::NoSuchBuffer => {
                let lookup = py.get_type::<PyLookupError>();
                ("NoSuchBufferError", "A host or device buffer that the object does not have.", vec![lookup, ty])
            }
            ErrorKind::NotAnArray => ("NotAnArrayError", "An object without an array protocol.", vec![ty]),
            ErrorKind::Overlap => (
                "OverlapError",
                "A field that is written and shares memory with another one, or with itself.",
                vec![value],
            ),
        }
    }
}

static WARNING: PyOnceLock<Py<PyType>> = PyOnceLock::new();

static TYPES: PyOnceLock<(Py<PyType>, Vec<Py<PyType>>)> = PyOnceLock::new();

/// The exception classes of the module. Another extension that this crate is built into imports those of the module, so
/// that their names catch its errors; it makes classes of its own if the module, or NumPy, which the module needs, is not
/// installed.
fn types(py: Python<'_>) -> PyResult<&(Py<PyType>, Vec<Py<PyType>>)> {
    TYPES.get_or_try_init(py, || match imported(py) {
        Err(error) if is_absence(py, &error)? => made(py),
        other => other,
    })
}

/// The classes of all kinds; `None` if their import fails.
fn known(py: Python<'_>) -> Option<&Vec<Py<PyType>>> {
    types(py).inspect_err(|error| interrupt::put_off(py, error)).ok().map(|(_, all)| all)
}

/// Whether importing the module failed because it or NumPy is not installed, and not because of an error inside it.
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
    let all = ErrorKind::ALL.iter().map(|kind| class(kind.definition(py).0)).collect::<PyResult<_>>()?;
    Ok((class("Error")?, all))
}

fn made(py: Python<'_>) -> PyResult<(Py<PyType>, Vec<Py<PyType>>)> {
    let exception = py.get_type::<PyException>();
    let root = subclass("Error", "The base class of all errors of dlfield.", vec![exception])?;
    let mut all = Vec::with_capacity(ErrorKind::ALL.len());
    for kind in ErrorKind::ALL {
        let (name, doc, builtin) = kind.definition(py);
        all.push(subclass(name, doc, std::iter::once(root.bind(py).clone()).chain(builtin).collect())?);
    }
    Ok((root, all))
}

/// Makes an exception type by calling `type`, which allows several builtin bases.
fn subclass(name: &str, doc: &str, bases: Vec<Bound<'_, PyType>>) -> PyResult<Py<PyType>> {
    let py = bases[0].py();
    let body = PyDict::new(py);
    body.set_item("__module__", "dlfield")?;
    body.set_item("__doc__", doc)?;
    let made = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, body))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

impl ErrorKind {
    /// Makes an exception of this kind. If the module is installed but its import fails, returns that failure with a note
    /// that has the message.
    pub fn error(self, message: impl Display) -> PyErr {
        let message = message.to_string();
        Python::attach(|py| match types(py) {
            Ok((_, all)) => new_error_of(all[self as usize].bind(py), message),
            Err(error) => noted(py, &format!("while raising dlfield.{}: {message}", self.definition(py).0), error),
        })
    }

    /// Whether an exception is of any of these kinds.
    pub fn is_any(py: Python<'_>, error: &PyErr) -> bool {
        known(py).is_some_and(|all| all.iter().any(|kind| error.get_type(py).is(kind)))
    }

    /// The error of an import, which calls the object `obj`, with the name of the caller's argument in its place: none if that is
    /// empty.
    #[cold]
    pub fn of_argument(py: Python<'_>, argument: &str, error: PyErr) -> PyErr {
        ErrorKind::of_part(py, argument, argument, error)
    }

    /// As [`ErrorKind::of_argument`], for an object that the fix of the message calls `part`: one in a list that is the argument.
    #[cold]
    pub fn of_part(py: Python<'_>, argument: &str, part: &str, error: PyErr) -> PyErr {
        let text = if ErrorKind::is_any(py, &error) { error.value(py).to_string() } else { String::new() };
        let Some(rest) = text.strip_prefix("obj: ") else { return error };
        let message = match argument {
            "" => rest.to_owned(),
            _ => format!("{argument}: {}", rest.replace("obj.", &format!("{part}."))),
        };
        reworded(py, &error, message)
    }

    /// Whether an exception is of this kind.
    pub fn is(self, py: Python<'_>, error: &PyErr) -> bool {
        known(py).is_some_and(|all| error.is_instance(py, all[self as usize].bind(py)))
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Signature(error) => match error.kind() {
                SignatureErrorKind::Fields => new_error::<PyTypeError>(error),
                SignatureErrorKind::Overlap => ErrorKind::Overlap.error(error),
                SignatureErrorKind::Sizes => ErrorKind::Layout.error(error),
            },
            Error::Layout(error) if error.kind() == LayoutErrorKind::Overlap => ErrorKind::Overlap.error(error),
            Error::Layout(error) => ErrorKind::Layout.error(error),
            Error::DType(error) if error.kind() == DTypeErrorKind::ByteOrder => {
                let error = error.with_fix(&"convert it with .astype(dtype.newbyteorder('='))");
                ErrorKind::DType.error(error)
            }
            Error::DType(error) => ErrorKind::DType.error(error),
            Error::Dims(error) => ErrorKind::Dims.error(error),
            Error::Device(error) if error.kind() == DeviceErrorKind::Capturing && error.argument() == "device" => {
                ErrorKind::Device.error(error.with_fix(&"initialize it before with dlfield.cuda.init"))
            }
            Error::Device(error) => ErrorKind::Device.error(error),
            Error::Exchange(error) => ErrorKind::Exchange.error(error),
            Error::Index(error) => new_error::<PyIndexError>(error),
            Error::Memory(error) => new_error::<PyMemoryError>(error),
            Error::Interrupted => interrupt::raised(),
        }
    }
}

impl<Kind> From<ErrorOf<Kind>> for PyErr
where
    Error: From<ErrorOf<Kind>>,
{
    fn from(error: ErrorOf<Kind>) -> PyErr {
        Error::from(error).into()
    }
}

/// The exception that a failed C function of another library has set, or else one that names the function.
#[cold]
pub fn exception_set_by(function: &'static str, object: &Bound<'_, PyAny>) -> PyErr {
    PyErr::take(object.py()).unwrap_or_else(|| no_exception_set(function, object.get_type()))
}

/// The error for a C function that failed without setting an exception.
pub fn no_exception_set(function: &'static str, producer: impl ToString) -> PyErr {
    let sentence = format_args!("it failed for {} and set no exception", producer.to_string());
    let fix = "report that to its library, and pass the array by another protocol";
    ExchangeError::from_sentence(function, &sentence).with_fix(&fix).into()
}

/// Returns an error of the same type with another message, and the cause and the traceback of the first.
pub fn reworded(py: Python<'_>, error: &PyErr, message: String) -> PyErr {
    let reworded = new_error_of(&error.get_type(py), message);
    reworded.set_cause(py, error.cause(py));
    reworded.set_traceback(py, error.traceback(py));
    reworded
}

/// Adds a note to an error.
pub fn noted(py: Python<'_>, note: &str, error: PyErr) -> PyErr {
    // The error itself matters more than a failure to add the note.
    if let Err(failed) = error.value(py).call_method1(intern!(py, "add_note"), (note,)) {
        interrupt::put_off(py, &failed);
    }
    error
}

/// Adds the name of a stencil's field to an error: to the message of this crate's errors, as a note to any other.
pub fn about(py: Python<'_>, field: &str, error: PyErr) -> PyErr {
    if ErrorKind::is_any(py, &error) {
        return reworded(py, &error, format!("field {field:?}: {}", error.value(py)));
    }
    noted(py, &format!("field {field:?}"), error)
}

fn warning(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || {
        let doc = "A field in a slow layout, for a stencil or by a preset that does not have its labels; or a field that is copied.";
        subclass("LayoutWarning", doc, vec![py.get_type::<PyUserWarning>()])
    };
    Ok(WARNING.get_or_try_init(py, make)?.bind(py))
}

/// Issues a `LayoutWarning` at the user's line that called dlfield, outside the package's own Python files.
#[cold]
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    package::functions(py)?.call_method1(intern!(py, "warn"), (message,)).map(drop)
}

/// Adds the exceptions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (root, all) = TYPES.get_or_try_init(py, || made(py))?;
    for ty in std::iter::once(root).chain(all) {
        module.add(ty.bind(py).name()?, ty)?;
    }
    module.add("LayoutWarning", warning(py)?)
}
