//! Parses index expressions, and converts the arrays in them to arrays of the library that indexes by them.

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Count;
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::{ArgumentError, new_error};
use crate::python::import;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};
use crate::python::module::ufunc::is_number;
use crate::python::module::values::{self, Value};
use crate::python::{copies, trace};
use crate::tensor::index::too_many;
use crate::tensor::{Index, Tensor};

/// An index expression.
#[derive(PartialEq)]
#[allow(clippy::large_enum_variant, reason = "it is on the stack, and used at once")]
pub(super) enum Key {
    /// Integers, slices and an Ellipsis: a view.
    Basic {
        index: SmallVec<[Index; 6]>,
        /// Whether every dimension has an integer index, so that NumPy would return a scalar.
        element: bool,
    },
    /// The same with None, which adds a dimension without a label: a view as an array of NumPy or CuPy.
    NewAxis,
    /// Lists, masks and arrays of positions: an array of NumPy or CuPy with copied elements.
    Arrays,
}

impl Key {
    /// Parses an index expression of a field.
    pub(super) fn parse(descriptor: &Descriptor, key: &Bound<'_, PyAny>) -> PyResult<Key> {
        let keys: SmallVec<[_; 6]> = match key.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter_borrowed().map(|entry| entry.to_owned()).collect(),
            Err(_) => smallvec::smallvec![key.clone()],
        };
        entries(descriptor, &keys)
    }
}

/// Returns an index expression whose arrays the field's library can use, and the name of its kind. The arrays are released with
/// the result.
pub(crate) fn for_library<'py>(field: &Tensor, key: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, &'static str)> {
    match Key::parse(field.descriptor(), key)? {
        Key::Basic { .. } => Ok((key.clone(), "basic")),
        Key::NewAxis => Ok((key.clone(), "newaxis")),
        Key::Arrays => Ok((LibraryKey::new(field, key)?.key, "arrays")),
    }
}

fn entries(descriptor: &Descriptor, keys: &[Bound<'_, PyAny>]) -> PyResult<Key> {
    let ndim = descriptor.ndim();
    let given = keys.iter().filter(|key| !key.is_instance_of::<PyEllipsis>() && !key.is_none()).count();
    let mut index = SmallVec::<[Index; 6]>::new();
    let (mut ellipsis, mut new_axis) = (false, false);
    for key in keys {
        if key.is_instance_of::<PyEllipsis>() {
            if ellipsis {
                return Err(new_error::<PyIndexError>("index: expected at most one Ellipsis, got several"));
            }
            ellipsis = true;
            index.extend(std::iter::repeat_n(Index::All, ndim.saturating_sub(given)));
        } else if let Ok(slice) = key.cast::<PySlice>() {
            let extent = descriptor.shape().get(index.len()).copied().unwrap_or(0);
            let range = slice.indices(isize::try_from(extent).unwrap_or(isize::MAX))?;
            let wide = |number: isize| i64::try_from(number).unwrap_or(i64::MAX);
            let len = i64::try_from(range.slicelength).unwrap_or(i64::MAX);
            index.push(Index::Range { start: wide(range.start), len, step: wide(range.step) });
        } else if key.is_none() {
            new_axis = true;
        } else if key.is_exact_instance_of::<PyInt>()
            || !args::is_bool(key) && key.hasattr(intern!(key.py(), "__index__"))?
        {
            match position(key)? {
                Some(position) => index.push(Index::At(position)),
                None => return Ok(Key::Arrays),
            }
        } else if key.is_instance_of::<PyString>() {
            let expected =
                "integers, slices, Ellipsis, None, masks and arrays of positions, one for each dimension in order";
            let error = ArgumentError::new("index", &expected, &args::shown(key));
            return Err(new_error::<PyIndexError>(error.with_fix(&"labels select no points")));
        } else {
            return Ok(Key::Arrays);
        }
    }
    if given > ndim {
        return Err(too_many(given, ndim).into());
    }
    if new_axis {
        return Ok(Key::NewAxis);
    }
    let element = given == ndim && !ellipsis && index.iter().all(|entry| matches!(entry, Index::At(_)));
    Ok(Key::Basic { index, element })
}

/// Converts one position; `None` for arrays of positions and masks. These also have an `__index__`: most raise `TypeError`, but
/// PyTorch's accepts an array of one element.
fn position(key: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if !key.is_instance_of::<PyInt>() && !is_number(key) && is_array_or_mask(key)? {
        return Ok(None);
    }
    match key.extract() {
        Ok(position) => Ok(Some(position)),
        Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => Ok(None),
        Err(error) => Err(no_position(key, error)),
    }
}

/// The error for an object whose `__index__` returns no integer of 64 bits, or raises.
#[cold]
fn no_position(key: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = key.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        return new_error::<PyIndexError>("index: the position does not fit in 64 bits");
    }
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let wrong = new_error::<PyIndexError>(format!("index: {}: {}", args::shown(key), error.value(py)));
    wrong.set_cause(py, Some(error));
    wrong
}

