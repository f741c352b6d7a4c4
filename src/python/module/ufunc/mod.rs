//! Arithmetic on tensors: `__array_ufunc__` and the operators. Dimensions are matched by label; `crate::arithmetic` plans
//! the result, and NumPy's ufunc, or CuPy's on a device, computes the elements on the same memory.

mod call;
mod dtypes;
mod keywords;
mod library;
mod operands;
mod operators;
mod outputs;
mod reduce;
mod sizes;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use self::keywords::Keywords;
pub(super) use self::operands::is_number;
pub(super) use self::operators::install;
pub(super) use self::reduce::{axes, axis, labels_in};
pub(super) use self::sizes::with_domain_hint;
use crate::python::convert::args;
use crate::python::ffi::new_error::{ArgumentError, new_error};
use crate::python::module::classes::tensor::PyTensor;

/// The method of a ufunc that is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Call,
    Reduce,
}

/// `Tensor.__array_ufunc__`.
pub(super) fn array_ufunc<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    inputs: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let method = match &*method.to_cow()? {
        "__call__" => Method::Call,
        "reduce" => Method::Reduce,
        other => {
            let argument = format!("{}.{other}", name(ufunc)?);
            let error = ArgumentError::new(&argument, &"arrays", &"tensors, which support calls and reduce");
            return Err(new_error::<PyTypeError>(error.with_fix(&ON_ARRAYS)));
        }
    };
    if !ufunc.getattr(intern!(py, "signature"))?.is_none() {
        return Err(generalized(&name(ufunc)?));
    }
    let inputs: operands::Inputs<'py> = inputs.iter().collect();
    let keywords = Keywords::read(method, keywords, || name(ufunc))?;
    let result = match method {
        Method::Call => call::call(ufunc, &inputs, &keywords)?,
        Method::Reduce => reduce::reduce(ufunc, &inputs, &keywords)?,
    };
    Ok(result.unwrap_or_else(|| py.NotImplemented().into_bound(py)))
}

/// Reduces a tensor by NumPy's ufunc of this name, along all dimensions if `axis` is None. `method` is the name of the tensor's
/// method, for errors.
pub(super) fn reduced<'py>(
    method: &str,
    ufunc: &str,
    tensor: &Bound<'py, PyTensor>,
    axis: Option<&Bound<'py, PyAny>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let ufunc = py.import(intern!(py, "numpy"))?.getattr(ufunc)?;
    let mut keywords = Keywords::read(Method::Reduce, keywords, || Ok(method.to_owned()))?;
    keywords.axis = Some(axis.map_or_else(|| py.None().into_bound(py), Bound::clone));
    let result = reduce::reduce(&ufunc, &[tensor.clone().into_any()], &keywords)?;
    // Only a mask or an output makes NumPy look for another implementation, which a method of tensors does not.
    result.ok_or_else(|| {
        let given = keywords.mask.iter().chain(keywords.out.iter().flatten()).map(|each| each.get_type().to_string());
        let got = given.collect::<Vec<_>>().join(" and ");
        new_error::<PyTypeError>(ArgumentError::new(method, &"arrays as where and out", &got))
    })
}

/// How a ufunc is called that tensors do not support.
const ON_ARRAYS: &str = "call it on arrays: to_numpy(), to_cupy()";

/// The error for a generalized ufunc, which works on more than single elements.
fn generalized(name: &str) -> PyErr {
    let got = "a generalized one, whose dimensions are not matched by label";
    new_error::<PyTypeError>(ArgumentError::new(name, &"an element-wise ufunc", &got).with_fix(&ON_ARRAYS))
}

/// A ufunc's name.
fn name(ufunc: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = ufunc.getattr(intern!(ufunc.py(), "__name__"))?;
    Ok(name.cast::<PyString>().map_or_else(|_| args::shown(&name), |name| name.to_string_lossy().into_owned()))
}
