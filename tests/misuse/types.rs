//! Misuses of types.

#![allow(unused, reason = "nothing here is run")]

use dlfield::ndarray::{Ix1, Ix2, IxDyn};
use dlfield::python::{Any, AnyIn, AnyOrder, COrder, Cuda, Elements, FOrder, In, OrCopy, Order, Out, Place};
use dlfield::{Element, Tensor, dispatch};
use pyo3::prelude::*;

#[pyfunction]
fn no_element(x: In<'_, String, Ix1>) {}

#[pyfunction]
fn no_element_to_write(x: Out<'_, u128, Ix1>) {}

#[pyfunction]
fn any_is_not_copied(x: OrCopy<'_, Any, Ix1>) {}

#[pyfunction]
fn place_as_order(x: In<'_, f64, Ix1, Cuda>) {}

#[pyfunction]
fn order_as_place(x: In<'_, f64, Ix1, AnyOrder, COrder>) {}

fn element<T: Element>() {}

fn elements<T: Elements>() {}

fn order<O: Order>() {}

fn place<M: Place>() {}

fn bounds() {
    element::<Any>();
    elements::<char>();
    order::<f64>();
    place::<FOrder>();
}

fn tensors(field: Tensor) {
    Tensor::from(vec![String::new()]);
    field.to_vec::<u128>();
    field.read::<&str, Ix1>();
}

fn views(x: In<'_, f64, IxDyn>, mut y: Out<'_, i32, Ix2>, z: AnyIn<'_>) {
    x.view::<f32, Ix2>();
    y.view_mut::<u32, Ix2>();
    z.view::<String, Ix2>();
    z.array();
}

fn not_for_the_host(x: In<'_, Any, IxDyn, AnyOrder, Cuda>, mut y: Out<'_, f64, IxDyn, AnyOrder, Cuda>) {
    x.view::<f32, Ix1>();
    y.view_mut::<f64, Ix1>();
}

fn not_to_write(mut x: In<'_, f64, Ix1, COrder>) {
    x.array_mut();
    x.as_slice_mut();
    x.view_mut::<f64, Ix1>();
}

fn no_slices(x: In<'_, f64, Ix1>, y: Out<'_, f64, Ix2, FOrder>, z: In<'_, f64, Ix1, COrder, Cuda>) {
    x.as_slice();
    y.as_slice();
    z.as_slice();
    z.array();
}

#[pyfunction]
fn no_axes(x: In<'_, f64, f64>) {}

fn dispatched(x: AnyIn<'_>) {
    let sum = dispatch!(x, T in ints => x.view::<T, Ix1>().unwrap().iter().map(|x| i32::from(*x)).sum::<i32>());
}

#[pyclass]
struct Kept {
    x: In<'static, f64, Ix1>,
}

fn main() {}
