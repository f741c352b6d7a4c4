//! Labels that objects carry: dims and origin, whatever protocol their memory comes through.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyList, PyString, PyTuple, PyType};

use super::args;
use super::attributes;
use super::descriptor::PyDescriptor;
use super::errors::Kind;
use super::lookup;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::dims::Dims;
use crate::layout::{Extents, Halo};
use crate::tensor::Tensor;

/// A source of labels by name, and what it says.
type Found<T> = Option<(&'static str, T)>;

fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(lookup::optional(object, name)?.filter(|value| !value.is_none()))
}

/// Whether a type has any attribute in which its instances would state labels.
pub(super) fn on_type(ty: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = ty.py();
    let names = [
        intern!(py, "__gt_data_interface__"),
        intern!(py, "__gt_interface__"),
        intern!(py, "__gt_dims__"),
        intern!(py, "dims"),
        intern!(py, "__gt_origin__"),
        intern!(py, "default_origin"),
    ];
    for name in names {
        if lookup::optional(ty, name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An attribute that may be a value or a method that returns it.
fn value_or_call<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match attribute(object, name)? {
        Some(value) if value.is_callable() => {
            value.call0().map(|value| if value.is_none() { None } else { Some(value) })
        }
        other => Ok(other),
    }
}

/// The buffers that an object's data interface describes, whatever their device; none without an interface.
struct Interface<'py>(Vec<Bound<'py, PyDict>>);

impl<'py> Interface<'py> {
    /// Reads either spelling, with values that are dictionaries or callables that return one.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Interface<'py>> {
        let py = object.py();
        let mut buffers = Vec::new();
        for name in [intern!(py, "__gt_data_interface__"), intern!(py, "__gt_interface__")] {
            let Some(interface) = attribute(object, name)? else { continue };
            let Ok(devices) = interface.cast_into::<PyDict>() else { continue };
            for (_, buffer) in devices.iter() {
                let buffer = if buffer.is_callable() { buffer.call0()? } else { buffer };
                buffers.extend(buffer.cast_into::<PyDict>());
            }
        }
        Ok(Interface(buffers))
    }

    /// What the first buffer that has the key says there.
    fn get(&self, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        for buffer in &self.0 {
            if let Some(value) = buffer.get_item(key)?.filter(|value| !value.is_none()) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Ghost widths.
    fn halo(&self) -> PyResult<Option<Halo>> {
        self.get("halo")?.map(|halo| args::halo(&halo)).transpose()
    }
}

/// The one answer of all sources that have one.
fn agree<T: PartialEq, const N: usize>(
    found: [Found<T>; N],
    kind: Kind,
    shown: impl Fn(&T) -> String,
) -> PyResult<Option<T>> {
    let mut first: Found<T> = None;
    for (source, value) in found.into_iter().flatten() {
        match &first {
            None => first = Some((source, value)),
            Some((other, known)) if *known != value => {
                return Err(kind.error(format!(
                    "{source} says {}, but {other} says {}; allowed is one answer from all",
                    shown(&value),
                    shown(known)
                )));
            }
            Some(_) => {}
        }
    }
    Ok(first.map(|(_, value)| value))
}

/// The labels that an object states, in any of the ways there are.
fn stated_dims<'py>(object: &Bound<'py, PyAny>, interface: &Interface<'py>) -> PyResult<Option<Dims>> {
    let py = object.py();
    let named = |source, value: Option<Bound<'_, PyAny>>| -> PyResult<Found<Dims>> {
        value.map(|value| Ok((source, strings(&value)?))).transpose()
    };
    // Other libraries use `dims` for other things; only sequences of strings are labels.
    let plain = attribute(object, intern!(py, "dims"))?
        .filter(|value| value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>())
        .filter(|value| {
            value
                .try_iter()
                .is_ok_and(|mut items| items.all(|item| item.is_ok_and(|item| item.is_instance_of::<PyString>())))
        });
    let found = [
        named("__gt_dims__", value_or_call(object, intern!(py, "__gt_dims__"))?)?,
        named("the data interface", interface.get("dims")?)?,
        named("dims", plain)?,
    ];
    agree(found, Kind::Dims, |dims| format!("({dims})"))
}

/// The first compute point that an object states, in any of the ways there are. `dims` are its labels.
fn stated_origin(object: &Bound<'_, PyAny>, dims: Option<&Dims>) -> PyResult<Option<Extents>> {
    let py = object.py();
    // GT4Py takes these in its own order of dimensions.
    let named = |source: &'static str, value: Option<Bound<'_, PyAny>>| -> PyResult<Found<Extents>> {
        value.map(|value| Ok((source, in_index_order(args::ints(source, &value)?, dims)))).transpose()
    };
    let found = [
        named("__gt_origin__", value_or_call(object, intern!(py, "__gt_origin__"))?)?,
        named("default_origin", value_or_call(object, intern!(py, "default_origin"))?)?,
    ];
    agree(found, Kind::Layout, |origin: &Extents| format!("{:?}", origin.as_slice()))
}

