//! `ufunc(a, b, ...)` by labels.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::arithmetic::LabelledShape;
use crate::dtype::DType;
use crate::layout::Metadata;
use crate::python::convert::dtype;
use crate::python::interrupt::{answer, is_interrupt};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export;
use crate::python::module::ufunc::dtypes::{self, Results};
use crate::python::module::ufunc::keywords::Keywords;
use crate::python::module::ufunc::library::ArrayLibrary;
use crate::python::module::ufunc::operands::Operands;
use crate::python::module::ufunc::outputs::{self, Output, Outputs};
use crate::python::module::ufunc::{Method, name};

/// Computes element by element; `None` if an operand or output defines its own `__array_ufunc__`.
pub(super) fn call<'py>(
    ufunc: &Bound<'py, PyAny>,
    inputs: &[Bound<'py, PyAny>],
    keywords: &Keywords<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    computed(ufunc, inputs, keywords).or_else(|error| compared(ufunc, inputs, keywords, error).map(Some))
}

/// Compares a field of the host with an array of elements that no field has, such as text, dates and objects, by `==` or `!=`: for
/// NumPy what cannot be compared is not equal. `error` is that of the computation by label.
#[cold]
fn compared<'py>(
    ufunc: &Bound<'py, PyAny>,
    inputs: &[Bound<'py, PyAny>],
    keywords: &Keywords<'py>,
    error: PyErr,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let sign = match &*name(ufunc)? {
        _ if is_interrupt(py, &error) => return Err(error),
        "equal" => CompareOp::Eq,
        "not_equal" => CompareOp::Ne,
        _ => return Err(error),
    };
    let [first, second] = inputs else { return Err(error) };
    let (field, other) = match (first.cast_exact::<PyTensor>(), second.cast_exact::<PyTensor>()) {
        (Ok(field), Err(_)) => (field, second),
        (Err(_), Ok(field)) => (field, first),
        _ => return Err(error),
    };
    let found = field.get().0.descriptor();
    let is_plain = keywords.out.is_empty() && keywords.mask.is_none() && keywords.passed.is_none();
    let has_elements = match other.cast_exact::<PyUntypedArray>() {
        Ok(array) => dtype::find(&array.dtype())?.is_some(),
        Err(_) => true,
    };
    if has_elements || !is_plain || !found.device().is_host_readable() {
        return Err(error);
    }
    let Some(equal) = answer(py, export::numpy::view_of(field)?.rich_compare(other, sign))? else { return Err(error) };
    let mut equal = export::numpy::cast(&equal, DType::BOOL, "operand")?;
    if equal.descriptor().shape() != found.shape() {
        return Err(error);
    }
    let mut metadata = Metadata::default().with_dims(field.get().0.dims());
    if let Some(halo) = found.halo() {
        metadata = metadata.with_halo(halo);
    }
    if let Some(origin) = found.origin() {
        metadata = metadata.with_origin(origin);
    }
    equal.relabel(metadata)?;
    Ok(PyTensor::create(py, equal)?.into_any())
}

fn computed<'py>(
    ufunc: &Bound<'py, PyAny>,
    inputs: &[Bound<'py, PyAny>],
    keywords: &Keywords<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(mut operands) = Operands::read(inputs, keywords.mask.as_ref())? else { return Ok(None) };
    let Some(mut outputs) = Outputs::read(&keywords.out)? else { return Ok(None) };
    operands.label(&outputs.labelled())?;
    let joined = operands.joined()?;
    let space = outputs.space(&joined)?;
    outputs.check_halos(&operands)?;
    let library = ArrayLibrary::choose(&operands, &outputs)?;
    // New results have the dimension order of the inputs, also if an output has another order.
    let own = if outputs.0.is_empty() { joined } else { LabelledShape::broadcast(&[joined, space.clone()])? };
    let mut made = Results::new();
    if outputs.0.is_empty() || outputs.0.iter().any(|output| matches!(output, Output::New)) {
        made = dtypes::of_results(ufunc, Method::Call, &operands.inputs, keywords.passed.as_ref())?;
        outputs.0.resize_with(made.len(), || Output::New);
    }
    let task = Task { operands, outputs, own, space, made, library };
    let computed = compute(ufunc, keywords, &task);
    task.operands.done(ufunc.py(), computed).map(Some)
}

/// A computation that is ready to run.
struct Task<'py> {
    operands: Operands<'py>,
    outputs: Outputs<'py>,
    /// Labels and sizes of new results.
    own: LabelledShape,
    /// Labels and sizes to compute in.
    space: LabelledShape,
    /// The element types of new results, by position.
    made: Results,
    library: ArrayLibrary<'py>,
}

fn compute<'py>(ufunc: &Bound<'py, PyAny>, keywords: &Keywords<'py>, task: &Task<'py>) -> PyResult<Bound<'py, PyAny>> {
    let Task { operands, outputs, own, space, made, library } = task;
    let py = ufunc.py();
    let mut inputs = SmallVec::<[Bound<'py, PyAny>; 3]>::new();
    for input in &operands.inputs {
        inputs.push(library.operand(input, space)?);
    }
    let mut arrays = SmallVec::<[Bound<'py, PyAny>; 2]>::new();
    let mut results = SmallVec::<[Bound<'py, PyAny>; 2]>::new();
    let mut written = SmallVec::<[_; 2]>::new();
    for (place, output) in outputs.0.iter().enumerate() {
        let tensor = match output {
            Output::Given { array, .. } => array.tensor.clone(),
            Output::New => outputs::make(py, &library.spec(outputs::spec(own, made[place], operands, outputs)?))?,
        };
        let array = library.output(&tensor, space)?;
        results.push(match output {
            Output::Given { object, .. } => object.clone(),
            Output::New if operands.are_unlabelled => array.clone(),
            Output::New => tensor.clone().into_any(),
        });
        arrays.push(array);
        written.push(tensor);
    }
    let mask = operands.mask.as_ref().map(|mask| library.operand(mask, space)).transpose()?;
    library.call(ufunc, &inputs, &arrays, keywords.with_mask(mask)?.as_ref(), &written)?;
    match results.len() {
        1 => Ok(results.remove(0)),
        _ => Ok(PyTuple::new(py, results)?.into_any()),
    }
}
