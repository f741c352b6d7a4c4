//! The only code that allocates memory for elements.

pub(crate) mod block;
mod counters;
pub mod cuda;
pub(crate) mod fork;
mod host;

pub(crate) use self::block::counted;
pub use self::block::{Block, Contents};
pub use self::counters::Totals;
use crate::device::Device;

/// What reads or writes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Executor {
    /// This thread, which must first wait for the devices that use the memory.
    Host,
    /// A CUDA device, in the order of the thread's current stream.
    Device(Device),
}
