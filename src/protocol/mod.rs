//! Wire formats and their conversion to [`crate::Descriptor`]s, without an interpreter.
//!
//! Importers in other layers fetch plain structs from objects; this module validates them.

#[cfg(any(feature = "python", feature = "signature"))]
pub mod array_interface;
#[cfg(any(feature = "python", feature = "signature"))]
pub mod array_struct;
#[cfg(any(feature = "python", feature = "signature"))]
pub mod buffer;
pub mod dlpack;
#[cfg(any(feature = "python", feature = "signature"))]
pub mod pep3118;
#[cfg(any(feature = "python", feature = "signature"))]
pub mod typestr;
