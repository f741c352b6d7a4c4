//! Values that NumPy converts to arrays, without what it would drop: masks, gradients.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::descriptor::Descriptor;
use crate::python::convert::dtype::named;
use crate::python::convert::errors::ErrorKind;
use crate::python::import::{
    Imported, Kind, Request, RequestAccess, describe, kind_of, masked, masked_points, refuse_grad_of_torch, refuse_mask,
};
use crate::python::interrupt::is_interrupt;

/// Converts a value to an array with NumPy. Rejects a masked point, and a PyTorch tensor that is more than its elements, also
/// inside lists: NumPy would drop the mask, or the gradient. Errors call the value `argument`.
pub fn as_array<'py>(value: &Bound<'py, PyAny>, argument: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (value,));
    let array = match array {
        Ok(array) => array,
        // Rows of different lengths.
        Err(error) if error.get_type(py).is(py.get_type::<PyValueError>()) => return Err(named(py, error, argument)),
        Err(error) => {
            // An object in a list raises it: PyTorch's tensors do not say of which argument.
            if !is_interrupt(py, &error) {
                refuse_more(value, argument, argument)?;
                refuse_inside(value, DEPTH, argument)?;
            }
            return Err(error);
        }
    };
    refuse_mask(value, argument)?;
    refuse_more(value, argument, argument)?;
    // Lists are nested no deeper than the array that NumPy has made of them: one may contain itself.
    refuse_inside(value, array.getattr(intern!(py, "ndim"))?.extract()?, argument)?;
    Ok(array)
}

/// How deep lists are searched that no array tells the depth of.
const DEPTH: usize = 2;

/// Rejects a list or an array that selects points, if it has a masked point, whose mask NumPy would drop.
pub fn refuse_masked_key(key: &Bound<'_, PyAny>) -> PyResult<()> {
    match masked_points(key)? {
        0 => refuse_inside(key, DEPTH, KEY),
        points => Err(masked_key(points)),
    }
}

const KEY: &str = "key";

#[cold]
fn masked_key(points: usize) -> PyErr {
    ErrorKind::Exchange.error(format!(
        "{KEY}: expected positions or a mask without masked points, got {points} masked; pass mask.filled(False), or \
         positions.compressed()"
    ))
}

/// Rejects arrays in lists and tuples that have more than their elements.
fn refuse_inside(value: &Bound<'_, PyAny>, depth: usize, argument: &str) -> PyResult<()> {
    let search = |entry: Bound<'_, PyAny>| {
        match masked_points(&entry)? {
            0 => refuse_more(&entry, argument, "tensor")?,
            points if argument == KEY => return Err(masked_key(points)),
            points => return Err(masked(&entry, points, &format!("{argument}: expected arrays"), "array")),
        }
        refuse_inside(&entry, depth - 1, argument)
    };
    if depth == 0 {
        Ok(())
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().try_for_each(search)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().try_for_each(search)
    } else {
        Ok(())
    }
}

/// Rejects a PyTorch tensor that is more than its elements, or has none. The fix in the message calls it `part`.
fn refuse_more(value: &Bound<'_, PyAny>, argument: &str, part: &str) -> PyResult<()> {
    if kind_of(value)? != Kind::Torch {
        return Ok(());
    }
    let mut descriptor = Descriptor::BLANK;
    let looked = refuse_grad_of_torch(value)
        .and_then(|()| describe(value, &Request::new(RequestAccess::Read), &mut Imported::new(&mut descriptor)));
    looked.map_err(|error| ErrorKind::of_part(value.py(), argument, part, error))
}
