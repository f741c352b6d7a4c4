//! What the importers need to know of an object's type, cached by type: a look-up takes longer than the import of an array.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use std::cell::Cell;

use dlpark::ffi::DLPackExchangeAPI;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::exchange_table;
use super::names::{Name, Names};
use super::wrapper::Wrapper;
use crate::py::getattr::{self, Method, loaded};

/// The framework whose arrays the instances are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    Torch,
    Jax,
    Other,
}

/// Where an instance may have attributes beside those of its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instance {
    /// Nowhere.
    Never,
    /// In a dictionary at this distance from the object, if it has any.
    InDictionary(usize),
    /// In the dictionary that the interpreter finds.
    InAttributes,
    /// Anywhere: only a look-up shows.
    Anywhere,
}

/// What the importers need to know of a type.
#[derive(Clone, Copy)]
pub(super) struct TypeInfo {
    /// DLPack's C exchange API.
    pub(super) table: Option<&'static DLPackExchangeAPI>,
    pub(super) library: Framework,
    pub(super) wrapper: Option<Wrapper>,
    /// The function that lends the struct of a PyTorch tensor.
    lends: Option<exchange_table::Borrow>,
    /// The protocol attributes that the type has.
    on_type: Names,
    /// Those of them that are ordinary methods, which every instance has. A property or a slot may be empty.
    methods: Names,
    instance: Instance,
}

/// A type, in the state in which its info were found.
#[derive(Clone, Copy)]
struct Entry {
    ty: *mut ffi::PyTypeObject,
    version: u32,
    info: TypeInfo,
}

const ENTRIES: usize = 64;

thread_local! {
    /// A cache by the type's address; types with the same place replace each other.
    static KNOWN: [Cell<Option<Entry>>; ENTRIES] = const { [const { Cell::new(None) }; ENTRIES] };
}

impl TypeInfo {
    /// The info of an object's type.
    ///
    /// The interpreter gives every type a version, which no other type ever had, and another one whenever the type or a
    /// base of it is changed. So what is remembered for a version stays true, and a type that dies and leaves its address
    /// to another one is not mistaken for it. 0 is no version: nothing is remembered for it.
    #[inline]
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        TypeInfo::remembered_or_found(object).map(|(info, _)| info)
    }

    /// As [`TypeInfo::of`], and whether the type was looked up for it, which may have run its code.
    #[inline]
    pub(super) fn remembered_or_found(object: &Bound<'_, PyAny>) -> PyResult<(TypeInfo, bool)> {
        let ty = object.get_type_ptr();
        // SAFETY: the type of a live object.
        let version = unsafe { (*ty).tp_version_tag };
        let place = (ty.addr() >> 4 ^ ty.addr() >> 10) % ENTRIES;
        let known = KNOWN.try_with(|known| known[place].get()).ok().flatten();
        match known {
            Some(entry) if entry.ty == ty && entry.version == version && version != 0 => Ok((entry.info, false)),
            _ => TypeInfo::find(&object.get_type(), place).map(|info| (info, true)),
        }
    }

    #[cold]
    fn find(ty: &Bound<'_, PyType>, place: usize) -> PyResult<TypeInfo> {
        // To look anything up gives a type a version, if it can have one. Taken first: what follows may run code of a
        // metaclass, and if that changes the type, what is found belongs to no version.
        getattr::on_type(ty, Name::Dlpack.text(ty.py()));
        let address = ty.as_type_ptr();
        // SAFETY: a live type.
        let version = unsafe { (*address).tp_version_tag };
        let (library, wrapper) = (Framework::of(ty)?, Wrapper::of(ty)?);
        let (on_type, methods) = on_type(ty);
        let instance = Instance::of(ty, library, wrapper);
        let table = exchange_table::table(ty)?;
        let lends = if library == Framework::Torch { torch_lends(ty, table)? } else { None };
        let info = TypeInfo { table, library, wrapper, lends, on_type, methods, instance };
        let entry = Some(Entry { ty: address, version, info });
        // A thread that is about to end remembers nothing more.
        let _ = KNOWN.try_with(|known| known[place].set(entry));
        Ok(info)
    }

    /// The function that lends the struct of a PyTorch tensor. Such a struct has no read-only flag; only PyTorch's own tensors
    /// are known to be writable, other libraries are asked for a managed tensor.
    #[inline]
    pub(super) fn torch_lends(&self) -> Option<exchange_table::Borrow> {
        self.lends
    }

    /// Whether the object may have one of these attributes.
    #[inline]
    fn may_have(&self, object: &Bound<'_, PyAny>, names: Names) -> bool {
        if self.on_type.meets(names) {
            return true;
        }
        match self.instance {
            Instance::Never => false,
            Instance::Anywhere => true,
            Instance::InDictionary(distance) => {
                // SAFETY: the type says that this is where the object keeps its dictionary, or NULL.
                !unsafe { *object.as_ptr().byte_add(distance).cast::<*mut ffi::PyObject>() }.is_null()
            }
            Instance::InAttributes => {
                // SAFETY: takes any object.
                let dictionary = unsafe { _PyObject_GetDictPtr(object.as_ptr()) };
                // SAFETY: NULL, or the place of the dictionary, which is NULL while the object has no attributes.
                !dictionary.is_null() && !unsafe { *dictionary }.is_null()
            }
        }
    }

    /// Whether the object may have a data interface with hooks.
    #[inline]
    pub(super) fn may_have_hooks(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, Name::INTERFACES)
    }

    /// Whether the object may state labels.
    #[inline]
    pub(super) fn may_be_labelled(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, Name::LABELS)
    }
}

