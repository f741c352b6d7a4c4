//! The question that `as_jax` asks first: whether there is anything to decide.

#![allow(unsafe_code, reason = "the interpreter calls the function with raw pointers")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::preflight::jax_takes;
use crate::python::ffi::fastcall::{self, Definition};
use crate::python::module::classes::tensor::PyTensor;

static JAX_TAKES: Definition = Definition::of_one(
    c"_jax_takes",
    c"_jax_takes(obj, /)
--

Return whether `obj` is a `Tensor` that every version of JAX takes as it is. JAX may take other objects too.
",
    takes,
);

unsafe extern "C" fn takes(_module: *mut ffi::PyObject, obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls functions attached.
    let py = unsafe { Python::assume_attached() };
    fastcall::run(py, || {
        // SAFETY: the interpreter's own argument.
        let obj = unsafe { Bound::from_borrowed_ptr(py, obj) };
        let tensor = obj.cast_exact::<PyTensor>();
        let taken = tensor.is_ok_and(|tensor| jax_takes(tensor.get().descriptor()));
        Ok(PyBool::new(py, taken).to_owned().into_any())
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    JAX_TAKES.add_to(module)
}
