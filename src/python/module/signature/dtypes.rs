//! The `dtype` argument of `FieldSpec`: one element type, several, or any.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

use crate::dtype::DType;
use crate::error::DTypeError;
use crate::python::convert::{args, dtype};

/// Converts the types allowed; none for any.
pub(super) fn parse(given: &Bound<'_, PyAny>) -> PyResult<Vec<DType>> {
    if given.is_none() {
        return Ok(Vec::new());
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_cow()?;
        let names: Vec<&str> = text.split('|').map(str::trim).collect();
        // "|u1" is NumPy's name of one type: types of one byte have no byte order.
        if names.len() > 1 && names.iter().all(|name| !name.is_empty()) {
            return names.iter().map(|name| one(PyString::new(given.py(), name).as_any())).collect();
        }
    } else if let Some(several) = sequence(given)? {
        if several.is_empty() {
            let expected = "at least one element type, or None for any";
            return Err(DTypeError::new("dtype", &expected, &"an empty sequence").into());
        }
        return several.iter().map(one).collect();
    }
    Ok(vec![one(given)?])
}

/// The entries of a tuple or list of element types. NumPy has other meanings for those with numbers or sequences inside: types
/// with a shape, and types of structures.
fn sequence<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if !given.is_instance_of::<PyTuple>() && !given.is_instance_of::<PyList>() {
        return Ok(None);
    }
    let entries: Vec<Bound<'py, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
    let other = |entry: &Bound<'py, PyAny>| {
        entry.is_instance_of::<PyInt>() || entry.is_instance_of::<PyTuple>() || entry.is_instance_of::<PyList>()
    };
    Ok(Some(entries).filter(|entries| !entries.iter().any(other)))
}

fn one(given: &Bound<'_, PyAny>) -> PyResult<DType> {
    let (element, components) = dtype::parse(given)?;
    if components.is_empty() {
        return Ok(element);
    }
    let error = DTypeError::new("dtype", &"a type of one element", &args::shown(given));
    Err(error.with_fix(&"label the dimensions of a sub-array in dims, as '0'").into())
}
