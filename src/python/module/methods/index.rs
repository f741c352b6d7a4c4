//! Python's index expressions, and the axes of `transpose`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

use crate::arithmetic::halos::check_assigned_origin;
use crate::copy::can_cast;
use crate::descriptor::read_only;
use crate::device::Device;
use crate::error::{Count, DeviceErrorKind, DimsError, Error};
use crate::layout::{Metadata, Spec};
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::import;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};
use crate::python::module::methods::key::{Key, LibraryKey, has_own_labels};
use crate::python::module::ufunc::{is_number, labels_in, with_domain_hint};
use crate::python::module::values::{self, Value};
use crate::python::{copies, interrupt, sync, trace};
use crate::tensor::Tensor;

/// `t[key]`: a view, an element, or an array for keys that only NumPy or CuPy handles.
pub(crate) fn get<'py>(slf: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, tensor) = (slf.py(), &slf.get().0);
    let parsed = Key::parse(tensor.descriptor(), key)?;
    let Key::Basic { index, element } = &parsed else { return get_array(slf, key, parsed == Key::Arrays) };
    let view = PyTensor::create(py, tensor.view(index)?)?;
    if *element && tensor.descriptor().device().is_host_readable() {
        return export::numpy::view_of(&view)?.get_item(PyTuple::empty(py));
    }
    Ok(view.into_any())
}

/// `t[key]` as an array of NumPy, or of CuPy on a device. `copies`: not a view of the same memory.
#[cold]
fn get_array<'py>(slf: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>, copies: bool) -> PyResult<Bound<'py, PyAny>> {
    let (py, tensor) = (slf.py(), &slf.get().0);
    let key = LibraryKey::new(tensor, key)?;
    let found = if tensor.descriptor().device().is_cuda() {
        // CuPy has no read-only arrays, and would reject memory that it only copies.
        let from = if copies { PyTensor::create(py, tensor.clone().into_readable())? } else { slf.clone() };
        cupy::with(&from, |array| array.get_item(&key.key))
    } else {
        export::numpy::view_of(slf)?.get_item(&key.key)
    };
    let found = key.done(py, found)?;
    if copies {
        trace::copied_by_library(&found, "index: an array or a mask as key gives a copy");
    }
    Ok(found)
}

/// `t[key] = value`, by label or by position (see [`broadcast_by_label`]), with NumPy's broadcasting and its "same_kind" rule
/// for casts.
pub(crate) fn set(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let tensor = &slf.get().0;
    if tensor.descriptor().is_readonly() {
        return Err(read_only("t[...] = x", "write to a copy() of it").into());
    }
    let py = slf.py();
    if key.is(py.Ellipsis().bind(py))
        && let Ok(value) = value.cast_exact::<PyTensor>()
        && let value = &value.get().0
    {
        export::numpy::check_number(py, value, tensor.descriptor().dtype(), "value")?;
        let labelled = broadcast_by_label(py, value, tensor, true)?;
        let value = labelled.as_ref().unwrap_or(value);
        check_assigned_origin(tensor, value)?;
        if copied(py, tensor, value)? {
            return Ok(());
        }
    }
    // Before the value is imported: parsing a key may run code that changes it.
    let selected = match Key::parse(tensor.descriptor(), key)? {
        Key::Basic { index, .. } => tensor.view(&index)?,
        library => return set_array(slf, key, value, library == Key::Arrays),
    };
    let array = match values::value(value, tensor.descriptor().device(), Some(&Metadata::default())) {
        Err(error) if ErrorKind::DType.is(py, &error) => cast_with_labels(&selected, value, error)?,
        found => found.map_err(|error| ErrorKind::of_argument(py, "value", error))?,
    };
    if let Some(array) = array.as_deref() {
        export::numpy::check_number(py, array, tensor.descriptor().dtype(), "value")?;
    }
    let written = if tensor.descriptor().device().is_host_readable() {
        set_on_host(tensor, &selected, value, array.as_deref())
    } else {
        set_on_device(tensor, &selected, value, array.as_deref())
    };
    match array {
        Some(array) => array.done(py, written),
        None => written,
    }
}

