//! Arguments drawn from the fuzzer's bytes: mostly small ones, and those at which 64-bit arithmetic goes wrong.

use arbitrary::{Result, Unstructured};
use dlfield::{DType, Descriptor, Device, Dims, Layout, Padding, Preset, Spec};

use crate::layouts::Side;

/// An address far from both ends of the address space.
pub const MIDDLE: usize = 1 << 40;

/// Runs a target on the fuzzer's bytes; a call whose bytes do not suffice is not made.
pub fn run(bytes: &[u8], target: impl FnOnce(&mut Unstructured<'_>) -> Result<()>) {
    let _ = target(&mut Unstructured::new(bytes));
}

/// Returns any number: mostly a small one or one near a power of two.
pub fn edgy(bytes: &mut Unstructured<'_>) -> Result<i64> {
    Ok(match bytes.int_in_range(0..=7u8)? {
        0..4 => bytes.int_in_range(-3i64..=9)?,
        4 => (1i64 << bytes.int_in_range(0..=62)?) + bytes.int_in_range(-1i64..=1)?,
        5 => bytes.int_in_range(-1i64..=1)? - (1i64 << bytes.int_in_range(0..=62)?),
        6 => *bytes.choose(&[i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, i64::MAX / 8, i64::MAX / 16 + 1])?,
        _ => bytes.arbitrary()?,
    })
}

/// Returns so many numbers, all made in the same way.
pub fn list<T>(len: usize, mut one: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    (0..len).map(|_| one()).collect()
}

/// Returns extents or steps: small numbers, or any.
pub fn numbers(bytes: &mut Unstructured<'_>, len: usize, smallest: i64) -> Result<Vec<i64>> {
    let any = bytes.ratio(1, 4)?;
    list(len, || if any { edgy(bytes) } else { bytes.int_in_range(smallest..=4) })
}

/// Returns a number of dimensions, seldom more than four.
pub fn ndim(bytes: &mut Unstructured<'_>) -> Result<usize> {
    if bytes.ratio(1, 16)? { bytes.int_in_range(0..=70) } else { bytes.int_in_range(0..=4) }
}

/// Returns any element type.
pub fn dtype(bytes: &mut Unstructured<'_>) -> Result<DType> {
    bytes.choose_iter(DType::all().collect::<Vec<_>>())
}

/// Returns the first element type of a size of 1, 2, 4, 8 or 16 bytes.
pub fn sized(bytes: &mut Unstructured<'_>) -> Result<DType> {
    let itemsize = *bytes.choose(&[1usize, 2, 4, 8, 16])?;
    Ok(DType::all().find(|dtype| dtype.itemsize() == itemsize).expect("each size has a type"))
}

/// Returns an address: NULL, an ordinary one, or any.
pub fn address(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.int_in_range(0..=7u8)? {
        0 => 0,
        1 => bytes.arbitrary()?,
        2 => edgy(bytes)?.cast_unsigned(),
        _ => bytes.int_in_range(1u64 << 20..=1 << 47)?,
    })
}

/// Returns `0..ndim` in any order.
pub fn permutation(bytes: &mut Unstructured<'_>, ndim: usize) -> Result<Vec<usize>> {
    let mut left: Vec<usize> = (0..ndim).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        order.push(left.remove(bytes.choose_index(left.len())?));
    }
    Ok(order)
}

/// Returns a place in memory for a field of so many dimensions, at any alignment.
pub fn side(bytes: &mut Unstructured<'_>, ndim: usize) -> Result<Side> {
    let order = permutation(bytes, ndim)?.into_iter().map(|axis| axis as i64).collect();
    let gaps = list(ndim, || if bytes.ratio(1, 4)? { bytes.int_in_range(1..=3) } else { Ok(0) })?;
    let backwards = list(ndim, || bytes.ratio(1, 4))?;
    Ok(Side { order, gaps, backwards, offset: bytes.int_in_range(0..=70)? })
}

/// Returns any layout of so many dimensions.
pub fn layout(bytes: &mut Unstructured<'_>, ndim: usize) -> Result<Layout> {
    let ranks: Vec<i64> = permutation(bytes, ndim)?.into_iter().map(|rank| rank as i64).collect();
    Ok(Layout::new(&ranks, ndim).expect("a permutation"))
}

/// Returns different labels of all three kinds.
pub fn dims(bytes: &mut Unstructured<'_>, ndim: usize) -> Result<Dims> {
    let labels = ["I", "J", "K", "0", "cell", "1"];
    let order = permutation(bytes, labels.len())?;
    Ok(Dims::parse(order[..ndim].iter().map(|place| labels[*place])).expect("different labels"))
}

/// Returns a halo that fits a shape.
pub fn halo(bytes: &mut Unstructured<'_>, shape: &[i64]) -> Result<Vec<(i64, i64)>> {
    shape
        .iter()
        .map(|extent| {
            let lower = bytes.int_in_range(0..=*extent)?;
            Ok((lower, bytes.int_in_range(0..=extent - lower)?))
        })
        .collect()
}

/// Returns a position up to each extent.
pub fn origin(bytes: &mut Unstructured<'_>, shape: &[i64]) -> Result<Vec<i64>> {
    shape.iter().map(|extent| bytes.int_in_range(0..=*extent)).collect()
}

/// Returns a small field on the host with any legal options.
pub fn spec(bytes: &mut Unstructured<'_>, dtype: DType) -> Result<Spec> {
    let ndim = bytes.int_in_range(0..=4)?;
    let shape = list(ndim, || bytes.int_in_range(0..=5i64))?;
    let mut spec = Spec::new(&shape, dtype).with_device(Device::CPU);
    if bytes.arbitrary()? {
        spec = spec.dims(dims(bytes, ndim)?);
    }
    if bytes.arbitrary()? {
        spec = spec.preset(bytes.choose_iter(Preset::all())?).with_device(Device::CPU);
    }
    if bytes.arbitrary()? {
        spec = spec.layout(layout(bytes, ndim)?);
    }
    if bytes.arbitrary()? {
        let power = 1i64 << bytes.int_in_range(0..=12)?;
        spec = spec.alignment_size(if bytes.arbitrary()? { power } else { bytes.int_in_range(1..=70)? });
    }
    if bytes.arbitrary()? {
        spec = spec.padding(*bytes.choose(&[Padding::None, Padding::Row])?);
    }
    if bytes.arbitrary()? {
        spec = spec.halo(&halo(bytes, &shape)?);
    }
    if bytes.arbitrary()? {
        spec = spec.aligned_index(&origin(bytes, &shape)?);
    }
    if bytes.arbitrary()? {
        spec = spec.origin(&origin(bytes, &shape)?);
    }
    Ok(spec)
}

/// Returns a valid field of any small strides, also overlapping ones, whose memory does not exist.
pub fn field(bytes: &mut Unstructured<'_>, dtype: DType, device: Device) -> Result<Descriptor> {
    let ndim = bytes.int_in_range(0..=4)?;
    let shape = list(ndim, || bytes.int_in_range(0..=6i64))?;
    let strides = list(ndim, || bytes.int_in_range(-20..=20i64))?;
    let start = std::ptr::without_provenance_mut(MIDDLE + bytes.int_in_range(0..=400usize)?);
    let readonly = bytes.arbitrary()?;
    Ok(Descriptor::new(start, device, dtype, readonly, &shape, &strides)
        .expect("small numbers in the middle of memory"))
}
