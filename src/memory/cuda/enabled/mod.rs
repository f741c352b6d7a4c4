//! CUDA through its driver.
//!
//! Every function makes the device that it needs the thread's current one and restores the previous one afterwards: other
//! libraries rely on it. No function waits for a stream that is captured into a graph.

mod block;
mod capture;
mod context;
mod driver;
mod event;
mod ipc;
mod lent;
mod order;
mod pointer;
mod stream_uses;
mod streams;
mod use_lock;

pub(in crate::memory) use self::block::CudaMemory;
pub(crate) use self::capture::raw;
pub(crate) use self::context::{Relaxed, enter, is_primary};
pub(crate) use self::driver::check;
pub(crate) use self::driver::of_cudarc;
pub(crate) use self::ipc::OpenedMemory;
pub(in crate::memory) use self::ipc::device_of_uuid;
pub(crate) use self::lent::UsedStream;
pub(crate) use self::order::wait;
pub(crate) use self::pointer::device_of_pointer;
pub(crate) use self::stream_uses::StreamUses;
pub(crate) use self::streams::error_if_capturing;
pub(super) use self::streams::ordinal_of;
pub use self::streams::{
    device_count, device_name, init, is_available, is_capturing, memory_info, synchronize, unavailable_reason,
};
