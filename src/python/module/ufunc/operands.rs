//! The operands of arithmetic: numbers, labelled arrays, and arrays by position.

use numpy::npyffi::NpyTypes;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::arithmetic::LabelledShape;
use crate::device::Device;
use crate::dims::{Dim, Dims};
use crate::layout::Metadata;
use crate::python::convert::args;
use crate::python::convert::errors::{ErrorKind, noted};
use crate::python::ffi::{getattr, numpy_api};
use crate::python::import;
use crate::python::interrupt::is_interrupt;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export;
use crate::python::module::ufunc::sizes::{Named, different_sizes};
use crate::python::module::values::{self, Value};
use crate::tensor::{Index, Tensor};

/// The inputs of a ufunc.
pub(super) type Inputs<'py> = SmallVec<[Bound<'py, PyAny>; 3]>;

/// Where the labels of an array come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelSource {
    /// From one of our tensors.
    Tensor,
    /// From the object, or derived from the other operands.
    Known,
    /// Not known yet.
    Unknown,
}

/// An array as a tensor on its memory.
pub(super) struct Array<'py> {
    pub(super) tensor: Bound<'py, PyTensor>,
    pub(super) labels: LabelSource,
    /// The imported value, to be released after its memory was read.
    imported: Option<Box<Value>>,
}

impl<'py> Array<'py> {
    /// Wraps one of our tensors.
    pub(super) fn of(tensor: &Bound<'py, PyTensor>) -> Array<'py> {
        Array { tensor: tensor.clone(), labels: LabelSource::Tensor, imported: None }
    }

    pub(super) fn tensor(&self) -> &Tensor {
        &self.tensor.get().0
    }

    /// The tensor if it is one of ours, and no array of another library.
    pub(super) fn own_tensor(&self) -> Option<&Tensor> {
        (self.labels == LabelSource::Tensor).then(|| self.tensor())
    }
}

/// An operand.
pub(super) enum Operand<'py> {
    /// A number or an array without dimensions: NumPy's or CuPy's rules for its type apply.
    Number(Bound<'py, PyAny>),
    Array(Array<'py>),
}

impl<'py> Operand<'py> {
    /// Reads an operand; `operands` are all operands of the call. Returns `None` for an object that is not an array or number, or
    /// that defines its own `__array_ufunc__`.
    #[inline]
    pub(super) fn read(value: &Bound<'py, PyAny>, operands: &[Bound<'py, PyAny>]) -> PyResult<Option<Operand<'py>>> {
        if let Ok(tensor) = value.cast_exact::<PyTensor>() {
            return Ok(Some(Operand::Array(Array::of(tensor))));
        }
        if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
            return Ok(Some(Operand::Number(value.clone())));
        }
        Operand::other(value, operands)
    }

    fn other(value: &Bound<'py, PyAny>, operands: &[Bound<'py, PyAny>]) -> PyResult<Option<Operand<'py>>> {
        if value.is_none() || value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
            return Ok(None);
        }
        // Numbers may define one as well: a subclass of float.
        if opts_out(value)? {
            return Ok(None);
        }
        if is_number(value) {
            return Ok(Some(Operand::Number(value.clone())));
        }
        if value.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() == 0) {
            if numpy_api::is_exact(value) {
                return Ok(Some(Operand::Number(value.clone())));
            }
            // NumPy reads `__array_wrap__` of a subclass, and crashes if that fails.
            return Ok(Some(Operand::Number(values::as_array(value, "operand")?)));
        }
        // Of an object with memory on several devices, the memory on the first tensor's device.
        let tensor = operands.iter().find_map(|other| other.cast_exact::<PyTensor>().ok());
        let near = tensor.map_or(Device::CPU, |tensor| tensor.get().0.descriptor().device());
        if let Some(array) = Array::read_or_convert(value, near)? {
            return Ok(Some(Operand::Array(array)));
        }
        if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        Ok(Array::read(&values::as_array(value, "operand")?, Device::CPU)?.map(Operand::Array))
    }

    pub(super) fn array(&self) -> Option<&Array<'py>> {
        if let Operand::Array(array) = self { Some(array) } else { None }
    }
}

