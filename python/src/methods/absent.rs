//! Hints for the attributes of arrays of other libraries that tensors and descriptors lack.
//!
//! They are descriptors on the type, because a `__getattr__` would make the look-up of every attribute slower.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::classes::descriptor::PyDescriptor;
use crate::classes::tensor::PyTensor;
use dlfield::native::new_error;

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
}

/// Attributes of the arrays of other libraries, and what to use instead.
const OF_OTHERS: [(&str, &str); 35] = [
    ("as_cupy", "dl.as_cupy(field)"),
    ("as_jax", "dl.as_jax(field)"),
    ("as_numpy", "to_numpy()"),
    ("as_torch", "dl.as_torch(field)"),
    ("asnumpy", "to_numpy()"),
    ("block_until_ready", "synchronize()"),
    ("clone", "copy()"),
    ("contiguous", "dl.from_array(field, backend='C')"),
    ("coords", "dlfield.xarray.to_xarray(field, coords=...)"),
    ("cpu", "to_device('cpu')"),
    ("cuda", "to_device('cuda:0')"),
    ("data_ptr", "ptr"),
    ("dim", "ndim, or dims for the labels"),
    ("domain", "domain_view"),
    ("double", "astype('float64')"),
    ("draw", "dl.draw(field)"),
    ("float", "astype('float32')"),
    ("get", "to_device('cpu')"),
    ("isel", "field[...], or dlfield.xarray.to_xarray(field).isel(...)"),
    ("jax", "dl.as_jax(field)"),
    ("numpy", "to_numpy()"),
    ("permute", "transpose(...)"),
    ("plot", "dlfield.xarray.to_xarray(field).plot()"),
    ("rename", "dl.from_dlpack(field, dims=...)"),
    ("requires_grad_", "dl.as_torch(field).requires_grad_()"),
    ("roll", "dl.from_array(numpy.roll(field, ...))"),
    ("sel", "dlfield.xarray.to_xarray(field, coords=...).sel(...)"),
    // NumPy's own would change an array that nobody keeps.
    ("setflags", "as_readonly() for a read-only view"),
    ("to", "to_device(...) for another device, astype(...) for another dtype"),
    ("to_jax", "dl.as_jax(field)"),
    ("to_pandas", "pandas.DataFrame(field)"),
    ("to_torch", "dl.as_torch(field)"),
    ("to_xarray", "dlfield.xarray.to_xarray(field)"),
    ("torch", "dl.as_torch(field)"),
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
        };
        new_error::<PyAttributeError>(format!("'{class}' object has no attribute '{name}': use {instead}"))
    }
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
    /// The names of the attributes, without those that tensors lack.
    fn __dir__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        present(slf.as_any())
    }
}

#[pymethods]
impl PyDescriptor {
    /// The names of the attributes, without those that descriptors lack.
    fn __dir__<'py>(slf: &Bound<'py, PyDescriptor>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        present(slf.as_any())
    }
}

/// The names of an object's attributes that are not absent ones.
fn present<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = object.py();
    let own = object.get_type().getattr(intern!(py, "__dict__"))?;
    let names = py.get_type::<PyAny>().call_method1(intern!(py, "__dir__"), (object,))?;
    let mut found = Vec::new();
    for name in names.try_iter()? {
        let name = name?;
        if !own.call_method1(intern!(py, "get"), (&name,))?.is_instance_of::<Absent>() {
            found.push(name);
        }
    }
    Ok(found)
}

/// Adds a hint to the types for each attribute of other arrays that they lack.
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
    let descriptor = py.get_type::<PyDescriptor>();
    for name in OF_TENSORS {
        let instead = Instead::Of("dl.as_numpy(descriptor), or dl.from_dlpack(descriptor) for a Tensor");
        add(&descriptor, &PyString::intern(py, name), "Descriptor", instead)?;
    }
    Ok(())
}

fn add(ty: &Bound<'_, PyType>, name: &Bound<'_, PyString>, class: &'static str, instead: Instead) -> PyResult<()> {
    ty.setattr(name, Bound::new(ty.py(), Absent { name: name.clone().unbind(), class, instead })?)
}
