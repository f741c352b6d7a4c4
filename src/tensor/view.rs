//! Views: other descriptors of the same memory.

use super::index::{out_of_bounds, too_many};
use super::{Index, Tensor};
use crate::dims::wrong_axes;
use crate::error::{DimsError, IndexError, Result};
use crate::layout::{Extents, Halo, Metadata, Promise};

impl Tensor {
    /// Returns the part of the field that an index selects; dimensions that it does not mention stay whole.
    ///
    /// A range with step 1 reduces origin and halo by the cut points, not below 0; step -1 also turns them round, as it does the
    /// points; another step sets both to 0 in that dimension.
    ///
    /// # Errors
    /// [`IndexError`] for more entries than dimensions, or one outside the field.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Index, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let turned = field.view(&[Index::At(-1), Index::Range { start: 4, len: 5, step: -1 }]).unwrap();
    /// assert_eq!((turned.descriptor().strides(), turned.dims().to_string()), (&[-1][..], "J".to_owned()));
    /// ```
    pub fn view(&self, index: &[Index]) -> Result<Tensor> {
        let from = &self.descriptor;
        if index.len() > from.ndim() {
            return Err(too_many(index.len(), from.ndim()).into());
        }
        let (origin, halo, old_aligned) = (self.inline_origin(), self.halo(), self.aligned_index());
        let itemsize = i64::try_from(from.itemsize()).unwrap_or(i64::MAX);
        let mut axes = smallvec::SmallVec::<[usize; 6]>::new();
        let (mut shape, mut strides, mut new_origin) = (Extents::new(), Extents::new(), Extents::new());
        let (mut new_halo, mut aligned_index, mut offset) = (Halo::new(), Extents::new(), 0i64);
        let mut is_cut = false;
        for axis in 0..from.ndim() {
            let (extent, stride) = (from.shape()[axis], from.strides()[axis]);
            let (start, len, step) = match index.get(axis).copied().unwrap_or(Index::All) {
                Index::At(got) => {
                    let position = if got < 0 { got.saturating_add(extent) } else { got };
                    if !(0..extent).contains(&position) {
                        return Err(out_of_bounds(axis, got, extent).into());
                    }
                    // Inside the field, whose span the descriptor has checked. A field without elements has no span: its views
                    // may point anywhere, as nothing is there.
                    offset = offset.wrapping_add(position.wrapping_mul(stride));
                    continue;
                }
                Index::All => (0, extent, 1),
                Index::Range { start, len, step } => {
                    let last = len
                        .checked_sub(1)
                        .and_then(|steps| steps.checked_mul(step))
                        .and_then(|way| way.checked_add(start));
                    let inside =
                        len > 0 && (0..extent).contains(&start) && last.is_some_and(|last| (0..extent).contains(&last));
                    if step == 0 || (len != 0 && !inside) {
                        let expected = format_args!("a range inside the extent {extent} at axis {axis}");
                        return Err(
                            IndexError::new("index", &expected, &format_args!("{len} from {start} by {step}")).into()
                        );
                    }
                    (start, len, step)
                }
            };
            axes.push(axis);
            shape.push(len);
            // The step of a range of one position may be any number, and means nothing.
            strides.push(stride.checked_mul(step).unwrap_or(1));
            if len > 0 {
                offset = offset.wrapping_add(start.wrapping_mul(stride));
            }
            if matches!(step, 1 | -1) {
                // What the same points have in the field's direction.
                let start = if step == 1 { start } else { start.saturating_sub(len).saturating_add(1) };
                let (lower, upper) = halo[axis];
                let lower = lower.saturating_sub(start).clamp(0, len);
                let cut_above = extent.saturating_sub(start).saturating_sub(len);
                let upper = upper.saturating_sub(cut_above).clamp(0, len - lower);
                let first = origin[axis].saturating_sub(start).clamp(0, len);
                let aligned = Some(old_aligned[axis].saturating_sub(start)).filter(|at| (0..=len).contains(at));
                is_cut |= (lower, upper) != halo[axis];
                if step == 1 {
                    new_halo.push((lower, upper));
                    new_origin.push(first);
                    aligned_index.push(aligned.unwrap_or(0));
                } else {
                    new_halo.push((upper, lower));
                    // As far from the domain's first point as before, which is 0 for nearly every field.
                    new_origin.push((upper - lower).saturating_add(first).clamp(0, len));
                    aligned_index.push(aligned.map_or(0, |at| (len - 1 - at).max(0)));
                }
            } else {
                new_halo.push((0, 0));
                new_origin.push(0);
                aligned_index.push(0);
                is_cut |= halo[axis] != (0, 0);
            }
            // Without a halo, nothing else says that a slice has left out points before the origin, or behind.
            is_cut |= from.halo().is_none() && len != extent;
        }
        let ptr = from.ptr().wrapping_offset(isize::try_from(offset.wrapping_mul(itemsize)).unwrap_or(0));
        let mut view = self.describe_again(ptr, &axes, shape, strides, new_origin, new_halo, aligned_index)?;
        if is_cut {
            view.descriptor.set_halo_is_cut(true);
        }
        Ok(view)
    }

