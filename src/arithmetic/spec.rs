//! The allocation of a result.

use smallvec::SmallVec;

use super::{LabelledShape, check_halos, order};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind};
use crate::layout::{Extents, Halo, Padding, Spec, lcm};
use crate::tensor::Tensor;

impl LabelledShape {
    /// Returns what to allocate for a result with these dims and this shape.
    ///
    /// `inputs` are the fields that decide; other operands need not be among them. Layout and padding are those of the input with most
    /// elements of its own, the first of several, but rows of one element are not padded; the device is that of the first input that
    /// has dimensions. Further inputs place the dimensions that the largest one does not have; those that no input relates to the others are
    /// placed in C order if it is in C order, else with larger strides than all others. The alignment is the least common multiple of the inputs' alignments. Aligned index,
    /// halo and origin are the largest per dimension over the inputs that have it with this extent; they are 0 in a dimension
    /// that a reduction has kept. A halo that a slice has cut, and its origin, count only in dimensions for which no input
    /// states a halo; where such halos together exceed the extent, the upper width is reduced.
    ///
    /// # Errors
    /// [`LayoutError`] if the least common multiple is not below 2**63 bytes; the errors of
    /// [`super::check_halos`] on the inputs.
    ///
    /// # Example
    /// ```
    /// use dlfield::arithmetic::LabelledShape;
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = |bytes| Spec::new(&[8, 8], DType::F32).alignment_size(bytes);
    /// let (a, b) = (Tensor::zeros(&field(32).halo(&[(2, 0), (0, 1)])).unwrap(), Tensor::zeros(&field(48)).unwrap());
    /// let sum = Tensor::empty(&LabelledShape::of(&a).spec(DType::F32, &[&a, &b]).unwrap()).unwrap();
    /// assert_eq!((sum.alignment_size(), sum.halo()), (96, &[(2, 0), (0, 1)][..]));
    /// ```
    pub fn spec(&self, dtype: DType, inputs: &[&Tensor]) -> Result<Spec, LayoutError> {
        let layout = order::layout(self, inputs);
        let has_rows = layout.axes().last().is_some_and(|axis| self.shape()[axis] != 1);
        let mut spec = Spec::new(self.shape(), dtype).layout(layout);
        if let Some(first) = order::with_dims(inputs).first() {
            // NumPy 2.4 computes `negative` and `isfinite` wrongly if the output elements are not contiguous.
            let largest = order::largest(inputs).map_or(first, |place| &inputs[place]);
            let padding = if has_rows { largest.padding() } else { Padding::None };
            spec = spec.padding(padding).with_device(first.descriptor().device());
        }
        let any_input = |of: fn(&Tensor) -> bool| inputs.iter().any(|input| of(input));
        if any_input(|input| input.descriptor().dims().is_some()) || *self.dims() != Dims::standard(self.shape().len())
        {
            spec = spec.dims(self.dims().clone());
        }
        let mut alignment = 1;
        for input in inputs {
            let (left, right) = (alignment, input.alignment_size());
            alignment = lcm(left, right).ok_or_else(|| {
                let expected = "alignments with a common multiple below 2**63";
                LayoutError::new("alignment_size", &expected, &format_args!("{left} and {right} bytes"))
                    .with_fix(&"copy one to another alignment")
                    .with_kind(LayoutErrorKind::TooLarge)
            })?;
        }
        spec = spec.alignment_size(alignment);
        check_halos(inputs)?;
        let has_halo = any_input(|input| input.descriptor().halo().is_some());
        let has_origin = any_input(|input| input.descriptor().origin().is_some());
        if !has_halo && !has_origin && !any_input(Tensor::aligns_elsewhere) {
            return Ok(spec);
        }
        let found = Margins::of(self, inputs);
        let is_cut = found.is_any_cut(inputs);
        if has_halo {
            spec = spec.halo(&found.halo).halo_is_cut(is_cut);
        }
        if has_origin {
            spec = spec.origin(&found.origin).halo_is_cut(is_cut);
        }
        // With a halo, zeros must be set explicitly: its lower widths would be the default.
        if has_halo || found.aligned_index.iter().any(|entry| *entry != 0) {
            spec = spec.aligned_index(&found.aligned_index);
        }
        Ok(spec)
    }

    /// Returns, for each axis of an input, the axis here with the same label, if the extents are equal and no reduction has
    /// kept it.
    fn places(&self, input: &Tensor) -> SmallVec<[Option<usize>; 6]> {
        let shape = input.descriptor().shape();
        let same = |axis: usize, at: &usize| self.shape[*at] == shape[axis] && !self.collapsed.contains(at);
        let dims = input.dims();
        if dims == self.dims {
            return (0..shape.len()).map(|axis| Some(axis).filter(|at| same(axis, at))).collect();
        }
        let place = |label| self.dims.iter().position(|known| known == label);
        dims.iter().enumerate().map(|(axis, label)| place(label).filter(|at| same(axis, at))).collect()
    }
}

/// The largest values of the inputs, per dimension.
struct Margins {
    halo: Halo,
    origin: Extents,
    aligned_index: Extents,
    /// Whether an input states a halo or an origin.
    is_stated: SmallVec<[bool; 6]>,
}

impl Margins {
    fn of(result: &LabelledShape, inputs: &[&Tensor]) -> Margins {
        let ndim = result.shape.len();
        let none = Extents::from_elem(0, ndim);
        let mut found = Margins {
            halo: Halo::from_elem((0, 0), ndim),
            origin: none.clone(),
            aligned_index: none,
            is_stated: SmallVec::from_elem(false, ndim),
        };
        // What is stated comes first: where there is something, a slice has nothing.
        for is_cut in [false, true] {
            for input in inputs.iter().filter(|input| input.descriptor().halo_is_cut() == is_cut) {
                found.include(result, input);
            }
        }
        for ((lower, upper), extent) in found.halo.iter_mut().zip(&result.shape) {
            *upper = (*upper).min(extent - *lower);
        }
        found
    }

    fn include(&mut self, result: &LabelledShape, input: &Tensor) {
        let (halo, origin, aligned_index) = (input.halo(), input.inline_origin(), input.aligned_index());
        let (descriptor, is_cut) = (input.descriptor(), input.descriptor().halo_is_cut());
        let states = descriptor.halo().is_some() || descriptor.origin().is_some();
        for (axis, at) in result.places(input).into_iter().enumerate() {
            let Some(at) = at else { continue };
            self.aligned_index[at] = self.aligned_index[at].max(aligned_index[axis]);
            if is_cut && self.is_stated[at] {
                continue;
            }
            let (lower, upper) = &mut self.halo[at];
            (*lower, *upper) = ((*lower).max(halo[axis].0), (*upper).max(halo[axis].1));
            self.origin[at] = self.origin[at].max(origin[axis]);
            self.is_stated[at] |= states && !is_cut;
        }
    }

    /// Whether a dimension may have its halo from an input that a slice has cut.
    fn is_any_cut(&self, inputs: &[&Tensor]) -> bool {
        inputs.iter().any(|input| input.descriptor().halo_is_cut())
            && !self.is_stated.iter().all(|is_stated| *is_stated)
    }
}
