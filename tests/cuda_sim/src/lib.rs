//! A test double of the CUDA driver: its symbols, backed by host memory.
//!
//! ```text
//! api/      the driver's symbols, by subject     entry    how they are exported
//! driver    the state, and waiting               codes    what functions return
//! memory    addresses and bytes                  clocks   what comes before what, and races
//! stream    deferred queues                      work     what operations do
//! context event pool capture graph copy kernel ipc   one subject each
//! report    counters, and failures on demand
//! ```

// The functions' contracts are those of CUDA's driver API.
#![allow(clippy::missing_safety_doc)]

pub mod api;
mod capture;
mod clocks;
mod codes;
mod context;
mod copy;
mod driver;
pub mod entry;
mod event;
mod graph;
pub mod ipc;
mod kernel;
mod memory;
mod pool;
mod report;
mod stream;
mod work;
