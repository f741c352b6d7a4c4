//! Tensors of memory that others made: `from_pointer`, `frombuffer`, and what `dlfield.files` needs.

#![allow(unsafe_code, reason = "what is at an address is the caller's promise")]

use std::ptr::with_exposed_provenance_mut;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{ExchangeError, LayoutError};
use crate::layout::Spec;
use crate::layout::extents::Extents;
use crate::protocol::array_interface::outside_buffer;
use crate::python::convert::metadata_state::MetadataState;
use crate::python::convert::{args, dtype};
use crate::python::ffi::new_error::{ArgumentError, new_error};
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::functions::keywords::{Given, Keywords};
use crate::python::module::values::{check_place, memory_of, owner_of_pointer};
use crate::tensor::{Owner, Tensor};

/// The arguments that say what the memory holds, converted before any memory is looked at: their conversion may run code.
struct Elements {
    spec: Spec,
    /// In bytes; `None` for C order.
    strides: Option<Extents>,
}

impl Elements {
    fn parse<'a, 'py>(
        shape: &'a Bound<'py, PyAny>,
        dtype: &'a Bound<'py, PyAny>,
        strides: Given<'a, 'py>,
        labels: &Keywords<'a, 'py>,
    ) -> PyResult<Elements> {
        let mut shape = args::shape(shape)?;
        let (element, sub_shape) = dtype::parse(dtype)?;
        shape.extend_from_slice(&sub_shape);
        let mut strides = strides.map(|strides| args::ints("strides", strides)).transpose()?;
        if let Some(strides) = &mut strides
            && strides.len() + sub_shape.len() == shape.len()
        {
            // Those of the sub-array, whose elements are contiguous.
            let itemsize = i64::try_from(element.itemsize()).unwrap_or(i64::MAX);
            let inner = Spec::new(&sub_shape, element).place()?.strides;
            strides.extend(inner.iter().map(|stride| stride.saturating_mul(itemsize)));
        }
        let mut spec = Spec::new(&shape, element);
        labels.apply(&mut spec, sub_shape.len())?;
        Ok(Elements { spec, strides })
    }

    /// The elements at an address, checked; without labels.
    fn at(&self, start: *mut u8, device: Device, readonly: bool) -> PyResult<Descriptor> {
        // Checks the labels as well.
        let placed = self.spec.place()?;
        let (shape, dtype) = (&placed.shape, self.spec.dtype());
        let found = match &self.strides {
            Some(strides) => Descriptor::from_byte_strides(start, device, dtype, readonly, shape, strides),
            None => Descriptor::new(start, device, dtype, readonly, shape, &placed.strides),
        };
        found.map_err(|error| match error.argument() {
            "data" => {
                let expected = "the address of memory, from 0x10000 on, or 0 for a field without elements";
                ExchangeError::new("address", &expected, &start.addr()).into()
            }
            _ => error.into(),
        })
    }

    /// A tensor of these elements.
    ///
    /// # Safety
    /// - As for [`Tensor::from_parts`].
    unsafe fn tensor(&self, found: Descriptor, owner: Owner) -> PyResult<PyTensor> {
        // SAFETY: passed on from the caller.
        let mut tensor = unsafe { Tensor::from_parts(found, owner) };
        tensor.relabel(self.spec.metadata().clone())?;
        Ok(PyTensor::new(tensor))
    }
}

/// Keywords of other functions that a call of `frombuffer` may have, and what to write here.
const FROMBUFFER_HINTS: [(&str, &str); 7] = [
    ("backend", "write strides, in bytes, or dl.empty(shape, dtype, backend=..., buffer=buf)"),
    ("layout", "write strides, in bytes, or dl.empty(shape, dtype, layout=..., buffer=buf)"),
    ("order", "write strides, in bytes, or dl.empty(shape, dtype, backend='F', buffer=buf)"),
    ("alignment_size", "write dl.empty(shape, dtype, alignment_size=..., buffer=buf)"),
    ("aligned_index", "write dl.empty(shape, dtype, aligned_index=..., buffer=buf)"),
    ("padding", "write strides, in bytes, or dl.empty(shape, dtype, padding=..., buffer=buf)"),
    ("count", "write shape"),
];

/// The same of `from_pointer`, for which there is no buffer.
const FROM_POINTER_HINTS: [(&str, &str); 4] = [
    ("backend", "write strides, in bytes"),
    ("layout", "write strides, in bytes"),
    ("order", "write strides, in bytes"),
    ("padding", "write strides, in bytes"),
];

