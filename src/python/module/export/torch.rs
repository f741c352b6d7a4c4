//! PyTorch tensors on our memory, made through PyTorch's own exchange table if that takes the element type.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering};

use dlpark::ffi::DLPackManagedTensorToPyObjectNoSync as Import;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::device::Device;
use crate::dtype::DType;
use crate::preflight::torch_shares;
use crate::python::convert::{args, errors};
use crate::python::ffi::fastcall::{self, Argument, Definition, Parameters, given, required};
use crate::python::import::not_owned;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::values;
use crate::python::{import, package, sync};
use crate::tensor::Tensor;

static AS_TORCH: Definition = Definition::new(
    c"as_torch",
    c"as_torch(obj, *, copy=None)
--

Return the `torch.Tensor` on the memory of `obj`.

PyTorch has no read-only tensors, so read-only memory is copied, or rejected with `copy=False`.

Parameters
----------
obj
    A `Tensor` or anything `from_dlpack` takes. A `torch.Tensor` is returned as it is (`copy=True`: cloned).
copy
    None copies only if PyTorch can't use the memory; True always; False never.

Returns
-------
torch.Tensor
    Same shape and dtype as `obj`; without a copy also the same strides.

Raises
------
ExchangeError
    `copy=False` and the memory is read-only or has negative strides; or PyTorch does not have the dtype.
NotAnArrayError, DTypeError, DeviceError
    As for `from_dlpack`.
ImportError
    PyTorch is not installed.

Example
-------
>>> import dlfield as dl
>>> field = dl.zeros((4, 3))
>>> dl.as_torch(field).data_ptr() == field.ptr
True
",
    as_torch,
);

static PARAMETERS: Parameters<2> = Parameters::new("as_torch", ["obj", "copy"], 1, 1).with_hints(&[
    ("device", "it shares memory where it is; pass field.to_device(...)"),
    ("dtype", "it shares elements as they are; pass field.astype(...)"),
]);

fastcall::c_function!(as_torch, PARAMETERS, shared);

/// `as_torch`, with the arguments in the order of its parameters.
#[inline(always)]
fn shared<'py>(module: &Bound<'py, PyAny>, arguments: &[Argument<'_, 'py>; 2]) -> PyResult<Bound<'py, PyAny>> {
    let py = module.py();
    let obj = required(arguments.first())?;
    let copy = given(&arguments[1]).map_or(Ok(None), args::copy)?;
    if let Ok(tensor) = obj.cast_exact::<PyTensor>() {
        return match share(py, &tensor.get().0, copy)? {
            Some(shared) => Ok(shared),
            None => copy_or_error(obj, copy),
        };
    }
    if import::kind_of(obj)? == import::Kind::Torch {
        return copy_or_error(obj, copy);
    }
    let tensor = if copy == Some(true) { values::readable(obj)? } else { values::tensor(obj, copy)? };
    let device = tensor.descriptor().device();
    if device != Device::CPU && !device.is_of_cuda() {
        return Err(not_owned(device).into());
    }
    let tensor = PyTensor::create(py, tensor)?;
    match share(py, &tensor.get().0, copy)? {
        Some(shared) => Ok(shared),
        None => copy_or_error(tensor.as_any(), copy),
    }
}

/// Makes the PyTorch tensor on the memory; `None` if that needs a copy, or PyTorch's table cannot make it.
fn share<'py>(py: Python<'py>, tensor: &Tensor, copy: Option<bool>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(import) = import(py)? else { return Ok(None) };
    let dtype = tensor.descriptor().dtype();
    if copy == Some(true) || !torch_shares(tensor.descriptor()) || !supports(py, dtype)? {
        return Ok(None);
    }
    sync::synchronize_host(py, tensor)?;
    let managed = tensor.to_versioned(false)?.into_raw();
    let mut made: *mut c_void = null_mut();
    // SAFETY: PyTorch's own function, which consumes the managed tensor.
    if unsafe { import(managed, &raw mut made) } != 0 {
        // By the DLPack header the function has released the managed tensor, but some versions have not. Releasing it here
        // might free it twice, so with such a version this one leaks, once: the element type is not tried again.
        remember(dtype, Answer::Refused);
        drop(PyErr::take(py));
        return Ok(None);
    }
    // SAFETY: on success a new reference.
    let made = unsafe { Bound::from_owned_ptr_or_opt(py, made.cast()) };
    Ok(Some(made.ok_or_else(|| errors::no_exception_set(FUNCTION, "PyTorch"))?))
}

const FUNCTION: &str = "torch.Tensor.__dlpack_c_exchange_api__.managed_tensor_to_py_object_no_sync";

/// Whether PyTorch's function takes an element type.
#[derive(Clone, Copy)]
enum Answer {
    Unknown,
    Taken,
    Refused,
}

/// The answer for each element type.
static ANSWERS: [AtomicU8; DType::COUNT] = [const { AtomicU8::new(Answer::Unknown as u8) }; DType::COUNT];

fn remember(dtype: DType, answer: Answer) {
    ANSWERS[dtype.index()].store(answer as u8, Ordering::Relaxed);
}

/// Whether PyTorch's function takes elements of this type. It is not called with others: after a failure it is unknown
/// whether it has released the managed tensor.
#[inline]
fn supports(py: Python<'_>, dtype: DType) -> PyResult<bool> {
    match ANSWERS[dtype.index()].load(Ordering::Relaxed) {
        known if known == Answer::Unknown as u8 => try_dtype(py, dtype),
        known => Ok(known == Answer::Taken as u8),
    }
}

/// Tries the installed PyTorch with a capsule, which stays the owner of a tensor that PyTorch rejects.
#[cold]
fn try_dtype(py: Python<'_>, dtype: DType) -> PyResult<bool> {
    let shares = package::functions(py)?.call_method1(intern!(py, "shares"), ("torch", dtype.name()))?;
    let taken = shares.extract::<Option<bool>>()? == Some(true);
    remember(dtype, if taken { Answer::Taken } else { Answer::Refused });
    Ok(taken)
}

/// PyTorch's own function that makes a tensor of a managed one; older versions do not have it.
fn import(py: Python<'_>) -> PyResult<Import> {
    static IMPORT: PyOnceLock<Import> = PyOnceLock::new();
    let found = IMPORT.get_or_try_init(py, || {
        let torch = package::functions(py)?.call_method1(intern!(py, "imported"), ("torch", "as_torch"))?;
        let table = import::exchange_table(torch.getattr(intern!(py, "Tensor"))?.cast()?)?;
        Ok::<_, PyErr>(table.and_then(|table| table.managed_tensor_to_py_object_no_sync))
    });
    found.copied()
}

/// Copies to PyTorch, or returns an error that says why not.
#[cold]
fn copy_or_error<'py>(obj: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    package::functions(py)?.call_method1(intern!(py, "copied_to_torch"), (obj, copy))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    AS_TORCH.add_to(module)
}
