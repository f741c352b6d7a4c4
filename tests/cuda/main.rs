//! The conformance suite for CUDA: allocations, fills and copies, compared with host results element by element.
//!
//! `make test-sim` runs it on the driver double, `cargo test --features cuda,ndarray --test cuda` on the installed driver.
//! Without a driver, each test checks the errors of a machine without CUDA.

#![allow(unsafe_code, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod alloc;
mod capture;
mod cases;
mod casts;
mod copies;
mod cudarc_user;
mod double;
mod driver;
mod exports;
mod fills;
mod gone_streams;
mod lending;
mod managed;
mod memory;
mod order;
#[path = "../it/repeated.rs"]
mod repeated;
mod routes;
mod slices;
mod streams;
