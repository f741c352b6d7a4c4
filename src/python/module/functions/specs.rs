//! What the allocation functions allocate, from their arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::dtype::DType;
use crate::error::{LayoutError, LayoutErrorKind, Tuple};
use crate::layout::Spec;
use crate::layout::extents::Extents;
use crate::preset::{Alignment, Preset};
use crate::python::convert::{args, dtype};
use crate::python::ffi::new_error::{new_error, new_error_of};
use crate::python::import;
use crate::python::module::functions::call::Call;
use crate::python::module::functions::data_argument;
use crate::python::module::functions::keywords::sizes;
use crate::tensor::Tensor;

/// Makes the blank `spec` that of a new field from `shape`, `dtype` and keywords. In place: moving it takes longer.
#[inline(always)]
pub(super) fn fresh(call: &Call<'_, '_>, spec: &mut Spec) -> PyResult<()> {
    args::append_shape(call.first, spec.shape_mut())?;
    let Some(dtype) = call.dtype else { return call.keywords.apply(spec, 0) };
    let parsed = dtype::parse(dtype).map_err(|error| no_dtype(call.function, call.first, dtype, error));
    let (element, sub_shape) = parsed?;
    spec.set_dtype(element);
    spec.shape_mut().extend_from_slice(&sub_shape);
    call.keywords.apply(spec, sub_shape.len())
}

/// The error for an invalid `dtype`, with the correct call if it was meant as a second size, a preset or labels.
#[cold]
fn no_dtype<'py>(function: &str, shape: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>, error: PyErr) -> PyErr {
    let py = shape.py();
    let Some(hint) = sizes(function, [shape, dtype]).or_else(|| by_keyword(dtype)) else { return error };
    let hinted = new_error_of(&error.get_type(py), format!("{}{hint}", error.value(py)));
    hinted.set_cause(py, error.cause(py));
    hinted
}

/// How a preset or labels are written; `None` for other values.
fn by_keyword(value: &Bound<'_, PyAny>) -> Option<String> {
    let text = value.cast::<PyString>().ok()?.to_string_lossy().into_owned();
    if Preset::find(&text).is_ok() {
        return Some(format!("; a preset is written backend='{text}'"));
    }
    let are_labels = !text.is_empty() && text.chars().all(|letter| "IJK".contains(letter));
    are_labels.then(|| format!("; labels are written dims='{text}'"))
}

/// The error for an invalid shape of `full`, with the correct call if shape and value are swapped.
#[cold]
pub(super) fn value_as_shape(shape: &Bound<'_, PyAny>, fill_value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let is_shape = fill_value.is_instance_of::<PyTuple>() || fill_value.is_instance_of::<PyList>();
    if !is_shape || !error.is_instance_of::<PyTypeError>(shape.py()) {
        return error;
    }
    let (number, sizes) = (args::shown(shape), args::shown(fill_value));
    new_error::<PyTypeError>(format!("shape: {number} is not a shape, which comes first: full({sizes}, {number})"))
}

/// The specification of a field like `data`, which supplies everything that is not given. A preset replaces layout,
/// alignment, padding and device.
pub(super) fn like(call: &Call<'_, '_>) -> PyResult<Spec> {
    let Call { first: data, dtype, keywords, .. } = call;
    let data = data_argument::described(data, keywords.origin)?;
    let (dtype, sub_shape) = match dtype {
        Some(dtype) => dtype::parse(dtype)?,
        None => (data.descriptor().dtype(), Extents::new()),
    };
    let mut shape = Extents::from_slice(data.descriptor().shape());
    shape.extend_from_slice(&sub_shape);
    let added = sub_shape.len();
    let mut spec = Spec::new(&shape, dtype);
    if let Some(dims) = data.descriptor().dims() {
        spec = spec.dims(dims.with_data(added));
    }
    if keywords.backend.is_none() {
        // Too many dimensions are rejected when the field is allocated.
        let layout = data.layout().with_data(u8::try_from(added).unwrap_or(u8::MAX));
        let laid_out = spec.layout(layout).with_device(data.descriptor().device());
        spec = match row_alignment(call.first, &data)? {
            Some(bytes) => laid_out.alignment_size(bytes),
            None => laid_out.padding(data.padding()).alignment_size(data.alignment_size()),
        };
        if let Some(index) = data.spec().explicit_aligned_index() {
            let index: Extents = index.iter().copied().chain(std::iter::repeat_n(0, added)).collect();
            spec = spec.aligned_index(&index);
        }
    }
    let mut spec = with_halo_of(spec, &data);
    keywords.apply(&mut spec, sub_shape.len())?;
    Ok(spec)
}

/// The alignment in bytes of the rows of a field of `gt4py.next`, if they are aligned as its allocator aligns them: its array does
/// not say so.
fn row_alignment(object: &Bound<'_, PyAny>, data: &Tensor) -> PyResult<Option<i64>> {
    let field = data.descriptor();
    if data.alignment_size() > 1 || import::kind_of(object)? != import::Kind::Field {
        return Ok(None);
    }
    let preset = if field.device().is_cuda() { "gt4py.next:gpu" } else { "gt4py.next" };
    let Alignment::Rows(bytes) = Preset::find(preset)?.alignment() else { return Ok(None) };
    let strides: SmallVec<[i64; 6]> = field.byte_strides().collect();
    let mut rows = field.layout().axes().take(field.ndim().saturating_sub(1));
    let aligned =
        rows.all(|axis| strides[axis] % i64::from(bytes) == 0) && field.alignment().is_multiple_of(u64::from(bytes));
    Ok(aligned.then(|| i64::from(bytes)))
}

/// The specification of a copy of an array with the element type that is given, and the number of dimensions that a
/// sub-array type stands for.
pub(super) fn converted(data: &Descriptor, given: Option<&(DType, Extents)>) -> PyResult<(Spec, usize)> {
    let shape = data.shape();
    let Some((element, sub_shape)) = given else { return Ok((Spec::new(shape, data.dtype()), 0)) };
    if !shape.ends_with(sub_shape) {
        let expected = format_args!("data whose shape ends with that of the sub-array, {}", Tuple(sub_shape));
        return Err(LayoutError::new("dtype", &expected, &Tuple(shape)).with_kind(LayoutErrorKind::Mismatch).into());
    }
    Ok((Spec::new(shape, *element), sub_shape.len()))
}

/// Copies the dims, halo and origin of an array of the same shape.
pub(super) fn with_metadata_of(spec: Spec, data: &Tensor) -> Spec {
    let spec = with_halo_of(spec, data);
    match data.descriptor().dims() {
        Some(dims) => spec.dims(dims.clone()),
        None => spec,
    }
}

/// Copies the halo and origin of `data`, with zeros for the dimensions that a sub-array type adds.
fn with_halo_of(mut spec: Spec, data: &Tensor) -> Spec {
    let ndim = spec.ndim();
    if let Some(halo) = data.descriptor().halo() {
        let mut halo = halo.to_vec();
        halo.resize(ndim, (0, 0));
        spec = spec.halo(&halo).halo_is_cut(data.descriptor().halo_is_cut());
    }
    if let Some(origin) = data.descriptor().origin() {
        let mut origin = origin.to_vec();
        origin.resize(ndim, 0);
        spec = spec.origin(&origin).halo_is_cut(data.descriptor().halo_is_cut());
    }
    spec
}
