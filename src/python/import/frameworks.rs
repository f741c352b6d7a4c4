//! Recognizes the types of frameworks, and finds the table of DLPack's C exchange API on a type.
//!
//! No framework is imported here: an object of it exists only if it is imported. Classes are absent in older versions, and while a
//! module is still being imported.
//!
//! Source: DLPack 1.3, `DLPackExchangeAPI`.

#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;

use dlpark::ffi::{DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackVersion, DLTensor};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyString, PyType};
use pyo3::{ffi, intern};

use crate::error::ExchangeError;
use crate::protocol::dlpack;
use crate::python::ffi::getattr::{self, loaded};
use crate::python::tensor_api;

/// What imports know of a type by its name or its bases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PyTorch's tensors, also of a subclass.
    Torch,
    Jax,
    /// The class `dlfield.Tensor`, as an extension outside dlfield's own module sees it.
    Dlfield,
    /// The class `dlfield.Descriptor`.
    Description,
    /// `xarray.DataArray` and its relatives, which wrap an array.
    Xarray,
    /// A field of `gt4py.next`, which wraps an array.
    Field,
    /// A host/device pair, which wraps two arrays and has the metadata of its buffers.
    Pair,
    Other,
}

impl Kind {
    pub fn of(ty: &Bound<'_, PyType>) -> PyResult<Kind> {
        let py = ty.py();
        // `issubclass` would evaluate the properties of a class that is a `Protocol`, as GT4Py's is.
        let derives =
            |base: Option<Bound<'_, PyAny>>| base.is_some_and(|base| ty.mro().iter().any(|known| known.is(&base)));
        if derives(class(py, "torch", intern!(py, "Tensor"))?) {
            return Ok(Kind::Torch);
        }
        if class(py, "dlfield._native", intern!(py, "Tensor"))?.is_some_and(|tensor| ty.is(&tensor)) {
            // Later imports find the table by the address of the type.
            tensor_api::find(ty)?;
            return Ok(Kind::Dlfield);
        }
        if class(py, "dlfield._native", intern!(py, "Descriptor"))?.is_some_and(|descriptor| ty.is(&descriptor)) {
            return Ok(Kind::Description);
        }
        if derives(class(py, "dlfield.storage.managed", intern!(py, "SoftwareManagedGPUStorage"))?) {
            return Ok(Kind::Pair);
        }
        for name in [intern!(py, "DataArray"), intern!(py, "Variable"), intern!(py, "NamedArray")] {
            if derives(class(py, "xarray", name)?) {
                return Ok(Kind::Xarray);
            }
        }
        if derives(class(py, "gt4py.next.common", intern!(py, "Field"))?) {
            return Ok(Kind::Field);
        }
        let from_jax = getattr::module_of(ty).is_some_and(|module| module.starts_with("jaxlib."));
        Ok(if from_jax && ty.name()? == "ArrayImpl" { Kind::Jax } else { Kind::Other })
    }
}

/// Returns a class of a module; `None` if the module is not imported or has no such class.
fn class<'py>(py: Python<'py>, module: &str, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    loaded(py, module)?.map_or(Ok(None), |module| getattr::getattr_opt(&module, name))
}

/// `torch.Tensor`, and its table's function that fills in a borrowed `DLTensor`.
pub struct TorchTable {
    tensor: Py<PyType>,
    pub version: DLPackVersion,
    pub borrow: unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32,
}

static TORCH_TABLE: PyOnceLock<TorchTable> = PyOnceLock::new();

/// Returns how PyTorch lends the memory of tensors of this type; `None` if the type's table is not that of `torch.Tensor`, as for
/// PyTorch's `ReadOnlyTensorWrapper`: what is lent counts as writable, as it cannot say. Other libraries export a managed tensor.
pub fn torch_table_of(ty: &Bound<'_, PyType>, table: &DLPackExchangeAPI) -> PyResult<Option<&'static TorchTable>> {
    let py = ty.py();
    let Some(tensor) = class(py, "torch", intern!(py, "Tensor"))? else { return Ok(None) };
    let tensor = tensor.cast_into::<PyType>()?;
    let is_plain = exchange_table(&tensor)?.is_some_and(|plain| std::ptr::eq(plain, table));
    let (version, borrow) = (table.header.version, table.dltensor_from_py_object_no_sync.filter(|_| is_plain));
    Ok(borrow.map(|borrow| TORCH_TABLE.get_or_init(py, || TorchTable { tensor: tensor.unbind(), version, borrow })))
}

/// Returns how a PyTorch tensor was described before; `None` for other objects. Runs no Python code, also if the
/// tensor's class has changed since.
pub fn torch_table(object: &Bound<'_, PyAny>) -> Option<&'static TorchTable> {
    let known = TORCH_TABLE.get(object.py())?;
    // SAFETY: two live types.
    let derived = unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), known.tensor.as_ptr().cast()) != 0 };
    derived.then_some(known)
}

/// Returns the exchange table of a type in a supported version; a newer table may link to an older one.
pub fn exchange_table(ty: &Bound<'_, PyType>) -> PyResult<Option<&'static DLPackExchangeAPI>> {
    const NAME: &str = "__dlpack_c_exchange_api__";
    const CAPSULE_NAME: &std::ffi::CStr = c"dlpack_exchange_api";
    let name = intern!(ty.py(), NAME);
    // An attribute of the metaclass does not count: it may change without the type.
    if getattr::on_type(ty, name).is_none() {
        return Ok(None);
    }
    let Some(capsule) = getattr::getattr_opt(ty, name)? else { return Ok(None) };
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|error| {
        PyErr::from(ExchangeError::new(NAME, &"a capsule named 'dlpack_exchange_api'", &error.to_string()))
    })?;
    let mut header = capsule.pointer_checked(Some(CAPSULE_NAME))?.cast::<DLPackExchangeAPIHeader>().as_ptr();
    while !header.is_null() {
        // SAFETY: tables live for the rest of the process, and their header is the same in every version.
        let known = unsafe { &*header };
        if known.version.major == dlpack::VERSION.major {
            // SAFETY: tables of this major version have this layout.
            return Ok(Some(unsafe { &*header.cast::<DLPackExchangeAPI>() }));
        }
        header = known.prev_api;
    }
    Ok(None)
}
