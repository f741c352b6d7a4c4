//! The element types of results: NumPy's answers, cached.

use std::sync::{Mutex, PoisonError};

use numpy::PyArrayDescr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyTuple, PyType};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::python::convert::dtype;
use crate::python::module::ufunc::Method;
use crate::python::module::ufunc::operands::Operand;

/// One element type per result.
pub(super) type Results = SmallVec<[DType; 2]>;

/// What the element types of results depend on: the ufunc, and the types of its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    ufunc: usize,
    method: Method,
    /// For an array, the index of its element type plus 1; for a number, the address of its type; 0 after the last.
    operands: [usize; 3],
}

/// An answer of NumPy. It keeps the ufunc and the types of numbers alive, so that no other object gets their addresses.
struct CachedResults {
    key: Key,
    results: Results,
    _alive: SmallVec<[Py<PyAny>; 4]>,
}

/// Size of the cache; each key has one place in it.
const ENTRIES: usize = 128;

impl Key {
    /// The key of a call; `None` if NumPy decides by more than types.
    fn of(ufunc: &Bound<'_, PyAny>, method: Method, operands: &[Operand<'_>]) -> PyResult<Option<Key>> {
        let mut key = Key { ufunc: ufunc.as_ptr().addr(), method, operands: [0; 3] };
        if operands.len() > key.operands.len() {
            return Ok(None);
        }
        for (slot, operand) in key.operands.iter_mut().zip(operands) {
            *slot = match operand {
                Operand::Array(array) => array.tensor().descriptor().dtype().index() + 1,
                Operand::Number(number) if has_type_of_its_own(number)? => number.get_type_ptr().addr(),
                Operand::Number(_) => return Ok(None),
            };
        }
        Ok(Some(key))
    }

    fn place(&self) -> usize {
        let mix = |sum: usize, part: usize| (sum ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let first = self.ufunc ^ usize::from(self.method == Method::Reduce);
        let sum = self.operands.iter().fold(first, |sum, part| mix(sum, *part));
        (sum >> 32) % ENTRIES
    }
}

/// Whether the type of a number determines its element type.
fn has_type_of_its_own(number: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NUMBER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if number.is_exact_instance_of::<PyFloat>()
        || number.is_exact_instance_of::<PyInt>()
        || number.is_exact_instance_of::<PyBool>()
        || number.is_exact_instance_of::<PyComplex>()
    {
        return Ok(true);
    }
    number.is_instance(NUMBER.import(number.py(), "numpy", "number")?)
}

/// The element types that NumPy gives the results.
pub(super) fn of_results(
    ufunc: &Bound<'_, PyAny>,
    method: Method,
    operands: &[Operand<'_>],
    passed: Option<&Bound<'_, PyDict>>,
) -> PyResult<Results> {
    static TABLE: Mutex<[Option<CachedResults>; ENTRIES]> = Mutex::new([const { None }; ENTRIES]);
    let key = if passed.is_none() { Key::of(ufunc, method, operands)? } else { None };
    let Some(key) = key else { return infer(ufunc, method, operands, passed) };
    let place = key.place();
    {
        let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &table[place]
            && known.key == key
        {
            return Ok(known.results.clone());
        }
    }
    let results = infer(ufunc, method, operands, None)?;
    let numbers = operands.iter().filter_map(|operand| match operand {
        Operand::Number(number) => Some(number.get_type().into_any().unbind()),
        Operand::Array(_) => None,
    });
    let alive = std::iter::once(ufunc.clone().unbind()).chain(numbers).collect();
    let known = CachedResults { key, results: results.clone(), _alive: alive };
    let old = TABLE.lock().unwrap_or_else(PoisonError::into_inner)[place].replace(known);
    // Only now, without the lock: dropping this may run any code.
    drop(old);
    Ok(results)
}

/// Calls the ufunc on arrays without elements, to find the types of its results.
#[cold]
fn infer(
    ufunc: &Bound<'_, PyAny>,
    method: Method,
    operands: &[Operand<'_>],
    passed: Option<&Bound<'_, PyDict>>,
) -> PyResult<Results> {
    let py = ufunc.py();
    let mut tried = SmallVec::<[Bound<'_, PyAny>; 4]>::new();
    for operand in operands {
        tried.push(match operand {
            Operand::Number(number) => number.clone(),
            Operand::Array(array) => empty_array(py, array.tensor().descriptor().dtype(), method)?,
        });
    }
    let tried = PyTuple::new(py, tried)?;
    let found = match method {
        Method::Call => ufunc.call(tried, passed)?,
        Method::Reduce => {
            let keywords = match passed {
                Some(passed) => passed.copy()?,
                None => PyDict::new(py),
            };
            keywords.set_item(intern!(py, "axis"), 1)?;
            ufunc.call_method(intern!(py, "reduce"), tried, Some(&keywords))?
        }
    };
    let one = |result: &Bound<'_, PyAny>| {
        let descriptor = result.getattr(intern!(py, "dtype"))?.cast_into::<PyArrayDescr>()?;
        dtype::of_descriptor(&descriptor)
    };
    match found.cast::<PyTuple>() {
        Ok(several) => several.iter().map(|result| one(&result)).collect(),
        Err(_) => Ok(SmallVec::from_elem(one(&found)?, 1)),
    }
}

/// An array without elements; for a reduction, with a dimension to reduce along.
fn empty_array(py: Python<'_>, element: DType, method: Method) -> PyResult<Bound<'_, PyAny>> {
    let numpy = py.import(intern!(py, "numpy"))?;
    let element = dtype::to_numpy(py, element)?;
    match method {
        Method::Call => numpy.call_method1(intern!(py, "empty"), (0, element)),
        Method::Reduce => numpy.call_method1(intern!(py, "empty"), ((0, 1), element)),
    }
}
