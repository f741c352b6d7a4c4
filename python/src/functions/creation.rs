//! The eight allocation functions and `from_array`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::classes::freelist;
use crate::classes::tensor::PyTensor;
use crate::export;
use crate::functions::data_argument;
use crate::functions::keywords::{ExtraArguments, Given, Keywords, sizes};
use dlfield::can_cast;
use dlfield::device::Device;
use dlfield::dtype::{DType, DTypeError};
use dlfield::error::Error;
use dlfield::layout::{Extents, LayoutError, Spec};
use dlfield::native::{args, dtype, sync};
use dlfield::tensor::Tensor;

/// The specification of a new field from its `shape`, `dtype` and keywords.
fn fresh<'py>(
    function: &str,
    shape: &Bound<'py, PyAny>,
    dtype: Given<'_, 'py>,
    keywords: &Keywords<'_, 'py>,
) -> PyResult<Spec> {
    let mut extents = args::shape(shape)?;
    let (element, sub_shape) = match dtype {
        None => (DType::F64, Extents::new()),
        Some(dtype) => dtype::parse(dtype).map_err(|error| second_size(function, shape, dtype, error))?,
    };
    extents.extend_from_slice(&sub_shape);
    keywords.apply(Spec::new(&extents, element), sub_shape.len())
}

/// The error for an invalid `dtype`, with the correct call if it was meant as a second size.
#[cold]
fn second_size<'py>(function: &str, shape: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>, error: PyErr) -> PyErr {
    let py = shape.py();
    let Some(hint) = sizes(function, [shape, dtype], &PyTuple::empty(py)) else { return error };
    let hinted = PyErr::from_type(error.get_type(py), format!("{}{hint}", error.value(py)));
    hinted.set_cause(py, error.cause(py));
    hinted
}

/// The specification of a field like `data`, which supplies everything that is not given. A preset replaces layout,
/// alignment, padding and device.
fn like(data: &Bound<'_, PyAny>, dtype: Given<'_, '_>, keywords: &Keywords<'_, '_>) -> PyResult<Spec> {
    let data = data_argument::described(data)?;
    let (dtype, sub_shape) = match dtype {
        Some(dtype) => dtype::parse(dtype)?,
        None => (data.descriptor().dtype(), Extents::new()),
    };
    let mut shape = Extents::from_slice(data.descriptor().shape());
    shape.extend_from_slice(&sub_shape);
    let added = sub_shape.len();
    let mut spec = Spec::new(&shape, dtype);
    if let Some(dims) = data.descriptor().dims() {
        spec = spec.dims(dims.with_data(added));
    }
    if keywords.backend.is_none() {
        // Too many dimensions are rejected when the field is allocated.
        let layout = data.layout().with_data(u8::try_from(added).unwrap_or(u8::MAX));
        let laid_out = spec.layout(layout).padding(data.padding()).with_device(data.descriptor().device());
        spec = laid_out.alignment_size(data.alignment_size());
        if let Some(index) = data.spec().explicit_aligned_index() {
            let index: Extents = index.iter().copied().chain(std::iter::repeat_n(0, added)).collect();
            spec = spec.aligned_index(&index);
        }
    }
    keywords.apply(with_halo_of(spec, &data), sub_shape.len())
}

/// Copies the halo and origin of `data`, with zeros for the dimensions that a sub-array type adds.
fn with_halo_of(mut spec: Spec, data: &Tensor) -> Spec {
    let ndim = spec.ndim();
    if let Some(halo) = data.descriptor().halo() {
        let mut halo = halo.to_vec();
        halo.resize(ndim, (0, 0));
        spec = spec.halo(&halo).halo_is_cut(data.descriptor().halo_is_cut());
    }
    if let Some(origin) = data.descriptor().origin() {
        let mut origin = origin.to_vec();
        origin.resize(ndim, 0);
        spec = spec.origin(&origin);
    }
    spec
}

/// The bytes of one element with `value`, cast as by `numpy.full`.
fn element(spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = value.py();
    let scalar = (PyTuple::empty(py), value, dtype::to_numpy(py, spec.dtype())?);
    let array = py.import("numpy")?.call_method1("full", scalar).map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
            let what = format!("fill_value: {} is not a {}", args::shown(value), spec.dtype());
            return dtype::wrapped(py, error, &what);
        }
        dtype::named(py, error, "fill_value")
    })?;
    array.call_method0("tobytes")?.extract()
}

fn filled(py: Python<'_>, spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let element = element(spec, value)?;
    Ok(py.detach(|| Tensor::full(spec, &element))?)
}

