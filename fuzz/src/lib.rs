//! What the fuzz targets share: how arguments are drawn from bytes, and the oracles of the tests in `tests/it`.
//!
//! A target draws the arguments of one call, makes it, and compares the result with an oracle. It panics if they differ.

pub mod draw;
pub mod fits;

#[path = "../../tests/it/casts.rs"]
pub mod casts;
#[path = "../../tests/it/elements.rs"]
pub mod elements;
#[path = "../../tests/it/layouts.rs"]
pub mod layouts;
#[path = "../../tests/it/managed_tensors.rs"]
pub mod managed_tensors;
#[path = "../../tests/it/model.rs"]
pub mod model;
#[path = "../../tests/it/naive.rs"]
pub mod naive;
#[path = "../../tests/it/runner.rs"]
pub mod runner;
#[path = "../../tests/it/sound_dlpack.rs"]
pub mod sound_dlpack;
#[path = "../../tests/it/sound_interfaces.rs"]
pub mod sound_interfaces;
