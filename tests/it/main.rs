//! Tests of the crate without Python.
