//! A test double of the CUDA runtime: the functions that PyTorch calls, on the double of the driver.
//!
//! It is loaded before PyTorch, so its symbols hide those of the real library. That one is loaded too, and gets the calls that
//! this one does not have; they fail, as it does not accept the double as a driver.
//!
//! ```text
//! driver      the driver's functions, found at run time     runtime   context, device and last error of a thread
//! device memory copy stream event                           the runtime's functions, by subject
//! properties  what a device is                              kernel    kernels are registered, but none runs
//! ```

// The functions' names and contracts are those of CUDA's runtime API.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments, non_snake_case)]

pub mod copy;
pub mod device;
mod driver;
pub mod event;
pub mod kernel;
pub mod memory;
mod properties;
mod runtime;
pub mod stream;
