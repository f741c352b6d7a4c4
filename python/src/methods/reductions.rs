//! Reductions by label, named as those of NumPy's arrays.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::classes::tensor::PyTensor;
use crate::ufunc;

#[pymethods]
impl PyTensor {
    /// Returns the sum, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.sum()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.sum`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("sum", "add", slf, axis, keywords)
    }

    /// Returns the product, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.prod()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.prod`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("prod", "multiply", slf, axis, keywords)
    }

    /// Returns the smallest element, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.min()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.min`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("min", "minimum", slf, axis, keywords)
    }

    /// Returns the largest element, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.max()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.max`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("max", "maximum", slf, axis, keywords)
    }

    /// Returns whether any element is true, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.any()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.any`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("any", "logical_or", slf, axis, keywords)
    }

    /// Returns whether all elements are true, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.all()` leaves it out.
    /// The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
    /// `numpy.ndarray.all`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        ufunc::reduced("all", "logical_and", slf, axis, keywords)
    }

    /// Returns the mean, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.mean()` leaves it out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.mean`: `dtype`, `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        let statistics = slf.py().import(intern!(slf.py(), "dlfield._statistics"))?;
        statistics.call_method(intern!(slf.py(), "mean"), (slf, axis), keywords)
    }

    /// Returns the variance, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.var()` leaves it out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.var`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        let statistics = slf.py().import(intern!(slf.py(), "dlfield._statistics"))?;
        statistics.call_method(intern!(slf.py(), "var"), (slf, axis), keywords)
    }

    /// Returns the standard deviation, along the dimensions in `axis`: a number, a label, a tuple of these, or None for all.
    ///
    /// The halo counts, as for a NumPy array: `field.domain_view.std()` leaves it out.
    /// The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
    /// `numpy.ndarray.std`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field lacks.
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
        let statistics = slf.py().import(intern!(slf.py(), "dlfield._statistics"))?;
        statistics.call_method(intern!(slf.py(), "std"), (slf, axis), keywords)
    }
}
