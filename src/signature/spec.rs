//! What a stencil wants of one field.

use std::sync::Arc;

use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Layout, LayoutError, Metadata, check_len};

/// How a stencil uses a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it without relying on its old values. Elements that it does not write keep their values.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

impl Access {
    /// Returns whether elements are written.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// The specification of one field.
///
/// # Example
/// ```
/// use dlfield::{Access, DType, Dims, FieldSpec, Layout};
/// let spec = FieldSpec::new(DType::F64, Dims::standard(3)).access(Access::Write).layout(Layout::f_order(3));
/// assert!(spec.dims().unwrap().position("K") == Some(2));
/// // Any number of dimensions, indexed by position.
/// assert!(FieldSpec::new(DType::F64, None).dims().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct FieldSpec {
    pub(super) dtype: DType,
    pub(super) dims: Option<Dims>,
    pub(super) access: Access,
    pub(super) layout: Option<Layout>,
    pub(super) alignment_size: i64,
    pub(super) shape: Option<Box<[Option<i64>]>>,
    optional: bool,
    /// The metadata for a field without any, if `dims` says how many dimensions there are.
    pub(super) default_metadata: Arc<Metadata>,
}

impl FieldSpec {
    /// Specifies a field that is read, of this element type; `dims` are in the order in which the kernel indexes it. Without
    /// dims, the field may have any number of dimensions, and the kernel indexes it in the order in which the argument does.
    pub fn new(dtype: DType, dims: impl Into<Option<Dims>>) -> FieldSpec {
        let dims = dims.into();
        let origin = dims.as_ref().map(|dims| vec![0; dims.len()].into());
        let default_metadata = Arc::new(Metadata { dims: dims.clone(), origin, ..Metadata::default() });
        let (access, layout, alignment_size, shape) = (Access::Read, None, 1, None);
        FieldSpec { dtype, dims, access, layout, alignment_size, shape, optional: false, default_metadata }
    }

    /// Sets how the field is used.
    #[must_use]
    pub fn access(mut self, access: Access) -> FieldSpec {
        self.access = access;
        self
    }

    /// Sets the order of strides in which the kernel is fast, in the order in which it indexes the field. By default it is fast in any order.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> FieldSpec {
        self.layout = Some(layout);
        self
    }

    /// Sets the alignment in bytes of the first compute point, the element at the origin.
    #[must_use]
    pub fn alignment_size(mut self, bytes: i64) -> FieldSpec {
        self.alignment_size = bytes;
        self
    }

    /// Fixes extents, in the order in which the kernel indexes the field; `None` leaves an extent free.
    #[must_use]
    pub fn shape(mut self, shape: &[Option<i64>]) -> FieldSpec {
        self.shape = Some(shape.into());
        self
    }

    /// Sets whether the field may be absent.
    #[must_use]
    pub fn optional(mut self, optional: bool) -> FieldSpec {
        self.optional = optional;
        self
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the labels of the dimensions, in the order in which the kernel indexes them, unless they were left out.
    pub fn dims(&self) -> Option<&Dims> {
        self.dims.as_ref()
    }

    /// Returns how the field is used.
    pub fn declared_access(&self) -> Access {
        self.access
    }

    /// Returns the fast order of strides, if one was set.
    pub fn declared_layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Returns the alignment in bytes of the first compute point; 1 by default.
    pub fn declared_alignment_size(&self) -> i64 {
        self.alignment_size
    }

    /// Returns the fixed extents.
    pub fn declared_shape(&self) -> Option<&[Option<i64>]> {
        self.shape.as_deref()
    }

    /// Returns whether the field may be absent.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Checks that the parts are consistent.
    ///
    /// # Errors
    /// [`LayoutError`] for an alignment below 1, a layout or shape whose length differs from that of `dims`, or from each other
    /// without dims, a negative extent.
    pub fn check(&self) -> Result<(), LayoutError> {
        if self.alignment_size < 1 {
            return Err(LayoutError::AlignmentSize { got: self.alignment_size });
        }
        if let (Some(layout), Some(ndim)) = (&self.layout, self.ndim()) {
            check_len("layout", layout.len(), ndim)?;
        }
        let Some(shape) = &self.shape else { return Ok(()) };
        if let Some(ndim) = self.ndim() {
            check_len("shape", shape.len(), ndim)?;
        }
        let negative = shape.iter().enumerate().find_map(|(axis, extent)| Some((axis, extent.filter(|it| *it < 0)?)));
        negative.map_or(Ok(()), |(axis, got)| Err(LayoutError::NegativeExtent { axis, got }))
    }

    /// Returns the number of dimensions, as far as dims, shape or layout say it.
    pub(super) fn ndim(&self) -> Option<usize> {
        let (dims, shape, layout) = (self.dims.as_ref(), self.shape.as_ref(), self.layout.as_ref());
        dims.map(Dims::len).or_else(|| shape.map(|shape| shape.len())).or_else(|| layout.map(Layout::len))
    }
}
