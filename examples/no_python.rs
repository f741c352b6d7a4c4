//! A field without Python in the process: allocated for a stencil backend, filled and read through `ndarray`, exported
//! through DLPack and imported again.
//!
//!     cargo run --example no_python --features ndarray

#![allow(unsafe_code, reason = "a C struct goes out and comes back")]
#![allow(clippy::reversed_empty_ranges, reason = "ndarray counts negative ends from the back")]

use dlfield::dlpark::Managed;
use dlfield::ndarray::{Array3, Ix3, s};
use dlfield::{DType, Preset, Spec, Tensor};

fn main() -> dlfield::Result<()> {
    // A halo of one point in I and J, with the layout and alignment of `gt:cpu_ifirst`.
    let spec = Spec::new(&[6, 5, 4], DType::F64).preset(Preset::find("gt:cpu_ifirst")?).halo(&[(1, 1), (1, 1), (0, 0)]);
    let mut field = Tensor::zeros(&spec)?;
    println!("strides {:?}, origin {:?}", field.descriptor().strides(), field.origin());

    // The memory is not shared yet, so it may be written.
    let mut view = field.array_view_mut::<f64, Ix3>()?;
    view.slice_mut(s![1..-1, 1..-1, ..]).fill(2.0);
    assert_eq!(view.sum(), 2.0 * 4.0 * 3.0 * 4.0);

    // Export: any library that supports DLPack, also in C or C++, needs only this struct.
    let address = field.descriptor().ptr();
    let raw = field.to_versioned(false)?.into_raw();
    drop(field);
    // SAFETY: this is the struct that was made above, and nothing else has consumed it.
    let managed = unsafe { Managed::from_raw(raw) }
        .map_err(|_| dlfield::ExchangeError::new("raw", &"the address of a DLPack struct", &"NULL"))?;
    // SAFETY: the struct describes valid memory, because it comes from `to_versioned`.
    let back = unsafe { Tensor::from_managed(managed) }?;
    assert_eq!(back.descriptor().ptr(), address);

    // Convert to an owned array. Memory that `ndarray` could not free is copied.
    let array: Array3<f64> = back.into_array()?;
    println!("{} points, the sum is {}", array.len(), array.sum());

    // An array of any layout becomes a tensor without a copy.
    let start = array.as_ptr();
    let field = Tensor::from_array(array)?;
    assert_eq!(field.descriptor().ptr().cast_const().cast(), start);
    Ok(())
}
