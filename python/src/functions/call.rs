//! A call of an allocation function.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use crate::classes::freelist;
use crate::classes::tensor::PyTensor;
use crate::functions::keywords::{Given, Keywords};
use dlfield::native::args;
use dlfield::native::errors::{ErrorKind, reworded};
use dlfield::native::numpy_api::is_exact;
use dlfield::native::sync::GIL_RELEASE_BYTES;
use dlfield::native::{fastcall, interrupt};
use dlfield::{Spec, Tensor};

/// The arguments of an allocation function.
pub(super) struct Call<'a, 'py> {
    pub(super) py: Python<'py>,
    /// Name of the function.
    pub(super) function: &'static str,
    /// The argument `shape` or `data`.
    pub(super) first: &'a Bound<'py, PyAny>,
    pub(super) dtype: Given<'a, 'py>,
    pub(super) keywords: Keywords<'a, 'py>,
}

impl<'py> Call<'_, 'py> {
    /// Makes the object of the tensor that `fill` makes in place: no value of this size is moved.
    #[inline(always)]
    pub(super) fn create(&self, fill: impl Fn(&mut Tensor) -> PyResult<()>) -> PyResult<Bound<'py, PyAny>> {
        let create = || freelist::create(self.py, |made: &mut PyTensor| fill(&mut made.0));
        let made = if self.is_plain() { create() } else { fastcall::attached(create) };
        match made {
            Ok(made) => Ok(made.into_any()),
            Err(error) => Err(self.with_host_hint(error)),
        }
    }

    /// Adds to the error of a preset for a device that is not there how to have its layout on the host.
    #[cold]
    fn with_host_hint(&self, error: PyErr) -> PyErr {
        let (Some(preset), None) = (self.keywords.backend, self.keywords.device) else { return error };
        if !ErrorKind::Device.is(self.py, &error) {
            return error;
        }
        let preset = args::shown(preset);
        let text =
            format!("{}; with device='cpu' the preset {preset} gives its layout in host memory", error.value(self.py));
        reworded(self.py, &error, text)
    }

    /// Whether all arguments are of the kinds whose conversion leaves no discarded reference behind: a tuple, an integer or a
    /// NumPy array, the name of an element type, the name of a preset. That of an array and of names runs no other code either.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        let is_text =
            |argument: Given<'_, '_>| argument.is_none_or(|argument| argument.is_exact_instance_of::<PyString>());
        let first = self.first;
        (first.is_exact_instance_of::<PyTuple>() || is_exact(first) || first.is_exact_instance_of::<PyInt>())
            && is_text(self.dtype)
            && is_text(self.keywords.backend)
            && self.keywords.are_preset_alone()
    }

    /// Runs `work` on the memory of a field, for a long time without the GIL.
    #[inline]
    pub(super) fn detached<R: Send>(&self, spec: &Spec, work: impl Send + FnOnce() -> R) -> R {
        if spec.is_small_on_host(GIL_RELEASE_BYTES) { work() } else { interrupt::detach(self.py, work) }
    }
}
