//! The metadata of a field: dims, origin and halo.

use super::check_len;
use crate::dims::Dims;
use crate::error::{LayoutError, Result};

/// Dims, origin and halo of a field, each `None` unless it was set; [`crate::Tensor`] supplies the defaults.
///
/// # Example
/// ```
/// use dlfield::{DType, Dims, Metadata, Spec, Tensor};
/// let mut field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
/// let dims = Dims::parse(["K", "I"]).unwrap();
/// field.relabel(Metadata::default().with_dims(dims).with_halo([(0, 0), (1, 1)])).unwrap();
/// assert_eq!((field.dims().to_string(), field.origin()), ("K, I".to_owned(), vec![0, 1]));
/// ```
#[derive(Clone, Default, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metadata {
    /// The labels of the dimensions, in index order.
    pub dims: Option<Dims>,
    /// The index of the first compute point.
    pub origin: Option<Box<[i64]>>,
    /// The `(lower, upper)` widths of each dimension, in elements.
    pub halo: Option<Box<[(i64, i64)]>>,
    /// Whether a slice has cut the halo, or what is before an origin without a halo: they then mark halo points, but do not say
    /// where the domain begins.
    pub halo_is_cut: bool,
}

impl Metadata {
    /// Sets the labels of the dimensions, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Dims, Metadata};
    /// assert_eq!(Metadata::default().with_dims(Dims::standard(2)).dims, Some(Dims::standard(2)));
    /// ```
    #[must_use]
    pub fn with_dims(self, dims: Dims) -> Metadata {
        Metadata { dims: Some(dims), ..self }
    }

    /// Sets the index of the first compute point.
    ///
    /// # Example
    /// ```
    /// use dlfield::Metadata;
    /// assert_eq!(Metadata::default().with_origin([1, 0]).origin.as_deref(), Some(&[1, 0][..]));
    /// ```
    #[must_use]
    pub fn with_origin(self, origin: impl Into<Box<[i64]>>) -> Metadata {
        Metadata { origin: Some(origin.into()), ..self }
    }

    /// Sets the halo, which no slice has cut: `(lower, upper)` widths in elements, one pair per dimension.
    ///
    /// # Example
    /// ```
    /// use dlfield::Metadata;
    /// assert_eq!(Metadata::default().with_halo([(1, 1)]).halo.as_deref(), Some(&[(1, 1)][..]));
    /// ```
    #[must_use]
    pub fn with_halo(self, halo: impl Into<Box<[(i64, i64)]>>) -> Metadata {
        Metadata { halo: Some(halo.into()), halo_is_cut: false, ..self }
    }

    /// Returns whether nothing was set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.dims.is_none() && self.origin.is_none() && self.halo.is_none()
    }

    /// Checks that dims, halo and origin fit a shape, in this order: the error for a halo that is too wide names the halo, not
    /// the origin.
    pub(crate) fn check(&self, shape: &[i64]) -> Result<()> {
        if let Some(dims) = &self.dims {
            dims.check_len(shape.len())?;
        }
        if let Some(halo) = &self.halo {
            check_halo(halo, shape)?;
        }
        if let Some(origin) = &self.origin {
            check_origin(origin, shape)?;
        }
        Ok(())
    }

    /// Returns this metadata, filled up with what `other` has in addition.
    #[must_use]
    pub(crate) fn or(self, other: Metadata) -> Metadata {
        // What says where the domain begins also says whether that was cut.
        let states = |metadata: &Metadata| metadata.halo.is_some() || metadata.origin.is_some();
        let halo_is_cut = if self.halo.is_some() || states(&self) && other.halo.is_none() {
            self.halo_is_cut
        } else {
            other.halo_is_cut
        };
        let (origin, halo) = (self.origin.or(other.origin), self.halo.or(other.halo));
        Metadata { dims: self.dims.or(other.dims), origin, halo, halo_is_cut }
    }

    /// Returns this metadata with the default origin of a field with a halo, the lower widths, unless it has an origin.
    #[must_use]
    pub(crate) fn with_default_origin(self) -> Metadata {
        let lower = |halo: &[(i64, i64)]| halo.iter().map(|(lower, _)| *lower).collect();
        Metadata { origin: self.origin.or_else(|| self.halo.as_deref().map(lower)), ..self }
    }

    /// Returns this metadata with the defaults of a field for unset ones. A halo that a slice has cut is like any other
    /// then: the origin says where the domain begins.
    #[must_use]
    pub(crate) fn with_defaults(self, ndim: usize) -> Metadata {
        let Metadata { dims, origin, halo, .. } = self.with_default_origin();
        Metadata {
            dims: dims.or_else(|| Some(Dims::standard(ndim))),
            origin: origin.or_else(|| Some(vec![0; ndim].into())),
            halo: halo.or_else(|| Some(vec![(0, 0); ndim].into())),
            halo_is_cut: false,
        }
    }

    /// Reorders the dimensions; `axes` has each axis once.
    pub(crate) fn permute(&mut self, axes: &[usize]) {
        fn pick<T: Copy>(axes: &[usize], all: &[T]) -> Box<[T]> {
            axes.iter().map(|axis| all[*axis]).collect()
        }
        self.dims = self.dims.as_ref().map(|dims| dims.select(axes));
        self.origin = self.origin.as_deref().map(|origin| pick(axes, origin));
        self.halo = self.halo.as_deref().map(|halo| pick(axes, halo));
    }
}

/// Checks halo widths against the extents: 0 or more, together at most the extent.
pub(crate) fn check_halo(halo: &[(i64, i64)], shape: &[i64]) -> Result<(), LayoutError> {
    check_len("halo", halo.len(), shape.len())?;
    for (axis, ((lower, upper), extent)) in halo.iter().copied().zip(shape.iter().copied()).enumerate() {
        let fits = lower >= 0 && upper >= 0 && lower.checked_add(upper).is_some_and(|both| both <= extent);
        if !fits {
            let expected = "0 or more each, together at most the extent, which includes them";
            let got = format_args!("({lower}, {upper}) at axis {axis} of extent {extent}");
            return Err(LayoutError::new("halo", &expected, &got));
        }
    }
    Ok(())
}

/// Checks that the origin is in the field or one past its end.
pub(crate) fn check_origin(origin: &[i64], shape: &[i64]) -> Result<(), LayoutError> {
    check_len("origin", origin.len(), shape.len())?;
    for (axis, (got, extent)) in origin.iter().copied().zip(shape.iter().copied()).enumerate() {
        if !(0..=extent).contains(&got) {
            let expected = format_args!("0 to {extent} at axis {axis} of extent {extent}");
            return Err(LayoutError::new("origin", &expected, &got));
        }
    }
    Ok(())
}
