//! CUDA: availability, memory, and the order of work.
//!
//! [`enabled`](self) calls the driver. `disabled` replaces it in builds without the feature `cuda`, with the same signatures;
//! the choice is made only here. The driver is loaded on first use. Without a driver or a device, every function that needs one
//! returns a [`DeviceError`](crate::DeviceError), which says why.
//!
//! A device runs the work of one stream in order, and that of two streams in any order. So each operation on a tensor's memory
//! belongs to a [`Stream`]: the one given, or the thread's current stream of that device, which is CUDA's legacy default stream
//! until [`with_stream`] sets another. Memory is allocated in stream order, and freed after the work of every stream that used
//! it. A stream belongs to the code that made it, which may destroy it: it is borrowed for a call, or the body of
//! [`with_stream`]. What is needed later is an event.
//!
//! # Example
//! ```
//! match dlfield::cuda::unavailable_reason() {
//!     None => println!("{} devices", dlfield::cuda::device_count()),
//!     Some(why) => println!("no CUDA: {why}"),
//! }
//! ```

#[cfg(not(feature = "cuda"))]
#[path = "disabled.rs"]
mod twin;
#[cfg(feature = "cuda")]
#[path = "enabled/mod.rs"]
mod twin;

pub(crate) mod current;
pub(crate) mod ipc;
mod stream;

pub use self::current::{CurrentStream, current_stream, with_stream};
pub use self::stream::Stream;
#[cfg(feature = "python")]
pub(crate) use self::stream::device_of_stream;
pub(super) use self::twin::CudaMemory;
pub(crate) use self::twin::OpenedMemory;
pub(crate) use self::twin::UsedStream;
pub(crate) use self::twin::device_of_pointer;
pub(crate) use self::twin::error_if_capturing;
#[cfg(feature = "cuda")]
pub(crate) use self::twin::{Relaxed, check, enter, is_primary, of_cudarc, raw};
pub(crate) use self::twin::{StreamUses, wait};
pub use self::twin::{
    device_count, device_name, init, is_available, is_capturing, memory_info, synchronize, unavailable_reason,
};
