//! Conversions between Python values and this crate's types, with errors that name the argument.

pub mod args;
pub mod device;
pub mod dtype;
pub mod errors;
pub mod metadata_state;
pub mod stream;
