//! What a stencil wants of one field.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::alignment::WantedAlignment;
use super::{Access, Size};
use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::LayoutError;
use crate::layout::{Layout, Metadata, check_len, negative_extent, wrong_alignment_size};
use crate::preset::{Alignment, Preset};

/// The specification of one field.
///
/// # Example
/// ```
/// use dlfield::{Access, DType, Dims, FieldSpec, Layout};
/// let spec = FieldSpec::new(DType::F64, Dims::standard(3)).access(Access::Write).layout(Layout::f_order(3));
/// assert!(spec.dims().unwrap().position("K") == Some(2));
/// // Any number of dimensions, indexed by position.
/// let any = FieldSpec::new(DType::F64, None);
/// assert!(any.dims().is_none());
/// assert_eq!([spec.to_string(), any.to_string()], ["Field[float64, I J K, w, layout=[2, 1, 0]]", "Field[float64, ...]"]);
/// ```
#[derive(Clone, Debug)]
pub struct FieldSpec {
    /// A type that is allowed: `bind` first compares with this one.
    pub(super) usual_dtype: DType,
    /// The types allowed, all if there are none. Elements of other types are converted to the first.
    dtypes: SmallVec<[DType; 8]>,
    /// The number of `dims`; without them, more than any field has.
    pub(super) dims_len: usize,
    pub(super) dims: Option<Dims>,
    pub(super) access: Access,
    preset: Option<Box<Preset>>,
    layout: Option<Layout>,
    alignment_size: Option<i64>,
    /// Whether the kernel is fast in any layout.
    pub(super) any_layout: bool,
    /// The layout in effect, unless it depends on the argument.
    effective_layout: Option<Layout>,
    /// The alignment in effect.
    pub(super) alignment: WantedAlignment,
    pub(super) shape: Option<Box<[Size]>>,
    /// How many points below and above the domain the kernel reads, per dimension.
    pub(super) boundary: Option<Box<[(i64, i64)]>>,
    optional: bool,
    /// The metadata for a field without any, if `dims` says how many dimensions there are.
    pub(super) default_metadata: Arc<Metadata>,
}

impl FieldSpec {
    /// Specifies a field that is read, of this element type; `dims` are in the order in which the kernel indexes it. Without
    /// dims, the field may have any number of dimensions, and the kernel indexes it in the order in which the argument does.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec};
    /// let spec = FieldSpec::new(DType::F64, Dims::parse(["I", "K"]).unwrap());
    /// assert_eq!(spec.to_string(), "Field[float64, I K]");
    /// ```
    pub fn new(dtype: DType, dims: impl Into<Option<Dims>>) -> FieldSpec {
        let dims = dims.into();
        let origin = dims.as_ref().map(|dims| vec![0; dims.len()].into());
        let default_metadata = Arc::new(Metadata { dims: dims.clone(), origin, ..Metadata::default() });
        FieldSpec {
            usual_dtype: dtype,
            dtypes: smallvec![dtype],
            dims_len: dims.as_ref().map_or(usize::MAX, Dims::len),
            dims,
            access: Access::Read,
            preset: None,
            layout: None,
            alignment_size: None,
            any_layout: true,
            effective_layout: None,
            alignment: WantedAlignment::None,
            shape: None,
            boundary: None,
            optional: false,
            default_metadata,
        }
    }

    /// Sets the element types that the argument may have, in place of one; none for any. A copy of a field of another type has the
    /// first.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// let spec = FieldSpec::new(DType::F32, None).dtypes(&[DType::F32, DType::F64]);
    /// assert_eq!(spec.declared_dtypes(), [DType::F32, DType::F64]);
    /// assert_eq!(spec.dtype(), None);
    /// ```
    #[must_use]
    pub fn dtypes(mut self, dtypes: &[DType]) -> FieldSpec {
        self.dtypes = SmallVec::new();
        for dtype in dtypes {
            if !self.dtypes.contains(dtype) {
                self.dtypes.push(*dtype);
            }
        }
        self.usual_dtype = self.dtypes.first().copied().unwrap_or(self.usual_dtype);
        self
    }

    /// Sets how the field is used.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, FieldSpec};
    /// let spec = FieldSpec::new(DType::F64, None).access(Access::ReadWrite);
    /// assert_eq!(spec.declared_access(), Access::ReadWrite);
    /// ```
    #[must_use]
    pub fn access(mut self, access: Access) -> FieldSpec {
        self.access = access;
        self
    }

