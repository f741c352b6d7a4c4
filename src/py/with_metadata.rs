//! Metadata that DLPack cannot express, passed to the module by other extensions that this crate is built into.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::tensor::PyTensor;
use crate::dims::Dims;
use crate::layout::{Extents, Halo, Layout, Padding};
use crate::tensor::{Promise, Tensor};

/// Dims, origin, halo, layout, padding, alignment_size and aligned_index; `None` where not stated.
#[derive(FromPyObject, IntoPyObject)]
pub(super) struct State(
    Option<Vec<String>>,
    Option<Vec<i64>>,
    Option<Vec<(i64, i64)>>,
    Option<Vec<i64>>,
    String,
    i64,
    Option<Vec<i64>>,
);

impl State {
    /// The state of a tensor; `None` if it states nothing.
    pub(super) fn of(tensor: &Tensor) -> Option<State> {
        let (descriptor, promise) = (tensor.descriptor(), tensor.promise());
        let labelled = descriptor.dims().is_some() || descriptor.origin().is_some() || descriptor.halo().is_some();
        let promised = promise.alignment_size > 1 || promise.padding != Padding::None || promise.layout.is_some();
        (labelled || promised).then(|| {
            State(
                descriptor.dims().map(|dims| dims.iter().map(|dim| dim.to_string()).collect()),
                descriptor.origin().map(<[i64]>::to_vec),
                descriptor.halo().map(<[(i64, i64)]>::to_vec),
                promise.layout.as_ref().map(|layout| layout.iter().map(i64::from).collect()),
                promise.padding.to_string(),
                promise.alignment_size,
                promise.aligned_index.as_deref().map(<[i64]>::to_vec),
            )
        })
    }
}

/// Returns a tensor on the same memory with this metadata.
#[pyfunction]
#[pyo3(name = "_with_metadata")]
fn with_metadata<'py>(tensor: &Bound<'py, PyTensor>, state: State) -> PyResult<Bound<'py, PyTensor>> {
    let State(dims, origin, halo, layout, padding, alignment_size, aligned_index) = state;
    let mut relabelled = tensor.get().0.clone();
    let ndim = relabelled.descriptor().ndim();
    relabelled.relabel(dims.map(Dims::parse).transpose()?, origin.map(Extents::from_vec), halo.map(Halo::from_vec))?;
    let promise = Promise {
        layout: layout.map(|layout| Layout::new(&layout, ndim)).transpose()?,
        padding: padding.parse()?,
        alignment_size,
        aligned_index: aligned_index.map(Vec::into_boxed_slice),
    };
    if !relabelled.promised(promise) {
        return Err(PyValueError::new_err("state: the memory is not aligned as it is said to be"));
    }
    PyTensor::create(tensor.py(), relabelled)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(with_metadata, module)?)
}
