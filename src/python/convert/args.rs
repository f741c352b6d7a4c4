//! Arguments from Python: numbers, sequences, labels, streams; each error names the argument.

use std::ops::IndexMut;

use numpy::npyffi::NpyTypes;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyIterator, PySet, PyString, PyTuple};

use crate::device::Device;
use crate::dims::Dims;
use crate::error::{DimsError, ExchangeError, LayoutError};
use crate::layout::{Extents, Halo, MAX_NDIM};
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::repr;
use crate::python::ffi::new_error::{ArgumentError, new_error, unexpected_keyword};
use crate::python::ffi::numpy_api;
use crate::python::own_classes;

/// Converts anything with `__index__` to an integer, except bools: as a size or a position they are a mistake, and NumPy
/// refuses them too.
pub fn int(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !value.is_exact_instance_of::<PyInt>() && is_bool(value) {
        return Err(not_an_integer(argument, value));
    }
    value.extract().map_err(|error: PyErr| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            return LayoutError::new(argument, &"an integer of 64 bits", &shown(value)).into();
        }
        if error.is_instance_of::<PyTypeError>(py) {
            return not_an_integer(argument, value);
        }
        error
    })
}

/// The error for a value of another type.
#[cold]
pub fn wrong_type(argument: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    new_error::<PyTypeError>(ArgumentError::new(argument, &expected, &shown(value)))
}

/// The error for an argument that is not an integer.
#[cold]
pub fn not_an_integer(argument: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let whole = value.cast::<PyFloat>().ok().map(|float| float.value()).filter(|float| float.fract() == 0.0);
    let fix = whole.map_or_else(String::new, |whole| format!("write {whole:.0}"));
    new_error::<PyTypeError>(ArgumentError::new(argument, &"an integer", &shown(value)).with_fix(&fix))
}

