//! The C struct of the array interface, `PyArrayInterface`, by which `__array_struct__` describes host memory.
//!
//! Source: NumPy's page on the array interface, "C-struct access".

use super::array_interface::{ArrayInterface, Data, Descr, HOST, Interface};
use crate::dtype::DType;
use crate::error::ExchangeError;
use crate::layout::{Extents, MAX_NDIM};

/// The names of `__array_struct__` in errors.
pub static STRUCT: Interface = HOST.named("__array_struct__");

/// NumPy's flags of the struct.
const NOTSWAPPED: i32 = 0x200;
const WRITEABLE: i32 = 0x400;
const HAS_DESCR: i32 = 0x800;

/// A struct, fetched but not validated.
#[derive(Clone, Debug)]
pub struct ArrayStruct {
    /// Field `nd`, as [`ArrayStruct::ndim`] returns it.
    pub ndim: usize,
    /// Field `typekind`.
    pub typekind: u8,
    /// Field `itemsize`, in bytes.
    pub itemsize: i32,
    /// Field `flags`.
    pub flags: i32,
    /// Field `shape`; `None` for a null pointer.
    pub shape: Option<Extents>,
    /// Field `strides`, in bytes; `None` for a null pointer, which means C order.
    pub byte_strides: Option<Extents>,
    /// Field `data`, an address.
    pub address: u64,
}

impl ArrayStruct {
    /// Validates the fields `two` and `nd`, before a pointer of the struct is followed. Returns the number of dimensions.
    ///
    /// # Errors
    /// [`ExchangeError`] unless `two` is 2 and `nd` from 0 to 64.
    pub fn ndim(two: i32, nd: i32) -> Result<usize, ExchangeError> {
        if two != 2 {
            return Err(STRUCT.entry("two", "2, by which a PyArrayInterface is known", &two));
        }
        let ndim = usize::try_from(nd).ok().filter(|ndim| *ndim <= MAX_NDIM);
        ndim.ok_or_else(|| STRUCT.entry("nd", "0 to 64 dimensions", &nd))
    }

    /// Whether the field `descr` is valid.
    pub fn has_descr(&self) -> bool {
        self.flags & HAS_DESCR != 0
    }

    /// Returns the type string of the elements, such as `"<f8"`.
    pub fn typestr(&self) -> String {
        let is_little = (self.flags & NOTSWAPPED != 0) == cfg!(target_endian = "little");
        let order = match (self.itemsize, is_little) {
            (1, _) => '|',
            (_, true) => '<',
            (_, false) => '>',
        };
        format!("{order}{}{}", char::from(self.typekind), self.itemsize)
    }

    /// Converts the struct to the same as a dictionary, which [`ArrayInterface`] validates. `typestr` is its own.
    ///
    /// # Errors
    /// [`ExchangeError`] for a null `shape` of a field with dimensions, or an `itemsize` that is not positive.
    pub fn into_interface(
        self,
        typestr: &str,
        dtype: Option<DType>,
        descr: Descr,
    ) -> Result<ArrayInterface<'_>, ExchangeError> {
        if self.itemsize <= 0 {
            return Err(STRUCT.entry("itemsize", "at least 1 byte", &self.itemsize));
        }
        let shape = match self.shape {
            Some(shape) => shape,
            None if self.ndim == 0 => Extents::new(),
            None => return Err(STRUCT.entry("shape", "a pointer to one size per dimension", &"a null pointer")),
        };
        Ok(ArrayInterface {
            version: None,
            shape,
            typestr: typestr.into(),
            dtype,
            data: Data::At { address: self.address, readonly: self.flags & WRITEABLE == 0 },
            byte_strides: self.byte_strides,
            offset: 0,
            masked: false,
            descr,
            stream: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::device::Device;

    fn sound() -> ArrayStruct {
        ArrayStruct {
            ndim: 2,
            typekind: b'f',
            itemsize: 8,
            flags: NOTSWAPPED | WRITEABLE,
            shape: Some(smallvec![2, 3]),
            byte_strides: None,
            address: 0x10000,
        }
    }

    fn read(found: ArrayStruct) -> Result<crate::Descriptor, String> {
        let typestr = found.typestr();
        let interface = found.into_interface(&typestr, None, Descr::Absent).map_err(|error| error.to_string())?;
        interface.read(&STRUCT, Device::CPU).map_err(|error| error.to_string())
    }

    #[test]
    fn structs_are_read() {
        let field = read(sound()).expect("sound");
        assert_eq!((field.ptr().addr(), field.strides(), field.is_readonly()), (0x10000, &[3, 1][..], false));
        let frozen = read(ArrayStruct { flags: NOTSWAPPED, ..sound() }).expect("sound");
        assert!(frozen.is_readonly());
        assert!(read(ArrayStruct { typekind: b'b', itemsize: 1, flags: 0, ..sound() }).is_ok(), "bytes have no order");
    }

    #[test]
    fn each_field_is_refused_by_name() {
        assert!(ArrayStruct::ndim(3, 1).expect_err("refused").to_string().contains("[\"two\"]: expected 2"));
        assert!(
            ArrayStruct::ndim(2, -1)
                .expect_err("refused")
                .to_string()
                .contains("[\"nd\"]: expected 0 to 64 dimensions, got -1")
        );
        assert!(ArrayStruct::ndim(2, 65).is_err() && ArrayStruct::ndim(2, 64) == Ok(64));
        assert!(
            read(ArrayStruct { itemsize: 0, ..sound() })
                .expect_err("refused")
                .contains("[\"itemsize\"]: expected at least 1 byte, got 0")
        );
        assert!(read(ArrayStruct { shape: None, ..sound() }).expect_err("refused").contains("got a null pointer"));
        assert!(read(ArrayStruct { flags: WRITEABLE, ..sound() }).expect_err("refused").contains("byte order"));
        assert!(read(ArrayStruct { typekind: b'O', ..sound() }).expect_err("refused").contains("Python objects"));
        assert!(read(ArrayStruct { address: 0, ..sound() }).is_err());
    }
}
