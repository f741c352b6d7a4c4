//! The Python module `dlfield._native`: registration only.

mod alloc;
mod args;
mod arithmetic;
mod attributes;
mod copies;
mod cuda;
mod cupy;
mod descriptor;
mod device;
mod dtype;
mod errors;
mod export;
mod fastcall;
mod freelist;
pub(crate) mod from_py;
mod getattr;
mod import;
mod index;
mod into_py;
mod keywords;
mod nearest;
mod numpy_type;
mod pickle;
mod preflight;
mod preset;
mod py_owner;
mod saved_error;
mod signature;
mod stream;
mod sync;
mod tensor;
mod threads;
mod with_metadata;

use pyo3::prelude::*;

/// The compiled part of `dlfield`.
#[pymodule]
// The freelists rely on the GIL; by default PyO3 would declare that the module does not need it.
#[pyo3(name = "_native", gil_used = true)]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<preset::PyPreset>()?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<descriptor::PyDescriptor>()?;
    freelist::install::<tensor::PyTensor>(py)?;
    freelist::install::<descriptor::PyDescriptor>(py)?;
    freelist::install::<signature::PyBound>(py)?;
    arithmetic::install(py)?;
    export::dlpack::install(py)?;
    export::dlpack_c_exchange::install(py)?;
    alloc::register(module)?;
    preset::register(module)?;
    import::register(module)?;
    export::torch::register(module)?;
    preflight::register(module)?;
    pickle::register(module)?;
    signature::register(module)?;
    with_metadata::register(module)?;
    cuda::register(module)?;
    threads::register(module)
}
