//! The Python functions `describe` and `from_dlpack`, which import any array.

#![allow(unsafe_code, reason = "the interpreter calls the functions with raw pointers")]

use pyo3::prelude::*;

use crate::descriptor::{Descriptor, read_only};
use crate::device::Device;
use crate::layout::Metadata;
use crate::layout::extents::Extents;
use crate::python::convert::{args, stream};
use crate::python::copies;
use crate::python::ffi::fastcall::{self, Argument, Definition, Parameters, given, required};
use crate::python::import::{self, Found, Imported, Request, RequestAccess, not_an_array, not_owned};
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::freelist;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::values::{check_device, check_place};
use crate::python::own_classes::{self, Description};
use crate::tensor::Tensor;

static FROM_DLPACK: Definition = Definition::new(
    c"from_dlpack",
    c"from_dlpack(obj, *, device=None, copy=None, dims=None, origin=None, stream=None)
--

Import any array as a `Tensor` that shares its memory and owns it.

Read-only memory stays read-only; memory of a legacy DLPack capsule, which has no read-only flag, counts as read-only. The
tensor gets the dims, origin and halo of the object. The memory stays in place as long as the tensor lives: NumPy
and PyTorch refuse to resize it meanwhile, and if a `torch.Tensor` is given other memory, this one stays with the tensor.

Parameters
----------
obj : array
    Any array with one of the protocols that `describe` lists.
device : str or device, optional
    The device that the memory must be on; None accepts any. A DLPack producer gets it as `dl_device`, other memory is
    copied there. Pinned and managed memory serves as memory of the host or of a CUDA device without a copy. The
    driver checks that CUDA memory is on the device.
copy : bool, optional
    None copies only if the producer has no memory to share; True always copies, False never.
dims : str or sequence of str, optional
    Labels of the dimensions, instead of those of `obj`.
origin : sequence of int or mapping, optional
    Index of the first compute point, instead of that of `obj`. A field of `gt4py.next` begins at the grid's point 0; without
    that point in its domain it needs this argument.
stream : int or stream, optional
    The CUDA stream that will use the memory: its later work waits for the producer's work. A number as in DLPack, or an
    object with `__cuda_stream__`; -1 for no synchronization. None for the current stream of this thread; the host has
    no streams.

Returns
-------
Tensor
    On the same memory with the same strides, unless the memory had to be copied.

Raises
------
NotAnArrayError
    No protocol describes `obj`.
ExchangeError
    A field of the protocol is wrong; `copy=False` and the producer has copied; a stream for host memory; a PyTorch tensor
    that requires grad; a `Descriptor` of memory that was moved since.
DTypeError
    Elements that no other library supports: of the other byte order, structured, objects, dates, text.
DeviceError
    The memory is on a device that is absent, or whose memory dlfield cannot own; no such stream.
MemoryError
    There is no memory for a copy.
DimsError, LayoutError
    Metadata that does not fit the shape, or that differs between two sources; a field of `gt4py.next` without the grid's
    point 0, and no `origin`.
Exception
    The producer's own exceptions reach the caller.

Example
-------
>>> import dlfield as dl, numpy as np
>>> array = np.ones((2, 3))
>>> field = dl.from_dlpack(array, dims=\"JI\")
>>> field[0, 0] = 5.0
>>> float(array[0, 0]), field.dims
(5.0, ('J', 'I'))
",
    from_dlpack,
);

static FROM_DLPACK_PARAMETERS: Parameters<6> =
    Parameters::new("from_dlpack", ["obj", "device", "copy", "dims", "origin", "stream"], 1, 1).with_hints(&[
        ("dtype", "it shares memory as it is; from_array(obj, dtype) copies"),
        ("layout", "it shares memory as it is; from_array(obj, layout=...) copies"),
        ("backend", "it shares memory as it is; from_array(obj, backend=...) copies"),
        ("alignment_size", "it shares memory as it is; from_array(obj, alignment_size=...) copies"),
        ("halo", "set it afterwards: field.halo = ..."),
    ]);

fastcall::c_function!(
    from_dlpack,
    FROM_DLPACK_PARAMETERS,
    |_, arguments| owned(required(arguments.first())?, Some(arguments)),
    |obj| { owned(obj, None) }
);

/// `from_dlpack`, with the arguments in the order of its parameters if there may be others than `obj`.
#[inline(always)]
pub(super) fn owned<'py>(
    obj: &Bound<'py, PyAny>,
    arguments: Option<&[Argument<'_, 'py>; 6]>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = freelist::create(obj.py(), |PyTensor(tensor, _): &mut PyTensor| {
        if let Some(arguments) = arguments {
            return owned_as_requested(obj, arguments, tensor);
        }
        let request = const { &Request::new(RequestAccess::Write).sharing().with_metadata() };
        import::share(obj, request, tensor)?.ok_or_else(|| not_an_array(obj))?;
        if tensor.descriptor().device() == Device::CPU { Ok(()) } else { check_owned(request, tensor.descriptor()) }
    })?;
    Ok(made.into_any())
}

