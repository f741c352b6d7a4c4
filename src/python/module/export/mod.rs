//! Export of tensors: one file for each protocol, named like those in `import`.

pub(crate) mod array_interface;
pub(crate) mod buffer;
pub(crate) mod cuda_array_interface;
pub(crate) mod cupy;
pub(crate) mod dlpack;
pub(crate) mod dlpack_c_exchange;
pub(crate) mod gt_data_interface;
pub(crate) mod integers;
mod jax;
pub(crate) mod numpy;
mod tensor_api;
pub(crate) mod torch;

use pyo3::prelude::*;

/// Adds `__dlpack__`, the C exchange table and the table for extensions to the class, and `as_torch` and what `as_jax` needs to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    dlpack::install(module.py())?;
    dlpack_c_exchange::install(module.py())?;
    tensor_api::install(module.py())?;
    jax::register(module)?;
    torch::register(module)
}
