//! A stencil without Python: a signature checks the fields of a call, and lends views in the stencil's order of dimensions.
//!
//!     cargo run --example checked_call --features ndarray

#![allow(clippy::reversed_empty_ranges, reason = "ndarray counts negative ends from the back")]

use dlfield::ndarray::{Ix2, s};
use dlfield::{Access, DType, Dims, FieldSpec, Preset, Signature, Spec, Tensor, traverse};

fn main() -> dlfield::Result<()> {
    let field = || FieldSpec::new(DType::F64, Dims::standard(2));
    let signature = Signature::new([
        ("inp", field().boundary(&[(1, 1), (1, 1)])),
        ("out", field().access(Access::Write).preset(Preset::find("gt:cpu_ifirst")?)),
    ])?;

    // The dimensions may come in any order.
    let inp = Spec::new(&[6, 8], DType::F64).dims(Dims::parse(["J", "I"])?).halo(&[(1, 1), (1, 1)]);
    let inp = Tensor::full(&inp, 0.5)?;
    let mut out = Tensor::full(&Spec::new(&[6, 4], DType::F64).preset(Preset::find("gt:cpu_ifirst")?), f64::NAN)?;
    let mut call = signature.borrow(&[("inp", &inp)], [("out", &mut out)])?;
    assert_eq!(call.domain().1, [6, 4]);
    let (u, sums) = (call.read::<f64, Ix2>("inp")?, call.write::<f64, Ix2>("out")?);
    let (west, east) = (u.slice(s![..-2, 1..-1]), u.slice(s![2.., 1..-1]));
    let (south, north) = (u.slice(s![1..-1, ..-2]), u.slice(s![1..-1, 2..]));
    traverse::zip((west, east, south, north, sums), |(west, east, south, north, sum)| {
        *sum = west + east + south + north
    })?;
    println!("the sum is {}", out.read::<f64, Ix2>()?.sum());

    // Without a halo the stencil would read outside the field.
    let narrow = Tensor::zeros(&Spec::new(&[8, 6], DType::F64))?;
    if let Err(error) = signature.borrow(&[("inp", &narrow)], [("out", &mut out)]) {
        println!("{error}");
    }
    Ok(())
}
