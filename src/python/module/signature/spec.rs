//! `dlfield.FieldSpec`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::dims::Dims;
use crate::dtype::DType;
use crate::layout::extents::Halo;
use crate::layout::{Layout, too_many_dims};
use crate::preset::Preset;
use crate::python::convert::{args, dtype};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::attribute_values;
use crate::python::module::classes::preset::{parse_preset, warn_of_labels};
use crate::python::module::signature::dtypes;
use crate::signature::{Access, FieldSpec, Size};

/// The parameters of `FieldSpec`.
const NAMES: [&str; 9] =
    ["dtype", "dims", "access", "layout", "alignment_size", "shape", "optional", "backend", "boundary"];

/// Keywords of allocation, and what to write here.
const HINTS: [(&str, &str); 3] = [
    ("halo", "a spec has none; a field brings its own"),
    ("origin", "a spec has none; a field brings its own"),
    ("device", "it is an argument of Signature, for all fields"),
];

/// The error for more than two arguments by position.
#[cold]
fn given_by_position(surplus: usize, first: &Bound<'_, PyAny>) -> PyErr {
    let is_text = first.is_instance_of::<PyString>();
    let example = if is_text { args::shown(first) } else { "'w'".to_owned() };
    let given = surplus + 2;
    new_error::<PyTypeError>(format!(
        "FieldSpec() takes at most 2 positional arguments but {given} were given; they are dtype, dims; give the others by \
         name, as in access={example}"
    ))
}

/// The specification of one field of a stencil.
///
/// Parameters
/// ----------
/// dtype : str, type or dtype, or several, optional
///     The element type: anything that `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax. Several: a string such as
///     "float32 | float64", or a tuple or list; a temporary copy of a field of another type has the first. None: any.
/// dims : str or sequence of str, optional
///     Labels in the order in which the kernel indexes the field: a text as "IJK" or "lat lon", or a sequence. A field may
///     have fewer dimensions than others, as "IJ"; data dimensions are digits, as in "IJK0". None: any number of dimensions,
///     indexed in the argument's own order, regardless of its labels; they bound `BoundCall.domain` if the argument states them.
/// access : {"r", "w", "rw"}, optional
///     "r": read only; "w": written, without use of the old values; "rw": both. Elements that a call does not write keep
///     their values; but if the call gets a temporary copy in a narrower type, all elements are cast to it and back.
/// layout : sequence of int, optional
///     The order of strides in which the kernel is fast: the rank of each dimension's stride, in the order of `dims`, 0 for
///     the largest. None: any. Without `dims`, a layout or shape fixes the number of dimensions.
/// alignment_size : int, optional
///     Alignment in bytes of the first compute point, the element at the origin.
/// shape : sequence of int, str or None, optional
///     The extents, in the order of `dims`: an integer for a fixed one, None for any, or the name of a size with an optional
///     offset, as "I" or "I+1". All fields of a call agree on the sizes of these names, regardless of the labels. None: any extents.
/// optional : bool, optional
///     Whether the field may be left out, or be None.
/// backend : str, optional
///     A preset, whose layout and alignment apply unless `layout` or `alignment_size` says otherwise; the device is that of the
///     `Signature`. Alignments in elements are converted to bytes; the presets "jax", "torch" and "cupy" align the element at
///     index 0. Without `dims`, the layout goes by the argument's own labels, or I, J, K, "0", ... if it has none.
/// boundary : sequence of int or pairs, or mapping, optional
///     How many points outside of the domain the kernel reads (GT4Py's word): for each dimension a number for both sides or
///     `(lower, upper)`, or a mapping by label, as `{"I": 1}` for 0 in the others. `BoundCall.domain` leaves out the upper points, and
///     a field whose origin, or lower halo, is smaller than the lower ones is a LayoutError.
///
/// Raises
/// ------
/// DTypeError, DimsError, LayoutError
///     An unknown element type; invalid labels; a layout, shape or boundary that does not fit `dims`; an alignment below 1; an
///     unknown preset.
/// ValueError
///     Another value of `access`.
///
/// Warns
/// -----
/// LayoutWarning
///     The preset orders strides by I, J and K, and `dims` has several labels but none of these.
///
/// Example
/// -------
/// >>> import dlfield as dl
/// >>> dl.FieldSpec("float32", "IJK", access="w", layout=(2, 1, 0)).dims
/// ('I', 'J', 'K')
/// >>> dl.FieldSpec("float32", "IJK", backend="gtmc").alignment_size
/// 32
/// >>> signature = dl.Signature(inp=dl.FieldSpec("float64", "IJ", boundary={"I": 1}))
/// >>> signature.bind(inp=dl.zeros((6, 6), origin=(1, 0))).domain
/// (4, 6)
#[pyclass(name = "FieldSpec", module = "dlfield", frozen, weakref)]
pub(crate) struct PyFieldSpec(pub(crate) FieldSpec);

