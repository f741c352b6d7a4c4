//! Errors for operands whose sizes do not fit together: often one of them has its halo and the other has not.

use pyo3::prelude::*;

use dlfield::native::errors::ErrorKind;
use dlfield::native::new_error_of;
use dlfield::{Dim, LayoutError, Tensor};

/// The error for operands of different sizes, with their names.
#[cold]
pub(super) fn different_sizes(error: LayoutError, operands: &[(String, Option<&Tensor>)]) -> PyErr {
    let LayoutError::Operands { label, first, second } = error else { return error.into() };
    let ((one, its_points), (other, other_points)) = ((&operands[first.0], first.1), (&operands[second.0], second.1));
    let hint = if has_domain(one.1, &label, other_points) {
        format!("; {} has a halo: compute with its domain_view", one.0)
    } else if has_domain(other.1, &label, its_points) {
        format!("; {} has a halo: compute with its domain_view", other.0)
    } else {
        String::new()
    };
    ErrorKind::Layout.error(format!(
        "shape: dimension {label:?} has {its_points} points in {} and {other_points} in {}; allowed are equal sizes, or 1{hint}",
        one.0, other.0
    ))
}

/// The error for an output without the points of the result.
#[cold]
pub(super) fn wrong_output(output: Option<&Tensor>, label: &Dim, got: i64, wanted: i64) -> PyErr {
    let hint = match has_domain(output, &label.to_string(), wanted) {
        true => "; it has a halo: pass its domain_view",
        false => "",
    };
    ErrorKind::Layout.error(format!(
        "out: {got} points in dimension \"{label}\", where the result has {wanted}; allowed is {wanted}{hint}"
    ))
}

/// Whether a field has this many points without its halo, and has one.
fn has_domain(field: Option<&Tensor>, label: &str, points: i64) -> bool {
    let Some((field, Ok(axis))) = field.map(|field| (field, field.axis(label))) else { return false };
    let (lower, upper) = field.halo()[axis];
    lower + upper > 0 && field.descriptor().shape()[axis] - lower - upper == points
}

/// Adds to the error of an assignment that either field has the sizes of the other's domain.
#[cold]
pub(crate) fn with_domain_hint(py: Python<'_>, error: PyErr, value: &Tensor, to: &Tensor) -> PyErr {
    let is_domain_of = |part: &Tensor, whole: &Tensor| {
        let (part, domain) = (part.descriptor().shape(), whole.domain_view());
        part != whole.descriptor().shape() && part == domain.descriptor().shape()
    };
    let hint = if is_domain_of(to, value) {
        "the value has a halo: assign its domain_view"
    } else if is_domain_of(value, to) {
        "the field has a halo: assign to its domain_view"
    } else {
        return error;
    };
    let hinted = new_error_of(&error.get_type(py), format!("{}; {hint}", error.value(py)));
    hinted.set_cause(py, error.cause(py));
    hinted.set_traceback(py, error.traceback(py));
    hinted
}
