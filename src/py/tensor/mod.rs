//! `dlfield.Tensor`: one file for each kind of caller.

mod attributes;
mod protocols;
mod special;
mod storage;
mod views;

use pyo3::prelude::*;

use super::freelist::{self, Freelist, HasFreelist};
use crate::descriptor::Descriptor;
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
#[pyclass(name = "Tensor", module = "dlfield", frozen, weakref)]
pub(super) struct PyTensor(pub(super) Tensor);

impl PyTensor {
    /// Makes the Python object of a tensor.
    pub(super) fn create(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
        freelist::create(py, |made: &mut PyTensor| {
            made.0 = tensor;
            Ok(())
        })
    }

    fn descriptor(&self) -> &Descriptor {
        self.0.descriptor()
    }
}

static FREED: Freelist = Freelist::new();

impl HasFreelist for PyTensor {
    fn freelist() -> &'static Freelist {
        &FREED
    }

    fn blank() -> PyTensor {
        PyTensor(Tensor::BLANK)
    }

    fn release(&mut self, py: Python<'_>) {
        if self.0.owner().stream_uses().is_some() {
            // The host may have to wait for the device before the memory is freed.
            py.detach(|| self.0.clear());
        } else {
            self.0.clear();
        }
    }
}
