//! Copies of elements that CUDA devices can access: by the driver's copies and fills if they can, else by this crate's kernels.
//!
//! [`enabled`](self) implements them; `disabled` replaces it in builds without the feature `cuda`, with the same signatures.

#[cfg(not(feature = "cuda"))]
#[path = "disabled.rs"]
mod twin;
#[cfg(feature = "cuda")]
#[path = "enabled/mod.rs"]
mod twin;

pub(super) use self::twin::{copy, fill};
