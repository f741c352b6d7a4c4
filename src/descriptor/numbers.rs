//! Storage for the shape and strides of a descriptor.

/// Up to this many dimensions need no allocation: a grid and three data dimensions.
const FEW: usize = 6;

/// Shape and strides.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub(super) ndim: usize,
    /// Shape and strides of up to [`FEW`] dimensions.
    few: [[i64; FEW]; 2],
    /// Shape, then strides, of more dimensions.
    many: Option<Box<[i64]>>,
}

impl Numbers {
    /// One dimension of extent 0.
    pub(super) const NONE: Numbers = Numbers { ndim: 1, few: [[0; FEW]; 2], many: None };

    /// Makes room for `ndim` extents and as many strides, with undefined contents.
    #[inline(always)]
    pub(super) fn room(&mut self, ndim: usize) -> (&mut [i64], &mut [i64]) {
        if ndim > FEW || self.many.is_some() {
            self.set_many(ndim);
        }
        self.ndim = ndim;
        self.split_mut()
    }

    /// Allocates for more dimensions, or frees what was allocated for them.
    #[cold]
    fn set_many(&mut self, ndim: usize) {
        self.many = (ndim > FEW).then(|| vec![0; 2 * ndim].into());
    }

    #[inline]
    pub(super) fn split(&self) -> (&[i64], &[i64]) {
        match &self.many {
            None => (&self.few[0][..self.ndim], &self.few[1][..self.ndim]),
            Some(many) => many.split_at(self.ndim),
        }
    }

    #[inline(always)]
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