/// Adds to an error what to write if the value is one that JAX traces, which has no elements yet.
#[cold]
fn with_traced_hint(value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = value.py();
    let is_tracer = |class: Bound<'_, PyAny>| {
        let Ok(class) = class.cast::<PyType>() else { return false };
        getattr::module_of(class).is_some_and(|module| module.starts_with("jax."))
            && class.name().is_ok_and(|name| name == "Tracer")
    };
    if is_interrupt(py, &error) || !value.get_type().mro().iter().any(is_tracer) {
        return error;
    }
    noted(py, "a field met a value that JAX traces: write dl.as_jax(field) for the field", error)
}

impl<'py> Array<'py> {
    /// Imports another library's array for reading; `None` for an object without a protocol.
    pub(super) fn read(value: &Bound<'py, PyAny>, near: Device) -> PyResult<Option<Array<'py>>> {
        let found = values::value(value, near, Some(&Metadata::default()))
            .map_err(|error| with_traced_hint(value, ErrorKind::of_argument(value.py(), "operand", error)))?;
        found.map(|found| Array::of_value(value.py(), found)).transpose()
    }

    /// As [`Array::read`], also for elements of the other byte order.
    fn read_or_convert(value: &Bound<'py, PyAny>, near: Device) -> PyResult<Option<Array<'py>>> {
        match Array::read(value, near) {
            Err(error) if ErrorKind::DType.is(value.py(), &error) => {
                let found = export::numpy::converted(value, None, "operand")?.ok_or(error)?;
                Array::of_value(value.py(), found.into()).map(Some)
            }
            found => found,
        }
    }

    fn of_value(py: Python<'py>, found: Value) -> PyResult<Array<'py>> {
        let tensor = Tensor::clone(&found);
        let labels = if tensor.descriptor().dims().is_some() { LabelSource::Known } else { LabelSource::Unknown };
        Ok(Array { tensor: PyTensor::create(py, tensor)?, labels, imported: Some(Box::new(found)) })
    }

    /// Sets the labels, and drops the dimensions at `dropped`, which have one point.
    pub(super) fn set_labels(&mut self, dims: &Dims, dropped: &[usize]) -> PyResult<()> {
        let mut tensor = self.tensor().clone();
        tensor.relabel(Metadata::default().with_dims(dims.clone()))?;
        if !dropped.is_empty() {
            let at = |axis| if dropped.contains(&axis) { Index::At(0) } else { Index::All };
            let index: SmallVec<[Index; 6]> = (0..dims.len()).map(at).collect();
            tensor = tensor.view(&index)?;
        }
        self.tensor = PyTensor::create(self.tensor.py(), tensor)?;
        self.labels = LabelSource::Known;
        Ok(())
    }

    /// Derives the labels of an array without any: those of an input of the same shape; those of the result, if it has
    /// as many dimensions, with the same sizes or one of them 1; or I, J, K if the result has no other labels.
    /// `device` is where the operands with labels are.
    fn label(&mut self, inputs: &[LabelledShape], result: &LabelledShape, device: Device) -> PyResult<()> {
        let shape = self.tensor().descriptor().shape();
        if shape.is_empty() {
            return self.set_labels(&Dims::standard(0), &[]);
        }
        let mut same = inputs.iter().filter(|input| input.shape() == shape);
        if let Some(found) = same.next() {
            return match same.find(|other| other.dims() != found.dims()) {
                None => self.set_labels(found.dims(), &[]),
                Some(other) => {
                    let why =
                        format!("inputs of the same shape have dims ({}) and dims ({})", found.dims(), other.dims());
                    Err(self.unclear(&why, result, device))
                }
            };
        }
        if fits(shape, result.shape()) {
            return self.set_labels(result.dims(), &[]);
        }
        let standard = result.dims().iter().all(|label| matches!(label, Dim::I | Dim::J | Dim::K));
        if shape.len() == 3 && standard {
            let dropped: SmallVec<[usize; 3]> = (0..3).filter(|axis| shape[*axis] == 1).collect();
            return self.set_labels(&Dims::standard(3), &dropped);
        }
        let why = format!("the result has dims ({}) and shape {}", result.dims(), tuple(result.shape()));
        Err(self.unclear(&why, result, device))
    }

    /// The error for an array whose labels are unclear; the fix makes a field of it where the other operands are.
    #[cold]
    fn unclear(&self, why: &str, result: &LabelledShape, device: Device) -> PyErr {
        let found = self.tensor().descriptor();
        let dims = dims_by_size(self.tensor.py(), found.shape(), result).unwrap_or_else(|| "...".to_owned());
        let fix = if device.is_cuda() && !found.device().is_cuda() {
            format!("dl.from_array(array, dims={dims}, device='{device}')")
        } else {
            format!("dl.from_dlpack(array, dims={dims})")
        };
        ErrorKind::Dims.error(format!(
            "dims: an array of shape {} has no labels, and {why}; expected without labels: the shape of an input, that of \
             the result with sizes of 1, or three dimensions I, J, K; label it: {fix}",
            tuple(found.shape())
        ))
    }
}

/// A shape as Python prints it.
fn tuple(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    if let [one] = &sizes[..] { format!("({one},)") } else { format!("({})", sizes.join(", ")) }
}

/// The labels of the result for an array of this shape, as Python's argument `dims`; `None` if its sizes fit no labels, or several.
fn dims_by_size(py: Python<'_>, shape: &[i64], result: &LabelledShape) -> Option<String> {
    let mut axes = SmallVec::<[usize; 6]>::new();
    for size in shape {
        let mut fitting = (0..result.shape().len()).filter(|axis| result.shape()[*axis] == *size);
        axes.push(fitting.next().filter(|axis| fitting.next().is_none() && !axes.contains(axis))?);
    }
    let label = |axis: &usize| match result.dims().iter().nth(*axis)? {
        Dim::Data(number) => Some(number.to_string()),
        label => Some(args::shown(PyString::new(py, &label.to_string()).as_any())),
    };
    let labels: Vec<String> = axes.iter().map(label).collect::<Option<_>>()?;
    if let [one] = &labels[..] { Some(format!("({one},)")) } else { Some(format!("({})", labels.join(", "))) }
}

/// Whether a shape equals another one, except for sizes of 1 in either.
fn fits(shape: &[i64], result: &[i64]) -> bool {
    shape.len() == result.len()
        && shape.iter().zip(result).all(|(got, wanted)| got == wanted || *got == 1 || *wanted == 1)
}

/// The operands of a call, and its mask.
pub(super) struct Operands<'py> {
    pub(super) inputs: SmallVec<[Operand<'py>; 3]>,
    pub(super) mask: Option<Operand<'py>>,
    /// Whether no operand has a label: a new result is an array without labels too.
    pub(super) are_unlabelled: bool,
}

impl<'py> Operands<'py> {
    /// Reads the operands; `None` if any of them cannot be computed with here.
    #[inline]
    pub(super) fn read(inputs: &[Bound<'py, PyAny>], mask: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Self>> {
        let mut read = Operands { inputs: SmallVec::new(), mask: None, are_unlabelled: false };
        for input in inputs {
            let Some(operand) = Operand::read(input, inputs)? else { return Ok(None) };
            read.inputs.push(operand);
        }
        if let Some(mask) = mask {
            let Some(operand) = Operand::read(mask, inputs)? else { return Ok(None) };
            read.mask = Some(operand);
        }
        Ok(Some(read))
    }

    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array<'py>> {
        self.inputs.iter().chain(&self.mask).filter_map(Operand::array)
    }

    /// Releases the operands; returns the outcome of the computation, or else the first error of an operand's `release`.
    #[inline]
    pub(super) fn done<R>(self, py: Python<'py>, mut outcome: PyResult<R>) -> PyResult<R> {
        for operand in self.inputs.into_iter().chain(self.mask) {
            if let Operand::Array(Array { imported: Some(value), .. }) = operand {
                outcome = value.done(py, outcome);
            }
        }
        outcome
    }

    /// Derives the labels of arrays without any, also from the outputs.
    pub(super) fn label(&mut self, outputs: &[LabelledShape]) -> PyResult<()> {
        if self.arrays().all(|array| array.labels != LabelSource::Unknown) {
            return Ok(());
        }
        let known = self.arrays().filter(|array| array.labels != LabelSource::Unknown);
        let known: SmallVec<[LabelledShape; 3]> = known.map(|array| LabelledShape::of(array.tensor())).collect();
        // The result in the order of the outputs, which have all labels.
        let all: SmallVec<[LabelledShape; 5]> = outputs.iter().chain(&known).cloned().collect();
        let result = LabelledShape::broadcast_or(&all, |label, first, second| {
            let known = self.named(|array| array.labels != LabelSource::Unknown);
            different_sizes(
                label,
                first,
                second,
                &outputs.iter().map(|_| ("out".to_owned(), None)).chain(known).collect::<Vec<_>>(),
            )
        })?;
        if result.dims().is_empty() {
            return self.label_by_position();
        }
        let tensors = self.arrays().filter_map(Array::own_tensor);
        let device = tensors.map(|tensor| tensor.descriptor().device()).find(|device| device.is_cuda());
        let device = device.unwrap_or(Device::CPU);
        for operand in self.inputs.iter_mut().chain(&mut self.mask) {
            if let Operand::Array(array) = operand
                && array.labels == LabelSource::Unknown
            {
                array.label(&known, &result, device)?;
            }
        }
        Ok(())
    }

    /// Labels arrays as NumPy pairs their dimensions, from the last one on: no other operand has a dimension.
    fn label_by_position(&mut self) -> PyResult<()> {
        let ndim = |array: &Array<'_>| array.tensor().descriptor().ndim();
        let most = self.arrays().map(ndim).max().unwrap_or(0);
        self.are_unlabelled = most > 0;
        for operand in self.inputs.iter_mut().chain(&mut self.mask) {
            if let Operand::Array(array) = operand
                && array.labels == LabelSource::Unknown
            {
                let last: SmallVec<[usize; 6]> = (most - ndim(array)..most).collect();
                array.set_labels(&Dims::standard(most).select(&last), &[])?;
            }
        }
        Ok(())
    }

    /// The labels and sizes of all operands together.
    #[inline]
    pub(super) fn joined(&self) -> PyResult<LabelledShape> {
        let all: SmallVec<[LabelledShape; 3]> = self.arrays().map(|array| LabelledShape::of(array.tensor())).collect();
        LabelledShape::broadcast_or(&all, |label, first, second| {
            different_sizes(label, first, second, &self.named(|_| true))
        })
    }

    /// The arrays that `counts` selects, in error messages.
    #[cold]
    pub(super) fn named(&self, counts: impl Fn(&Array<'py>) -> bool) -> Vec<Named<'_>> {
        let inputs = (0..).zip(&self.inputs).map(|(place, input): (usize, _)| (format!("operand {place}"), input));
        let all = inputs.chain(self.mask.iter().map(|mask| ("where".to_owned(), mask)));
        let arrays = all.filter_map(|(name, operand)| operand.array().map(|array| (name, array)));
        arrays.filter(|(_, array)| counts(array)).map(|(name, array)| (name, array.own_tensor())).collect()
    }
}

/// Whether the object is a number of Python or NumPy.
pub(crate) fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyComplex>()
        || numpy_api::is_scalar(value, NpyTypes::PyGenericArrType_Type)
}

/// Whether an object defines its own `__array_ufunc__`, and is not an array that we can import completely.
pub(super) fn opts_out(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static DEFAULT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (py, ty) = (value.py(), value.get_type());
    let Some(rules) = getattr::on_type(&ty, intern!(py, "__array_ufunc__")) else { return Ok(false) };
    let array = || Ok::<_, PyErr>(py.get_type::<PyUntypedArray>().getattr(intern!(py, "__array_ufunc__"))?.unbind());
    if rules.is(DEFAULT.get_or_try_init(py, array)?) {
        return Ok(false);
    }
    if rules.is_none() {
        return Ok(true);
    }
    let of_cupy = getattr::module_of(&ty).is_some_and(|module| module.split('.').next() == Some("cupy"));
    Ok(!of_cupy && import::inner_of(value)?.is_none())
}

/// Whether NumPy calls the `__array_ufunc__` of such an object: not if it is None.
pub(super) fn has_own_ufunc_method(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let rules = getattr::on_type(&value.get_type(), intern!(value.py(), "__array_ufunc__"));
    Ok(rules.is_some_and(|rules| !rules.is_none()) && opts_out(value)?)
}
