//! The keywords of ufuncs: each is obeyed or rejected.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use crate::python::convert::args;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::{ArgumentError, new_error, unexpected_keyword};
use crate::python::module::ufunc::Method;

/// The keywords of a call.
const CALL: [&str; 7] = ["out", "where", "dtype", "casting", "order", "subok", "signature"];

/// The keywords of a reduction.
const REDUCE: [&str; 6] = ["axis", "dtype", "out", "keepdims", "initial", "where"];

/// Keywords of other libraries, and what to write here.
const HINTS: [(&str, &str); 3] = [
    ("dims", "write axis: a number, a label, or a tuple of these"),
    ("axes", "write axis: a number, a label, or a tuple of these"),
    ("skipna", "NaN is true; leave it out with where=~numpy.isnan(field)"),
];

/// The keywords of a call or reduction.
#[derive(Default)]
pub(super) struct Keywords<'py> {
    /// The destination of each result; empty without `out`.
    pub(super) out: SmallVec<[Option<Bound<'py, PyAny>>; 2]>,
    /// `where`, unless it is True.
    pub(super) mask: Option<Bound<'py, PyAny>>,
    /// Passed on to the library as they are: `dtype`, `casting`, `signature`, `initial`.
    pub(super) passed: Option<Bound<'py, PyDict>>,
    /// `axis`, if it was given.
    pub(super) axis: Option<Bound<'py, PyAny>>,
    pub(super) keepdims: bool,
}

impl<'py> Keywords<'py> {
    /// Reads the keywords of `function`, whose name is for the error.
    pub(super) fn read(
        method: Method,
        given: Option<&Bound<'py, PyDict>>,
        function: impl Fn() -> PyResult<String>,
    ) -> PyResult<Keywords<'py>> {
        let mut keywords = Keywords::default();
        for (keyword, value) in given.into_iter().flatten() {
            let keyword = keyword.cast_into::<PyString>()?;
            match (&*keyword.to_cow()?, method) {
                (_, Method::Reduce) if is_no_value(&value) => {}
                ("out", _) => keywords.out = parse_out(&value),
                ("where", _) if value.is_none() => return Err(no_mask()),
                ("where", _) => keywords.mask = Some(value).filter(|mask| !is_true(mask)),
                ("dtype", _) if value.is_none() => {}
                ("dtype", _) | ("casting" | "signature" | "sig", Method::Call) | ("initial", Method::Reduce) => {
                    keywords.pass(&keyword, &value)?;
                }
                ("order", Method::Call) => check_order(&value)?,
                ("subok", Method::Call) => drop(args::flag("subok", &value)?),
                ("axis", Method::Reduce) => keywords.axis = Some(value),
                ("keepdims", Method::Reduce) => keywords.keepdims = value.is_truthy()?,
                (other, _) => {
                    let known = if method == Method::Call { &CALL[..] } else { &REDUCE[..] };
                    return Err(unexpected_keyword(keyword.py(), &function()?, other, &HINTS, known));
                }
            }
        }
        Ok(keywords)
    }

    fn pass(&mut self, keyword: &Bound<'py, PyString>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.passed.get_or_insert_with(|| PyDict::new(value.py())).set_item(keyword, value)
    }

    /// Returns the keywords for the library, with the mask if there is one, in a new dictionary.
    pub(super) fn with_mask(&self, mask: Option<Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let passed = self.passed.as_ref().map(|passed| passed.copy()).transpose()?;
        let Some(mask) = mask else { return Ok(passed) };
        let all = passed.unwrap_or_else(|| PyDict::new(mask.py()));
        all.set_item("where", mask)?;
        Ok(Some(all))
    }
}

/// Parses `out`: an array, or a tuple with an array or None for each result.
fn parse_out<'py>(value: &Bound<'py, PyAny>) -> SmallVec<[Option<Bound<'py, PyAny>>; 2]> {
    let given = |value: Bound<'py, PyAny>| Some(value).filter(|value| !value.is_none());
    let parse_out: SmallVec<[Option<Bound<'py, PyAny>>; 2]> = match value.cast::<PyTuple>() {
        Ok(parse_out) => parse_out.iter().map(given).collect(),
        Err(_) => SmallVec::from_iter([given(value.clone())]),
    };
    if parse_out.iter().all(Option::is_none) { SmallVec::new() } else { parse_out }
}

/// The error for None as a mask, of which NumPy makes False.
#[cold]
fn no_mask() -> PyErr {
    let error = ArgumentError::new("where", &"an array of bools, or True for all elements", &"None");
    new_error::<PyTypeError>(error.with_fix(&"leave it out for all elements"))
}

fn is_true(value: &Bound<'_, PyAny>) -> bool {
    value.cast_exact::<PyBool>().is_ok_and(|value| value.is_true())
}

/// Whether a value is NumPy's placeholder `np._NoValue`: its functions pass it on for a keyword that the caller did not give.
fn is_no_value(value: &Bound<'_, PyAny>) -> bool {
    if value.is_none() || value.is_exact_instance_of::<PyBool>() || value.is_exact_instance_of::<PyInt>() {
        return false;
    }
    let ty = value.get_type();
    ty.name().is_ok_and(|name| name == "_NoValueType")
        && getattr::module_of(&ty).is_some_and(|module| module.starts_with("numpy"))
}

/// Rejects any `order` but NumPy's default, which leaves the layout to the operands.
fn check_order(value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.cast::<PyString>().is_ok_and(|order| order.to_string_lossy() == "K") {
        return Ok(());
    }
    let fix = "a result has the first tensor's layout; for another one pass a tensor as out=";
    Err(new_error::<PyValueError>(ArgumentError::new("order", &"'K'", &args::shown(value)).with_fix(&fix)))
}
