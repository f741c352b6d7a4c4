//! `__dlpack__`: capsules of both ABIs.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{Managed, ManagedTensorBase};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyTuple};

use crate::protocol::ExchangeError;
use crate::py::args;
use crate::py::device::DlpackPair;
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// What a consumer asks of `__dlpack__`, each argument obeyed or refused.
#[derive(Default)]
struct Request<'py> {
    stream: Option<Bound<'py, PyAny>>,
    max_version: Option<(i64, i64)>,
    dl_device: Option<(i64, i64)>,
    copy: Option<bool>,
}

/// Puts `__dlpack__` on the type. It is the one method that every exchange calls, always with keywords: as a plain C
/// method that compares interned names it takes a quarter less time than with generated argument parsing (DESIGN.md).
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let ty = py.get_type::<PyTensor>();
    // SAFETY: the definition is static, and its flags fit the function.
    let method = unsafe {
        let definition = (&raw const METHOD.0).cast_mut();
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(ty.as_type_ptr(), definition))?
    };
    ty.setattr(intern!(py, "__dlpack__"), method)
}

/// The method's definition, which never changes.
struct Method(ffi::PyMethodDef);

// SAFETY: the pointers in it are to constants.
unsafe impl Sync for Method {}

static METHOD: Method = Method(ffi::PyMethodDef {
    ml_name: c"__dlpack__".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: method },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

A DLPack capsule on the same memory, or with copy=True on a copy.

`max_version` of major 1 or newer gives the versioned ABI, stamped 1.3; None the legacy one, which is refused for
read-only memory. `stream` has to be None on the host. `dl_device` has to be the device the memory is on."
        .as_ptr(),
});

/// `Tensor.__dlpack__`.
unsafe extern "C" fn method(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls methods attached, with an instance of the type they stand on.
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, slf))
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if nargs != 0 {
            return Err(PyTypeError::new_err(format!("__dlpack__() takes keyword arguments only, {nargs} were given")));
        }
        let mut request = Request::default();
        if !names.is_null() {
            // SAFETY: `names` is a tuple of strings, and as many values stand behind `args`.
            let names = unsafe { Bound::from_borrowed_ptr(py, names).cast_into_unchecked::<PyTuple>() };
            for (position, name) in names.iter_borrowed().enumerate() {
                // SAFETY: as above.
                let value = unsafe { Bound::from_borrowed_ptr(py, *args.add(position)) };
                request.take(&name, value)?;
            }
        }
        let tensor = slf.cast::<PyTensor>()?;
        capsule(py, &tensor.get().0, &request)
    }));
    let error = match outcome {
        Ok(Ok(capsule)) => return capsule.into_ptr(),
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err("dlfield: internal error in __dlpack__"),
    };
    error.restore(py);
    null_mut()
}

impl<'py> Request<'py> {
    /// Takes one keyword; None is as good as absent.
    fn take(&mut self, name: &Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<()> {
        let py = name.py();
        let pair = |argument: &str| {
            value.extract().map_err(|_| {
                let what = args::shown(&value);
                PyTypeError::new_err(format!("{argument}: {what}; allowed is None or a pair of integers"))
            })
        };
        // Names from calls are interned, so that comparing addresses settles it; others are compared as text.
        let is = |known: &Bound<'py, PyString>| name.is(known);
        let text;
        let known = if is(intern!(py, "max_version")) {
            "max_version"
        } else if is(intern!(py, "dl_device")) {
            "dl_device"
        } else if is(intern!(py, "copy")) {
            "copy"
        } else if is(intern!(py, "stream")) {
            "stream"
        } else {
            text = name.str()?.to_string();
            &text
        };
        let given = !value.is_none();
        match known {
            "max_version" if given => self.max_version = Some(pair(known)?),
            "dl_device" if given => self.dl_device = Some(pair(known)?),
            "copy" if given => {
                let flag = value.cast::<PyBool>().map_err(|_| {
                    PyTypeError::new_err(format!("copy: {}; allowed is True, False or None", args::shown(&value)))
                })?;
                self.copy = Some(flag.is_true());
            }
            "stream" if given => self.stream = Some(value),
            "max_version" | "dl_device" | "copy" | "stream" => {}
            _ => {
                let message = format!("__dlpack__() got an unexpected keyword argument '{known}'");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }
}

/// A fresh capsule.
fn capsule<'py>(py: Python<'py>, tensor: &Tensor, request: &Request<'py>) -> PyResult<Bound<'py, PyAny>> {
    args::check_stream(request.stream.as_ref(), tensor.descriptor().device())?;
    if let Some(pair) = request.dl_device
        && DlpackPair(pair.0, pair.1) != DlpackPair::of(tensor.descriptor().device())
    {
        let got = format!("{pair:?}");
        let allowed = "the device the memory is on, as __dlpack_device__ tells; this build cannot move it";
        return Err(ExchangeError::Argument { argument: "dl_device", got, allowed }.into());
    }
    let copied = request.copy == Some(true);
    let copy = if copied { Some(py.detach(|| tensor.copy())?) } else { None };
    let tensor = copy.as_ref().unwrap_or(tensor);
    match request.max_version {
        Some((major, _)) if major >= 1 => wrap::<DLManagedTensorVersioned>(py, tensor.to_versioned(copied)?, VERSIONED),
        _ => wrap::<DLManagedTensor>(py, tensor.to_legacy()?, LEGACY),
    }
}

fn wrap<'py, M: ManagedTensorBase + 'static>(
    py: Python<'py>,
    managed: Managed<M>,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    let raw = managed.into_raw();
    // SAFETY: the capsule owns the struct until a consumer renames it; the name lives for the rest of the process.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw.cast(), name.as_ptr(), Some(release::<M>));
        if capsule.is_null() {
            M::drop_raw(raw);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The destructor of our capsules: releases the struct unless a consumer has taken it, and said so in the name.
unsafe extern "C" fn release<M: ManagedTensorBase>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule made by `wrap`. A name other than ours means that the struct
    // has another owner.
    unsafe {
        let name = ffi::PyCapsule_GetName(capsule);
        if name.is_null() {
            ffi::PyErr_Clear();
        } else if [LEGACY, VERSIONED].contains(&CStr::from_ptr(name)) {
            let raw: *mut c_void = ffi::PyCapsule_GetPointer(capsule, name);
            M::drop_raw(raw.cast());
        }
    }
}
