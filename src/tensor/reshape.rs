//! Views of other shapes.

use super::Tensor;
use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::error::{LayoutError, LayoutErrorKind, Result, Tuple};
use crate::layout::{Extents, Metadata, Promise};

impl Tensor {
    /// Returns a view of another shape: the same elements in C order, on the same memory.
    ///
    /// `dims` are the new labels, the standard ones without them. A shape that stays the same keeps labels, origin and halo.
    ///
    /// # Errors
    /// [`LayoutError`] if the shapes have different numbers of elements, or if no strides reach the elements in C order;
    /// [`DimsError`](crate::DimsError) if `dims` has another length than `shape`.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 6], DType::F64)).unwrap();
    /// let view = field.reshape(&[2, 2, 6], None).unwrap();
    /// assert_eq!(view.descriptor().strides(), [12, 6, 1]);
    /// assert!(field.transpose(&[1, 0]).unwrap().reshape(&[24], None).is_err());
    /// ```
    pub fn reshape(&self, shape: &[i64], dims: Option<Dims>) -> Result<Tensor> {
        let from = &self.descriptor;
        if from.shape() == shape {
            let mut same = self.clone();
            if dims.is_some() {
                same.relabel(Metadata { dims, ..Metadata::default() })?;
            }
            return Ok(same);
        }
        let other_size = || {
            let expected = format_args!("as many elements as the field of shape {}", Tuple(from.shape()));
            LayoutError::new("shape", &expected, &Tuple(shape))
        };
        // Extents of 0 must not hide an overflow.
        let sizes =
            shape.iter().filter(|extent| **extent != 0).try_fold(1i64, |size, extent| size.checked_mul(*extent));
        let size = sizes.map(|size| if shape.contains(&0) { 0 } else { size });
        if size != Some(from.size()) || shape.iter().any(|extent| *extent < 0) {
            return Err(other_size().into());
        }
        let strides = strides(from.shape(), from.strides(), shape).ok_or_else(|| {
            let (from, strides) = (Tuple(from.shape()), Tuple(from.strides()));
            let got = format_args!("{} for a field of shape {from} with strides of {strides} elements", Tuple(shape));
            LayoutError::new("shape", &"a split or merge of contiguous dimensions", &got)
                .with_fix(&"reshape a copy in C order")
                .with_kind(LayoutErrorKind::NeedsCopy)
        })?;
        let mut descriptor =
            Descriptor::new(from.ptr(), from.device(), from.dtype(), from.is_readonly(), shape, &strides)?;
        descriptor.relabel(Metadata { dims, ..Metadata::default() })?;
        let promise = Promise {
            layout: None,
            padding: self.promise.padding,
            alignment_size: self.remaining_alignment(&descriptor, &Extents::from_elem(0, shape.len())),
            aligned_index: None,
        };
        Ok(Tensor { descriptor, owner: self.owner.clone(), promise, is_whole: self.is_whole })
    }
}

/// The strides by which a new shape of the same size reaches the elements in C order; `None` if there are none.
///
/// Groups of dimensions with the same number of elements, from the first on, are matched. Those of the old shape must be
/// contiguous in each group.
fn strides(old_shape: &[i64], old_strides: &[i64], shape: &[i64]) -> Option<Extents> {
    let mut found = Extents::from_elem(1, shape.len());
    if shape.contains(&0) {
        return Some(found);
    }
    // Dimensions of one point have no stride.
    let old: Vec<(i64, i64)> =
        old_shape.iter().copied().zip(old_strides.iter().copied()).filter(|(extent, _)| *extent != 1).collect();
    let (mut old_start, mut start) = (0, 0);
    while old_start < old.len() {
        let (mut old_end, mut end) = (old_start + 1, start + 1);
        let (mut old_count, mut count) = (old[old_start].0, shape[start]);
        while old_count != count {
            if count < old_count {
                count *= shape[end];
                end += 1;
            } else {
                old_count *= old[old_end].0;
                old_end += 1;
            }
        }
        let group = &old[old_start..old_end];
        if group.windows(2).any(|pair| Some(pair[0].1) != pair[1].0.checked_mul(pair[1].1)) {
            return None;
        }
        let mut step = group.last().map_or(1, |(_, stride)| *stride);
        for axis in (start..end).rev() {
            found[axis] = step;
            step = step.checked_mul(shape[axis])?;
        }
        (old_start, start) = (old_end, end);
    }
    // As in NumPy, dimensions of one point at the end have the last stride.
    if let Some(last) = start.checked_sub(1).map(|axis| found[axis]) {
        found[start..].fill(last);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::strides;

    #[test]
    fn strides_are_numpys() {
        for (shape, old, new, expected) in [
            (&[4, 6][..], &[6, 1][..], &[24][..], Some(&[1][..])),
            (&[4, 6], &[8, 1], &[24], None),
            (&[4, 6], &[8, 1], &[2, 2, 3, 2], Some(&[16, 8, 2, 1])),
            (&[4, 6], &[8, 1], &[4, 1, 6, 1], Some(&[8, 6, 1, 1])),
            (&[4, 6], &[-6, -1], &[24], Some(&[-1])),
            (&[6, 4], &[1, 6], &[24], None),
            (&[3, 4, 5], &[0, 5, 1], &[3, 20], Some(&[0, 1])),
            (&[4, 6], &[1, 4], &[4, 6, 1], Some(&[1, 4, 4])),
            (&[1, 1], &[7, 9], &[1], Some(&[1])),
            (&[1], &[7], &[], Some(&[])),
            (&[0, 5], &[5, 1], &[5, 0], Some(&[1, 1])),
        ] {
            assert_eq!(strides(shape, old, new).as_deref(), expected, "{shape:?} {old:?} {new:?}");
        }
    }
}
