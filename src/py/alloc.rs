//! The eight allocation functions and `from_array`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::errors::Kind;
use super::tensor::PyTensor;
use super::{args, dtype, export, read};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::{Extents, Halo, Layout, LayoutError, Spec};
use crate::preset::Preset;
use crate::protocol::ExchangeError;
use crate::tensor::Tensor;

/// The keywords that every allocation takes, as given.
#[derive(Default)]
struct Options {
    preset: Option<Preset>,
    dims: Option<Dims>,
    layout: Option<Extents>,
    alignment_size: Option<i64>,
    aligned_index: Option<Extents>,
    padding: Option<crate::Padding>,
    halo: Option<Halo>,
    origin: Option<Extents>,
    device: Option<crate::Device>,
    stream: Option<String>,
}

impl Options {
    fn parse(function: &str, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut options = Options::default();
        for (keyword, value) in keywords.into_iter().flatten() {
            let keyword = keyword.cast::<PyString>()?.to_cow()?.into_owned();
            let given = !value.is_none();
            match keyword.as_str() {
                "backend" if given => options.preset = Some(Preset::find(&text("backend", &value)?)?),
                "dims" if given => options.dims = Some(args::dims(&value)?),
                "layout" if given => options.layout = Some(args::ints("layout", &value)?),
                "alignment_size" if given => options.alignment_size = Some(args::int("alignment_size", &value)?),
                "aligned_index" if given => options.aligned_index = Some(args::ints("aligned_index", &value)?),
                "padding" if given => options.padding = Some(text("padding", &value)?.parse()?),
                "halo" if given => options.halo = Some(args::halo(&value)?),
                "origin" if given => options.origin = Some(args::ints("origin", &value)?),
                "device" if given => options.device = Some(args::device(&value)?),
                "stream" if given => options.stream = Some(args::shown(&value)),
                "backend" | "dims" | "layout" | "alignment_size" | "aligned_index" | "padding" | "halo" | "origin"
                | "device" | "stream" => {}
                _ => {
                    let message = format!("{function}() got an unexpected keyword argument '{keyword}'");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        Ok(options)
    }

    /// States what was given on top of `spec`. A sub-array type has added `data` dimensions, which the lists may
    /// leave out.
    fn apply(self, mut spec: Spec, data: usize) -> PyResult<Spec> {
        let ndim = spec.ndim();
        let extended = |mut entries: Extents| {
            if entries.len() + data == ndim {
                entries.resize(ndim, 0);
            }
            entries
        };
        if let Some(preset) = self.preset {
            spec = spec.preset(preset);
        }
        if let Some(dims) = self.dims {
            let short = data > 0 && dims.len() + data == ndim;
            spec = spec.dims(if short { dims.with_data(data) } else { dims });
        } else if data > 0 && !spec.has_dims() {
            spec = spec.dims(Dims::standard(ndim - data).with_data(data));
        }
        if let Some(ranks) = self.layout {
            crate::layout::check_len("layout", ranks.len(), ndim)?;
            spec = spec.layout(Layout::new(&ranks, ndim)?);
        }
        if let Some(bytes) = self.alignment_size {
            spec = spec.alignment_size(bytes);
        }
        if let Some(index) = self.aligned_index {
            spec = spec.aligned_index(&extended(index));
        }
        if let Some(padding) = self.padding {
            spec = spec.padding(padding);
        }
        if let Some(mut halo) = self.halo {
            if halo.len() + data == ndim {
                halo.resize(ndim, (0, 0));
            }
            spec = spec.halo(&halo);
        }
        if let Some(origin) = self.origin {
            spec = spec.origin(&extended(origin));
        }
        if let Some(device) = self.device {
            spec = spec.device(device);
        }
        if let Some(got) = self.stream
            && spec.target() == crate::Device::CPU
        {
            let allowed = "None on the host, which has no streams";
            return Err(ExchangeError::Argument { argument: "stream", got, allowed }.into());
        }
        Ok(spec)
    }
}

fn text(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.cast::<PyString>();
    let text = text.map_err(|_| PyTypeError::new_err(format!("{argument}: {} is not a string", args::shown(value))))?;
    Ok(text.to_string())
}

/// What `shape` and `dtype` of a fresh field ask for.
fn fresh(
    function: &str,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Spec> {
    let mut shape = args::shape(shape)?;
    let (dtype, sub_shape) = dtype.map_or_else(|| Ok((DType::F64, Extents::new())), dtype::parse)?;
    shape.extend_from_slice(&sub_shape);
    let spec = Spec::new(&shape, dtype);
    match (keywords, sub_shape.len()) {
        (None, 0) => Ok(spec),
        (keywords, data) => Options::parse(function, keywords)?.apply(spec, data),
    }
}

/// What a field like `data` asks for: everything not given comes from there. A preset stands for the layout,
/// alignment, padding and device it names.
fn like(
    function: &str,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Spec> {
    let options = Options::parse(function, keywords)?;
    let data = source(data)?;
    let (dtype, sub_shape) = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtype::parse(dtype)?,
        None => (data.descriptor().dtype(), Extents::new()),
    };
    let mut shape = Extents::from_slice(data.descriptor().shape());
    shape.extend_from_slice(&sub_shape);
    let spec = if options.preset.is_some() || !sub_shape.is_empty() {
        Spec::new(&shape, dtype).dims(data.dims().with_data(sub_shape.len()))
    } else {
        data.spec().dtype(dtype)
    };
    let (mut halo, mut origin) = (data.halo(), data.origin());
    halo.resize(shape.len(), (0, 0));
    origin.resize(shape.len(), 0);
    options.apply(spec.halo(&halo).origin(&origin), sub_shape.len())
}

/// An argument that may be any array, or what NumPy makes an array of.
fn source(data: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = data.py();
    match read::own(data) {
        Err(error) if Kind::NotAnArray.is(py, &error) => {
            let array = py.import("numpy")?.call_method1("asarray", (data,))?;
            let holds_objects = array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'O';
            if holds_objects && array.getattr("ndim")?.extract::<usize>()? == 0 {
                Err(error)
            } else {
                read::own(&array)
            }
        }
        other => other,
    }
}

/// One element with `value`, cast as NumPy's `full` casts it.
fn element(spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = value.py();
    let scalar = (pyo3::types::PyTuple::empty(py), value, dtype::to_numpy(py, spec.element())?);
    let array = py.import("numpy")?.call_method1("full", scalar).map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
            let what = format!("fill_value: {} is not a {}", args::shown(value), spec.element());
            return dtype::wrapped(py, error, &what);
        }
        error
    })?;
    array.call_method0("tobytes")?.extract()
}

fn filled(py: Python<'_>, spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let element = element(spec, value)?;
    Ok(PyTensor(py.detach(|| Tensor::full(spec, &element))?))
}

fn one(py: Python<'_>) -> Bound<'_, PyAny> {
    pyo3::types::PyInt::new(py, 1).into_any()
}

/// Allocates a field of the given shape (elements per dimension) with undefined values.
///
/// Keywords, each overriding what the preset `backend` says: `dims` labels the dimensions ("IJK", or a sequence of
/// labels); `layout` ranks the strides, 0 for the largest; `alignment_size` in bytes is what the address of the element
/// at `aligned_index` (default: the lower halo) is a multiple of; `padding` is "none" or "row"; `halo` has one width or
/// pair of widths per dimension; `origin` defaults to the lower halo; `device` is where.
///
/// Raises `LayoutError`, `DimsError`, `DTypeError` or `DeviceError` naming the argument, `MemoryError` when the memory
/// cannot be had.
///
/// >>> import dlfield as dl
/// >>> dl.empty((10, 10, 7), backend="gt:cpu_ifirst").strides
/// (8, 80, 800)
#[pyfunction]
#[pyo3(
    signature = (shape, dtype=None, **keywords),
    text_signature = "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = fresh("empty", shape, dtype, keywords)?;
    Ok(PyTensor(Tensor::empty(&spec)?))
}

/// Allocates a field of zeros of the given shape (elements per dimension).
///
/// Keywords, each overriding what the preset `backend` says: `dims` labels the dimensions ("IJK", or a sequence of
/// labels); `layout` ranks the strides, 0 for the largest; `alignment_size` in bytes is what the address of the element
/// at `aligned_index` (default: the lower halo) is a multiple of; `padding` is "none" or "row"; `halo` has one width or
/// pair of widths per dimension; `origin` defaults to the lower halo; `device` is where.
///
/// Raises `LayoutError`, `DimsError`, `DTypeError` or `DeviceError` naming the argument, `MemoryError` when the memory
/// cannot be had.
///
/// >>> import dlfield as dl
/// >>> dl.zeros((4, 3), halo=(1, 0)).origin
/// (1, 0)
#[pyfunction]
#[pyo3(
    signature = (shape, dtype=None, **keywords),
    text_signature = "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn zeros(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = fresh("zeros", shape, dtype, keywords)?;
    Ok(PyTensor(py.detach(|| Tensor::zeros(&spec))?))
}

