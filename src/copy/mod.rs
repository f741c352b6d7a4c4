//! Moving elements: a plan from extents and strides, and the loops that follow it.

mod host;

use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::device::DeviceError;
use crate::dtype::DTypeError;
use crate::error::Result;
use crate::layout::LayoutError;

/// One loop: how often, and how many bytes further each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    count: usize,
    to: isize,
    from: isize,
}

/// Nested loops, outermost first, that visit every element once.
#[derive(Debug, PartialEq, Eq)]
struct Plan(SmallVec<[Step; 6]>);

impl Plan {
    /// Orders the dimensions by the destination's strides, drops those of extent 1 and merges neighbours that are one
    /// run in both. Empty fields have no plan.
    fn new(shape: &[i64], to: impl Iterator<Item = i64>, from: impl Iterator<Item = i64>) -> Option<Plan> {
        let mut steps = SmallVec::<[Step; 6]>::new();
        for ((extent, to), from) in shape.iter().zip(to).zip(from) {
            let count = usize::try_from(*extent).ok()?;
            match count {
                0 => return None,
                1 => {}
                _ => steps.push(Step { count, to: isize::try_from(to).ok()?, from: isize::try_from(from).ok()? }),
            }
        }
        steps.sort_by_key(|step| std::cmp::Reverse(step.to.unsigned_abs()));
        let mut merged = SmallVec::<[Step; 6]>::new();
        for step in steps {
            let runs_on = |outer: &Step| {
                let reach = |bytes: isize| isize::try_from(step.count).ok().and_then(|count| bytes.checked_mul(count));
                reach(step.to) == Some(outer.to) && reach(step.from) == Some(outer.from)
            };
            match merged.last_mut() {
                Some(outer) if runs_on(outer) => *outer = Step { count: outer.count * step.count, ..step },
                _ => merged.push(step),
            }
        }
        Some(Plan(merged))
    }
}

/// Copies every element of `from` to the same index of `to`.
///
/// # Errors
/// [`LayoutError::Length`] or [`LayoutError::Shapes`] if the shapes differ, [`DTypeError::Different`] if the element
/// types do, [`DeviceError::NotHostReadable`] if the host cannot reach either.
///
/// # Safety
/// - All elements of `from` are readable and all of `to` writable, by this thread, for the call.
/// - The two do not overlap.
#[allow(unsafe_code, reason = "descriptors are addresses; the caller vouches for the memory behind them")]
pub(crate) unsafe fn copy(to: &Descriptor, from: &Descriptor) -> Result<()> {
    if to.shape() != from.shape() {
        return Err(LayoutError::Shapes { wanted: to.shape().to_vec(), got: from.shape().to_vec() }.into());
    }
    if to.dtype() != from.dtype() {
        return Err(DTypeError::Different { wanted: to.dtype().name(), got: from.dtype().name() }.into());
    }
    for side in [to, from] {
        if !side.device().is_host_readable() {
            return Err(DeviceError::NotHostReadable { found: side.device() }.into());
        }
    }
    if let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from.byte_strides()) {
        // SAFETY: the plan visits exactly the elements of both descriptors, which the caller vouches for.
        unsafe { host::copy(&plan.0, to.ptr(), from.ptr(), to.itemsize()) };
    }
    Ok(())
}

/// Writes the same element, given as bytes, to every index of `to`.
///
/// # Errors
/// [`DTypeError::ElementSize`] if `element` is not of the size of one element, [`DeviceError::NotHostReadable`] if
/// the host cannot reach the memory.
///
/// # Safety
/// - All elements of `to` are writable, by this thread, for the call.
#[allow(unsafe_code, reason = "descriptors are addresses; the caller vouches for the memory behind them")]
pub(crate) unsafe fn fill(to: &Descriptor, element: &[u8]) -> Result<()> {
    if element.len() != to.itemsize() {
        let (name, got, wanted) = (to.dtype().name(), element.len(), to.itemsize());
        return Err(DTypeError::ElementSize { name, got, wanted }.into());
    }
    if !to.device().is_host_readable() {
        return Err(DeviceError::NotHostReadable { found: to.device() }.into());
    }
    let from = std::iter::repeat_n(0, to.ndim());
    if let Some(plan) = Plan::new(to.shape(), to.byte_strides(), from) {
        // SAFETY: strides of 0 read the one element again and again; the writes are the caller's.
        unsafe { host::copy(&plan.0, to.ptr(), element.as_ptr(), element.len()) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], to: &[i64], from: &[i64]) -> Vec<(usize, isize, isize)> {
        let plan = Plan::new(shape, to.iter().copied(), from.iter().copied()).expect("not empty");
        plan.0.iter().map(|step| (step.count, step.to, step.from)).collect()
    }

    #[test]
    fn contiguous_dimensions_become_one_run() {
        assert_eq!(plan(&[4, 5, 6], &[240, 48, 8], &[240, 48, 8]), [(120, 8, 8)]);
        assert_eq!(plan(&[4, 5, 6], &[8, 32, 160], &[8, 32, 160]), [(120, 8, 8)]);
        assert_eq!(plan(&[4, 1, 6], &[48, 1, 8], &[64, 1, 8]), [(4, 48, 64), (6, 8, 8)]);
    }

    #[test]
    fn the_destination_decides_the_order() {
        assert_eq!(plan(&[4, 5], &[8, 32], &[40, 8]), [(5, 32, 8), (4, 8, 40)]);
        assert!(Plan::new(&[4, 0], [8, 8].into_iter(), [8, 8].into_iter()).is_none());
    }
}
