//! Elements of tensors as bytes, one at a time.

#![allow(unsafe_code, reason = "elements are reached through their address")]

use dlfield::Tensor;

use crate::naive::{indices, offset, size};

fn address(tensor: &Tensor, index: &[i64]) -> *mut u8 {
    let field = tensor.descriptor();
    assert_eq!(index.len(), field.ndim());
    assert!(index.iter().zip(field.shape()).all(|(at, extent)| (0..*extent).contains(at)), "{index:?}");
    let way = isize::try_from(offset(index, field.strides(), field.itemsize())).unwrap();
    field.ptr().wrapping_offset(way)
}

pub fn read(tensor: &Tensor, index: &[i64]) -> Vec<u8> {
    let start = address(tensor, index);
    // SAFETY: an element of a live tensor; nobody writes it meanwhile.
    unsafe { std::slice::from_raw_parts(start, tensor.descriptor().itemsize()) }.to_vec()
}

pub fn write(tensor: &Tensor, index: &[i64], bytes: &[u8]) {
    assert!(!tensor.descriptor().is_readonly());
    assert_eq!(bytes.len(), tensor.descriptor().itemsize());
    let to = address(tensor, index);
    // SAFETY: an element of a live tensor that may be written; nobody else uses it meanwhile.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// Returns all elements, last index fastest.
pub fn all(tensor: &Tensor) -> Vec<Vec<u8>> {
    indices(tensor.descriptor().shape()).iter().map(|index| read(tensor, index)).collect()
}

/// Returns an element that encodes its number, in as many bytes as it has, none of them 0.
pub fn numbered(number: usize, itemsize: usize) -> Vec<u8> {
    let digits = [1, 251, 251 * 251, 251 * 251 * 251];
    let byte = |place: usize| u8::try_from(number / digits[place % 4] % 251 + 1).unwrap();
    (0..itemsize).map(byte).collect()
}

/// Numbers all elements, last index fastest.
pub fn number_all(tensor: &Tensor) {
    for (number, index) in indices(tensor.descriptor().shape()).iter().enumerate() {
        write(tensor, index, &numbered(number, tensor.descriptor().itemsize()));
    }
}

/// Returns the elements that [`number_all`] writes.
pub fn numbers(tensor: &Tensor) -> Vec<Vec<u8>> {
    let field = tensor.descriptor();
    (0..size(field.size())).map(|number| numbered(number, field.itemsize())).collect()
}
