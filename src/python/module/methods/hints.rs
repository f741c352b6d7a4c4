//! Hints for the attributes of arrays of other libraries that tensors and descriptors do not have.
//!
//! They are descriptors on the class, which its metaclass leaves out of `dir`, so that `help` and completion show what works. With a
//! `__getattr__` instead, Python would ask it for every attribute, and make an object of each method that is called: `to_numpy()`
//! took 130 ns without it and 210 with it, `numpy.from_dlpack(field)` 400 and 475, an absent attribute 26 and 380 (CPython 3.11,
//! 2026-11-28). All that the metaclass costs is 60 ns in `isinstance(obj, dl.Tensor)` for an object that is not a tensor.

#![allow(unsafe_code, reason = "only classes of Python can be given a metaclass otherwise")]

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple, PyType};

use crate::dims::Dims;
use crate::python::convert::args;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::tensor::PyTensor;

/// An attribute that is absent: looking it up raises `AttributeError`, as for any other name.
#[pyclass(name = "_Absent", module = "dlfield", frozen)]
struct Absent {
    name: Py<PyString>,
    /// `Tensor` or `Descriptor`.
    class: &'static str,
    instead: Instead,
}

/// What to use in place of an absent attribute.
enum Instead {
    /// The same of NumPy's or CuPy's array, which is a method or not.
    OfArray { is_method: bool },
    /// This.
    Of(&'static str),
    /// An index by label, shown for the last dimension of the instance.
    Index,
    /// As `Index`, by a coordinate of the dimension.
    Coordinate,
}

/// Attributes of the arrays of other libraries, and what to use instead.
const OF_OTHERS: [(&str, &str); 28] = [
    ("as_cupy", "dl.as_cupy(field)"),
    ("as_jax", "to_jax()"),
    ("as_numpy", "to_numpy()"),
    ("as_torch", "to_torch()"),
    ("asnumpy", "to_numpy()"),
    ("block_until_ready", "synchronize()"),
    ("clone", "copy()"),
    ("contiguous", "dl.from_array(field, backend='C')"),
    ("coords", "to_xarray(coords=...)"),
    ("cpu", "to_device('cpu')"),
    ("cuda", "to_device('cuda:0')"),
    ("data_ptr", "ptr"),
    ("dim", "ndim, or dims for the labels"),
    ("domain", "domain_view"),
    ("double", "astype('float64')"),
    ("draw", "dl.draw(field)"),
    ("float", "astype('float32')"),
    ("get", "to_device('cpu')"),
    ("jax", "to_jax()"),
    ("numpy", "to_numpy()"),
    ("permute", "transpose(...)"),
    ("requires_grad_", "to_torch().requires_grad_()"),
    ("roll", "dl.from_array(numpy.roll(field, ...))"),
    // NumPy's own would change an array that nobody keeps.
    ("setflags", "as_readonly() for a read-only view"),
    ("to", "to_device(...) for another device, astype(...) for another dtype"),
    ("to_pandas", "pandas.DataFrame(field)"),
    ("torch", "to_torch()"),
    ("values", "to_numpy()"),
];

/// Attributes of tensors that are often looked up on descriptors, which have no elements.
const OF_TENSORS: [&str; 17] = [
    "astype",
    "copy",
    "data",
    "fill",
    "item",
    "max",
    "mean",
    "min",
    "numpy",
    "reshape",
    "sum",
    "to_cupy",
    "to_device",
    "to_numpy",
    "tolist",
    "transpose",
    "values",
];

impl Absent {
    /// The error for a look-up, or for a value that is set.
    fn error(&self, instance: &Bound<'_, PyAny>, is_set: bool) -> PyErr {
        let array = match instance.cast::<PyTensor>() {
            Ok(tensor) if tensor.get().descriptor().device().is_cuda() => "to_cupy()",
            _ => "to_numpy()",
        };
        let (name, class) = (self.name.bind(instance.py()), self.class);
        let instead = match self.instead {
            Instead::OfArray { is_method: true } => format!("{array}.{name}(...)"),
            Instead::OfArray { is_method: false } if is_set => format!("{array}.{name} = ..."),
            Instead::OfArray { is_method: false } => format!("{array}.{name}"),
            Instead::Of(other) => other.to_owned(),
            Instead::Index => by_label(instance, "to_xarray().isel(...)", |dims, label, _| {
                let all = ":, ".repeat(dims.len() - 1);
                let one = format!("an entry for each of dims ({dims})");
                format!("field[{all}0], {one}, or field.to_xarray().isel({{{label}: 0}})")
            }),
            Instead::Coordinate => by_label(instance, "to_xarray(coords=...).sel(...)", |_, label, extent| {
                let places = format!("range({extent})");
                format!(
                    "field.to_xarray(coords={{{label}: {places}}}).sel({{{label}: 0}}), with coordinates for {places}"
                )
            }),
        };
        new_error::<PyAttributeError>(format!("'{class}' object has no attribute '{name}': use {instead}"))
    }
}

/// What to write for an index by label: by the dims, the last label as Python shows it and its extent; without dimensions, `other`.
fn by_label(instance: &Bound<'_, PyAny>, other: &str, text: impl FnOnce(&Dims, &str, i64) -> String) -> String {
    let Ok(tensor) = instance.cast::<PyTensor>() else { return other.to_owned() };
    let (dims, tensor) = (tensor.get().0.dims(), tensor.get().0.descriptor());
    let (Some(label), Some(extent)) = (dims.iter().last(), tensor.shape().last()) else { return other.to_owned() };
    text(&dims, &args::shown(PyString::new(instance.py(), &label.to_string()).as_any()), *extent)
}

#[pymethods]
impl Absent {
    fn __get__(&self, instance: &Bound<'_, PyAny>, _owner: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        Err(self.error(instance, false))
    }

