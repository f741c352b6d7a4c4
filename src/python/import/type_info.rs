//! Caches what importers need to know about a type; looking that up takes longer than importing an array.

#![allow(unsafe_code, reason = "types are read as the C structs they are")]

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use dlpark::ffi::DLPackExchangeAPI;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use pyo3::{ffi, intern};

use crate::python::ffi::getattr::{self, interned};
use crate::python::import::frameworks::{Kind, TorchTable, exchange_table, torch_table_of};

interned! {
    /// An attribute that is looked up for a protocol or for metadata.
    pub enum Name {
        Dlpack = "__dlpack__",
        DlpackDevice = "__dlpack_device__",
        GtDataInterface = "__gt_data_interface__",
        GtInterface = "__gt_interface__",
        CudaArrayInterface = "__cuda_array_interface__",
        HipArrayInterface = "__hip_array_interface__",
        ArrayInterface = "__array_interface__",
        ArrayStruct = "__array_struct__",
        Array = "__array__",
        GtDims = "__gt_dims__",
        Dims = "dims",
        GtOrigin = "__gt_origin__",
        DefaultOrigin = "default_origin",
    }
}

impl Name {
    /// The set of this name alone.
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The attributes that may have hooks.
const INTERFACES: u16 = Name::GtDataInterface.bit() | Name::GtInterface.bit();

/// The attributes that may have metadata; they include those that may have hooks.
const LABELS: u16 =
    INTERFACES | Name::GtDims.bit() | Name::Dims.bit() | Name::GtOrigin.bit() | Name::DefaultOrigin.bit();

/// Where an instance may have attributes of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instance {
    /// Nowhere.
    Never,
    /// In its `__dict__`, whose pointer is at this offset in the object; it may be NULL.
    At(usize),
    /// In a `__dict__` that only the interpreter finds, and creates to look into it, which slows every later access.
    Managed,
    /// Anywhere: only a look-up tells.
    Anywhere,
}

/// What the importers need to know about a type.
#[derive(Clone, Copy)]
pub struct TypeInfo {
    pub kind: Kind,
    /// The table of DLPack's C exchange API.
    pub table: Option<&'static DLPackExchangeAPI>,
    /// How PyTorch lends the memory of its tensors.
    pub torch: Option<&'static TorchTable>,
    /// The protocol attributes that the type has.
    on_type: u16,
    instance: Instance,
}

/// A type in one version (`tp_version_tag`). The interpreter gives each type a version that no other type ever had, and a new one
/// whenever the type or one of its bases changes. So what is known of a version stays true, also if a type dies and another one
/// gets its address. 0 means no version.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TypeVersion {
    ty: *mut ffi::PyTypeObject,
    version: u32,
}

const ENTRIES: usize = 64;

thread_local! {
    /// Direct-mapped by the type's address; types with the same slot replace each other.
    static KNOWN: [Cell<Option<(TypeVersion, TypeInfo)>>; ENTRIES] = const { [const { Cell::new(None) }; ENTRIES] };
}

impl TypeVersion {
    /// The current version of an object's type.
    #[inline]
    fn of(object: &Bound<'_, PyAny>) -> TypeVersion {
        let ty = object.get_type_ptr();
        // SAFETY: the type of a live object. Without the GIL other threads may change the field, which the interpreter then does
        // atomically too.
        let version = unsafe { AtomicU32::from_ptr(&raw mut (*ty).tp_version_tag) }.load(Ordering::Acquire);
        TypeVersion { ty, version }
    }

    #[inline]
    fn slot(self) -> usize {
        (self.ty.addr() >> 4 ^ self.ty.addr() >> 10) % ENTRIES
    }
}

