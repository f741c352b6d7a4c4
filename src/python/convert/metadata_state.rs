//! What DLPack cannot express of a tensor, as Python values: for pickles, and for what makes a tensor of other memory.

use pyo3::prelude::*;

use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Layout, Metadata, Promise, Spec, wrong_aligned_index, wrong_alignment_size};
use crate::python::convert::errors::ErrorKind;
use crate::tensor::Placement;
use crate::tensor::Tensor;

/// Dims, origin, halo, whether a slice has cut the halo, layout, padding, alignment_size and aligned_index; `None` where not
/// stated.
#[derive(Clone, FromPyObject, IntoPyObject)]
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
            Err(ErrorKind::Exchange.error("state: the memory is not aligned as it is said to be"))
        }
    }

    /// Returns the metadata, and what the allocation promised, of a field with these extents and strides.
    ///
    /// # Errors
    /// [`LayoutError`] for a layout that the strides do not have, and an alignment below 1.
    pub fn checked(self, shape: &[i64], strides: &[i64]) -> PyResult<Promised> {
        let (metadata, promise) = self.parsed(shape.len())?;
        if promise.alignment_size < 1 {
            return Err(wrong_alignment_size(promise.alignment_size).into());
        }
        let len = promise.aligned_index.as_ref().map_or(shape.len(), |index| index.len());
        crate::layout::check_len("aligned_index", len, shape.len())?;
        let mut steps = Vec::new();
        if let Some(layout) = &promise.layout
            && strides.len() == shape.len()
            && !shape.contains(&0)
        {
            steps.extend(layout.axes().filter(|axis| shape[*axis] > 1).map(|axis| strides[axis].unsigned_abs()));
        }
        if !steps.is_sorted_by(|left, right| left >= right) {
            return Err(
                ErrorKind::Exchange.error(format!("state: strides {strides:?} are not in the order of the layout"))
            );
        }
        Ok(Promised { metadata, promise })
    }

    /// Returns what to allocate, on the host, for a tensor with this metadata.
    pub fn spec(self, shape: &[i64], dtype: DType) -> PyResult<Spec> {
        let (metadata, promise) = self.parsed(shape.len())?;
        Ok(Spec::like(shape, dtype, metadata, promise))
    }
}

/// Metadata and a promise that fit a shape and its strides.
pub struct Promised {
    metadata: Metadata,
    promise: Promise,
}

impl Promised {
    /// Puts both on a tensor of that shape. `false` if the address of the memory does not have the promised alignment, or that
    /// of its elements.
    ///
    /// # Errors
    /// As for [`Tensor::relabel`].
    pub fn adopt(&self, tensor: &mut Tensor) -> Result<bool> {
        let element = 1 << tensor.descriptor().itemsize().trailing_zeros().min(3);
        if !tensor.descriptor().ptr().addr().is_multiple_of(element) && tensor.descriptor().size() > 0 {
            return Ok(false);
        }
        tensor.relabel(self.metadata.clone())?;
        Ok(tensor.adopt_promise(self.promise.clone()))
    }

    /// Returns the field on a copy of its bytes.
    ///
    /// # Errors
    /// As for [`Tensor::on_bytes`] and [`Tensor::relabel`]; [`crate::MemoryError`].
    ///
    /// # Safety
    /// - As for [`Tensor::copy_of_shared`].
    #[allow(unsafe_code, reason = "the promise about the memory is the caller's")]
    pub unsafe fn copy(self, bytes: &Tensor, placement: Placement<'_>) -> Result<Tensor> {
        // SAFETY: passed on from the caller.
        let mut copy = unsafe { Tensor::copy_of_bytes(bytes, placement, &self.promise) }?;
        copy.relabel(self.metadata)?;
        // The copy was made so that the aligned index is aligned, if it is inside.
        let shape = copy.descriptor().shape().to_vec();
        let index = self.promise.aligned_index.clone().unwrap_or_default();
        match index.iter().zip(&shape).position(|(entry, extent)| !(0..=*extent).contains(entry)) {
            Some(axis) => Err(wrong_aligned_index(axis, index[axis], shape[axis]).into()),
            None => {
                copy.adopt_promise(self.promise);
                Ok(copy)
            }
        }
    }
}
