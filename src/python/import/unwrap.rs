//! Gets the array out of objects that wrap one: `xarray.DataArray` and `Variable`, fields of `gt4py.next`, which label it, and
//! host/device pairs (`dlfield.storage.SoftwareManagedGPUStorage`), which bring one of their two up to date.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::device::Device;
use crate::dims::Dims;
use crate::error::{Count, ExchangeError};
use crate::layout::{Extents, Metadata};
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::numpy_api::is_fresh;
use crate::python::import::frameworks::Kind;
use crate::python::import::request::{Request, RequestAccess};
use crate::python::import::type_info::{TypeInfo, kind_of};

/// The array inside a wrapper.
pub struct Peeled<'py> {
    pub array: Bound<'py, PyAny>,
    /// The domain, if the wrapper is a field of `gt4py.next`.
    ranges: Option<Vec<Range>>,
}

/// Returns the array inside a wrapper, and the request to that; `None` for other objects. Only the `outermost` object is peeled as
/// one of xarray or gt4py, which could contain itself; pairs are always peeled. Rejects an array made for this call if the request
/// forbids copies.
pub fn peel<'a, 'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'a>,
    outermost: bool,
) -> PyResult<Option<(Peeled<'py>, Request<'a>)>> {
    if kind_of(object)? == Kind::Pair {
        let array = buffer(object, request.device.or(request.near), request.access)?;
        // The pair has brought the buffer up to date for the access, so the buffer is only inspected.
        let inspected = Request { near: None, access: RequestAccess::Inspect, ..*request };
        return Ok(Some((Peeled { array, ranges: None }, inspected)));
    }
    let Some(array) = (if outermost { inner_of(object)? } else { None }) else { return Ok(None) };
    // Before the import: this runs Python code, which may move memory that is described already.
    let ranges = if kind_of(object)? == Kind::Field { Some(ranges(object)?) } else { None };
    if request.rejects_copy() && is_fresh(&array) {
        let reason = "the object has no array in memory, and makes one for each call: load it first";
        return Err(request.refused_copy(reason).into());
    }
    Ok(Some((Peeled { array, ranges }, *request)))
}

/// Returns the buffer that `device` can use, brought up to date for the access.
pub fn buffer<'py>(
    pair: &Bound<'py, PyAny>,
    device: Option<Device>,
    access: RequestAccess,
) -> PyResult<Bound<'py, PyAny>> {
    let access = match access {
        RequestAccess::Inspect => "",
        RequestAccess::Read => "r",
        // Whether the stencil writes is not known here.
        RequestAccess::Stencil | RequestAccess::Write => "rw",
    };
    pair.call_method1(intern!(pair.py(), "_buffer"), (device.map(|device| device.to_string()), access))
}

impl Peeled<'_> {
    /// Rejects a field whose array has another shape than its domain: in such an array one element may stand for all points of a
    /// dimension.
    pub fn check(&self, shape: &[i64]) -> PyResult<()> {
        let Some(ranges) = &self.ranges else { return Ok(()) };
        for (Range { dim, points }, extent) in ranges.iter().zip(shape) {
            let points = points.map_or(*extent, |(start, stop)| stop.saturating_sub(start));
            if points != *extent {
                let got =
                    format!("a field with {} in dimension {dim} on an array with {extent}", Count(points, "point"));
                let allowed = "one element for each point: give the field an array of its domain's shape";
                return Err(wrong_field(got, allowed).into());
            }
        }
        if ranges.len() != shape.len() {
            let got = format!("a field of {} on an array of {}", Count(ranges.len(), "dimension"), shape.len());
            return Err(wrong_field(got, "one dimension of the array for each dimension of the domain").into());
        }
        Ok(())
    }
}

/// Returns the array that an object of xarray or `gt4py.next` wraps; `None` for other objects.
pub fn inner_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    match TypeInfo::of(object)?.kind {
        Kind::Field => {}
        Kind::Xarray => return object.getattr(intern!(py, "data")).map(Some),
        _ => return Ok(None),
    }
    for Range { dim, points } in ranges(object)? {
        if points.is_none() {
            return Err(wrong_field(format!("a field that is infinite in dimension {dim}"), "a finite domain").into());
        }
    }
    let array = getattr::getattr_opt(object, intern!(py, "ndarray"))?;
    let missing = || wrong_field("a field without an array, such as a constant".to_owned(), "a field with an array");
    Ok(Some(array.ok_or_else(missing)?))
}

fn wrong_field(got: String, allowed: &'static str) -> ExchangeError {
    ExchangeError::new("obj", &allowed, &got)
}

/// One dimension of a field's domain.
struct Range {
    dim: String,
    /// The first grid point and the one after the last; `None` if the dimension is infinite.
    points: Option<(i64, i64)>,
}

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
        found.push(Range { dim: dim?.getattr(intern!(py, "value"))?.to_string(), points: start.zip(stop) });
    }
    Ok(found)
}

/// Returns the index of the grid's point 0 in each dimension of a field. `None` for an infinite field. Rejects a field without that
/// point, which has no index to begin at: another origin would pair its points with others.
pub fn field_origin(field: &Bound<'_, PyAny>) -> PyResult<Option<Extents>> {
    let ranges = ranges(field)?;
    let all: Option<Vec<(i64, i64)>> = ranges.iter().map(|range| range.points).collect();
    let Some(all) = all else { return Ok(None) };
    let has_zero = |(start, stop): &(i64, i64)| (*start..=*stop).contains(&0);
    let Some(axis) = all.iter().position(|points| !has_zero(points)) else {
        return Ok(Some(all.iter().map(|(start, _)| -start).collect()));
    };
    let (dim, (start, stop)) = (&ranges[axis].dim, all[axis]);
    let first = all.iter().map(|points| if has_zero(points) { -points.0 } else { 0 });
    let first = PyTuple::new(field.py(), first.collect::<Vec<_>>())?;
    Err(ErrorKind::Layout.error(format!(
        "origin: the domain of the field is {start} to {stop} in {dim}, without the grid's point 0; state the index of the first \
         point to compute: dl.from_dlpack(field, origin={first})"
    )))
}

/// Returns the metadata to import `object` with for an argument `origin`: a field of `gt4py.next` without the grid's point 0 has no
/// origin of its own, so that the argument has to be known before.
pub fn with_given_origin(object: &Bound<'_, PyAny>, origin: Option<&Bound<'_, PyAny>>) -> PyResult<Metadata> {
    let Some(origin) = origin else { return Ok(Metadata::default()) };
    if kind_of(object)? != Kind::Field {
        return Ok(Metadata::default());
    }
    let ranges = ranges(object)?;
    let dims = Dims::parse(ranges.iter().map(|range| &range.dim))?;
    // A label that is left out keeps the field's own origin, as far as it has one.
    let own = || ranges.iter().map(|range| range.points.map_or(0, |(start, _)| -start)).collect();
    Ok(Metadata::default().with_origin(args::ints_by_label("origin", origin, &dims, own)?.into_boxed_slice()))
}