/// Returns the iterator of an object; `None` if it has none. What else its `__iter__` raises reaches the caller, as Ctrl+C.
pub fn iterator<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyIterator>>> {
    match value.try_iter() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns what a value was converted to; `None` if it has another type, or does not fit. What else its methods raise
/// reaches the caller.
pub fn if_converted<T>(py: Python<'_>, converted: PyResult<T>) -> PyResult<Option<T>> {
    match converted {
        Ok(found) => Ok(Some(found)),
        Err(error)
            if error.is_instance_of::<PyTypeError>(py)
                || error.is_instance_of::<PyValueError>(py)
                || error.is_instance_of::<PyOverflowError>(py) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Converts the entries of a sequence with one entry per dimension. Stops with an error after [`MAX_NDIM`] entries, as the
/// sequence may be endless.
fn entries<'py, T>(
    argument: &'static str,
    value: &Bound<'py, PyAny>,
    wrong: impl Fn(&Bound<'py, PyAny>) -> PyErr,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let mut found = Vec::new();
    for item in iterator(value)?.ok_or_else(|| wrong(value))? {
        if found.len() == MAX_NDIM {
            let kind = if argument == "dims" { ErrorKind::Dims } else { ErrorKind::Layout };
            let got = format_args!("more than {MAX_NDIM}");
            return Err(kind.error(ArgumentError::new(argument, &"one entry for each dimension", &got)));
        }
        found.push(read(&item?)?);
    }
    Ok(found)
}

/// Converts a sequence of integers.
pub fn ints(argument: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let mut found = Extents::new();
    append_ints(argument, value, &mut found)?;
    Ok(found)
}

/// As [`ints`], in place: moving a list takes longer than filling it.
pub(super) fn append_ints(argument: &'static str, value: &Bound<'_, PyAny>, found: &mut Extents) -> PyResult<()> {
    if argument == "layout" && value.is_instance_of::<PyString>() {
        let error = LayoutError::new("layout", &"the rank of each dimension's stride", &shown(value));
        return Err(error.with_fix(&"C and F order are presets: backend='C'").into());
    }
    match value.cast_exact::<PyTuple>() {
        Ok(tuple) if tuple.len() <= MAX_NDIM => {
            for item in tuple.iter_borrowed() {
                found.push(int(argument, &item)?);
            }
        }
        _ => {
            let wrong = |value: &Bound<'_, PyAny>| {
                let expected = match argument {
                    "shape" => "the sizes of the dimensions, as in (6, 5)",
                    "origin" | "aligned_index" | "layout" => "one integer for each dimension",
                    _ => "a sequence of integers",
                };
                wrong_type(argument, expected, value)
            };
            if is_no_sequence(value) {
                return Err(wrong(value));
            }
            found.extend_from_slice(&entries(argument, value, wrong, |item| int(argument, item))?);
        }
    }
    Ok(())
}

/// Whether an object has entries, but not one for each dimension in their order: text, a dictionary, a set.
fn is_no_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyDict>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
}

/// What a halo is written as.
const WIDTHS: &str = "an integer or a pair (lower, upper) for each dimension";

/// Converts widths, as of a halo: per dimension one for both sides, or a pair `(lower, upper)`. `ndim` is for the error message.
pub fn halo(argument: &'static str, value: &Bound<'_, PyAny>, ndim: Option<usize>) -> PyResult<Halo> {
    if is_no_sequence(value) {
        return Err(one_for_all(argument, value, ndim));
    }
    let width = |item: &Bound<'_, PyAny>| width(argument, item);
    Ok(Halo::from_vec(entries(argument, value, |value| one_for_all(argument, value, ndim), width)?))
}

/// Converts one width for both sides, or a pair `(lower, upper)`.
fn width(argument: &'static str, item: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    let wrong = || wrong_type(argument, WIDTHS, item);
    let named = |error: PyErr| if error.is_instance_of::<PyTypeError>(item.py()) { wrong() } else { error };
    // Asking an integer for its iterator makes an error, which takes longer than all else.
    if item.is_exact_instance_of::<PyInt>() || iterator(item)?.is_none() {
        let both = int(argument, item).map_err(named)?;
        return Ok((both, both));
    }
    match ints(argument, item).map_err(named)?.as_slice() {
        [lower, upper] => Ok((*lower, *upper)),
        _ => Err(wrong()),
    }
}

/// Converts widths as [`halo`] does, or a mapping of labels to them; dimensions that it leaves out have those of `others`. A
/// sequence may not have the last `data` entries, those of a sub-array type.
pub fn halo_by_label(
    argument: &'static str,
    value: &Bound<'_, PyAny>,
    dims: &Dims,
    data: usize,
    others: impl FnOnce() -> Halo,
) -> PyResult<Halo> {
    match mapping(value) {
        Some(mapping) => by_label(argument, mapping, dims, others(), width),
        None => halo(argument, value, Some(dims.len() - data)),
    }
}

/// Converts integers as [`ints`] does, or a mapping of labels to them; dimensions that it leaves out have those of `others`.
pub fn ints_by_label(
    argument: &'static str,
    value: &Bound<'_, PyAny>,
    dims: &Dims,
    others: impl FnOnce() -> Extents,
) -> PyResult<Extents> {
    match mapping(value) {
        Some(mapping) => by_label(argument, mapping, dims, others(), int),
        None => ints(argument, value),
    }
}

/// Returns the argument as a mapping, if it is one.
pub fn mapping<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyMapping>> {
    // Most arguments are tuples, and Python decides what is a mapping by code in Python.
    if value.is_exact_instance_of::<PyTuple>() { None } else { value.cast().ok() }
}

/// Replaces the entries of the dimensions that a mapping names by label.
fn by_label<'py, T: Copy, C: IndexMut<usize, Output = T>>(
    argument: &'static str,
    mapping: &Bound<'py, PyMapping>,
    dims: &Dims,
    mut all: C,
    read: impl Fn(&'static str, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<C> {
    for item in mapping.items()?.try_iter()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let text = label(&key)?.ok_or_else(|| not_a_label(argument, &key))?;
        let wrong = || DimsError::new(argument, &format_args!("labels of dims ({dims})"), &shown(&key));
        let axis = dims.position(&text).ok_or_else(wrong)?;
        all[axis] = read(argument, &value)?;
    }
    Ok(all)
}

