//! Methods of NumPy's arrays that change the shape or write all elements.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::copy::can_cast;
use crate::error::{Error, LayoutError, LayoutErrorKind};
use crate::python::convert::args;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};
use crate::python::module::methods::index;
use crate::python::module::ufunc;
use crate::python::package;
use crate::tensor::Index;

#[pymethods]
impl PyTensor {
    /// Sets all elements to a number, as `field[...] = value`, by the same rules: `DTypeError` for one that is not cast by
    /// NumPy's "same_kind" rule, as 2.5 for int32, `OverflowError` for an integer that does not fit.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros(2)
    /// >>> field.fill(3)
    /// >>> field.tolist()
    /// [3.0, 3.0]
    fn fill(slf: &Bound<'_, PyTensor>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        index::set(slf, slf.py().Ellipsis().bind(slf.py()), value)
    }

    /// Returns a copy of the elements as a 1-D array without labels: of NumPy, or of CuPy on a device. `order` is that of the
    /// elements: "C", "F", "A", "K".
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2], [3, 4]]).flatten("F")
    /// array([1, 3, 2, 4])
    #[pyo3(signature = (order="C"))]
    fn flatten<'py>(slf: &Bound<'py, PyTensor>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        // CuPy has no read-only arrays, and would reject memory that it only copies.
        by_library(&PyTensor::create(slf.py(), slf.get().0.clone().into_readable())?, "flatten", order)
    }

    /// Returns the elements as a 1-D array without labels: of NumPy, or of CuPy on a device. It has the field's memory if the
    /// elements are there in this order without gaps, else a copy. `order` as for `flatten`.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3))
    /// >>> field.ravel()[4] = 1
    /// >>> field[1, 1].item()
    /// 1.0
    #[pyo3(signature = (order="C"))]
    fn ravel<'py>(slf: &Bound<'py, PyTensor>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        by_library(slf, "ravel", order)
    }

    /// Returns a view without the dimensions of one point, or without those in `axis`: a number, a label, or a tuple of these.
    ///
    /// Raises `LayoutError` for an axis of more or fewer points, `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((1, 3, 1)).squeeze("K").dims
    /// ('I', 'J')
    #[pyo3(signature = (axis=None))]
    fn squeeze(&self, axis: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        let shape = self.descriptor().shape();
        let dropped: SmallVec<[usize; 6]> = match axis {
            None => (0..shape.len()).filter(|axis| shape[*axis] == 1).collect(),
            given => ufunc::axes(&self.0, given)?,
        };
        if let Some(axis) = dropped.iter().find(|axis| shape[**axis] != 1) {
            let got = format_args!("{} at dimension {axis} of dims ({})", shape[*axis], self.0.dims());
            let error = LayoutError::new("axis", &"dimensions of one point", &got);
            return Err(error.with_fix(&"select one with field[...]").into());
        }
        let at = |axis| if dropped.contains(&axis) { Index::At(0) } else { Index::All };
        let index: SmallVec<[Index; 6]> = (0..shape.len()).map(at).collect();
        Ok(PyTensor::new(self.0.view(&index)?))
    }

    /// Returns a view of another shape: the same elements in C order, on the same memory. One extent may be -1.
    ///
    /// `dims` are the new labels; without them they are the standard ones, as for `zeros`, unless the shape stays the same.
    /// Raises `LayoutError` for another number of elements, or if that would need a copy; `DimsError` for wrong labels.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((4, 6))
    /// >>> field.reshape(2, 2, -1, dims=("tile", "I", "J")).shape
    /// (2, 2, 6)
    #[pyo3(signature = (*shape, dims=None))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>, dims: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        let mut extents = match shape.len() {
            1 => args::shape(&shape.get_item(0)?)?,
            _ => args::shape(shape)?,
        };
        if let Some(at) = extents.iter().position(|extent| *extent == -1) {
            let others = extents.iter().enumerate().filter(|(axis, _)| *axis != at);
            let others = others.map(|(_, extent)| *extent).try_fold(1i64, i64::checked_mul);
            // Without an answer the shape stays as it is, and is rejected as given.
            if let Some(others) = others.filter(|others| *others > 0) {
                extents[at] = self.descriptor().size() / others;
            }
        }
        let dims = dims.map(args::dims).transpose()?;
        let reshaped = self.0.reshape(&extents, dims).map_err(|error| match error {
            Error::Layout(error) if error.kind() == LayoutErrorKind::NeedsCopy => {
                error.with_fix(&"reshape a copy in C order, from_array(field, backend=\"C\")").into()
            }
            error => error,
        });
        Ok(PyTensor::new(reshaped?))
    }

    /// Returns a view with two dimensions exchanged, by number or label. Raises `DimsError` for one that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros((2, 3, 4)).swapaxes("I", -1).dims
    /// ('K', 'J', 'I')
    fn swapaxes(&self, axis1: &Bound<'_, PyAny>, axis2: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let (one, other) = (ufunc::axis(&self.0, axis1)?, ufunc::axis(&self.0, axis2)?);
        let mut axes: SmallVec<[usize; 6]> = (0..self.descriptor().ndim()).collect();
        axes.swap(one, other);
        Ok(PyTensor::new(self.0.transpose(&axes)?))
    }

    /// Returns a copy with another element type, and the same labels, layout, padding and alignment.
    ///
    /// The parameters are those of `numpy.ndarray.astype`. On a device, what is not cast by NumPy's "same_kind" rule is by CuPy.
    ///
    /// Parameters
    /// ----------
    /// dtype : str, type or dtype
    ///     The element type.
    /// order : {"C", "F", "A", "K"}, optional
    ///     "C" or "F" instead of "K" give that order without padding; "A" gives "F" for a field in that order, "C" for others.
    /// casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, optional
    ///     The rule for conversions that are allowed.
    /// copy : bool, optional
    ///     False returns the field itself if it has the element type and the order.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     A conversion that the rule does not allow.
    ///
    /// Example
    /// -------
    /// >>> import dlfield as dl
    /// >>> dl.full(2, 1.9).astype("int32").tolist()
    /// [1, 1]
    #[pyo3(signature = (dtype, order="K", casting="unsafe", *, copy=None))]
    fn astype<'py>(
        slf: &Bound<'py, PyTensor>,
        dtype: &Bound<'py, PyAny>,
        order: &str,
        casting: &str,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let copy = copy.map_or(Ok(None), args::copy)?.unwrap_or(true);
        let functions = package::functions(py)?;
        let prepared = functions.call_method1(intern!(py, "prepared"), (slf, dtype, order, casting, copy))?;
        let (made, from, to, casting): (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, String) =
            prepared.extract()?;
        if let Ok(target) = to.cast::<PyTensor>() {
            cast_on_device(slf, target)?;
        } else if !from.is_none() {
            // Called here, so that a warning of NumPy's names the line that called `astype`.
            let casting = PyDict::from_sequence([("casting", casting)].into_pyobject(py)?.as_any())?;
            py.import(intern!(py, "numpy"))?.call_method("copyto", (&to, from), Some(&casting))?;
        }
        Ok(made)
    }

    /// Returns the same memory as elements of another type, as `numpy.ndarray.view` does: with the same labels, and with the halo
    /// if the element size is the same; else the last dimension gets more or fewer points, and must have no gaps.
    ///
    /// Raises `ValueError` for a last dimension that cannot be divided so, `DTypeError` for a type that fields cannot have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.full(2, -1, "int8").view("uint8").tolist()
    /// [255, 255]
    #[pyo3(signature = (dtype=None))]
    fn view<'py>(slf: &Bound<'py, PyTensor>, dtype: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "viewed"), (slf, dtype))
    }

    /// Memory order and access, with the names of `numpy.ndarray.flags`, also as items: `flags["C_CONTIGUOUS"]`. Read-only.
    ///
    /// `owndata` is False: a tensor shares its memory with its views, and cannot resize it.
    ///
    /// >>> import dlfield as dl
    /// >>> flags = dl.zeros((2, 3), backend="F").flags
    /// >>> flags.f_contiguous, flags["C_CONTIGUOUS"], flags.writeable
    /// (True, False, True)
    #[getter]
    fn flags<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "flags_of"), (slf,))
    }
}

/// Casts a tensor on a device to another one there, by CuPy if this crate does not have the cast.
#[cold]
fn cast_on_device(from: &Bound<'_, PyTensor>, to: &Bound<'_, PyTensor>) -> PyResult<()> {
    let everything = to.py().Ellipsis();
    if can_cast(from.get().0.descriptor().dtype(), to.get().0.descriptor().dtype()) {
        return index::set(to, everything.bind(to.py()), from.as_any());
    }
    cupy::with(to, |target| cupy::with(from, |source| target.set_item(everything, source)))
}

/// Calls a method of the array of the device's library.
fn by_library<'py>(slf: &Bound<'py, PyTensor>, method: &str, order: &str) -> PyResult<Bound<'py, PyAny>> {
    if slf.get().descriptor().device().is_cuda() {
        return cupy::with(slf, |array| array.call_method1(method, (order,)));
    }
    export::numpy::view_of(slf)?.call_method1(method, (order,))
}
