//! `ufunc.reduce(a, ...)` by labels.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arithmetic::LabelledShape;
use crate::device::Device;
use crate::error::DimsError;
use crate::python::convert::args;
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export;
use crate::python::module::ufunc::keywords::Keywords;
use crate::python::module::ufunc::library::ArrayLibrary;
use crate::python::module::ufunc::operands::{Array, LabelSource, Operand, Operands};
use crate::python::module::ufunc::outputs::{self, Output, Outputs};
use crate::python::module::ufunc::{Method, dtypes, name};
use crate::tensor::{Index, Tensor};

pub(crate) type Axes = SmallVec<[usize; 6]>;

/// Reduces an array along some of its dimensions; `None` if an operand defines its own `__array_ufunc__`.
pub(super) fn reduce<'py>(
    ufunc: &Bound<'py, PyAny>,
    inputs: &[Bound<'py, PyAny>],
    keywords: &Keywords<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = ufunc.py();
    let [input] = inputs else {
        return Err(new_error::<PyTypeError>(format!("reduce: expected one array, got {}", inputs.len())));
    };
    let Some(mut operands) = Operands::read(std::slice::from_ref(input), keywords.mask.as_ref())? else {
        return Ok(None);
    };
    if let Operand::Number(number) = &operands.inputs[0] {
        let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (number,))?;
        let Some(array) = Array::read(&array, Device::CPU)? else { return Ok(None) };
        operands.inputs[0] = Operand::Array(array);
    }
    let Some(mut outputs) = Outputs::read(&keywords.out)? else { return Ok(None) };
    if let Some(Output::Given { array, .. }) = outputs.0.first()
        && array.own_tensor().is_some()
        && operands.arrays().all(|array| array.labels == LabelSource::Unknown && array.tensor().descriptor().ndim() > 0)
    {
        let device = array.tensor().descriptor().device();
        if !device.is_host_readable() {
            return Err(ErrorKind::Device.error(format!(
                "out: expected a field on the host, where the array is, got one on {device}; assign the result: \
                 field[...] = numpy.{}.reduce(array, axis=...)",
                name(ufunc)?
            )));
        }
        let found = by_position(ufunc, input, keywords, &array.tensor);
        return operands.done(py, found.map(Some));
    }
    operands.label(&[])?;
    let Operand::Array(array) = &operands.inputs[0] else { return Ok(None) };
    let whole = LabelledShape::of(array.tensor());
    let axes = axes(array.tensor(), keywords.axis.as_ref())?;
    let result = whole.reduced(&axes, keywords.keepdims)?;
    outputs.space(&result)?;
    outputs.check_halos(&operands)?;
    let library = ArrayLibrary::choose(&operands, &outputs)?;
    let array = library.operand(&operands.inputs[0], &whole)?;
    let mask = operands.mask.as_ref().map(|mask| library.operand(mask, &whole)).transpose()?;
    let all = PyDict::new(py);
    if let Some(passed) = keywords.with_mask(mask)? {
        all.update(passed.as_mapping())?;
    }
    all.set_item(intern!(py, "axis"), PyTuple::new(py, &axes)?)?;
    all.set_item(intern!(py, "keepdims"), keywords.keepdims)?;
    let (target, object, repeated) = match outputs.0.first() {
        Some(Output::Given { object, array }) => {
            let target = PyTensor::create(py, first_of(array.tensor(), &result)?)?;
            let repeated = (target.get().0.descriptor().size() != array.tensor().descriptor().size()).then_some(array);
            (target, object.clone(), repeated)
        }
        _ => {
            let dtype = dtypes::of_results(ufunc, Method::Reduce, &operands.inputs, keywords.passed.as_ref())?[0];
            let spec = library.spec(outputs::spec(&result, dtype, &operands, &outputs)?);
            let tensor = outputs::make(py, &spec)?;
            (tensor.clone(), tensor.into_any(), None)
        }
    };
    let out = library.output(&target, &result)?;
    all.set_item(intern!(py, "out"), out)?;
    library.reduce(ufunc, &array, &all, std::slice::from_ref(&target))?;
    if let Some(array) = repeated {
        repeat(&library, &target, array)?;
    }
    operands.done(py, Ok(Some(object)))
}

/// Reduces an array without labels into a tensor by position, and returns NumPy's array on the tensor's memory: `np.mean` and
/// `np.var` go on with the result, which has to be one of NumPy's.
fn by_position<'py>(
    ufunc: &Bound<'py, PyAny>,
    input: &Bound<'py, PyAny>,
    keywords: &Keywords<'py>,
    output: &Bound<'py, PyTensor>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let all = keywords.with_mask(keywords.mask.clone())?.unwrap_or_else(|| PyDict::new(py));
    if let Some(axis) = &keywords.axis {
        all.set_item(intern!(py, "axis"), axis)?;
    }
    all.set_item(intern!(py, "keepdims"), keywords.keepdims)?;
    let out = export::numpy::view_of(output)?;
    all.set_item(intern!(py, "out"), &out)?;
    ufunc.call_method(intern!(py, "reduce"), (input,), Some(&all))?;
    Ok(out)
}

