//! `out`: the arrays for results.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arithmetic::LabelledShape;
use crate::arithmetic::halos::check_named_halos;
use crate::descriptor::read_only;
use crate::device::Device;
use crate::dims::{Dim, Dims};
use crate::dtype::DType;
use crate::error::{DimsError, LayoutError, Tuple};
use crate::layout::Spec;
use crate::python::convert::args;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::ufunc::operands::{Array, LabelSource, Operand, Operands, opts_out};
use crate::python::module::ufunc::sizes::wrong_output;
use crate::python::trace;
use crate::tensor::Tensor;

/// The destination of one result.
pub(super) enum Output<'py> {
    /// An array that was given.
    Given { object: Bound<'py, PyAny>, array: Array<'py> },
    /// A new tensor.
    New,
}

/// The destinations of the results; empty without `out`.
pub(super) struct Outputs<'py>(pub(super) SmallVec<[Output<'py>; 2]>);

impl<'py> Outputs<'py> {
    /// Reads `out`; `None` if one of the objects defines its own `__array_ufunc__`.
    pub(super) fn read(places: &[Option<Bound<'py, PyAny>>]) -> PyResult<Option<Outputs<'py>>> {
        let mut read = SmallVec::new();
        for place in places {
            let Some(object) = place else {
                read.push(Output::New);
                continue;
            };
            if object.cast_exact::<PyTensor>().is_err() && opts_out(object)? {
                return Ok(None);
            }
            let array = array(object)?;
            if array.tensor().descriptor().is_readonly() {
                return Err(read_only("out", "write to a copy() of it").into());
            }
            read.push(Output::Given { object: object.clone(), array });
        }
        Ok(Some(Outputs(read)))
    }

    /// Checks that the halos of all operands and given outputs agree.
    #[inline]
    pub(super) fn check_halos(&self, operands: &Operands<'py>) -> PyResult<()> {
        let all: SmallVec<[&Tensor; 4]> = operands.arrays().chain(self.given()).map(Array::tensor).collect();
        let name =
            |place| operands.named(|_| true).into_iter().nth(place).map_or_else(|| "out".to_owned(), |(name, _)| name);
        Ok(check_named_halos(&all, name)?)
    }

    /// The arrays that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &Array<'py>> {
        self.0.iter().filter_map(|output| if let Output::Given { array, .. } = output { Some(array) } else { None })
    }

    /// Labels and sizes of the tensors that were given.
    pub(super) fn labelled(&self) -> SmallVec<[LabelledShape; 2]> {
        let own = self.given().filter(|array| array.labels == LabelSource::Tensor);
        own.map(|array| LabelledShape::of(array.tensor())).collect()
    }

    /// Checks that the given outputs can hold a result, and returns the dimension order to compute in: that of the first
    /// given output. `result` has the labels and sizes of all inputs together.
    pub(super) fn space(&mut self, result: &LabelledShape) -> PyResult<LabelledShape> {
        let mut first: Option<LabelledShape> = None;
        for output in &mut self.0 {
            let Output::Given { array, .. } = output else { continue };
            if array.labels == LabelSource::Unknown {
                let dims = by_position(array.tensor().descriptor().shape(), first.as_ref().unwrap_or(result))?;
                array.set_labels(&dims, &[])?;
            }
            let found = LabelledShape::of(array.tensor());
            match &first {
                None => {
                    check(&found, result, array.own_tensor())?;
                    first = Some(found);
                }
                Some(first) => {
                    check(&found, first, array.own_tensor())?;
                    check(first, &found, None)?;
                }
            }
        }
        Ok(first.unwrap_or_else(|| result.clone()))
    }
}

/// Converts a given output: one of our tensors, or an array of NumPy or CuPy.
fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    if let Ok(tensor) = object.cast_exact::<PyTensor>() {
        return Ok(Array::of(tensor));
    }
    let found = if object.cast::<PyUntypedArray>().is_ok() || object.hasattr("__cuda_array_interface__")? {
        Array::read(object, Device::CPU)?
    } else {
        None
    };
    let wrong = || args::wrong_type("out", "a tensor, or an array of NumPy or CuPy", object);
    found.filter(|array| array.labels == LabelSource::Unknown).ok_or_else(wrong)
}

/// Checks that an output has all labels of a result, with its sizes. `tensor` is the output.
fn check(output: &LabelledShape, result: &LabelledShape, tensor: Option<&Tensor>) -> PyResult<()> {
    for (label, wanted) in result.dims().iter().zip(result.shape().iter().copied()) {
        let Some(at) = output.dims().iter().position(|known| known == label) else {
            let expected = format_args!("dims with all of ({}), those of the result", result.dims());
            let got = format_args!("({}) without {label}", output.dims());
            return Err(DimsError::new("out", &expected, &got).into());
        };
        let got = output.shape()[at];
        if got != wanted && wanted != 1 {
            return Err(wrong_output(tensor, label, got, wanted));
        }
    }
    Ok(())
}

/// The dims of an output without labels: the result's if it has the result's shape, else I, J, K.
fn by_position(shape: &[i64], result: &LabelledShape) -> PyResult<Dims> {
    if shape == result.shape() {
        return Ok(result.dims().clone());
    }
    if shape.len() == 3 && result.dims().iter().all(|label| matches!(label, Dim::I | Dim::J | Dim::K)) {
        return Ok(Dims::standard(3));
    }
    let (found, dims) = (Tuple(result.shape()), result.dims());
    let expected = format_args!(
        "an array of the result's shape {found}, for dims ({dims}), or of three dimensions I, J, K for labels among these"
    );
    Err(LayoutError::new("out", &expected, &format_args!("shape {}", Tuple(shape))).into())
}

/// The specification of a new result.
pub(super) fn spec<'py>(
    space: &LabelledShape,
    dtype: DType,
    operands: &Operands<'py>,
    outputs: &Outputs<'py>,
) -> PyResult<Spec> {
    let own = |array: &&Array<'_>| array.labels == LabelSource::Tensor;
    let inputs = operands.inputs.iter().filter_map(Operand::array).filter(own);
    let mut deciding: SmallVec<[&Tensor; 3]> = inputs.map(Array::tensor).collect();
    if deciding.is_empty() {
        // Without a tensor among the inputs, the tensors among mask and outputs decide; there is at least one.
        deciding = operands.arrays().chain(outputs.given()).filter(own).map(Array::tensor).collect();
    }
    Ok(space.spec(dtype, &deciding)?)
}

/// Allocates a result.
pub(super) fn make<'py>(py: Python<'py>, spec: &Spec) -> PyResult<Bound<'py, PyTensor>> {
    freelist::create(py, |made: &mut PyTensor| {
        made.0 = Tensor::empty(spec)?;
        trace::allocated(py, &made.0);
        Ok(())
    })
}
