//! The C API of `dlfield.Tensor`, by which extensions that the library is built into describe and make tensors.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::device::Device;
use crate::python::convert::args;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::dlpack_c_exchange::guarded;
use crate::python::sync;
use crate::python::tensor_api::{
    CAPSULE_NAME, ELSEWHERE, Field, FieldMetadata, Labels, NewTensor, SharedTensor, TensorApi, VERSION, WAITED,
    release, retain,
};
use crate::tensor::Tensor;

static API: TensorApi = TensorApi { version: VERSION, describe, synchronize, metadata, create, share, retain, release };

/// Adds the capsule with the table to the class.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the table is static, and so is the name.
    let capsule = unsafe {
        let pointer = (&raw const API).cast_mut().cast();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, CAPSULE_NAME.as_ptr(), None))?
    };
    py.get_type::<PyTensor>().setattr("_c_api", capsule)
}

/// Calls `body` with the tensor of an object. Returns -1 with a `TypeError` for an object of another class: Python code
/// can replace `dlfield._native.Tensor` by one that has this table too.
///
/// # Safety
/// - A live object, and this thread is attached.
unsafe fn with(object: *mut c_void, body: impl FnOnce(&Tensor) -> c_int) -> c_int {
    // SAFETY: by this function's contract.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(Python::assume_attached(), object.cast()) };
    match object.cast_exact::<PyTensor>() {
        Ok(tensor) => body(&tensor.get().0),
        Err(_) => guarded(|_| {
            let found = args::shown(object.get_type().as_any());
            Err(new_error::<PyTypeError>(format!(
                "dlfield.Tensor._c_api: got an object of {found}; allowed is a dlfield.Tensor"
            )))
        }),
    }
}

unsafe extern "C" fn describe(object: *mut c_void, out: *mut Field) -> c_int {
    // SAFETY: the table's contract: a live object, and room for the result.
    unsafe {
        with(object, |tensor| {
            let descriptor = tensor.descriptor();
            if descriptor.device() != Device::CPU {
                return ELSEWHERE;
            }
            let waits = sync::may_have_device_work(tensor);
            let code = if waits { guarded(|py| Ok(sync::synchronize_host(py, tensor)?)) } else { 0 };
            if code != 0 {
                return code;
            }
            out.write(Field::of(descriptor));
            if waits { WAITED } else { 0 }
        })
    }
}

unsafe extern "C" fn synchronize(object: *mut c_void) -> c_int {
    // SAFETY: the table's contract: a live object.
    unsafe { with(object, |tensor| guarded(|py| Ok(sync::wait_for_device(py, tensor)?))) }
}

unsafe extern "C" fn metadata(object: *mut c_void, labels: *mut Labels, out: *mut FieldMetadata) -> c_int {
    // SAFETY: the table's contract: a live object, and room for the result and the labels.
    unsafe {
        with(object, |tensor| {
            out.write(FieldMetadata::of(tensor.descriptor(), &mut *labels.cast()));
            0
        })
    }
}

unsafe extern "C" fn create(made: *const NewTensor, out: *mut *mut c_void) -> c_int {
    // Attaching again, as `guarded` does, would take as long as the rest, so only errors do.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the table's contract: a new tensor's parts, whose owner is ours from now on, and an attached thread.
        unsafe {
            let (made, py) = (&*made, Python::assume_attached());
            let owner = made.take_owner();
            freelist::create(py, |tensor: &mut PyTensor| Ok(made.fill(py, &mut tensor.0, owner)?)).map(Bound::into_ptr)
        }
    }));
    match outcome {
        Ok(Ok(object)) => {
            // SAFETY: the table's contract: room for the result.
            unsafe { *out = object.cast() };
            0
        }
        outcome => {
            // SAFETY: the table's contract: room for the result.
            unsafe { *out = null_mut() };
            guarded(|_| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(drop))
        }
    }
}

unsafe extern "C" fn share(object: *mut c_void, out: *mut SharedTensor) -> c_int {
    // SAFETY: the table's contract: a live object, and room for the result.
    unsafe {
        with(object, |tensor| {
            guarded(|py| {
                if tensor.descriptor().device() == Device::CPU {
                    sync::synchronize_host(py, tensor)?;
                }
                out.write(SharedTensor::of(py, tensor)?);
                Ok(())
            })
        })
    }
}
