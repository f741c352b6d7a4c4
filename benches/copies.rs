//! Measures the copy and fill loops on one thread: every element size, several layouts and sizes, compared with memcpy.
//!
//! `cargo bench` takes about a minute once it is built; `cargo bench -- fill` runs the cases with `fill` in their name.
//! `benches/py` compares with NumPy and PyTorch.

#![allow(unsafe_code, reason = "copies into memory that is there already")]

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use dlfield::{DType, Index, Layout, Spec, Tensor};

/// One type for each element size.
const ELEMENTS: [DType; 5] = [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128];

/// Sizes within the first caches, within the last one, and beyond it; the last extent is for 8-byte elements.
const SIZES: [(&str, [i64; 3]); 3] = [("64 KB", [16, 16, 32]), ("4 MB", [64, 64, 128]), ("67 MB", [200, 200, 208])];

/// Number of points by which the larger field extends beyond the slice at each end.
const MARGIN: i64 = 4;

/// Returns a shape with the same number of bytes for any element type.
fn shape_for(dtype: DType, [i, j, k]: [i64; 3]) -> [i64; 3] {
    let itemsize = i64::try_from(dtype.itemsize()).expect("at most 16");
    [i, j, k * 8 / itemsize]
}

/// Allocates a field with these stride ranks, and writes it once so that its pages are mapped.
fn field(dtype: DType, shape: &[i64], ranks: [i64; 3], alignment_size: i64) -> Tensor {
    let layout = Layout::new(&ranks, shape.len()).expect("a permutation");
    let spec = Spec::new(shape, dtype).layout(layout).alignment_size(alignment_size);
    Tensor::full_bytes(&spec, &vec![1; dtype.itemsize()]).expect("there is enough memory")
}

/// Returns destination and source of each copy, by name.
fn pairs(dtype: DType, shape: [i64; 3]) -> [(&'static str, Tensor, Tensor); 5] {
    let compact = || field(dtype, &shape, [0, 1, 2], 1);
    let larger = shape.map(|extent| extent + 2 * MARGIN);
    let inside = shape.map(|extent| Index::Range { start: MARGIN, len: extent, step: 1 });
    let slice = field(dtype, &larger, [0, 1, 2], 1).view(&inside).expect("it lies inside");
    [
        ("C to C", compact(), compact()),
        ("C to F", field(dtype, &shape, [2, 1, 0], 1), compact()),
        ("F to C", compact(), field(dtype, &shape, [2, 1, 0], 1)),
        ("C to (2, 0, 1) padded", field(dtype, &shape, [2, 0, 1], 64), compact()),
        ("slice to compact", compact(), slice),
    ]
}

/// Returns a group with short measurements, so that all of them take about a minute.
fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
    group
}

fn bytes(tensor: &Tensor) -> usize {
    usize::try_from(tensor.descriptor().size()).expect("it is in memory") * tensor.descriptor().itemsize()
}

fn throughput(tensor: &Tensor) -> Throughput {
    Throughput::Bytes(u64::try_from(bytes(tensor)).expect("it is in memory"))
}

fn copies(criterion: &mut Criterion) {
    dlfield::set_num_threads(1).expect("one thread");
    for dtype in ELEMENTS {
        let mut group = group(criterion, &format!("copy, {} bytes", dtype.itemsize()));
        for (size, shape) in SIZES {
            for (name, to, from) in pairs(dtype, shape_for(dtype, shape)) {
                group.throughput(throughput(&to));
                group.bench_function(format!("{name}, {size}"), |bencher| {
                    // SAFETY: nothing else has access to the memory of either tensor.
                    bencher.iter(|| unsafe { to.assign(black_box(&from)) }.expect("the same shape and type"));
                });
            }
        }
        group.finish();
    }
}

fn fills(criterion: &mut Criterion) {
    dlfield::set_num_threads(1).expect("one thread");
    for dtype in ELEMENTS {
        let mut group = group(criterion, &format!("fill, {} bytes", dtype.itemsize()));
        for (size, shape) in SIZES {
            let (to, element) = (field(dtype, &shape_for(dtype, shape), [0, 1, 2], 1), vec![7; dtype.itemsize()]);
            group.throughput(throughput(&to));
            group.bench_function(size, |bencher| {
                // SAFETY: nothing else has access to the memory.
                bencher.iter(|| unsafe { to.fill_bytes(black_box(&element)) }.expect("one element"));
            });
        }
        group.finish();
    }
}

fn memcpy(criterion: &mut Criterion) {
    let mut group = group(criterion, "memcpy");
    for (size, shape) in SIZES {
        let [to, from] = [1, 2].map(|_| field(DType::F64, &shape, [0, 1, 2], 1));
        let count = bytes(&to);
        group.throughput(throughput(&to));
        group.bench_function(size, |bencher| {
            bencher.iter(|| {
                let (to, from) = (to.descriptor().ptr(), black_box(from.descriptor().ptr()));
                // SAFETY: both blocks have `count` bytes, do not overlap, and nothing else has access to them.
                unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
            });
        });
    }
    group.finish();
}

criterion_group!(benches, memcpy, copies, fills);
criterion_main!(benches);
