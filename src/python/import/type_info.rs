//! Caches what importers need to know about a type; looking that up takes longer than importing an array.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use dlpark::ffi::{DLPackExchangeAPI, DLPackVersion};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyType};
use pyo3::{ffi, intern};

use crate::python::ffi::getattr::{Method, loaded};
use crate::python::ffi::types::{InstanceDict, TypeCache, TypeVersion};
use crate::python::ffi::{dlpack_c, getattr};
use crate::python::import::names::{Name, Names};
use crate::python::import::wrapper::Wrapper;
use crate::python::{interrupt, tensor_api};

/// The framework that the instances' type belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    Torch,
    Jax,
    /// The class `dlfield.Tensor`, as an extension outside dlfield's own module sees it.
    Dlfield,
    /// None: one of Python's own types whose objects are buffers.
    Builtin,
    Other,
}

/// Where an instance may have attributes of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instance {
    /// Nowhere.
    Never,
    /// In its `__dict__`, which may be created to look into it.
    InDictionary { place: InstanceDict, may_create: bool },
    /// Anywhere: only a look-up tells.
    Anywhere,
}

/// What the importers need to know about a type.
#[derive(Clone, Copy)]
pub(super) struct TypeInfo {
    /// The table of DLPack's C exchange API.
    pub(super) table: Option<&'static DLPackExchangeAPI>,
    pub(super) framework: Framework,
    pub(super) wrapper: Option<Wrapper>,
    /// The function that borrows the `DLTensor` of a PyTorch tensor.
    borrow: Option<dlpack_c::Borrow>,
    /// The protocol attributes that the type has.
    on_type: Names,
    /// Those of them that are methods, which every instance has. Properties and slots may be empty.
    methods: Names,
    instance: Instance,
}

thread_local! {
    static KNOWN: TypeCache<TypeInfo> = const { TypeCache::new() };
}

impl TypeInfo {
    /// Returns the info of an object's type. Looking up a type that is not cached may call back into Python code.
    #[inline]
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        match KNOWN.try_with(|known| known.get(object)) {
            Ok(Some(info)) => Ok(info),
            _ => TypeInfo::find(object),
        }
    }

    #[cold]
    fn find(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        if !TypeVersion::of(object).is_assigned() {
            assign_version(&object.get_type())?;
        }
        // The version first: the calls below may run code of a metaclass, which may change the type. Both at once: the object may
        // get another type.
        let (version, ty) = (TypeVersion::of(object), &object.get_type());
        let (framework, wrapper) = (Framework::of(ty)?, Wrapper::of(ty)?);
        let (on_type, methods) = on_type(ty);
        let instance = Instance::of(ty, framework, wrapper);
        let table = dlpack_c::table(ty)?;
        let borrow = if framework == Framework::Torch { torch_borrow(ty, table)? } else { None };
        let info = TypeInfo { table, framework, wrapper, borrow, on_type, methods, instance };
        // A thread that is about to end has no cache any more.
        let _ = KNOWN.try_with(|known| known.set(version, info));
        Ok(info)
    }

    /// Returns the function that borrows the `DLTensor` of a PyTorch tensor. It has no read-only flag. Only PyTorch's own
    /// tensors are known to be writable; other libraries export a managed tensor.
    #[inline]
    pub(super) fn torch_borrow(&self) -> Option<dlpack_c::Borrow> {
        self.borrow
    }

    /// Whether the type has this attribute.
    #[inline]
    pub(super) fn has_on_type(&self, name: Name) -> bool {
        self.on_type.meets(name.into())
    }

    /// Whether the object may have one of these attributes. Does not call back into Python code.
    #[inline]
    pub(super) fn may_have(&self, object: &Bound<'_, PyAny>, names: Names) -> bool {
        self.on_type.meets(names)
            || match self.instance {
                Instance::Never => false,
                Instance::Anywhere => true,
                // SAFETY: this is the info of the object's type.
                Instance::InDictionary { place, may_create } => !unsafe { place.is_empty(object, may_create) },
            }
    }

    fn method<'a, 'py>(&self, object: &'a Bound<'py, PyAny>, name: Name) -> PyResult<Option<Method<'a, 'py>>> {
        let text = name.text(object.py());
        if self.methods.meets(name.into()) {
            return Ok(Some(Method::OfType(object, text)));
        }
        if !self.may_have(object, name.into()) {
            return Ok(None);
        }
        Ok(getattr::getattr_opt(object, text)?.map(Method::Value))
    }

    /// Whether the object may have a data interface with hooks.
    #[inline]
    pub(super) fn may_have_hooks(&self, object: &Bound<'_, PyAny>) -> bool {
        // The data interface of `dlfield.Tensor` has no hooks, and takes a microsecond to make.
        self.framework != Framework::Dlfield && self.may_have(object, Name::INTERFACES)
    }

    /// Whether the object may state metadata.
    #[inline]
    pub(super) fn may_be_labelled(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, Name::LABELS)
    }
}

