//! Functions with CPython's own calling convention, for calls that take less time than PyO3's generated argument handling
//! (docs/contributing/design.md has the times).

#![allow(unsafe_code, reason = "arguments come as raw pointers")]

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyCFunction, PyCFunctionFastWithKeywords, PyMethodDef, PyMethodDefPointer};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};

use crate::python::ffi::new_error::{self, new_error, unexpected_keyword};

/// The definition of a function or method that the interpreter calls from C.
pub struct Definition(PyMethodDef);

// SAFETY: its pointers are to constants, and it never changes.
unsafe impl Sync for Definition {}

impl Definition {
    /// `doc` begins with the signature, as in `describe(obj, *, dims=None)\n--\n\n`.
    pub const fn new(name: &'static CStr, doc: &'static CStr, function: PyCFunctionFastWithKeywords) -> Definition {
        let function = PyMethodDefPointer { PyCFunctionFastWithKeywords: function };
        Definition::of(name, doc, function, ffi::METH_FASTCALL | ffi::METH_KEYWORDS)
    }

    /// A method of one positional argument.
    pub const fn of_one(name: &'static CStr, doc: &'static CStr, function: PyCFunction) -> Definition {
        Definition::of(name, doc, PyMethodDefPointer { PyCFunction: function }, ffi::METH_O)
    }

    /// A method without arguments.
    pub const fn of_none(name: &'static CStr, doc: &'static CStr, function: PyCFunction) -> Definition {
        Definition::of(name, doc, PyMethodDefPointer { PyCFunction: function }, ffi::METH_NOARGS)
    }

    const fn of(name: &CStr, doc: &CStr, ml_meth: PyMethodDefPointer, ml_flags: c_int) -> Definition {
        Definition(PyMethodDef { ml_name: name.as_ptr(), ml_meth, ml_flags, ml_doc: doc.as_ptr() })
    }

    /// Adds the function to a module.
    pub fn add_to(&'static self, module: &Bound<'_, PyModule>) -> PyResult<()> {
        let name = module.name()?;
        // SAFETY: the definition is static, and its flags fit the function.
        let function = unsafe {
            let definition = (&raw const self.0).cast_mut();
            let made = ffi::PyCFunction_NewEx(definition, module.as_ptr(), name.as_ptr());
            Bound::from_owned_ptr_or_err(module.py(), made)?
        };
        module.add(function.getattr("__name__")?.cast_into::<PyString>()?, function)
    }

    /// Adds the method to a type.
    pub fn set_on(&'static self, ty: &Bound<'_, pyo3::types::PyType>) -> PyResult<()> {
        // SAFETY: the definition is static, and its flags fit the function.
        let method = unsafe {
            let definition = (&raw const self.0).cast_mut();
            Bound::from_owned_ptr_or_err(ty.py(), ffi::PyDescr_NewMethod(ty.as_type_ptr(), definition))?
        };
        ty.setattr(method.getattr("__name__")?.cast_into::<PyString>()?, method)
    }
}

/// An argument of the current call, if it was given.
pub type Argument<'a, 'py> = Option<Borrowed<'a, 'py, PyAny>>;

/// The argument, unless it is absent or None.
pub fn given<'a, 'py>(argument: &'a Argument<'_, 'py>) -> Option<&'a Bound<'py, PyAny>> {
    argument.as_deref().filter(|value| !value.is_none())
}

