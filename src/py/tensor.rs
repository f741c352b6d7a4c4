//! `dlfield.Tensor`.

#![allow(unsafe_code, reason = "the buffer protocol's slots are unsafe")]

use std::ffi::c_int;

use numpy::PyArrayDescr;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyMemoryView, PyString, PyTuple};
use smallvec::SmallVec;

use super::device::{DlpackPair, PyDevice};
use super::errors::Kind;
use super::index;
use super::{args, arithmetic, attributes, copies, cupy, dtype, export, labels, pickle, place, recycle, stream};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::tensor::Tensor;

/// A field: memory with the layout a stencil needs, shared without a copy with every array library.
///
/// Strides are in bytes. Carries dims, origin and halo through views, copies and pickles. Made by `empty`, `zeros`, `ones`,
/// `full`, their `_like` forms, `from_array` and `from_dlpack`.
///
/// >>> import dlfield as dl, numpy as np
/// >>> field = dl.zeros((6, 6, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0))
/// >>> field.domain_view[...] = 1.0
/// >>> float(np.asarray(field).sum())
/// 64.0
#[pyclass(name = "Tensor", module = "dlfield", frozen, weakref)]
pub(super) struct PyTensor(pub(super) Tensor);

impl PyTensor {
    fn descriptor(&self) -> &Descriptor {
        self.0.descriptor()
    }

    fn scalar<'py>(slf: &Bound<'py, PyTensor>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        export::numpy::view_of(slf)?.call_method0(name)
    }
}

