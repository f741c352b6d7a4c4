//! The only code that allocates memory for elements.

mod allocator_block;
mod block;
mod block_cache;
pub(crate) mod counters;
pub mod cuda;
mod error;
pub(crate) mod first_process;
pub(crate) mod fork_lock;
mod host;

pub use self::block::{Block, Contents};
pub use self::error::OutOfMemory;
use crate::device::Device;

/// What reads or writes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Executor {
    /// This thread, which must first wait for the devices that use the memory.
    Host,
    /// A CUDA device, in the order of the thread's current stream.
    Device(Device),
}

/// Bytes of the largest block that counts as small, those for its alignment included.
pub(crate) const LARGEST_SMALL: usize = 64 << 10;

/// Returns the bytes of freed large host blocks that are kept for reuse.
pub(crate) fn cached_mapping_bytes() -> usize {
    block_cache::CACHE.bytes()
}
