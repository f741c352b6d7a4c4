//! `ufunc(a, b, ...)` by labels.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::ufunc::dtypes::Results;
use crate::ufunc::keywords::Keywords;
use crate::ufunc::library::ArrayLibrary;
use crate::ufunc::operands::Operands;
use crate::ufunc::outputs::{Output, Outputs};
use crate::ufunc::{Method, dtypes, outputs};
use dlfield::arithmetic::LabelledShape;

/// Computes element by element; `None` if an operand or output defines its own `__array_ufunc__`.
pub(super) fn call<'py>(
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
    // New results have the dimension order of the inputs, also beside an output in another order.
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
