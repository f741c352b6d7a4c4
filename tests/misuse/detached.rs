//! Arguments where Python is not attached, or after the call.

#![allow(unused, reason = "nothing here is run")]

use dlfield::ndarray::Ix1;
use dlfield::python::{In, OrCopy, Out};
use pyo3::prelude::*;

fn read(py: Python<'_>, x: In<'_, f64, Ix1>) -> f64 {
    py.detach(|| x.array().sum())
}

fn written(py: Python<'_>, mut x: Out<'_, f64, Ix1>) {
    py.detach(|| x.array_mut().fill(0.0))
}

fn main() {}
