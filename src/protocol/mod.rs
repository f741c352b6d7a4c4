//! Wire formats and their conversion to [`crate::Descriptor`]s, without an interpreter.
//!
//! Importers in other layers fetch plain structs from objects; this module validates them.

pub mod array_interface;
pub mod array_struct;
pub mod buffer;
pub mod dlpack;
pub mod pep3118;
pub mod typestr;
