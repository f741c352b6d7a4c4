//! What to allocate for a result.

use smallvec::SmallVec;

use super::{Labelled, check_halos, order};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Extents, Halo, LayoutError, Padding, Spec, lcm};
use crate::tensor::Tensor;

impl Labelled {
    /// What to allocate for a result with these labels and sizes.
    ///
    /// The layout, padding and device are those of the first input that has dimensions, but rows of one element are not padded; dimensions that it lacks are placed as the next inputs
    /// have them, those that nothing relates in C order if the first input is in C order, else with larger strides than all
    /// others. The alignment is the least common multiple of all inputs'. Aligned index, halo and origin are the largest per
    /// dimension over the inputs that have it in this size; in a dimension that is kept by a reduction they are 0. Where the
    /// halos that slices have left of two inputs leave no room for both, the upper one gives way. Inputs are the fields that
    /// decide: other operands need not be among them.
    ///
    /// # Errors
    /// [`LayoutError::AlignmentMultiple`] if no 64-bit number is a multiple of all alignments; what [`super::check_halos`] says
    /// of the inputs.
    ///
    /// # Example
    /// ```
    /// use dlfield::arithmetic::Labelled;
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = |bytes| Spec::new(&[8, 8], DType::F32).alignment_size(bytes);
    /// let (a, b) = (Tensor::zeros(&field(32).halo(&[(2, 0), (0, 1)])).unwrap(), Tensor::zeros(&field(48)).unwrap());
    /// let sum = Tensor::empty(&Labelled::of(&a).spec(DType::F32, &[&a, &b]).unwrap()).unwrap();
    /// assert_eq!((sum.alignment_size(), sum.halo().as_slice()), (96, &[(2, 0), (0, 1)][..]));
    /// ```
    pub fn spec(&self, dtype: DType, inputs: &[&Tensor]) -> Result<Spec, LayoutError> {
        let layout = order::layout(self, inputs);
        let has_rows = layout.axes().last().is_some_and(|axis| self.shape()[*axis] != 1);
        let mut spec = Spec::new(self.shape(), dtype).layout(layout);
        if let Some(first) = order::with_dims(inputs).first() {
            // NumPy 2.4 computes `negative` and `isfinite` wrongly into elements that do not lie side by side.
            let padding = if has_rows { first.padding() } else { Padding::None };
            spec = spec.padding(padding).device(first.descriptor().device());
        }
        let stated = |of: fn(&Tensor) -> bool| inputs.iter().any(|input| of(input));
        if stated(|input| input.descriptor().dims().is_some()) || *self.dims() != Dims::standard(self.shape().len()) {
            spec = spec.dims(self.dims().clone());
        }
        let mut alignment = 1;
        for input in inputs {
            let (left, right) = (alignment, input.alignment_size());
            alignment = lcm(left, right).ok_or(LayoutError::AlignmentMultiple { left, right })?;
        }
        spec = spec.alignment_size(alignment);
        check_halos(inputs)?;
        let has_halo = stated(|input| input.descriptor().halo().is_some());
        let has_origin = stated(|input| input.descriptor().origin().is_some());
        if !has_halo && !has_origin && !stated(Tensor::aligns_elsewhere) {
            return Ok(spec);
        }
        let found = Margins::of(self, inputs);
        if has_halo {
            spec = spec.halo(&found.halo).halo_is_cut(stated(|input| input.descriptor().halo_is_cut()));
        }
        if has_origin {
            spec = spec.origin(&found.origin);
        }
        // Zeros have to be stated beside a halo, which would be the default.
        if has_halo || found.aligned_index.iter().any(|entry| *entry != 0) {
            spec = spec.aligned_index(&found.aligned_index);
        }
        Ok(spec)
    }

    /// The axis here of each axis of an input, where its points are the result's.
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

/// The largest of what the inputs say per dimension.
struct Margins {
    halo: Halo,
    origin: Extents,
    aligned_index: Extents,
}

impl Margins {
    fn of(result: &Labelled, inputs: &[&Tensor]) -> Margins {
        let ndim = result.shape.len();
        let none = Extents::from_elem(0, ndim);
        let mut found = Margins { halo: Halo::from_elem((0, 0), ndim), origin: none.clone(), aligned_index: none };
        for input in inputs {
            let (halo, origin, aligned_index) = (input.halo(), input.origin(), input.aligned_index());
            for (axis, at) in result.places(input).into_iter().enumerate() {
                let Some(at) = at else { continue };
                let (lower, upper) = &mut found.halo[at];
                (*lower, *upper) = ((*lower).max(halo[axis].0), (*upper).max(halo[axis].1));
                found.origin[at] = found.origin[at].max(origin[axis]);
                found.aligned_index[at] = found.aligned_index[at].max(aligned_index[axis]);
            }
        }
        for ((lower, upper), extent) in found.halo.iter_mut().zip(&result.shape) {
            *upper = (*upper).min(extent - *lower);
        }
        found
    }
}
