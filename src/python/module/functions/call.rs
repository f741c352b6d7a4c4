//! A call of an allocation function.

use pyo3::prelude::*;

use crate::layout::Spec;
use crate::python::convert::args;
use crate::python::convert::errors::{ErrorKind, reworded};
use crate::python::copies::GIL_RELEASE_BYTES;
use crate::python::interrupt;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::functions::keywords::{Given, Keywords};
use crate::python::trace;
use crate::tensor::Tensor;

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
    pub(super) fn create(&self, fill: impl FnOnce(&mut Tensor) -> PyResult<()>) -> PyResult<Bound<'py, PyTensor>> {
        let made = freelist::create(self.py, |made: &mut PyTensor| fill(&mut made.0));
        let made = made.map_err(|error| self.with_host_hint(error))?;
        trace::allocated(self.py, &made.get().0);
        Ok(made)
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

    /// Runs `work` on the memory of a field, for a long time without the GIL.
    #[inline]
    pub(super) fn detached<R: Send>(&self, spec: &Spec, work: impl Send + FnOnce() -> R) -> R {
        if spec.is_small_on_host(GIL_RELEASE_BYTES) { work() } else { interrupt::detach(self.py, work) }
    }
}