/// The error for a halo that is not a sequence.
#[cold]
fn one_for_all(argument: &str, value: &Bound<'_, PyAny>, ndim: Option<usize>) -> PyErr {
    let fix = match (value.extract::<i64>(), ndim) {
        // A comma makes a tuple of one entry.
        (Ok(width), Some(1)) => format!("write {argument}=({width},)"),
        (Ok(width), Some(ndim)) => format!("write {argument}=({})", vec![width.to_string(); ndim].join(", ")),
        _ => String::new(),
    };
    new_error::<PyTypeError>(ArgumentError::new(argument, &WIDTHS, &shown(value)).with_fix(&fix))
}

/// Converts labels: a text, as `labels_of_text`, or a sequence of labels.
pub fn dims(value: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let wrong =
        |what: &Bound<'_, PyAny>| DimsError::new("dims", &"a string or a sequence of labels", &shown(what)).into();
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        return Err(wrong(value));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return labels_of_text(text);
    }
    let label = |item: &Bound<'_, PyAny>| label(item)?.ok_or_else(|| not_a_label("dims", item));
    Ok(Dims::parse(entries("dims", value, wrong, label)?)?)
}

/// Converts a text: labels of one capital letter or digit each, or separated by blanks, or else one label.
fn labels_of_text(text: &Bound<'_, PyString>) -> PyResult<Dims> {
    let all = text.to_cow()?;
    let wrong = |what: String| ErrorKind::Dims.error(format!("{what}{}", both_spellings(&all)));
    if all.contains(',') {
        return Err(wrong(format!("dims: {} has a comma", shown(text.as_any()))));
    }
    let are_letters = all.chars().all(|letter| letter.is_uppercase() || letter.is_ascii_digit());
    let labels: Vec<String> = if are_letters {
        all.chars().map(String::from).collect()
    } else {
        all.split_whitespace().map(String::from).collect()
    };
    if labels.len() > MAX_NDIM {
        return Err(wrong(format!("dims: more than {MAX_NDIM} labels")));
    }
    Dims::parse(labels).map_err(|error| wrong(error.to_string()))
}

/// How several labels are written, for a text that was meant so: `xy` is one label, and so is each part between commas.
#[cold]
pub fn both_spellings(text: &str) -> String {
    let labels: Vec<String> = if text.contains(',') {
        text.split(|letter: char| letter == ',' || letter.is_whitespace()).map(str::to_owned).collect()
    } else if text.contains(char::is_whitespace) || !text.contains(char::is_lowercase) {
        return String::new();
    } else {
        text.chars().map(String::from).collect()
    };
    let labels: Vec<&String> = labels.iter().filter(|label| !label.is_empty()).collect();
    if labels.len() < 2 || labels.len() > MAX_NDIM {
        return String::new();
    }
    let quoted: Vec<String> = labels.iter().map(|label| shown_label(label)).collect();
    let joined = shown_label(&labels.iter().map(|label| label.as_str()).collect::<Vec<_>>().join(" "));
    format!("; several labels are a sequence or separated by blanks: dims=({}) or dims={joined}", quoted.join(", "))
}

/// A label as Python would write it, cut off after 24 characters.
fn shown_label(label: &str) -> String {
    let start: String = label.chars().take(24).collect();
    if start.len() < label.len() { format!("{start:?}…") } else { format!("{label:?}") }
}

/// The text of a label: a string, or an integer from 0 for a data dimension; `None` for anything else.
pub fn label(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(text.to_cow()?.into_owned()));
    }
    let number: Option<u32> = if is_bool(value) { None } else { if_converted(value.py(), value.extract())? };
    Ok(number.map(|number| number.to_string()))
}