/// Whether the object states dimensions, or the element type bool.
#[cold]
fn is_array_or_mask(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(tensor) = key.cast_exact::<PyTensor>() {
        let descriptor = tensor.get().descriptor();
        return Ok(descriptor.ndim() > 0 || descriptor.dtype() == DType::BOOL);
    }
    let Some(ndim) = key.getattr_opt(intern!(key.py(), "ndim"))? else { return Ok(false) };
    if args::if_converted(key.py(), ndim.extract::<usize>())?.is_some_and(|ndim| ndim > 0) {
        return Ok(true);
    }
    let dtype = key.getattr_opt(intern!(key.py(), "dtype"))?;
    dtype.map_or(Ok(false), |dtype| Ok(dtype.str()?.to_string_lossy().ends_with("bool")))
}

/// An index expression whose arrays NumPy can use, or CuPy on a device.
pub(super) struct LibraryKey<'py> {
    pub(super) key: Bound<'py, PyAny>,
    /// The imported arrays, to be released after their memory was read.
    imported: Vec<Value>,
}

impl<'py> LibraryKey<'py> {
    /// Converts the arrays of a key for a field: to NumPy arrays for memory of the host, else to CuPy arrays on the field's
    /// device, in order with the work on both.
    ///
    /// NumPy itself would read only arrays on the host, and CuPy only its own. A mask with labels that does not have the field's
    /// first dimensions, in order, is matched by label and repeated; a label that the field does not have is an error.
    pub(super) fn new(field: &Tensor, key: &Bound<'py, PyAny>) -> PyResult<LibraryKey<'py>> {
        let py = key.py();
        let device = field.descriptor().device();
        if device.is_cuda() {
            cupy::module(py, &format!("indexing by an array or None on {device}"))?;
        }
        let mut imported = Vec::new();
        let key = match key.cast::<PyTuple>() {
            Ok(parts) => {
                let (mut converted, mut masks) = (Vec::new(), Vec::new());
                for part in parts {
                    let (part, array) = self::converted(field, &part, false, &mut imported)?;
                    converted.push(part);
                    masks.push(array.filter(|array| array.descriptor().dtype() == DType::BOOL));
                }
                check_labels(field, &converted, &masks)?;
                PyTuple::new(py, converted)?.into_any()
            }
            Err(_) => converted(field, key, true, &mut imported)?.0,
        };
        Ok(LibraryKey { key, imported })
    }

    /// Returns the outcome of indexing. If that succeeded, releases the arrays.
    pub(super) fn done<R>(self, py: Python<'py>, mut outcome: PyResult<R>) -> PyResult<R> {
        for value in self.imported {
            outcome = value.done(py, outcome);
        }
        outcome
    }
}

/// Converts a part of a key, and returns the array; other parts stay as they are. `whole`: it is the only part.
fn converted<'py>(
    field: &Tensor,
    part: &Bound<'py, PyAny>,
    whole: bool,
    imported: &mut Vec<Value>,
) -> PyResult<(Bound<'py, PyAny>, Option<Tensor>)> {
    let py = part.py();
    let is_plain = part.is_none()
        || part.is_instance_of::<PyEllipsis>()
        || part.is_instance_of::<PySlice>()
        || part.is_instance_of::<PyList>()
        // A buffer, but no array.
        || part.is_instance_of::<PyBytes>()
        || is_number(part);
    values::refuse_masked_key(part)?;
    let device = field.descriptor().device();
    if is_plain || (!device.is_cuda() && part.cast::<PyUntypedArray>().is_ok()) {
        return Ok((part.clone(), None));
    }
    let is_own = has_own_labels(part)?;
    let found = values::assigned_value(part, device);
    let Some(value) = found.map_err(|error| ErrorKind::of_argument(part.py(), "key", error))? else {
        let is_index = getattr::on_type(&part.get_type(), intern!(py, "__index__")).is_some();
        if !is_index || is_array_or_mask(part)? {
            return Ok((part.clone(), None));
        }
        // Not by NumPy, which drops what `__index__` raises, Ctrl+C too.
        let index: i64 = part.extract().map_err(|error| no_position(part, error))?;
        return Ok((index.into_pyobject(py)?.into_any(), None));
    };
    let mut array = Tensor::clone(&value);
    if whole && (is_own || array.descriptor().dims().is_some()) {
        array = by_label(array, field)?;
    }
    let stated = array.clone();
    imported.push(value);
    let near = if device.is_cuda() { device } else { Device::CPU };
    let mut array = copies::to(py, &array, near, None)?;
    if !is_own {
        // The imports of other parts and of an assigned value run Python code, which may free the array's memory.
        array = array.copy()?;
        trace::copied(py, array.descriptor().nbytes(), || "index: a key of another library is copied first".to_owned());
    }
    let array = PyTensor::create(py, array.into_readable())?;
    let array = if device.is_cuda() { cupy::array(&array)? } else { export::numpy::view_of(&array)? };
    Ok((array, Some(stated)))
}

