//! Finds the metadata that objects state, dims, origin and halo, for any protocol of their memory.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::fmt::Display;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::error::DimsError;
use crate::layout::{Extents, Halo, MAX_NDIM, Metadata};
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::ArgumentError;
use crate::python::import::data_interface::Interface;
use crate::python::import::dictionary::Key;
use crate::python::import::frameworks::Kind;
use crate::python::import::request::Inner;
use crate::python::import::type_info::{self, Name, kind_of};
use crate::python::import::unwrap::field_origin;
use crate::python::{interrupt, own_classes, tensor_api};

fn attribute<'py>(object: &Bound<'py, PyAny>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(type_info::attribute(object, name)?.filter(|value| !value.is_none()))
}

/// Returns the value of an attribute that may also be a method, which is called then; `None` if it is absent or None.
fn value_or_call<'py>(object: &Bound<'py, PyAny>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    match attribute(object, name)? {
        Some(value) if value.is_callable() => Ok(Some(value.call0()?).filter(|value| !value.is_none())),
        other => Ok(other),
    }
}

/// The common value of all sources that state one.
struct Answer<T> {
    kind: ErrorKind,
    shown: fn(&T) -> String,
    first: Option<(&'static str, T)>,
}

impl<T: PartialEq> Answer<T> {
    /// Adds the value of a source, if it states one. Rejects a value that differs from that of another source.
    fn add(&mut self, source: &'static str, value: Option<T>) -> PyResult<()> {
        let Some(value) = value else { return Ok(()) };
        match &self.first {
            None => self.first = Some((source, value)),
            Some((other, known)) if *known != value => {
                let expected = format_args!("{}, as {other} has", (self.shown)(known));
                return Err(self.kind.error(ArgumentError::new(source, &expected, &(self.shown)(&value))));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn given(self) -> Option<T> {
        self.first.map(|(_, value)| value)
    }
}

/// Returns the dims that an object states in `__gt_dims__`, its data interface or `dims`. Rejects different ones.
pub fn find_dims<'py>(object: &Bound<'py, PyAny>, interface: &Interface<'py>) -> PyResult<Option<Dims>> {
    let read = |source, value: Option<Bound<'_, PyAny>>| value.map(|value| strings(source, &value)).transpose();
    let mut answer = Answer { kind: ErrorKind::Dims, shown: |dims: &Dims| format!("({dims})"), first: None };
    answer.add("__gt_dims__", read("__gt_dims__", value_or_call(object, Name::GtDims)?)?)?;
    for source in interface.sources() {
        answer.add(source.name, read(source.name, source.get(Key::Dims)?)?)?;
    }
    // Other libraries use `dims` for other things; only tuples and lists of strings are labels.
    if let Some(plain) = attribute(object, Name::Dims)?
        && (plain.is_instance_of::<PyTuple>() || plain.is_instance_of::<PyList>())
        && has_strings_only(&plain)?
    {
        answer.add("dims", read("dims", Some(plain))?)?;
    }
    Ok(answer.given())
}

/// Whether all entries of a tuple or list are strings, of a long one the first thousand: its class may iterate by code of its own,
/// without end. If that fails, they are not.
fn has_strings_only(entries: &Bound<'_, PyAny>) -> PyResult<bool> {
    let found = entries.try_iter().and_then(|entries| entries.take(1000).collect::<PyResult<Vec<_>>>());
    let found = interrupt::answer(entries.py(), found)?;
    Ok(found.is_some_and(|entries| entries.iter().all(|entry| entry.is_instance_of::<PyString>())))
}

/// Returns the halo that an object's data interface states.
fn find_halo(interface: &Interface<'_>) -> PyResult<Option<Halo>> {
    let mut answer =
        Answer { kind: ErrorKind::Layout, shown: |halo: &Halo| format!("halo {:?}", halo.as_slice()), first: None };
    for source in interface.sources() {
        let Some(halo) = source.get(Key::Halo)? else { continue };
        let name = format!("{}[\"halo\"]", source.name);
        let halo = args::halo("halo", &halo, None).map_err(|error| with_source(halo.py(), &name, error))?;
        answer.add(source.name, Some(halo))?;
    }
    Ok(answer.given())
}

/// Returns the origin that an object states in `__gt_origin__` or `default_origin`, in index order. Rejects different ones.
/// `dims` are the object's labels.
fn find_origin(object: &Bound<'_, PyAny>, dims: Option<&Dims>) -> PyResult<Option<Box<[i64]>>> {
    if kind_of(object)? == Kind::Field {
        return Ok(field_origin(object)?.map(Extents::into_boxed_slice));
    }
    let mut answer =
        Answer { kind: ErrorKind::Layout, shown: |origin: &Extents| format!("{:?}", origin.as_slice()), first: None };
    for name in [Name::GtOrigin, Name::DefaultOrigin] {
        if let Some(value) = value_or_call(object, name)? {
            // Both are in GT4Py's order of dimensions.
            let origin =
                args::ints(name.text(), &value).map_err(|error| with_source(value.py(), name.text(), error))?;
            answer.add(name.text(), Some(in_index_order(origin, dims)))?;
        }
    }
    Ok(answer.given().map(Extents::into_boxed_slice))
}

/// Converts an origin from GT4Py's order of dimensions to that of the labels.
fn in_index_order(origin: Extents, dims: Option<&Dims>) -> Extents {
    let Some(dims) = dims.filter(|dims| dims.len() == origin.len()) else { return origin };
    let mut sorted = origin.clone();
    for (position, axis) in dims.gt4py_order().into_iter().enumerate() {
        sorted[axis] = origin[position];
    }
    sorted
}

/// Turns a `TypeError` for a stated value into a `LayoutError` that names its source, as no argument has the wrong type.
fn with_source(py: Python<'_>, source: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let message = error.value(py).to_string();
    let what = message.split_once(": ").map_or(&*message, |(_argument, what)| what);
    let named = ErrorKind::Layout.error(format!("{source}: {what}"));
    named.set_cause(py, Some(error));
    named
}

/// Converts labels that an object states: a string or a sequence, also of objects whose text is the label (GTScript's axes).
fn strings(source: &str, value: &Bound<'_, PyAny>) -> PyResult<Dims> {
    if value.is_instance_of::<PyString>() {
        return args::dims(value);
    }
    let wrong = |got: &dyn Display| DimsError::new(source, &"one string for each dimension", got);
    // Stops after one label too many, as the iterable may be endless.
    let items = args::iterator(value)?.ok_or_else(|| wrong(&args::shown(value)))?.take(MAX_NDIM + 1);
    let labels: Vec<String> = items.map(|item| text_of_label(source, &item?)).collect::<PyResult<_>>()?;
    if labels.len() > MAX_NDIM {
        return Err(wrong(&format_args!("more than {MAX_NDIM}")).into());
    }
    Ok(Dims::parse(labels)?)
}

/// Returns the text of a label that an object states. Of numbers, only integers from 0 are labels.
fn text_of_label(source: &str, item: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Some(text) = args::label(item)? {
        return Ok(text);
    }
    let py = item.py();
    let names = [intern!(py, "__float__"), intern!(py, "__complex__"), intern!(py, "__index__")];
    let is_number = names.into_iter().any(|name| getattr::on_type(&item.get_type(), name).is_some());
    if is_number || item.is_none() || item.is_instance_of::<PyBytes>() {
        return Err(args::not_a_label(source, item));
    }
    Ok(item.str()?.to_string())
}

/// Finds the metadata that is not in `given`: first on the object, then on the array inside it. `device` selects a buffer of a
/// data interface.
pub fn find<'py>(
    object: &Bound<'py, PyAny>,
    device: Option<Device>,
    interface: &mut Option<Interface<'py>>,
    mut inner: Option<&mut Inner<'py>>,
    given: Metadata,
) -> PyResult<Metadata> {
    if let Some(own) = own(object)? {
        return Ok(given.or(own));
    }
    let inside = |inner: &mut Inner<'py>, given| {
        let Inner { array, interface, inner } = inner;
        find(array, None, interface, inner.as_deref_mut(), given)
    };
    if let Some(inner) = inner.as_deref_mut()
        && kind_of(object)? == Kind::Pair
    {
        // A pair has the metadata of its buffers, so only the buffer is asked.
        return inside(inner, given);
    }
    let interface = match interface {
        Some(known) => &*known,
        none => &*none.insert(Interface::of(object, device)?),
    };
    let of_caller = Metadata { dims: given.dims.clone(), ..Metadata::default() };
    let dims = given.dims.map_or_else(|| find_dims(object, interface), |dims| Ok(Some(dims)))?;
    let origin = given.origin.map_or_else(|| find_origin(object, dims.as_ref()), |origin| Ok(Some(origin)))?;
    let found = Metadata { dims, origin, halo: find_halo(interface)?.map(Halo::into_boxed_slice), halo_is_cut: false };
    let Some(inner) = inner else { return Ok(found) };
    // The caller's dims also replace those of the array inside.
    joined(found, inside(inner, of_caller)?)
}

/// Returns what a `Tensor` or `Descriptor` states, without a tensor's default metadata; in an extension outside dlfield's own
/// module, a tensor's with the default ones. `None` for other objects.
fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Metadata>> {
    let stated = |descriptor: &Descriptor| descriptor.metadata().cloned().unwrap_or_default();
    if let Some(tensor) = own_classes::tensor(object) {
        return Ok(Some(stated(tensor.descriptor())));
    }
    if let Some(api) = tensor_api::of(object) {
        return api.metadata(object).map(Some);
    }
    Ok(own_classes::description(object).map(|described| stated(described.descriptor)))
}

/// Returns the metadata of an object, filled up with that of the array inside. `DimsError` if both have dims and they differ.
fn joined(mut outside: Metadata, mut inside: Metadata) -> PyResult<Metadata> {
    let mut dims = Answer { kind: ErrorKind::Dims, shown: |dims: &Dims| format!("dims ({dims})"), first: None };
    dims.add("the object", outside.dims.take())?;
    dims.add("the array inside it", inside.dims.take())?;
    Ok(Metadata { dims: dims.given(), ..outside.or(inside) })
}

/// Returns the metadata that an object states, without the result of an import.
pub fn metadata_of(object: &Bound<'_, PyAny>) -> PyResult<Metadata> {
    find(object, None, &mut None, None, Metadata::default())
}
