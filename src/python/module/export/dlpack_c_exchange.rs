//! DLPack's C exchange API: a table of functions on our type.
//!
//! Source: the DLPack 1.3 header, `DLPackExchangeAPI`.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null_mut, without_provenance_mut};

use dlpark::Managed;
use dlpark::ffi::{DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cuda::{self, current_stream};
use crate::descriptor::{Descriptor, read_only};
use crate::device::{Device, unsupported};
use crate::error::{Error, ExchangeError, Result};
use crate::layout::Spec;
use crate::protocol::dlpack;
use crate::protocol::dlpack::{checked_ndim, null_pointer, null_shape};
use crate::python::ffi::new_error::{self, new_error};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::{py_owner, sync};
use crate::tensor::{Tensor, consume_managed};

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// The table, which never changes.
struct Table(DLPackExchangeAPI);

// SAFETY: the one pointer in it is null, and nothing writes to it.
unsafe impl Sync for Table {}

static TABLE: Table = Table(DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader { version: dlpack::VERSION, prev_api: null_mut() },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    dltensor_from_py_object_no_sync: Some(borrow),
    current_work_stream: Some(current_work_stream),
});

/// Adds the capsule with the table to the type.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the table is static, and so is the name.
    let capsule = unsafe {
        let pointer = (&raw const TABLE.0).cast_mut().cast();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, c"dlpack_exchange_api".as_ptr(), None))?
    };
    py.get_type::<PyTensor>().setattr("__dlpack_c_exchange_api__", capsule)
}

/// Runs the body of a table function. Returns 0, or -1 with a Python exception set. No panic unwinds into C.
pub(super) fn guarded(body: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        Python::attach(|py| match body(py) {
            Ok(()) => 0,
            Err(error) => {
                error.restore(py);
                -1
            }
        })
    }));
    outcome.unwrap_or_else(|panic| {
        // Attaching may be what panicked, so this only tries it.
        Python::try_attach(|py| new_error::of_panic(&*panic).restore(py));
        -1
    })
}

fn null(field: &'static str) -> PyErr {
    null_pointer(field).into()
}

/// # Safety
/// - `object` is NULL or a live Python object.
unsafe fn tensor_of<'py>(py: Python<'py>, object: *mut c_void) -> PyResult<Bound<'py, PyTensor>> {
    if object.is_null() {
        return Err(null("py_object"));
    }
    // SAFETY: not NULL, so a live object by this function's contract.
    let object = unsafe { Bound::from_borrowed_ptr(py, object.cast()) };
    object.cast_into().map_err(|error| new_error::<PyTypeError>(format!("py_object: {error}")))
}

/// Returns the tensor. If its device is the host, waits for device work, as the memory may be pinned or managed. On CUDA
/// devices the caller waits for the current stream, which [`current_work_stream`] returns, and which waits for all others here.
///
/// # Safety
/// - As for [`tensor_of`].
unsafe fn awaited<'py>(py: Python<'py>, object: *mut c_void) -> PyResult<Bound<'py, PyTensor>> {
    // SAFETY: passed on from the caller.
    let tensor = unsafe { tensor_of(py, object) }?;
    if tensor.get().0.descriptor().device() == Device::CPU {
        sync::synchronize_host(py, &tensor.get().0)?;
    } else {
        sync::order_current_stream(py, &tensor.get().0)?;
    }
    Ok(tensor)
}

/// Rejects read-only memory: a borrowed struct has no flag for it, and users of the table ignore the flag of a managed
/// tensor, among them `tvm_ffi`, whose functions then write to it. After a `BufferError` they can call `__dlpack__`.
fn check_writable(tensor: &Tensor) -> Result<(), ExchangeError> {
    if !tensor.descriptor().is_readonly() {
        return Ok(());
    }
    let fix = "consumers of this table may write to it: pass obj.copy(), or, to a library that supports the read-only \
               flag, such as dlpark, the capsule obj.__dlpack__(max_version=(1, 0))";
    Err(read_only("__dlpack_c_exchange_api__", fix))
}

unsafe extern "C" fn from_object(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    guarded(|py| {
        if out.is_null() {
            return Err(null("out"));
        }
        // SAFETY: the DLPack header requires a writable `out` and an object of our type; the type is checked.
        unsafe {
            *out = null_mut();
            let tensor = awaited(py, object)?;
            check_writable(&tensor.get().0)?;
            *out = tensor.get().0.to_versioned(false)?.into_raw();
        }
        Ok(())
    })
}

/// Describes a tensor that is writable and in memory of the host alone. That needs no interpreter, and attaching to it, as
/// [`guarded`] does, would take twice as long. `None` for any other tensor.
///
/// # Safety
/// - `object` is NULL or a live Python object, and this thread is attached, as a thread that has an object is.
unsafe fn described_at_once(object: *mut c_void) -> Option<DLTensor> {
    if object.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(Python::assume_attached(), object.cast()) };
    let tensor = &object.cast_exact::<PyTensor>().ok()?.get().0;
    if sync::may_have_device_work(tensor) { None } else { tensor.as_dlpack().ok() }
}

