//! Reductions by label, named as those of NumPy's arrays.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::ufunc;
use crate::python::package;

/// What the docstrings say of the results.
macro_rules! results {
    (numbers) => {
        concat!("xarray's `skipna=True` leaves NaN out.\n", results!(truth))
    };
    (truth) => {
        "The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for\n"
    };
    (statistics) => {
        "xarray's `skipna=True` leaves NaN out.\nThe result is as for `sum`. Integers give float64; float16 and bfloat16 are \
         computed in float32. Keywords as for\n"
    };
}

/// Defines the methods, which have the same parameters: after its example each one's name, result, function and keywords.
macro_rules! reductions {
    ($($(#[$($example:tt)*])* $name:ident = $found:literal, $kind:ident, $function:ident($($ufunc:literal)?), $keywords:literal;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                #[doc = concat!(
                    "Returns ", $found,
                    ", along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.\n\n",
                    "The halo counts, as for a NumPy array: `field.domain_view.", stringify!($name), "()` leaves it out.\n",
                    results!($kind), "`numpy.ndarray.", stringify!($name), "`: ", $keywords,
                    ". Raises `DimsError` for an axis that the field does not have.\n\n>>> import dlfield as dl"
                )]
                $(#[$($example)*])*
                #[pyo3(signature = (axis=None, **keywords))]
                fn $name<'py>(
                    slf: &Bound<'py, PyTensor>,
                    axis: Option<&Bound<'py, PyAny>>,
                    keywords: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    $function(slf, stringify!($name), $($ufunc,)? axis, keywords)
                }
            )*
        }
    };
}

reductions! {
    /// >>> field = dl.ones((2, 3))
    /// >>> field.sum("J").dims, f"{field.sum():.1f}"
    /// (('I',), '6.0')
    sum = "the sum", numbers, reduced("add"), "`dtype`, `out`, `keepdims`, `initial`, `where`";
    /// >>> dl.full((2, 3), 2.0).prod("J").tolist()
    /// [8.0, 8.0]
    prod = "the product", numbers, reduced("multiply"), "`dtype`, `out`, `keepdims`, `initial`, `where`";
    /// >>> dl.from_array([[1, 2], [3, 0]]).min("I").tolist()
    /// [1, 0]
    min = "the smallest element", numbers, reduced("minimum"), "`out`, `keepdims`, `initial`, `where`";
    /// >>> dl.from_array([[1, 2], [3, 0]]).max().item()
    /// 3
    max = "the largest element", numbers, reduced("maximum"), "`out`, `keepdims`, `initial`, `where`";
    /// >>> bool((dl.ones((2, 3)) > 1).any())
    /// False
    any = "whether any element is true", truth, reduced("logical_or"), "`out`, `keepdims`, `where`";
    /// >>> bool((dl.ones((2, 3)) > 0).all())
    /// True
    all = "whether all elements are true", truth, reduced("logical_and"), "`out`, `keepdims`, `where`";
    /// >>> dl.from_array([[1, 2], [3, 4]]).mean("I").tolist()
    /// [2.0, 3.0]
    mean = "the mean", statistics, statistic(), "`dtype`, `out`, `keepdims`, `where`";
    /// >>> dl.from_array([1.0, 3.0]).var().item()
    /// 1.0
    var = "the variance", statistics, statistic(), "`dtype`, `out`, `ddof`, `keepdims`, `where`";
    /// >>> dl.from_array([1.0, 5.0]).std().item()
    /// 2.0
    std = "the standard deviation", statistics, statistic(), "`dtype`, `out`, `ddof`, `keepdims`, `where`";
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
