//! Private API of CPython: what is faster than any documented call.

pub mod dict_items;
pub mod instance_dict;
pub mod optional_attr;
pub mod type_cache;
