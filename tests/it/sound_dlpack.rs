//! Which DLPack structs must be taken, the slow and obvious way, and what a descriptor proves.

#![allow(unsafe_code, reason = "raw structs are read")]

use std::ptr::{null_mut, without_provenance_mut};

use dlfield::dlpark::DlpackFlags;
use dlfield::dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLPackVersion, DLTensor};
use dlfield::testing::protocol::dlpack;
use dlfield::{DType, Descriptor, MAX_NDIM};

use crate::naive::{c_order, is_valid, size, wide};

/// The fields of a struct, which owns its lists.
#[derive(Clone, Debug)]
pub struct Fields {
    pub ndim: i32,
    pub shape: Option<Vec<i64>>,
    pub strides: Option<Vec<i64>>,
    pub data: u64,
    pub byte_offset: u64,
    pub dtype: (u8, u8, u16),
    pub device: (u32, i32),
    pub version: Option<(u32, u32)>,
    pub flags: u64,
}

impl Fields {
    /// Reads the struct as an importer does.
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
    pub fn is_sound(&self) -> bool {
        let Some(dtype) = DType::all().find(|dtype| self.dtype == (dtype.code().0, dtype.bits(), 1)) else {
            return false;
        };
        let device = matches!(self.device.0, 1..=4 | 7..=18) && self.device.1 >= 0;
        let padded = !dtype.is_sub_byte() || self.flags & 4 != 0;
        let Ok(ndim) = usize::try_from(self.ndim) else { return false };
        let stated = self.strides.is_some() || self.version < Some((1, 2));
        if !device || !padded || ndim > MAX_NDIM || (ndim > 0 && !(stated && self.shape.is_some())) {
            return false;
        }
        let shape = self.shape.as_deref().map_or(&[][..], |shape| &shape[..ndim]);
        let address = i128::from(self.data) + i128::from(self.byte_offset);
        let middle = 1i128 << 63;
        let across = address > i128::from(u64::MAX) || (i128::from(self.data) < middle) != (address < middle);
        if i128::from(self.byte_offset) >= middle || (across && self.data != 0) {
            return false;
        }
        let in_bytes = |strides: &Vec<i64>| -> Vec<i128> {
            strides[..ndim].iter().map(|step| i128::from(*step) * wide(dtype.itemsize())).collect()
        };
        let strides = self.strides.as_ref().map_or_else(|| c_order(shape, dtype.itemsize()), in_bytes);
        let valid = |strides: &[i128]| is_valid(address, shape, strides, dtype.itemsize());
        let signed: Vec<i128> = strides.iter().map(|bytes| signed(*bytes)).collect();
        (self.data != 0 || shape.contains(&0)) && (valid(&strides) || valid(&signed))
    }
}

/// Returns a stride in bytes, a negative one for what CuPy writes for it: the quotient of an unsigned number.
fn signed(bytes: i128) -> i128 {
    if (1 << 63..1 << 64).contains(&bytes) { bytes - (1 << 64) } else { bytes }
}

/// Reads a struct, and compares the result with the rules.
pub fn check(fields: &Fields) {
    let sound = fields.is_sound();
    let found = fields.clone().read();
    assert_eq!(found.is_ok(), sound, "{found:?}");
    assert!(found.as_ref().err().is_none_or(|error| !error.to_string().is_empty()));
    if let Ok(field) = found {
        check_proof(&field);
        let ndim = field.ndim();
        assert_eq!(field.shape(), fields.shape.as_deref().map_or(&[][..], |shape| &shape[..ndim]));
        if fields.data != 0 {
            assert_eq!(wide(field.ptr().addr()), i128::from(fields.data) + i128::from(fields.byte_offset));
        }
        assert_eq!(field.is_readonly(), fields.flags & 1 != 0);
        assert_eq!((field.dtype().code().0, field.dtype().bits(), 1), fields.dtype);
        if let (Some(strides), Some((_, high))) = (&fields.strides, field.byte_span()) {
            let itemsize = wide(field.itemsize());
            let kept = |((extent, old), new): ((&i64, &i64), &i64)| {
                *extent == 1 || old == new || signed(i128::from(*old) * itemsize) == i128::from(*new) * itemsize
            };
            assert!(field.shape().iter().zip(strides).zip(field.strides()).all(kept));
            assert!(high > 0);
        } else if fields.strides.is_none() {
            assert!(field.is_c_contiguous());
        }
    }
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
        assert!(address + low >= 1 << 16 && address + high <= i128::from(u64::MAX), "{field:?}");
        assert!(low <= 0 && high >= itemsize && high - low <= i128::from(i64::MAX));
    }
    assert!(field.alignment().is_power_of_two());
    assert_eq!(field.layout().len(), shape.len());
    // Nothing overflows.
    let _ = (field.is_c_contiguous(), field.is_f_contiguous());
}
