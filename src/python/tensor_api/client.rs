//! The side of an extension: finds the table of the module `dlfield`, and calls its functions.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi::PyTypeObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::{
    CAPSULE_NAME, Described, ELSEWHERE, FieldMetadata, NewTensor, RawOwner, SharedTensor, TensorApi, VERSION, WAITED,
};
use crate::descriptor::Descriptor;
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
    /// Describes a tensor for access by the host, without metadata. `None` for memory that is not the host's.
    #[inline(always)]
    pub(crate) fn describe(
        self,
        tensor: &Bound<'_, PyAny>,
        descriptor: &mut Descriptor,
    ) -> PyResult<Option<Described>> {
        let mut field = MaybeUninit::uninit();
        // SAFETY: the table is that of the object's class, and fills the struct on success. The object lives.
        unsafe {
            let described = match (self.0.describe)(tensor.as_ptr().cast(), field.as_mut_ptr()) {
                0 => Described::AtOnce,
                WAITED => Described::AfterWait,
                ELSEWHERE => return Ok(None),
                _ => return Err(errors::exception_set_by("dlfield.Tensor._c_api.describe", tensor)),
            };
            field.assume_init_ref().read_into(descriptor)?;
            Ok(Some(described))
        }
    }

    /// Waits for device work on pinned or managed memory, in any stream.
    #[cold]
    pub(crate) fn synchronize(self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: the table is that of the object's class. The object lives.
        match unsafe { (self.0.synchronize)(tensor.as_ptr().cast()) } {
            0 => Ok(()),
            _ => Err(errors::exception_set_by("dlfield.Tensor._c_api.synchronize", tensor)),
        }
    }

    /// Returns the metadata of a tensor, the default ones included, as its Python attributes have them.
    pub(crate) fn metadata(self, tensor: &Bound<'_, PyAny>) -> PyResult<Metadata> {
        let (mut labels, mut found) = (MaybeUninit::uninit(), MaybeUninit::<FieldMetadata>::uninit());
        // SAFETY: as in `describe`.
        unsafe {
            if (self.0.metadata)(tensor.as_ptr().cast(), labels.as_mut_ptr(), found.as_mut_ptr()) != 0 {
                return Err(errors::exception_set_by("dlfield.Tensor._c_api.metadata", tensor));
            }
            let found = found.assume_init_ref();
            Ok(found.read()?.with_defaults(found.ndim()))
        }
    }

    /// Shares the memory of a tensor, on any device: fills the descriptor, without metadata. Returns an owner of the memory, and what
    /// its allocation promises.
    pub(crate) fn share(self, tensor: &Bound<'_, PyAny>, descriptor: &mut Descriptor) -> PyResult<(Owner, Promise)> {
        let mut shared = MaybeUninit::<SharedTensor>::uninit();
        // SAFETY: as in `describe`. The owner is taken over once, also if the rest fails.
        unsafe {
            if (self.0.share)(tensor.as_ptr().cast(), shared.as_mut_ptr()) != 0 {
                return Err(errors::exception_set_by("dlfield.Tensor._c_api.share", tensor));
            }
            let shared = shared.assume_init_ref();
            let owner = shared.take_owner(self.0.release);
            shared.field.read_into(descriptor)?;
            Ok((owner, shared.promise.read()?))
        }
    }

    /// Returns an owner for the module: its own one, if it gave that, else one that wraps `owner`.
    ///
    /// The streams of this extension that use the memory stay with `owner`: dropping that makes the stream that the module worked
    /// on wait for them, and gives its own count back only then.
    #[inline]
    fn pass(self, py: Python<'_>, owner: Owner) -> RawOwner {
        let release = self.0.release;
        match owner.object_of(release) {
            Some(address) => {
                // SAFETY: the owner is alive, and its function says that it is the module's.
                unsafe { (self.0.retain)(address) };
                sync::drop_detached(py, owner);
                RawOwner { address, release }
            }
            None => owner.into(),
        }
    }

    /// Makes a `dlfield.Tensor` on the memory of a tensor, of which `owner` is the owner or a clone of that.
    #[inline]
    pub(crate) fn create<'py>(self, py: Python<'py>, tensor: &Tensor, owner: Owner) -> PyResult<Bound<'py, PyAny>> {
        let mut made = null_mut();
        // SAFETY: the function takes the owner over, and returns a new reference on success.
        let code =
            NewTensor::with(tensor, self.pass(py, owner), |parts| unsafe { (self.0.create)(parts, &raw mut made) });
        if code == 0
            // SAFETY: the function succeeded, so `made` is null or a new reference.
            && let Some(made) = unsafe { Bound::from_owned_ptr_or_opt(py, made.cast()) }
        {
            return Ok(made);
        }
        let function = "dlfield.Tensor._c_api.create";
        Err(PyErr::take(py).unwrap_or_else(|| errors::no_exception_set(function, "a tensor of Rust")))
    }
}
