//! Misuses of borrowed memory.

#![allow(unused, reason = "nothing here is run")]

use dlfield::ndarray::{ArrayView1, Ix1};
use dlfield::python::{AnyIn, COrder, In, Out};
use dlfield::{Index, Tensor, traverse};

fn two_writers(mut x: Out<'_, f64, Ix1>) {
    let one = x.array_mut();
    let other = x.array_mut();
    drop((one, other));
}

fn reader_and_writer(mut x: Out<'_, f64, Ix1, COrder>) {
    let one = x.as_slice();
    x.as_slice_mut();
    println!("{one:?}");
}

fn views_by_type(mut x: Out<'_, dlfield::python::Any, Ix1>) {
    let one = x.view::<f64, Ix1>();
    let other = x.view_mut::<f64, Ix1>();
    println!("{one:?}");
}

fn longer_than_the_argument(x: In<'_, f64, Ix1>) -> ArrayView1<'static, f64> {
    x.array()
}

fn view_after_the_argument(x: AnyIn<'_>) {
    let view = x.view::<f64, Ix1>().unwrap();
    drop(x);
    println!("{view}");
}

fn view_after_the_guard(field: Tensor) {
    let guard = field.read::<f64, Ix1>().unwrap();
    let view = guard.view();
    drop(guard);
    println!("{view}");
}

fn guard_after_the_tensor(field: Tensor) {
    let guard = field.read::<f64, Ix1>().unwrap();
    drop(field);
    println!("{guard:?}");
}

fn writer_beside_a_guard(mut field: Tensor) {
    let guard = field.read::<f64, Ix1>().unwrap();
    field.array_view_mut::<f64, Ix1>();
    println!("{guard:?}");
}

fn writing_through_a_guard(field: Tensor) {
    let mut guard = field.read::<f64, Ix1>().unwrap();
    guard[0] = 1.0;
}

fn main() {}