    /// Returns the field with its dimensions and labels in another order.
    ///
    /// # Errors
    /// [`DimsError`] if `axes` does not contain each dimension once.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// let turned = field.transpose(&[1, 0]).unwrap();
    /// assert_eq!((turned.descriptor().strides(), turned.dims().to_string()), (&[1, 5][..], "J, I".to_owned()));
    /// ```
    pub fn transpose(&self, axes: &[usize]) -> Result<Tensor> {
        let ndim = self.descriptor.ndim();
        if axes.len() != ndim || !(0..ndim).all(|axis| axes.contains(&axis)) {
            return Err(wrong_axes(axes, ndim).into());
        }
        fn pick<T: Copy, C: FromIterator<T>>(axes: &[usize], all: &[T]) -> C {
            axes.iter().map(|axis| all[*axis]).collect()
        }
        let from = &self.descriptor;
        let (shape, strides) = (pick(axes, from.shape()), pick(axes, from.strides()));
        let (origin, halo) = (pick(axes, &self.inline_origin()), pick(axes, self.halo()));
        self.describe_again(from.ptr(), axes, shape, strides, origin, halo, pick(axes, self.aligned_index()))
    }

    /// Returns the axis of a label.
    ///
    /// # Errors
    /// [`DimsError`] if no axis has it.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
    /// assert_eq!(field.axis("J").unwrap(), 1);
    /// assert!(field.axis("K").is_err());
    /// ```
    pub fn axis(&self, label: &str) -> Result<usize> {
        let dims = self.dims();
        let unknown = || DimsError::new("axes", &format_args!("one of {dims}"), &format_args!("{label:?}"));
        Ok(dims.position(label).ok_or_else(unknown)?)
    }

    /// Returns the field without its halo.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 2), (0, 1)])).unwrap();
    /// assert_eq!(field.domain_view().descriptor().shape(), [1, 4]);
    /// ```
    pub fn domain_view(&self) -> Tensor {
        let inside = |((lower, upper), extent): (&(i64, i64), &i64)| {
            let len = extent - lower - upper;
            // An empty range may start anywhere; 0 is always a legal start.
            Index::Range { start: if len == 0 { 0 } else { *lower }, len, step: 1 }
        };
        let halo = self.halo();
        let index: smallvec::SmallVec<[Index; 6]> = halo.iter().zip(self.descriptor.shape()).map(inside).collect();
        // The halo fits the shape, so the view always exists.
        let mut inside = self.view(&index).unwrap_or_else(|_| self.clone());
        if self.descriptor.halo().is_some() {
            // This is the whole domain, also after a cut.
            inside.descriptor.set_halo_is_cut(false);
        }
        inside
    }

    #[allow(clippy::too_many_arguments, reason = "one view has this many parts, and two callers")]
    fn describe_again(
        &self,
        ptr: *mut u8,
        axes: &[usize],
        shape: Extents,
        strides: Extents,
        origin: Extents,
        halo: Halo,
        aligned_index: Extents,
    ) -> Result<Tensor> {
        let from = &self.descriptor;
        let mut descriptor =
            crate::Descriptor::new(ptr, from.device(), from.dtype(), from.is_readonly(), &shape, &strides)?;
        let is_reordered = axes.iter().enumerate().any(|(new, old)| new != *old);
        descriptor.relabel(Metadata {
            dims: (from.dims().is_some() || is_reordered).then(|| self.dims().select(axes)),
            origin: from.origin().map(|_| origin.as_slice().into()),
            halo: from.halo().map(|_| halo.as_slice().into()),
            halo_is_cut: from.halo_is_cut(),
        })?;
        let promise = Promise {
            layout: self.promise.layout.as_ref().map(|layout| layout.select(axes)),
            padding: self.promise.padding,
            alignment_size: self.remaining_alignment(&descriptor, &aligned_index),
            aligned_index: aligned_index.iter().any(|entry| *entry != 0).then(|| aligned_index.as_slice().into()),
        };
        // A view has no element twice.
        let is_whole = self.is_whole && descriptor.size() == from.size();
        Ok(Tensor { descriptor, owner: self.owner.clone(), promise, is_whole })
    }

    /// Returns the part of the promised alignment that holds at the view's aligned index: it divides both the promise and the
    /// address there, so it is true after any cut.
    pub(super) fn remaining_alignment(&self, view: &crate::Descriptor, aligned_index: &[i64]) -> i64 {
        let itemsize = i64::try_from(view.itemsize()).unwrap_or(i64::MAX);
        let offset = crate::layout::offset(aligned_index, view.strides(), itemsize);
        let start = i64::try_from(view.ptr().addr()).ok();
        match offset.zip(start).and_then(|(offset, start)| start.checked_add(offset)) {
            Some(address) => {
                let promised = self.promise.alignment_size;
                crate::layout::gcd(promised, address.rem_euclid(promised))
            }
            None => 1,
        }
    }
}