/// Has the interpreter assign a version to a type, as it does with the first look-up of an attribute. Runs no code of a metaclass.
fn assign_version(ty: &Bound<'_, PyType>) -> PyResult<()> {
    let py = ty.py();
    // No type has this attribute, so the look-up finds no descriptor to call.
    let absent = intern!(py, "__dlfield__");
    let looked_up = py.get_type::<PyType>().call_method1(intern!(py, "__getattribute__"), (ty, absent));
    match looked_up {
        Err(error) if !error.is_instance_of::<PyAttributeError>(py) => Err(error),
        _ => Ok(()),
    }
}

/// `torch.Tensor`, and its table's function for a borrowed `DLTensor`.
pub(super) struct TorchTable {
    tensor: Py<PyType>,
    pub(super) version: DLPackVersion,
    pub(super) borrow: dlpack_c::Borrow,
}

static TORCH_TABLE: PyOnceLock<TorchTable> = PyOnceLock::new();

/// Returns the function that borrows the `DLTensor` of a PyTorch tensor of this type; `None` if the type's table is not that of
/// `torch.Tensor`, as for PyTorch's `ReadOnlyTensorWrapper`.
fn torch_borrow(
    ty: &Bound<'_, PyType>,
    table: Option<&'static DLPackExchangeAPI>,
) -> PyResult<Option<dlpack_c::Borrow>> {
    let (Some(table), Some(tensor)) = (table, torch_tensor(ty.py())?) else { return Ok(None) };
    let tensor = tensor.cast_into::<PyType>()?;
    let plain = dlpack_c::table(&tensor)?;
    let borrow =
        table.dltensor_from_py_object_no_sync.filter(|_| plain.is_some_and(|plain| std::ptr::eq(plain, table)));
    if let Some(borrow) = borrow {
        TORCH_TABLE.get_or_init(ty.py(), || TorchTable {
            tensor: tensor.unbind(),
            version: table.header.version,
            borrow,
        });
    }
    Ok(borrow)
}

/// Returns the function that described a PyTorch tensor before; `None` for other objects. Runs no
/// Python code, also if the tensor's class has changed since.
pub(super) fn torch_table(object: &Bound<'_, PyAny>) -> Option<&'static TorchTable> {
    let known = TORCH_TABLE.get(object.py())?;
    // SAFETY: two live types.
    let derived = unsafe { ffi::PyType_IsSubtype(object.get_type_ptr(), known.tensor.as_ptr().cast()) != 0 };
    derived.then_some(known)
}

/// Returns `torch.Tensor`; `None` if PyTorch is not imported, or is still being imported and has no class yet.
fn torch_tensor(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    match loaded(py, "torch")? {
        Some(torch) => torch.getattr_opt(intern!(py, "Tensor")),
        None => Ok(None),
    }
}

/// Returns an attribute of the object; `None` if it is absent.
pub fn attribute<'py>(object: &Bound<'py, PyAny>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    if TypeInfo::of(object)?.may_have(object, name.into()) {
        getattr::getattr_opt(object, name.text(object.py()))
    } else {
        Ok(None)
    }
}

/// Returns a method of the object; `None` if it is absent.
pub(super) fn method<'a, 'py>(object: &'a Bound<'py, PyAny>, name: Name) -> PyResult<Option<Method<'a, 'py>>> {
    TypeInfo::of(object)?.method(object, name)
}

