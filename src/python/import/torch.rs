//! Imports PyTorch tensors by the `DLTensor` of PyTorch's exchange table, and owns their memory by keeping the storage.
//!
//! `x.data = y` and `x.set_()` give a tensor another storage, and `x.resize_()` gives the storage other memory. A managed
//! tensor keeps only the tensor (PyTorch 2.5 to 2.15). So an owner keeps the storage, and makes it non-resizable as
//! `torch.Tensor.numpy` does.

#![allow(unsafe_code, reason = "PyTorch's table of C functions is called")]

use dlpark::ffi::{DLDataTypeCode, DLPackVersion};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{ffi, intern};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{ExchangeError, ExchangeErrorKind};
use crate::python::ffi::dlpack_c::{BORROW, Borrow, read_lent};
use crate::python::ffi::new_error::new_error;
use crate::python::import::exchange_errors::{self, failed};
use crate::python::import::imported::Imported;
use crate::python::import::request::{Ownership, Request};
use crate::python::import::storages;
use crate::python::py_owner;
use crate::tensor::Owner;

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
    /// A method of a storage.
    resizable: Py<PyAny>,
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
                resizable: storage.getattr(intern!(py, "resizable"))?.unbind(),
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
pub(super) struct Storage<'py>(Bound<'py, PyAny>);

