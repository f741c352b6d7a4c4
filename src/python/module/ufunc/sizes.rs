//! Errors for operands whose sizes do not fit together: often one of them has its halo and the other has not.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::dims::Dim;
use crate::error::{Count, LayoutError, LayoutErrorKind};
use crate::python::convert::errors::{ErrorKind, reworded};
use crate::tensor::Tensor;

/// An operand in error messages: its name, and the tensor. `None` for arrays of others, which have no `domain_view`.
pub(super) type Named<'a> = (String, Option<&'a Tensor>);

/// The error for operands of different sizes.
#[cold]
pub(super) fn different_sizes(label: &Dim, first: (usize, i64), second: (usize, i64), operands: &[Named<'_>]) -> PyErr {
    let label = label.to_string();
    let ((one, its_points), (other, other_points)) = ((&operands[first.0], first.1), (&operands[second.0], second.1));
    let fix = if has_domain(one.1, &label, other_points) && fits(one.1, other.1) {
        format!("{} has a halo: compute with its domain_view", one.0)
    } else if has_domain(other.1, &label, its_points) && fits(other.1, one.1) {
        format!("{} has a halo: compute with its domain_view", other.0)
    } else {
        String::new()
    };
    let got = format_args!("{} in {} and {other_points} in {}", Count(its_points, "point"), one.0, other.0);
    LayoutError::new("shape", &format_args!("equal sizes of dimension {label:?}, or 1"), &got)
        .with_fix(&fix)
        .with_kind(LayoutErrorKind::Mismatch)
        .into()
}

/// The error for an output without the points of the result.
#[cold]
pub(super) fn wrong_output(output: Option<&Tensor>, label: Dim, got: i64, wanted: i64) -> PyErr {
    let hint = match has_domain(output, &label.to_string(), wanted) {
        true => "it has a halo: pass its domain_view",
        false => "",
    };
    let expected = format_args!("{} in dimension \"{label}\", as the result has", Count(wanted, "point"));
    LayoutError::new("out", &expected, &got).with_fix(&hint).into()
}

/// Whether a field has a halo along a dimension, and this many points without it.
fn has_domain(field: Option<&Tensor>, label: &str, points: i64) -> bool {
    let Some((field, Ok(axis))) = field.map(|field| (field, field.axis(label))) else { return false };
    let (lower, upper) = field.halo()[axis];
    lower + upper > 0 && field.descriptor().shape()[axis] - lower - upper == points
}

/// Whether the domain of a field has the sizes of another one in the dimensions of both, as far as they are known.
fn fits(field: Option<&Tensor>, other: Option<&Tensor>) -> bool {
    let (Some(domain), Some(other)) = (field.map(Tensor::domain_view), other) else { return true };
    domain.dims().iter().zip(domain.descriptor().shape()).all(|(label, points)| {
        let found = other.dims().iter().position(|known| known == label);
        found.is_none_or(|axis| [1, *points].contains(&other.descriptor().shape()[axis]) || *points == 1)
    })
}

/// Adds to the error of an assignment that either side has the sizes of the other's domain. `is_tensor` is false for a value of
/// another library, and `to` the selected part of a field.
#[cold]
pub(crate) fn with_domain_hint(py: Python<'_>, error: PyErr, value: &Tensor, is_tensor: bool, to: &Tensor) -> PyErr {
    let is_about_sizes = ErrorKind::Layout.is(py, &error) || error.get_type(py).is(py.get_type::<PyValueError>());
    let is_domain_of = |part: &Tensor, whole: &Tensor| {
        let (part, domain) = (part.descriptor().shape(), whole.domain_view());
        part != whole.descriptor().shape() && part == domain.descriptor().shape()
    };
    let hint = if !is_about_sizes {
        return error;
    } else if is_tensor && is_domain_of(to, value) {
        "the value has a halo: assign its domain_view"
    } else if is_domain_of(value, to) {
        "what is assigned to has a halo: write field[...].domain_view[...] = value, with the index in the first brackets"
    } else {
        return error;
    };
    reworded(py, &error, format!("{}; {hint}", error.value(py)))
}
