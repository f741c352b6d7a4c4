//! The table of seeds: every preset of the specification with every option.

use dlfield::{Alignment, DType, Device, Dims, Padding, Preset, Spec};

use crate::naive::{size, wide};
use crate::runner::{check, check_memory};

/// Name, device, alignment (in elements, or in bytes of the base), and the grid's dimensions from the largest stride to the
/// smallest; `"C"` and `"F"` order by index.
pub const PRESETS: [(&str, &str, Alignment, &str); 20] = [
    ("numpy", "cpu", Alignment::Elements(1), "IJK"),
    ("debug", "cpu", Alignment::Elements(1), "IJK"),
    ("C", "cpu", Alignment::Elements(1), "C"),
    ("F", "cpu", Alignment::Elements(1), "F"),
    ("gt:cpu_kfirst", "cpu", Alignment::Elements(1), "IJK"),
    ("gtx86", "cpu", Alignment::Elements(1), "IJK"),
    ("gt:cpu_ifirst", "cpu", Alignment::Elements(1), "KJI"),
    ("gtmc", "cpu", Alignment::Elements(8), "IKJ"),
    ("gt:gpu", "cuda:0", Alignment::Elements(32), "KJI"),
    ("gtcuda", "cuda:0", Alignment::Elements(32), "KJI"),
    ("dace:cpu", "cpu", Alignment::Elements(1), "KIJ"),
    ("dace:cpu_kfirst", "cpu", Alignment::Elements(1), "IJK"),
    ("dace:cpu_KJI", "cpu", Alignment::Elements(1), "KJI"),
    ("dace:gpu", "cuda:0", Alignment::Elements(1), "KJI"),
    ("dace:gpu_IJK", "cuda:0", Alignment::Elements(1), "IJK"),
    ("jax", "cpu", Alignment::Base(64), "IJK"),
    ("torch", "cpu", Alignment::Base(64), "IJK"),
    ("cupy", "cuda:0", Alignment::Base(64), "IJK"),
    ("gt4py.next", "cpu", Alignment::Rows(64), "KJI"),
    ("gt4py.next:gpu", "cuda:0", Alignment::Rows(128), "KJI"),
];

/// Lists of labels in index order; the last ones have several letters each.
const DIMS: &str = "I J K, I K J, J I K, J K I, K I J, K J I, I J, K I, J K, K, , I J K 0, 1 K 0 J I, 10 9 I, I 0, cell K, \
                    K cell I 0 edge";

fn all_dims() -> impl Iterator<Item = Vec<&'static str>> {
    DIMS.split(',').map(|labels| labels.split_whitespace().collect())
}

const EXTENTS: [i64; 5] = [3, 5, 4, 2, 1];

/// Returns the axes from the largest stride to the smallest, by the specification's rule: data dimensions by number, then
/// users' labels in index order, then the grid in the preset's order. One of users' labels with K alone is horizontal.
fn axes(order: &str, dims: &[&str]) -> Vec<usize> {
    let by_index = 0..dims.len();
    match order {
        "C" => return by_index.collect(),
        "F" => return by_index.rev().collect(),
        _ => {}
    }
    let mut data: Vec<(u32, usize)> =
        dims.iter().enumerate().filter_map(|(axis, dim)| dim.parse().ok().map(|number| (number, axis))).collect();
    data.sort_unstable();
    let labels: Vec<usize> =
        by_index.filter(|axis| dims[*axis].len() > 1 && dims[*axis].parse::<u32>().is_err()).collect();
    if let (&[label], Some(k)) = (&labels[..], dims.iter().position(|dim| *dim == "K"))
        && dims.len() == 2
    {
        return if order.ends_with('K') { vec![label, k] } else { vec![k, label] };
    }
    let grid = order.chars().filter_map(|letter| dims.iter().position(|dim| *dim == letter.to_string()));
    data.into_iter().map(|(_, axis)| axis).chain(labels).chain(grid).collect()
}

/// Returns a spec on the host, with a preset and labels.
fn spec(preset: &str, dims: &[&str], dtype: DType) -> Spec {
    Spec::new(&EXTENTS[..dims.len()], dtype)
        .preset(Preset::find(preset).unwrap())
        .dims(Dims::parse(dims).unwrap())
        .with_device(Device::CPU)
}

/// Returns a spec with each option in addition to a preset: alignment, padding, halo, aligned index.
fn variations(spec: &Spec) -> Vec<Spec> {
    let ndim = spec.ndim();
    let mut all = Vec::new();
    for alignment in [None, Some(1), Some(3), Some(24), Some(64), Some(256)] {
        for padding in [None, Some(Padding::None), Some(Padding::Row)] {
            for (halo, index) in [(false, None), (true, None), (false, Some([0; 5])), (true, Some([1, 2, 3, 0, 1]))] {
                let mut spec = spec.clone();
                spec = alignment.into_iter().fold(spec, Spec::alignment_size);
                spec = padding.into_iter().fold(spec, Spec::padding);
                spec = if halo { spec.halo(&[(1, 0), (2, 1), (0, 3), (0, 0), (1, 0)][..ndim]) } else { spec };
                all.push(index.iter().fold(spec, |spec, index| spec.aligned_index(&index[..ndim])));
            }
        }
    }
    all
}