/// Whether a value is a bool of Python or NumPy. Python treats its bools as integers, and so did NumPy before 2.3 with its
/// own.
pub fn is_bool(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBool>() || numpy_api::is_scalar(value, NpyTypes::PyBoolArrType_Type)
}

/// The error for a value that is not a label.
#[cold]
pub fn not_a_label(source: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let expected = "a label, which is a non-empty string, or an integer of 0 or more for a data dimension";
    DimsError::new(source, &expected, &shown(value)).into()
}

/// Rejects a stream for host memory.
pub fn check_stream(stream: Option<&Bound<'_, PyAny>>, device: Device) -> PyResult<()> {
    match stream {
        Some(stream) if !stream.is_none() && device == Device::CPU => {
            let allowed = "None on the host, which has no streams";
            Err(ExchangeError::new("stream", &allowed, &shown(stream)).into())
        }
        _ => Ok(()),
    }
}

/// Converts True or False.
pub fn flag(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| wrong_type(argument, "True or False", value))
}

/// Converts a string.
pub fn string<'a, 'py>(argument: &str, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    value.cast().map_err(|_| wrong_type(argument, "a string", value))
}

/// Rejects keywords that a function does not have: `hints` says what to write in place of those of other libraries.
pub fn no_keywords(
    function: &str,
    others: Option<&Bound<'_, PyDict>>,
    hints: &[(&str, &str)],
    known: &[&str],
) -> PyResult<()> {
    let Some((name, _)) = others.and_then(|others| others.iter().next()) else { return Ok(()) };
    let text = name.cast::<PyString>()?.to_string_lossy();
    Err(unexpected_keyword(name.py(), function, &text, hints, known))
}

/// Returns the position of a string among the allowed words.
pub fn choice(argument: &str, value: &Bound<'_, PyAny>, words: &[&str]) -> PyResult<usize> {
    let word = value.cast::<PyString>().ok().map(|word| word.to_string_lossy().into_owned());
    let found = word.and_then(|word| words.iter().position(|known| *known == word));
    found.ok_or_else(|| {
        let mut allowed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let last = allowed.pop().unwrap_or_default();
        let expected = format_args!("{} or {last}", allowed.join(", "));
        new_error::<PyValueError>(ArgumentError::new(argument, &expected, &shown(value)))
    })
}

/// Converts the argument `copy`: True copies always, False never, None if needed. 1 and 0 are True and False, as in NumPy.
pub fn copy(value: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
    match (value.extract::<Option<bool>>(), value.extract::<u8>()) {
        (Ok(copy), _) => Ok(copy),
        (_, Ok(number @ (0 | 1))) => Ok(Some(number == 1)),
        _ => Err(wrong_type("copy", "None, True or False", value)),
    }
}

/// Converts a shape: a sequence of integers, or one integer for one dimension.
pub fn shape(value: &Bound<'_, PyAny>) -> PyResult<Extents> {
    let mut found = Extents::new();
    append_shape(value, &mut found)?;
    Ok(found)
}

/// As [`shape`], in place.
pub fn append_shape(value: &Bound<'_, PyAny>, found: &mut Extents) -> PyResult<()> {
    if value.is_exact_instance_of::<PyInt>() {
        found.push(int("shape", value)?);
        return Ok(());
    }
    // Arrays have `__index__` too, so a sequence is not tried as an integer.
    if value.cast_exact::<PyTuple>().is_ok() || iterator(value)?.is_some() {
        return append_ints("shape", value, found);
    }
    found.push(int("shape", value)?);
    Ok(())
}

/// An argument as an error message shows it, cut off after 80 characters.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = own_classes::text(value).or_else(|| repr::of(value));
    let text = text.unwrap_or_else(|| repr::of_class(&value.get_type()));
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