#[pymethods]
impl PyFieldSpec {
    #[new]
    #[pyo3(
        signature = (dtype, dims=None, *surplus, access=None, layout=None, alignment_size=None, shape=None, optional=None, backend=None, boundary=None, **others),
        text_signature = "(dtype, dims=None, *, access='r', layout=None, alignment_size=None, shape=None, optional=False, backend=None, boundary=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the parameters of the class")]
    fn new(
        dtype: &Bound<'_, PyAny>,
        dims: Option<&Bound<'_, PyAny>>,
        surplus: &Bound<'_, PyTuple>,
        access: Option<&Bound<'_, PyAny>>,
        layout: Option<&Bound<'_, PyAny>>,
        alignment_size: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        optional: Option<&Bound<'_, PyAny>>,
        backend: Option<&Bound<'_, PyAny>>,
        boundary: Option<&Bound<'_, PyAny>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyFieldSpec> {
        if let Some(first) = surplus.iter().next() {
            return Err(given_by_position(surplus.len(), &first));
        }
        args::no_keywords("FieldSpec", others, &HINTS, &NAMES)?;
        let dtypes = dtypes::parse(dtype)?;
        let dims = dims.map(args::dims).transpose()?;
        let ndim = dims.as_ref().map(Dims::len);
        let access = access.map_or(Ok(0), |given| args::choice("access", given, &["r", "w", "rw"]))?;
        let access = [Access::Read, Access::Write, Access::ReadWrite][access];
        let mut spec = FieldSpec::new(DType::F64, dims).dtypes(&dtypes).access(access);
        if let Some(layout) = layout {
            let ranks = args::ints("layout", layout)?;
            spec = spec.layout(Layout::new(&ranks, ndim.unwrap_or(ranks.len()))?);
        }
        if let Some(bytes) = alignment_size {
            spec = spec.alignment_size(args::int("alignment_size", bytes)?);
        }
        if let Some(shape) = shape {
            spec = spec.shape(&sizes(shape)?);
        }
        if let Some(boundary) = boundary {
            let boundary = widths(boundary, spec.dims())?;
            spec = spec.boundary(&boundary);
        }
        spec = spec.optional(optional.map_or(Ok(false), |flag| args::flag("optional", flag))?);
        spec.check()?;
        if let Some(name) = backend {
            spec = spec.preset(parse_preset(name)?);
            if let Some(dims) = spec.unplaced_dims() {
                warn_of_labels(name, &dims.to_string())?;
            }
        }
        Ok(PyFieldSpec(spec))
    }

    /// Element type, as `numpy.dtype`, if exactly one is allowed; else None.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let numpy = |dtype| Ok(dtype::to_numpy(py, dtype)?.clone().into_any());
        self.0.dtype().map(numpy).transpose()
    }

    /// The element types allowed, as a tuple of `numpy.dtype`; empty if any is.
    #[getter]
    fn dtypes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let numpy = |dtype: &DType| Ok(dtype::to_numpy(py, *dtype)?.clone());
        PyTuple::new(py, self.0.declared_dtypes().iter().map(numpy).collect::<PyResult<Vec<_>>>()?)
    }

    /// Labels, in the order in which the kernel indexes the field; None for any.
    #[getter]
    pub(crate) fn dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.dims().map(|dims| attribute_values::labels(py, dims)).transpose()
    }

    /// "r", "w" or "rw".
    #[getter]
    pub(crate) fn access(&self) -> &'static str {
        match self.0.declared_access() {
            Access::Read => "r",
            Access::Write => "w",
            Access::ReadWrite => "rw",
        }
    }

    /// Ranks of the fast strides, in the order of `dims`, also if a preset says them; None for any, or if they depend on the
    /// argument.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.declared_layout().map(|layout| attribute_values::layout(py, layout)).transpose()
    }

    /// Alignment in bytes of the first compute point, also if a preset says it; of the element at index 0 for the presets that
    /// align that. None if it depends on the element type of the argument.
    #[getter]
    fn alignment_size(&self) -> Option<i64> {
        self.0.declared_alignment_size()
    }

    /// The extents: integers, None for any, names of sizes with an offset; None if all are free.
    #[getter]
    pub(crate) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let entry = |size: &Size| match size {
            Size::Any => Ok(py.None().into_bound(py)),
            Size::Fixed(extent) => extent.into_bound_py_any(py),
            named => named.to_string().into_bound_py_any(py),
        };
        let Some(shape) = self.0.declared_shape() else { return Ok(None) };
        PyTuple::new(py, shape.iter().map(entry).collect::<PyResult<Vec<_>>>()?).map(Some)
    }

    /// How many points `(lower, upper)` outside of the domain the kernel reads, in the order of `dims`; None if that was not given.
    #[getter]
    pub(crate) fn boundary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.declared_boundary().map(|boundary| PyTuple::new(py, boundary.iter().copied())).transpose()
    }

    /// Whether the field may be left out.
    #[getter]
    fn optional(&self) -> bool {
        self.0.is_optional()
    }

    /// The preset; None if there is none.
    #[getter]
    pub(crate) fn backend(&self) -> Option<&str> {
        self.0.declared_preset().map(Preset::name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py)
    }

    /// Short, as in the text of a `Signature`: "Field[float64, I J K]".
    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

