//! Errors for setting attributes that cannot be set, with what to write instead.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::classes::tensor::PyTensor;
use dlfield::native::new_error;

#[pymethods]
impl PyTensor {
    #[setter]
    fn set_dims(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("dims", "dl.from_dlpack(field, dims=...) is the same field with other labels")
    }

    #[setter]
    fn set_shape(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("shape", "field.reshape(...) is a view with another shape")
    }

    #[setter]
    fn set_strides(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("strides", "dl.from_array(field, layout=...) is a copy with other strides")
    }

    #[setter]
    fn set_layout(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("layout", "dl.from_array(field, layout=...) is a copy in another layout")
    }

    #[setter]
    fn set_dtype(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("dtype", "field.astype(...) is a copy with another element type")
    }

    #[setter]
    fn set_device(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("device", "field.to_device(...) is a copy on another device")
    }

    #[setter]
    fn set_origin(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("origin", "set field.halo, whose lower widths become the origin")
    }

    #[setter]
    fn set_readonly(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("readonly", "field.as_readonly() is a view that is read-only, and field.copy() can be written")
    }
}

#[cold]
fn fixed(name: &str, instead: &str) -> PyResult<()> {
    let message = format!("attribute '{name}' of 'dlfield.Tensor' objects is not writable: {instead}");
    Err(new_error::<PyAttributeError>(message))
}