    fn __set__(&self, instance: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(self.error(instance, true))
    }
}

#[pymethods]
impl PyTensor {
    /// The names of the attributes, without those that tensors do not have.
    fn __dir__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        names(&slf.get_type())
    }
}

#[pymethods]
impl PyDescriptor {
    /// The names of the attributes, without those that descriptors do not have.
    fn __dir__<'py>(slf: &Bound<'py, PyDescriptor>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        names(&slf.get_type())
    }
}

/// The names of a class's attributes that are not absent ones. Its instances have no others.
fn names<'py>(class: &Bound<'py, PyType>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = class.py();
    let own = class.getattr(intern!(py, "__dict__"))?;
    let mut found = Vec::new();
    for name in py.get_type::<PyType>().call_method1(intern!(py, "__dir__"), (class,))?.try_iter()? {
        let name = name?;
        if !own.call_method1(intern!(py, "get"), (&name,))?.is_instance_of::<Absent>() {
            found.push(name);
        }
    }
    Ok(found)
}

/// Gives a class a metaclass whose `__dir__` returns these names.
fn hide(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let of = class.clone().unbind();
    let dir = PyCFunction::new_closure(py, Some(c"__dir__"), None, move |args, _| {
        names(of.bind(args.py())).map(|names| names.into_iter().map(Bound::unbind).collect::<Vec<_>>())
    })?;
    let body = PyDict::new(py);
    body.set_item("__dir__", dir)?;
    body.set_item("__slots__", PyTuple::empty(py))?;
    body.set_item("__module__", "dlfield")?;
    let metaclass = py.get_type::<PyType>().call1(("_Hinted", (py.get_type::<PyType>(),), body))?;
    // SAFETY: a subclass of `type`, the metaclass so far, that adds no fields. The class keeps it alive, as any object keeps its
    // class, and `type` lives for ever.
    unsafe { (*class.as_ptr()).ob_type = metaclass.into_ptr().cast() };
    Ok(())
}

/// Adds a hint to the types for each attribute of other arrays that they do not have.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    // By import: without NumPy, the crate `numpy` would panic.
    let (ty, array) = (py.get_type::<PyTensor>(), py.import("numpy")?.getattr("ndarray")?);
    for name in array.dir()? {
        let name = name.cast_into::<PyString>()?;
        if name.to_cow()?.starts_with('_') || ty.hasattr(&name)? {
            continue;
        }
        let is_method = array.getattr(&name)?.is_callable();
        add(&ty, &name, "Tensor", Instead::OfArray { is_method })?;
    }
    for (name, instead) in OF_OTHERS {
        add(&ty, &PyString::intern(py, name), "Tensor", Instead::Of(instead))?;
    }
    add(&ty, intern!(py, "isel"), "Tensor", Instead::Index)?;
    add(&ty, intern!(py, "sel"), "Tensor", Instead::Coordinate)?;
    let descriptor = py.get_type::<PyDescriptor>();
    for name in OF_TENSORS {
        let instead = Instead::Of("dl.as_numpy(descriptor), or dl.from_dlpack(descriptor) for a Tensor");
        add(&descriptor, &PyString::intern(py, name), "Descriptor", instead)?;
    }
    hide(&ty)?;
    hide(&descriptor)
}

fn add(ty: &Bound<'_, PyType>, name: &Bound<'_, PyString>, class: &'static str, instead: Instead) -> PyResult<()> {
    ty.setattr(name, Bound::new(ty.py(), Absent { name: name.clone().unbind(), class, instead })?)
}
