//! Checks that the domains of operands match.

use smallvec::SmallVec;

use crate::error::{LayoutError, LayoutErrorKind, Tuple};
use crate::tensor::Tensor;

/// Checks that all fields that state a halo or an origin have the same one along the dimensions that they share.
///
/// Arithmetic pairs elements by index: with different halos or origins, a point of the domain would be paired with a halo point or
/// with another point of the domain. A halo is compared with a halo, and an origin, by default the lower halo, with an origin.
/// Dimensions of extent 1 are repeated and not compared. Fields that state neither are not compared, nor those that a slice has cut
/// ([`crate::Descriptor::halo_is_cut`]): the code that slices decides which points are paired.
///
/// # Errors
/// [`LayoutError`] naming the dimension and the two fields by their position, if their halos or origins differ.
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
                return Err(domains_differ(&label, (&name(*earlier), other), (&name(place), field)));
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
    Err(domains_differ(&label, ("the field", field), ("value", value)))
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

/// Returns the error for two fields, with their names, whose domains differ along a dimension.
#[cold]
fn domains_differ(label: &str, one: (&str, &Tensor), two: (&str, &Tensor)) -> LayoutError {
    let has_no_halo = |(_, field): (&str, &Tensor)| field.halo().iter().all(|widths| *widths == (0, 0));
    let error = if has_no_halo(one) && has_no_halo(two) {
        let origin = |(name, field): (&str, &Tensor)| format!("{name} with origin {}", Tuple(&field.origin()));
        let got = format!("{}, and {}", origin(one), origin(two));
        let expected = format_args!("equal origins along {label:?}, where elements of one index are different points");
        LayoutError::new("origin", &expected, &got)
            .with_fix(&"slice both to the points that they share, or state one origin for both")
    } else {
        let halo = |(name, field): (&str, &Tensor)| {
            let halo: Vec<String> = field.halo().iter().map(|widths| format!("{widths:?}")).collect();
            format!("{name} with halo {} and origin {}", Tuple(&halo), Tuple(&field.origin()))
        };
        let got = format!("{}, and {}", halo(one), halo(two));
        let expected = format_args!("equal halos along {label:?}, where the domains differ");
        LayoutError::new("halo", &expected, &got).with_fix(&"take the domain_view of both, or give both the same halo")
    };
    error.with_kind(LayoutErrorKind::Mismatch)
}
