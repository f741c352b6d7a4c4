//! For any content of a DLPack struct, reading it returns a correct descriptor or an error, and never panics.

#![allow(unsafe_code, reason = "raw structs are read")]

use std::ptr::{null_mut, without_provenance_mut};

use dlfield::native::protocol::dlpack;
use dlfield::native::{Extents, byte_span};
use dlfield::{DType, Descriptor, Device, ExchangeError, MAX_NDIM};
use dlpark::DlpackFlags;
use dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLPackVersion, DLTensor};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::naive::{size, wide};
use crate::strategies::{config, dtype, edgy};

/// The fields of a struct, which owns its lists.
#[derive(Clone, Debug)]
struct Fields {
    ndim: i32,
    shape: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
    data: u64,
    byte_offset: u64,
    dtype: (u8, u8, u16),
    device: (u32, i32),
    version: Option<(u32, u32)>,
    flags: u64,
}

impl Fields {
    fn read(mut self) -> dlfield::Result<Descriptor> {
        let start = |list: &mut Option<Vec<i64>>| list.as_mut().map_or(null_mut(), |list| list.as_mut_ptr());
        let tensor = DLTensor {
            data: without_provenance_mut(size(self.data)),
            device: DLDevice { device_type: DLDeviceType(self.device.0), device_id: self.device.1 },
            ndim: self.ndim,
            dtype: DLDataType { code: DLDataTypeCode(self.dtype.0), bits: self.dtype.1, lanes: self.dtype.2 },
            shape: start(&mut self.shape),
            strides: start(&mut self.strides),
            byte_offset: self.byte_offset,
        };
        let version = self.version.map(|(major, minor)| DLPackVersion { major, minor });
        // SAFETY: both lists are NULL or as long as `ndim` says.
        unsafe { dlpack::read(&tensor, version, DlpackFlags::from_bits_retain(self.flags)) }
    }

    /// Returns whether the struct must be accepted, by the rules of the header and of this crate.
    fn is_sound(&self) -> bool {
        let Some(dtype) = DType::all().find(|dtype| self.dtype == (dtype.code().0, dtype.bits(), 1)) else {
            return false;
        };
        let device = matches!(self.device.0, 1..=4 | 7..=18) && self.device.1 >= 0;
        let padded = !dtype.is_sub_byte() || self.flags & 4 != 0;
        let Ok(ndim) = usize::try_from(self.ndim) else { return false };
        if !device || !padded || ndim > MAX_NDIM || (ndim > 0 && self.shape.is_none()) {
            return false;
        }
        let shape = self.shape.as_deref().map_or(&[][..], |shape| &shape[..ndim]);
        if shape.iter().any(|extent| *extent < 0)
            || (ndim > 0 && self.strides.is_none() && self.version >= Some((1, 2)))
        {
            return false;
        }
        let itemsize = wide(dtype.itemsize());
        let most = i128::from(i64::MAX);
        let mut bytes = itemsize;
        for extent in shape.iter().filter(|extent| **extent != 0) {
            bytes = bytes.saturating_mul(i128::from(*extent));
            if bytes > most {
                return false;
            }
        }
        let address = i128::from(self.data) + i128::from(self.byte_offset);
        let middle = 1i128 << 63;
        let across = address > i128::from(u64::MAX) || (i128::from(self.data) < middle) != (address < middle);
        if i128::from(self.byte_offset) > most || (across && self.data != 0) {
            return false;
        }
        if shape.contains(&0) {
            return true;
        }
        // Row-major strides of a countable shape span what was counted.
        let (mut low, mut high) = (0i128, bytes);
        if let Some(strides) = &self.strides {
            let reach = |(extent, stride): (&i64, &i64)| (i128::from(*extent) - 1) * i128::from(*stride) * itemsize;
            let reaches: Vec<i128> = shape.iter().zip(strides).map(reach).collect();
            low = reaches.iter().filter(|reach| **reach < 0).sum();
            high = reaches.iter().filter(|reach| **reach > 0).sum::<i128>() + itemsize;
        }
        self.data != 0 && address + low >= 0 && address + high <= i128::from(u64::MAX) && high - low <= most
    }
}

