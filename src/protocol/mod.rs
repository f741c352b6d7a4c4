//! Wire formats and their conversion to [`crate::Descriptor`]s, without an interpreter.
//!
//! Importers in other layers fetch plain structs from objects; this module validates them.

pub mod array_interface;
pub mod array_struct;
pub mod buffer;
pub mod dlpack;
mod error;
pub mod pep3118;
pub mod typestr;

pub use error::ExchangeError;

use crate::layout::Extents;

/// Returns byte strides of compact elements, last index fastest; the descriptor rejects those of an invalid shape.
fn c_order(shape: &[i64], itemsize: usize) -> Extents {
    let mut step = i64::try_from(itemsize).unwrap_or(i64::MAX);
    let mut strides = Extents::from_slice(shape);
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}
