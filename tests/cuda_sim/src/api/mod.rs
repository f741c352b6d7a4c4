//! The exported functions. Their names, arguments and results are CUDA's.
//!
//! Names with `_ptsz` and `_ptds` are those that programs get which were built for a default stream per thread.

#![allow(non_snake_case)]

pub mod capture;
pub mod context;
pub mod control;
pub mod copy;
pub mod device;
pub mod event;
pub mod graph;
pub mod init;
pub mod lookup;
pub mod memory;
pub mod module;
pub mod pointer;
pub mod pool;
pub mod set;
pub mod stream;
