//! Errors for setting attributes that cannot be set, with what to write instead.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::classes::tensor::PyTensor;
use dlfield::Tensor;
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

    // `field.domain_view += 1` sets the view itself, after it was added to. A documentation comment would, or would not, take the
    // place of the getter's, as the linker orders the two.
    #[setter]
    fn set_domain_view(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if is_view(value, &self.0.domain_view()) {
            return Ok(());
        }
        fixed("domain_view", "field.domain_view[...] = value writes to it")
    }

    #[setter]
    fn set_block(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if is_view(value, &self.0.block()?) {
            return Ok(());
        }
        fixed("block", "field.block[...] = value writes to it")
    }

    #[setter]
    #[pyo3(name = "T")]
    fn set_reversed(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if is_view(value, &self.reversed()?.0) {
            return Ok(());
        }
        fixed("T", "field.T[...] = value writes to it")
    }

    #[setter]
    fn set_readonly(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        fixed("readonly", "field.as_readonly() is a view that is read-only, and field.copy() can be written")
    }
}

/// Whether a value is a tensor that shows the same memory as another in the same way, with the same labels.
fn is_view(value: &Bound<'_, PyAny>, other: &Tensor) -> bool {
    let Ok(tensor) = value.cast_exact::<PyTensor>() else { return false };
    let (found, wanted) = (tensor.get().descriptor(), other.descriptor());
    tensor.get().0.dims() == other.dims()
        && found.ptr() == wanted.ptr()
        && found.shape() == wanted.shape()
        && found.strides() == wanted.strides()
        && found.dtype() == wanted.dtype()
}

#[cold]
fn fixed(name: &str, instead: &str) -> PyResult<()> {
    let message = format!("attribute '{name}' of 'dlfield.Tensor' objects is not writable: {instead}");
    Err(new_error::<PyAttributeError>(message))
}
