//! Imports PyTorch tensors by the `DLTensor` of PyTorch's exchange table, and owns their memory by keeping the storage.
//!
//! `x.data = y` and `x.set_()` give a tensor another storage, and `x.resize_()` gives the storage other memory. A managed
//! tensor keeps only the tensor (PyTorch 2.5 to 2.15). So an owner keeps the storage, and makes it non-resizable as
//! `torch.Tensor.numpy` does.

#![allow(unsafe_code, reason = "PyTorch's table of C functions is called")]

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;

use dlpark::DlpackFlags;
use dlpark::ffi::{DLDataTypeCode, DLTensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference};
use pyo3::{ffi, intern};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::protocol::dlpack;
use crate::python::convert::errors;
use crate::python::ffi::new_error::new_error;
use crate::python::import::frameworks::TorchTable;
use crate::python::import::request::{Imported, Ownership, Request};
use crate::python::import::torch_errors;
use crate::python::py_owner;
use crate::tensor::Owner;

/// The name of the function in error messages.
const BORROW: &str = "__dlpack_c_exchange_api__.dltensor_from_py_object_no_sync";

/// Attributes of PyTorch's classes, looked up once. Methods are those of the base class, even if a subclass overrides them.
struct Api {
    tensor: Py<PyAny>,
    storage: Py<PyType>,
    /// The class of contexts in which `__torch_function__` of subclasses is not called.
    disable_subclasses: Py<PyAny>,
    /// Methods of a tensor.
    untyped_storage: Py<PyAny>,
    is_conj: Py<PyAny>,
    is_neg: Py<PyAny>,
    /// An attribute of a tensor, and its C getter: calling `__get__` would take several times as long.
    requires_grad: Py<PyAny>,
    get: ffi::descrgetfunc,
    /// The module of forward-mode autograd.
    forward: Py<PyModule>,
}

impl Api {
    fn get(py: Python<'_>) -> PyResult<&'static Api> {
        static API: PyOnceLock<Api> = PyOnceLock::new();
        API.get_or_try_init(py, || {
            let torch = py.import(intern!(py, "torch"))?;
            let tensor = torch.getattr(intern!(py, "Tensor"))?;
            let storage = torch.getattr(intern!(py, "UntypedStorage"))?.cast_into::<PyType>()?;
            let requires_grad = tensor.getattr(intern!(py, "requires_grad"))?;
            // SAFETY: the class of a live object.
            let get = unsafe { (*requires_grad.get_type_ptr()).tp_descr_get };
            let no_descriptor = || new_error::<PyTypeError>("torch.Tensor.requires_grad: not a Python descriptor");
            let internals = torch.getattr(intern!(py, "_C"))?;
            Ok(Api {
                disable_subclasses: internals.getattr(intern!(py, "DisableTorchFunctionSubclass"))?.unbind(),
                untyped_storage: tensor.getattr(intern!(py, "untyped_storage"))?.unbind(),
                is_conj: tensor.getattr(intern!(py, "is_conj"))?.unbind(),
                is_neg: tensor.getattr(intern!(py, "is_neg"))?.unbind(),
                forward: py.import(intern!(py, "torch.autograd.forward_ad"))?.unbind(),
                get: get.ok_or_else(no_descriptor)?,
                requires_grad: requires_grad.unbind(),
                tensor: tensor.unbind(),
                storage: storage.unbind(),
            })
        })
    }
}

/// Calls a method of a class with an object as its only argument.
fn call<'py>(method: &Py<PyAny>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are live objects; the result is a new reference, or NULL with an error set.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), ffi::PyObject_CallOneArg(method.as_ptr(), object.as_ptr())) }
}

/// Runs `work` without the `__torch_function__` of a subclass: that of PyTorch's `ReadOnlyTensorWrapper` rejects every call.
fn without_subclass<'py, T>(tensor: &Bound<'py, PyAny>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let py = tensor.py();
    let api = Api::get(py)?;
    if tensor.get_type_ptr() == api.tensor.as_ptr().cast() {
        return work();
    }
    let context = api.disable_subclasses.bind(py).call0()?;
    context.call_method0(intern!(py, "__enter__"))?;
    let outcome = work();
    context.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
    outcome
}

/// The current storage of a tensor.
pub struct Storage<'py>(Bound<'py, PyAny>);