/// Imports an object as the optional arguments of `from_dlpack` say.
#[cold]
fn owned_as_requested(obj: &Bound<'_, PyAny>, arguments: &[Argument<'_, '_>; 6], tensor: &mut Tensor) -> PyResult<()> {
    let [_, device, copy, dims, origin, stream] = arguments.each_ref().map(given);
    let copy = copy.map_or(Ok(None), args::copy)?;
    let access = if copy == Some(true) { RequestAccess::Read } else { RequestAccess::Write };
    let mut request = Request::new(access).sharing();
    (request.device, request.copy, request.stream) = (device.map(parse_device).transpose()?, copy, stream);
    let dims = dims.map(args::dims).transpose()?;
    let by_label = origin.filter(|origin| args::mapping(origin).is_some());
    let mut given = import::with_given_origin(obj, origin)?;
    given.dims = dims;
    if let (Some(origin), None) = (origin, by_label) {
        given.origin = Some(args::ints("origin", origin)?.into_boxed_slice());
    }
    request.metadata = Some(&given);
    let release = import::share(obj, &request, tensor)?.ok_or_else(|| not_an_array(obj))?;
    if let Some(origin) = by_label {
        let others = || Extents::from_slice(&tensor.origin());
        let origin = args::ints_by_label("origin", origin, &tensor.dims(), others)?;
        tensor.relabel(Metadata::default().with_origin(origin.into_boxed_slice()))?;
    }
    let found = tensor.descriptor().device();
    let elsewhere = request.device.filter(|wanted| *wanted != found);
    if found == Device::CPU && elsewhere.is_none() {
        args::check_stream(stream, found)?;
    } else {
        check_owned(&request, tensor.descriptor())?;
    }
    if let Some(wanted) = elsewhere {
        *tensor = moved(obj.py(), tensor, wanted, &request)?;
    } else if copy == Some(true) {
        let copied = copies::copy_like(obj.py(), tensor, "from_dlpack: copy=True")?;
        release.after_copy(obj.py(), found)?;
        *tensor = copied;
    }
    Ok(())
}

/// Rejects memory of a device whose memory dlfield cannot own, and CUDA memory that is not on the requested device.
#[cold]
fn check_owned(request: &Request<'_>, descriptor: &Descriptor) -> PyResult<()> {
    let found = descriptor.device();
    if !found.is_ownable() {
        check_device(request.device, found)?;
        return Err(not_owned(found).into());
    }
    if request.device == Some(found) && found.is_of_cuda() {
        check_place(found, descriptor)?;
    }
    Ok(())
}

/// Returns the tensor on the requested device. The caller's stream is one of the device that it leaves, unless that is the host.
#[cold]
fn moved(py: Python<'_>, tensor: &Tensor, wanted: Device, request: &Request<'_>) -> PyResult<Tensor> {
    let found = tensor.descriptor().device();
    let stream_device = if found == Device::CPU { wanted } else { found };
    stream::in_stream(request.stream, stream_device, || Ok(copies::to(py, tensor, wanted, request.copy)?))
}