/// The text of a keyword, which the interpreter guarantees to be a string. A subclass is not asked for its `__str__`.
fn text(name: &Bound<'_, PyAny>) -> String {
    name.cast::<PyString>().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A hint for a call of this function, with parameters of these names, with all these positional arguments, which are too many.
type TooManyHint = fn(&str, &[&str], &[Borrowed<'_, '_, PyAny>]) -> String;

/// The parameters of a function: some can be given by position, all by name.
pub struct Parameters<const N: usize> {
    function: &'static str,
    positional: usize,
    required: usize,
    names: [&'static str; N],
    /// Keywords that others use, and what to write here.
    hints: &'static [(&'static str, &'static str)],
    too_many: Option<TooManyHint>,
    interned: PyOnceLock<[Py<PyString>; N]>,
}

impl<const N: usize> Parameters<N> {
    /// The first `positional` of `names` can be given by position, and the first `required` have to be given.
    pub const fn new(
        function: &'static str,
        names: [&'static str; N],
        positional: usize,
        required: usize,
    ) -> Parameters<N> {
        Parameters { function, positional, required, names, hints: &[], too_many: None, interned: PyOnceLock::new() }
    }

    /// Adds keywords that others use, and what to write here.
    pub const fn with_hints(mut self, hints: &'static [(&'static str, &'static str)]) -> Parameters<N> {
        self.hints = hints;
        self
    }

    /// Adds a hint for too many positional arguments.
    pub const fn with_hint_for_too_many(mut self, hint: TooManyHint) -> Parameters<N> {
        self.too_many = Some(hint);
        self
    }

    /// Puts the arguments of a call into `sorted`, in the order of the names.
    ///
    /// # Safety
    /// - `args`, `nargs` and `keywords` are those that the interpreter has called the function with.
    #[inline]
    unsafe fn sort<'a, 'py>(
        &self,
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        nargs: ffi::Py_ssize_t,
        keywords: *mut ffi::PyObject,
        sorted: &mut [Argument<'a, 'py>; N],
    ) -> PyResult<()> {
        let given = usize::try_from(nargs).unwrap_or(0);
        // SAFETY: passed on from the caller.
        let argument = |place: usize| unsafe { Borrowed::from_ptr(py, *args.add(place)) };
        // What the call gives beyond the parameters.
        let (mut positional, mut keyword) = (Vec::new(), None);
        for place in 0..given {
            match sorted.get_mut(place).filter(|_| place < self.positional) {
                Some(slot) => *slot = Some(argument(place)),
                None => positional.push(argument(place)),
            }
        }
        if !keywords.is_null() {
            // SAFETY: `keywords` is a tuple of strings, and as many values follow the positional arguments.
            let keywords = unsafe { Bound::from_borrowed_ptr(py, keywords).cast_into_unchecked::<PyTuple>() };
            for (position, name) in keywords.iter_borrowed().enumerate() {
                match self.place(&name) {
                    Some(place) if sorted[place].replace(argument(given + position)).is_some() => {
                        return Err(self.error(&format!("got multiple values for argument '{}'", self.names[place])));
                    }
                    None if keyword.is_none() => keyword = Some(text(&name)),
                    _ => {}
                }
            }
        }
        let complete = sorted[..self.required].iter().all(Option::is_some);
        if complete && given <= self.positional && keyword.is_none() {
            return Ok(());
        }
        Err(self.wrong(py, sorted, &positional, keyword))
    }

    /// The position of the parameter with this name.
    fn place(&self, name: &Bound<'_, PyAny>) -> Option<usize> {
        let py = name.py();
        let interned = self.interned.get_or_init(py, || self.names.map(|name| PyString::intern(py, name).unbind()));
        // Names in calls are interned, so comparing addresses finds them; others are compared as text.
        interned.iter().position(|known| name.is(known)).or_else(|| {
            let text = text(name);
            self.names.iter().position(|known| *known == text)
        })
    }

    /// The error for a call with wrong arguments, in Python's order: unknown keywords, which may be the missing ones with a typo,
    /// missing arguments, too many.
    #[cold]
    fn wrong<'py>(
        &self,
        py: Python<'py>,
        sorted: &[Argument<'_, 'py>; N],
        beyond: &[Borrowed<'_, 'py, PyAny>],
        keyword: Option<String>,
    ) -> PyErr {
        if let Some(name) = keyword {
            return unexpected_keyword(py, self.function, &name, self.hints, &self.names);
        }
        let missing: Vec<String> = (0..self.required)
            .filter(|place| sorted[*place].is_none())
            .map(|place| format!("'{}'", self.names[place]))
            .collect();
        let (own, by_name) = self.names.split_at(self.positional);
        let (most, given) = (own.len(), own.len() + beyond.len());
        self.error(&match (missing.len(), self.too_many, most) {
            (0, Some(hint), _) => {
                let all: Vec<_> = sorted[..most].iter().flatten().chain(beyond).copied().collect();
                let hint = hint(self.function, own, &all);
                format!("takes at most {most} positional arguments but {given} were given{hint}")
            }
            (0, None, 0) => format!("takes keyword arguments only, {given} were given"),
            (0, None, _) => {
                let by_name = by_name.join(", ");
                format!("takes {most} positional argument but {given} were given; give by name: {by_name}")
            }
            (1, ..) => format!("missing 1 required positional argument: {}", missing[0]),
            (count, ..) => format!("missing {count} required positional arguments: {}", missing.join(" and ")),
        })
    }

    #[cold]
    fn error(&self, what: &str) -> PyErr {
        new_error::<PyTypeError>(format!("{}() {what}", self.function))
    }
}

/// The argument of a required parameter, which [`call`] has found to be given.
pub fn required<'a, 'py>(argument: Option<&'a Argument<'_, 'py>>) -> PyResult<&'a Bound<'py, PyAny>> {
    argument.and_then(Option::as_deref).ok_or_else(|| new_error::<PyTypeError>("a required argument is missing"))
}

/// Sorts the arguments of a call, and runs the body of the function or method with `slf` and the sorted arguments.
///
/// # Safety
/// - The interpreter has called the function with these, attached.
#[inline(always)]
pub unsafe fn call<const N: usize>(
    parameters: &Parameters<N>,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
    body: impl for<'py> FnOnce(&Bound<'py, PyAny>, &[Argument<'_, 'py>; N]) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: passed on from the caller; `slf` is the module of a function, or the instance of a method.
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf))
    };
    run(py, || {
        let mut arguments = [None; N];
        // SAFETY: passed on from the caller.
        unsafe { parameters.sort(py, args, nargs, keywords, &mut arguments) }?;
        body(&slf, &arguments)
    })
}

