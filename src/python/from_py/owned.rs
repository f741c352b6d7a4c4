//! Arrays that a Rust function keeps.

use pyo3::prelude::*;

use crate::layout::Metadata;
use crate::python::from_py::borrows::check_undisturbed;
use crate::python::from_py::open::{as_refusal, refusal};
use crate::python::import;
use crate::python::sync;
use crate::tensor::Tensor;

/// Takes any array on any device, with its dims, origin and halo, to keep it beyond the call. Nothing is copied: the tensor
/// shares the memory and keeps it alive, as `dlfield.from_dlpack` does in Python. A `dlfield.Tensor` has its layout, padding and
/// alignment here, too. That costs more than an [`In`](crate::python::In), which only borrows: a `dlfield.Tensor` shares its
/// owner; the producer of another object makes a DLPack struct, or the object is kept. A DLPack capsule is consumed.
///
/// Python can still write to the memory, and so can an [`Out`](crate::python::Out). So the safe functions that access elements,
/// such as [`Tensor::read`] and [`Tensor::array_view_mut`], return an error for the tensor: a function that reads its argument takes an
/// [`In`](crate::python::In), and a class that reads in a later call [keeps the object](crate::python#arrays-that-are-not-arguments).
/// To access a tensor's elements later, convert it to Python, which needs the package `dlfield`, and borrow that: the ledger then checks it
/// as any argument.
///
/// # Example
/// A class that keeps a field, and reads it in a later call:
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::python::{In, Out};
/// use dlfield::{Tensor, traverse};
/// use pyo3::prelude::*;
///
/// #[pyclass(frozen)]
/// struct Damping {
///     coefficients: Tensor,
/// }
///
/// #[pymethods]
/// impl Damping {
///     #[new]
///     fn new(py: Python<'_>, coefficients: Tensor) -> PyResult<Damping> {
///         // An error now rather than at the first call.
///         (&coefficients).into_pyobject(py)?.extract::<In<'_, f64, Ix1>>()?;
///         Ok(Damping { coefficients })
///     }
///
///     fn apply(&self, py: Python<'_>, mut out: Out<'_, f64, Ix1>) -> PyResult<()> {
///         let kept = (&self.coefficients).into_pyobject(py)?;
///         // An error if `out` is the same memory.
///         let coefficients: In<'_, f64, Ix1> = kept.extract()?;
///         let views = (out.array_mut(), coefficients.array());
///         Ok(traverse::zip(views, |(out, coefficient)| *out *= coefficient)?)
///     }
/// }
/// ```
impl<'py> FromPyObject<'_, 'py> for Tensor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Tensor> {
        let py = object.py();
        let owned = import::own(&object, Some(&Metadata::default()))
            .and_then(|owned| owned.ok_or_else(|| import::not_an_array(&object)));
        let tensor = owned.or_else(|error| as_refusal(py, error))?;
        // The import may have run any code, which may have moved the arguments extracted before.
        check_undisturbed(py).map_err(refusal)?;
        // Python has the memory too. In a program with the module linked in, a function may be reading it.
        sync::export(py, tensor.owner()).map_err(refusal)?;
        Ok(tensor)
    }
}
