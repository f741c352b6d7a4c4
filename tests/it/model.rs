//! Views as lists of positions: index arithmetic one position at a time.

use dlfield::{Dims, Index, Tensor};

use crate::elements::{all, numbered};
use crate::naive::{count, indices, position, size, wide};
use crate::runner::alignment_statement_is_true;

pub fn texts(dims: &Dims) -> Vec<String> {
    dims.iter().map(|dim| dim.to_string()).collect()
}

/// A field as lists: the position of each element in the first field, and the dimensions.
#[derive(Clone, Debug)]
pub struct Model {
    pub shape: Vec<i64>,
    numbers: Vec<usize>,
    dims: Vec<String>,
    origin: Vec<i64>,
    halo: Vec<(i64, i64)>,
}

impl Model {
    pub fn of(tensor: &Tensor) -> Model {
        let shape = tensor.descriptor().shape().to_vec();
        Model {
            numbers: (0..size(count(&shape))).collect(),
            shape,
            dims: texts(&tensor.dims()),
            origin: tensor.origin().to_vec(),
            halo: tensor.halo().to_vec(),
        }
    }

    /// Returns the positions that an entry selects, and whether the dimension stays; `None` outside the field.
    fn positions(entry: Index, extent: i64) -> Option<(Vec<i64>, bool)> {
        match entry {
            Index::All => Some(((0..extent).collect(), true)),
            Index::At(at) => {
                let at = if at < 0 { i128::from(at) + i128::from(extent) } else { i128::from(at) };
                let at = i64::try_from(at).ok().filter(|at| (0..extent).contains(at))?;
                Some((vec![at], false))
            }
            Index::Range { step: 0, .. } => None,
            Index::Range { len: 0, .. } => Some((Vec::new(), true)),
            Index::Range { start, len, step } => {
                let last = i128::from(start) + i128::from(step) * (i128::from(len) - 1);
                let inside = |at: i128| (0..i128::from(extent)).contains(&at);
                let legal = len > 0 && inside(start.into()) && inside(last);
                legal.then(|| ((0..len).map(|nth| start + nth * step).collect(), true))
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn view(&self, index: &[Index]) -> Option<Model> {
        if index.len() > self.shape.len() {
            return None;
        }
        let mut view = Model { shape: vec![], numbers: vec![], dims: vec![], origin: vec![], halo: vec![] };
        let mut selected = Vec::new();
        for (axis, extent) in self.shape.iter().enumerate() {
            let entry = index.get(axis).copied().unwrap_or(Index::All);
            let (positions, stays) = Model::positions(entry, *extent)?;
            if stays {
                let counted = |wanted: &dyn Fn(i64) -> bool| wide(positions.iter().filter(|at| wanted(**at)).count());
                let counted = |wanted: &dyn Fn(i64) -> bool| i64::try_from(counted(wanted)).unwrap();
                let (lower, upper) = self.halo[axis];
                let step = if let Index::Range { step, .. } = entry { step } else { 1 };
                view.shape.push(counted(&|_| true));
                view.dims.push(self.dims[axis].clone());
                // The halo of a view is the part of the old halo that is left.
                let before = counted(&|at| at < self.origin[axis]);
                let (below, above) = (counted(&|at| at < lower), counted(&|at| at >= *extent - upper));
                let (origin, halo) = match step {
                    1 => (before, (below, above)),
                    -1 => ((before - below + above).clamp(0, counted(&|_| true)), (above, below)),
                    _ => (0, (0, 0)),
                };
                view.origin.push(origin);
                view.halo.push(halo);
            }
            selected.push(positions);
        }
        let extents: Vec<i64> = selected.iter().map(|positions| i64::try_from(positions.len()).unwrap()).collect();
        for index in indices(&extents) {
            let source: Vec<i64> = index.iter().zip(&selected).map(|(at, positions)| positions[size(*at)]).collect();
            view.numbers.push(self.numbers[position(&source, &self.shape)]);
        }
        Some(view)
    }

    pub fn transpose(&self, axes: &[usize]) -> Model {
        fn pick<T: Clone>(axes: &[usize], all: &[T]) -> Vec<T> {
            axes.iter().map(|axis| all[*axis].clone()).collect()
        }
        let shape = pick(axes, &self.shape);
        let number = |index: &Vec<i64>| {
            let mut source = vec![0; index.len()];
            index.iter().zip(axes).for_each(|(at, axis)| source[*axis] = *at);
            self.numbers[position(&source, &self.shape)]
        };
        Model {
            numbers: indices(&shape).iter().map(number).collect(),
            shape,
            dims: pick(axes, &self.dims),
            origin: pick(axes, &self.origin),
            halo: pick(axes, &self.halo),
        }
    }

    pub fn domain(&self) -> Model {
        let inside = |((lower, upper), extent): (&(i64, i64), &i64)| {
            let len = extent - lower - upper;
            Index::Range { start: if len == 0 { 0 } else { *lower }, len, step: 1 }
        };
        self.view(&self.halo.iter().zip(&self.shape).map(inside).collect::<Vec<_>>()).unwrap()
    }

    pub fn check(&self, tensor: &Tensor) {
        let field = tensor.descriptor();
        let wanted: Vec<Vec<u8>> = self.numbers.iter().map(|number| numbered(*number, field.itemsize())).collect();
        assert_eq!(field.shape(), self.shape);
        assert_eq!(all(tensor), wanted);
        assert_eq!(texts(&tensor.dims()), self.dims);
        assert_eq!((tensor.origin().to_vec(), tensor.halo().to_vec()), (self.origin.clone(), self.halo.clone()));
        alignment_statement_is_true(tensor);
        let steps = tensor.layout().axes().filter(|axis| field.shape()[*axis] > 1);
        let steps: Vec<u64> = steps.map(|axis| field.strides()[axis].unsigned_abs()).collect();
        assert!(steps.is_sorted_by(|left, right| left >= right), "{tensor:?}");
    }
}
