//! Python's index expressions, and the axes of `transpose`.

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

use crate::classes::tensor::PyTensor;
use crate::export;
use crate::export::cupy;
use dlfield::can_cast;
use dlfield::descriptor::Descriptor;
use dlfield::device::{Device, DeviceError};
use dlfield::error::Error;
use dlfield::layout::Spec;
use dlfield::native::errors::ErrorKind;
use dlfield::native::{args, import, sync};
use dlfield::protocol::ExchangeError;
use dlfield::tensor::{Index, IndexError, Tensor};

/// Basic indexing: a view.
struct Basic {
    index: SmallVec<[Index; 6]>,
    /// Whether every dimension has an integer index, so that NumPy would return a scalar.
    element: bool,
}

/// Parses an index expression; `None` for lists, masks and arrays of positions, which NumPy handles.
fn parse(descriptor: &Descriptor, key: &Bound<'_, PyAny>) -> PyResult<Option<Basic>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => entries(descriptor, tuple.iter_borrowed().map(|entry| entry.to_owned()).collect()),
        Err(_) => entries(descriptor, smallvec::smallvec![key.clone()]),
    }
}

fn entries(descriptor: &Descriptor, keys: SmallVec<[Bound<'_, PyAny>; 6]>) -> PyResult<Option<Basic>> {
    let ndim = descriptor.ndim();
    let given = keys.iter().filter(|key| !key.is_instance_of::<PyEllipsis>()).count();
    if keys.iter().any(|key| key.is_none()) {
        let message = "index: None has no label; allowed are integers, slices, Ellipsis and arrays of positions";
        return Err(PyIndexError::new_err(message));
    }
    let mut index = SmallVec::<[Index; 6]>::new();
    let mut ellipsis = false;
    for key in &keys {
        if key.is_instance_of::<PyEllipsis>() {
            if ellipsis {
                return Err(PyIndexError::new_err("index: more than one Ellipsis; allowed is one"));
            }
            ellipsis = true;
            index.extend(std::iter::repeat_n(Index::All, ndim.saturating_sub(given)));
        } else if let Ok(slice) = key.cast::<PySlice>() {
            let extent = descriptor.shape().get(index.len()).copied().unwrap_or(0);
            let range = slice.indices(isize::try_from(extent).unwrap_or(isize::MAX))?;
            let wide = |number: isize| i64::try_from(number).unwrap_or(i64::MAX);
            let len = i64::try_from(range.slicelength).unwrap_or(i64::MAX);
            index.push(Index::Range { start: wide(range.start), len, step: wide(range.step) });
        } else if !args::is_bool(key)? && key.hasattr(intern!(key.py(), "__index__"))? {
            match position(key)? {
                Some(position) => index.push(Index::At(position)),
                None => return Ok(None),
            }
        } else {
            return Ok(None);
        }
    }
    if given > ndim {
        return Err(IndexError::TooMany { got: given, ndim }.into());
    }
    let element = given == ndim && !ellipsis && index.iter().all(|entry| matches!(entry, Index::At(_)));
    Ok(Some(Basic { index, element }))
}

/// Converts one position; `None` for arrays of positions, which also have an `__index__`, but one that raises `TypeError`.
fn position(key: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    match key.extract() {
        Ok(position) => Ok(Some(position)),
        Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => Ok(None),
        Err(error) if error.is_instance_of::<PyOverflowError>(key.py()) => {
            Err(PyIndexError::new_err("index: the position does not fit in 64 bits"))
        }
        Err(error) => Err(error),
    }
}

/// `t[key]`: a view, an element, or an array for keys that only NumPy or CuPy handles.
pub(crate) fn get<'py>(slf: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, tensor) = (slf.py(), &slf.get().0);
    let Some(Basic { index, element }) = parse(tensor.descriptor(), key)? else {
        let on_host = !tensor.descriptor().device().is_cuda();
        return if on_host {
            export::numpy::view_of(slf)?.get_item(key)
        } else {
            cupy::with(slf, |array| array.get_item(key))
        };
    };
    let view = PyTensor::create(py, tensor.view(&index)?)?;
    if element && tensor.descriptor().device().is_host_readable() {
        return export::numpy::view_of(&view)?.get_item(PyTuple::empty(py));
    }
    Ok(view.into_any())
}