/// Allocates a field of ones of the given shape (elements per dimension).
///
/// Keywords, each overriding what the preset `backend` says: `dims` labels the dimensions ("IJK", or a sequence of
/// labels); `layout` ranks the strides, 0 for the largest; `alignment_size` in bytes is what the address of the element
/// at `aligned_index` (default: the lower halo) is a multiple of; `padding` is "none" or "row"; `halo` has one width or
/// pair of widths per dimension; `origin` defaults to the lower halo; `device` is where.
///
/// Raises `LayoutError`, `DimsError`, `DTypeError` or `DeviceError` naming the argument, `MemoryError` when the memory
/// cannot be had.
///
/// >>> import dlfield as dl
/// >>> float(dl.ones((2, 2), "float32")[1, 1])
/// 1.0
#[pyfunction]
#[pyo3(
    signature = (shape, dtype=None, **keywords),
    text_signature = "(shape, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn ones(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = fresh("ones", shape, dtype, keywords)?;
    filled(py, &spec, &one(py))
}

/// Allocates a field of the given shape with every element `fill_value`, cast as `numpy.full` does, bits kept.
///
/// Keywords, each overriding what the preset `backend` says: `dims` labels the dimensions ("IJK", or a sequence of
/// labels); `layout` ranks the strides, 0 for the largest; `alignment_size` in bytes is what the address of the element
/// at `aligned_index` (default: the lower halo) is a multiple of; `padding` is "none" or "row"; `halo` has one width or
/// pair of widths per dimension; `origin` defaults to the lower halo; `device` is where.
///
/// Raises `LayoutError`, `DimsError`, `DTypeError` or `DeviceError` naming the argument, `MemoryError` when the memory
/// cannot be had.
///
/// >>> import dlfield as dl
/// >>> float(dl.full((2, 2), -0.0)[0, 0])
/// -0.0
#[pyfunction]
#[pyo3(
    signature = (shape, fill_value, dtype=None, **keywords),
    text_signature = "(shape, fill_value, dtype='float64', *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn full(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = fresh("full", shape, dtype, keywords)?;
    filled(py, &spec, fill_value)
}