/// Defines the C function that calls a body as [`call`] does; with a second body, for one positional argument and no keywords, as
/// [`call_with_one`].
#[cfg(feature = "module")]
macro_rules! c_function {
    ($name:ident, $parameters:ident, $body:expr $(, $of_one:expr)?) => {
        unsafe extern "C" fn $name(
            slf: *mut pyo3::ffi::PyObject,
            args: *const *mut pyo3::ffi::PyObject,
            nargs: pyo3::ffi::Py_ssize_t,
            keywords: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: the interpreter's own arguments.
            unsafe {
                $(if nargs == 1 && keywords.is_null() {
                    return $crate::python::ffi::fastcall::call_with_one(args, $of_one);
                })?
                $crate::python::ffi::fastcall::call(&$parameters, slf, args, nargs, keywords, $body)
            }
        }
    };
}
#[cfg(feature = "module")]
pub(crate) use c_function;

/// As [`call`], for a call with one positional argument and no keywords: there is nothing to sort.
///
/// # Safety
/// - The interpreter has called a function with these arguments, attached.
#[inline(always)]
pub unsafe fn call_with_one(
    args: *const *mut ffi::PyObject,
    body: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: passed on from the caller.
    let (py, argument) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, *args))
    };
    run_short(py, || body(&argument))
}

/// Runs the body of such a function, attached in PyO3's view too, so that PyO3 drops the references of discarded errors at once.
#[inline]
pub fn run<'py>(py: Python<'py>, body: impl FnOnce() -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    let mut call = Some(|| run_short(py, body));
    // That fails while the interpreter ends, as it attaches again.
    let made = Python::try_attach(|_| call.take().map(|call| call()));
    made.flatten().or_else(|| call.map(|call| call())).unwrap_or(null_mut())
}

/// As [`run`], for a body that discards no errors outside of imports, which attach where they do: attaching
/// takes as long as a fifth of the shortest of these functions.
///
/// An error becomes the Python exception, and so does a panic, which must not unwind into C.
#[inline]
pub fn run_short<'py>(py: Python<'py>, body: impl FnOnce() -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value.into_ptr(),
        Ok(Err(error)) => error,
        Err(panic) => new_error::of_panic(&*panic),
    };
    error.restore(py);
    null_mut()
}
