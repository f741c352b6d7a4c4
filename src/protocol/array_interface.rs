//! The dictionaries of the array interface for the host, CUDA and ROCm.
//!
//! Source: NumPy's page on the array interface, version 3; Numba's page on the CUDA array interface, versions 2 and 3;
//! GDP 3 for the data interface, whose dictionaries are the same but need no version.

use std::borrow::Cow;
use std::ptr::without_provenance_mut;

use super::typestr;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Count, ExchangeError, Result};
use crate::layout::Extents;
use std::fmt::Display;

/// One of the interfaces: what its dictionaries must contain.
#[derive(Debug)]
pub struct Interface {
    /// The attribute that holds the dictionary.
    pub name: &'static str,
    versions: &'static [i64],
    /// The allowed versions, in words.
    allowed: &'static str,
    /// Whether the version may be absent: NumPy does not check that of the host interface.
    versionless: bool,
    /// The numbers that are not streams, and in words what is allowed; `None` for an interface without streams.
    streams: Option<(&'static [i64], &'static str)>,
}

const CUDA_STREAMS: (&[i64], &str) = (&[0], "None, 1 (legacy default), 2 (per-thread default) or a handle");

/// `__array_interface__`.
pub static HOST: Interface =
    Interface { name: "__array_interface__", versions: &[3], allowed: "version 3", versionless: true, streams: None };

/// `__cuda_array_interface__`.
pub static CUDA: Interface = Interface {
    name: "__cuda_array_interface__",
    versions: &[2, 3],
    allowed: "version 2 or 3",
    versionless: false,
    streams: Some(CUDA_STREAMS),
};

/// `__hip_array_interface__`.
pub static HIP: Interface = Interface {
    name: "__hip_array_interface__",
    versions: &[2, 3],
    allowed: "version 2 or 3",
    versionless: false,
    streams: Some((&[1, 2], "None, 0 (default) or a handle")),
};

/// A CUDA buffer of GT4Py's data interface.
pub static GT_GPU: Interface = Interface { versionless: true, ..CUDA };

impl Interface {
    /// Returns the same interface under another name.
    #[must_use]
    pub const fn named(&self, name: &'static str) -> Interface {
        let Interface { versions, allowed, versionless, streams, .. } = *self;
        Interface { name, versions, allowed, versionless, streams }
    }

    /// Returns the error for an entry that violates the interface.
    pub fn entry(&self, key: &str, expected: &str, got: &dyn Display) -> ExchangeError {
        ExchangeError::new(&format!("{}[{key:?}]", self.name), &expected, got)
    }

    /// Returns the error for a required key that is absent.
    pub fn missing(&self, key: &str, expected: &str) -> ExchangeError {
        self.entry(key, expected, &"none")
    }

    /// Returns `None` if a number can be a stream of this interface, else what is allowed.
    pub fn refuses_stream(&self, stream: i64) -> Option<&'static str> {
        let (never, allowed) = self.streams.unwrap_or((&[], "None on the host, which has no streams"));
        (self.streams.is_none() || stream < 0 || never.contains(&stream)).then_some(allowed)
    }
}

/// Where the elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// At an address.
    At {
        /// The address.
        address: u64,
        /// Whether the memory must not be written.
        readonly: bool,
    },
    /// In a buffer, which must hold them all.
    In {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        len: usize,
        /// Whether the buffer must not be written.
        readonly: bool,
    },
}

/// Content of the key `descr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descr {
    /// The key is absent.
    Absent,
    /// One field without a name, with this type string: the same as `typestr`.
    Plain(String),
    /// Anything else, as text for the user.
    Fields(String),
}

/// A dictionary, fetched but not validated.
#[derive(Clone, Debug)]
pub struct ArrayInterface<'a> {
    /// Key `version`.
    pub version: Option<i64>,
    /// Key `shape`.
    pub shape: Extents,
    /// Key `typestr`.
    pub typestr: Cow<'a, str>,
    /// The element type according to the object, for a type string that has none.
    pub dtype: Option<DType>,
    /// Key `data`.
    pub data: Data,
    /// Key `strides`, in bytes; `None` means C order.
    pub byte_strides: Option<Extents>,
    /// Key `offset`: bytes from the start of a buffer.
    pub offset: i64,
    /// Whether there is a key `mask` other than None.
    pub masked: bool,
    /// Key `descr`.
    pub descr: Descr,
    /// Key `stream`.
    pub stream: Option<i64>,
}

