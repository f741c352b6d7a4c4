//! The side of an extension: finds the table of the module `dlfield`, and calls its functions.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi::PyTypeObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::{CAPSULE_NAME, FOR_HOST, FOR_STREAM, RawTensor, TensorApi, UNORDERED, VERSION};
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::layout::{Metadata, Promise};
use crate::python::convert::errors;
use crate::python::ffi::getattr;
use crate::python::sync;
use crate::tensor::{Owner, Tensor};

/// The class of the module's tensors and its table, once they were found; never changed or freed. One pointer for both, as a
/// thread could otherwise see one without the other, or those of two classes.
static FOUND: AtomicPtr<Found> = AtomicPtr::new(null_mut());

struct Found {
    /// The class is final, and lives as long as the process.
    class: *mut PyTypeObject,
    api: Api,
}

/// The table of the module `dlfield` in this process.
#[derive(Clone, Copy)]
pub(crate) struct Api(&'static TensorApi);

/// Returns the table of an object's class, if that is a `dlfield.Tensor` and its table was found.
#[inline(always)]
pub(crate) fn of(object: &Bound<'_, PyAny>) -> Option<Api> {
    found(object.get_type_ptr())
}

#[inline(always)]
fn found(class: *mut PyTypeObject) -> Option<Api> {
    // SAFETY: NULL, or a pair that was leaked.
    let found = unsafe { FOUND.load(Ordering::Acquire).as_ref() }?;
    if found.class == class { Some(found.api) } else { None }
}

/// Looks up the table of the class `dlfield.Tensor`, for later calls too. `None` if it has none of this [`VERSION`].
#[cold]
pub(crate) fn find(class: &Bound<'_, PyType>) -> PyResult<Option<Api>> {
    if let Some(api) = found(class.as_type_ptr()) {
        return Ok(Some(api));
    }
    let Some(capsule) = getattr::getattr_opt(class, intern!(class.py(), "_c_api"))? else { return Ok(None) };
    let Ok(capsule) = capsule.cast_into::<PyCapsule>() else { return Ok(None) };
    if !capsule.is_valid_checked(Some(CAPSULE_NAME)) {
        return Ok(None);
    }
    let api = capsule.pointer_checked(Some(CAPSULE_NAME))?.cast::<TensorApi>().as_ptr();
    // SAFETY: capsules of this name have a static table, and every version of it begins with this field.
    if unsafe { (&raw const (*api).version).read() } != VERSION {
        return Ok(None);
    }
    // SAFETY: the version is ours, so the static table has this layout.
    let api = Api(unsafe { &*api });
    // The class stays alive, so that no other has its address. This happens once, unless Python code replaces the class.
    let class = class.clone().unbind().into_ptr().cast();
    FOUND.store(Box::into_raw(Box::new(Found { class, api })), Ordering::Release);
    Ok(Some(api))
}

impl Api {
    /// Describes a tensor for the length of a call, without metadata: the object keeps the memory. Returns whether that is the host's
    /// alone, so that no device may be working on it.
    #[inline(always)]
    pub(crate) fn describe(
        self,
        tensor: &Bound<'_, PyAny>,
        order: c_int,
        descriptor: &mut Descriptor,
    ) -> PyResult<bool> {
        self.call(tensor, order, |raw| {
            // SAFETY: the lists of the tensor live, and the owner is released once.
            unsafe {
                raw.release();
                raw.describe(descriptor)?;
            }
            Ok(raw.is_of_host_alone())
        })
    }

    /// Waits for device work on memory that the host can reach, in any stream.
    #[cold]
    pub(crate) fn synchronize(self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        self.call(tensor, FOR_HOST, |raw| {
            // SAFETY: the owner is released once.
            unsafe { raw.release() };
            Ok(())
        })
    }

    /// Returns the metadata of a tensor, the default ones included, as its Python attributes have them.
    pub(crate) fn metadata(self, tensor: &Bound<'_, PyAny>) -> PyResult<Metadata> {
        self.call(tensor, UNORDERED, |raw| {
            // SAFETY: the lists of the tensor live, and the owner is released once.
            let metadata = unsafe {
                raw.release();
                raw.metadata()?
            };
            Ok(metadata.with_defaults(raw.ndim()))
        })
    }

    /// Shares the memory of a tensor, on any device: fills the descriptor, without metadata. Returns an owner of the memory, and what
    /// its allocation promises.
    pub(crate) fn share(self, tensor: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<(Owner, Promise)> {
        self.call(tensor, FOR_STREAM, |raw| {
            // SAFETY: the lists of the tensor live. The owner is taken over once, also if the rest fails.
            unsafe {
                let owner = raw.take_owner();
                raw.describe(descriptor)?;
                Ok((owner, raw.promise()?))
            }
        })
    }

    /// Calls `read` with what the module says of a tensor, and an owner that `read` has to release.
    #[inline(always)]
    fn call<R>(
        self,
        tensor: &Bound<'_, PyAny>,
        order: c_int,
        read: impl FnOnce(&RawTensor) -> Result<R>,
    ) -> PyResult<R> {
        let (mut labels, mut raw) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the table is that of the object's class, and fills the struct on success. The object lives.
        let raw = unsafe {
            if (self.0.share)(tensor.as_ptr().cast(), order, labels.as_mut_ptr(), raw.as_mut_ptr()) != 0 {
                return Err(errors::exception_set_by("dlfield.Tensor._c_api.share", tensor));
            }
            raw.assume_init_ref()
        };
        Ok(read(raw)?)
    }

    /// Makes a `dlfield.Tensor` on the memory of a tensor, of which `owner` is the owner or a clone of that.
    #[inline]
    pub(crate) fn create<'py>(self, py: Python<'py>, tensor: &Tensor, owner: Owner) -> PyResult<Bound<'py, PyAny>> {
        let (mut labels, mut made) = (MaybeUninit::uninit(), null_mut());
        let (raw, kept) = match owner.object_of(self.0.release) {
            Some(address) => {
                let mut raw = RawTensor::of(tensor, Owner::NONE, &mut labels);
                raw.lend(address, self.0.release);
                (raw, Some(owner))
            }
            None => (RawTensor::of(tensor, owner, &mut labels), None),
        };
        // SAFETY: the parts of a tensor. The function takes its owner over, or adds a user to its own one, which is kept until then;
        // it returns a new reference on success.
        let made = unsafe {
            let code = (self.0.create)(&raw const raw, &raw mut made);
            if code == 0 { Bound::from_owned_ptr_or_opt(py, made.cast()) } else { None }
        };
        let no_exception = || errors::no_exception_set("dlfield.Tensor._c_api.create", "a tensor of Rust");
        let made = made.ok_or_else(|| PyErr::take(py).unwrap_or_else(no_exception));
        // The streams of this extension that use the memory stayed with the owner: dropping it makes the stream that the module works
        // on wait for them, and gives its own count back only then.
        if let Some(kept) = kept {
            sync::drop_detached(py, kept);
        }
        made
    }
}
