//! Strategies for proptest: fields of any layout, and views of them.

use dlfield::{DType, Device, Index, Layout, Padding, Preset, Spec, Tensor};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// The GPU presets.
const PRESETS: [&str; 5] = ["gt:gpu", "gtcuda", "dace:gpu", "dace:gpu_IJK", "cupy"];

/// The memory layout of one side of a copy.
#[derive(Clone, Debug)]
pub struct Side {
    preset: Option<&'static str>,
    layout: Option<Vec<i64>>,
    alignment: Option<i64>,
    padding: Option<Padding>,
    /// The steps of the view that the field is; no view if all are 1.
    steps: Vec<i64>,
    /// Elements per dimension beyond what the view needs.
    more: i64,
}

/// Elements of 1 to 16 bytes.
pub fn dtype() -> impl Strategy<Value = DType> {
    select(vec![
        DType::U8,
        DType::BOOL,
        DType::F16,
        DType::I16,
        DType::F32,
        DType::I64,
        DType::F64,
        DType::C64,
        DType::C128,
    ])
}

/// A shape, and two sides of that shape.
pub fn pair() -> impl Strategy<Value = (Vec<i64>, Side, Side)> {
    let small = || prop_oneof![1 => Just(0i64), 2 => Just(1), 12 => 2i64..=5];
    let shape = prop_oneof![3 => vec(small(), 0..=5), 1 => vec(14i64..=19, 2..=2), 1 => vec(prop_oneof![Just(3i64), Just(17)], 3..=3)];
    shape.prop_flat_map(|shape| {
        let ndim = shape.len();
        (Just(shape), side(ndim), side(ndim))
    })
}

fn side(ndim: usize) -> impl Strategy<Value = Side> {
    let ranks = Just((0..i64::try_from(ndim).unwrap()).collect::<Vec<_>>()).prop_shuffle();
    let steps = prop_oneof![2 => Just(vec![1; ndim]), 1 => vec(select(vec![1, 1, 1, -1, 2, -2]), ndim)];
    let alignment = select(vec![1, 16, 32, 64, 256, 512]);
    let padding = option::of(select(vec![Padding::None, Padding::Row]));
    let stated = (option::of(select(PRESETS.to_vec())), option::of(ranks), option::of(alignment), padding);
    (stated, steps, 0i64..2).prop_map(|(stated, steps, more)| {
        let (preset, layout, alignment, padding) = stated;
        Side { preset, layout, alignment, padding, steps, more }
    })
}

impl Side {
    /// Returns the allocation, and the view of it that has the shape.
    pub fn field(&self, shape: &[i64], dtype: DType, device: Device) -> (Tensor, Tensor) {
        let extents: Vec<i64> = shape
            .iter()
            .zip(&self.steps)
            .map(|(extent, step)| if *extent == 0 { 0 } else { (extent - 1) * step.abs() + 1 + self.more })
            .collect();
        let mut spec = Spec::new(&extents, dtype);
        spec = self.preset.iter().fold(spec, |spec, name| spec.preset(Preset::find(name).unwrap()));
        spec = self.layout.iter().fold(spec, |spec, ranks| spec.layout(Layout::new(ranks, ranks.len()).unwrap()));
        spec = self.alignment.iter().fold(spec, |spec, bytes| spec.alignment_size(*bytes));
        spec = self.padding.iter().fold(spec, |spec, padding| spec.padding(*padding));
        let whole = Tensor::empty(&spec.with_device(device)).unwrap();
        let range = |(len, step): (&i64, &i64)| {
            let start = if *step < 0 { (len - 1).max(0) * -step } else { 0 };
            Index::Range { start, len: *len, step: *step }
        };
        let view = whole.view(&shape.iter().zip(&self.steps).map(range).collect::<Vec<_>>()).unwrap();
        assert_eq!(view.descriptor().shape(), shape);
        (whole, view)
    }
}
