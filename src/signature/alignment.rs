//! The alignment that a stencil wants of a field.

use crate::descriptor::Descriptor;
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind};

/// What must be aligned, and to how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WantedAlignment {
    /// Nothing.
    None,
    /// The first compute point, to so many bytes.
    OriginBytes(i64),
    /// The first compute point, to so many elements.
    OriginElements(u32),
    /// The element at index 0, to so many bytes.
    BaseBytes(u32),
}

impl WantedAlignment {
    /// The alignment in bytes for elements of this type.
    pub(super) fn bytes(self, dtype: DType) -> i64 {
        match self {
            WantedAlignment::None => 1,
            WantedAlignment::OriginBytes(bytes) => bytes,
            // At most 2**32 elements of 16 bytes: far from overflow.
            WantedAlignment::OriginElements(elements) => {
                i64::from(elements) * i64::try_from(dtype.itemsize()).unwrap_or(1)
            }
            WantedAlignment::BaseBytes(bytes) => i64::from(bytes),
        }
    }

    /// Checks the addresses of a field that has elements.
    pub(super) fn check(self, field: &Descriptor) -> Result<(), LayoutError> {
        let wanted = self.bytes(field.dtype());
        let of_base = matches!(self, WantedAlignment::BaseBytes(_));
        let address = if of_base { field.ptr().addr() } else { first_address(field) };
        if usize::try_from(wanted).is_ok_and(|size| address.is_multiple_of(size)) {
            return Ok(());
        }
        let (point, fix) = if of_base {
            ("the element at index 0", "allocate the field with the preset of its FieldSpec".to_owned())
        } else {
            let fix = format!("allocate the field with alignment_size={wanted} and its origin as aligned_index");
            ("the first compute point", fix)
        };
        let expected = format_args!("{point} at a multiple of {wanted} bytes");
        Err(LayoutError::new("alignment_size", &expected, &format_args!("{address:#x}"))
            .with_fix(&fix)
            .with_kind(LayoutErrorKind::NeedsCopy))
    }
}

/// Returns the address of the first compute point.
fn first_address(field: &Descriptor) -> usize {
    let origin = field.origin().unwrap_or_default();
    let bytes = origin.iter().zip(field.byte_strides()).map(|(index, stride)| index.wrapping_mul(stride));
    let bytes = bytes.fold(0i64, i64::wrapping_add);
    field.ptr().addr().wrapping_add_signed(isize::try_from(bytes).unwrap_or(0))
}
