//! Python's operators on tensors: those of `numpy.lib.mixins.NDArrayOperatorsMixin`, without NumPy's dispatch.

#![allow(unsafe_code, reason = "the interpreter calls the methods with raw pointers")]

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use crate::python::ffi::fastcall::{self, Definition};
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::ufunc::keywords::Keywords;
use crate::python::module::ufunc::operands::{Operands, has_own_ufunc_method};
use crate::python::module::ufunc::{call, generalized};

/// The position of the tensor in an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Left,
    Right,
    InPlace,
}

/// A C string of several parts.
macro_rules! text {
    ($($part:expr),+) => {
        match CStr::from_bytes_with_nul(concat!($($part),+, "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        }
    };
}

/// The methods of operators with two operands, each with the ufunc that computes it.
macro_rules! two_operands {
    ($($place:literal $ufunc:literal: $($name:literal $form:ident),+;)+) => {
        const UFUNCS: &[&str] = &[$($ufunc),+];
        static TWO_OPERANDS: &[Definition] = &[$($(
            Definition::of_one(
                text!("__", $name, "__"),
                text!("__", $name, "__($self, value, /)\n--\n\nCompute `numpy.", $ufunc, "` by label."),
                two::<$place, { Form::$form as u8 }>,
            )
        ),+),+];
    };
}

two_operands! {
    0 "add": "add" Left, "radd" Right, "iadd" InPlace;
    1 "subtract": "sub" Left, "rsub" Right, "isub" InPlace;
    2 "multiply": "mul" Left, "rmul" Right, "imul" InPlace;
    3 "true_divide": "truediv" Left, "rtruediv" Right, "itruediv" InPlace;
    4 "floor_divide": "floordiv" Left, "rfloordiv" Right, "ifloordiv" InPlace;
    5 "remainder": "mod" Left, "rmod" Right, "imod" InPlace;
    6 "power": "pow" Left, "rpow" Right, "ipow" InPlace;
    7 "left_shift": "lshift" Left, "rlshift" Right, "ilshift" InPlace;
    8 "right_shift": "rshift" Left, "rrshift" Right, "irshift" InPlace;
    9 "bitwise_and": "and" Left, "rand" Right, "iand" InPlace;
    10 "bitwise_xor": "xor" Left, "rxor" Right, "ixor" InPlace;
    11 "bitwise_or": "or" Left, "ror" Right, "ior" InPlace;
    12 "divmod": "divmod" Left, "rdivmod" Right;
    13 "less": "lt" Left;
    14 "less_equal": "le" Left;
    15 "equal": "eq" Left;
    16 "not_equal": "ne" Left;
    17 "greater": "gt" Left;
    18 "greater_equal": "ge" Left;
    // Rejected, with advice on what to do.
    19 "matmul": "matmul" Left, "rmatmul" Right, "imatmul" InPlace;
}

const EQUAL: usize = 15;
const NOT_EQUAL: usize = 16;
const MATMUL: usize = 19;

/// The methods of operators with one operand.
macro_rules! one_operand {
    ($($place:literal $ufunc:literal: $name:literal;)+) => {
        const UFUNCS_OF_ONE: &[&str] = &[$($ufunc),+];
        static ONE_OPERAND: &[Definition] = &[$(
            Definition::of_none(
                text!("__", $name, "__"),
                text!("__", $name, "__($self, /)\n--\n\nCompute `numpy.", $ufunc, "`."),
                one::<$place>,
            )
        ),+];
    };
}

one_operand! {
    0 "negative": "neg";
    1 "positive": "pos";
    2 "absolute": "abs";
    3 "invert": "invert";
}

/// Adds the operators to the type.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let ty = py.get_type::<PyTensor>();
    TWO_OPERANDS.iter().chain(ONE_OPERAND).try_for_each(|method| method.set_on(&ty))
}

/// NumPy's ufuncs, in the order of `names`; looked up once.
fn ufuncs<'a, 'py>(
    py: Python<'py>,
    names: &[&str],
    known: &'a PyOnceLock<Vec<Py<PyAny>>>,
) -> PyResult<&'a [Py<PyAny>]> {
    let find = || {
        let numpy = py.import("numpy")?;
        names.iter().map(|name| Ok(numpy.getattr(*name)?.unbind())).collect::<PyResult<_>>()
    };
    known.get_or_try_init(py, find).map(Vec::as_slice)
}

