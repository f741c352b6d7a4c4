//! One field of a call: the memory that the kernel gets, its hooks, and its write-back copy.

#![allow(unsafe_code, reason = "copies reach memory by its address")]

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::SignatureError;
use crate::python::convert::errors;
use crate::python::copies::GIL_RELEASE_BYTES;
use crate::python::import::{self, Hooks};
use crate::python::interrupt;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::signature::PySignature;
use crate::python::module::signature::argument::describe_argument;
use crate::signature::FieldSpec;
use crate::signature::writeback::{Fit, Writeback};
use crate::tensor::{Owner, Tensor};

/// An argument that was described and checked.
pub(crate) struct Field {
    /// The caller's memory.
    original: Py<PyDescriptor>,
    /// Parts that few fields have.
    extras: Option<Box<Extras>>,
}

#[derive(Default)]
struct Extras {
    hooks: Option<Hooks>,
    copy: Option<Copy>,
    /// The text of the warning: why the field is slow, or why it is copied.
    warning: Option<String>,
}

/// A temporary copy of the caller's memory.
struct Copy {
    described: Py<PyDescriptor>,
    writeback: Writeback,
}

impl Field {
    /// Describes and checks an argument. Allocates a temporary copy if one is needed and `signature` allows it. May call back into
    /// Python code, which may change every argument: the caller checks all of them afterwards.
    #[inline]
    pub(crate) fn bind(value: &Bound<'_, PyAny>, signature: &PySignature, place: usize) -> PyResult<Field> {
        let py = value.py();
        let (name, spec) = signature.spec(place);
        let device = signature.signature.device();
        let mut hooks = None;
        let described = freelist::create(py, |description: &mut PyDescriptor| {
            let writes = spec.declared_access().writes();
            let found = describe_argument(value, device, writes, description);
            hooks = found.map_err(|error| errors::about(py, name, error))?;
            let fits = spec.orient(description.descriptor_mut());
            Ok(fits.map_err(|error| crate::Error::from(SignatureError::of(name, error)))?)
        })?;
        let found = described.get().descriptor();
        if hooks.is_none() && spec.plainly_fits(found, device) {
            return Ok(Field { original: described.unbind(), extras: None });
        }
        let named = |error| PyErr::from(crate::Error::from(SignatureError::of(name, error)));
        let fit = spec.fit(found, device, signature.copies).map_err(named)?;
        if found.device() != device && device == Device::CPU && !matches!(fit, Fit::Copied(_)) {
            // The host is about to use pinned or managed memory.
            let description = described.get().parts(py);
            import::synchronize_described(&description.object, description.owner, found)?;
        }
        let copy = match &fit {
            Fit::Copied(_) => Some(Copy::described(py, Copy::of(&described, spec, device).map_err(named)?)?),
            Fit::Direct | Fit::Slow => None,
        };
        let warning = match fit {
            Fit::Direct => None,
            Fit::Copied(Some(error)) => Some(error.to_string()),
            Fit::Slow | Fit::Copied(None) => Some(slow(spec, found)),
        };
        let extras = (hooks.is_some() || warning.is_some()).then(|| Box::new(Extras { hooks, copy, warning }));
        Ok(Field { original: described.unbind(), extras })
    }

    /// The caller's memory.
    pub(crate) fn original(&self) -> &Descriptor {
        self.original.get().descriptor()
    }

