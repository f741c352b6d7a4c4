//! `dlfield.preflight` and `dlfield.Preflight`.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::descriptor::Descriptor;
use crate::preflight::{Preflight, Support, Target, Verdict, preflight};
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::values;
use crate::python::{import, interrupt, package};

/// Keywords that others use, and what to write here.
const HINTS: [(&str, &str); 1] = [("copy", "it never copies; the verdict says whether a copy would be needed")];

/// The result of `preflight`: whether memory can be shared, why not, and what to do about it.
///
/// True if nothing is copied; its str begins with the verdict.
///
/// >>> import dlfield as dl
/// >>> bool(dl.preflight(dl.zeros((3, 4)), "torch"))
/// True
/// >>> print(dl.preflight(dl.zeros((3, 4))[::-1], "torch"))
/// copy: PyTorch has no negative strides, found (-32, 8) bytes; pass copy=None for a copy
#[pyclass(name = "Preflight", module = "dlfield", frozen)]
pub(crate) struct PyPreflight(Preflight);

#[pymethods]
impl PyPreflight {
    /// "zero-copy", "copy" or "impossible".
    #[getter]
    fn verdict(&self) -> &'static str {
        self.0.verdict.name()
    }

    /// Why it would copy or fail; empty if there is no obstacle.
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What to do about it; empty if there is nothing to do.
    #[getter]
    fn fix(&self) -> &str {
        &self.0.fix
    }

    fn __bool__(&self) -> bool {
        self.0.is_zero_copy()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("Preflight(verdict='{}'", self.0.verdict);
        for (name, part) in [("reason", &self.0.reason), ("fix", &self.0.fix)] {
            if !part.is_empty() {
                text += &format!(", {name}={}", PyString::new(py, part).repr()?);
            }
        }
        Ok(text + ")")
    }
}

/// Checks whether a framework can use the memory of an array without a copy; reads no elements.
///
/// Parameters
/// ----------
/// obj : array
///     Any array that `describe` takes. A raw DLPack capsule can be consumed only once: describe it, and pass that.
/// target : {"numpy", "torch", "jax", "cupy"}
///     "numpy", "torch", "jax" or "cupy".
/// write : bool, optional
///     Whether the framework's array must be writable.
///
/// Returns
/// -------
/// Preflight
///     "zero-copy": `as_numpy`, `as_torch`, `as_jax` or `as_cupy` share the memory. "copy": they copy, or raise with
///     `copy=False`. "impossible": they raise. True if and only if zero-copy.
///
/// Raises
/// ------
/// NotAnArrayError
///     `obj` has no array protocol. Exceptions of its protocol pass through.
/// ValueError
///     `target` has another value.
/// ImportError
///     PyTorch or JAX, whose dtypes are tried, is not installed. Without CuPy, only the layout counts.
///
/// Example
/// -------
/// >>> import dlfield as dl
/// >>> dl.preflight(dl.zeros((3, 4), "float32", backend="jax"), "jax")
/// Preflight(verdict='zero-copy')
/// >>> padded = dl.zeros((3, 4), "float32", alignment_size=64)
/// >>> found = dl.preflight(padded, "jax")
/// >>> found.verdict, found.reason
/// ('copy', 'JAX takes compact strides only, found (64, 4) bytes for shape (3, 4)')
/// >>> dl.preflight(padded, "jax", write=True).fix
/// 'write through NumPy or PyTorch: as_numpy, as_torch'
#[pyfunction]
#[pyo3(
    name = "preflight",
    signature = (obj, target, *, write=None, **others),
    text_signature = "(obj, target, *, write=False)"
)]
fn of_object(
    obj: &Bound<'_, PyAny>,
    target: &Bound<'_, PyAny>,
    write: Option<&Bound<'_, PyAny>>,
    others: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyPreflight> {
    let py = obj.py();
    args::no_keywords("preflight", others, &HINTS, &["obj", "target", "write"])?;
    let write = write.map_or(Ok(false), |write| args::flag("write", write))?;
    let wanted = Target::ALL[args::choice("target", target, &Target::ALL.map(Target::name))?];
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        return Ok(PyPreflight(judge(py, tensor.get().0.descriptor(), wanted, write)?));
    }
    if let Some(readonly) = own_array_readonly(obj, wanted)? {
        return Ok(PyPreflight(Preflight::own(wanted, readonly, write)));
    }
    if let Err(error) = values::refuse_grad(obj) {
        return match ErrorKind::Exchange.is(py, &error) {
            true => Ok(PyPreflight(Preflight::refused(&error.value(py).to_string()))),
            false => Err(error),
        };
    }
    // CuPy gets the device buffer of a host/device pair.
    let on_device = wanted == Target::CuPy && import::kind_of(obj)? == import::Kind::Pair;
    let near = if on_device { Some(parse_device(&obj.getattr(intern!(py, "device"))?)?) } else { None };
    let found = match values::description(obj, near) {
        Ok((descriptor, _owner)) => judge(py, &descriptor, wanted, write)?,
        Err(error) if ErrorKind::DType.is(py, &error) => Preflight::refused(&error.value(py).to_string()),
        // `__array__` raises ValueError for memory that it cannot share.
        Err(error) if error.is_instance_of::<PyValueError>(py) => {
            match interrupt::answer(py, import::own(obj, None))? {
                // The producer exports a copy, whose description differs from that of the object.
                Some(Some(copy)) => match judge(py, copy.descriptor(), wanted, write)? {
                    found if found.verdict == Verdict::Impossible => found,
                    _ => Preflight::exported_copy(write),
                },
                _ if ErrorKind::Exchange.is(py, &error) => Preflight::refused(&error.value(py).to_string()),
                _ => return Err(error),
            }
        }
        Err(error) => return Err(error),
    };
    Ok(PyPreflight(found))
}