/// The part of an output that a result fills: the first position of each dimension along which the result is repeated. For
/// an output without elements, a temporary that is thrown away.
fn first_of(output: &Tensor, result: &LabelledShape) -> PyResult<Tensor> {
    if output.descriptor().size() == 0 && !result.shape().contains(&0) {
        let spec = result.spec(output.descriptor().dtype(), &[])?;
        return Ok(Tensor::empty(&spec.with_device(output.descriptor().device()))?);
    }
    let dims = output.dims();
    let part = |(label, extent): (_, &i64)| match result.dims().iter().position(|known| known == label) {
        None => Index::At(0),
        Some(at) if result.shape()[at] != *extent => Index::Range { start: 0, len: 1, step: 1 },
        Some(_) => Index::All,
    };
    let index: SmallVec<[Index; 6]> = dims.iter().zip(output.descriptor().shape()).map(part).collect();
    let part = output.view(&index)?;
    Ok(part.arranged(result.dims(), result.shape())?)
}

/// Repeats the filled part of an output in all of it.
fn repeat<'py>(library: &ArrayLibrary<'py>, part: &Bound<'py, PyTensor>, array: &Array<'py>) -> PyResult<()> {
    if array.tensor().descriptor().size() == 0 {
        return Ok(());
    }
    let whole = LabelledShape::of(array.tensor());
    let from = library.input(part, &whole)?;
    library.assign(&library.output(&array.tensor, &whole)?, &from, &array.tensor)
}

/// The axes to reduce along: a number or a label, or a tuple of them; all for None, the first if not given.
pub(crate) fn axes(tensor: &Tensor, given: Option<&Bound<'_, PyAny>>) -> PyResult<Axes> {
    let ndim = tensor.descriptor().ndim();
    let found: Axes = match given {
        None => (0..ndim.min(1)).collect(),
        Some(all) if all.is_none() => (0..ndim).collect(),
        Some(given) => match given.cast::<PyTuple>() {
            Ok(several) => several.iter().map(|one| axis(tensor, &one)).collect::<PyResult<_>>()?,
            // NumPy allows axis 0 or -1 for an array without dimensions.
            Err(_) if ndim == 0 && matches!(integer(given)?, Some(0 | -1)) => Axes::new(),
            Err(_) => SmallVec::from_elem(axis(tensor, given)?, 1),
        },
    };
    if let Some(twice) = (1..found.len()).find(|at| found[..*at].contains(&found[*at])) {
        let all = given.map_or_else(String::new, args::shown);
        return Err(
            DimsError::new("axis", &"each axis once", &format_args!("axis {} twice in {all}", found[twice])).into()
        );
    }
    Ok(found)
}

/// Several labels that were given as a text or a list, as they are written in a tuple.
pub(crate) fn labels_in(tensor: &Tensor, given: &Bound<'_, PyAny>) -> Option<String> {
    let (py, dims) = (given.py(), tensor.dims());
    // One more than there are labels: then some of them are not labels.
    let most = dims.len() + 1;
    let labels: Option<Vec<String>> = if let Ok(text) = given.cast::<PyString>() {
        Some(text.to_string_lossy().chars().take(most).map(String::from).collect())
    } else if let Ok(list) = given.cast_exact::<PyList>() {
        let label = |one: Bound<'_, PyAny>| Some(one.cast::<PyString>().ok()?.to_string_lossy().into_owned());
        list.iter().take(most).map(label).collect()
    } else {
        None
    };
    let labels = labels.unwrap_or_default();
    let mut axes: Vec<Option<usize>> = labels.iter().map(|label| dims.position(label)).collect();
    axes.sort_unstable();
    axes.dedup();
    if labels.len() < 2 || axes.len() < labels.len() || axes.contains(&None) {
        return None;
    }
    let shown: Vec<String> = labels.iter().map(|label| args::shown(PyString::new(py, label).as_any())).collect();
    Some(shown.join(", "))
}

fn integer(given: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    args::if_converted(given.py(), given.extract())
}

/// An axis: a number, negative ones count from the end, or a label.
pub(crate) fn axis(tensor: &Tensor, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    let ndim = tensor.descriptor().ndim();
    let wrong = || -> PyErr {
        let expected = match ndim.checked_sub(1) {
            Some(last) => format!("-{ndim} to {last}, a label, or a tuple of these"),
            None => "0 or -1, as there are no dimensions".to_owned(),
        };
        let fix = labels_in(tensor, given).map_or_else(String::new, |labels| format!("write axis=({labels})"));
        let got = format_args!("{} for dims ({})", args::shown(given), tensor.dims());
        DimsError::new("axis", &expected, &got).with_fix(&fix).into()
    };
    if let Ok(label) = given.cast::<PyString>() {
        return tensor.dims().position(&label.to_cow()?).ok_or_else(wrong);
    }
    let got = integer(given)?.ok_or_else(wrong)?;
    let counted = if got < 0 { got.saturating_add(i64::try_from(ndim).unwrap_or(0)) } else { got };
    usize::try_from(counted).ok().filter(|axis| *axis < ndim).ok_or_else(wrong)
}
