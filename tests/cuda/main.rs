//! The conformance suite of CUDA: allocation, fills and copies, against what the host works out element by element.
//!
//! `make test-sim` runs it on the driver double, `cargo test --features cuda,ndarray --test cuda` on whatever driver there is. Where
//! there is none, each test asks for what a machine without CUDA has to say.

#![allow(unsafe_code, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod alloc;
mod capture;
mod cases;
mod copies;
mod cudarc_user;
mod double;
mod driver;
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
