//! The functions of `private` without private API of CPython: slower, and without the GIL.

pub mod dict_items;
pub mod instance_dict;
pub mod optional_attr;
pub mod type_cache;
