//! The nearest known name, for errors about unknown names.

#[cfg(feature = "signature")]
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

#[cfg(feature = "signature")]
use crate::python::ffi::new_error::new_error;

/// Names longer than this are not compared: the time grows with the square of the length.
const LONGEST: usize = 64;

/// Returns `"; did you mean 'float64'?"` if a known name is near, else an empty string.
#[cold]
pub fn did_you_mean<S: AsRef<str>>(py: Python<'_>, got: &str, known: impl IntoIterator<Item = S>) -> String {
    if got.len() > LONGEST {
        return String::new();
    }
    // An error of the search must not replace the error that the hint is for.
    nearest(py, got, known).ok().flatten().map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// Returns the error for a keyword that `function` does not have, with what to write in its place: `hints` has the words of
/// other libraries; else the nearest of the known names, or all of them.
#[cfg(feature = "signature")]
#[cold]
pub fn unexpected_keyword(py: Python<'_>, function: &str, got: &str, hints: &[(&str, &str)], known: &[&str]) -> PyErr {
    let hint = match hints.iter().find(|(word, _)| *word == got) {
        Some((_, hint)) => format!("; {hint}"),
        None => match did_you_mean(py, got, known) {
            nearest if nearest.is_empty() => format!("; allowed are {}", known.join(", ")),
            nearest => nearest,
        },
    };
    new_error::<PyTypeError>(format!("{function}() got an unexpected keyword argument '{got}'{hint}"))
}

/// The nearest name by `difflib`, ignoring case.
fn nearest<S: AsRef<str>>(py: Python<'_>, got: &str, known: impl IntoIterator<Item = S>) -> PyResult<Option<String>> {
    let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
    let lowered: Vec<String> = known.iter().map(|name| name.to_lowercase()).collect();
    let search = py.import(intern!(py, "difflib"))?.getattr(intern!(py, "get_close_matches"))?;
    let found: Vec<String> = search.call1((got.to_lowercase(), &lowered, 1))?.extract()?;
    let place = found.first().and_then(|name| lowered.iter().position(|other| other == name));
    Ok(place.map(|place| known[place].clone()))
}
