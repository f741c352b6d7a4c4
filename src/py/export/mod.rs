//! Export of tensors: one file for each protocol, named like those in `import`.

pub(super) mod array_interface;
pub(super) mod buffer;
pub(super) mod cuda_array_interface;
pub(super) mod dlpack;
pub(super) mod dlpack_c_exchange;
pub(super) mod gt_data_interface;
pub(super) mod numpy;
pub(super) mod torch;