impl<'py> Storage<'py> {
    /// Returns the storage of a tensor. An active mode of PyTorch may run Python code here.
    fn of(tensor: &Bound<'py, PyAny>) -> PyResult<Storage<'py>> {
        let api = Api::get(tensor.py())?;
        let storage = without_subclass(tensor, || call(&api.untyped_storage, tensor))?;
        if storage.get_type_ptr() == api.storage.as_ptr().cast() {
            return Ok(Storage(storage));
        }
        let (got, allowed) = (storage.get_type().to_string(), "a torch.UntypedStorage");
        Err(ExchangeError::new("untyped_storage()", &allowed, &got).into())
    }

    /// Returns the storage of a tensor on a device, made non-resizable as `torch.Tensor.numpy` does, but for every dtype. A storage
    /// on another device than the host has no such switch. May run Python code.
    pub fn pinned(tensor: &Bound<'py, PyAny>, device: Device) -> PyResult<Storage<'py>> {
        let storage = Storage::of(tensor)?;
        storage.pin(device)?;
        Ok(storage)
    }

    fn pin(&self, device: Device) -> PyResult<()> {
        let py = self.0.py();
        if device != Device::CPU || !self.0.call_method0(intern!(py, "resizable"))?.is_truthy()? {
            return Ok(());
        }
        let torch = py.import(intern!(py, "torch"))?;
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "dtype"), torch.getattr(intern!(py, "uint8"))?)?;
        keywords.set_item(intern!(py, "device"), intern!(py, "cpu"))?;
        let bytes = torch.call_method(intern!(py, "empty"), PyTuple::new(py, [0])?, Some(&keywords))?;
        bytes.call_method1(intern!(py, "set_"), (&self.0,))?.call_method0(intern!(py, "numpy"))?;
        Ok(())
    }

    /// Returns an owner of the storage, which is pinned, and caches it. Rejects a field with elements elsewhere.
    pub fn into_owner_of(self, field: &Descriptor) -> PyResult<Owner> {
        if !py_owner::has_elements(&self.0, field)? {
            let (got, allowed) =
                ("a storage without the tensor's memory".to_owned(), "the storage of the tensor's memory");
            return Err(ExchangeError::new("untyped_storage()", &allowed, &got).into());
        }
        if field.device() == Device::CPU {
            let known =
                Known { storage: PyWeakrefReference::new(&self.0)?.unbind(), memory: py_owner::memory_of(&self.0)? };
            // The replaced entry is dropped outside the borrow: its drop may run Python code.
            let old = KNOWN.with(|all| all.try_borrow_mut().ok().and_then(|mut all| all[place(field)].replace(known)));
            drop(old);
        }
        Ok(py_owner::of_storage(&self.0))
    }
}

/// A pinned storage, and the addresses of its memory while it lives.
struct Known {
    storage: Py<PyWeakrefReference>,
    memory: Range<usize>,
}

const STORAGES: usize = 64;

thread_local! {
    /// The pinned storages by the address of a field's first element; fields with the same place replace each other. Getting a
    /// tensor's storage and its memory takes twice as long as describing the tensor.
    static KNOWN: RefCell<[Option<Known>; STORAGES]> = const { RefCell::new([const { None }; STORAGES]) };
}

fn place(field: &Descriptor) -> usize {
    (field.ptr().addr() >> 6 ^ field.ptr().addr() >> 12) % STORAGES
}

/// Returns an owner of the storage that has the field's elements, if it is cached. Runs no Python code.
#[inline]
pub fn known_owner(py: Python<'_>, field: &Descriptor) -> Option<Owner> {
    if field.device() != Device::CPU {
        return None;
    }
    let (storage, start) = KNOWN.with(|known| {
        let known = known.try_borrow().ok()?;
        let Known { storage, memory } = known[place(field)].as_ref()?;
        let (low, high) = field.reach();
        let is_inside = memory.start <= low && high <= memory.end;
        if is_inside { Some((storage.bind(py).upgrade()?, memory.start)) } else { None }
    })?;
    // `share_memory_` gives a storage other memory, pinned or not; its size stays.
    py_owner::start_of(&storage).is_ok_and(|now| now == start).then(|| py_owner::of_storage(&storage))
}

/// Imports a tensor by its borrowed `DLTensor`. A borrowed import has no owner; a shared one owns the storage.
pub fn import(
    tensor: &Bound<'_, PyAny>,
    table: &TorchTable,
    request: &Request<'_>,
    out: &mut Imported<'_>,
) -> PyResult<bool> {
    // Before the memory is described: Python code may run here.
    refuse_more(tensor, request, false)?;
    describe(tensor, table, out.descriptor)?;
    // Only complex numbers are conjugated; to ask takes as long as to describe.
    if out.descriptor.dtype().code() == DLDataTypeCode::COMPLEX {
        refuse_lazy(tensor, true)?;
        describe(tensor, table, out.descriptor)?;
    }
    if request.ownership == Ownership::Borrow {
        return Ok(true);
    }
    if let Some(owner) = known_owner(tensor.py(), out.descriptor) {
        return Ok(out.owned(owner));
    }
    let storage = Storage::pinned(tensor, out.descriptor.device())?;
    // Described again, now that nothing moves the memory: the calls above may have run Python code.
    describe(tensor, table, out.descriptor)?;
    Ok(out.owned(storage.into_owner_of(out.descriptor)?))
}

