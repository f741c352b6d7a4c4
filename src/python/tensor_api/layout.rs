//! The places of all fields of the table's structs in version 1, on platforms of 64 bits. A change needs another
//! [`VERSION`](super::VERSION).

use std::mem::offset_of;

use super::parts::Label;
use super::{Field, FieldMetadata, FieldPromise, Labels, NewTensor, SharedTensor, TensorApi, VERSION};

/// Checks the size of a struct, and the offset of each field.
macro_rules! check {
    ($name:ident: $size:literal, $($field:ident: $offset:literal),+) => {
        const _: () = {
            assert!(VERSION == 1 && size_of::<$name>() == $size && align_of::<$name>() <= 8);
            $(assert!(offset_of!($name, $field) == $offset);)+
            // All fields are named: this would not compile otherwise.
            #[allow(dead_code, reason = "for the compiler")]
            fn all_named(parts: &$name) {
                let $name { $($field: _),+ } = parts;
            }
        };
    };
}

check!(Field: 48, data: 0, shape: 8, strides: 16, ndim: 24, device: 32, dtype: 40, readonly: 44);
check!(Label: 24, kind: 0, number: 4, text: 8, len: 16);
check!(FieldMetadata: 40, ndim: 0, labels: 8, origin: 16, halo: 24, halo_is_cut: 32);
check!(FieldPromise: 96, ndim: 0, alignment_size: 8, aligned_index: 16, has_layout: 24, is_padded: 25, layout: 26);
check!(NewTensor: 112, field: 0, metadata: 48, promise: 88, owner: 96, release: 104);
check!(SharedTensor: 152, field: 0, promise: 48, owner: 144);
check!(
    TensorApi: 64, version: 0, describe: 8, synchronize: 16, metadata: 24, create: 32, share: 40, retain: 48, release: 56
);

const _: () = assert!(size_of::<Labels>() == 64 * size_of::<Label>());
