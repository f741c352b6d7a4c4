//! The C API of `dlfield.Tensor`, by which extensions that the library is built into share and make tensors.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::device::Device;
use crate::error::Result;
use crate::python::convert::args;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::dlpack_c_exchange::guarded;
use crate::python::sync;
use crate::python::tensor_api::{
    CAPSULE_NAME, FOR_HOST, FOR_STREAM, Labels, RawTensor, TensorApi, UNORDERED, VERSION, release,
};
use crate::tensor::{Owner, Tensor};

static API: TensorApi = TensorApi { version: VERSION, share, create, release };

/// Adds the capsule with the table to the class.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the table is static, and so is the name.
    let capsule = unsafe {
        let pointer = (&raw const API).cast_mut().cast();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, CAPSULE_NAME.as_ptr(), None))?
    };
    py.get_type::<PyTensor>().setattr("_c_api", capsule)
}

/// Attaching again, as `guarded` does, would take as long as the rest, so only what may wait or fail does.
unsafe extern "C" fn share(object: *mut c_void, order: c_int, labels: *mut Labels, out: *mut RawTensor) -> c_int {
    // SAFETY: the table's contract: a live object, and this thread is attached.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(Python::assume_attached(), object.cast()) };
    // Python code can replace `dlfield._native.Tensor` by a class that has this table too.
    let Ok(tensor) = object.cast_exact::<PyTensor>() else {
        let class = object.get_type();
        return guarded(|_| Err(args::wrong_type("dlfield.Tensor._c_api", "a dlfield.Tensor", class.as_any())));
    };
    let tensor = &tensor.get().0;
    let is_ordered = order == UNORDERED || !sync::may_have_device_work(tensor);
    let is_exported = is_ordered && sync::export(object.py(), tensor.owner()).is_ok();
    let code = if is_exported { 0 } else { guarded(|py| export(py, tensor, order)) };
    if code == 0 {
        // SAFETY: the table's contract: room for the labels and for the result.
        unsafe { out.write(RawTensor::of(tensor, tensor.owner().clone(), &mut *labels.cast())) };
    }
    code
}

/// Orders the work of devices on the memory, and waits for its readers.
fn export(py: Python<'_>, tensor: &Tensor, order: c_int) -> PyResult<()> {
    match order {
        FOR_HOST => sync::wait_for_device(py, tensor)?,
        FOR_STREAM if tensor.descriptor().device() == Device::CPU => sync::synchronize_host(py, tensor)?,
        // The extension makes this stream wait for its own ones before it releases its owner.
        FOR_STREAM => sync::order_current_stream(py, tensor)?,
        _ => {}
    }
    Ok(sync::export(py, tensor.owner())?)
}

unsafe extern "C" fn create(made: *const RawTensor, out: *mut *mut c_void) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the table's contract: a new tensor's parts, whose owner is ours from now on, and an attached thread.
        unsafe {
            let (made, py) = (&*made, Python::assume_attached());
            let owner = made.take_owner();
            freelist::create(py, |tensor: &mut PyTensor| Ok(fill(py, made, &mut tensor.0, owner)?)).map(Bound::into_ptr)
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

/// Fills in a blank tensor, with the owner that was taken over.
///
/// # Safety
/// - The parts are those of a tensor that lives during the call, whose memory the owner keeps.
unsafe fn fill(py: Python<'_>, made: &RawTensor, tensor: &mut Tensor, owner: Owner) -> Result<()> {
    // SAFETY: by this function's contract the lists are readable, and the owner keeps the memory that they describe.
    unsafe {
        let (descriptor, owner_of_tensor) = tensor.parts_mut();
        made.describe(descriptor)?;
        *owner_of_tensor = sync::in_order_detached(py, owner, descriptor.device());
        descriptor.relabel(made.metadata()?)?;
        let promise = made.promise()?;
        if promise.is_stated() {
            let kept = tensor.adopt_promise(promise);
            debug_assert!(kept, "memory that is not aligned as it is said to be");
        }
    }
    Ok(())
}