#[test]
fn presets_are_those_of_the_specification() {
    let names: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
    let presets = Preset::all();
    assert_eq!(presets.iter().map(Preset::name).collect::<Vec<_>>(), names);
    for (name, device, alignment, _) in PRESETS {
        let preset = Preset::find(name).unwrap();
        assert_eq!((preset.device(), preset.alignment()), (device.parse().unwrap(), alignment), "{name}");
        assert_eq!(Spec::new(&[2], DType::F32).preset(preset).place().unwrap().device, device.parse().unwrap());
    }
}

#[test]
fn layouts_go_by_the_meaning_of_dimensions() {
    for (name, _, _, order) in PRESETS {
        // Several horizontal dimensions have an order of their own there.
        let is_placed = |dims: &Vec<&str>| !name.starts_with("gt4py.next") || !dims.contains(&"edge");
        for dims in all_dims().filter(is_placed) {
            let place = spec(name, &dims, DType::F64).place().unwrap();
            assert_eq!(place.layout.axes().collect::<Vec<_>>(), axes(order, &dims), "{name} {dims:?}");
        }
    }
}

#[test]
fn presets_align_what_they_say() {
    for (name, _, alignment, _) in PRESETS {
        for dtype in [DType::I8, DType::BF16, DType::F32, DType::F64, DType::C128] {
            let place = check(&spec(name, &["I", "J", "K"], dtype).halo(&[(1, 1), (0, 0), (2, 1)]));
            let (bytes, padding, aligned) = match alignment {
                Alignment::Base(bytes) => (i64::from(bytes), Padding::None, None),
                Alignment::Elements(1) => (place.alignment_size, Padding::None, Some(vec![1, 0, 2])),
                Alignment::Elements(elements) => {
                    (i64::from(elements) * i64::try_from(dtype.itemsize()).unwrap(), Padding::Row, Some(vec![1, 0, 2]))
                }
                Alignment::Rows(bytes) => (i64::from(bytes), Padding::Row, Some(vec![1, 0, 2])),
                other => panic!("{other:?}"),
            };
            assert_eq!((place.alignment_size, place.padding), (bytes, padding), "{name} {dtype}");
            assert_eq!(place.aligned_index.as_deref(), aligned.as_deref(), "{name} {dtype}");
        }
    }
}

#[test]
fn every_seed_is_placed_as_the_oracle_says() {
    for (name, ..) in PRESETS {
        let dtypes = [DType::F64, DType::F32, DType::I4, DType::C128, DType::F16].into_iter().cycle();
        for (dims, dtype) in all_dims().zip(dtypes) {
            for spec in variations(&spec(name, &dims, dtype)) {
                check(&spec);
            }
        }
    }
}

#[test]
fn every_seed_gets_memory_as_placed() {
    for (name, ..) in PRESETS {
        for dims in [&["K", "J", "I"][..], &["I", "J", "K", "0"]] {
            for spec in variations(&spec(name, dims, DType::F32)) {
                check_memory(&spec);
            }
        }
    }
}

#[test]
fn explicit_keywords_override_the_preset() {
    let gtcuda = || Spec::new(&[4, 5, 6], DType::F64).preset(Preset::find("gtcuda").unwrap());
    assert_eq!(gtcuda().place().unwrap().strides.to_vec(), [1, 32, 160]);
    assert_eq!(gtcuda().padding(Padding::None).place().unwrap().strides.to_vec(), [1, 4, 20]);
    assert_eq!(gtcuda().alignment_size(64).place().unwrap().strides.to_vec(), [1, 8, 40]);
    assert_eq!(gtcuda().alignment_size(8).place().unwrap().padding, Padding::None);
    assert_eq!(gtcuda().layout(dlfield::Layout::c_order(3)).place().unwrap().strides.to_vec(), [160, 32, 1]);
    assert_eq!(gtcuda().with_device(Device::CPU).place().unwrap().device, Device::CPU);
}

/// A field whose size is 63 bytes in the 32-bit arithmetic of another library.
#[test]
fn fields_beyond_32_bits_are_counted_right() {
    for (name, ..) in PRESETS {
        let spec = Spec::new(&[1024, 1024, 512], DType::F64).preset(Preset::find(name).unwrap());
        assert_eq!(wide(spec.place().unwrap().block_bytes), 1i128 << 32, "{name}");
    }
    let odd = Spec::new(&[70_000, 70_001, 3], DType::F64).alignment_size(64).place().unwrap();
    assert_eq!(odd.strides.to_vec(), [70_001 * 8, 8, 1]);
    assert_eq!(odd.block_bytes, size(70_000i64 * 70_001 * 64));
}
