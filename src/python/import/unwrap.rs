//! Gets the array out of objects that wrap and label one: `xarray.DataArray` and `Variable`, and fields of `gt4py.next`.
//!
//! Neither library is imported here: such an object exists only if its library is imported.

use pyo3::intern;
use pyo3::prelude::*;

use crate::layout::Extents;
use crate::protocol::ExchangeError;
use crate::python::convert::args;
use crate::python::ffi::getattr;
use crate::python::ffi::refcount::is_fresh;
use crate::python::import::request::{Request, refused_copy};
use crate::python::import::type_info::TypeInfo;
use crate::python::import::wrapper::Wrapper;

/// The array inside a wrapper.
pub(super) struct Peeled<'py> {
    pub(super) array: Bound<'py, PyAny>,
    /// The domain, if the wrapper is a field of `gt4py.next`.
    ranges: Option<Vec<Range>>,
}

/// Returns the array inside a wrapper; `None` for other objects. Rejects an array made for this call if the request forbids
/// copies.
pub(super) fn peel<'py>(object: &Bound<'py, PyAny>, request: &Request<'_, 'py>) -> PyResult<Option<Peeled<'py>>> {
    let Some(array) = inner_of(object)? else { return Ok(None) };
    // Before the import: this runs Python code, which may move memory that is described already.
    let ranges = if is_field(object)? { Some(ranges(object)?) } else { None };
    if request.rejects_copy() && is_fresh(&array) {
        let reason = "the object has no array in memory, and makes one for each call: load it first";
        return Err(refused_copy(request.ownership, reason).into());
    }
    Ok(Some(Peeled { array, ranges }))
}

impl<'py> From<Bound<'py, PyAny>> for Peeled<'py> {
    fn from(array: Bound<'py, PyAny>) -> Self {
        Peeled { array, ranges: None }
    }
}

impl Peeled<'_> {
    /// Rejects a field whose array has another shape than its domain.
    pub(super) fn check(&self, shape: &[i64]) -> PyResult<()> {
        self.ranges.as_ref().map_or(Ok(()), |ranges| check_extents(ranges, shape))
    }
}

/// Returns the array that an object of xarray or `gt4py.next` wraps; `None` for other objects.
pub fn inner_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    match TypeInfo::of(object)?.wrapper {
        None | Some(Wrapper::Pair) => return Ok(None),
        Some(Wrapper::Xarray) => return object.getattr(intern!(py, "data")).map(Some),
        Some(Wrapper::Field) => {}
    }
    for (dim, range) in ranges(object)? {
        if range.is_none() {
            return Err(wrong_field(format!("a field that is infinite in dimension {dim}"), "a finite domain").into());
        }
    }
    let array = getattr::getattr_opt(object, intern!(py, "ndarray"))?;
    let missing = || wrong_field("a field without an array, such as a constant".to_owned(), "a field with an array");
    Ok(Some(array.ok_or_else(missing)?))
}

fn wrong_field(got: String, allowed: &'static str) -> ExchangeError {
    ExchangeError::Argument { argument: "obj", got, allowed }
}

/// Whether the object is a field of `gt4py.next`.
pub fn is_field(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.wrapper == Some(Wrapper::Field))
}

/// A dimension's label and number of grid points; `None` if it is infinite.
type Range = (String, Option<i64>);

/// Returns the dimensions of a field's domain.
fn ranges(field: &Bound<'_, PyAny>) -> PyResult<Vec<Range>> {
    let py = field.py();
    let domain = field.getattr(intern!(py, "domain"))?;
    let dims = domain.getattr(intern!(py, "dims"))?;
    let ranges = domain.getattr(intern!(py, "ranges"))?;
    let mut found = Vec::new();
    for (dim, range) in dims.try_iter()?.zip(ranges.try_iter()?) {
        let range = range?;
        // For an infinite dimension these are not integers.
        let start: Option<i64> = args::if_converted(py, range.getattr(intern!(py, "start"))?.extract())?;
        let stop: Option<i64> = args::if_converted(py, range.getattr(intern!(py, "stop"))?.extract())?;
        let points = start.zip(stop).map(|(start, stop)| stop.saturating_sub(start));
        found.push((dim?.getattr(intern!(py, "value"))?.to_string(), points));
    }
    Ok(found)
}

/// Rejects a field whose domain and array differ in shape: in such an array one element may stand for all points of a
/// dimension.
fn check_extents(ranges: &[Range], shape: &[i64]) -> PyResult<()> {
    for ((dim, points), extent) in ranges.iter().zip(shape) {
        if points.is_some_and(|points| points != *extent) {
            let got =
                format!("a field with {} points in dimension {dim} on an array with {extent}", points.unwrap_or(0));
            return Err(
                wrong_field(got, "one element for each point: give the field an array of its domain's shape").into()
            );
        }
    }
    if ranges.len() != shape.len() {
        let got = format!("a field of {} dimensions on an array of {}", ranges.len(), shape.len());
        return Err(wrong_field(got, "one dimension of the array for each dimension of the domain").into());
    }
    Ok(())
}

/// Returns the index of the grid's point zero in a field, if that is inside; `gt4py.next` has it in index order.
pub fn field_origin(field: &Bound<'_, PyAny>) -> PyResult<Option<Extents>> {
    let shape: Option<Extents> = ranges(field)?.into_iter().map(|(_, points)| points).collect();
    let Some(shape) = shape else { return Ok(None) };
    let origin = getattr::getattr_opt(field, intern!(field.py(), "__gt_origin__"))?.filter(|origin| !origin.is_none());
    let Some(origin) = origin else { return Ok(None) };
    let origin = args::ints("__gt_origin__", &origin)?;
    let is_inside =
        origin.len() == shape.len() && origin.iter().zip(&shape).all(|(at, extent)| (0..=*extent).contains(at));
    Ok(is_inside.then_some(origin))
}
