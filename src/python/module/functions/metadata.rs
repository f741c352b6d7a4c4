//! The functions `get_dims` and `get_origin`, and the function by which other extensions label the tensors that they return.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::dims::Dims;
use crate::layout::extents::Extents;
use crate::python::convert::args;
use crate::python::convert::metadata_state::MetadataState;
use crate::python::import::{Interface, find_dims, inner_of, metadata_of};
use crate::python::module::classes::attribute_values;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::signature::kernel;

/// Return the dims of an object: the labels of its dimensions, in index order.
///
/// The sources are `__gt_dims__` (attribute or method), the data interface's "dims", and `dims` if that is a sequence of
/// strings. If a wrapper has none, those of the array inside are returned.
///
/// Parameters
/// ----------
/// obj
///     Any object; it need not be an array.
/// annotation
///     What to return if the object has none: labels, as a text ("IJK", "lat lon") or a sequence, or an annotation that
///     has labels. That is a `FieldSpec`, `dl.Field[...]`, `Annotated[..., FieldSpec(...)]`, `gtscript.Field[...]` of
///     gt4py.cartesian, or an entry of a stencil's `field_info`.
///
/// Returns
/// -------
/// tuple of str, or None
///     None if neither the object nor the annotation has labels.
///
/// Raises
/// ------
/// DimsError
///     Two sources disagree, or a label is repeated or invalid.
///
/// Example
/// -------
/// >>> import dlfield as dl, numpy as np
/// >>> dl.get_dims(dl.zeros((2, 3), dims="JK")), dl.get_dims(np.zeros(2), "K")
/// (('J', 'K'), ('K',))
#[pyfunction]
#[pyo3(signature = (obj, annotation=None))]
fn get_dims<'py>(
    obj: &Bound<'py, PyAny>,
    annotation: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        return attribute_values::labels(py, &tensor.get().0.dims()).map(Some);
    }
    let dims = match find_in_or_inside(obj, |object| find_dims(object, &Interface::of(object, None)?))? {
        Some(dims) => Some(dims),
        None => annotation.map_or(Ok(None), annotated_dims)?,
    };
    dims.map(|dims| attribute_values::labels(py, &dims)).transpose()
}

/// Returns the labels that an annotation states, or `None` if it is one of a field of any dims.
fn annotated_dims(annotation: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    if annotation.is_instance_of::<PyString>() || annotation.is_instance_of::<PyTuple>() {
        return args::dims(annotation).map(Some);
    }
    let dims = kernel::dims_of(annotation)?;
    if dims.is_none() { Ok(None) } else { args::dims(&dims).map(Some) }
}

/// Return the origin of an object: the index of its first compute point, in index order.
///
/// The sources are `__gt_origin__` and `default_origin` (attributes or methods, in GT4Py's order of dimensions), then the
/// data interface's lower halo. If a wrapper has none, those of the array inside are returned.
///
/// Parameters
/// ----------
/// obj
///     Any object; it need not be an array.
/// default
///     The origin to return if the object has none: a sequence of integers.
///
/// Returns
/// -------
/// tuple of int, or None
///     None if the object has none and there is no default.
///
/// Raises
/// ------
/// LayoutError
///     `__gt_origin__` and `default_origin` disagree, or are not integers; a field of `gt4py.next` whose domain does not have the
///     grid's point 0.
/// DimsError
///     As for `get_dims`: the labels determine the order.
///
/// Example
/// -------
/// >>> import dlfield as dl, numpy as np
/// >>> dl.get_origin(dl.zeros((5, 5), halo=(1, 2))), dl.get_origin(np.zeros(2))
/// ((1, 2), None)
#[pyfunction]
#[pyo3(signature = (obj, default=None))]
fn get_origin<'py>(
    obj: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = obj.py();
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        return PyTuple::new(py, tensor.get().0.inline_origin()).map(Some);
    }
    let origin = match find_in_or_inside(obj, |object| Ok(metadata_of(object)?.with_default_origin().origin))? {
        Some(origin) => Some(origin),
        None => default.map(|default| args::ints("default", default)).transpose()?.map(Extents::into_boxed_slice),
    };
    origin.map(|origin| PyTuple::new(py, origin)).transpose()
}

/// Returns the value of the object, else that of the array inside it, which is looked up only then.
fn find_in_or_inside<'py, T>(
    object: &Bound<'py, PyAny>,
    find: impl Fn(&Bound<'py, PyAny>) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    match find(object)? {
        Some(found) => Ok(Some(found)),
        None => inner_of(object)?.map_or(Ok(None), |inner| find(&inner)),
    }
}

/// Returns a tensor on the same memory with this metadata.
#[pyfunction]
#[pyo3(name = "_with_metadata")]
fn with_metadata<'py>(tensor: &Bound<'py, PyTensor>, state: MetadataState) -> PyResult<Bound<'py, PyTensor>> {
    let mut relabelled = tensor.get().0.clone();
    state.apply(&mut relabelled)?;
    PyTensor::create(tensor.py(), relabelled)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(with_metadata, module)?)?;
    module.add_function(wrap_pyfunction!(get_dims, module)?)?;
    module.add_function(wrap_pyfunction!(get_origin, module)?)
}