/// A list for that many dimensions: NULL, small numbers, or any.
fn list(len: usize, smallest: i64) -> impl Strategy<Value = Option<Vec<i64>>> {
    let ordinary = prop_oneof![1 => Just(0i64), 6 => smallest..=3];
    prop_oneof![
        1 => Just(None),
        5 => vec(ordinary, len).prop_map(Some),
        2 => vec(prop_oneof![30 => Just(1i64), 3 => edgy()], len).prop_map(Some),
        2 => vec(edgy(), len).prop_map(Some),
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    let known = dtype().prop_map(|dtype| (dtype.code().0, dtype.bits(), 1));
    let dtype = prop_oneof![8 => known, 1 => (0u8..20, any::<u8>(), 0u16..3)];
    let device = prop_oneof![8 => (1u32..=4, 0..3), 1 => (0u32..22, -2..3), 1 => (any::<u32>(), any::<i32>())];
    let version = option::of(prop_oneof![(Just(1u32), 0u32..5), (0u32..3, any::<u32>())]);
    let near = |what: i64| u64::from_ne_bytes(what.to_ne_bytes());
    let address = prop_oneof![1 => Just(0u64), 8 => 1u64 << 20..1 << 47, 2 => edgy().prop_map(near)];
    let offset = prop_oneof![4 => Just(0u64), 2 => 0u64..4096, 1 => edgy().prop_map(near)];
    let lists = prop_oneof![8 => 0i32..5, 2 => -2i32..70].prop_flat_map(|ndim| {
        let len = usize::try_from(ndim).unwrap_or(0);
        (Just(ndim), list(len, 1), list(len, -2))
    });
    (lists, address, offset, dtype, device, version, 0u64..8).prop_map(
        |((ndim, shape, strides), data, byte_offset, dtype, device, version, flags)| Fields {
            ndim,
            shape,
            strides,
            data,
            byte_offset,
            dtype,
            device,
            version,
            flags,
        },
    )
}

/// Checks what a descriptor proves.
pub fn check_proof(field: &Descriptor) {
    let (shape, strides, itemsize) = (field.shape(), field.strides(), wide(field.itemsize()));
    assert!(shape.len() <= MAX_NDIM && shape.len() == strides.len() && field.ndim() == shape.len());
    assert!(shape.iter().all(|extent| *extent >= 0));
    let byte_strides = strides.iter().map(|stride| i128::from(*stride) * itemsize);
    assert!(field.byte_strides().map(i128::from).eq(byte_strides), "{field:?}");
    let elements = if shape.contains(&0) { 0 } else { shape.iter().map(|extent| i128::from(*extent)).product() };
    assert_eq!((i128::from(field.size()), i128::from(field.nbytes())), (elements, elements * itemsize));
    assert_eq!(field.byte_span().is_none(), elements == 0);
    if let Some((low, high)) = field.byte_span() {
        let address = wide(field.ptr().addr());
        assert!(address > 0 && address + low >= 0 && address + high <= i128::from(u64::MAX), "{field:?}");
        assert!(low <= 0 && high >= itemsize && high - low <= i128::from(i64::MAX));
    }
    assert!(field.alignment().is_power_of_two());
    assert_eq!(field.layout().len(), shape.len());
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn structs_are_taken_exactly_if_sound(fields in fields()) {
        let sound = fields.is_sound();
        let found = fields.clone().read();
        prop_assert_eq!(found.is_ok(), sound, "{:?}", found);
        if let Ok(field) = found {
            check_proof(&field);
            let ndim = field.ndim();
            prop_assert_eq!(field.shape(), fields.shape.as_deref().map_or(&[][..], |shape| &shape[..ndim]));
            if fields.data != 0 {
                prop_assert_eq!(wide(field.ptr().addr()), i128::from(fields.data) + i128::from(fields.byte_offset));
            }
            prop_assert_eq!(field.is_readonly(), fields.flags & 1 != 0);
            if let (Some(strides), Some((_, high))) = (&fields.strides, field.byte_span()) {
                let kept = |((extent, old), new): ((&i64, &i64), &i64)| *extent == 1 || old == new;
                prop_assert!(field.shape().iter().zip(strides).zip(field.strides()).all(kept));
                prop_assert!(high > 0);
            } else if fields.strides.is_none() {
                prop_assert!(field.is_c_contiguous());
            }
        }
    }
}

/// Sums of products of 64-bit numbers that exceed 128 bits.
#[test]
fn spans_beyond_128_bits_are_refused() {
    for stride in [i64::MAX, i64::MIN] {
        for ndim in [2, 3, 4, 64] {
            let (shape, strides) = (Extents::from_elem(i64::MAX, ndim), Extents::from_elem(stride, ndim));
            let start = without_provenance_mut(1 << 40);
            let field = Descriptor::new(start, Device::CPU, DType::U8, false, &shape, &strides);
            let refused = matches!(field, Err(ExchangeError::Span { .. } | ExchangeError::Size { .. }));
            assert!(refused, "{field:?}");
            assert!(byte_span(&shape, &strides, 16).is_some());
        }
    }
}