#[pymethods]
impl PyTensor {
    /// Extents, in index order.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.descriptor().shape())
    }

    /// Bytes from one element to the next, in index order.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::strides(py, self.descriptor())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.descriptor().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.descriptor().size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.descriptor().itemsize()
    }

    /// Bytes of all elements, without padding.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.descriptor().nbytes()
    }

    /// Element type, as `numpy.dtype`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        dtype::to_numpy(py, self.descriptor().dtype()).cloned()
    }

    /// Where the memory is.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.descriptor().device())
    }

    /// Labels of the dimensions, in index order.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::labels(py, &self.0.dims())
    }

    /// Index of the first compute point.
    #[getter]
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.origin())
    }

    /// (lower, upper) ghost widths per dimension.
    ///
    /// They can be set, each to a pair or to one number for both; `LayoutError` if they do not fit the shape. The dims stay,
    /// and the origin is the lower width from then on. The memory stays as it is, and with it the aligned index; so do views
    /// that were made before.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((6, 6))
    /// >>> field.halo = (1, (2, 0))
    /// >>> field.origin, field.domain_view.shape
    /// ((1, 2), (4, 4))
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.halo())
    }

    #[setter]
    fn set_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<()> {
        let widths = args::halo(halo).map_err(|error| labels::misstated(halo.py(), "halo", error))?;
        Ok(self.0.set_halo(&widths)?)
    }

    /// Rank of each dimension's stride; 0 is the largest.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::layout(py, &self.0.layout())
    }

    /// Bytes that the address of the element at `aligned_index` is a multiple of.
    #[getter]
    fn alignment_size(&self) -> i64 {
        self.0.alignment_size()
    }

    /// The index that is aligned.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.aligned_index())
    }

    /// Address of the element at index 0.
    #[getter]
    fn ptr(&self) -> usize {
        self.descriptor().ptr().addr()
    }

    /// Whether the memory must not be written through this tensor.
    #[getter]
    fn readonly(&self) -> bool {
        self.descriptor().is_readonly()
    }

    /// The memory as a `memoryview`, None where the host cannot read it.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).data.shape
    /// (2, 3)
    #[getter]
    fn data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let reaches = slf.get().descriptor().device().is_host_readable();
        if reaches { PyMemoryView::from(slf.as_any()).map(Some) } else { Ok(None) }
    }

    /// The memory as a `cupy.cuda.MemoryPointer`, None where no GPU can read it.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).device_data is None
    /// True
    #[getter]
    fn device_data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let device = slf.get().descriptor().device();
        let reaches = device.is_cuda() || device == Device::CUDA_MANAGED;
        reaches.then(|| cupy::array(slf)?.getattr(intern!(slf.py(), "data"))).transpose()
    }

    /// The field with its dimensions, and their labels, in reverse order, on the same memory.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).T.dims
    /// ('J', 'I')
    #[getter]
    #[pyo3(name = "T")]
    fn reversed(&self) -> PyResult<PyTensor> {
        let axes: SmallVec<[usize; 6]> = (0..self.descriptor().ndim()).rev().collect();
        Ok(PyTensor(self.0.transpose(&axes)?))
    }

    /// The field without its halo, on the same memory.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((6, 6), halo=(1, (2, 0))).domain_view.shape
    /// (4, 4)
    #[getter]
    fn domain_view(&self) -> PyTensor {
        PyTensor(self.0.domain_view())
    }

    /// The largest power of two that divides the address of the element at index 0, in bytes: what the pointer really has.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).alignment() >= 64
    /// True
    fn alignment(&self) -> u64 {
        self.descriptor().alignment()
    }

    /// Whether the elements follow each other without gaps: "C" last index fastest, "F" first, "A" either. `ValueError` for
    /// another order.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="F")
    /// >>> field.is_contiguous(), field.is_contiguous("F")
    /// (False, True)
    #[pyo3(signature = (order="C"))]
    fn is_contiguous(&self, order: &str) -> PyResult<bool> {
        attributes::contiguous(self.descriptor(), order)
    }

    /// A copy in memory of its own that may be written, with the same layout, padding, alignment and labels. `MemoryError`
    /// when that cannot be had.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), dims="KI").as_readonly()
    /// >>> field.copy().readonly, field.copy().dims
    /// (False, ('K', 'I'))
    fn copy(&self, py: Python<'_>) -> PyResult<PyTensor> {
        Ok(PyTensor(copies::like(py, &self.0)?))
    }

    /// The field with its dimensions in another order, by number or label, on the same memory; reversed if none are given.
    ///
    /// `DimsError` unless each dimension is named once.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3, 4)).transpose("K", "I", "J").shape
    /// (4, 2, 3)
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        Ok(PyTensor(self.0.transpose(&index::axes(&self.0, axes)?)?))
    }

    /// The field on the same memory, not to be written through this tensor or anything made from it.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> np.from_dlpack(dl.zeros(3).as_readonly()).flags.writeable
    /// False
    fn as_readonly(&self) -> PyTensor {
        PyTensor(self.0.clone().into_readonly())
    }

    /// The field on another device, with the same layout and labels; itself if it is there already.
    ///
    /// Pinned and managed memory is called that of the host or of a CUDA device without a copy; otherwise it is copied, in
    /// the given stream or else the current one of this thread. What is on the host then is complete. `DeviceError` where
    /// that device cannot be had, `MemoryError` where there is no memory.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros(3)
    /// >>> field.to_device("cpu") is field
    /// True
    #[pyo3(signature = (device, *, stream=None))]
    fn to_device<'py>(
        slf: &Bound<'py, PyTensor>,
        device: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let (wanted, found) = (args::device(device)?, slf.get().descriptor().device());
        let works = if found == Device::CPU { wanted } else { found };
        stream::within(stream, works, || {
            if wanted == found {
                return Ok(slf.clone());
            }
            recycle::tensor(slf.py(), place::to(slf.py(), &slf.get().0, wanted, None)?)
        })
    }

    /// A NumPy array on the same memory. `NoSuchBufferError` where the host cannot read it.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="F")
    /// >>> field.to_numpy().strides == field.strides
    /// True
    fn to_numpy<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        export::numpy::view_of(slf)
    }

    /// A CuPy array on the same memory. `NoSuchBufferError` where a GPU cannot read it.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).to_cupy()
    /// Traceback (most recent call last):
    ///     ...
    /// dlfield.NoSuchBufferError: device: cpu has no GPU buffer; allowed is memory on cuda or cuda_managed: copy it with to_device('cuda:0')
    fn to_cupy<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let device = slf.get().descriptor().device();
        if !device.is_cuda() && device != Device::CUDA_MANAGED {
            let fix = "allowed is memory on cuda or cuda_managed: copy it with to_device('cuda:0')";
            return Err(Kind::NoSuchBuffer.error(format!("device: {device} has no GPU buffer; {fix}")));
        }
        cupy::array(slf)
    }

    /// The array of the library that goes with the device, on the same memory: NumPy on the host, CuPy on a GPU.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.ones(2).to_ndarray()
    /// array([1., 1.])
    fn to_ndarray<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().descriptor().device().is_cuda() {
            return cupy::array(slf);
        }
        export::numpy::view_of(slf)
    }

    /// Copies what the host modified to the device: nothing to do with one buffer. Here for code that uses any storage, as
    /// `dlfield.storage.SoftwareManagedGPUStorage`.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).host_to_device()
    #[pyo3(signature = (*, force=false))]
    fn host_to_device(&self, force: bool) {
        let _ = force;
    }

    /// Copies what the device modified to the host: nothing to do with one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).device_to_host()
    #[pyo3(signature = (*, force=false))]
    fn device_to_host(&self, force: bool) {
        let _ = force;
    }

    /// Marks the host's buffer as modified: nothing to do with one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_host_modified()
    fn set_host_modified(&self) {}

    /// Marks the device's buffer as modified: nothing to do with one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_device_modified()
    fn set_device_modified(&self) {}

    /// Marks the buffers as equal: nothing to do with one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).set_synchronized()
    fn set_synchronized(&self) {}

    /// Makes the buffers equal: nothing to do with one buffer.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).synchronize()
    fn synchronize(&self) {}

    fn __len__(&self) -> PyResult<usize> {
        let extent = self.descriptor().shape().first();
        let extent = extent.ok_or_else(|| PyTypeError::new_err("len() of a tensor without dimensions"))?;
        Ok(usize::try_from(*extent).unwrap_or(usize::MAX))
    }

    /// The views along the first dimension, one after the other.
    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyIterator>> {
        slf.get().__len__()?;
        // SAFETY: the call takes any object with `__getitem__` and returns a new iterator or sets an error.
        let iterator = unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr()))? };
        Ok(iterator.cast_into::<PyIterator>()?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, PyTensor>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        index::get(slf, key)
    }

    fn __setitem__(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        index::set(slf, key, value)
    }

    fn __bool__(slf: &Bound<'_, PyTensor>) -> PyResult<bool> {
        export::numpy::view_of(slf)?.is_truthy()
    }

    fn __index__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        PyTensor::scalar(slf, "__index__")
    }

    fn __int__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        PyTensor::scalar(slf, "__int__")
    }

    fn __float__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        PyTensor::scalar(slf, "__float__")
    }

    fn __complex__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        PyTensor::scalar(slf, "__complex__")
    }

    /// As the number, where there is but one.
    fn __format__<'py>(slf: &Bound<'py, PyTensor>, format_spec: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let descriptor = slf.get().descriptor();
        if descriptor.ndim() == 0 && descriptor.device().is_host_readable() {
            let number = export::numpy::view_of(slf)?.get_item(PyTuple::empty(slf.py()))?;
            return number.call_method1(intern!(slf.py(), "__format__"), (format_spec,));
        }
        if !format_spec.is_empty()? {
            let fix = "allowed is a tensor on the host without dimensions, or no format";
            let what = format!("format: {} for {}; {fix}", args::shown(format_spec), slf.repr()?);
            return Err(PyTypeError::new_err(what));
        }
        Ok(slf.repr()?.into_any())
    }

    /// Computes with the elements by labels: what NumPy calls for `np.add(a, b)`, `np.add.reduce(a)` and their like.
    ///
    /// Dimensions of one label belong together, whatever their order; those that an operand lacks, and sizes of 1, are
    /// repeated. `NotImplemented` where an operand has rules of its own.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> np.add(dl.ones((2, 3), dims="IJ"), dl.ones(4, dims="K")).dims
    /// ('I', 'J', 'K')
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arithmetic::array_ufunc(ufunc, method, inputs, kwargs)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyDict>) -> PyResult<PyTensor> {
        // Nothing below the tensor is copied deeply, and the copy module itself remembers what this returns.
        let _ = memo;
        self.copy(py)
    }

    fn __reduce_ex__<'py>(&self, py: Python<'py>, protocol: i64) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduce(py, &self.0, protocol)
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the interpreter's own struct.
        unsafe { export::buffer::fill(slf, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter releases what `__getbuffer__` filled, once.
        unsafe { export::buffer::release(view) };
    }

    /// The NumPy array on the same memory; cast or copied as asked.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, PyTensor>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::numpy::array(slf, dtype, copy)
    }

    /// What NumPy asks of operands of several types: storages with two sides, and memory that is on both, come first.
    #[getter]
    fn __array_priority__(&self) -> f64 {
        if self.descriptor().device() == Device::CUDA_MANAGED { 11.0 } else { 10.0 }
    }

    /// NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::array_interface::interface(py, &self.0)
    }

    /// The CUDA array interface, version 3, where a GPU can read the memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::cuda_array_interface::interface(py, &self.0)
    }

    /// Labels of the dimensions, as GT4Py looks for them.
    #[getter]
    fn __gt_dims__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.dims(py)
    }

    /// Index of the first compute point as GT4Py takes it: in the order I, J, K, data dimensions, whatever order the
    /// dimensions have here. `origin` is in index order.
    #[getter]
    fn __gt_origin__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let origin = self.0.origin();
        PyTuple::new(py, self.0.dims().gt4py_order().into_iter().map(|axis| origin[axis]).collect::<Vec<_>>())
    }

    /// GT4Py's data interface: the array interface with dims and halo, by device.
    #[getter]
    fn __gt_data_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::array_interface::data_interface(py, &self.0)
    }

    /// DLPack's pair of device type and id.
    fn __dlpack_device__(&self) -> (i64, i64) {
        let DlpackPair(code, id) = DlpackPair::of(self.descriptor().device());
        (code, id)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let descriptor = self.descriptor();
        Ok(format!(
            "Tensor(shape={}, dtype={}, dims={}, layout={}, device='{}', alignment_size={}{})",
            self.shape(py)?.repr()?,
            descriptor.dtype(),
            self.dims(py)?.repr()?,
            self.layout(py)?.repr()?,
            descriptor.device(),
            self.0.alignment_size(),
            if descriptor.is_readonly() { ", readonly" } else { "" },
        ))
    }

    /// A drawing of the memory layout for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import(intern!(slf.py(), "dlfield._repr_html"))?;
        module.call_method1(intern!(slf.py(), "repr_html"), (slf,))
    }
}
