//! One field of a call: the memory that the kernel gets, its hooks, and its write-back copy.

#![allow(unsafe_code, reason = "copies reach memory by its address")]

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{DeviceErrorKind, Error, Tuple};
use crate::python::convert::errors;
use crate::python::copies::GIL_RELEASE_BYTES;
use crate::python::import::{self, Hooks};
use crate::python::interrupt;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::signature::PySignature;
use crate::python::module::signature::argument::describe_argument;
use crate::python::trace;
use crate::signature::FieldSpec;
use crate::signature::arguments::Argument;
use crate::signature::writeback::{Fit, Writeback};
use crate::tensor::Owner;

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
        let (mut hooks, mut fit) = (None, Fit::Direct);
        let described = freelist::create(py, |description: &mut PyDescriptor| {
            let found = describe_argument(value, device, spec.declared_access().writes(), description);
            hooks = found.map_err(|error| errors::about(py, name, error))?;
            let fitted = signature.signature.fit(place, description.descriptor_mut(), signature.copies);
            fit = fitted.map_err(|error| match error {
                Error::Device(error) if error.kind() == DeviceErrorKind::Mismatch => {
                    error.with_fix(&format_args!("copy it there: from_dlpack(obj, device='{device}')")).into()
                }
                error => import::read_only_output(value, error),
            })?;
            Ok(())
        })?;
        let found = described.get().descriptor();
        if found.device() != device && device == Device::CPU && !matches!(fit, Fit::Copied(_)) {
            // The host is about to use pinned or managed memory.
            let description = described.get().parts(py);
            import::synchronize_described(&description.object, description.owner, found)?;
        }
        let warning = match &fit {
            Fit::Direct if hooks.is_none() => return Ok(Field { original: described.unbind(), extras: None }),
            Fit::Direct => None,
            Fit::Copied(Some(error)) => Some(error.to_string()),
            Fit::Slow | Fit::Copied(None) => Some(slow(spec, found)),
        };
        let copy = matches!(fit, Fit::Copied(_)).then(|| Copy::of(py, found, signature, place)).transpose()?;
        Ok(Field { original: described.unbind(), extras: Some(Box::new(Extras { hooks, copy, warning })) })
    }

    /// The description that the kernel gets.
    pub(crate) fn described<'py>(&self, py: Python<'py>) -> Bound<'py, PyDescriptor> {
        self.temporary().map_or(&self.original, |copy| &copy.described).bind(py).clone()
    }

    /// Whether it has no hooks, copy or warning.
    pub(crate) fn is_plain(&self) -> bool {
        self.extras.is_none()
    }

    pub(crate) fn original_ptr(&self) -> *mut pyo3::ffi::PyObject {
        self.original.as_ptr()
    }

    pub(crate) fn hooks(&self) -> Option<&Hooks> {
        self.extras.as_ref()?.hooks.as_ref()
    }

    fn temporary(&self) -> Option<&Copy> {
        self.extras.as_ref()?.copy.as_ref()
    }

    /// Warns of a slow field at each call, and of a copied field once for each field of a signature.
    pub(crate) fn warn(&self, py: Python<'_>, signature: &PySignature, place: usize) -> PyResult<()> {
        let Some(reason) = self.extras.as_ref().and_then(|extras| extras.warning.as_ref()) else { return Ok(()) };
        let (name, spec) = signature.spec(place);
        let Some(copy) = self.copy() else {
            return errors::warn(py, &format!("field {name:?}: {reason}; this is slow"));
        };
        let (original, copied) = (self.original().dtype(), copy.tensor().descriptor().dtype());
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
        self.copying(py, "in", |writeback| unsafe { writeback.fill() })
    }

    /// Copies the elements of a written field back into the caller's memory.
    pub(crate) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: races with other threads on the elements are the program's responsibility, as with NumPy; `bind` has
        // rejected read-only memory for written fields.
        self.copying(py, "back", |writeback| unsafe { writeback.copy_back() })
    }

    /// Copies all elements; releases the GIL if there are many, or if a device may have to be waited for.
    fn copying(
        &self,
        py: Python<'_>,
        direction: &str,
        copy: impl Fn(&Writeback) -> crate::Result<()> + Sync,
    ) -> PyResult<()> {
        let Some(writeback) = self.copy() else { return Ok(()) };
        // Pins the memory: an error if the body has moved it, and other threads cannot move it meanwhile.
        let _pinned = import::pin_described(&self.original.get().parts(py))?;
        let devices = [writeback.tensor().descriptor().device(), self.original().device()];
        let little = writeback.tensor().descriptor().nbytes() < GIL_RELEASE_BYTES && devices == [Device::CPU; 2];
        if little { copy(writeback) } else { interrupt::detach(py, || copy(writeback)) }?;
        trace::copied(py, writeback.tensor().descriptor().nbytes(), || {
            let why = self.extras.as_ref().and_then(|extras| extras.warning.as_deref()).unwrap_or("another array");
            format!("bind, {direction}: {why}")
        });
        Ok(())
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

impl Argument for Field {
    fn original(&self) -> &Descriptor {
        self.original.get().descriptor()
    }

    fn copy(&self) -> Option<&Writeback> {
        Some(&self.temporary()?.writeback)
    }

    fn share_copy(&mut self, other: &Field) {
        let (Some(extras), Some(Copy { described, writeback })) = (&mut self.extras, other.temporary()) else { return };
        let described = Python::attach(|py| described.clone_ref(py));
        extras.copy = Some(Copy { described, writeback: writeback.clone() });
    }
}

impl Copy {
    /// Allocates a temporary for the caller's memory. The field keeps the description of that, which keeps the memory: the garbage
    /// collector would not see a second reference in an owner.
    fn of(py: Python<'_>, original: &Descriptor, signature: &PySignature, place: usize) -> PyResult<Copy> {
        let (name, spec) = signature.spec(place);
        let writeback = Writeback::of(spec, original.clone(), Owner::NONE, signature.signature.device());
        let writeback = writeback.map_err(|error| error.in_field(name))?;
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
    let ranks = |layout: &crate::Layout| Tuple(&layout.to_vec()).to_string();
    let expected = spec.fast_layout(found).map_or_else(String::new, |layout| ranks(&layout));
    let labels = found.dims().map_or_else(String::new, |dims| format!(" for dims ({dims})"));
    format!("layout: expected {expected}, got {}{labels}", ranks(&found.layout()))
}