impl ArrayInterface<'_> {
    /// A dictionary with `data` alone, to fill in in place: the struct is large.
    pub(crate) fn at(data: Data) -> Self {
        ArrayInterface {
            version: None,
            shape: Extents::new(),
            typestr: Cow::Borrowed(""),
            dtype: None,
            data,
            byte_strides: None,
            offset: 0,
            masked: false,
            descr: Descr::Absent,
            stream: None,
        }
    }

    /// Validates the dictionary of an interface whose memory is on `device`, and returns its descriptor. The memory is not
    /// read.
    ///
    /// # Errors
    /// [`ExchangeError`] or [`DTypeError`](crate::DTypeError) naming the key at fault.
    pub fn read(&self, interface: &Interface, device: Device) -> Result<Descriptor> {
        let mut descriptor = Descriptor::BLANK;
        self.read_into(&mut descriptor, interface, device)?;
        Ok(descriptor)
    }

    /// As [`ArrayInterface::read`], in place. After an error the descriptor may have the rejected field.
    pub(crate) fn read_into(&self, descriptor: &mut Descriptor, interface: &Interface, device: Device) -> Result<()> {
        match self.version {
            Some(version) if !interface.versions.contains(&version) => {
                return Err(interface.entry("version", interface.allowed, &version).into());
            }
            None if !interface.versionless => return Err(interface.missing("version", interface.allowed).into()),
            _ => {}
        }
        if self.masked {
            return Err(interface
                .entry("mask", "None", &"a mask, which no other protocol has")
                .with_fix(&"pass the data without it")
                .into());
        }
        if let Some(stream) = self.stream
            && let Some(allowed) = interface.refuses_stream(stream)
        {
            return Err(interface.entry("stream", allowed, &stream).into());
        }
        let dtype = self.element_type(interface)?;
        let compact;
        let byte_strides = match &self.byte_strides {
            Some(strides) => strides,
            None => {
                compact = c_order(&self.shape, dtype.itemsize());
                &compact
            }
        };
        let (address, readonly) = self.place(interface)?;
        let ptr = without_provenance_mut(usize::try_from(address).unwrap_or(usize::MAX));
        descriptor.set_with_byte_strides(ptr, device, dtype, readonly, &self.shape, byte_strides)?;
        if let Data::In { len, .. } = self.data {
            let (low, high) = descriptor.byte_span().unwrap_or((0, 0));
            check_inside(interface, i128::from(self.offset) + low, i128::from(self.offset) + high, len)?;
        }
        Ok(())
    }

    /// Returns the address of the element at index 0, and whether it must not be written.
    fn place(&self, interface: &Interface) -> Result<(u64, bool), ExchangeError> {
        match self.data {
            Data::At { .. } if self.offset != 0 => {
                let error = interface.entry("offset", "0 with an address in data", &self.offset);
                Err(error.with_fix(&"add the offset to the address"))
            }
            Data::At { address, readonly } => Ok((address, readonly)),
            Data::In { address, len, readonly } => {
                let offset = i128::from(self.offset);
                check_inside(interface, offset, offset, len)?;
                // Inside the buffer, so inside memory.
                Ok((address.wrapping_add_signed(self.offset), readonly))
            }
        }
    }

    /// Returns the element type: that of the type string or, if that is void, of the object's own dtype.
    fn element_type(&self, interface: &Interface) -> Result<DType> {
        match &self.descr {
            Descr::Fields(got) => {
                let expected = "no entry, or one unnamed field with the type of typestr";
                return Err(interface.entry("descr", expected, got).with_fix(&"pass one field at a time").into());
            }
            Descr::Plain(text) if **text != *self.typestr => {
                let got = format_args!("{text:?} while typestr is {:?}", self.typestr);
                return Err(interface.entry("descr", "the same type string as typestr", &got).into());
            }
            _ => {}
        }
        match (self.dtype, typestr::void_size(&self.typestr)) {
            (Some(dtype), Some(size)) if size == dtype.itemsize() => Ok(dtype),
            (Some(dtype), Some(size)) => {
                let size = i64::try_from(size).unwrap_or(i64::MAX);
                let expected =
                    format_args!("{}, the size of the object's dtype {dtype}", Count(dtype.itemsize(), "byte"));
                Err(typestr::wrong_size("typestr", &self.typestr, size, &expected).into())
            }
            _ => Ok(typestr::decode(&self.typestr)?),
        }
    }
}