/// An origin in GT4Py's order of dimensions, in the order of the labels.
fn in_index_order(origin: Extents, dims: Option<&Dims>) -> Extents {
    let Some(dims) = dims.filter(|dims| dims.len() == origin.len()) else { return origin };
    let mut sorted = origin.clone();
    for (position, axis) in dims.gt4py_order().into_iter().enumerate() {
        sorted[axis] = origin[position];
    }
    sorted
}

/// Labels as objects state them: strings, or anything whose text is the label.
fn strings(value: &Bound<'_, PyAny>) -> PyResult<Dims> {
    if value.is_instance_of::<PyString>() {
        return args::dims(value);
    }
    let wrong = || Kind::Dims.error(format!("dims: {} is not a sequence of labels", args::shown(value)));
    let labels: Vec<String> =
        value.try_iter().map_err(|_| wrong())?.map(|item| Ok(item?.str()?.to_string())).collect::<PyResult<_>>()?;
    Ok(Dims::parse(labels)?)
}

/// Labels to give a field: what the caller gave, else what the object states.
pub(super) struct Labels {
    dims: Option<Dims>,
    origin: Option<Extents>,
    halo: Option<Halo>,
}

impl Labels {
    /// Only what was given.
    pub(super) fn given(dims: Option<Dims>, origin: Option<Extents>) -> Labels {
        Labels { dims, origin, halo: None }
    }

    /// Looks at the object for what was not given.
    pub(super) fn find(object: &Bound<'_, PyAny>, dims: Option<Dims>, origin: Option<Extents>) -> PyResult<Labels> {
        let interface = Interface::of(object)?;
        let dims = if dims.is_some() { dims } else { stated_dims(object, &interface)? };
        let origin = if origin.is_some() { origin } else { stated_origin(object, dims.as_ref())? };
        Ok(Labels { dims, origin, halo: interface.halo()? })
    }

    /// Puts them on a descriptor.
    pub(super) fn describe(self, descriptor: &mut Descriptor) -> PyResult<()> {
        if let Some(dims) = self.dims {
            descriptor.set_dims(dims)?;
        }
        // Where nobody states an origin, it is the lower halo.
        let lower = self.halo.as_ref().map(|halo| halo.iter().map(|(lower, _)| *lower).collect());
        if let Some(origin) = self.origin.or(lower) {
            descriptor.set_origin(origin.as_slice().into())?;
        }
        if let Some(halo) = self.halo {
            descriptor.set_halo(halo.as_slice().into())?;
        }
        Ok(())
    }

    /// Puts them on a tensor.
    pub(super) fn attach(self, tensor: &mut Tensor) -> PyResult<()> {
        Ok(tensor.relabel(self.dims, self.origin, self.halo)?)
    }
}

/// The labels of an array's dimensions in index order, from wherever the object states them, else `annotation`.
///
/// Looked at are `__gt_dims__` (attribute or method), the data interface's "dims", and `dims`. `DimsError` if two of them
/// disagree. `None` if nothing says.
///
/// >>> import dlfield as dl, numpy as np
/// >>> dl.get_dims(dl.zeros((2, 3), dims="JK")), dl.get_dims(np.zeros(2), "K")
/// (('J', 'K'), ('K',))
#[pyfunction]
#[pyo3(signature = (obj, annotation=None))]
fn get_dims<'py>(
    obj: &Bound<'py, PyAny>,
    annotation: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        return attributes::labels(py, &tensor.get().0.dims()).map(Some);
    }
    let dims = match stated_dims(obj, &Interface::of(obj)?)? {
        Some(dims) => Some(dims),
        None => annotation.map(args::dims).transpose()?,
    };
    dims.map(|dims| attributes::labels(py, &dims)).transpose()
}

/// The index of an array's first compute point, from wherever the object states it, else `default`.
///
/// Looked at are `__gt_origin__` and `default_origin` (`LayoutError` if they disagree), then the data interface's lower
/// halo. `None` if nothing says.
///
/// >>> import dlfield as dl, numpy as np
/// >>> dl.get_origin(dl.zeros((5, 5), halo=(1, 2))), dl.get_origin(np.zeros(2))
/// ((1, 2), None)
#[pyfunction]
#[pyo3(signature = (obj, default=None))]
fn get_origin<'py>(
    obj: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        return PyTuple::new(py, tensor.get().0.origin()).map(Some);
    }
    if let Ok(descriptor) = obj.cast::<PyDescriptor>() {
        let origin = descriptor.get().descriptor().origin();
        return origin.map(|origin| PyTuple::new(py, origin)).transpose();
    }
    let Labels { origin, halo, .. } = Labels::find(obj, None, None)?;
    let lower = |halo: Halo| halo.iter().map(|(lower, _)| *lower).collect();
    let origin = match origin.or(halo.map(lower)) {
        Some(origin) => Some(origin),
        None => default.map(|default| args::ints("default", default)).transpose()?,
    };
    origin.map(|origin| PyTuple::new(py, origin)).transpose()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_dims, module)?)?;
    module.add_function(wrap_pyfunction!(get_origin, module)?)
}
