//! CUDA: whether there is any, memory, and the order in which a device does its work.
//!
//! [`enabled`](self) speaks to the driver, `disabled` takes its place in builds without the feature `cuda`: the same
//! signatures, chosen here and nowhere else. The driver is loaded when it is first asked for; where there is none, or no
//! device, everything that needs one returns [`DeviceError::NoCuda`](crate::DeviceError::NoCuda), which says why.
//!
//! A device does the work of one stream in order, and that of two in any. So whatever concerns the memory of a tensor is
//! given to a [`Stream`]: the one stated, or the thread's current one of that device, which is CUDA's legacy default stream
//! until [`with_stream`] states another. Memory is allocated in stream order, and freed in the order of that stream, after
//! the work of every stream that was told about it.
//!
//! # Example
//! ```
//! match dlfield::cuda::why_not() {
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

mod stream;

#[cfg(feature = "python")]
pub(crate) use self::stream::{Kept, pop_stream, state, with_kept_stream};
pub use self::stream::{Stream, current_stream, with_stream};
pub(super) use self::twin::CudaMemory;
pub(crate) use self::twin::StreamUses;
#[cfg(feature = "python")]
pub(crate) use self::twin::device_of_pointer;
#[cfg(feature = "cuda")]
pub(crate) use self::twin::{Relaxed, check, enter, is_primary, raw};
pub use self::twin::{device_count, device_name, is_available, is_capturing, memory_info, synchronize, why_not};
pub(crate) use self::twin::{error_if_capturing, wait};
