//! Metadata of a tensor that DLPack cannot express, as Python values: for extensions that return tensors, and for pickles.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::dims::Dims;
use crate::layout::{Extents, Halo, Layout, Padding};
use crate::tensor::{Promise, Tensor};

/// Dims, origin, halo, layout, padding, alignment_size and aligned_index; `None` where not stated.
#[derive(FromPyObject, IntoPyObject)]
pub struct MetadataState(
    Option<Vec<String>>,
    Option<Vec<i64>>,
    Option<Vec<(i64, i64)>>,
    Option<Vec<i64>>,
    String,
    i64,
    Option<Vec<i64>>,
);

impl MetadataState {
    /// The state of a tensor; `None` if it states nothing.
    pub fn of(tensor: &Tensor) -> Option<MetadataState> {
        let (descriptor, promise) = (tensor.descriptor(), tensor.promise());
        let labelled = descriptor.dims().is_some() || descriptor.origin().is_some() || descriptor.halo().is_some();
        let promised = promise.alignment_size > 1 || promise.padding != Padding::None || promise.layout.is_some();
        (labelled || promised).then(|| {
            MetadataState(
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

    /// Puts the metadata on a tensor. Rejects an alignment that the tensor's memory does not have.
    pub fn apply(self, tensor: &mut Tensor) -> PyResult<()> {
        let MetadataState(dims, origin, halo, layout, padding, alignment_size, aligned_index) = self;
        let ndim = tensor.descriptor().ndim();
        tensor.relabel(dims.map(Dims::parse).transpose()?, origin.map(Extents::from_vec), halo.map(Halo::from_vec))?;
        let promise = Promise {
            layout: layout.map(|layout| Layout::new(&layout, ndim)).transpose()?,
            padding: padding.parse()?,
            alignment_size,
            aligned_index: aligned_index.map(Vec::into_boxed_slice),
        };
        if tensor.promised(promise) {
            Ok(())
        } else {
            Err(PyValueError::new_err("state: the memory is not aligned as it is said to be"))
        }
    }
}