static DESCRIBE: Definition = Definition::new(
    c"describe",
    c"describe(obj, *, dims=None, device=None, writable=False, stream=None)
--

Describe any array in place: address, shape, strides, element type, device, metadata. Never copies.

Protocols are tried in this order; the first one that an object has is used, and its errors are final. The value of
`Descriptor.protocol` is in parentheses:

- our own types (dlfield), NumPy's arrays (numpy), DLPack's C exchange API (dlpack-c), JAX arrays on the host (jax),
  bytes, bytearray and memoryview (buffer);
- xarray.DataArray and Variable and gt4py.next fields: the array inside, by its own protocol;
- `__dlpack__` and raw capsules of both names (dlpack);
- `__gt_data_interface__` and `__gt_interface__` (gt);
- `__cuda_array_interface__` (cuda-array-interface), `__hip_array_interface__` (hip-array-interface),
  `__array_interface__` (array-interface), `__array_struct__` (array-struct);
- the buffer protocol (buffer), and last `__array__` (array).

Describing memory of a GPU needs neither a driver nor a GPU; the memory is not accessed.

Parameters
----------
obj : array
    The array. A raw capsule can be described only once: that consumes it.
dims : str or sequence of str, optional
    Labels of the dimensions, instead of those of `obj`.
device : str or device, optional
    The device that must be able to access the memory; None accepts any. Pinned and managed memory fits the host, which
    waits for the work on it, and CUDA devices. The CUDA and ROCm interfaces do not name the GPU: this
    argument does, else the driver if there is one, else it is number 0. The driver checks that CUDA memory is on the
    device.
writable : bool, optional
    Whether the memory must be writable. A legacy DLPack capsule has no read-only flag: its memory counts as read-only
    unless True promises that it is writable. `from_dlpack`, `as_numpy`, `as_torch`, `as_cupy` and `Signature.bind` take the
    description as an array, with that promise. Memory of JAX is always read-only.
stream : int or stream, optional
    The stream that will use the memory, a number as in DLPack or an object with `__cuda_stream__`: its later work waits
    for the producer's work. -1 for no synchronization. None for the current stream of this thread; the host has no
    streams.

Returns
-------
Descriptor
    Keeps `obj`, and what the producer exported. If `obj` moves its memory afterwards (`resize` of NumPy, `resize_`, `set_`,
    `.data =` of PyTorch), `ptr` is invalid; if dlfield uses the description again, that is an error.

Raises
------
NotAnArrayError
    No protocol describes `obj`.
ExchangeError
    A field of the protocol is wrong; the memory is read-only and `writable=True`; the producer offers only a copy; a
    stream that the device does not have or that the protocol of `obj` does not take; a PyTorch tensor that requires grad and
    `writable=True`.
DTypeError
    Elements that no other library supports: of the other byte order, structured, objects, dates, text.
DeviceError
    `device` cannot access the memory.
DimsError, LayoutError
    Metadata that does not fit the shape, or that differs between two sources.
Exception
    The producer's own exceptions reach the caller.

Example
-------
>>> import dlfield as dl, numpy as np
>>> seen = dl.describe(np.zeros((2, 3), \"float32\"))
>>> seen.shape, seen.strides, seen.protocol
((2, 3), (12, 4), 'numpy')
",
    describe,
);

static DESCRIBE_PARAMETERS: Parameters<5> =
    Parameters::new("describe", ["obj", "dims", "device", "writable", "stream"], 1, 1);

fastcall::c_function!(
    describe,
    DESCRIBE_PARAMETERS,
    |_, arguments| described(required(arguments.first())?, Some(arguments)),
    |obj| { described(obj, None) }
);

/// `describe`, with the arguments in the order of its parameters if there may be others than `obj`.
#[inline(always)]
fn described<'py>(obj: &Bound<'py, PyAny>, arguments: Option<&[Argument<'_, 'py>; 5]>) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    let made = freelist::create(py, |description: &mut PyDescriptor| {
        if arguments.is_none() && import::locate_array(obj, description.descriptor_mut())? {
            description.set(obj.clone(), "numpy");
            return Ok(());
        }
        let (metadata, options);
        let request = if let Some(arguments) = arguments {
            metadata = describe_metadata(arguments)?;
            options = describe_request(arguments, &metadata)?;
            &options
        } else {
            const { &Request::new(RequestAccess::Read).with_metadata() }
        };
        let mut imported = Imported::new(description.descriptor_mut());
        import::describe(obj, request, &mut imported)?;
        let Found { owner, owner_needs_object, protocol, readonly_unknown } = imported.found();
        description.set_owned(own_classes::object_to_keep(obj), owner, owner_needs_object, protocol);
        if arguments.is_none() {
            return Ok(());
        }
        check_request(request, readonly_unknown, description.descriptor_mut())?;
        synchronize_requested(&description.parts(py), request.device)
    })?;
    Ok(made.into_any())
}

/// Parses the labels that `describe` is given.
#[cold]
fn describe_metadata(arguments: &[Argument<'_, '_>; 5]) -> PyResult<Metadata> {
    Ok(Metadata { dims: given(&arguments[1]).map(args::dims).transpose()?, ..Metadata::default() })
}

/// Parses the other optional arguments of `describe`.
#[cold]
fn describe_request<'a, 'py>(arguments: &'a [Argument<'_, 'py>; 5], metadata: &'a Metadata) -> PyResult<Request<'a>> {
    let [_, _, device, writable, stream] = arguments.each_ref().map(given);
    let writable = writable.map_or(Ok(false), |flag| args::flag("writable", flag))?;
    let mut request = Request::new(if writable { RequestAccess::Write } else { RequestAccess::Read });
    (request.device, request.stream) = (device.map(parse_device).transpose()?, stream);
    request.metadata = Some(metadata);
    Ok(request)
}

/// Checks a description against the request.
#[cold]
fn check_request(request: &Request<'_>, readonly_unknown: bool, descriptor: &mut Descriptor) -> PyResult<()> {
    check_device(request.device, descriptor.device())?;
    args::check_stream(request.stream, request.device.unwrap_or(descriptor.device()))?;
    if let Some(wanted) = request.device.filter(|wanted| wanted.is_of_cuda()) {
        check_place(wanted, descriptor)?;
    }
    if request.access != RequestAccess::Write {
        return Ok(());
    }
    if readonly_unknown {
        descriptor.set_readonly(false);
    }
    if descriptor.is_readonly() {
        let fix = "describe it without writable=True, or pass a copy";
        return Err(read_only("writable", fix).into());
    }
    Ok(())
}

/// Waits for device work on pinned and managed memory that was requested for the host.
fn synchronize_requested(found: &Description<'_, '_>, wanted: Option<Device>) -> PyResult<()> {
    if wanted != Some(Device::CPU) || found.descriptor.device() == Device::CPU {
        return Ok(());
    }
    import::synchronize_described(&found.object, found.owner, found.descriptor)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    FROM_DLPACK.add_to(module)?;
    DESCRIBE.add_to(module)
}
