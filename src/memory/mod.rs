//! The only code that allocates memory for elements.

#[cfg(feature = "fields")]
mod block;
#[cfg(feature = "fields")]
mod counters;
pub mod cuda;
mod error;
pub(crate) mod fork;
#[cfg(feature = "fields")]
mod host;

#[cfg(feature = "fields")]
pub(crate) use self::block::counted;
#[cfg(feature = "fields")]
pub use self::block::{Block, Contents};
#[cfg(feature = "fields")]
pub use self::counters::Totals;
pub use self::error::OutOfMemory;
use crate::device::Device;

/// What reads or writes memory.
#[cfg_attr(not(feature = "fields"), allow(dead_code, reason = "devices only copy and fill"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Executor {
    /// This thread, which must first wait for the devices that use the memory.
    Host,
    /// A CUDA device, in the order of the thread's current stream.
    Device(Device),
}