/// The function that lends the struct of a PyTorch tensor of this type; `None` if the type has another table than
/// `torch.Tensor`, as PyTorch's `ReadOnlyTensorWrapper` has.
fn torch_lends(
    ty: &Bound<'_, PyType>,
    table: Option<&'static DLPackExchangeAPI>,
) -> PyResult<Option<exchange_table::Borrow>> {
    let (Some(table), Some(tensor)) = (table, torch_tensor(ty.py())?) else { return Ok(None) };
    let plain = exchange_table::table(tensor.cast()?)?;
    let same = plain.is_some_and(|plain| std::ptr::eq(plain, table));
    Ok(if same { table.dltensor_from_py_object_no_sync } else { None })
}

/// The class of PyTorch's tensors; `None` if PyTorch is not imported. While it is still being imported there is no class yet.
fn torch_tensor(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    match loaded(py, "torch")? {
        Some(torch) => torch.getattr_opt(intern!(py, "Tensor")),
        None => Ok(None),
    }
}

/// An attribute of the object; `None` where there is none.
pub(in crate::py) fn attribute<'py>(object: &Bound<'py, PyAny>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    if TypeInfo::of(object)?.may_have(object, name.into()) {
        getattr::getattr_opt(object, name.text(object.py()))
    } else {
        Ok(None)
    }
}

/// A method of the object; `None` where there is none.
pub(super) fn method<'a, 'py>(object: &'a Bound<'py, PyAny>, name: Name) -> PyResult<Option<Method<'a, 'py>>> {
    let info = TypeInfo::of(object)?;
    let text = name.text(object.py());
    if info.methods.meets(name.into()) {
        return Ok(Some(Method::OfType(object, text)));
    }
    if !info.may_have(object, name.into()) {
        return Ok(None);
    }
    Ok(getattr::getattr_opt(object, text)?.map(Method::Value))
}

/// The protocol attributes that a type has, and those of them that are ordinary methods.
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
        let flags = unsafe { (*value.get_type_ptr()).tp_flags };
        if ordinary && flags & ffi::Py_TPFLAGS_METHOD_DESCRIPTOR != 0 {
            methods.insert(name);
        }
    }
    (found, methods)
}

/// Whether `dlfield.xarray` has put an attribute on a type. It repeats what the object and the array inside say, and those
/// are asked anyway.
fn repeats(value: &Bound<'_, PyAny>) -> bool {
    let module = getattr::on_type(&value.get_type(), intern!(value.py(), "__module__"));
    let module = module.as_ref().and_then(|module| module.cast::<PyString>().ok());
    module.is_some_and(|module| module.to_string_lossy() == "dlfield.xarray")
}

/// Whether the instances' attributes are found as the interpreter finds them, and not by code of the type's own.
fn has_ordinary_attributes(ty: &Bound<'_, PyType>) -> bool {
    // SAFETY: a live type; the field changes only with its version.
    let getattr = unsafe { (*ty.as_type_ptr()).tp_getattro };
    getattr.is_some_and(|getattr| std::ptr::fn_addr_eq(getattr, ffi::PyObject_GenericGetAttr as ffi::getattrofunc))
}

unsafe extern "C" {
    /// Where an object keeps its attributes; exported by every version, but no part of the documented API.
    fn _PyObject_GetDictPtr(object: *mut ffi::PyObject) -> *mut *mut ffi::PyObject;
}

impl Framework {
    fn of(ty: &Bound<'_, PyType>) -> PyResult<Framework> {
        let py = ty.py();
        if let Some(tensor) = torch_tensor(py)?
            && ty.is_subclass(&tensor)?
        {
            return Ok(Framework::Torch);
        }
        // Whatever else stands there, or nothing: then it is nobody's.
        let module = getattr::on_type(ty, intern!(py, "__module__"));
        let from_jax = module.as_ref().and_then(|module| module.cast::<PyString>().ok());
        let from_jax = from_jax.is_some_and(|module| module.to_string_lossy().starts_with("jaxlib."));
        let jax = from_jax && ty.name()? == "ArrayImpl";
        Ok(if jax { Framework::Jax } else { Framework::Other })
    }
}

impl Instance {
    fn of(ty: &Bound<'_, PyType>, library: Framework, wrapper: Option<Wrapper>) -> Instance {
        if wrapper == Some(Wrapper::Xarray) {
            // Its coordinates are attributes too, and to be asked for one that it lacks takes it microseconds.
            return Instance::Never;
        }
        if !has_ordinary_attributes(ty) {
            return Instance::Anywhere;
        }
        // SAFETY: a live type; these fields do not change once it is ready.
        let (offset, flags) = unsafe {
            let ty = &*ty.as_type_ptr();
            (ty.tp_dictoffset, ty.tp_flags)
        };
        let managed = flags & ffi::Py_TPFLAGS_MANAGED_DICT != 0;
        match usize::try_from(offset) {
            Ok(0) if !managed => Instance::Never,
            Ok(distance) if !managed => Instance::InDictionary(distance),
            _ if library == Framework::Torch => Instance::InAttributes,
            // To look there would make the dictionary, which slows every later access to the attributes.
            _ => Instance::Anywhere,
        }
    }
}

/// Whether the object is a PyTorch tensor, also of a subclass.
pub(in crate::py) fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.library == Framework::Torch)
}