/// `t[key] = value`, by label or by position (see [`broadcast_by_label`]), with NumPy's broadcasting and its "same_kind" rule
/// for casts.
pub(crate) fn set(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let tensor = &slf.get().0;
    if tensor.descriptor().is_readonly() {
        return Err(ExchangeError::ReadOnly { field: "t[...] = x", fix: "write to a copy() of it" }.into());
    }
    let py = slf.py();
    if key.is(py.Ellipsis().bind(py))
        && let Ok(value) = value.cast_exact::<PyTensor>()
        && let value = &value.get().0
        && copied(py, tensor, broadcast_by_label(value, tensor, true)?.as_ref().unwrap_or(value))?
    {
        return Ok(());
    }
    // Before the value is imported: parsing a key may run code that changes it.
    let index = parse(tensor.descriptor(), key)?.map(|Basic { index, .. }| index);
    let selected = index.map(|index| tensor.view(&index)).transpose()?;
    let array = import::assigned_value(value, tensor.descriptor().device())?;
    let written = if tensor.descriptor().device().is_host_readable() {
        set_on_host(slf, key, selected, value, array.as_deref())
    } else {
        set_on_device(slf, key, selected, value, array.as_deref())
    };
    match array {
        Some(array) => array.done(py, written),
        None => written,
    }
}

/// `t[key] = value` in memory that the host writes. `selected` is the view that a basic key selects; `array` is the value
/// if it has a protocol.
fn set_on_host(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    selected: Option<Tensor>,
    value: &Bound<'_, PyAny>,
    array: Option<&Tensor>,
) -> PyResult<()> {
    let py = slf.py();
    let own_labels = has_own_labels(value)?;
    let labelled = match (&selected, array) {
        (Some(selected), Some(array)) => broadcast_by_label(array, selected, own_labels)?,
        _ => None,
    };
    let array = labelled.as_ref().or(array);
    if let (Some(selected), Some(array)) = (&selected, array)
        && copied(py, selected, array)?
    {
        return Ok(());
    }
    // NumPy gets an array or a scalar, whichever protocol the value has.
    let value = match array {
        Some(array) => export::numpy::view(py, array)?,
        None => value.clone(),
    };
    match selected {
        Some(selected) => export::numpy::assign(&export::numpy::view(py, &selected)?, &value),
        None => export::numpy::assign_at(&export::numpy::view_of(slf)?, key, &value),
    }
}

/// Broadcasts a value by label to the tensor that it is assigned to. Returns `None` if nothing has to change, or if the
/// value is assigned by position: an array without labels; or one of our tensors with only the standard labels, if it has
/// as many dimensions as the target, or a label that the target lacks. Sizes do not affect this choice.
fn broadcast_by_label(value: &Tensor, to: &Tensor, own_labels: bool) -> PyResult<Option<Tensor>> {
    let has_dims = value.descriptor().dims().is_some();
    let as_many = value.descriptor().ndim() == to.descriptor().ndim();
    if !has_dims && (!own_labels || as_many) {
        return Ok(None);
    }
    let (dims, own) = (to.dims(), value.dims());
    if own == dims && value.descriptor().shape() == to.descriptor().shape() {
        return Ok(None);
    }
    if !has_dims && own.iter().any(|label| !dims.iter().any(|known| known == label)) {
        return Ok(None);
    }
    value.broadcast_to(&dims, to.descriptor().shape()).map(Some).map_err(|error| {
        let kind = if matches!(error, Error::Dims(_)) { ErrorKind::Dims } else { ErrorKind::Layout };
        kind.error(format!(
            "value: {error}; dims ({own}) are matched with dims ({dims}) by label: relabel it with from_dlpack(value, \
             dims=...), or assign value.to_numpy() by position"
        ))
    })
}

/// Whether a value is a `Tensor` or a host/device pair.
fn has_own_labels(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.cast_exact::<PyTensor>().is_ok() || import::is_pair(value)?)
}

