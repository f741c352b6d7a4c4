//! The only code that allocates memory for elements.

#[cfg(feature = "fields")]
mod allocator_block;
#[cfg(feature = "fields")]
pub(crate) mod block;
#[cfg(feature = "fields")]
mod block_cache;
#[cfg(feature = "fields")]
pub(crate) mod counters;
pub mod cuda;
pub(crate) mod first_process;
pub(crate) mod fork_lock;
#[cfg(feature = "fields")]
mod host;

#[cfg(feature = "fields")]
pub use self::block::{Block, Contents};
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

/// Bytes of the largest block that counts as small, those for its alignment included.
#[cfg(feature = "fields")]
pub(crate) const LARGEST_SMALL: usize = 64 << 10;

/// Returns the bytes of freed large host blocks that are kept for reuse.
#[cfg(feature = "fields")]
pub(crate) fn cached_mapping_bytes() -> usize {
    block_cache::CACHE.bytes()
}