/// Copies `data` to a new tensor and casts its elements.
fn copied(py: Python<'_>, spec: &Spec, data: &Tensor) -> PyResult<Tensor> {
    let known = can_cast(data.descriptor().dtype(), spec.dtype());
    if known {
        match sync::copy_into(py, spec, data) {
            Err(Error::DType(DTypeError::CastOnDevice { .. })) => {}
            copied => return Ok(copied?),
        }
    }
    let data = sync::to(py, data, Device::CPU, None)?;
    if known {
        return Ok(sync::copy_into(py, spec, &data)?);
    }
    // NumPy can cast more element types.
    let tensor = Tensor::empty(&spec.clone().with_device(Device::CPU))?;
    export::numpy::assign(&export::numpy::view(py, &tensor)?, export::numpy::view(py, &data)?.as_any())?;
    if spec.device() == Device::CPU { Ok(tensor) } else { Ok(sync::copy_into(py, spec, &tensor)?) }
}

fn one(py: Python<'_>) -> Bound<'_, PyAny> {
    pyo3::types::PyInt::new(py, 1).into_any()
}

/// Defines an allocation function; all of them have the same keywords.
macro_rules! allocation {
    (
        $(#[$summary:meta])*
        example $(#[$example:meta])*
        $text:literal
        fn $name:ident($py:ident, $first:ident $(, $value:ident)?; $dtype:ident, $keywords:ident) $body:block
    ) => {
        $(#[$summary])*
        ///
        /// Keywords, each overriding the preset `backend`: `dims` labels the dimensions ("IJK", or a sequence of labels,
        /// which are strings, or integers from 0 for data dimensions); `layout` ranks the strides, 0 for the largest;
        /// `alignment_size` is the alignment in bytes of the element at `aligned_index` (default: the lower halo);
        /// `padding` is "none" or "row"; `halo` has one width or pair of widths per dimension; `origin` defaults to the
        /// lower halo; `device` is "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch,
        /// JAX or CuPy; `stream` is the CUDA stream that orders the work, by default the current stream of this thread.
        ///
        /// Raises `LayoutError`, `DimsError`, `DTypeError` or `DeviceError` naming the argument, `MemoryError` if the
        /// allocation fails. Issues a `LayoutWarning` if `backend` orders strides by I, J and K, and `dims` has several
        /// other labels and none of these.
        ///
        $(#[$example])*
        #[pyfunction]
        #[pyo3(
            signature = (
                $first, $($value,)? dtype=None, *extra, backend=None, dims=None, layout=None, alignment_size=None,
                aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None, **unknown
            ),
            text_signature = $text
        )]
        #[allow(clippy::too_many_arguments, reason = "the keywords of the specification")]
        fn $name<'py>(
            $py: Python<'py>,
            $first: &Bound<'py, PyAny>,
            $($value: &Bound<'py, PyAny>,)?
            dtype: Option<&Bound<'py, PyAny>>,
            extra: &Bound<'py, PyTuple>,
            backend: Option<&Bound<'py, PyAny>>,
            dims: Option<&Bound<'py, PyAny>>,
            layout: Option<&Bound<'py, PyAny>>,
            alignment_size: Option<&Bound<'py, PyAny>>,
            aligned_index: Option<&Bound<'py, PyAny>>,
            padding: Option<&Bound<'py, PyAny>>,
            halo: Option<&Bound<'py, PyAny>>,
            origin: Option<&Bound<'py, PyAny>>,
            device: Option<&Bound<'py, PyAny>>,
            stream: Option<&Bound<'py, PyAny>>,
            unknown: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyTensor>> {
            let by_position = [stringify!($first), $(stringify!($value),)? "dtype"];
            ExtraArguments { extra, unknown }.refuse(stringify!($name), &by_position, $first, dtype)?;
            let $dtype = dtype;
            let $keywords = &Keywords {
                backend, dims, layout, alignment_size, aligned_index, padding, halo, origin, device, stream,
            };
            // From the freelist, and filled in place: no value of this size is moved.
            freelist::create($py, |made: &mut PyTensor| {
                made.0 = (|| -> PyResult<Tensor> { $body })()?;
                Ok(())
            })
        }
    };
}

allocation! {
    /// Allocates a field of the given shape (elements per dimension) with undefined values.
    example
    /// >>> import dlfield as dl
    /// >>> dl.empty((10, 10, 7), backend="gt:cpu_ifirst").strides
    /// (8, 80, 800)
    "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn empty(_py, shape; dtype, keywords) {
        let spec = fresh("empty", shape, dtype, keywords)?;
        keywords.in_stream(spec.device(), || Ok(Tensor::empty(&spec)?))
    }
}

allocation! {
    /// Allocates a field of zeros of the given shape (elements per dimension).
    example
    /// >>> import dlfield as dl
    /// >>> dl.zeros((4, 3), halo=(1, 0)).origin
    /// (1, 0)
    "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn zeros(py, shape; dtype, keywords) {
        let spec = fresh("zeros", shape, dtype, keywords)?;
        keywords.in_stream(spec.device(), || Ok(py.detach(|| Tensor::zeros(&spec))?))
    }
}

allocation! {
    /// Allocates a field of ones of the given shape (elements per dimension).
    example
    /// >>> import dlfield as dl
    /// >>> float(dl.ones((2, 2), "float32")[1, 1])
    /// 1.0
    "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn ones(py, shape; dtype, keywords) {
        let spec = fresh("ones", shape, dtype, keywords)?;
        keywords.in_stream(spec.device(), || filled(py, &spec, &one(py)))
    }
}

allocation! {
    /// Allocates a field of the given shape with every element `fill_value`, cast as by `numpy.full`, with its bits kept.
    example
    /// >>> import dlfield as dl
    /// >>> float(dl.full((2, 2), -0.0)[0, 0])
    /// -0.0
    "(shape, fill_value, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn full(py, shape, fill_value; dtype, keywords) {
        let spec = fresh("full", shape, dtype, keywords)?;
        keywords.in_stream(spec.device(), || filled(py, &spec, fill_value))
    }
}