/// `t[key] = value` for keys that only NumPy or CuPy handles, by position. `copies`: `t[key]` is not a view of the same memory.
#[cold]
fn set_array(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    copies: bool,
) -> PyResult<()> {
    let (py, tensor) = (slf.py(), &slf.get().0);
    let device = tensor.descriptor().device();
    let key = LibraryKey::new(tensor, key)?;
    let array = values::assigned_value(value, device).map_err(|error| ErrorKind::of_argument(py, "value", error))?;
    let written = if device.is_host_readable() {
        // NumPy gets an array or a scalar, whichever protocol the value has.
        let value = match array.as_deref() {
            Some(array) => export::numpy::view(py, &copies::to(py, array, Device::CPU, None)?)?,
            None => value.clone(),
        };
        let target = export::numpy::view_of(slf)?;
        if copies {
            export::numpy::assign_at(&target, &key.key, &value)
        } else {
            export::numpy::assign(&target.get_item(&key.key)?, &value, "value")
        }
    } else {
        let from = device_source(tensor, value, array.as_deref())?;
        let from = if from.descriptor().dtype() == tensor.descriptor().dtype() {
            from
        } else if from.descriptor().device().is_host_readable() {
            export::numpy::cast(export::numpy::view(py, &from)?.as_any(), tensor.descriptor().dtype(), "value")?
        } else {
            let spec = Spec::new(from.descriptor().shape(), tensor.descriptor().dtype()).with_device(device);
            copies::copy_into(py, &spec, &from, "the elements are cast for CuPy")?
        };
        let value = if from.descriptor().ndim() == 0 && from.descriptor().device().is_host_readable() {
            export::numpy::view(py, &from)?.get_item(PyTuple::empty(py))?
        } else {
            // CuPy would reject arrays of the host, and read-only ones.
            let from = copies::to(py, &from, device, None)?;
            cupy::array(&PyTensor::create(py, from.into_readable())?)?
        };
        let written = cupy::with(slf, |array| array.set_item(&key.key, value));
        // CuPy's are about the shape: the elements have the right type.
        written.map_err(|error| {
            let is_about_shape = error.get_type(py).is(py.get_type::<PyValueError>());
            if is_about_shape { ErrorKind::Layout.error(format!("value: {}", error.value(py))) } else { error }
        })
    };
    let written = key.done(py, written);
    match array {
        Some(array) => array.done(py, written),
        None => written,
    }
}

/// Checks the origin of a value, unless it is assigned to a part: the code that slices decides which points are paired.
fn check_origin(tensor: &Tensor, selected: &Tensor, value: &Tensor) -> PyResult<()> {
    if selected.descriptor().shape() == tensor.descriptor().shape() {
        check_assigned_origin(selected, value)?;
    }
    Ok(())
}

/// Assigns to a view of a tensor in memory that the host writes. `array` is the value if it has a protocol.
fn set_on_host(tensor: &Tensor, selected: &Tensor, value: &Bound<'_, PyAny>, array: Option<&Tensor>) -> PyResult<()> {
    let (py, own_labels) = (value.py(), has_own_labels(value)?);
    let labelled = array.map(|array| broadcast_by_label(py, array, selected, own_labels)).transpose()?.flatten();
    let array = labelled.as_ref().or(array);
    if let Some(array) = array {
        check_origin(tensor, selected, array)?;
        if copied(py, selected, array)? {
            return Ok(());
        }
    }
    // Not by NumPy, which has one thread and looks for no signals.
    if array.is_none() && is_number(value) && selected.descriptor().nbytes() >= copies::GIL_RELEASE_BYTES {
        let number = export::numpy::cast(value, selected.descriptor().dtype(), "value")?;
        if copied(py, selected, &number)? {
            return Ok(());
        }
    }
    // NumPy gets an array or a scalar, whichever protocol the value has.
    let value = match array {
        Some(array) => export::numpy::view(py, &copies::to(py, array, Device::CPU, None)?)?,
        None => value.clone(),
    };
    let written = export::numpy::assign(&export::numpy::view(py, selected)?, &value, "value");
    match (written, array) {
        (Err(error), Some(array)) => Err(with_domain_hint(py, error, array, own_labels, selected)),
        (written, _) => written,
    }
}

