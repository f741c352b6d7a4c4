//! Errors for setting attributes that cannot be set, with what to write instead.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::tensor::Tensor;

/// Defines setters that raise.
macro_rules! fixed {
    ($($setter:ident: $name:literal, $instead:literal;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[setter]
                fn $setter(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
                    fixed($name, $instead)
                }
            )*
        }
    };
}

fixed! {
    set_dims: "dims", "field.with_dims(...) and field.rename(...) are the same memory with other labels";
    set_shape: "shape", "field.reshape(...) is a view with another shape";
    set_strides: "strides", "dl.from_array(field, layout=...) is a copy with other strides";
    set_layout: "layout", "dl.from_array(field, layout=...) is a copy in another layout";
    set_dtype: "dtype", "field.astype(...) is a copy with another element type";
    set_device: "device", "field.to_device(...) is a copy on another device";
    set_origin: "origin", "set field.halo, whose lower widths become the origin";
    set_readonly: "readonly", "field.as_readonly() is a view that is read-only, and field.copy() can be written";
}

#[pymethods]
impl PyTensor {
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
