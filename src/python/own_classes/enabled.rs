//! The classes, which are final. Every import compares them with the object's type.

use pyo3::prelude::*;

use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::freelist::is_exact;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::own_classes::Description;
use crate::tensor::Tensor;

/// Returns the tensor of a `Tensor`; `None` for other objects.
#[inline]
pub(crate) fn tensor<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    if !is_exact::<PyTensor>(object) {
        return None;
    }
    object.cast_exact::<PyTensor>().ok().map(|tensor| &tensor.get().0)
}

/// Returns the parts of a `Descriptor`; `None` for other objects.
#[inline]
pub(crate) fn description<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<Description<'a, 'py>> {
    if !is_exact::<PyDescriptor>(object) {
        return None;
    }
    object.cast_exact::<PyDescriptor>().ok().map(|found| found.get().parts(object.py()))
}

/// Returns a `Tensor` as text without its elements, which may be on a device; `None` for other objects.
pub(crate) fn text(object: &Bound<'_, PyAny>) -> Option<String> {
    let text = object.cast_exact::<PyTensor>().ok()?.get().attributes_text(object.py()).ok()?;
    Some(format!("Tensor({text})"))
}

impl PyDescriptor {
    /// Returns the parts that imports use.
    pub(crate) fn parts<'py>(&self, py: Python<'py>) -> Description<'_, 'py> {
        let (object, owner) = (self.object(py), self.owner.as_ref());
        Description { descriptor: &self.descriptor, object, owner, owner_needs_object: self.owner_needs_object }
    }
}
