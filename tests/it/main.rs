//! Tests of the crate without Python: a runner, a naive oracle, and properties.
//!
//! [`naive`] computes expected results the slow and obvious way; [`runner`] compares one allocation layout or tensor with it;
//! the other files supply the cases: tables of seeds, and cases of proptest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod alloc;
mod arithmetic;
#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "ndarray")]
mod borrowed_calls;
mod casts;
mod convert;
mod copies;
mod descriptor_validation;
mod elements;
mod field_specs;
mod imports;
mod interfaces;
mod layout;
mod layouts;
#[cfg(feature = "ndarray")]
mod lending;
mod lent_memory;
mod managed;
mod managed_tensors;
mod model;
mod naive;
mod overflow;
mod overlap;
mod owners;
mod preflight;
mod read;
#[cfg(feature = "ndarray")]
mod reads;
mod repeated;
mod runner;
mod seeds;
mod signature;
mod sound_dlpack;
mod sound_interfaces;
mod strategies;
#[cfg(feature = "ndarray")]
mod traverse;
mod views;
mod writeback;