/// A method of two operands: the ufunc at position `PLACE`, in form `FORM`.
unsafe extern "C" fn two<const PLACE: usize, const FORM: u8>(
    slf: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    static KNOWN: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    // SAFETY: the interpreter's own arguments, attached.
    let (py, slf, value) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, slf), Bound::from_borrowed_ptr(py, value))
    };
    fastcall::run(py, || {
        let right = FORM == Form::Right as u8;
        let inputs = if right { [value, slf.clone()] } else { [slf.clone(), value] };
        let in_place = FORM == Form::InPlace as u8;
        let found = if PLACE == MATMUL {
            match Operands::read(&inputs, None)? {
                Some(_) => return Err(generalized(UFUNCS[PLACE])),
                None => None,
            }
        } else {
            let ufunc = ufuncs(py, UFUNCS, &KNOWN)?[PLACE].bind(py);
            let mut keywords = Keywords::default();
            if in_place {
                keywords.out.push(Some(slf));
            }
            match call::call(ufunc, &inputs, &keywords)? {
                None if has_own_ufunc_method(&inputs[usize::from(!right)])? => {
                    Some(dispatched(ufunc, &inputs, !right, &keywords)?)
                }
                found => found,
            }
        };
        let found = found.filter(|found| !found.is(py.NotImplemented()));
        match found {
            None if PLACE == EQUAL || PLACE == NOT_EQUAL => compared_by(PLACE == EQUAL, &inputs[1], &inputs[0]),
            None if in_place => Err(unsupported_in_place(UFUNCS[PLACE], &inputs[1])),
            found => Ok(found.unwrap_or_else(|| py.NotImplemented().into_bound(py))),
        }
    })
}

/// Returns what the other operand's class makes of `==` or `!=`. If it makes nothing of it, an array is an error, as for `<`: the
/// interpreter would compare the identity, and say False for equal elements.
#[cold]
fn compared_by<'py>(equal: bool, other: &Bound<'py, PyAny>, slf: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, ty) = (slf.py(), other.get_type());
    let undecided = py.NotImplemented().into_bound(py);
    let has = |name| getattr::on_type(&ty, name).is_some();
    if !has(intern!(py, "shape")) || !has(intern!(py, "dtype")) || !has(intern!(py, "__add__")) {
        return Ok(undecided);
    }
    let (name, sign) = if equal { (intern!(py, "__eq__"), "==") } else { (intern!(py, "__ne__"), "!=") };
    let found = ty.call_method1(name, (other, slf))?;
    if !found.is(&undecided) {
        return Ok(found);
    }
    let module = getattr::module_of(&ty).unwrap_or_default();
    let fix = if module.starts_with("dask") { "import dlfield.dask" } else { "compare two fields, or two arrays" };
    Err(new_error::<PyTypeError>(format!(
        "'{sign}' not supported between instances of 'dlfield.Tensor' and '{}.{}'; {fix}",
        module.split('.').next().unwrap_or_default(),
        ty.name()?
    )))
}

/// The error for an operand that cannot be computed into a tensor. After `NotImplemented` the interpreter would call the
/// operand's reflected operator, and bind the name on the left to its result.
#[cold]
fn unsupported_in_place(ufunc: &str, operand: &Bound<'_, PyAny>) -> PyErr {
    let ty = operand.get_type();
    let declines = getattr::on_type(&ty, intern!(operand.py(), "__array_ufunc__")).is_some_and(|rules| rules.is_none());
    let why = if declines {
        "it sets __array_ufunc__ = None, so only operators that are not in place support it"
    } else {
        "pass a tensor, an array or a number"
    };
    let name = ty.name().map_or_else(|_| ty.to_string(), |name| name.to_string());
    new_error::<PyTypeError>(format!("unsupported operand type(s) for {ufunc} in place: 'Tensor' and '{name}'; {why}"))
}

/// Calls `__array_ufunc__` of the second or first operand, which defines its own. In-place operators go through NumPy's
/// dispatch instead, which passes the tensor as `out`; the operand's reflected operator has no `out`.
#[cold]
fn dispatched<'py>(
    ufunc: &Bound<'py, PyAny>,
    inputs: &[Bound<'py, PyAny>; 2],
    second: bool,
    keywords: &Keywords<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    if let [Some(place)] = keywords.out.as_slice() {
        let out = PyDict::new(py);
        out.set_item("out", place)?;
        return ufunc.call(PyTuple::new(py, inputs)?, Some(&out));
    }
    let [one, two] = inputs;
    let other = if second { two } else { one };
    other.call_method1("__array_ufunc__", (ufunc, "__call__", one, two))
}

/// A method of one operand: the ufunc at position `PLACE`.
unsafe extern "C" fn one<const PLACE: usize>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    static KNOWN: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    // SAFETY: the interpreter's own arguments, attached.
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, slf))
    };
    fastcall::run(py, || {
        let ufunc = ufuncs(py, UFUNCS_OF_ONE, &KNOWN)?[PLACE].bind(py);
        Ok(call::call(ufunc, &[slf], &Keywords::default())?.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
    })
}
