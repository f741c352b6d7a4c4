//! The nearest known name, for errors about unknown names.

use pyo3::intern;
use pyo3::prelude::*;

use crate::python::interrupt;

/// Names longer than this are not compared: the time grows with the square of the length.
const LONGEST: usize = 64;

/// Returns `"; did you mean 'float64'?"` if a known name is near, else an empty string.
#[cold]
pub fn did_you_mean<S: AsRef<str>>(py: Python<'_>, got: &str, known: impl IntoIterator<Item = S>) -> String {
    if got.len() > LONGEST {
        return String::new();
    }
    // An error of the search must not replace the error that the hint is for.
    let found = nearest(py, got, known).unwrap_or_else(|error| {
        interrupt::put_off(py, &error);
        None
    });
    found.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
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
