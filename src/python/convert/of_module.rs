//! Conversions that only the Python module needs.

use numpy::PyArrayDescr;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};

use crate::cuda::Stream;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Extents;
use crate::memory::cuda::current::with_owned_stream;
use crate::python::convert::args::{append_ints, check_stream, if_converted, int, iterator, shown};
use crate::python::convert::device::{DlpackPair, dlpack_device};
use crate::python::convert::dtype::wrapped;
use crate::python::convert::errors::{ErrorKind, TYPES, made, noted, reworded, subclass};
use crate::python::convert::stream::{handle, number, owner};
use crate::python::ffi::new_error::{new_error, new_error_of, unexpected_keyword};
use crate::python::ffi::{getattr, numpy_api};
use crate::python::package;

const ALLOWED: &str = "None, 1 (legacy default), 2 (per-thread default), the handle of a stream, or an object with \
                       __cuda_stream__";

/// NumPy's dtype object of each element type, made on first use.
static DESCRIPTORS: [PyOnceLock<Py<PyArrayDescr>>; DType::COUNT] = [const { PyOnceLock::new() }; DType::COUNT];

static WARNING: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Converts True or False.
pub fn flag(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let wrong = || new_error::<PyTypeError>(format!("{argument}: {}; allowed is True or False", shown(value)));
    value.extract().map_err(|_| wrong())
}

/// Converts a string.
pub fn string<'a, 'py>(argument: &str, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    value.cast().map_err(|_| new_error::<PyTypeError>(format!("{argument}: {} is not a string", shown(value))))
}

/// Rejects keywords that a function does not have: `hints` says what to write in place of those of other libraries.
pub fn no_keywords(
    function: &str,
    others: Option<&Bound<'_, PyDict>>,
    hints: &[(&str, &str)],
    known: &[&str],
) -> PyResult<()> {
    let Some((name, _)) = others.and_then(|others| others.iter().next()) else { return Ok(()) };
    let text = name.cast::<PyString>()?.to_string_lossy();
    Err(unexpected_keyword(name.py(), function, &text, hints, known))
}

/// Returns the position of a string among the allowed words.
pub fn choice(argument: &str, value: &Bound<'_, PyAny>, words: &[&str]) -> PyResult<usize> {
    let word = value.cast::<PyString>().ok().map(|word| word.to_string_lossy().into_owned());
    let found = word.and_then(|word| words.iter().position(|known| *known == word));
    found.ok_or_else(|| {
        let mut allowed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let last = allowed.pop().unwrap_or_default();
        new_error::<PyValueError>(format!("{argument}: {}; allowed is {} or {last}", shown(value), allowed.join(", ")))
    })
}

/// Converts the argument `copy`: True copies always, False never, None if needed. 1 and 0 are True and False, as in NumPy.
pub fn copy(value: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
    match (value.extract::<Option<bool>>(), value.extract::<u8>()) {
        (Ok(copy), _) => Ok(copy),
        (_, Ok(number @ (0 | 1))) => Ok(Some(number == 1)),
        _ => Err(new_error::<PyTypeError>(format!("copy: expected None, True or False, got {}", shown(value)))),
    }
}

/// Converts a shape: a sequence of integers, or one integer for one dimension.
pub fn shape(value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let mut found = Extents::new();
    append_shape(value, &mut found)?;
    Ok(found)
}

/// As [`shape`], in place.
pub fn append_shape(value: &Bound<'_, PyAny>, found: &mut Extents) -> PyResult<()> {
    if value.is_exact_instance_of::<PyInt>() {
        found.push(int("shape", value)?);
        return Ok(());
    }
    // Arrays have `__index__` too, so a sequence is not tried as an integer.
    if value.cast_exact::<PyTuple>().is_ok() || iterator(value)?.is_some() {
        return append_ints("shape", value, found);
    }
    found.push(int("shape", value)?);
    Ok(())
}

