//! Views with other dimensions: repeated and permuted.

use super::Tensor;
use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::error::{Count, DimsError, DimsErrorKind, LayoutError, LayoutErrorKind, Result};
use crate::layout::{Extents, Halo, Metadata, Promise};

impl Tensor {
    /// Returns a view with the given dimensions, in that order, on the same memory. Dimensions that the field does not have repeat it
    /// with a stride of 0, as does one of extent 1 along its own label.
    ///
    /// The view is read-only, as several indices may be one element. Halo, origin and aligned index are 0 in repeated
    /// dimensions.
    ///
    /// # Errors
    /// [`DimsError`] if the field has a dimension that is not in `dims`, or `shape` and `dims` have different lengths;
    /// [`LayoutError`] if an extent of the field is neither 1 nor the expected one.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[2, 3], DType::F64)).unwrap();
    /// let wide = field.broadcast_to(&Dims::parse(["K", "J", "I"]).unwrap(), &[4, 3, 2]).unwrap();
    /// assert_eq!(wide.descriptor().strides(), [0, 1, 3]);
    /// assert!(wide.descriptor().is_readonly());
    /// ```
    pub fn broadcast_to(&self, dims: &Dims, shape: &[i64]) -> Result<Tensor> {
        Ok(self.arranged(dims, shape)?.into_readonly())
    }

    /// As [`Tensor::broadcast_to`], but writable if this field is: for callers that only permute.
    pub(crate) fn arranged(&self, dims: &Dims, shape: &[i64]) -> Result<Tensor> {
        dims.check_len(shape.len())?;
        let (own, from) = (self.dims(), &self.descriptor);
        if let Some(label) = own.iter().find(|label| !dims.iter().any(|known| known == *label)) {
            let expected = format_args!("a field with the labels ({dims}) only");
            let got = format_args!("one with {:?}", label.to_string());
            return Err(DimsError::new("dims", &expected, &got).with_kind(DimsErrorKind::Mismatch).into());
        }
        let (old_halo, old_origin, old_aligned) = (self.halo(), self.inline_origin(), self.aligned_index());
        let ndim = shape.len();
        let (mut strides, mut origin) = (Extents::from_elem(0, ndim), Extents::from_elem(0, ndim));
        let (mut halo, mut aligned_index) = (Halo::from_elem((0, 0), ndim), origin.clone());
        for (at, (label, wanted)) in dims.iter().zip(shape.iter().copied()).enumerate() {
            let Some(axis) = own.iter().position(|known| known == label) else { continue };
            let got = from.shape()[axis];
            if got == wanted {
                strides[at] = from.strides()[axis];
                (halo[at], origin[at], aligned_index[at]) = (old_halo[axis], old_origin[axis], old_aligned[axis]);
            } else if got != 1 {
                let expected =
                    format_args!("{} in dimension {:?}, or 1 to repeat", Count(wanted, "point"), label.to_string());
                return Err(LayoutError::new("shape", &expected, &got).with_kind(LayoutErrorKind::Mismatch).into());
            }
        }
        let mut descriptor =
            Descriptor::new(from.ptr(), from.device(), from.dtype(), from.is_readonly(), shape, &strides)?;
        descriptor.relabel(Metadata {
            dims: Some(dims.clone()),
            origin: from.origin().map(|_| origin.as_slice().into()),
            halo: from.halo().map(|_| halo.as_slice().into()),
            halo_is_cut: from.halo_is_cut(),
        })?;
        let promise = Promise {
            layout: None,
            padding: self.promise.padding,
            alignment_size: self.remaining_alignment(&descriptor, &aligned_index),
            aligned_index: aligned_index.iter().any(|entry| *entry != 0).then(|| aligned_index.as_slice().into()),
        };
        Ok(Tensor { descriptor, owner: self.owner.clone(), promise, is_whole: false })
    }

    /// Returns the same memory without the read-only mark, for a library that has no read-only arrays and only reads it.
    pub(crate) fn into_readable(mut self) -> Tensor {
        self.descriptor = self.descriptor.into_writable();
        self
    }
}