/// Allocates a field like `data` with undefined values.
///
/// Everything not given comes from `data`, which may be any array: element type, dims, layout, alignment, padding, halo,
/// origin and device; what a foreign array does not carry is read off its strides. A preset given as `backend` replaces
/// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
///
/// >>> import dlfield as dl
/// >>> dl.empty_like(dl.zeros((4, 3), layout=(1, 0))).layout
/// (1, 0)
#[pyfunction]
#[pyo3(
    signature = (data, dtype=None, **keywords),
    text_signature = "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn empty_like(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = like("empty_like", data, dtype, keywords)?;
    Ok(PyTensor(Tensor::empty(&spec)?))
}

/// Allocates a field of zeros like `data`.
///
/// Everything not given comes from `data`, which may be any array: element type, dims, layout, alignment, padding, halo,
/// origin and device; what a foreign array does not carry is read off its strides. A preset given as `backend` replaces
/// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
///
/// >>> import dlfield as dl, numpy as np
/// >>> dl.zeros_like(np.ones((4, 3), order="F")).layout
/// (1, 0)
#[pyfunction]
#[pyo3(
    signature = (data, dtype=None, **keywords),
    text_signature = "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn zeros_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = like("zeros_like", data, dtype, keywords)?;
    Ok(PyTensor(py.detach(|| Tensor::zeros(&spec))?))
}

