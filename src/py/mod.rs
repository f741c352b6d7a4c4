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
pub(crate) mod extract;
mod fastcall;
mod give;
mod index;
mod keep;
mod keywords;
mod labels;
mod lookup;
mod nearest;
mod pickle;
mod place;
mod preflight;
mod preset;
mod read;
mod recycle;
mod saved_error;
mod signature;
mod stated;
mod stream;
mod tensor;
mod threads;

use pyo3::prelude::*;

/// The compiled part of `dlfield`.
#[pymodule]
// `recycle` keeps its lists under the global lock; PyO3 would declare that none is needed.
#[pyo3(name = "_native", gil_used = true)]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<preset::PyPreset>()?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<descriptor::PyDescriptor>()?;
    recycle::install(py)?;
    arithmetic::install(py)?;
    export::dlpack::install(py)?;
    export::exchange::install(py)?;
    alloc::register(module)?;
    preset::register(module)?;
    read::register(module)?;
    export::torch::register(module)?;
    preflight::register(module)?;
    labels::register(module)?;
    pickle::register(module)?;
    signature::register(module)?;
    stated::register(module)?;
    cuda::register(module)?;
    threads::register(module)
}
