//! Checks that the domains of operands match.

use smallvec::SmallVec;

use crate::layout::{Ghosts, LayoutError};
use crate::tensor::Tensor;

/// Checks that all fields with a halo have the same halo and origin along the dimensions that they share.
///
/// Arithmetic pairs elements by index: with different halos, a point of the domain would be paired with a halo point or with
/// another point of the domain. Dimensions of extent 1 are repeated and not compared. Fields without a halo are not compared,
/// nor fields whose halo a slice has cut ([`crate::Descriptor::halo_is_cut`]): the code that slices decides which
/// points are paired.
///
/// # Errors
/// [`LayoutError::Halos`] naming the dimension and the two fields by their position; allowed are equal halos and origins.
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

/// As [`check_halos`], with `name` for the operands' names in the error.
#[inline]
#[doc(hidden)]
pub fn check_named_halos(fields: &[&Tensor], name: impl Fn(usize) -> String) -> Result<(), LayoutError> {
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

/// Returns a label that both fields have and along which their halos or origins differ.
fn differing_label(one: &Tensor, two: &Tensor) -> Option<String> {
    let (dims, halo, origin) = (one.dims(), one.halo(), one.inline_origin());
    let (other_halo, other_origin) = (two.halo(), two.inline_origin());
    for (other, label) in two.dims().iter().enumerate() {
        let Some(axis) = dims.iter().position(|known| known == label) else { continue };
        let (extent, other_extent) = (one.descriptor().shape()[axis], two.descriptor().shape()[other]);
        // Different extents are repeated, or are an error of their own.
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
    Ghosts { operand, halo: field.halo().to_vec(), origin: field.origin() }
}