allocation! {
    /// Allocates a field like `data` with undefined values.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; what an array of another library lacks is derived from its strides. A preset given as `backend` replaces
    /// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> dl.empty_like(dl.zeros((4, 3), layout=(1, 0))).layout
    /// (1, 0)
    "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn empty_like(_py, data; dtype, keywords) {
        let spec = like(data, dtype, keywords)?;
        keywords.in_stream(spec.device(), || Ok(Tensor::empty(&spec)?))
    }
}

allocation! {
    /// Allocates a field of zeros like `data`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; what an array of another library lacks is derived from its strides. A preset given as `backend` replaces
    /// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
    example
    /// >>> import dlfield as dl, numpy as np
    /// >>> dl.zeros_like(np.ones((4, 3), order="F")).layout
    /// (1, 0)
    "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn zeros_like(py, data; dtype, keywords) {
        let spec = like(data, dtype, keywords)?;
        keywords.in_stream(spec.device(), || Ok(py.detach(|| Tensor::zeros(&spec))?))
    }
}

allocation! {
    /// Allocates a field of ones like `data`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; what an array of another library lacks is derived from its strides. A preset given as `backend` replaces
    /// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> dl.ones_like(dl.zeros((4, 3), dims="KI")).dims
    /// ('K', 'I')
    "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn ones_like(py, data; dtype, keywords) {
        let spec = like(data, dtype, keywords)?;
        keywords.in_stream(spec.device(), || filled(py, &spec, &one(py)))
    }
}

allocation! {
    /// Allocates a field like `data` with every element `fill_value`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; what an array of another library lacks is derived from its strides. A preset given as `backend` replaces
    /// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> int(dl.full_like(dl.zeros((4, 3), "int32"), 7)[0, 0])
    /// 7
    "(data, fill_value, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn full_like(py, data, fill_value; dtype, keywords) {
        let spec = like(data, dtype, keywords)?;
        keywords.in_stream(spec.device(), || filled(py, &spec, fill_value))
    }
}

allocation! {
    /// Allocates a field and copies `data` into it, in the layout that `backend` or the keywords ask for.
    ///
    /// `data` is any array, or what NumPy can convert to one. Its element type is kept unless `dtype` is given; then
    /// elements are cast by NumPy's "same_kind" rule. The other byte order is converted. Dims, halo and origin come from `data` unless given. Keywords and
    /// errors as for `empty`.
    example
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2, 3], [4, 5, 6]], backend="F").strides
    /// (8, 16)
    "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
    fn from_array(py, data; dtype, keywords) {
        let given = dtype.map(dtype::parse).transpose()?;
        let near = keywords.device_or_default()?;
        let data = data_argument::readable(data, near)?;
        let shape = data.descriptor().shape();
        let (element, sub_shape) = given.unwrap_or_else(|| (data.descriptor().dtype(), Extents::new()));
        if !shape.ends_with(&sub_shape) {
            return Err(LayoutError::SubArray { shape: shape.to_vec(), wanted: sub_shape.to_vec() }.into());
        }
        let mut spec = with_halo_of(Spec::new(shape, element), &data);
        if let Some(dims) = data.descriptor().dims() {
            spec = spec.dims(dims.clone());
        }
        let spec = keywords.apply(spec, sub_shape.len())?;
        let found = data.descriptor().device();
        let stream_device = if found == Device::CPU { spec.device() } else { found };
        let made = keywords.in_stream(stream_device, || copied(py, &spec, &data));
        data.done(py, made)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)?;
    module.add_function(wrap_pyfunction!(ones, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(empty_like, module)?)?;
    module.add_function(wrap_pyfunction!(zeros_like, module)?)?;
    module.add_function(wrap_pyfunction!(ones_like, module)?)?;
    module.add_function(wrap_pyfunction!(full_like, module)?)?;
    module.add_function(wrap_pyfunction!(from_array, module)?)
}
