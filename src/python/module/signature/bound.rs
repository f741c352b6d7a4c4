//! `dlfield.BoundCall`: the arguments of one call.

#![allow(unsafe_code, reason = "the interpreter's own look-up is called")]

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyRuntimeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString, PyTuple};

use crate::error::Tuple;
use crate::python::convert::{args, errors};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::freelist::{self, Freelist, HasFreelist};
use crate::python::module::signature::PySignature;
use crate::python::module::signature::field::Field;
use crate::python::module::signature::hooks::Errors;
use crate::python::package;
use crate::signature::arguments::{Argument, Arguments};

/// The fields of one call, checked and in the order of dimensions of their `FieldSpec`: the result of `Signature.bind`.
///
/// Each is a `Descriptor`, as an attribute or an item (for names that are attributes of the object itself); None if an
/// optional field was not given. `origin` is never None, and `dims` only if neither the `FieldSpec` nor the argument has any.
///
/// As a context manager it calls the hooks of objects with a data interface: every `acquire` on entry; on exit `touch` of
/// the written fields, then every `release`, also if the body has failed. The hooks of an object that is passed for two
/// fields are called for both. Without a `with` statement, no hooks are called. Temporary copies of fields
/// (`on_mismatch="copy"`) are filled on entry, and written back on exit if the body has not failed; these fields are
/// available only in between.
///
/// >>> import dlfield as dl, numpy as np
/// >>> bound = dl.Signature(x=dl.FieldSpec("float64", "IJ")).bind(x=np.ones((4, 5)))
/// >>> bound.x.shape, bound["x"].origin, bound.domain
/// ((4, 5), (0, 0), (4, 5))
#[pyclass(name = "BoundCall", module = "dlfield", frozen)]
pub(crate) struct PyBound {
    /// Absent only before `bind` is complete.
    signature: Option<Py<PySignature>>,
    arguments: Arguments<Field>,
    stage: AtomicU8,
}

const BOUND: u8 = 0;
/// The last stage if entering fails: `__exit__` is not called then.
const ENTERING: u8 = 1;
const ENTERED: u8 = 2;
const LEFT: u8 = 3;

impl PyBound {
    /// Binds the arguments of a call, each with the place of its field in the signature.
    #[inline]
    pub(crate) fn fill<'a, 'py: 'a>(
        &mut self,
        signature: &Bound<'py, PySignature>,
        given: impl Iterator<Item = PyResult<(usize, Borrowed<'a, 'py, PyAny>)>>,
    ) -> PyResult<()> {
        let (py, known) = (signature.py(), signature.get());
        self.signature = Some(signature.clone().unbind());
        self.arguments.prepare(&known.signature);
        for argument in given {
            let (place, value) = argument?;
            if !value.is_none() {
                // Different keys of a dictionary may have the same text.
                let vacant =
                    self.arguments.vacant(&known.signature, place).map_err(|error| known.misused(py, error))?;
                *vacant = Some(Field::bind(&value, known, place)?);
            }
        }
        self.arguments.check(&known.signature).map_err(|error| known.misused(py, error))?;
        self.check_unmoved(py, known)?;
        // A field that is slow, or copied.
        self.arguments.given().try_for_each(|(place, field)| field.warn(py, known, place))
    }

    /// Rejects fields whose memory was moved after they were described.
    fn check_unmoved(&self, py: Python<'_>, signature: &PySignature) -> PyResult<()> {
        self.arguments.given().try_for_each(|(place, field)| named(py, signature, place, field.check_unmoved(py)))
    }

    /// Whether no field has hooks, a copy or a warning, so that no code has run since the memory was checked.
    pub(crate) fn is_plain(&self) -> bool {
        self.arguments.given().all(|(_, field)| field.is_plain())
    }

    /// The description of a field, if it was given. Only of a plain call; this object keeps it.
    pub(crate) fn described_ptr(&self, place: usize) -> Option<*mut ffi::PyObject> {
        Some(self.arguments.get(place)?.original_ptr())
    }

    fn signature(&self) -> PyResult<&PySignature> {
        let absent = || new_error::<PyRuntimeError>("dlfield: internal error, a BoundCall without a Signature");
        Ok(self.signature.as_ref().ok_or_else(absent)?.get())
    }

    fn find<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Option<Bound<'py, PyDescriptor>>> {
        let Some(field) = self.arguments.get(place) else { return Ok(None) };
        if field.copy().is_some() && self.stage.load(Ordering::Relaxed) != ENTERED {
            let (name, _) = self.signature()?.spec(place);
            return Err(new_error::<PyRuntimeError>(format!(
                "field {name:?}: the kernel gets a temporary copy, which is filled on entry and copied back on exit; use \
                 it inside `with signature.bind(...) as fields`"
            )));
        }
        Ok(Some(field.described(py)))
    }

    /// Calls the function with the name and the description of each field that was given.
    pub(crate) fn for_each<'py>(
        &self,
        py: Python<'py>,
        mut function: impl FnMut(&Bound<'py, PyString>, Bound<'py, PyDescriptor>) -> PyResult<()>,
    ) -> PyResult<()> {
        let signature = self.signature()?;
        for (place, name) in signature.names.iter().enumerate() {
            if let Some(field) = self.find(py, place)? {
                function(name.bind(py), field)?;
            }
        }
        Ok(())
    }

    fn place(&self, name: &str) -> PyResult<Option<usize>> {
        Ok(self.signature()?.signature.place(name, 0))
    }
}

