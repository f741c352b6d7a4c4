//! `__dlpack__`: capsules of both ABIs.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::{CStr, c_void};

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{Managed, ManagedTensorBase};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::protocol::ExchangeError;
use crate::py::args;
use crate::py::copies;
use crate::py::device::DlpackPair;
use crate::py::fastcall::{self, Argument, Definition, Parameters};
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// What a consumer asks of `__dlpack__`, each argument obeyed or refused.
struct Request<'a, 'py> {
    stream: Option<&'a Bound<'py, PyAny>>,
    max_version: Option<(i64, i64)>,
    dl_device: Option<(i64, i64)>,
    copy: Option<bool>,
}

/// Puts `__dlpack__` on the type. It is the one method that every exchange calls, always with keywords: as a plain C
/// method that compares interned names it takes a quarter less time than with generated argument parsing (DESIGN.md).
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    METHOD.set_on(&py.get_type::<PyTensor>())
}

static METHOD: Definition = Definition::new(
    c"__dlpack__",
    c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

A DLPack capsule on the same memory, or with copy=True on a copy.

`max_version` of major 1 or newer gives the versioned ABI, stamped 1.3; None the legacy one, which is refused for
read-only memory. `stream` has to be None on the host. `dl_device` has to be the device the memory is on.",
    method,
);

static PARAMETERS: Parameters<4> = Parameters::new("__dlpack__", ["max_version", "dl_device", "copy", "stream"], 0);

/// `Tensor.__dlpack__`.
unsafe extern "C" fn method(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter's own arguments.
    unsafe { fastcall::call(&PARAMETERS, slf, args, nargs, keywords, exported) }
}

/// `__dlpack__`, with the arguments in the order of its parameters.
#[inline(always)]
fn exported<'py>(slf: &Bound<'py, PyAny>, arguments: &[Argument<'_, 'py>; 4]) -> PyResult<Bound<'py, PyAny>> {
    let [max_version, dl_device, copy, stream] = arguments.each_ref().map(fastcall::given);
    let request = Request {
        stream,
        max_version: max_version.map(|version| pair("max_version", version)).transpose()?,
        dl_device: dl_device.map(|device| pair("dl_device", device)).transpose()?,
        copy: copy.map(|copy| args::flag("copy", copy)).transpose()?,
    };
    capsule(slf.py(), &slf.cast::<PyTensor>()?.get().0, &request)
}

fn pair(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("{argument}: {}; allowed is None or a pair of integers", args::shown(value)))
    })
}

/// A fresh capsule.
fn capsule<'py>(py: Python<'py>, tensor: &Tensor, request: &Request<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    args::check_stream(request.stream, tensor.descriptor().device())?;
    if let Some(pair) = request.dl_device
        && DlpackPair(pair.0, pair.1) != DlpackPair::of(tensor.descriptor().device())
    {
        let got = format!("{pair:?}");
        let allowed = "the device the memory is on, as __dlpack_device__ tells; this build cannot move it";
        return Err(ExchangeError::Argument { argument: "dl_device", got, allowed }.into());
    }
    let copied = request.copy == Some(true);
    let copy = if copied { Some(copies::like(py, tensor)?) } else { None };
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

/// The destructor of our capsules: releases the struct unless a consumer has taken it, and said so in the name. An error
/// may be on its way meanwhile, and stays.
unsafe extern "C" fn release<M: ManagedTensorBase>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule made by `wrap`. A name other than ours means that the struct
    // has another owner.
    unsafe {
        let name = ffi::PyCapsule_GetName(capsule);
        if !name.is_null() && [LEGACY, VERSIONED].contains(&CStr::from_ptr(name)) {
            let raw: *mut c_void = ffi::PyCapsule_GetPointer(capsule, name);
            M::drop_raw(raw.cast());
        }
    }
}