impl PyFieldSpec {
    /// The specification given for the field of that name.
    pub(crate) fn given(name: &Bound<'_, PyString>, spec: &Bound<'_, PyAny>) -> PyResult<FieldSpec> {
        let expected = "a FieldSpec, as for each keyword other than device, on_mismatch and allow_overlap";
        let wrong = || args::wrong_type(&name.to_string(), expected, spec);
        Ok(spec.cast::<PyFieldSpec>().map_err(|_| wrong())?.get().0.clone())
    }

    /// The element types as the argument `dtype` has them; None if any is allowed.
    pub(crate) fn dtype_names(&self) -> Option<String> {
        let names: Vec<&str> = self.0.declared_dtypes().iter().map(|dtype| dtype.name()).collect();
        (!names.is_empty()).then(|| names.join(" | "))
    }

    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = match self.dtype_names() {
            None => "FieldSpec(None".to_owned(),
            Some(names) => format!("FieldSpec('{names}'"),
        };
        if let Some(dims) = self.dims(py)? {
            text += &format!(", {}", dims.repr()?);
        }
        if self.0.declared_access() != Access::Read {
            text += &format!(", access='{}'", self.access());
        }
        let (layout, alignment_size) = self.0.explicit();
        if let Some(layout) = layout {
            text += &format!(", layout={}", attribute_values::layout(py, layout)?.repr()?);
        }
        if let Some(bytes) = alignment_size.filter(|bytes| *bytes != 1 || self.backend().is_some()) {
            text += &format!(", alignment_size={bytes}");
        }
        if let Some(shape) = self.shape(py)? {
            text += &format!(", shape={}", shape.repr()?);
        }
        if let Some(boundary) = self.boundary(py)? {
            text += &format!(", boundary={}", boundary.repr()?);
        }
        if self.0.is_optional() {
            text += ", optional=True";
        }
        if let Some(name) = self.backend() {
            text += &format!(", backend={}", PyString::new(py, name).repr()?);
        }
        Ok(text + ")")
    }
}

/// Converts a boundary. By label, it is 0 in the dimensions that are left out.
fn widths(boundary: &Bound<'_, PyAny>, dims: Option<&Dims>) -> PyResult<Halo> {
    match dims {
        Some(dims) => args::halo_by_label("boundary", boundary, dims, 0, || Halo::from_elem((0, 0), dims.len())),
        None => args::halo("boundary", boundary, None),
    }
}

/// Converts the expected extents.
fn sizes(shape: &Bound<'_, PyAny>) -> PyResult<Vec<Size>> {
    let wrong = || args::wrong_type("shape", "a sequence of integers, names of sizes or None", shape);
    if shape.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    let mut sizes = Vec::new();
    for item in args::iterator(shape)?.ok_or_else(wrong)? {
        let item = item?;
        if sizes.len() == crate::MAX_NDIM {
            return Err(too_many_dims(sizes.len() + 1).into());
        }
        sizes.push(match item.cast::<PyString>() {
            Ok(text) => Size::parse(&text.to_cow()?)?,
            Err(_) if item.is_none() => Size::Any,
            Err(_) => Size::Fixed(args::int("shape", &item)?),
        });
    }
    Ok(sizes)
}
