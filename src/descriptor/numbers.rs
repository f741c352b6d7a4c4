//! Shape and strides of a descriptor, where it lies.

/// This many dimensions need no allocation: a grid and three data dimensions.
const FEW: usize = 6;

/// Shape and strides.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub(super) ndim: usize,
    /// The shape of few dimensions, then their strides.
    few: [[i64; FEW]; 2],
    /// The shape of more dimensions, then their strides.
    many: Option<Box<[i64]>>,
}

impl Numbers {
    /// One extent of 0.
    pub(super) const NONE: Numbers = Numbers { ndim: 1, few: [[0; FEW]; 2], many: None };

    /// Room for so many extents and so many strides, whatever is in there.
    #[inline]
    pub(super) fn room(&mut self, ndim: usize) -> (&mut [i64], &mut [i64]) {
        self.ndim = ndim;
        if ndim <= FEW {
            self.many = None;
            let [shape, strides] = &mut self.few;
            (&mut shape[..ndim], &mut strides[..ndim])
        } else {
            self.many.insert(vec![0; 2 * ndim].into()).split_at_mut(ndim)
        }
    }

    #[inline]
    pub(super) fn split(&self) -> (&[i64], &[i64]) {
        match &self.many {
            None => (&self.few[0][..self.ndim], &self.few[1][..self.ndim]),
            Some(many) => many.split_at(self.ndim),
        }
    }

    pub(super) fn split_mut(&mut self) -> (&mut [i64], &mut [i64]) {
        match &mut self.many {
            None => {
                let [shape, strides] = &mut self.few;
                (&mut shape[..self.ndim], &mut strides[..self.ndim])
            }
            Some(many) => many.split_at_mut(self.ndim),
        }
    }
}
