//! Moving elements that CUDA devices reach, by the driver's copies and fills where they do, else by kernels of our own.
//!
//! [`enabled`](self) does it, `disabled` takes its place in builds without the feature `cuda`: the same signatures.

#[cfg(not(feature = "cuda"))]
#[path = "disabled.rs"]
mod twin;
#[cfg(feature = "cuda")]
#[path = "enabled/mod.rs"]
mod twin;

pub(super) use self::twin::{copy, fill};
