//! The exported functions, with CUDA's names, arguments and results.
//!
//! Programs that were built for per-thread default streams get the names with `_ptsz` and `_ptds`.

#![allow(non_snake_case)]

pub mod capture;
pub mod context;
pub mod control;
pub mod copy;
pub mod device;
pub mod event;
pub mod graph;
pub mod init;
pub mod ipc;
pub mod lookup;
pub mod memory;
pub mod module;
pub mod pointer;
pub mod pool;
pub mod set;
pub mod stream;