/// Casts a value whose elements only NumPy has to those of the tensor that it is assigned to; `None` if it states no labels: then
/// NumPy assigns it by position. `error` is that of its import, for a value that NumPy does not read either.
fn cast_with_labels(to: &Tensor, value: &Bound<'_, PyAny>, error: PyErr) -> PyResult<Option<Value>> {
    let Some(dims) = import::metadata_of(value)?.dims else { return Ok(None) };
    let array = values::as_array(value, "value")?;
    let shape: Vec<i64> = array.getattr("shape")?.extract()?;
    if shape.len() != dims.len() {
        return Err(error);
    }
    // Wrong labels are the error, for all elements.
    let mut cast = Tensor::empty(&Spec::new(&shape, to.descriptor().dtype()).dims(dims.clone()))?;
    broadcast_by_label(value.py(), &cast, to, false)?;
    cast = export::numpy::cast(&array, to.descriptor().dtype(), "value")?;
    cast.relabel(Metadata::default().with_dims(dims))?;
    Ok(Some(cast.into()))
}

/// Broadcasts a value by label to the tensor that it is assigned to. Returns `None` if nothing has to change, or if the
/// value is assigned by position: an array without labels; or one of our tensors with only the standard labels, if it has
/// as many dimensions as the target, or a label that the target does not have. Sizes do not affect this choice.
fn broadcast_by_label(py: Python<'_>, value: &Tensor, to: &Tensor, own_labels: bool) -> PyResult<Option<Tensor>> {
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
        if own == dims {
            return with_domain_hint(py, kind.error(format!("value: {error}")), value, own_labels, to);
        }
        kind.error(format!(
            "value: {error}; dims ({own}) are matched with dims ({dims}) by label: relabel it with from_dlpack(value, \
             dims=...), or assign value.to_numpy() by position"
        ))
    })
}

/// Assigns to a view of a tensor on a device.
#[cold]
#[allow(unsafe_code, reason = "elements are accessed by address")]
fn set_on_device(tensor: &Tensor, selected: &Tensor, value: &Bound<'_, PyAny>, array: Option<&Tensor>) -> PyResult<()> {
    let (py, own_labels) = (value.py(), has_own_labels(value)?);
    let labelled = array.map(|array| broadcast_by_label(py, array, selected, own_labels)).transpose()?.flatten();
    let array = labelled.as_ref().or(array);
    if let Some(array) = array {
        check_origin(tensor, selected, array)?;
    }
    let from = device_source(selected, value, array)?;
    sync::check_in_place(py, &from)?;
    // SAFETY: as for `copied`.
    let written = interrupt::detach(py, || unsafe { selected.assign(&from) });
    written.map_err(|error| {
        let shape = |tensor: &Tensor| PyTuple::new(py, tensor.descriptor().shape());
        let error = match (error, shape(&from), shape(selected)) {
            (Error::Layout(_), Ok(got), Ok(expected)) => export::numpy::shape_error("value", &got, &expected),
            (error, ..) => error.into(),
        };
        with_domain_hint(py, error, &from, own_labels, selected)
    })
}

/// Returns a value whose elements can be cast to those of a tensor on a device, to be copied there. Where this crate has no cast,
/// NumPy converts what the host can read.
fn device_source(like: &Tensor, value: &Bound<'_, PyAny>, array: Option<&Tensor>) -> PyResult<Tensor> {
    let (py, dtype) = (value.py(), like.descriptor().dtype());
    match array {
        None => export::numpy::cast(value, dtype, "value"),
        Some(array) if can_cast(array.descriptor().dtype(), dtype) => Ok(array.clone()),
        Some(array) => {
            let array = export::numpy::for_cast(py, array, (dtype, like.descriptor().device()), "value")?;
            export::numpy::cast(export::numpy::view(py, &array)?.as_any(), dtype, "value")
        }
    }
}

