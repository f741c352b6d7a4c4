//! Whether the domains of operands meet.

use smallvec::SmallVec;

use crate::layout::{Ghosts, LayoutError};
use crate::tensor::Tensor;

/// Checks that fields which state halos state the same ones in the dimensions that they share.
///
/// Elements go together by index, so a point of the domain would meet a ghost point, or another point of the domain.
/// Dimensions of one point, which are repeated, don't count, nor do fields that state no halo, or have what a slice left of
/// one ([`crate::Descriptor::halo_is_cut`]): who slices says which points go together.
///
/// # Errors
/// [`LayoutError::Halos`] naming the dimension and the two fields, by their position.
///
/// # Example
/// ```
/// use dlfield::arithmetic::check_halos;
/// use dlfield::{DType, Spec, Tensor};
/// let field = |width| Tensor::zeros(&Spec::new(&[6], DType::F64).halo(&[(width, width)])).unwrap();
/// assert!(check_halos(&[&field(1), &field(2)]).is_err());
/// assert!(check_halos(&[&field(1), &field(1)]).is_ok());
/// ```
pub fn check_halos(fields: &[&Tensor]) -> Result<(), LayoutError> {
    check_named_halos(fields, |place| format!("operand {place}"))
}

/// As [`check_halos`], of operands that are called otherwise in a message.
#[inline]
pub(crate) fn check_named_halos(fields: &[&Tensor], name: impl Fn(usize) -> String) -> Result<(), LayoutError> {
    let mut stating = SmallVec::<[(usize, &Tensor); 4]>::new();
    for (place, field) in fields.iter().enumerate() {
        if field.descriptor().halo().is_none() || field.descriptor().halo_is_cut() {
            continue;
        }
        for (earlier, other) in &stating {
            if let Some(label) = differing_label(other, field) {
                let (first, second) = (ghosts(name(*earlier), other), ghosts(name(place), field));
                return Err(LayoutError::Halos { label, first: Box::new(first), second: Box::new(second) });
            }
        }
        stating.push((place, field));
    }
    Ok(())
}

/// A label that both fields have, and along which they have different halos or origins.
fn differing_label(one: &Tensor, two: &Tensor) -> Option<String> {
    let (dims, halo, origin) = (one.dims(), one.halo(), one.origin());
    let (other_halo, other_origin) = (two.halo(), two.origin());
    for (other, label) in two.dims().iter().enumerate() {
        let Some(axis) = dims.iter().position(|known| known == label) else { continue };
        let (extent, other_extent) = (one.descriptor().shape()[axis], two.descriptor().shape()[other]);
        // Other sizes are an error of their own, or repeated.
        if extent != other_extent || extent == 1 {
            continue;
        }
        if (halo[axis], origin[axis]) != (other_halo[other], other_origin[other]) {
            return Some(label.to_string());
        }
    }
    None
}

#[cold]
fn ghosts(operand: String, field: &Tensor) -> Ghosts {
    Ghosts { operand, halo: field.halo().to_vec(), origin: field.origin().to_vec() }
}
