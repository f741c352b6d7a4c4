//! Conversion of DLPack structs to descriptors.
//!
//! Source: the DLPack 1.3 header and the array API standard on data interchange.

#![allow(unsafe_code, reason = "shape and strides come as raw pointers")]

use dlpark::DlpackFlags;
use dlpark::ffi::{DLPackVersion, DLTensor};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{DTypeError, ExchangeError, Result};
use crate::layout::{Extents, MAX_NDIM};

/// The version that this crate writes, and the newest that it was written for.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 3 };

/// The first version that requires strides.
const STRIDES_REQUIRED: (u32, u32) = (1, 2);

/// Validates a DLPack tensor and returns its descriptor.
///
/// `version` is that of the managed tensor or of the exchange table, `None` for a legacy managed tensor. Below version 1.2 NULL
/// strides mean row-major order. `byte_offset` is added to the address.
///
/// # Errors
/// [`ExchangeError`], [`DTypeError`] or [`crate::DeviceError`] naming the field at fault.
///
/// # Safety
/// - `tensor.shape` is NULL or points to `ndim` readable numbers, and so is `tensor.strides`.
pub unsafe fn read(tensor: &DLTensor, version: Option<DLPackVersion>, flags: DlpackFlags) -> Result<Descriptor> {
    let mut descriptor = Descriptor::BLANK;
    // SAFETY: passed on from the caller.
    unsafe { read_into(&mut descriptor, tensor, version, flags) }?;
    Ok(descriptor)
}

/// As [`read`], into an existing descriptor.
///
/// # Safety
/// - As for [`read`].
pub(crate) unsafe fn read_into(
    descriptor: &mut Descriptor,
    tensor: &DLTensor,
    version: Option<DLPackVersion>,
    flags: DlpackFlags,
) -> Result<()> {
    let device = Device::from_dlpack(tensor.device)?;
    let dtype = DType::from_dlpack(tensor.dtype)?;
    if dtype.is_sub_byte() && !flags.contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED) {
        let got = format_args!("several {dtype} elements packed into each byte");
        return Err(DTypeError::new("dtype", &"one element per byte", &got).into());
    }
    let ndim = checked_ndim(tensor.ndim)?;
    // SAFETY: passed on from the caller.
    let (shape, strides) = unsafe { (numbers(tensor.shape, ndim), numbers(tensor.strides, ndim)) };
    let Some(shape) = shape else { return Err(null_shape(ndim).into()) };
    let compact;
    let strides = match (strides, version) {
        (Some(strides), _) => strides,
        (None, Some(version)) if (version.major, version.minor) >= STRIDES_REQUIRED => {
            let got = format_args!("NULL with ndim {ndim} in DLPack {}.{}", version.major, version.minor);
            return Err(
                ExchangeError::new("strides", &"strides, which are optional only before DLPack 1.2", &got).into()
            );
        }
        (None, _) => {
            compact = row_major(shape);
            &compact[..]
        }
    };
    let start = tensor.data.cast::<u8>();
    let data = if tensor.byte_offset == 0 { start } else { offset_by(start, tensor.byte_offset)? };
    let mut set =
        |strides: &[i64]| descriptor.set(data, device, dtype, flags.contains(DlpackFlags::READ_ONLY), shape, strides);
    Ok(set(strides).or_else(|_| set(&signed(strides, dtype.itemsize())))?)
}

/// Returns strides with those replaced that CuPy (14.2) computes for negative ones: it divides the bytes by the element size as
/// unsigned numbers. Such a quotient stands for 2**63 bytes or more, which no memory has.
#[cold]
fn signed(strides: &[i64], itemsize: usize) -> Extents {
    let Ok(itemsize) = u64::try_from(itemsize) else { return strides.into() };
    let of_one = |stride: &i64| match stride.cast_unsigned().checked_mul(itemsize).map(u64::cast_signed) {
        Some(bytes) if bytes < 0 => bytes / itemsize.cast_signed(),
        _ => *stride,
    };
    strides.iter().map(of_one).collect()
}

/// Returns the address so many bytes after `start`. No object is larger than `isize::MAX` bytes, and none crosses the middle or
/// the end of the address space.
#[cold]
fn offset_by(start: *mut u8, byte_offset: u64) -> Result<*mut u8, ExchangeError> {
    let outside = || {
        let expected = "less than 2**63, inside the memory at data and the address space";
        ExchangeError::new("byte_offset", &expected, &byte_offset)
    };
    let Ok(offset) = isize::try_from(byte_offset) else { return Err(outside()) };
    if start.is_null() {
        // An offset from NULL is still NULL.
        return Ok(start);
    }
    let (from, to) = (start.addr(), start.addr().wrapping_add_signed(offset));
    let same_half = (from ^ to) >> (usize::BITS - 1) == 0;
    if same_half && from <= to { Ok(start.with_addr(to)) } else { Err(outside()) }
}

/// Returns the `ndim` numbers at `start`; `None` for NULL unless `ndim` is 0.
///
/// # Safety
/// - `start` is NULL or points to `ndim` numbers that stay readable for the lifetime.
unsafe fn numbers<'a>(start: *const i64, ndim: usize) -> Option<&'a [i64]> {
    match (start.is_null(), ndim) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: not NULL, so readable by the caller's contract.
        (false, _) => Some(unsafe { std::slice::from_raw_parts(start, ndim) }),
    }
}

/// Returns compact strides, last index fastest; the descriptor rejects those of an invalid shape.
fn row_major(shape: &[i64]) -> Extents {
    let mut strides = Extents::from_elem(1, shape.len());
    let mut step = 1i64;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}

/// Checks the number of dimensions of a struct.
///
/// # Errors
/// [`ExchangeError`] unless it is 0 to [`MAX_NDIM`].
pub(crate) fn checked_ndim(ndim: i32) -> Result<usize, ExchangeError> {
    let checked = usize::try_from(ndim).ok().filter(|ndim| *ndim <= MAX_NDIM);
    checked.ok_or_else(|| ExchangeError::new("ndim", &format_args!("0 to {MAX_NDIM} dimensions"), &ndim))
}

/// Returns the error for a shape that is NULL.
#[cold]
pub(crate) fn null_shape(ndim: usize) -> ExchangeError {
    ExchangeError::new("shape", &format_args!("{ndim} extents"), &"NULL")
}

/// Returns the error for a DLPack struct that is NULL.
#[cold]
pub(crate) fn null_pointer(argument: &str) -> ExchangeError {
    ExchangeError::new(argument, &"the address of a DLPack struct", &"NULL")
}

/// Returns the error for a version whose struct layout is unknown.
#[cold]
pub(crate) fn unknown_version(version: DLPackVersion) -> ExchangeError {
    ExchangeError::new("version", &"major version 1", &format_args!("DLPack {}.{}", version.major, version.minor))
}