/// Copies an array; releases the GIL for a large one. Returns `false` without any effect for arrays that NumPy has to
/// handle: it knows more element types, and its errors name the cause.
#[allow(unsafe_code, reason = "elements are accessed by address")]
fn copied(py: Python<'_>, to: &Tensor, from: &Tensor) -> PyResult<bool> {
    sync::check_in_place(py, to)?;
    sync::check_in_place(py, from)?;
    // SAFETY: `set` has rejected read-only tensors. Races with other threads on the elements are the program's
    // responsibility, as with NumPy.
    let assign = || unsafe { to.assign(from) };
    // Releasing the GIL takes longer than a small copy, but not longer than waiting for a device.
    let little = to.descriptor().nbytes() < copies::GIL_RELEASE_BYTES
        && !sync::may_have_device_work(to)
        && !sync::may_have_device_work(from);
    match if little { assign() } else { interrupt::detach(py, assign) } {
        Ok(()) => Ok(true),
        Err(Error::Layout(_) | Error::DType(_)) => Ok(false),
        Err(Error::Device(error)) if error.kind() == DeviceErrorKind::Mismatch => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Parses the axes of `transpose`: numbers (negative ones count from the end) or labels, as separate arguments or as one
/// sequence; labels also as one text, as for `dims`. Without axes, or with None, reverses the dimensions.
pub(crate) fn axes(tensor: &Tensor, given: &Bound<'_, PyTuple>) -> PyResult<SmallVec<[usize; 6]>> {
    let ndim = tensor.descriptor().ndim();
    let only = if given.len() == 1 { Some(given.get_item(0)?) } else { None };
    if given.is_empty() || only.as_ref().is_some_and(|only| only.is_none()) {
        return Ok((0..ndim).rev().collect());
    }
    if let Some(Ok(text)) = only.as_ref().map(|only| only.cast::<PyString>())
        && tensor.axis(&text.to_cow()?).is_err()
        && let Ok(labels) = args::dims(text)
        && labels.len() > 1
    {
        return Ok(labels.iter().map(|label| tensor.axis(&label.to_string())).collect::<crate::Result<_>>()?);
    }
    let axis = |item: &Bound<'_, PyAny>| -> PyResult<usize> {
        if let Ok(label) = item.cast::<PyString>() {
            let label = label.to_cow()?;
            return tensor.axis(&label).map_err(|error| match labels_in(tensor, item) {
                Some(all) if label.chars().count() == ndim => {
                    ErrorKind::Dims.error(format!("{error}; write transpose({all})"))
                }
                _ => error.into(),
            });
        }
        let wrong = |got: String| {
            let expected = match ndim.checked_sub(1) {
                Some(last) => format!("-{ndim} to {last}, or a label"),
                None => "no axis".to_owned(),
            };
            DimsError::new("axes", &expected, &format_args!("{got} for {}", Count(ndim, "dimension"))).into()
        };
        let got: i64 = args::if_converted(item.py(), item.extract())?.ok_or_else(|| wrong(args::shown(item)))?;
        let counted = if got < 0 { got.saturating_add(i64::try_from(ndim).unwrap_or(0)) } else { got };
        usize::try_from(counted).ok().filter(|axis| *axis < ndim).ok_or_else(|| wrong(got.to_string()))
    };
    match only.filter(|only| !only.is_instance_of::<PyString>()).map(|only| only.try_iter()) {
        // One axis too many is enough for the error.
        Some(Ok(items)) => items.take(ndim + 1).map(|item| axis(&item?)).collect(),
        _ => given.iter_borrowed().map(|item| axis(&item)).collect(),
    }
}
