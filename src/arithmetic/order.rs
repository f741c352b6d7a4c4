//! The stride order of the result.

use smallvec::SmallVec;

use super::LabelledShape;
use crate::layout::Layout;
use crate::tensor::Tensor;

type Axes = SmallVec<[usize; 6]>;

/// Returns the layout of a result: that of the largest input; further inputs place the dimensions that it does not have.
pub(super) fn layout(result: &LabelledShape, inputs: &[&Tensor]) -> Layout {
    let ndim = result.shape().len();
    let Some(place) = largest(inputs) else { return Layout::c_order(ndim) };
    let first = inputs[place];
    if first.dims() == *result.dims() {
        return first.layout();
    }
    let mut placed = by_stride(result, first);
    let others = inputs.iter().enumerate().filter(|(other, _)| *other != place);
    let others: SmallVec<[Axes; 4]> = others.map(|(_, input)| by_stride(result, input)).collect();
    let in_c_order = first.layout() == Layout::c_order(first.descriptor().ndim());
    while placed.len() < ndim {
        if others.iter().any(|order| relate(&mut placed, order)) {
            continue;
        }
        // No input has this axis next to one that is placed.
        let Some(axis) = (0..ndim).find(|axis| !placed.contains(axis)) else { break };
        let behind = placed.iter().position(|other| *other > axis).unwrap_or(placed.len());
        placed.insert(if in_c_order { behind } else { 0 }, axis);
    }
    let mut ranks = SmallVec::<[i64; 16]>::from_elem(0, ndim);
    for (rank, axis) in (0i64..).zip(placed) {
        ranks[axis] = rank;
    }
    // Each axis is placed once.
    Layout::new(&ranks, ndim).unwrap_or_else(|_| Layout::c_order(ndim))
}

/// Returns the position of the input with dimensions and most elements of its own, the first of several. A repeated dimension has one
/// element; its stride says nothing.
pub(super) fn largest(inputs: &[&Tensor]) -> Option<usize> {
    let own = |input: &Tensor| {
        let descriptor = input.descriptor();
        let extents = descriptor.shape().iter().zip(descriptor.strides());
        extents.fold(1i64, |all, (extent, stride)| if *stride == 0 { all } else { all.saturating_mul(*extent) })
    };
    let mut found: Option<(usize, i64)> = None;
    for (place, input) in inputs.iter().enumerate().filter(|(_, input)| input.descriptor().ndim() > 0) {
        let elements = own(input);
        if found.is_none_or(|(_, most)| elements > most) {
            found = Some((place, elements));
        }
    }
    found.map(|(place, _)| place)
}

/// Returns the inputs from the first one that has dimensions; an input without dimensions has no layout.
pub(super) fn with_dims<'a, 'b>(inputs: &'a [&'b Tensor]) -> &'a [&'b Tensor] {
    let first = inputs.iter().position(|input| input.descriptor().ndim() > 0);
    &inputs[first.unwrap_or(0)..]
}

/// Returns the result's axes that an input has, by decreasing stride of that input.
fn by_stride(result: &LabelledShape, input: &Tensor) -> Axes {
    let dims = input.dims();
    let labels: SmallVec<[_; 6]> = dims.iter().collect();
    let place = |axis: usize| result.dims().iter().position(|label| label == labels[axis]);
    input.layout().axes().filter_map(place).collect()
}

/// Places the first axis of an input's stride order that is not placed yet and has a placed neighbour: after the nearest placed
/// axis before it, else before the nearest one after it. Returns whether there was one.
fn relate(placed: &mut Axes, order: &[usize]) -> bool {
    let position = |placed: &Axes, axis: &usize| placed.iter().position(|other| other == axis);
    for (at, axis) in order.iter().enumerate() {
        if placed.contains(axis) {
            continue;
        }
        let after = order[..at].iter().rev().find_map(|before| position(placed, before)).map(|place| place + 1);
        let before = || order[at + 1..].iter().find_map(|behind| position(placed, behind));
        if let Some(place) = after.or_else(before) {
            placed.insert(place, *axis);
            return true;
        }
    }
    false
}