static FREED: Freelist = Freelist::new();

impl HasFreelist for PyBound {
    fn freelist() -> &'static Freelist {
        &FREED
    }

    fn blank() -> PyBound {
        PyBound { signature: None, arguments: Arguments::NONE, stage: AtomicU8::new(BOUND) }
    }

    fn release(&mut self, py: Python<'_>) {
        *self.stage.get_mut() = BOUND;
        for field in self.arguments.take() {
            field.release(py);
        }
        drop(self.signature.take().map(|signature| signature.into_bound(py)));
    }
}

impl Drop for PyBound {
    fn drop(&mut self) {
        freelist::drop_value(self);
    }
}

#[pymethods]
impl PyBound {
    /// A bound object may refer to this one; clearing that object breaks the cycle. Cycles through an owner are not seen:
    /// the owner of an object's memory keeps hooks that are methods of the object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.signature)?;
        self.arguments.given().try_for_each(|(_, field)| field.traverse(&visit))
    }

    /// Fields come first, except for those with the name of an attribute of the class. Names in code are interned, so
    /// most look-ups compare addresses, not text.
    fn __getattribute__<'py>(slf: &Bound<'py, PyBound>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, bound) = (slf.py(), slf.get());
        let signature = bound.signature()?;
        if let Some(place) = signature.attribute(name) {
            return Ok(bound.find(py, place)?.map_or_else(|| py.None().into_bound(py), Bound::into_any));
        }
        // SAFETY: both are live objects; the result is a new reference or an error that is set.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyObject_GenericGetAttr(slf.as_ptr(), name.as_ptr())) }
    }

    /// Looks up names that `__getattribute__` does not find.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDescriptor>>> {
        let place = name.extract::<String>().ok().map(|name| self.place(&name)).transpose()?.flatten();
        let Some(place) = place else {
            let message = format!("no field {}; the fields are {}", args::shown(name), self.names()?);
            return Err(new_error::<PyAttributeError>(message));
        };
        self.find(name.py(), place)
    }

    fn __getitem__<'py>(&self, name: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDescriptor>>> {
        let place = name.extract::<String>().ok().map(|name| self.place(&name)).transpose()?.flatten();
        let Some(place) = place else {
            let message = format!("no field {}; the fields are {}", args::shown(name), self.names()?);
            return Err(new_error::<PyKeyError>(message));
        };
        self.find(name.py(), place)
    }

    /// Extents of the largest domain that all fields have points for, from the origin of each to its upper halo: I, J and K
    /// first, then user labels in the order of the signature. Dimensions that no field has, and data dimensions, are left
    /// out. A tuple with `dims`, whose items go by label, too: `domain["I"]`. Warns if fields with the same extents have different
    /// origins, for instance if only one of them has a halo.
    #[getter]
    fn domain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.warn_of_origins(py)?;
        self.largest_domain(py)
    }

    fn __enter__<'py>(slf: &Bound<'py, PyBound>) -> PyResult<Bound<'py, PyBound>> {
        let (py, bound) = (slf.py(), slf.get());
        let entered = bound.stage.compare_exchange(BOUND, ENTERING, Ordering::Relaxed, Ordering::Relaxed);
        if entered.is_err() {
            return Err(new_error::<PyRuntimeError>("BoundCall: entered twice; call bind() again for another call"));
        }
        let mut errors = Errors::default();
        let mut acquired = 0;
        let signature = bound.signature()?;
        for (place, field) in bound.arguments.given() {
            let acquire = field.hooks().and_then(|hooks| hooks.acquire.as_ref());
            errors.call(py, signature.spec(place).0, "acquire", acquire);
            if !errors.is_empty() {
                break;
            }
            acquired += 1;
        }
        if errors.is_empty() {
            // Code that ran since `bind`, an `acquire` among it, may have moved the memory.
            errors.add(bound.check_unmoved(py, signature));
        }
        if errors.is_empty() {
            let filled =
                bound.arguments.given().try_for_each(|(place, field)| named(py, signature, place, field.copy_in(py)));
            errors.add(filled);
        }
        if errors.is_empty() {
            bound.stage.store(ENTERED, Ordering::Relaxed);
            return Ok(slf.clone());
        }
        for (place, field) in bound.arguments.given().take(acquired) {
            let release = field.hooks().and_then(|hooks| hooks.release.as_ref());
            errors.call(py, signature.spec(place).0, "release", release);
        }
        errors.raise(py).map(|()| slf.clone())
    }

    #[pyo3(signature = (exc_type, exc_value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (exc_value, traceback);
        let left = self.stage.compare_exchange(ENTERED, LEFT, Ordering::Relaxed, Ordering::Relaxed);
        if left.is_err() {
            return Err(new_error::<PyRuntimeError>("BoundCall: __exit__ without __enter__"));
        }
        let signature = self.signature()?;
        let written = |place: usize| signature.spec(place).1.declared_access().writes();
        let mut errors = Errors::default();
        if exc_type.is_none() {
            for (place, field) in self.arguments.given().filter(|(place, _)| written(*place)) {
                errors.add(named(py, signature, place, field.copy_back(py)));
            }
        }
        for (place, field) in self.arguments.given().filter(|(place, _)| written(*place)) {
            let touch = field.hooks().and_then(|hooks| hooks.touch.as_ref());
            errors.call(py, signature.spec(place).0, "touch", touch);
        }
        for (place, field) in self.arguments.given() {
            let release = field.hooks().and_then(|hooks| hooks.release.as_ref());
            errors.call(py, signature.spec(place).0, "release", release);
        }
        errors.raise(py)?;
        Ok(false)
    }

    fn __contains__(&self, name: &str) -> PyResult<bool> {
        Ok(self.place(name)?.is_some())
    }

    /// Iterates over the names of the fields, in the signature's order.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, &self.signature()?.names)?.try_iter()
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.signature()?.names.len())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut parts = vec![format!("domain={}", self.largest_domain(py)?.repr()?)];
        for (place, (name, _)) in self.signature()?.signature.fields().iter().enumerate() {
            parts.push(match self.arguments.get(place) {
                Some(field) => format!("{name}={}", field.described(py).repr()?),
                None => format!("{name}=None"),
            });
        }
        Ok(format!("BoundCall({})", parts.join(", ")))
    }
}

