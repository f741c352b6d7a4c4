//! Caches what importers need to know about a type; looking that up takes longer than importing an array.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use std::cell::Cell;

use dlpark::ffi::DLPackExchangeAPI;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use pyo3::{ffi, intern};

use crate::python::ffi::getattr::{Method, loaded};
use crate::python::ffi::{dlpack_c, getattr};
use crate::python::import::names::{Name, Names};
use crate::python::import::wrapper::Wrapper;

/// The framework that the instances' type belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    Torch,
    Jax,
    Other,
}

/// Where an instance may have attributes of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instance {
    /// Nowhere.
    Never,
    /// In a dictionary whose pointer is at this offset in the object; it may be NULL.
    InDictionary(usize),
    /// In the dictionary that `_PyObject_GetDictPtr` finds.
    InAttributes,
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

/// The info of one version of a type.
#[derive(Clone, Copy)]
struct Entry {
    ty: *mut ffi::PyTypeObject,
    version: u32,
    info: TypeInfo,
}

const ENTRIES: usize = 64;

thread_local! {
    /// A direct-mapped cache by the type's address; types with the same slot replace each other.
    static KNOWN: [Cell<Option<Entry>>; ENTRIES] = const { [const { Cell::new(None) }; ENTRIES] };
}

impl TypeInfo {
    /// Returns the info of an object's type.
    ///
    /// The interpreter gives each type a version that no other type ever had, and a new one whenever the type or one of its
    /// bases changes. So what is cached for a version stays true, also if a type dies and another one gets its address. 0 means
    /// no version: its entries are never used.
    #[inline]
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        TypeInfo::cached_or_found(object).map(|(info, _)| info)
    }

    /// As [`TypeInfo::of`]. Returns also whether the type had to be looked up, which may have run foreign code.
    #[inline]
    pub(super) fn cached_or_found(object: &Bound<'_, PyAny>) -> PyResult<(TypeInfo, bool)> {
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
        // Any look-up gives a type a version, if it can have one. The version is read first: the calls below may run code of a
        // metaclass, and if that changes the type, the entry has an old version and is never used.
        getattr::on_type(ty, Name::Dlpack.text(ty.py()));
        let address = ty.as_type_ptr();
        // SAFETY: a live type.
        let version = unsafe { (*address).tp_version_tag };
        let (framework, wrapper) = (Framework::of(ty)?, Wrapper::of(ty)?);
        let (on_type, methods) = on_type(ty);
        let instance = Instance::of(ty, framework, wrapper);
        let table = dlpack_c::table(ty)?;
        let borrow = if framework == Framework::Torch { torch_borrow(ty, table)? } else { None };
        let info = TypeInfo { table, framework, wrapper, borrow, on_type, methods, instance };
        let entry = Some(Entry { ty: address, version, info });
        // A thread that is about to end has no cache any more.
        let _ = KNOWN.try_with(|known| known[place].set(entry));
        Ok(info)
    }

    /// Returns the function that borrows the `DLTensor` of a PyTorch tensor. It has no read-only flag. Only PyTorch's own
    /// tensors are known to be writable; other libraries export a managed tensor.
    #[inline]
    pub(super) fn torch_borrow(&self) -> Option<dlpack_c::Borrow> {
        self.borrow
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
                // SAFETY: by the type's `tp_dictoffset` the object has its dictionary there, or NULL.
                !unsafe { *object.as_ptr().byte_add(distance).cast::<*mut ffi::PyObject>() }.is_null()
            }
            Instance::InAttributes => {
                // SAFETY: takes any object.
                let dictionary = unsafe { _PyObject_GetDictPtr(object.as_ptr()) };
                // SAFETY: NULL, or a pointer to the dictionary's pointer, which is NULL while the object has no attributes.
                !dictionary.is_null() && !unsafe { *dictionary }.is_null()
            }
        }
    }

    /// Whether the object may have a data interface with hooks.
    #[inline]
    pub(super) fn may_have_hooks(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, Name::INTERFACES)
    }

    /// Whether the object may state metadata.
    #[inline]
    pub(super) fn may_be_labelled(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, Name::LABELS)
    }
}

/// Returns the function that borrows the `DLTensor` of a PyTorch tensor of this type; `None` if the type's table is not that of
/// `torch.Tensor`, as for PyTorch's `ReadOnlyTensorWrapper`.
fn torch_borrow(
    ty: &Bound<'_, PyType>,
    table: Option<&'static DLPackExchangeAPI>,
) -> PyResult<Option<dlpack_c::Borrow>> {
    let (Some(table), Some(tensor)) = (table, torch_tensor(ty.py())?) else { return Ok(None) };
    let plain = dlpack_c::table(tensor.cast()?)?;
    let same = plain.is_some_and(|plain| std::ptr::eq(plain, table));
    Ok(if same { table.dltensor_from_py_object_no_sync } else { None })
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
        let flags = unsafe { (*value.get_type_ptr()).tp_flags };
        if ordinary && flags & ffi::Py_TPFLAGS_METHOD_DESCRIPTOR != 0 {
            methods.insert(name);
        }
    }
    (found, methods)
}

/// Whether an attribute of a type is one that `dlfield.xarray` registered. It only repeats metadata of the object and of the
/// array inside, which are looked up anyway.
fn repeats(value: &Bound<'_, PyAny>) -> bool {
    let module = getattr::on_type(&value.get_type(), intern!(value.py(), "__module__"));
    let module = module.as_ref().and_then(|module| module.cast::<PyString>().ok());
    module.is_some_and(|module| module.to_string_lossy() == "dlfield.xarray")
}

/// Whether instances use the interpreter's own attribute look-up, not code of the type.
fn has_ordinary_attributes(ty: &Bound<'_, PyType>) -> bool {
    // SAFETY: a live type; the field changes only with its version.
    let getattr = unsafe { (*ty.as_type_ptr()).tp_getattro };
    getattr.is_some_and(|getattr| std::ptr::fn_addr_eq(getattr, ffi::PyObject_GenericGetAttr as ffi::getattrofunc))
}

unsafe extern "C" {
    /// Returns the address of the pointer to an object's `__dict__`. Every CPython version exports it, without documenting it.
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
        // `__module__` may be absent or no string: the type is no framework's then.
        let module = getattr::on_type(ty, intern!(py, "__module__"));
        let from_jax = module.as_ref().and_then(|module| module.cast::<PyString>().ok());
        let from_jax = from_jax.is_some_and(|module| module.to_string_lossy().starts_with("jaxlib."));
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
        // SAFETY: a live type; these fields do not change once it is ready.
        let (offset, flags) = unsafe {
            let ty = &*ty.as_type_ptr();
            (ty.tp_dictoffset, ty.tp_flags)
        };
        let managed = flags & ffi::Py_TPFLAGS_MANAGED_DICT != 0;
        match usize::try_from(offset) {
            Ok(0) if !managed => Instance::Never,
            Ok(distance) if !managed => Instance::InDictionary(distance),
            _ if framework == Framework::Torch => Instance::InAttributes,
            // `_PyObject_GetDictPtr` would create the dictionary, which slows every later access to the attributes.
            _ => Instance::Anywhere,
        }
    }
}

/// Whether the object is a PyTorch tensor, also of a subclass.
pub fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.framework == Framework::Torch)
}

/// Whether the object may state metadata.
pub fn may_be_labelled(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(TypeInfo::of(object)?.may_be_labelled(object))
}