impl TypeInfo {
    /// Returns the info of an object's type. Looking up a type that is not cached may call back into Python code.
    #[inline]
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        let current = TypeVersion::of(object);
        match KNOWN.try_with(|known| known[current.slot()].get()) {
            Ok(Some((known, info))) if known == current && current.version != 0 => Ok(info),
            _ => TypeInfo::find(object),
        }
    }

    #[cold]
    fn find(object: &Bound<'_, PyAny>) -> PyResult<TypeInfo> {
        if TypeVersion::of(object).version == 0 {
            assign_version(&object.get_type())?;
        }
        // The version first: the calls below may run code of a metaclass, which may change the type, and then the entry is never
        // used. Both at once: the object may get another type.
        let (version, ty) = (TypeVersion::of(object), &object.get_type());
        let kind = Kind::of(ty)?;
        let table = exchange_table(ty)?;
        let torch = table.filter(|_| kind == Kind::Torch).map_or(Ok(None), |table| torch_table_of(ty, table))?;
        let info = TypeInfo { kind, table, torch, on_type: on_type(ty), instance: Instance::of(ty, kind) };
        // A thread that is about to end has no cache any more.
        let _ = KNOWN.try_with(|known| known[version.slot()].set(Some((version, info))));
        Ok(info)
    }

    /// Whether the object may have one of these attributes. Does not call back into Python code.
    #[inline]
    fn may_have(&self, object: &Bound<'_, PyAny>, names: u16) -> bool {
        if self.on_type & names != 0 {
            return true;
        }
        match self.instance {
            Instance::Never => false,
            Instance::Anywhere => true,
            Instance::At(offset) => {
                // SAFETY: this is the info of the object's type, by whose `tp_dictoffset` the pointer is there. Another thread may set
                // it meanwhile.
                let place = unsafe { AtomicPtr::<ffi::PyObject>::from_ptr(object.as_ptr().byte_add(offset).cast()) };
                !place.load(Ordering::Relaxed).is_null()
            }
            Instance::Managed => {
                // SAFETY: takes any object, and returns a new reference to its dictionary, or NULL with an error.
                let found = unsafe { ffi::PyObject_GenericGetDict(object.as_ptr(), null_mut()) };
                // SAFETY: a new reference, or NULL.
                let Some(found) = (unsafe { Bound::from_owned_ptr_or_opt(object.py(), found) }) else {
                    // Without memory for a dictionary: the look-ups report it.
                    drop(PyErr::take(object.py()));
                    return true;
                };
                // SAFETY: a live dictionary.
                unsafe { ffi::PyDict_Size(found.as_ptr()) != 0 }
            }
        }
    }

    /// Whether the object may state metadata.
    #[inline]
    pub fn may_be_labelled(&self, object: &Bound<'_, PyAny>) -> bool {
        self.may_have(object, LABELS)
    }
}

/// Whether the object may have a data interface with hooks.
pub fn may_have_hooks(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let info = TypeInfo::of(object)?;
    // The data interface of `dlfield.Tensor` has no hooks, and takes a microsecond to make.
    Ok(info.kind != Kind::Dlfield && info.may_have(object, INTERFACES))
}

/// Returns what the object's type is.
pub fn kind_of(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    Ok(TypeInfo::of(object)?.kind)
}

/// Has the interpreter assign a version to a type, as it does with the first look-up of an attribute. Runs no code of a metaclass.
fn assign_version(ty: &Bound<'_, PyType>) -> PyResult<()> {
    let py = ty.py();
    // No type has this attribute, so the look-up finds no descriptor to call.
    let absent = intern!(py, "__dlfield__");
    match py.get_type::<PyType>().call_method1(intern!(py, "__getattribute__"), (ty, absent)) {
        Err(error) if !error.is_instance_of::<PyAttributeError>(py) => Err(error),
        _ => Ok(()),
    }
}

/// Returns an attribute of the object; `None` if it is absent.
pub fn attribute<'py>(object: &Bound<'py, PyAny>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    if TypeInfo::of(object)?.may_have(object, name.bit()) {
        getattr::getattr_opt(object, name.interned(object.py()))
    } else {
        Ok(None)
    }
}

/// Returns the protocol attributes that a type has, without those that `dlfield.xarray` registers: they only repeat metadata of the
/// object and of the array inside, which are looked up anyway.
fn on_type(ty: &Bound<'_, PyType>) -> u16 {
    let repeats = |value: &Bound<'_, PyAny>| getattr::module_of(&value.get_type()).as_deref() == Some("dlfield.xarray");
    let is_there = |name: &Name| getattr::on_type(ty, name.interned(ty.py())).is_some_and(|value| !repeats(&value));
    Name::ALL.into_iter().filter(is_there).fold(0, |found, name| found | name.bit())
}

/// Whether instances use the interpreter's own attribute look-up, not code of the type.
fn has_ordinary_attributes(ty: &Bound<'_, PyType>) -> bool {
    // SAFETY: a live type; the field changes only with its version.
    let getattr = unsafe { (*ty.as_type_ptr()).tp_getattro };
    getattr.is_some_and(|getattr| std::ptr::fn_addr_eq(getattr, ffi::PyObject_GenericGetAttr as ffi::getattrofunc))
}

impl Instance {
    fn of(ty: &Bound<'_, PyType>, kind: Kind) -> Instance {
        // xarray's coordinates are attributes too, and looking up an absent attribute takes microseconds.
        if kind == Kind::Xarray {
            return Instance::Never;
        }
        if !has_ordinary_attributes(ty) {
            return Instance::Anywhere;
        }
        // SAFETY: a live type; these fields do not change once it is ready.
        let (offset, flags) = unsafe { ((*ty.as_type_ptr()).tp_dictoffset, ffi::PyType_GetFlags(ty.as_type_ptr())) };
        let is_managed = flags & ffi::Py_TPFLAGS_MANAGED_DICT != 0;
        match usize::try_from(offset) {
            Ok(0) if !is_managed => Instance::Never,
            Ok(offset) if !is_managed => Instance::At(offset),
            // Attributes of tensors are rarely read, so that the dictionary may be created.
            _ if kind == Kind::Torch => Instance::Managed,
            _ => Instance::Anywhere,
        }
    }
}
