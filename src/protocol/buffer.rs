//! Buffers of Python's buffer protocol.
//!
//! Source: PEP 3118 and the C API's page on the buffer protocol.

use std::ptr::without_provenance_mut;

use super::array_interface::c_order;
use super::pep3118;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Count, ExchangeError, ExchangeErrorKind, Result, Tuple};

/// A buffer of the buffer protocol, fetched but not validated.
#[derive(Clone, Debug)]
pub struct Buffer<'a> {
    /// Address of the element at index 0.
    pub address: usize,
    /// Bytes of all elements.
    pub len: i64,
    /// Bytes of one element.
    pub itemsize: i64,
    /// Whether the memory must not be written.
    pub readonly: bool,
    /// The element format; `None` means unsigned bytes.
    pub format: Option<&'a str>,
    /// Extents; `None` means one dimension.
    pub shape: Option<&'a [i64]>,
    /// Strides in bytes; `None` means C order.
    pub byte_strides: Option<&'a [i64]>,
    /// Offsets after following a pointer; negative ones mean no pointer.
    pub suboffsets: Option<&'a [i64]>,
}

impl Buffer<'_> {
    /// Validates a buffer and returns its descriptor. The memory is not read.
    ///
    /// # Errors
    /// [`ExchangeError`] or [`crate::DTypeError`] naming the field at fault.
    pub fn read(&self) -> Result<Descriptor> {
        let dtype = pep3118::decode(self.format, self.itemsize)?;
        if let Some(suboffsets) = self.suboffsets
            && let Some(axis) = suboffsets.iter().position(|offset| *offset >= 0)
        {
            let got = format_args!("{} at axis {axis}", suboffsets[axis]);
            return Err(ExchangeError::new("suboffsets", &"a buffer without suboffsets", &got)
                .with_fix(&"pass a copy")
                .with_kind(ExchangeErrorKind::NeedsCopy)
                .into());
        }
        let flat;
        let shape = match self.shape {
            Some(shape) => shape,
            None => {
                flat = [self.len / self.itemsize.max(1)];
                &flat[..]
            }
        };
        let compact;
        let byte_strides = match self.byte_strides {
            Some(strides) => strides,
            None => {
                compact = c_order(shape, dtype.itemsize());
                &compact[..]
            }
        };
        let ptr = without_provenance_mut(self.address);
        let found = Descriptor::from_byte_strides(ptr, Device::CPU, dtype, self.readonly, shape, byte_strides)?;
        if found.nbytes() != self.len {
            let (expected, itemsize) = (found.nbytes(), dtype.itemsize());
            let got = format_args!("{} for shape {} of {itemsize}-byte elements", self.len, Tuple(shape));
            return Err(
                ExchangeError::new("len", &format_args!("a buffer of {}", Count(expected, "byte")), &got).into()
            );
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of three float64.
    fn sound() -> Buffer<'static> {
        Buffer {
            address: 0x10000,
            len: 48,
            itemsize: 8,
            readonly: false,
            format: Some("d"),
            shape: Some(&[2, 3]),
            byte_strides: Some(&[8, 16]),
            suboffsets: None,
        }
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused_by_name() {
        for (named, buffer) in [
            (
                "suboffsets: expected a buffer without suboffsets, got 0 at axis 1",
                Buffer { suboffsets: Some(&[-1, 0]), ..sound() },
            ),
            ("len: expected a buffer of 48 bytes, got 40", Buffer { len: 40, ..sound() }),
            ("len: expected a buffer of 48 bytes, got -8", Buffer { len: -8, ..sound() }),
            ("shape: expected extents of 0 or more, got -3", Buffer { shape: Some(&[2, -3]), ..sound() }),
            (
                "strides: expected multiples of the element size 8, got 4 bytes",
                Buffer { byte_strides: Some(&[4, 16]), ..sound() },
            ),
            (
                "strides: expected one entry for each dimension, got 1 entry",
                Buffer { byte_strides: Some(&[8]), ..sound() },
            ),
            (
                "format: expected elements of 8 bytes, got \"d\" with elements of 4 bytes",
                Buffer { itemsize: 4, ..sound() },
            ),
            (
                "format: expected elements of 8 bytes, got \"d\" with elements of 0 bytes",
                Buffer { itemsize: 0, ..sound() },
            ),
            ("data: expected an address, as the tensor has elements, got NULL", Buffer { address: 0, ..sound() }),
        ] {
            let message = buffer.read().expect_err(named).to_string();
            assert!(message.starts_with(named), "{message}");
        }
        let odd = Buffer { shape: None, byte_strides: None, len: 47, ..sound() };
        assert!(odd.read().is_err());
    }
}