/// Converts an address.
fn address_of(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    if args::is_bool(value) {
        return Err(args::not_an_integer("address", value));
    }
    value.extract().map_err(|error: PyErr| {
        let (py, shown) = (value.py(), args::shown(value));
        if error.is_instance_of::<PyOverflowError>(py) {
            return LayoutError::new("address", &format_args!("0 to {}", usize::MAX), &shown).into();
        }
        if value.is_none() {
            return new_error::<PyTypeError>(
                "address: expected the address of memory, got None, which ctypes makes of a null pointer",
            );
        }
        if error.is_instance_of::<PyTypeError>(py) {
            let fix = "of a ctypes pointer it is ctypes.cast(pointer, ctypes.c_void_p).value";
            return new_error::<PyTypeError>(ArgumentError::new("address", &"an integer", &shown).with_fix(&fix));
        }
        error
    })
}

/// Make a tensor of memory that other code has made, by its address.
///
/// Nothing can check what is at the address: the caller promises that all elements can be read, and written unless
/// `readonly`, as long as the tensor, a view of it or an export lives. `owner` is the way to keep that promise.
///
/// Parameters
/// ----------
/// address : int
///     The address of the element at index 0, an integer, also with negative strides. It need not be aligned. 0 only for a
///     field without elements.
/// shape : int or sequence of int
///     Elements per dimension.
/// dtype : str, type or dtype
///     The element type, as for `empty`.
/// strides : sequence of int, optional
///     In bytes, as in `ndarray.strides`, each a multiple of the element size. None for C order.
/// device : str or device, optional
///     Where the memory is: "cpu", "cuda:N", "cuda_host" (pinned) or "cuda_managed". CUDA memory needs the driver, which
///     checks it. Work on it that is not yet done must be in the current stream of this thread.
/// dims, halo, origin : optional
///     As for `empty`.
/// owner : object, optional
///     Any object. It is kept, and released once, by whichever thread drops the last of the tensor, its views and its
///     exports; so an owner whose `__del__` frees the memory frees it at the right time. An owner that refers to the tensor
///     is never released. None if the memory outlives all of them anyway.
/// readonly : bool, optional
///     Whether the memory must not be written.
///
/// Returns
/// -------
/// Tensor
///     On this memory. No alignment is promised (`alignment_size` is 1); `alignment()` is that of the address.
///
/// Raises
/// ------
/// LayoutError, DimsError, DTypeError
///     An argument that does not fit the others, or that has a wrong type.
/// ExchangeError
///     Another number of strides than of dimensions; strides that are not whole elements, elements that leave the address space, address 0 with elements.
/// DeviceError
///     Memory of another kind of device, no CUDA driver, or memory that is not on `device` according to the driver.
///
/// Example
/// -------
/// >>> import ctypes, dlfield as dl
/// >>> memory = (ctypes.c_double * 6)(1, 2, 3, 4, 5, 6)
/// >>> field = dl.from_pointer(ctypes.addressof(memory), (3, 2), "float64", strides=(8, 24), dims="IJ", owner=memory)
/// >>> field.to_numpy().tolist()
/// [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
#[pyfunction]
#[pyo3(
    signature = (address, shape, dtype, *, strides=None, device=None, dims=None, halo=None, origin=None, owner=None, readonly=None, **others),
    text_signature = "(address, shape, dtype, *, strides=None, device='cpu', dims=None, halo=None, origin=None, owner=None, readonly=False)"
)]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
fn from_pointer<'py>(
    address: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    strides: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    dims: Option<&Bound<'py, PyAny>>,
    halo: Option<&Bound<'py, PyAny>>,
    origin: Option<&Bound<'py, PyAny>>,
    owner: Option<&Bound<'py, PyAny>>,
    readonly: Option<&Bound<'py, PyAny>>,
    others: Option<&Bound<'py, PyDict>>,
) -> PyResult<PyTensor> {
    let known = ["address", "shape", "dtype", "strides", "device", "dims", "halo", "origin", "owner", "readonly"];
    args::no_keywords("from_pointer", others, &FROM_POINTER_HINTS, &known)?;
    let address = address_of(address)?;
    let elements = Elements::parse(shape, dtype, strides, &Keywords::of_labels(dims, halo, origin))?;
    let device = device.map_or(Ok(Device::CPU), parse_device)?;
    let readonly = readonly.map_or(Ok(false), |flag| args::flag("readonly", flag))?;
    let found = elements.at(with_exposed_provenance_mut(address), device, readonly)?;
    let owner = owner_of_pointer(owner, device)?;
    if device.is_of_cuda() {
        check_place(device, &found)?;
    }
    // SAFETY: the caller of the Python function promises that the memory is there.
    unsafe { elements.tensor(found, owner) }
}

