//! Views of the same memory, copies, and arrays of other libraries.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use crate::device::Device;
use crate::layout::Metadata;
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::{args, stream};
use crate::python::ffi::new_error::ArgumentError;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};
use crate::python::module::methods::index;
use crate::python::{copies, package};

#[pymethods]
impl PyTensor {
    /// The field with its dimensions, and their labels, in reverse order, on the same memory.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).T.dims
    /// ('J', 'I')
    #[getter]
    #[pyo3(name = "T")]
    pub(crate) fn reversed(&self) -> PyResult<PyTensor> {
        let axes: SmallVec<[usize; 6]> = (0..self.descriptor().ndim()).rev().collect();
        Ok(PyTensor::new(self.0.transpose(&axes)?))
    }

    /// The field without its halo, on the same memory.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((6, 6), halo=(1, (2, 0))).domain_view.shape
    /// (4, 4)
    #[getter]
    fn domain_view(&self) -> PyTensor {
        PyTensor::new(self.0.domain_view())
    }

    /// The whole memory block, padding included, as a contiguous field of one dimension on the same memory: for MPI, checksums
    /// and object stores. It has the same element type, and is read-only if the field is.
    ///
    /// All views of memory that dlfield allocated have the same block. Of other memory it is what lies between the first and the
    /// last element, which must fill it, in any order of dimensions; else `ExchangeError`.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((3, 5), alignment_size=64)
    /// >>> field.block.shape, field[1, 2:].block.ptr == field.block.ptr
    /// ((24,), True)
    #[getter]
    fn block(&self) -> PyResult<PyTensor> {
        Ok(PyTensor::new(self.0.block()?))
    }