/// Returns the method `__dlpack__` of the object, and the info of its type; `None` if it is absent.
#[inline]
pub(super) fn dlpack_method<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<Option<(TypeInfo, Method<'a, 'py>)>> {
    let info = TypeInfo::of(object)?;
    Ok(info.method(object, Name::Dlpack)?.map(|method| (info, method)))
}

/// Returns the protocol attributes that a type has, and those of them that are methods.
fn on_type(ty: &Bound<'_, PyType>) -> (Names, Names) {
    let (mut found, mut methods) = (Names::NONE, Names::NONE);
    let ordinary = has_ordinary_attributes(ty);
    for name in Name::ALL {
        let Some(value) = getattr::on_type(ty, name.text(ty.py())) else { continue };
        if repeats(&value) {
            continue;
        }
        found.insert(name);
        // SAFETY: the type of a live object.
        let flags = unsafe { ffi::PyType_GetFlags(value.get_type_ptr()) };
        if ordinary && flags & ffi::Py_TPFLAGS_METHOD_DESCRIPTOR != 0 {
            methods.insert(name);
        }
    }
    (found, methods)
}

/// Whether an attribute of a type is one that `dlfield.xarray` registered. It only repeats metadata of the object and of the
/// array inside, which are looked up anyway.
fn repeats(value: &Bound<'_, PyAny>) -> bool {
    getattr::module_of(&value.get_type()).is_some_and(|module| module == "dlfield.xarray")
}

/// Whether instances use the interpreter's own attribute look-up, not code of the type.
fn has_ordinary_attributes(ty: &Bound<'_, PyType>) -> bool {
    // SAFETY: a live type; the field changes only with its version.
    let getattr = unsafe { (*ty.as_type_ptr()).tp_getattro };
    getattr.is_some_and(|getattr| std::ptr::fn_addr_eq(getattr, ffi::PyObject_GenericGetAttr as ffi::getattrofunc))
}

/// Whether this is one of Python's own types whose objects are buffers.
fn is_builtin(ty: &Bound<'_, PyType>) -> bool {
    let py = ty.py();
    ty.is(py.get_type::<PyMemoryView>()) || ty.is(py.get_type::<PyByteArray>()) || ty.is(py.get_type::<PyBytes>())
}

impl Framework {
    fn of(ty: &Bound<'_, PyType>) -> PyResult<Framework> {
        let py = ty.py();
        if is_builtin(ty) {
            return Ok(Framework::Builtin);
        }
        if let Some(tensor) = torch_tensor(py)?
            && ty.is_subclass(&tensor)?
        {
            return Ok(Framework::Torch);
        }
        if let Some(native) = loaded(py, "dlfield._native")?
            && let Some(tensor) = getattr::getattr_opt(&native, intern!(py, "Tensor"))?
            && ty.is(&tensor)
        {
            // Later imports find the table by the address of the type.
            tensor_api::find(ty)?;
            return Ok(Framework::Dlfield);
        }
        let from_jax = getattr::module_of(ty).is_some_and(|module| module.starts_with("jaxlib."));
        let jax = from_jax && ty.name()? == "ArrayImpl";
        Ok(if jax { Framework::Jax } else { Framework::Other })
    }
}

impl Instance {
    fn of(ty: &Bound<'_, PyType>, framework: Framework, wrapper: Option<Wrapper>) -> Instance {
        if wrapper == Some(Wrapper::Xarray) {
            // Its coordinates are attributes too, and looking up an absent attribute takes microseconds.
            return Instance::Never;
        }
        if !has_ordinary_attributes(ty) {
            return Instance::Anywhere;
        }
        // Attributes of tensors are rarely read, so that it may be created.
        Instance::InDictionary { place: InstanceDict::of(ty), may_create: framework == Framework::Torch }
    }
}

/// Whether the object is a JAX array, for the advice of an error.
#[cold]
pub fn is_jax(object: &Bound<'_, PyAny>) -> bool {
    let found = TypeInfo::of(object).inspect_err(|error| interrupt::put_off(object.py(), error));
    found.is_ok_and(|info| info.framework == Framework::Jax)
}

/// Whether the object is a PyTorch tensor, also of a subclass.
pub fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.framework == Framework::Torch)
}