/// Allocates a field of ones like `data`.
///
/// Everything not given comes from `data`, which may be any array: element type, dims, layout, alignment, padding, halo,
/// origin and device; what a foreign array does not carry is read off its strides. A preset given as `backend` replaces
/// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
///
/// >>> import dlfield as dl
/// >>> dl.ones_like(dl.zeros((4, 3), dims="KI")).dims
/// ('K', 'I')
#[pyfunction]
#[pyo3(
    signature = (data, dtype=None, **keywords),
    text_signature = "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn ones_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = like("ones_like", data, dtype, keywords)?;
    filled(py, &spec, &one(py))
}

/// Allocates a field like `data` with every element `fill_value`.
///
/// Everything not given comes from `data`, which may be any array: element type, dims, layout, alignment, padding, halo,
/// origin and device; what a foreign array does not carry is read off its strides. A preset given as `backend` replaces
/// layout, alignment, padding and device. Keywords and errors as for `empty`; the shape cannot be overridden.
///
/// >>> import dlfield as dl
/// >>> int(dl.full_like(dl.zeros((4, 3), "int32"), 7)[0, 0])
/// 7
#[pyfunction]
#[pyo3(
    signature = (data, fill_value, dtype=None, **keywords),
    text_signature = "(data, fill_value, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn full_like(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let spec = like("full_like", data, dtype, keywords)?;
    filled(py, &spec, fill_value)
}

/// Allocates a field and copies `data` into it, in the layout that `backend` or the keywords ask for.
///
/// `data` is any array, or what NumPy makes one of. Its element type is kept unless `dtype` is given, to which it is cast
/// by NumPy's "same_kind" rule; dims, halo and origin come from it unless given. Keywords and errors as for `empty`.
///
/// >>> import dlfield as dl
/// >>> dl.from_array([[1, 2, 3], [4, 5, 6]], backend="F").strides
/// (8, 16)
#[pyfunction]
#[pyo3(
    signature = (data, dtype=None, **keywords),
    text_signature = "(data, dtype=None, *, backend=None, dims=None, layout=None, alignment_size=None, aligned_index=None, padding=None, halo=None, origin=None, device=None, stream=None)"
)]
fn from_array(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyTensor> {
    let options = Options::parse("from_array", keywords)?;
    let given = dtype.filter(|dtype| !dtype.is_none()).map(dtype::parse).transpose()?;
    // With an element type to cast to, NumPy may read what can't be shared as it is, such as foreign byte order.
    let data = match (source(data), &given) {
        (Err(error), Some(_)) if Kind::DType.is(py, &error) => {
            let array = py.import("numpy")?.call_method1("asarray", (data,))?;
            let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
            source(&array.call_method1("astype", (native,))?)?
        }
        (data, _) => data?,
    };
    let shape = data.descriptor().shape();
    let (element, sub_shape) = given.unwrap_or_else(|| (data.descriptor().dtype(), Extents::new()));
    if !shape.ends_with(&sub_shape) {
        return Err(LayoutError::SubArray { shape: shape.to_vec(), wanted: sub_shape.to_vec() }.into());
    }
    let mut spec = Spec::new(shape, element).halo(&data.halo()).origin(&data.origin());
    if sub_shape.is_empty() {
        spec = spec.dims(data.dims());
    }
    let spec = options.apply(spec, sub_shape.len())?;
    if element == data.descriptor().dtype() {
        return Ok(PyTensor(py.detach(|| Tensor::copy_of(&spec, &data))?));
    }
    let tensor = Tensor::empty(&spec)?;
    export::numpy::assign(&export::numpy::view(py, &tensor)?, export::numpy::view(py, &data)?.as_any())?;
    Ok(PyTensor(tensor))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
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