    /// Returns a writable copy with the same labels, layout, padding and alignment; with `order` "C", "F" or "A" in that order of
    /// NumPy's, without padding. Raises `MemoryError` if the allocation fails.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), dims="KI").as_readonly()
    /// >>> field.copy().readonly, field.copy().dims
    /// (False, ('K', 'I'))
    #[pyo3(signature = (order="K"))]
    fn copy<'py>(slf: &Bound<'py, PyTensor>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if order == "K" {
            return Ok(slf.get().__copy__(py)?.into_pyobject(py)?.into_any());
        }
        package::functions(py)?.call_method1(intern!(py, "in_order"), (slf, order, true))
    }

    /// Returns the field with its dimensions in another order, by number or label, on the same memory; reversed without
    /// arguments.
    ///
    /// Raises `DimsError` unless each dimension is named once.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3, 4)).transpose("K", "I", "J").shape
    /// (4, 2, 3)
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        Ok(PyTensor::new(self.0.transpose(&index::axes(&self.0, axes)?)?))
    }

    /// Returns the field with other labels on the same memory, in index order; `dims` as for `zeros`. Halo and origin stay.
    ///
    /// Raises `DimsError` unless there is one label for each dimension.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3)).with_dims("KI").dims
    /// ('K', 'I')
    fn with_dims(&self, dims: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        self.with_metadata(Metadata::default().with_dims(args::dims(dims)?))
    }

    /// Returns the field with other names for some of its labels, on the same memory: a mapping or keywords, as in xarray.
    ///
    /// Raises `DimsError` for a label that the field does not have, `TypeError` for a mapping and keywords.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), dims="x y")
    /// >>> field.rename({"x": "I"}).dims, field.rename(x="I", y="J").dims
    /// (('I', 'y'), ('I', 'J'))
    #[pyo3(signature = (labels=None, **names))]
    fn rename<'py>(
        slf: &Bound<'py, PyTensor>,
        labels: Option<&Bound<'py, PyAny>>,
        names: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "renamed"), (slf, labels, names))
    }

    /// Returns the field with another halo, whose lower widths are the origin, on the same memory; `halo` as for `zeros`, also a
    /// mapping by label. Setting `halo` changes the field itself.
    ///
    /// Raises `LayoutError` for a halo that does not fit the shape.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((4, 5)).with_halo({"J": (1, 2)}).origin
    /// (0, 1)
    fn with_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        self.with_metadata(Metadata::default().with_halo(self.halo_widths(halo)?.into_vec()).with_default_origin())
    }

    /// Fills the halo from the points of the domain, edges and corners too; between processes `dlfield.mpi.HaloExchange` does.
    ///
    /// `mode` is one of `numpy.pad`: "wrap", the points of the other end, of a periodic domain; "edge", the nearest point;
    /// "constant", `constant_values`. Raises `ValueError` for another mode, `LayoutError` for a domain without points.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.from_array([0.0, 1.0, 2.0, 0.0], halo=((1, 1),))
    /// >>> field.fill_halo("wrap")
    /// >>> field.tolist()
    /// [2.0, 1.0, 2.0, 1.0]
    #[pyo3(signature = (mode, constant_values=None), text_signature = "($self, mode, constant_values=0)")]
    fn fill_halo<'py>(
        slf: &Bound<'py, PyTensor>,
        mode: &Bound<'py, PyAny>,
        constant_values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let functions = package::functions(slf.py())?;
        match constant_values {
            Some(value) => functions.call_method1(intern!(slf.py(), "fill_halo"), (slf, mode, value))?,
            None => functions.call_method1(intern!(slf.py(), "fill_halo"), (slf, mode))?,
        };
        Ok(())
    }

    /// Returns the field on the same memory, read-only for the new tensor and everything made from it.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> np.from_dlpack(dl.zeros(3).as_readonly()).flags.writeable
    /// False
    fn as_readonly(&self) -> PyTensor {
        PyTensor::new(self.0.clone().into_readonly())
    }

    /// Returns the field on another device, with the same layout and labels; itself if it is there already.
    ///
    /// Pinned and managed memory becomes memory of the host or of a CUDA device without a copy. Other memory is copied, in
    /// the given stream or else the current one of this thread; a copy on the host is complete when this returns. Raises
    /// `DeviceError` if the device is not available, `MemoryError` if the allocation fails.
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
        let (wanted, found) = (parse_device(device)?, slf.get().descriptor().device());
        let stream_device = if found == Device::CPU { wanted } else { found };
        stream::in_stream(stream, stream_device, || {
            if wanted == found {
                return Ok(slf.clone());
            }
            PyTensor::create(slf.py(), copies::to(slf.py(), &slf.get().0, wanted, None)?)
        })
    }

    /// Returns a NumPy array on the same memory. Raises `NoSuchBufferError` if the host cannot read it.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="F")
    /// >>> field.to_numpy().strides == field.strides
    /// True
    fn to_numpy<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        export::numpy::view_of(slf)
    }

    /// Returns a CuPy array on the same memory. Raises `NoSuchBufferError` if no GPU can read it.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).to_cupy()
    /// Traceback (most recent call last):
    ///     ...
    /// dlfield.NoSuchBufferError: device: expected memory on cuda or cuda_managed, got cpu; copy it with to_device('cuda:0')
    fn to_cupy<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let device = slf.get().descriptor().device();
        if !device.is_cuda() && device != Device::CUDA_MANAGED {
            let error = ArgumentError::new("device", &"memory on cuda or cuda_managed", &device);
            return Err(ErrorKind::NoSuchBuffer.error(error.with_fix(&"copy it with to_device('cuda:0')")));
        }
        cupy::array(slf)
    }

    /// Returns `dlfield.as_torch(self)`, a `torch.Tensor` on the same memory.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3))
    /// >>> field.to_torch().data_ptr() == field.ptr
    /// True
    #[pyo3(signature = (*, copy=None))]
    fn to_torch<'py>(slf: &Bound<'py, PyTensor>, copy: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        with_copy(slf, intern!(slf.py(), "as_torch"), copy)
    }

    /// Returns `dlfield.as_jax(self)`, a `jax.Array` on the same memory if JAX can use it, else on a copy.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="jax")
    /// >>> field.to_jax().unsafe_buffer_pointer() == field.ptr
    /// True
    #[pyo3(signature = (*, copy=None))]
    fn to_jax<'py>(slf: &Bound<'py, PyTensor>, copy: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        with_copy(slf, intern!(slf.py(), "as_jax"), copy)
    }

    /// Returns an `xarray.DataArray` on the same memory with the same dims. `dlfield.xarray.to_xarray` has the parameters and
    /// errors.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((4, 3), dims="KI").to_xarray(name="pressure").dims
    /// ('K', 'I')
    #[pyo3(signature = (**keywords), text_signature = "($self, *, name=None, coords=None)")]
    fn to_xarray<'py>(
        slf: &Bound<'py, PyTensor>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method(intern!(slf.py(), "to_xarray"), (slf,), keywords)
    }

    /// Draws one plane with matplotlib, its halo outside of a red frame, and returns the `Axes`; a field of one dimension as a line.
    ///
    /// The plane has the first two dimensions of more than one point, the first one to the right, at the origin of the others.
    /// `axes` are those to draw in, by default new ones. The other keywords are those of `Axes.imshow`, for a line of `Axes.plot`.
    /// Raises `ImportError` if matplotlib is not installed, `DimsError` for a field without such dimensions.
    ///
    /// >>> import dlfield as dl
    /// >>> axes = dl.zeros((6, 5, 4), halo=(1, 1, 0)).plot()
    /// >>> axes.get_xlabel(), axes.get_ylabel(), axes.get_title()
    /// ('I', 'J', 'K=0')
    #[pyo3(signature = (axes=None, **keywords))]
    fn plot<'py>(
        slf: &Bound<'py, PyTensor>,
        axes: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method(intern!(slf.py(), "plot"), (slf, axes), keywords)
    }

    /// Returns a copy in shared memory with the same layout, padding, alignment and labels; the tensor itself if it is in shared
    /// memory already.
    ///
    /// `multiprocessing` passes it, and its views, to other processes without a copy; `dlfield.shared_name` and `dlfield.attach`
    /// do so for other processes of this machine. The memory is freed when no process has it any more; others can attach it as
    /// long as this process has a tensor or an array on it. On Linux, for memory on the host and on CUDA devices ("cuda:N").
    /// Raises `DeviceError` for other devices and during graph capture, `LayoutError` for an alignment that does not divide a
    /// page, or 256 bytes on a device.
    ///
    /// On a device the memory is CUDA's, by `cuIpcGetMemHandle`, in multiples of 2 MiB. It is this process's: it has to stay
    /// alive while others have the memory, which it frees after them. See `attach` for the order of their work.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.ones((2, 3)).share()
    /// >>> dl.attach(dl.shared_name(field))[1].tolist()
    /// [1.0, 1.0, 1.0]
    fn share<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "share"), (slf,))
    }

    /// Returns the array of the device's library, on the same memory: NumPy on the host, CuPy on a GPU.
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
}

impl PyTensor {
    /// The tensor on the same memory with other metadata; the rest of it stays.
    fn with_metadata(&self, metadata: Metadata) -> PyResult<PyTensor> {
        let mut tensor = self.0.clone();
        tensor.relabel(metadata)?;
        Ok(PyTensor::new(tensor))
    }
}

/// The result of a function of the package that shares or copies the memory.
fn with_copy<'py>(
    tensor: &Bound<'py, PyTensor>,
    function: &Bound<'py, PyString>,
    copy: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = PyDict::new(tensor.py());
    keywords.set_item(intern!(tensor.py(), "copy"), copy)?;
    package::functions(tensor.py())?.call_method(function, (tensor,), Some(&keywords))
}