impl<'py> Storage<'py> {
    /// Returns the storage of a tensor. An active mode of PyTorch may run Python code here.
    pub(super) fn of(tensor: &Bound<'py, PyAny>) -> PyResult<Storage<'py>> {
        let py = tensor.py();
        let api = Api::get(py)?;
        let storage = without_subclass(tensor, || call(&api.untyped_storage, tensor))?;
        if storage.get_type_ptr() == api.storage.as_ptr().cast() {
            return Ok(Storage(storage));
        }
        let (got, allowed) = (storage.get_type().to_string(), "a torch.UntypedStorage");
        Err(ExchangeError::new("untyped_storage()", &allowed, &got).into())
    }

    /// Whether all elements of a field are in the storage's memory. Does not call back into Python code.
    fn contains(&self, field: &Descriptor) -> PyResult<bool> {
        py_owner::has_elements(&self.0, field)
    }

    pub(super) fn check_contains(&self, field: &Descriptor) -> PyResult<()> {
        if self.contains(field)? {
            return Ok(());
        }
        let (got, allowed) = ("a storage without the tensor's memory".to_owned(), "the storage of the tensor's memory");
        Err(ExchangeError::new("untyped_storage()", &allowed, &got).into())
    }

    /// Makes the storage non-resizable, as `torch.Tensor.numpy` does, but for every dtype. A storage on a device has no such
    /// switch.
    pub(super) fn pin(&self, device: Device) -> PyResult<()> {
        let py = self.0.py();
        if device != Device::CPU || !call(&Api::get(py)?.resizable, &self.0)?.is_truthy()? {
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

    /// Returns an owner of the storage.
    pub(super) fn into_owner(self) -> Owner {
        py_owner::of_storage(&self.0)
    }

    /// Caches the storage, which is pinned, as the one with the field's memory.
    pub(super) fn remember(&self, field: &Descriptor) -> PyResult<()> {
        if field.device() != Device::CPU {
            return Ok(());
        }
        storages::remember(&self.0, field, py_owner::memory_of(&self.0)?)
    }
}

/// Imports a tensor by its borrowed `DLTensor`. A borrowed import has no owner; a shared one owns the storage.
pub(super) fn import(
    tensor: &Bound<'_, PyAny>,
    version: DLPackVersion,
    borrow: Borrow,
    request: &Request<'_, '_>,
    imported: &mut Imported<'_, '_>,
) -> PyResult<bool> {
    // Before the memory is described: Python code may run here.
    refuse_more(tensor, request, false)?;
    describe(tensor, version, borrow, imported.descriptor)?;
    // Only complex numbers are conjugated; to ask takes as long as to describe.
    if imported.descriptor.dtype().code() == DLDataTypeCode::COMPLEX {
        refuse_lazy(tensor, true)?;
        describe(tensor, version, borrow, imported.descriptor)?;
    }
    if request.ownership == Ownership::Borrow {
        return Ok(imported.borrowed());
    }
    if let Some(storage) = storages::holder(tensor.py(), imported.descriptor) {
        return Ok(imported.owned(py_owner::of_storage(&storage)));
    }
    let storage = Storage::of(tensor)?;
    storage.pin(imported.descriptor.device())?;
    // Described again, now that nothing moves the memory: the calls above may have run Python code.
    describe(tensor, version, borrow, imported.descriptor)?;
    storage.check_contains(imported.descriptor)?;
    storage.remember(imported.descriptor)?;
    Ok(imported.owned(storage.into_owner()))
}

/// Returns an owner that keeps `owner`, that of a tensor's managed tensor, and the storage with the memory. A copy is in no
/// storage of the tensor: its owner is returned as it is.
pub(super) fn with_storage(tensor: &Bound<'_, PyAny>, owner: Owner, descriptor: &Descriptor) -> PyResult<Owner> {
    let storage = Storage::of(tensor)?;
    if !storage.contains(descriptor)? {
        return Ok(owner);
    }
    storage.pin(descriptor.device())?;
    Ok(storage.into_owner().with(owner))
}

/// Describes a tensor by its borrowed `DLTensor`.
#[inline]
pub(super) fn describe(
    tensor: &Bound<'_, PyAny>,
    version: DLPackVersion,
    borrow: Borrow,
    descriptor: &mut Descriptor,
) -> PyResult<()> {
    match read_lent(tensor, version, borrow, descriptor) {
        Ok(true) => Ok(()),
        Ok(false) => Err(failed(tensor, BORROW, PyErr::take(tensor.py()))),
        Err(error) => Err(explained(tensor, error)),
    }
}

/// Returns the error for a tensor that cannot be imported, with what PyTorch says of it.
#[cold]
pub(super) fn explained(tensor: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let (Ok(error) | Err(error)) = without_subclass(tensor, || Ok(exchange_errors::explained(tensor, error)));
    error
}

/// Rejects a tensor that is more than the elements in its memory: one that autograd tracks, if the request needs that, and one
/// that is negated lazily, or conjugated if it `may_be_complex`. Python code may run: methods of a subclass, modes of PyTorch,
/// and other threads.
pub(super) fn refuse_more(tensor: &Bound<'_, PyAny>, request: &Request<'_, '_>, may_be_complex: bool) -> PyResult<()> {
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
    if required.is_truthy()? {
        let fix = "to keep the gradient compute with PyTorch, on dl.as_torch(field), else pass what .detach() returns";
        return Err(tracked("requires grad", fix).into());
    }
    match has_tangent(api, tensor)? {
        true => Err(tracked("has a tangent (forward-mode autograd)", "pass obj.detach()").into()),
        false => Ok(()),
    }
}

/// Returns the error for a tensor that autograd tracks.
#[cold]
fn tracked(state: &str, fix: &str) -> ExchangeError {
    let sentence = format_args!("a PyTorch tensor that {state}, and autograd does not track access by other libraries");
    ExchangeError::from_sentence("obj", &sentence).with_fix(&fix).with_kind(ExchangeErrorKind::Unsupported)
}

/// Whether forward-mode autograd tracks the tensor.
fn has_tangent(api: &Api, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    let forward = api.forward.bind(py);
    // Tangents exist only inside a `dual_level`. The attribute is private: without it PyTorch is asked, which takes longer.
    let level = forward.getattr_opt(intern!(py, "_current_level"))?;
    if level.is_some_and(|level| level.extract::<i64>().is_ok_and(|level| level < 0)) {
        return Ok(false);
    }
    let unpacked = forward.call_method1(intern!(py, "unpack_dual"), (tensor,))?;
    Ok(!unpacked.getattr(intern!(py, "tangent"))?.is_none())
}

/// Rejects a tensor that is conjugated or negated lazily, as its memory holds other values. The table checks neither, and
/// `__dlpack__` does not check negation. Every tensor is asked: a lazy one may have any element type, shape and strides.
fn refuse_lazy(tensor: &Bound<'_, PyAny>, may_be_complex: bool) -> PyResult<()> {
    let api = Api::get(tensor.py())?;
    let is_lazy = without_subclass(tensor, || {
        Ok(call(&api.is_neg, tensor)?.is_truthy()? || may_be_complex && call(&api.is_conj, tensor)?.is_truthy()?)
    })?;
    if !is_lazy {
        return Ok(());
    }
    let sentence = "a lazily conjugated or negated tensor, whose memory holds other values";
    Err(ExchangeError::from_sentence("obj", &sentence)
        .with_fix(&"pass obj.resolve_conj().resolve_neg()")
        .with_kind(ExchangeErrorKind::Unsupported)
        .into())
}