/// Make a tensor of the memory of any object with the buffer protocol, without a copy.
///
/// Of the object only its memory counts, not its element type and shape. It is held: a `bytearray` cannot be resized, and a
/// `memoryview` or `mmap` not be closed, as long as the tensor, a view of it or an export lives. Read-only memory makes a
/// read-only tensor.
///
/// Parameters
/// ----------
/// buf : buffer or array
///     Contiguous memory: `bytes`, `bytearray`, `memoryview`, `array.array`, `mmap.mmap`, `SharedMemory.buf`, a ctypes
///     array, or an array of any library.
/// shape : int or sequence of int
///     Elements per dimension.
/// dtype : str, type or dtype
///     The element type, as for `empty`.
/// strides : sequence of int, optional
///     In bytes, as in `ndarray.strides`, each a multiple of the element size. None for C order.
/// offset : int, optional
///     Bytes from the start of the buffer to the element at index 0.
/// dims, halo, origin : optional
///     As for `empty`.
///
/// Returns
/// -------
/// Tensor
///     On this memory. No alignment is promised (`alignment_size` is 1); `alignment()` is that of the address.
///
/// Raises
/// ------
/// NotAnArrayError
///     `buf` has no memory to share, or is a pointer of ctypes, whose buffer is the pointer itself.
/// LayoutError, DimsError, DTypeError
///     An argument that does not fit the others, or that has a wrong type; memory with gaps.
/// ExchangeError
///     Elements outside the buffer; strides that are not whole elements.
///
/// Example
/// -------
/// >>> import dlfield as dl
/// >>> header_and_data = bytearray(16 + 24)
/// >>> field = dl.frombuffer(header_and_data, (2, 3), "int32", strides=(4, 8), offset=16, dims="JI")
/// >>> field[1, 2] = 7
/// >>> header_and_data[36]
/// 7
#[pyfunction]
#[pyo3(
    signature = (buf, shape, dtype, *, strides=None, offset=None, dims=None, halo=None, origin=None, **others),
    text_signature = "(buf, shape, dtype, *, strides=None, offset=0, dims=None, halo=None, origin=None)"
)]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
fn frombuffer<'py>(
    buf: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    strides: Option<&Bound<'py, PyAny>>,
    offset: Option<&Bound<'py, PyAny>>,
    dims: Option<&Bound<'py, PyAny>>,
    halo: Option<&Bound<'py, PyAny>>,
    origin: Option<&Bound<'py, PyAny>>,
    others: Option<&Bound<'py, PyDict>>,
) -> PyResult<PyTensor> {
    let known = ["buf", "shape", "dtype", "strides", "offset", "dims", "halo", "origin"];
    args::no_keywords("frombuffer", others, &FROMBUFFER_HINTS, &known)?;
    let elements = Elements::parse(shape, dtype, strides, &Keywords::of_labels(dims, halo, origin))?;
    let offset = offset.map_or(Ok(0), |offset| args::int("offset", offset))?;
    // The last argument: what runs while others are converted may release or resize the buffer.
    let memory = memory_of("buf", buf)?;
    let len = memory.bytes;
    let start = usize::try_from(offset).ok().filter(|offset| *offset <= len);
    let Some(start) = start.map(|offset| memory.start.wrapping_add(offset)) else {
        let expected = format_args!("0 to {len}, the bytes of the buffer");
        return Err(LayoutError::new("offset", &expected, &offset).into());
    };
    let found = elements.at(start, memory.device, memory.readonly)?;
    let (low, high) =
        found.byte_span().map_or((0, 0), |(low, high)| (low + i128::from(offset), high + i128::from(offset)));
    if low < 0 || high > i128::try_from(len).unwrap_or(i128::MAX) {
        return Err(outside_buffer("buf", low, high, len).into());
    }
    // SAFETY: the elements are in the memory that the object exports, and the owner holds its export.
    unsafe { elements.tensor(found, memory.owner) }
}

/// Return what a file that keeps a field needs: its metadata for `_with_metadata`, and of a copy with the same layout and padding
/// the strides and the size of the block, in bytes.
#[pyfunction]
#[pyo3(name = "_copy_layout")]
fn copy_layout(field: &Bound<'_, PyTensor>) -> PyResult<(MetadataState, Vec<i64>, usize)> {
    let field = &field.get().0;
    let spec = field.spec().with_device(Device::CPU);
    let placed = spec.place()?;
    let itemsize = i64::try_from(spec.dtype().itemsize()).unwrap_or(i64::MAX);
    let strides = placed.strides.iter().map(|stride| stride.saturating_mul(itemsize)).collect();
    Ok((MetadataState::with_layout(field), strides, placed.block_bytes.saturating_sub(placed.first_byte)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_pointer, module)?)?;
    module.add_function(wrap_pyfunction!(frombuffer, module)?)?;
    module.add_function(wrap_pyfunction!(copy_layout, module)?)
}
