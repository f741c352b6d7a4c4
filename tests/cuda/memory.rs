//! Reads and writes of memory one element at a time: the reference for copies.

use cudarc::driver::sys;
use dlfield::{DType, Device, Result, Tensor};

use crate::double::Double;
use crate::driver::{finish_everything, ok, within};

/// Returns the bytes from the address of a field to each of its elements, in index order.
pub fn offsets(tensor: &Tensor) -> Vec<isize> {
    let descriptor = tensor.descriptor();
    let mut offsets = vec![0isize];
    for (extent, stride) in descriptor.shape().iter().zip(descriptor.byte_strides()) {
        let at = |index: i64| isize::try_from(index * stride).unwrap();
        offsets = offsets.iter().flat_map(|offset| (0..*extent).map(move |index| offset + at(index))).collect();
    }
    offsets
}

/// All bytes from a field's first element in memory to its last, gaps included.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    start: isize,
    bytes: Vec<u8>,
}

impl Image {
    /// Reads the bytes after all devices have finished.
    pub fn of(tensor: &Tensor) -> Image {
        let offsets = offsets(tensor);
        let itemsize = tensor.descriptor().itemsize();
        let (Some(first), Some(last)) = (offsets.iter().min(), offsets.iter().max()) else {
            return Image { start: 0, bytes: vec![] };
        };
        let mut bytes = vec![0u8; usize::try_from(last - first).unwrap() + itemsize];
        let from = tensor.descriptor().ptr().wrapping_offset(*first);
        moved(tensor.descriptor().device(), bytes.as_mut_ptr(), from, bytes.len(), false);
        Image { start: *first, bytes }
    }

    /// Writes the bytes back to the field.
    pub fn put(&self, tensor: &Tensor) {
        let to = tensor.descriptor().ptr().wrapping_offset(self.start);
        moved(tensor.descriptor().device(), self.bytes.as_ptr().cast_mut(), to, self.bytes.len(), true);
    }

    /// Returns the elements of a field inside the image's field, whose address is `origin`.
    pub fn elements(&self, tensor: &Tensor, origin: *mut u8) -> Vec<u8> {
        let itemsize = tensor.descriptor().itemsize();
        self.places(tensor, origin).flat_map(|at| self.bytes[at..at + itemsize].to_vec()).collect()
    }

    /// Replaces the elements of such a field.
    pub fn replace(&mut self, tensor: &Tensor, origin: *mut u8, elements: &[u8]) {
        let itemsize = tensor.descriptor().itemsize();
        let places: Vec<_> = self.places(tensor, origin).collect();
        for (at, element) in places.into_iter().zip(elements.chunks_exact(itemsize)) {
            self.bytes[at..at + itemsize].copy_from_slice(element);
        }
    }

    fn places(&self, tensor: &Tensor, origin: *mut u8) -> impl Iterator<Item = usize> + use<> {
        let ahead = tensor.descriptor().ptr().addr().wrapping_sub(origin.addr()).cast_signed() - self.start;
        offsets(tensor).into_iter().map(move |offset| usize::try_from(offset + ahead).unwrap())
    }
}

pub fn assign(to: &Tensor, from: &Tensor) -> Result<()> {
    // SAFETY: nobody else has the fields of a test.
    unsafe { to.assign(from) }
}

pub fn fill(field: &Tensor, element: &[u8]) -> Result<()> {
    // SAFETY: nobody else has the fields of a test.
    unsafe { field.fill_bytes(element) }
}

/// Returns a field's elements, in index order.
pub fn elements(tensor: &Tensor) -> Vec<u8> {
    Image::of(tensor).elements(tensor, tensor.descriptor().ptr())
}

/// Writes a field's elements, in index order.
pub fn put(tensor: &Tensor, elements: &[u8]) {
    let mut image = Image::of(tensor);
    image.replace(tensor, tensor.descriptor().ptr(), elements);
    image.put(tensor);
}

/// Returns as many bytes as a field has, with different elements.
pub fn numbers(tensor: &Tensor, seed: u8) -> Vec<u8> {
    let (size, dtype) = (usize::try_from(tensor.descriptor().size()).unwrap(), tensor.descriptor().dtype());
    let mut state = u32::from(seed).wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..size * dtype.itemsize()).map(|_| if dtype == DType::BOOL { next() & 1 } else { next() }).collect()
}

fn moved(device: Device, here: *mut u8, there: *mut u8, bytes: usize, write: bool) {
    finish_everything();
    if bytes == 0 {
        return;
    }
    // SAFETY: `here` is a vector of so many bytes, and `there` is memory of a field.
    unsafe {
        if !device.is_host_readable() {
            let address = there.addr() as u64;
            within(device, || {
                ok(if write {
                    sys::cuMemcpyHtoD_v2(address, here.cast(), bytes)
                } else {
                    sys::cuMemcpyDtoH_v2(here.cast(), address, bytes)
                });
                ok(sys::cuCtxSynchronize());
            });
            return;
        }
        if device != Device::CPU
            && let Some(double) = Double::find()
        {
            double.host_access(there.addr(), bytes, write);
        }
        if write { there.copy_from_nonoverlapping(here, bytes) } else { here.copy_from_nonoverlapping(there, bytes) }
    }
}