/// Whether a value is a `Tensor` or a host/device pair.
pub(super) fn has_own_labels(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.cast_exact::<PyTensor>().is_ok() || import::kind_of(value)? == import::Kind::Pair)
}

/// Repeats a mask by label along the dimensions of a field that it does not have, unless it has the field's first dimensions, in order:
/// then it is used by position, and so is a tensor with the default labels if the field does not have one of them.
fn by_label(mask: Tensor, field: &Tensor) -> PyResult<Tensor> {
    let (own, dims) = (mask.dims(), field.dims());
    let leads = own.iter().eq(dims.iter().take(own.len()));
    if mask.descriptor().dtype() != DType::BOOL || leads {
        return Ok(mask);
    }
    for (label, points) in own.iter().zip(mask.descriptor().shape()) {
        let Some(axis) = dims.iter().position(|known| known == label) else {
            return if mask.descriptor().dims().is_some() { Err(other_labels(&own, &dims)) } else { Ok(mask) };
        };
        let extent = field.descriptor().shape()[axis];
        if *points != extent {
            return Err(new_error::<PyIndexError>(format!(
                "index: expected a mask with {} in dimension {label}, as the field has, got one with {points}",
                Count(extent, "point")
            )));
        }
    }
    Ok(mask.broadcast_to(&dims, field.descriptor().shape())?)
}

/// Rejects a mask in a tuple that states other labels than those of the dimensions in whose place it is.
fn check_labels(field: &Tensor, parts: &[Bound<'_, PyAny>], masks: &[Option<Tensor>]) -> PyResult<()> {
    let states = |mask: &Option<Tensor>| mask.as_ref().is_some_and(|mask| mask.descriptor().dims().is_some());
    if !masks.iter().any(states) {
        return Ok(());
    }
    let widths = std::iter::zip(parts, masks).map(|(part, mask)| match mask {
        Some(mask) => Ok(mask.descriptor().ndim()),
        None => width(part),
    });
    let widths = widths.collect::<PyResult<Vec<usize>>>()?;
    let (dims, mut axis, mut left) = (field.dims(), 0, widths.iter().sum::<usize>());
    for ((part, mask), width) in parts.iter().zip(masks).zip(widths) {
        if let Some(stated) = mask.as_ref().and_then(|mask| mask.descriptor().dims())
            && !stated.iter().eq(dims.iter().skip(axis).take(width))
        {
            return Err(other_labels(stated, &dims));
        }
        left -= width;
        axis = if part.is_instance_of::<PyEllipsis>() { dims.len().saturating_sub(left) } else { axis + width };
    }
    Ok(())
}

/// How many dimensions of a field a part of a key stands for that is not a mask of another library than NumPy.
fn width(part: &Bound<'_, PyAny>) -> PyResult<usize> {
    if part.is_none() || part.is_instance_of::<PyEllipsis>() || part.is_instance_of::<PyBool>() {
        return Ok(0);
    }
    let Some(dtype) = part.getattr_opt(intern!(part.py(), "dtype"))? else { return Ok(1) };
    let is_mask = dtype.getattr(intern!(part.py(), "kind"))?.extract::<char>()? == 'b';
    if is_mask { part.getattr(intern!(part.py(), "ndim"))?.extract() } else { Ok(1) }
}

/// The error for a mask whose labels do not fit.
#[cold]
fn other_labels(mask: &Dims, field: &Dims) -> PyErr {
    ErrorKind::Dims.error(format!(
        "index: expected a mask with labels of the field's dims ({field}), in a tuple those at its place, got dims ({mask}); \
         mask.to_numpy() goes by position"
    ))
}
