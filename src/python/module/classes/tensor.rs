//! `dlfield.Tensor`.

use pyo3::prelude::*;

use crate::descriptor::Descriptor;
use crate::python::ffi::attach::release_deferred;
use crate::python::module::classes::buffer_parts::BufferParts;
use crate::python::module::classes::freelist::{self, Freelist, HasFreelist};
use crate::tensor::Tensor;

/// A field: memory with the layout a stencil needs, shared without a copy with every array library.
///
/// Strides are in bytes. Views, copies and pickles keep dims, origin and halo. Made by `empty`, `zeros`, `ones`, `full`,
/// their `_like` forms, `from_array` and `from_dlpack`.
///
/// >>> import dlfield as dl, numpy as np
/// >>> field = dl.zeros((6, 6, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0))
/// >>> field.domain_view[...] = 1.0
/// >>> float(np.asarray(field).sum())
/// 64.0
// As a sequence it has the length that `PySequence_Size` looks for; NumPy's arrays are sequences too.
#[pyclass(name = "Tensor", module = "dlfield", frozen, weakref, sequence)]
pub(crate) struct PyTensor(pub(crate) Tensor, pub(crate) BufferParts);

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> PyTensor {
        PyTensor(tensor, BufferParts::default())
    }

    /// Makes the Python object of a tensor.
    pub(crate) fn create(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
        freelist::create(py, |made: &mut PyTensor| {
            made.0 = tensor;
            Ok(())
        })
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.0.descriptor()
    }
}

static FREED: Freelist = Freelist::new();

impl HasFreelist for PyTensor {
    /// Like an array of NumPy: its memory may be owned by a Python object, but only the owner knows it.
    const HAS_TRAVERSE: bool = false;

    fn freelist() -> &'static Freelist {
        &FREED
    }

    fn blank() -> PyTensor {
        PyTensor::new(Tensor::BLANK)
    }

    fn release(&mut self, py: Python<'_>) {
        self.1 = BufferParts::default();
        if self.0.owner().stream_uses().is_some() {
            // The host may have to wait for the device before the memory is freed.
            py.detach(|| self.0.clear());
        } else {
            self.0.clear();
        }
        release_deferred(py);
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        freelist::drop_value(self);
    }
}
