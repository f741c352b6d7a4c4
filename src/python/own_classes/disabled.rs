//! No object is of a class that does not exist.

use pyo3::prelude::*;

use crate::python::own_classes::Description;
use crate::tensor::Tensor;

pub(crate) fn tensor<'a>(_: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    None
}

pub(crate) fn description<'a, 'py>(_: &'a Bound<'py, PyAny>) -> Option<Description<'a, 'py>> {
    None
}

pub(crate) fn text(_: &Bound<'_, PyAny>) -> Option<String> {
    None
}
