//! Conversions between Python values and this crate's types: arguments, with errors that name them; devices, element types,
//! streams; errors to exceptions; metadata that DLPack cannot express.

pub mod args;
pub mod device;
pub mod dtype;
pub mod errors;
pub mod metadata_state;
pub mod repr;
pub mod stream;