/// Rejects elements outside a buffer. `low` and `high` are bytes from its start.
fn check_inside(interface: &Interface, low: i128, high: i128, len: usize) -> Result<(), ExchangeError> {
    if low < 0 || high > i128::try_from(len).unwrap_or(i128::MAX) {
        return Err(outside_buffer(interface.name, low, high, len));
    }
    Ok(())
}

/// Returns byte strides of compact elements, last index fastest; the descriptor rejects those of an invalid shape.
/// Returns the error for elements outside the buffer that holds them.
#[cold]
pub(crate) fn outside_buffer(argument: &str, low: i128, high: i128, len: usize) -> ExchangeError {
    let expected = format_args!("elements in bytes 0 to {len} of the buffer");
    ExchangeError::new(argument, &expected, &format_args!("{low} to {high}"))
        .with_fix(&"check offset, shape and strides")
}

pub(super) fn c_order(shape: &[i64], itemsize: usize) -> Extents {
    let mut step = i64::try_from(itemsize).unwrap_or(i64::MAX);
    let mut strides = Extents::from_slice(shape);
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    /// Two rows of three float64.
    fn sound() -> ArrayInterface<'static> {
        ArrayInterface {
            version: Some(3),
            shape: smallvec![2, 3],
            typestr: "<f8".into(),
            dtype: None,
            data: Data::At { address: 0x10000, readonly: false },
            byte_strides: None,
            offset: 0,
            masked: false,
            descr: Descr::Absent,
            stream: None,
        }
    }

    fn refusal(interface: &Interface, change: impl Fn(&mut ArrayInterface<'_>)) -> String {
        let mut found = sound();
        change(&mut found);
        found.read(interface, Device::CPU).expect_err("refused").to_string()
    }

    #[test]
    fn each_key_is_refused_by_name() {
        for (interface, version) in [(&HOST, 2), (&HOST, 4), (&CUDA, 1), (&CUDA, 4), (&HIP, 0)] {
            let message = refusal(interface, |found| found.version = Some(version));
            assert!(message.starts_with(&format!("{}[\"version\"]: expected", interface.name)), "{message}");
            assert!(message.ends_with(&format!("got {version}")), "{message}");
        }
        assert!(refusal(&CUDA, |found| found.version = None).contains("[\"version\"]: expected"));
        let unversioned = ArrayInterface { version: None, ..sound() };
        assert!(unversioned.read(&HOST, Device::CPU).is_ok() && unversioned.read(&GT_GPU, Device::cuda(0)).is_ok());
        assert!(refusal(&HOST, |found| found.masked = true).contains("[\"mask\"]"));
        assert!(
            refusal(&HOST, |found| found.offset = 8)
                .contains("[\"offset\"]: expected 0 with an address in data, got 8")
        );
        assert!(refusal(&HOST, |found| found.descr = Descr::Fields("[('a', '<f8')]".to_owned())).contains("'a'"));
        assert!(refusal(&HOST, |found| found.descr = Descr::Plain("<i8".to_owned())).contains("\"<i8\" while"));
        assert!(refusal(&HOST, |found| found.typestr = ">f8".into()).contains("byte order"));
        assert!(refusal(&HOST, |found| found.byte_strides = Some(smallvec![8])).contains("got 1 entry"));
        assert!(refusal(&HOST, |found| found.byte_strides = Some(smallvec![12, 8])).contains("12 bytes"));
    }

    #[test]
    fn void_elements_are_what_the_object_says_in_that_size() {
        let void = |text: &'static str, dtype| ArrayInterface { typestr: text.into(), dtype, ..sound() };
        let read = |found: ArrayInterface<'_>| found.read(&HOST, Device::CPU);
        assert_eq!(read(void("|V2", Some(DType::BF16))).expect("bfloat16").dtype(), DType::BF16);
        assert!(read(void("|V1", Some(DType::BF16))).expect_err("size").to_string().contains("bfloat16"));
        assert!(read(void("|V2", None)).expect_err("void").to_string().contains("structured"));
        assert_eq!(read(void("<f8", Some(DType::BF16))).expect("typestr counts").dtype(), DType::F64);
    }
}
