//! `_KernelCall`: what a function of `dlfield.kernel` does with its arguments.

#![allow(unsafe_code, reason = "the interpreter calls the method with raw pointers, and the body is called with them")]

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

use crate::error::Count;
use crate::python::ffi::fastcall::{self, Definition};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::freelist;
use crate::python::module::signature::{PyBound, PySignature};

/// Binds the fields among the arguments of a kernel, and calls its body with all of them.
///
/// A call without hooks, copies and warnings takes half as long as a `with` statement around the body.
#[pyclass(name = "_KernelCall", module = "dlfield._native", frozen)]
pub(crate) struct KernelCall {
    signature: Py<PySignature>,
    body: Py<PyAny>,
    /// Of each parameter of the body: the field that it is.
    places: Vec<Option<usize>>,
    /// The names of the last parameters, which the body takes by name.
    keywords: Py<PyTuple>,
    /// Called with the error of `bind` and the arguments; may raise a better one.
    failed: Py<PyAny>,
    /// Called with the bound fields and the arguments where there are hooks, copies or warnings; calls the body in a `with` statement.
    within: Py<PyAny>,
}

#[pymethods]
impl KernelCall {
    #[new]
    fn new(
        py: Python<'_>,
        signature: Py<PySignature>,
        body: Py<PyAny>,
        names: Vec<Py<PyString>>,
        by_name: usize,
        failed: Py<PyAny>,
        within: Py<PyAny>,
    ) -> PyResult<KernelCall> {
        let keywords = PyTuple::new(py, names.iter().skip(names.len().saturating_sub(by_name)))?.unbind();
        let place = |name: &Py<PyString>| signature.get().place_of_interned(name.bind(py));
        let places = names.iter().map(place).collect();
        Ok(KernelCall { signature, body, places, keywords, failed, within })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.signature)?;
        visit.call(&self.body)?;
        visit.call(&self.failed)?;
        visit.call(&self.within)
    }
}

static CALL: Definition = Definition::new(c"call", c"call($self, *arguments)\n--\n\nCall the body of a kernel.", call);

/// Arguments and vectors of most kernels are on the stack.
type Few<T> = SmallVec<[T; 16]>;

unsafe extern "C" fn call(
    kernel: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    _keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls methods attached.
    let py = unsafe { Python::assume_attached() };
    fastcall::run_short(py, || {
        // SAFETY: the method is on this class, and the interpreter calls it with an instance.
        let kernel = unsafe { Bound::from_borrowed_ptr(py, kernel).cast_into_unchecked::<KernelCall>() };
        let places = &kernel.get().places;
        if usize::try_from(count) != Ok(places.len()) {
            let message = format!("call() takes {}, got {count}", Count(places.len(), "argument"));
            return Err(new_error::<PyTypeError>(message));
        }
        // SAFETY: the interpreter calls it with `count` live objects, and keeps them during the call.
        let value = |place| unsafe { Borrowed::from_ptr(py, *values.add(place)) };
        let values: Few<Borrowed<'_, '_, PyAny>> = (0..places.len()).map(value).collect();
        kernel.get().run(py, &values)
    })
}

impl KernelCall {
    fn run<'py>(&self, py: Python<'py>, values: &[Borrowed<'_, 'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        let signature = self.signature.bind(py);
        let fields = || self.places.iter().zip(values).filter_map(|(place, value)| Some(((*place)?, *value)));
        let bound = freelist::create(py, |bound: &mut PyBound| bound.fill(signature, fields().map(Ok)))
            .map_err(|error| self.failed(py, error, values))?;
        if !bound.get().is_plain() {
            let arguments = (bound, PyTuple::new(py, values)?);
            return self.within.bind(py).call1(arguments);
        }
        let given = |(place, value): (&Option<usize>, &Borrowed<'_, '_, PyAny>)| {
            place.and_then(|place| bound.get().described_ptr(place)).unwrap_or_else(|| value.as_ptr())
        };
        let arguments: Few<*mut ffi::PyObject> = self.places.iter().zip(values).map(given).collect();
        let keywords = self.keywords.bind(py);
        let by_position = arguments.len().saturating_sub(keywords.len());
        // SAFETY: live objects, those of `bound` kept by it; `keywords` are strings, for the last of them.
        unsafe {
            let made = ffi::PyObject_Vectorcall(self.body.as_ptr(), arguments.as_ptr(), by_position, keywords.as_ptr());
            Bound::from_owned_ptr_or_err(py, made)
        }
    }

    #[cold]
    fn failed(&self, py: Python<'_>, error: PyErr, values: &[Borrowed<'_, '_, PyAny>]) -> PyErr {
        if !error.is_instance_of::<PyException>(py) {
            return error;
        }
        let arguments = PyTuple::new(py, values).map(|values| (error.value(py).clone(), values));
        arguments.and_then(|arguments| self.failed.bind(py).call1(arguments)).err().unwrap_or(error)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<KernelCall>()?;
    CALL.set_on(&module.py().get_type::<KernelCall>())
}
