//! What DLPack cannot express of a tensor, as Python values: for extensions that return tensors, and for pickles.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Layout, Metadata, Padding, Promise, Spec};
use crate::tensor::Tensor;

/// Dims, origin, halo, whether a slice has cut the halo, layout, padding, alignment_size and aligned_index; `None` where not
/// stated.
#[derive(FromPyObject, IntoPyObject)]
pub struct MetadataState(
    Option<Vec<String>>,
    Option<Vec<i64>>,
    Option<Vec<(i64, i64)>>,
    bool,
    Option<Vec<i64>>,
    String,
    i64,
    Option<Vec<i64>>,
);

impl MetadataState {
    /// The state of a tensor; `None` if it states nothing.
    pub(crate) fn of(tensor: &Tensor) -> Option<MetadataState> {
        let (metadata, promise) = (tensor.descriptor().metadata(), tensor.promise());
        let is_promised = promise.alignment_size > 1 || promise.padding != Padding::None || promise.layout.is_some();
        let is_stated = is_promised || metadata.is_some_and(|metadata| !metadata.is_empty());
        is_stated.then(|| MetadataState::new(metadata, promise))
    }

    /// The state of a tensor for [`MetadataState::spec`]: with its layout also if that follows from the strides.
    pub fn with_layout(tensor: &Tensor) -> MetadataState {
        let promise = Promise { layout: Some(tensor.layout()), ..tensor.promise().clone() };
        MetadataState::new(tensor.descriptor().metadata(), &promise)
    }

    fn new(metadata: Option<&Metadata>, promise: &Promise) -> MetadataState {
        let text = |dims: &Dims| dims.iter().map(|dim| dim.to_string()).collect();
        MetadataState(
            metadata.and_then(|metadata| metadata.dims.as_ref().map(text)),
            metadata.and_then(|metadata| metadata.origin.as_deref().map(<[i64]>::to_vec)),
            metadata.and_then(|metadata| metadata.halo.as_deref().map(<[(i64, i64)]>::to_vec)),
            metadata.is_some_and(|metadata| metadata.halo_is_cut),
            promise.layout.as_ref().map(|layout| layout.iter().map(i64::from).collect()),
            promise.padding.to_string(),
            promise.alignment_size,
            promise.aligned_index.as_deref().map(<[i64]>::to_vec),
        )
    }

    fn parsed(self, ndim: usize) -> PyResult<(Metadata, Promise)> {
        let MetadataState(dims, origin, halo, halo_is_cut, layout, padding, alignment_size, aligned_index) = self;
        let metadata = Metadata {
            dims: dims.map(Dims::parse).transpose()?,
            origin: origin.map(Vec::into_boxed_slice),
            halo: halo.map(Vec::into_boxed_slice),
            halo_is_cut,
        };
        let promise = Promise {
            layout: layout.map(|layout| Layout::new(&layout, ndim)).transpose()?,
            padding: padding.parse()?,
            alignment_size,
            aligned_index: aligned_index.map(Vec::into_boxed_slice),
        };
        Ok((metadata, promise))
    }

    /// Puts the metadata on a tensor. Rejects an alignment that the tensor's memory does not have.
    pub fn apply(self, tensor: &mut Tensor) -> PyResult<()> {
        let (metadata, promise) = self.parsed(tensor.descriptor().ndim())?;
        tensor.relabel(metadata)?;
        if tensor.adopt_promise(promise) {
            Ok(())
        } else {
            Err(PyValueError::new_err("state: the memory is not aligned as it is said to be"))
        }
    }

    /// Returns what to allocate, on the host, for a tensor with this metadata.
    pub fn spec(self, shape: &[i64], dtype: DType) -> PyResult<Spec> {
        let (metadata, promise) = self.parsed(shape.len())?;
        Ok(Spec::like(shape, dtype, metadata, promise))
    }
}
