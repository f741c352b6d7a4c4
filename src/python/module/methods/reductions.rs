//! Reductions by label, named as those of NumPy's arrays.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::ufunc;
use crate::python::package;

#[pymethods]
impl PyTensor {
    /// Returns the sum, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.sum()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.sum`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.ones((2, 3))
    /// >>> field.sum("J").dims, f"{field.sum():.1f}"
    /// (('I',), '6.0')
    #[pyo3(signature = (axis=None, **keywords))]
    fn sum<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "sum", "add", axis, keywords)
    }

    /// Returns the product, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.prod()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.prod`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.full((2, 3), 2.0).prod("J").tolist()
    /// [8.0, 8.0]
    #[pyo3(signature = (axis=None, **keywords))]
    fn prod<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "prod", "multiply", axis, keywords)
    }

    /// Returns the smallest element, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.min()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.min`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2], [3, 0]]).min("I").tolist()
    /// [1, 0]
    #[pyo3(signature = (axis=None, **keywords))]
    fn min<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "min", "minimum", axis, keywords)
    }

    /// Returns the largest element, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.max()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.max`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2], [3, 0]]).max().item()
    /// 3
    #[pyo3(signature = (axis=None, **keywords))]
    fn max<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "max", "maximum", axis, keywords)
    }

    /// Returns whether any element is true, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.any()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.any`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> bool((dl.ones((2, 3)) > 1).any())
    /// False
    #[pyo3(signature = (axis=None, **keywords))]
    fn any<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "any", "logical_or", axis, keywords)
    }

    /// Returns whether all elements are true, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.all()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.all`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> bool((dl.ones((2, 3)) > 0).all())
    /// True
    #[pyo3(signature = (axis=None, **keywords))]
    fn all<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reduced(slf, "all", "logical_and", axis, keywords)
    }

    /// Returns the mean, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.mean()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.mean`: `dtype`, `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2], [3, 4]]).mean("I").tolist()
    /// [2.0, 3.0]
    #[pyo3(signature = (axis=None, **keywords))]
    fn mean<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        statistic(slf, "mean", axis, keywords)
    }

    /// Returns the variance, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.var()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.var`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([1.0, 3.0]).var().item()
    /// 1.0
    #[pyo3(signature = (axis=None, **keywords))]
    fn var<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        statistic(slf, "var", axis, keywords)
    }

    /// Returns the standard deviation, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.std()` leaves it out.
    /// xarray's `skipna=True` leaves NaN out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.std`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([1.0, 5.0]).std().item()
    /// 2.0
    #[pyo3(signature = (axis=None, **keywords))]
    fn std<'py>(
        slf: &Bound<'py, PyTensor>,
        axis: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        statistic(slf, "std", axis, keywords)
    }
}

/// Reduces by NumPy's ufunc of this name; `method` is the name of the tensor's method.
fn reduced<'py>(
    slf: &Bound<'py, PyTensor>,
    method: &str,
    ufunc: &str,
    axis: Option<&Bound<'py, PyAny>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    match in_numpys_words(slf, method, axis, keywords)? {
        None => ufunc::reduced(method, ufunc, slf, axis, keywords),
        Some((axis, keywords, other)) => {
            ufunc::reduced(method, other.as_deref().unwrap_or(ufunc), slf, Some(&axis), Some(&keywords))
        }
    }
}

/// Calls the package's function of this name.
fn statistic<'py>(
    slf: &Bound<'py, PyTensor>,
    method: &str,
    axis: Option<&Bound<'py, PyAny>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let statistics = package::functions(slf.py())?;
    match in_numpys_words(slf, method, axis, keywords)? {
        None => statistics.call_method(method, (slf, axis), keywords),
        Some((axis, keywords, _)) => statistics.call_method(method, (slf, axis), Some(&keywords)),
    }
}

/// An axis, keywords, and the name of the ufunc if another one computes.
type Words<'py> = (Bound<'py, PyAny>, Bound<'py, PyDict>, Option<String>);

/// Axis and keywords with xarray's words, `dim` and `skipna`, replaced by NumPy's; `None` without such words.
fn in_numpys_words<'py>(
    slf: &Bound<'py, PyTensor>,
    method: &str,
    axis: Option<&Bound<'py, PyAny>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Words<'py>>> {
    let py = slf.py();
    let Some(keywords) = keywords else { return Ok(None) };
    if !keywords.contains(intern!(py, "dim"))? && !keywords.contains(intern!(py, "skipna"))? {
        return Ok(None);
    }
    let found =
        package::functions(py)?.call_method1(intern!(py, "in_numpys_words"), (slf, method, axis, keywords.copy()?))?;
    Ok(Some(found.extract()?))
}