/// Returns an owner that keeps `owner`, that of a tensor's managed tensor, and the storage with the memory. A copy is in no
/// storage of the tensor: its owner is returned as it is.
pub fn with_storage(tensor: &Bound<'_, PyAny>, owner: Owner, descriptor: &Descriptor) -> PyResult<Owner> {
    let storage = Storage::of(tensor)?;
    if !py_owner::has_elements(&storage.0, descriptor)? {
        return Ok(owner);
    }
    storage.pin(descriptor.device())?;
    Ok(py_owner::of_storage(&storage.0).with(owner))
}

/// Describes a tensor by the `DLTensor` that PyTorch's table lends.
#[inline]
pub fn describe(tensor: &Bound<'_, PyAny>, table: &TorchTable, descriptor: &mut Descriptor) -> PyResult<()> {
    let mut lent = MaybeUninit::<DLTensor>::uninit();
    // SAFETY: the function is from the table of the object's type; on success the struct is filled, and its shape and strides
    // live until control returns to the producer. They are copied here.
    let read = unsafe {
        if (table.borrow)(tensor.as_ptr().cast::<c_void>(), lent.as_mut_ptr()) != 0 {
            return Err(explained(tensor, errors::exception_set_by(BORROW, tensor)));
        }
        dlpack::read_into(descriptor, lent.assume_init_ref(), Some(table.version), DlpackFlags::empty())
    };
    read.map_err(|error| explained(tensor, error.into()))
}

/// Returns the error for a tensor that cannot be imported, with what PyTorch says of it.
#[cold]
pub fn explained(tensor: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let (Ok(error) | Err(error)) = without_subclass(tensor, || Ok(torch_errors::explained(tensor, error)));
    error
}

/// Rejects a tensor that is more than the elements in its memory: one that autograd tracks, if the request needs that, and one
/// that is negated lazily, or conjugated if it `may_be_complex`. Python code may run: methods of a subclass, modes of PyTorch,
/// and other threads.
pub fn refuse_more(tensor: &Bound<'_, PyAny>, request: &Request<'_>, may_be_complex: bool) -> PyResult<()> {
    if request.writes_or_keeps() {
        refuse_grad(tensor)?;
    }
    refuse_lazy(tensor, may_be_complex)
}

/// Rejects a tensor that requires grad, as autograd does not track access by other libraries. Descriptions, and stencil
/// arguments that are only read, accept such tensors.
pub fn refuse_grad(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let api = Api::get(tensor.py())?;
    // SAFETY: the getter is that of the attribute's class; both are live objects, and the result is a new reference, or NULL
    // with an error set.
    let required = without_subclass(tensor, || unsafe {
        let found = (api.get)(api.requires_grad.as_ptr(), tensor.as_ptr(), tensor.get_type_ptr().cast());
        Bound::from_owned_ptr_or_err(tensor.py(), found)
    })?;
    let tracked = "and autograd does not track access by other libraries";
    if required.is_truthy()? {
        let fix = "to keep the gradient compute with PyTorch, on dl.as_torch(field), else pass what .detach() returns";
        return Err(unsupported(&format!("a PyTorch tensor that requires grad, {tracked}"), fix));
    }
    // Tangents exist only inside a `dual_level`. The attribute is private: without it PyTorch is asked, which takes longer.
    let (py, forward) = (tensor.py(), api.forward.bind(tensor.py()));
    let level = forward.getattr_opt(intern!(py, "_current_level"))?;
    if level.is_some_and(|level| level.extract::<i64>().is_ok_and(|level| level < 0)) {
        return Ok(());
    }
    let unpacked = forward.call_method1(intern!(py, "unpack_dual"), (tensor,))?;
    if unpacked.getattr(intern!(py, "tangent"))?.is_none() {
        return Ok(());
    }
    let sentence = format!("a PyTorch tensor that has a tangent (forward-mode autograd), {tracked}");
    Err(unsupported(&sentence, "pass obj.detach()"))
}

/// Rejects a tensor that is conjugated or negated lazily, as its memory holds other values. The table checks neither, and
/// `__dlpack__` does not check negation. Every tensor is asked: a lazy one may have any element type, shape and strides.
fn refuse_lazy(tensor: &Bound<'_, PyAny>, may_be_complex: bool) -> PyResult<()> {
    let api = Api::get(tensor.py())?;
    let is_lazy = without_subclass(tensor, || {
        Ok(call(&api.is_neg, tensor)?.is_truthy()? || may_be_complex && call(&api.is_conj, tensor)?.is_truthy()?)
    })?;
    let sentence = "a lazily conjugated or negated tensor, whose memory holds other values";
    if is_lazy { Err(unsupported(sentence, "pass obj.resolve_conj().resolve_neg()")) } else { Ok(()) }
}

/// Returns the error for a tensor that is more than the elements in its memory.
#[cold]
fn unsupported(sentence: &str, fix: &str) -> PyErr {
    ExchangeError::from_sentence("obj", &sentence).with_fix(&fix).with_kind(ExchangeErrorKind::Unsupported).into()
}