/// `t[key] = value` on a device. Values of another element type are converted on the host first, by NumPy if this crate has
/// no cast.
#[cold]
#[allow(unsafe_code, reason = "elements are accessed by address")]
fn set_on_device(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    selected: Option<Tensor>,
    value: &Bound<'_, PyAny>,
    array: Option<&Tensor>,
) -> PyResult<()> {
    let py = slf.py();
    let Some(selected) = selected else {
        // CuPy gets the memory that was imported for reading: it would ask the object itself for writable memory.
        let value = match array {
            Some(array) if array.descriptor().device().is_cuda() => PyTensor::create(py, array.clone())?.into_any(),
            Some(array) => export::numpy::view(py, array)?.into_any(),
            None => value.clone(),
        };
        return cupy::with(slf, |array| array.set_item(key, value));
    };
    let own_labels = has_own_labels(value)?;
    let labelled = array.map(|array| broadcast_by_label(array, &selected, own_labels)).transpose()?.flatten();
    let from = match labelled.as_ref().or(array) {
        Some(array) if array.descriptor().dtype() == selected.descriptor().dtype() => array.clone(),
        Some(array) => {
            // The host converts elements.
            let host = sync::to(py, array, Device::CPU, None)?;
            if can_cast(array.descriptor().dtype(), selected.descriptor().dtype()) {
                host
            } else {
                staged(&selected, export::numpy::view(py, &host)?.as_any())?
            }
        }
        None => staged(&selected, value)?,
    };
    // SAFETY: as for `copied`.
    Ok(py.detach(|| unsafe { selected.assign(&from) })?)
}

/// Converts a value to the element type of a tensor, on the host, by NumPy's "same_kind" rule.
fn staged(like: &Tensor, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = value.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,))?;
    let shape: Vec<i64> = array.getattr(intern!(py, "shape"))?.extract()?;
    let staged = Tensor::empty(&Spec::new(&shape, like.descriptor().dtype()))?;
    export::numpy::assign(&export::numpy::view(py, &staged)?, &array)?;
    Ok(staged)
}

/// Copies an array; releases the GIL for a large one. Returns `false` without any effect for arrays that NumPy has to
/// handle: it knows more element types, and its errors name the cause.
#[allow(unsafe_code, reason = "elements are accessed by address")]
fn copied(py: Python<'_>, to: &Tensor, from: &Tensor) -> PyResult<bool> {
    // SAFETY: `set` has rejected read-only tensors. Races with other threads on the elements are the program's
    // responsibility, as with NumPy.
    let assign = || unsafe { to.assign(from) };
    // Releasing the GIL takes longer than a small copy, but not longer than waiting for a device.
    let little = to.descriptor().nbytes() < sync::GIL_RELEASE_BYTES
        && !sync::may_have_device_work(to)
        && !sync::may_have_device_work(from);
    match if little { assign() } else { py.detach(assign) } {
        Ok(()) => Ok(true),
        Err(Error::Layout(_) | Error::DType(_) | Error::Device(DeviceError::NotHostReadable { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Parses the axes of `transpose`: numbers (negative ones count from the end) or labels, as separate arguments or as one
/// sequence. Without axes, or with None, reverses the dimensions.
pub(crate) fn axes(tensor: &Tensor, given: &Bound<'_, PyTuple>) -> PyResult<SmallVec<[usize; 6]>> {
    let ndim = tensor.descriptor().ndim();
    let only = if given.len() == 1 { Some(given.get_item(0)?) } else { None };
    if given.is_empty() || only.as_ref().is_some_and(|only| only.is_none()) {
        return Ok((0..ndim).rev().collect());
    }
    let axis = |item: &Bound<'_, PyAny>| -> PyResult<usize> {
        if let Ok(label) = item.cast::<PyString>() {
            return Ok(tensor.axis(&label.to_cow()?)?);
        }
        let wrong = |got: String| {
            ErrorKind::Dims
                .error(format!("axes: {got} for {ndim} dimensions; allowed is -{ndim} to {ndim} - 1, or a label"))
        };
        let got: i64 = item.extract().map_err(|_| wrong(args::shown(item)))?;
        let counted = if got < 0 { got.saturating_add(i64::try_from(ndim).unwrap_or(0)) } else { got };
        usize::try_from(counted).ok().filter(|axis| *axis < ndim).ok_or_else(|| wrong(got.to_string()))
    };
    match only.filter(|only| !only.is_instance_of::<PyString>()).map(|only| only.try_iter()) {
        // One axis too many is enough for the error.
        Some(Ok(items)) => items.take(ndim + 1).map(|item| axis(&item?)).collect(),
        _ => given.iter_borrowed().map(|item| axis(&item)).collect(),
    }
}