    /// Sets the order of strides in which the kernel is fast, in the order in which it indexes the field. By default it is fast in any order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout};
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2)).layout(Layout::f_order(2));
    /// assert_eq!(spec.declared_layout(), Some(&Layout::f_order(2)));
    /// ```
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> FieldSpec {
        self.layout = Some(layout);
        self.resolved()
    }

    /// Sets the alignment in bytes of the first compute point, the element at the origin.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// assert_eq!(FieldSpec::new(DType::F64, None).alignment_size(64).declared_alignment_size(), Some(64));
    /// ```
    #[must_use]
    pub fn alignment_size(mut self, bytes: i64) -> FieldSpec {
        self.alignment_size = Some(bytes);
        self.resolved()
    }

    /// Sets the preset: its layout rule and its alignment apply unless they are set explicitly. Its device does not: a device
    /// belongs to the [`Signature`](super::Signature).
    ///
    /// Without dims, the rule goes by the labels of the argument; I, J, K, "0", … if it has none.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout, Preset};
    /// let spec = FieldSpec::new(DType::F32, Dims::standard(3)).preset(Preset::find("gtmc").unwrap());
    /// assert_eq!(spec.declared_layout(), Some(&Layout::new(&[0, 2, 1], 3).unwrap()));
    /// assert_eq!(spec.declared_alignment_size(), Some(32)); // 8 elements
    /// ```
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> FieldSpec {
        self.preset = Some(Box::new(preset));
        self.resolved()
    }

    /// Computes the layout and alignment in effect from the explicit ones and the preset.
    fn resolved(mut self) -> FieldSpec {
        let by_preset = || Some(Layout::by_rule(self.preset.as_ref()?.layout(), self.dims.as_ref()?));
        self.effective_layout = self.layout.clone().or_else(by_preset);
        self.any_layout = self.layout.is_none() && self.preset.is_none();
        self.alignment = match (self.alignment_size, self.declared_preset().map(Preset::alignment)) {
            (Some(1), _) | (None, None) => WantedAlignment::None,
            (Some(bytes), _) => WantedAlignment::OriginBytes(bytes),
            (None, Some(Alignment::Elements(elements))) => WantedAlignment::OriginElements(elements),
            (None, Some(Alignment::Base(bytes))) => WantedAlignment::BaseBytes(bytes),
            (None, Some(Alignment::Rows(bytes))) => WantedAlignment::OriginBytes(i64::from(bytes)),
        };
        self
    }

    /// Sets the expected extents, in the order in which the kernel indexes the field: a [`Size`], or a fixed extent, or
    /// `None` for any.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Size};
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// assert_eq!(spec.clone().shape(&[Some(4), None]).declared_shape(), Some(&[Size::Fixed(4), Size::Any][..]));
    /// let named = spec.shape(&[Size::parse("N").unwrap(), Size::parse("N+1").unwrap()]);
    /// assert_eq!(named.to_string(), "Field[float64, I=N J=N+1]");
    /// ```
    #[must_use]
    pub fn shape<S: Clone + Into<Size>>(mut self, shape: &[S]) -> FieldSpec {
        self.shape = Some(shape.iter().cloned().map(Into::into).collect());
        self
    }

    /// Sets how many points `(lower, upper)` outside of the domain the kernel reads, in the order in which it indexes the field.
    /// [`BoundCall::domain`](super::BoundCall::domain) leaves out the upper ones; a field whose origin is below the lower ones is
    /// rejected.
    ///
    /// Source: `boundary` in `FieldInfo` of GT4Py.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2)).boundary(&[(1, 1), (0, 2)]);
    /// assert_eq!(spec.declared_boundary(), Some(&[(1, 1), (0, 2)][..]));
    /// let signature = Signature::new([("inp", spec)])?;
    /// let inp = Tensor::zeros(&Spec::new(&[6, 6], DType::F64).origin(&[1, 0]))?;
    /// assert_eq!(signature.bind(&[("inp", inp.descriptor())])?.domain().1, [4, 4]);
    /// let inp = Tensor::zeros(&Spec::new(&[6, 6], DType::F64))?;
    /// assert!(signature.bind(&[("inp", inp.descriptor())]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn boundary(mut self, boundary: &[(i64, i64)]) -> FieldSpec {
        self.boundary = Some(boundary.into());
        self
    }

    /// Sets whether the field may be absent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// assert!(FieldSpec::new(DType::F64, None).optional(true).is_optional());
    /// ```
    #[must_use]
    pub fn optional(mut self, optional: bool) -> FieldSpec {
        self.optional = optional;
        self
    }

    /// Returns the element type, if exactly one is allowed.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// let spec = FieldSpec::new(DType::F32, None);
    /// assert_eq!(spec.dtype(), Some(DType::F32));
    /// assert_eq!(spec.dtypes(&[DType::F32, DType::F64]).dtype(), None);
    /// ```
    pub fn dtype(&self) -> Option<DType> {
        if let [dtype] = self.dtypes.as_slice() { Some(*dtype) } else { None }
    }

    /// Returns the element types allowed; none if any is.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// let spec = FieldSpec::new(DType::F32, None);
    /// assert_eq!(spec.declared_dtypes(), [DType::F32]);
    /// assert!(spec.dtypes(&[]).declared_dtypes().is_empty());
    /// ```
    pub fn declared_dtypes(&self) -> &[DType] {
        &self.dtypes
    }

    /// Returns whether an element type is allowed.
    pub(super) fn accepts(&self, dtype: DType) -> bool {
        self.dtypes.is_empty() || self.dtypes.contains(&dtype)
    }

    /// Returns the element type that a copy of a field of this type has.
    pub(super) fn dtype_of_copy(&self, found: DType) -> DType {
        self.dtypes.first().copied().filter(|_| !self.accepts(found)).unwrap_or(found)
    }

    /// Returns the labels of the dimensions, in the order in which the kernel indexes them, unless they were left out.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec};
    /// assert_eq!(FieldSpec::new(DType::F32, Dims::standard(2)).dims(), Some(&Dims::standard(2)));
    /// assert_eq!(FieldSpec::new(DType::F32, None).dims(), None);
    /// ```
    pub fn dims(&self) -> Option<&Dims> {
        self.dims.as_ref()
    }

    /// Returns how the field is used.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, FieldSpec};
    /// assert_eq!(FieldSpec::new(DType::F32, None).declared_access(), Access::Read);
    /// ```
    pub fn declared_access(&self) -> Access {
        self.access
    }

    /// Returns the preset.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec, Preset};
    /// let spec = FieldSpec::new(DType::F32, None).preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// assert_eq!(spec.declared_preset().map(Preset::name), Some("gt:cpu_ifirst"));
    /// ```
    pub fn declared_preset(&self) -> Option<&Preset> {
        self.preset.as_deref()
    }

    /// Returns the fast order of strides, set explicitly or by the preset; `None` if any is fast, or if it depends on the
    /// argument, as that of a preset does without dims.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout, Preset};
    /// let spec = FieldSpec::new(DType::F32, Dims::standard(2));
    /// assert_eq!(spec.declared_layout(), None);
    /// let spec = spec.preset(Preset::find("gt:cpu_ifirst").unwrap());
    /// assert_eq!(spec.declared_layout(), Some(&Layout::f_order(2)));
    /// ```
    pub fn declared_layout(&self) -> Option<&Layout> {
        self.effective_layout.as_ref()
    }

    /// Returns the alignment in bytes, set explicitly or by the preset, of the first compute point; for presets that align the
    /// start of the memory, of the element at index 0. 1 by default; `None` if it depends on the argument's element type.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec, Preset};
    /// let spec = FieldSpec::new(DType::F32, None).preset(Preset::find("gtmc").unwrap());
    /// assert_eq!(spec.declared_alignment_size(), Some(32)); // 8 elements
    /// assert_eq!(spec.dtypes(&[DType::F32, DType::F64]).declared_alignment_size(), None);
    /// ```
    pub fn declared_alignment_size(&self) -> Option<i64> {
        let mut sizes = self.dtypes.iter().map(|dtype| self.alignment.bytes(*dtype));
        match (self.alignment, sizes.next()) {
            (WantedAlignment::OriginElements(_), first) => first.filter(|first| sizes.all(|size| size == *first)),
            (alignment, _) => Some(alignment.bytes(DType::U8)),
        }
    }

    /// Returns the dims if they have several labels, but none of those by which the preset orders strides.
    pub(crate) fn unplaced_dims(&self) -> Option<&Dims> {
        let (preset, dims) = (self.preset.as_ref()?, self.dims.as_ref()?);
        (self.layout.is_none() && !preset.layout().places(dims)).then_some(dims)
    }

    /// Returns the explicit layout and alignment, which override the preset's.
    pub(crate) fn explicit(&self) -> (Option<&Layout>, Option<i64>) {
        (self.layout.as_ref(), self.alignment_size)
    }

    /// Returns the order of strides in which the kernel is fast for this field, if there is one.
    pub(crate) fn fast_layout(&self, field: &Descriptor) -> Option<Cow<'_, Layout>> {
        match (&self.effective_layout, &self.preset) {
            (Some(layout), _) => Some(Cow::Borrowed(layout)),
            (None, None) => None,
            (None, Some(preset)) => {
                let dims = field.dims().cloned().unwrap_or_else(|| Dims::standard(field.ndim()));
                Some(Cow::Owned(Layout::by_rule(preset.layout(), &dims)))
            }
        }
    }

    /// Returns the expected extents.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Size};
    /// let spec = FieldSpec::new(DType::F32, Dims::standard(1));
    /// assert_eq!(spec.declared_shape(), None);
    /// assert_eq!(spec.shape(&[Some(5)]).declared_shape(), Some(&[Size::Fixed(5)][..]));
    /// ```
    pub fn declared_shape(&self) -> Option<&[Size]> {
        self.shape.as_deref()
    }

    /// Returns how many points outside of the domain the kernel reads, if that was set.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// assert_eq!(FieldSpec::new(DType::F32, None).declared_boundary(), None);
    /// ```
    pub fn declared_boundary(&self) -> Option<&[(i64, i64)]> {
        self.boundary.as_deref()
    }

    /// Returns whether the field may be absent.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, FieldSpec};
    /// assert!(!FieldSpec::new(DType::F32, None).is_optional());
    /// ```
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Checks that the parts are consistent.
    ///
    /// # Errors
    /// [`LayoutError`] for an alignment below 1, a layout, shape or boundary whose length differs from that of `dims`, or from each
    /// other without dims, a negative extent or boundary.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout};
    /// let spec = FieldSpec::new(DType::F32, Dims::standard(3)).layout(Layout::f_order(2));
    /// assert_eq!(spec.check().unwrap_err().to_string(), "layout: expected one entry for each dimension, got 2 entries for 3 dimensions");
    /// ```
    pub fn check(&self) -> Result<(), LayoutError> {
        if let Some(got) = self.alignment_size.filter(|bytes| *bytes < 1) {
            return Err(wrong_alignment_size(got));
        }
        if let (Some(layout), Some(ndim)) = (&self.layout, self.ndim()) {
            check_len("layout", layout.len(), ndim)?;
        }
        if let (Some(boundary), Some(ndim)) = (&self.boundary, self.ndim()) {
            check_len("boundary", boundary.len(), ndim)?;
            if let Some(axis) = boundary.iter().position(|(lower, upper)| *lower < 0 || *upper < 0) {
                let got = format_args!("{:?} at axis {axis}", boundary[axis]);
                return Err(LayoutError::new("boundary", &"0 or more points each", &got));
            }
        }
        let Some(shape) = &self.shape else { return Ok(()) };
        if let Some(ndim) = self.ndim() {
            check_len("shape", shape.len(), ndim)?;
        }
        let negative = |size: &Size| if let Size::Fixed(got @ ..0) = size { Some(*got) } else { None };
        let negative = shape.iter().enumerate().find_map(|(axis, size)| Some((axis, negative(size)?)));
        negative.map_or(Ok(()), |(axis, got)| Err(negative_extent(axis, got)))
    }

    /// Returns the number of dimensions, as far as dims, shape, layout or boundary say it.
    pub(super) fn ndim(&self) -> Option<usize> {
        let (dims, shape, layout) = (self.dims.as_ref(), self.shape.as_ref(), self.layout.as_ref());
        let by_layout = || layout.map(Layout::len).or_else(|| self.boundary.as_ref().map(|boundary| boundary.len()));
        dims.map(Dims::len).or_else(|| shape.map(|shape| shape.len())).or_else(by_layout)
    }
}