/// Adds the field's name to an error.
fn named(py: Python<'_>, signature: &PySignature, place: usize, outcome: PyResult<()>) -> PyResult<()> {
    outcome.map_err(|error| errors::about(py, signature.spec(place).0, error))
}

impl PyBound {
    fn largest_domain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let signature = self.signature()?;
        let domain = self.arguments.domain(&signature.signature);
        let (dims, extents): (Vec<_>, Vec<_>) =
            domain.into_iter().map(|(dim, extent)| (dim.to_string(), extent)).unzip();
        let tuples = (PyTuple::new(py, extents)?, PyTuple::new(py, dims)?);
        package::functions(py)?.call_method1(intern!(py, "Domain"), tuples)
    }

    fn warn_of_origins(&self, py: Python<'_>) -> PyResult<()> {
        let Some(places) = self.arguments.differing_origins() else { return Ok(()) };
        let signature = self.signature()?;
        let [(one, zero), (other, origin)] = [places.0, places.1].map(|place| {
            let origin = self.arguments.get(place).and_then(|field| field.original().origin());
            (signature.spec(place).0, Tuple(origin.unwrap_or(&[])).to_string())
        });
        let message = format!(
            "field {one:?}: origin: {zero}, and field {other:?} of the same extents has {origin}; the domain begins at the \
             origin of each: write dl.asarray({one}, like={other}) if they are one grid"
        );
        errors::warn(py, &message)
    }

    fn names(&self) -> PyResult<String> {
        let names: Vec<&str> = self.signature()?.signature.fields().iter().map(|(name, _)| &**name).collect();
        Ok(names.join(", "))
    }
}