unsafe extern "C" fn borrow(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: the caller's own argument.
    let at_once = catch_unwind(|| unsafe { described_at_once(object) });
    if let (Ok(Some(described)), false) = (at_once, out.is_null()) {
        // SAFETY: the caller's out pointer, which is not NULL. Shape and strides are in the object, which does not move or change
        // while it lives.
        unsafe { *out = described };
        return 0;
    }
    guarded(|py| {
        if out.is_null() {
            return Err(null("out"));
        }
        // SAFETY: the caller's out pointer, which is not NULL; the object is of our type.
        unsafe {
            let tensor = awaited(py, object)?;
            check_writable(&tensor.get().0)?;
            *out = tensor.get().0.as_dlpack()?;
        }
        Ok(())
    })
}

unsafe extern "C" fn to_object(managed: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    guarded(|py| {
        if !out.is_null() {
            // SAFETY: the caller's out pointer, which is not NULL.
            unsafe { *out = null_mut() };
        }
        // SAFETY: by the DLPack header this function consumes the struct, also on failure.
        let managed: Managed<_> = unsafe { crate::python::import::take(managed) }?;
        if out.is_null() {
            return Err(null("out_py_object"));
        }
        // SAFETY: `out` is not NULL; the header requires that the struct describes the memory correctly, and its numbers are checked.
        unsafe {
            let mut descriptor = Descriptor::BLANK;
            let owner = consume_managed(managed, &mut descriptor, py_owner::managed)?;
            let owner = sync::in_order_detached(py, owner, descriptor.device());
            *out = PyTensor::create(py, Tensor::from_parts(descriptor, owner))?.into_any().into_ptr().cast();
        }
        Ok(())
    })
}

unsafe extern "C" fn current_work_stream(kind: DLDeviceType, id: i32, out: *mut *mut c_void) -> c_int {
    guarded(|_| {
        if out.is_null() {
            return Err(null("out_current_stream"));
        }
        // SAFETY: the caller's out pointer, which is not NULL.
        unsafe { *out = null_mut() };
        let device = Device::from_dlpack(dlpark::ffi::DLDevice { device_type: kind, device_id: id })?;
        if device == Device::CPU {
            // The host has no streams.
            return Ok(());
        }
        if !device.is_of_cuda() {
            return Err(unsupported(device).into());
        }
        // The caller may launch work on the stream at once.
        cuda::init(device)?;
        let stream = current_stream(device).handle();
        // SAFETY: the caller's out pointer, which is not NULL.
        unsafe { *out = without_provenance_mut(usize::try_from(stream).unwrap_or(0)) };
        Ok(())
    })
}

unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if out.is_null() {
            return Err(null_pointer("out").into());
        }
        // SAFETY: the caller's out pointer, which is not NULL.
        unsafe { *out = null_mut() };
        // SAFETY: the header requires NULL or a live prototype.
        let prototype = unsafe { prototype.as_ref() }.ok_or_else(|| null_pointer("prototype"))?;
        let managed = allocated(prototype)?;
        // SAFETY: the caller's out pointer, which is not NULL.
        unsafe { *out = managed.into_raw() };
        Ok(())
    }));
    let error = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error_text(&error),
        Err(_) => (c"RuntimeError", "dlfield: internal error in the allocator".to_owned()),
    };
    if let Some(set_error) = set_error {
        let message = CString::new(error.1.replace('\0', "")).unwrap_or_default();
        // SAFETY: the caller's function, with the caller's context; both strings end in NUL and live for the call.
        unsafe { set_error(context, error.0.as_ptr(), message.as_ptr()) };
    }
    -1
}

/// Allocates a tensor with the prototype's shape, element type and device, in C order.
fn allocated(prototype: &DLTensor) -> Result<Managed<DLManagedTensorVersioned>> {
    let ndim = checked_ndim(prototype.ndim)?;
    if ndim > 0 && prototype.shape.is_null() {
        return Err(null_shape(ndim).into());
    }
    // SAFETY: the prototype's shape has `ndim` entries.
    let shape = if ndim == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(prototype.shape, ndim) } };
    let dtype = crate::DType::from_dlpack(prototype.dtype)?;
    let device = Device::from_dlpack(prototype.device)?;
    Tensor::empty(&Spec::new(shape, dtype).with_device(device))?.to_versioned(false)
}

/// The name of the Python exception, and its message.
fn error_text(error: &Error) -> (&'static std::ffi::CStr, String) {
    let kind = match error {
        Error::Memory(_) => c"MemoryError",
        Error::DType(_) => c"TypeError",
        Error::Device(_) => c"RuntimeError",
        Error::Exchange(_) => c"BufferError",
        Error::Index(_) => c"IndexError",
        _ => c"ValueError",
    };
    (kind, error.to_string())
}
