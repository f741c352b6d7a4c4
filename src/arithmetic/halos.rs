//! Checks that the domains of operands match.

use smallvec::SmallVec;

use crate::layout::{Ghosts, LayoutError};
use crate::tensor::Tensor;

/// Checks that all fields that state a halo or an origin have the same one along the dimensions that they share.
///
/// Arithmetic pairs elements by index: with different halos or origins, a point of the domain would be paired with a halo point or
/// with another point of the domain. A halo is compared with a halo, and an origin, by default the lower halo, with an origin.
/// Dimensions of extent 1 are repeated and not compared. Fields that state neither are not compared, nor those that a slice has cut
/// ([`crate::Descriptor::halo_is_cut`]): the code that slices decides which points are paired.
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
pub(crate) fn check_named_halos(fields: &[&Tensor], name: impl Fn(usize) -> String) -> Result<(), LayoutError> {
    let mut stating = SmallVec::<[(usize, &Tensor); 4]>::new();
    for (place, field) in fields.iter().enumerate() {
        if !states_domain(field) {
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

/// Checks that a value that is assigned to a field by position has the same origin, if both state one; the halos may differ.
pub(crate) fn check_assigned_origin(field: &Tensor, value: &Tensor) -> Result<(), LayoutError> {
    if !states_domain(field) || !states_domain(value) {
        return Ok(());
    }
    let (origin, value_origin) = (field.inline_origin(), value.inline_origin());
    let (shape, value_shape, strides) =
        (field.descriptor().shape(), value.descriptor().shape(), value.descriptor().strides());
    // NumPy's broadcasting pairs the last dimensions. All points of a repeated one are equal.
    let pairs = (0..shape.len()).rev().zip((0..value_shape.len()).rev());
    let differs = |(axis, other): &(usize, usize)| {
        shape[*axis] == value_shape[*other] && strides[*other] != 0 && origin[*axis] != value_origin[*other]
    };
    let Some((axis, _)) = pairs.filter(|(axis, _)| shape[*axis] != 1).find(differs) else { return Ok(()) };
    let label = field.dims().get(axis).to_string();
    let (first, second) = (ghosts("the field".to_owned(), field), ghosts("value".to_owned(), value));
    Err(LayoutError::Halos { label, first: Box::new(first), second: Box::new(second) })
}

/// Returns whether a field states where its domain begins.
#[inline]
fn states_domain(field: &Tensor) -> bool {
    let descriptor = field.descriptor();
    (descriptor.halo().is_some() || descriptor.origin().is_some()) && !descriptor.halo_is_cut()
}

/// Returns a label that both fields have and along which their origins differ, or their halos if they are compared.
fn differing_label(one: &Tensor, two: &Tensor) -> Option<String> {
    let compares_halos = one.descriptor().halo().is_some() && two.descriptor().halo().is_some();
    let (dims, halo, origin) = (one.dims(), one.halo(), one.inline_origin());
    let (other_halo, other_origin) = (two.halo(), two.inline_origin());
    for (other, label) in two.dims().iter().enumerate() {
        let Some(axis) = dims.iter().position(|known| known == label) else { continue };
        let (extent, other_extent) = (one.descriptor().shape()[axis], two.descriptor().shape()[other]);
        // Different extents are repeated, or are an error of their own.
        if extent != other_extent || extent == 1 {
            continue;
        }
        if origin[axis] != other_origin[other] || compares_halos && halo[axis] != other_halo[other] {
            return Some(label.to_string());
        }
    }
    None
}

#[cold]
fn ghosts(operand: String, field: &Tensor) -> Ghosts {
    Ghosts { operand, halo: field.halo().to_vec(), origin: field.origin() }
}