fn judge(py: Python<'_>, field: &Descriptor, target: Target, write: bool) -> PyResult<Preflight> {
    let device = field.device();
    if device.is_cuda() && matches!(target, Target::Torch | Target::Jax) && !has_device(py, target, device.id())? {
        let fix = "copy it to the host: from_dlpack(obj, device='cpu')";
        let name = if target == Target::Torch { "PyTorch" } else { "JAX" };
        return Ok(Preflight::refused(&format!(
            "the memory is on {device}, and the installed {name} finds no such device; {fix}"
        )));
    }
    let support = match target {
        Target::NumPy => Support::Shares,
        _ => dtype_support(py, target, field.dtype().name())?,
    };
    Ok(preflight(field, target, write, support))
}

/// Tries whether the installed framework shares elements of this type, copies them, or does not have the type.
fn dtype_support(py: Python<'_>, target: Target, dtype: &str) -> PyResult<Support> {
    let functions = package::functions(py)?;
    let answer: Option<bool> = functions.call_method1(intern!(py, "shares"), (target.name(), dtype))?.extract()?;
    Ok(match answer {
        Some(true) => Support::Shares,
        Some(false) => Support::Copies,
        None => Support::Lacks,
    })
}

/// Asks the installed framework whether it has this CUDA device.
fn has_device(py: Python<'_>, target: Target, device: i32) -> PyResult<bool> {
    package::functions(py)?.call_method1(intern!(py, "reaches"), (target.name(), device))?.extract()
}

/// Whether an array of the framework's own type is read-only; `None` for any other object.
fn own_array_readonly(object: &Bound<'_, PyAny>, target: Target) -> PyResult<Option<bool>> {
    let py = object.py();
    // An array exists only after its framework was imported; a framework that is still being imported has no class yet.
    let Some(module) = getattr::loaded(py, target.name())? else { return Ok(None) };
    let Some(class) = module.getattr_opt(target.class())? else { return Ok(None) };
    Ok(match target {
        // A subclass may be more than its memory, such as a masked array.
        Target::NumPy if object.get_type().is(&class) => {
            let writeable = object.getattr(intern!(py, "flags"))?.getattr(intern!(py, "writeable"))?;
            Some(!writeable.is_truthy()?)
        }
        Target::NumPy => None,
        _ => object.is_instance(&class)?.then_some(false),
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPreflight>()?;
    module.add_function(wrap_pyfunction!(of_object, module)?)
}