/// Converts a device object of PyTorch, JAX, CuPy, cuda.core or Numba; `None` for any other object. Imports none of them.
pub fn of_framework(value: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    let py = value.py();
    let text = |name: &Bound<'_, PyString>| -> PyResult<Option<String>> {
        Ok(getattr::getattr_opt(value, name)?.and_then(|text| text.extract().ok()))
    };
    let number = |name: &Bound<'_, PyString>| -> PyResult<Option<i64>> {
        Ok(match getattr::getattr_opt(value, name)? {
            Some(number) => if_converted(py, number.extract())?,
            None => None,
        })
    };
    // `torch.device`.
    if let Some(kind) = text(intern!(py, "type"))?
        && let Some(index) = getattr::getattr_opt(value, intern!(py, "index"))?
        && let Some(index) = if_converted(py, index.extract::<Option<i64>>())?
    {
        let number = match index {
            Some(number) => number,
            None if kind == "cuda" => current_of_torch(py)?,
            None => 0,
        };
        return device_named(&kind, number).map(Some);
    }
    // A `jax.Device`: its `id` counts the devices of all processes.
    if let Some(platform) = text(intern!(py, "platform"))?
        && let Some(id) = number(intern!(py, "id"))?
    {
        let local = number(intern!(py, "local_hardware_id"))?;
        let kind = if platform == "gpu" { "cuda" } else { &platform };
        return device_named(kind, local.unwrap_or(id)).map(Some);
    }
    // The rest name a number alone, which means other things elsewhere: the module tells whose it is.
    let module = getattr::module_of(&value.get_type()).unwrap_or_default();
    let id = match module.split('.').next() {
        // `cupy.cuda.Device`, and the devices in `numba.cuda.gpus`.
        Some("cupy" | "numba") => number(intern!(py, "id"))?,
        // `cuda.core.Device`.
        Some("cuda") => number(intern!(py, "device_id"))?,
        _ => None,
    };
    id.map(|id| device_named("cuda", id)).transpose()
}

/// The device of a kind and number; there is one host, whatever its number.
fn device_named(kind: &str, number: i64) -> PyResult<Device> {
    Ok(if kind == "cpu" { Device::CPU } else { format!("{kind}:{number}").parse()? })
}

/// The number that PyTorch's "cuda" stands for: that of its current device, 0 until PyTorch has used any.
fn current_of_torch(py: Python<'_>) -> PyResult<i64> {
    let Some(torch) = getattr::loaded(py, "torch")? else { return Ok(0) };
    let cuda = torch.getattr(intern!(py, "cuda"))?;
    if !cuda.call_method0(intern!(py, "is_initialized"))?.is_truthy()? {
        return Ok(0);
    }
    cuda.call_method0(intern!(py, "current_device"))?.extract()
}

/// Converts DLPack's pair of device type and id, as callers must write it; [`dlpack_device`] allows producers ids that mean
/// nothing.
pub fn exact_device(pair: (i64, i64)) -> PyResult<Device> {
    let device = dlpack_device(pair)?;
    if DlpackPair::of(device) == DlpackPair(pair.0, pair.1) {
        Ok(device)
    } else {
        Err(crate::DeviceError::UnknownCode { code: pair.0, id: pair.1 }.into())
    }
}

/// NumPy's dtype object of an element type; `ml_dtypes` supplies those that NumPy lacks.
pub fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<&Bound<'_, PyArrayDescr>> {
    let descriptor = DESCRIPTORS[dtype.index()].get_or_try_init(py, || {
        numpy_api::require(py)?;
        let added = dtype.is_sub_byte() || dtype.code().0 > 6 || dtype == DType::BF16;
        let source = if added {
            let package = py.import("ml_dtypes").map_err(|error| {
                let fix = format!("dtype: {dtype} needs the package ml_dtypes; install it with pip install ml_dtypes");
                wrapped(py, error, &fix)
            })?;
            package.getattr(dtype.name()).map_err(|error| {
                wrapped(py, error, &format!("dtype: the installed ml_dtypes has no {dtype}; install a newer one"))
            })?
        } else {
            PyString::new(py, dtype.name()).into_any()
        };
        PyArrayDescr::new(py, &source).map(Bound::unbind)
    })?;
    Ok(descriptor.bind(py))
}

/// Adds the argument's name to another library's error, which keeps its type.
pub fn named(py: Python<'_>, cause: PyErr, argument: &str) -> PyErr {
    let error = new_error_of(&cause.get_type(py), format!("{argument}: {}", cause.value(py)));
    error.set_cause(py, Some(cause));
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
        let doc =
            "A field in a slow layout, for a stencil or by a preset that lacks its labels; or a field that is copied.";
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

/// Converts an argument to a stream of a CUDA device.
pub fn stream_of<'call>(value: &'call Bound<'_, PyAny>, device: Device) -> PyResult<Stream<'call>> {
    handle(value, number(value)?, device, ALLOWED)
}

/// Runs `work` for a device in the given stream, or in the current one without it. The host has no streams.
pub fn in_stream<R>(
    value: Option<&Bound<'_, PyAny>>,
    device: Device,
    work: impl FnOnce() -> PyResult<R>,
) -> PyResult<R> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return work() };
    check_stream(Some(value), device)?;
    if !device.is_of_cuda() {
        return work();
    }
    let stream = stream_of(value, device)?;
    with_owned_stream(device, stream, owner(value)?, work)
}