    /// The description that the kernel gets.
    pub(crate) fn described<'py>(&self, py: Python<'py>) -> Bound<'py, PyDescriptor> {
        self.copy().map_or(&self.original, |copy| &copy.described).bind(py).clone()
    }

    pub(crate) fn hooks(&self) -> Option<&Hooks> {
        self.extras.as_ref()?.hooks.as_ref()
    }

    fn copy(&self) -> Option<&Copy> {
        self.extras.as_ref()?.copy.as_ref()
    }

    /// Whether the kernel gets a temporary copy.
    pub(crate) fn is_copied(&self) -> bool {
        self.copy().is_some()
    }

    /// Uses the temporary copy of another field, for the same elements.
    pub(crate) fn share_copy(&mut self, py: Python<'_>, other: &Field) {
        let Some(copy) = self.extras.as_mut().and_then(|extras| extras.copy.as_mut()) else { return };
        let Some(Copy { described, writeback }) = other.copy() else { return };
        let unused = std::mem::replace(&mut copy.described, described.clone_ref(py));
        drop(unused.into_bound(py));
        copy.writeback = writeback.clone();
    }

    /// Warns of a slow field at each call, and of a copied field once for each field of a signature.
    pub(crate) fn warn(&self, py: Python<'_>, signature: &PySignature, place: usize) -> PyResult<()> {
        let Some(reason) = self.extras.as_ref().and_then(|extras| extras.warning.as_ref()) else { return Ok(()) };
        let (name, spec) = signature.spec(place);
        let Some(copy) = self.copy() else {
            return errors::warn(py, &format!("field {name:?}: {reason}; this is slow"));
        };
        let (original, copied) = (self.original().dtype(), copy.writeback.tensor().descriptor().dtype());
        let narrower = spec.declared_access().writes() && copied.itemsize() < original.itemsize();
        let casts = if narrower { format!(": every element is cast to {copied} and back") } else { String::new() };
        let message = format!("field {name:?}: {reason}; a temporary copy is used{casts}");
        signature.warn_once(place, || errors::warn(py, &message))
    }

    /// Rejects memory that the caller's object has moved since it was described.
    pub(crate) fn check_unmoved(&self, py: Python<'_>) -> PyResult<()> {
        let described = self.original.get();
        // Most fields are arrays of NumPy, for which this takes a third of the time.
        let is_unmoved = described
            .object
            .as_ref()
            .is_some_and(|object| import::is_as_described(object.bind(py), &described.descriptor));
        if is_unmoved { Ok(()) } else { import::check_described(&described.parts(py)) }
    }

    /// Fills the temporary copy.
    pub(crate) fn copy_in(&self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: races with other threads on the elements are the program's responsibility, as with NumPy.
        self.copying(py, |writeback| unsafe { writeback.fill() })
    }

    /// Copies the elements of a written field back into the caller's memory.
    pub(crate) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: races with other threads on the elements are the program's responsibility, as with NumPy; `bind` has
        // rejected read-only memory for written fields.
        self.copying(py, |writeback| unsafe { writeback.copy_back() })
    }

    /// Copies all elements; releases the GIL if there are many, or if a device may have to be waited for.
    fn copying(&self, py: Python<'_>, copy: impl Fn(&Writeback) -> crate::Result<()> + Sync) -> PyResult<()> {
        let Some(Copy { writeback, .. }) = self.copy() else { return Ok(()) };
        // Pins the memory: an error if the body has moved it, and other threads cannot move it meanwhile.
        let _pinned = import::pin_described(&self.original.get().parts(py))?;
        let devices = [writeback.tensor().descriptor().device(), self.original().device()];
        let little = writeback.tensor().descriptor().nbytes() < GIL_RELEASE_BYTES && devices == [Device::CPU; 2];
        Ok(if little { copy(writeback) } else { interrupt::detach(py, || copy(writeback)) }?)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.original)?;
        let Some(extras) = &self.extras else { return Ok(()) };
        if let Some(hooks) = &extras.hooks {
            visit.call(&hooks.acquire)?;
            visit.call(&hooks.touch)?;
            visit.call(&hooks.release)?;
        }
        extras.copy.as_ref().map_or(Ok(()), |copy| visit.call(&copy.described))
    }

    /// Releases all references at once: the thread is attached, so PyO3 need not defer them.
    pub(crate) fn release(self, py: Python<'_>) {
        drop(self.original.into_bound(py));
        let Some(extras) = self.extras else { return };
        let Extras { hooks, copy, .. } = *extras;
        if let Some(Hooks { acquire, touch, release }) = hooks {
            for hook in [acquire, touch, release].into_iter().flatten() {
                drop(hook.into_bound(py));
            }
        }
        if let Some(copy) = copy {
            drop(copy.described.into_bound(py));
        }
    }
}

impl Copy {
    fn of(original: &Bound<'_, PyDescriptor>, spec: &FieldSpec, device: Device) -> crate::Result<Writeback> {
        let descriptor = original.get().descriptor().clone();
        // SAFETY: the field keeps the description, which keeps the memory, longer than this tensor lives. The garbage
        // collector would not see a second reference here. The signature has checked that written memory is writable.
        Writeback::of(spec, unsafe { Tensor::from_parts(descriptor, Owner::NONE) }, device)
    }

    /// Adds the description that the kernel gets.
    fn described(py: Python<'_>, writeback: Writeback) -> PyResult<Copy> {
        let tensor = writeback.tensor();
        let owner = PyTensor::create(py, tensor.clone())?;
        let described = freelist::create(py, |description: &mut PyDescriptor| {
            *description.descriptor_mut() = tensor.descriptor().clone();
            description.set(owner.into_any(), "dlfield");
            Ok(())
        })?;
        Ok(Copy { described: described.unbind(), writeback })
    }
}

/// Why a field is slow.
#[cold]
fn slow(spec: &FieldSpec, found: &Descriptor) -> String {
    let ranks = |layout: &crate::Layout| format!("{:?}", layout.to_vec());
    let wanted = spec.fast_layout(found).map_or_else(String::new, |layout| ranks(&layout));
    let labels = found.dims().map_or_else(String::new, |dims| format!(" for dims ({dims})"));
    format!("layout: {}{labels}; wanted is {wanted}", ranks(&found.layout()))
}
