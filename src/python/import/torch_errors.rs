//! Explains why PyTorch cannot export a tensor: its own message is a trace of C++ functions.

use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::ExchangeError;
use crate::python::convert::repr;
use crate::python::ffi::getattr;
use crate::python::interrupt;

/// Returns the error for a tensor that PyTorch failed to export, with PyTorch's own error as its cause. Exceptions of types
/// that PyTorch's functions do not raise are returned unchanged.
pub fn explained(tensor: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = tensor.py();
    if !error.is_instance_of::<PyRuntimeError>(py) && !error.is_instance_of::<PyBufferError>(py) {
        return error;
    }
    let message = error.value(py).to_string();
    let known = match interrupt::answer(py, obstacle(tensor)) {
        Ok(known) => known.flatten(),
        Err(interrupt) => return interrupt,
    };
    let (got, expected, fix) = match (known, message.split_once('\n')) {
        (Some(known), _) => known,
        // The first line says what is wrong, the later ones where in PyTorch.
        (_, Some((first, _))) => {
            let expected = "a dense tensor of a type and on a device that DLPack knows";
            (format!("PyTorch cannot export it: {first}"), expected, "")
        }
        _ => return error,
    };
    let explained = PyErr::from(ExchangeError::new("obj", &expected, &got).with_fix(&fix));
    explained.set_cause(py, Some(error));
    explained
}

/// What was found, what is expected, and how to fix it.
type Obstacle = (String, &'static str, &'static str);

/// Returns why a tensor has no strided memory with its elements, and what to pass instead; `None` for no known reason.
fn obstacle(tensor: &Bound<'_, PyAny>) -> PyResult<Option<Obstacle>> {
    let py = tensor.py();
    let found = |got: &str, expected, fix| Ok(Some((format!("a {got}"), expected, fix)));
    let without_memory = |got: &str, fix| found(got, "a tensor with memory", fix);
    if tensor.getattr(intern!(py, "is_nested"))?.is_truthy()? {
        let fix = "pass .to_padded_tensor(0.0), or the parts that .unbind() gives";
        return found("nested PyTorch tensor, whose parts differ in shape", "one tensor of one shape", fix);
    }
    let layout = tensor.getattr(intern!(py, "layout"))?.to_string();
    if layout != "torch.strided" {
        let got = format!("PyTorch tensor with layout {layout}, which has no strides");
        return found(&got, "layout torch.strided", "pass .to_dense()");
    }
    if tensor.getattr(intern!(py, "is_quantized"))?.is_truthy()? {
        let dtype = tensor.getattr(intern!(py, "dtype"))?;
        let got = format!("quantized PyTorch tensor ({dtype}), whose memory holds quantized integers");
        let fix = "pass .dequantize(), or .int_repr() for the integers";
        return found(&got, "a tensor that is not quantized", fix);
    }
    if tensor.getattr(intern!(py, "device"))?.getattr(intern!(py, "type"))?.eq(intern!(py, "meta"))? {
        let fix = "create it on another device, as torch.empty_like(obj, device='cpu') does";
        return without_memory("PyTorch tensor on the device meta, which has no memory", fix);
    }
    if let Some(fake) = getattr::loaded(py, "torch._subclasses.fake_tensor")?
        && tensor.is_instance(&fake.getattr(intern!(py, "FakeTensor"))?)?
    {
        let fix = "make it outside of FakeTensorMode";
        return without_memory("fake PyTorch tensor, which has a shape and no memory", fix);
    }
    let torch = py.import(intern!(py, "torch"))?;
    let is = |owner: &Bound<'_, PyAny>, question: &str| match owner.getattr_opt(question)? {
        Some(question) => question.call1((tensor,))?.is_truthy(),
        None => Ok(false),
    };
    if let Some(functorch) = torch.getattr(intern!(py, "_C"))?.getattr_opt(intern!(py, "_functorch"))?
        && is(&functorch, "is_functorch_wrapped_tensor")?
    {
        let fix = "use dlfield outside of the transformation";
        return without_memory("PyTorch tensor inside of torch.func or vmap, which stands for others", fix);
    }
    if is(&torch, "_is_functional_tensor")? {
        let fix = "use dlfield outside of functionalize";
        return without_memory("functional PyTorch tensor, which has no memory of its own", fix);
    }
    if is(&torch, "_is_zerotensor")? {
        return without_memory("PyTorch tensor of zeros without memory", "pass obj.clone()");
    }
    if tensor.call_method0(intern!(py, "numel"))?.extract::<i64>()? == 0 {
        return Ok(None);
    }
    let memory = || {
        let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
        let nbytes: i64 = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
        Ok::<_, PyErr>((nbytes, storage.call_method0(intern!(py, "data_ptr"))?.extract::<usize>()?))
    };
    match interrupt::answer(py, memory())? {
        Some((0, _)) => {
            let got = "PyTorch tensor whose storage was freed, as untyped_storage().resize_(0) does";
            without_memory(got, "take it, or a copy, before that")
        }
        // Subclasses that are made of other tensors have a storage that may not even be asked.
        Some((_, 0)) | None => {
            let class = repr::of_class(&tensor.get_type());
            let got = format!("PyTorch tensor of {class}, which has no memory of its own");
            without_memory(&got, "pass the tensors it is made of")
        }
        Some(_) => Ok(None),
    }
}
