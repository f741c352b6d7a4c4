//! Functions for dlfield's tests of views by run-time type, slices, and tensors that outlive a call.

use pyo3::prelude::*;

/// Functions for dlfield's tests.
#[pymodule]
pub mod kinds_views {
    use dlfield::ndarray::{ArrayView, Dimension, Ix0, Ix1, Ix2, Ix3, IxDyn};
    use dlfield::python::{Any, AnyIn, AnyOrder, Anywhere, COrder, In, OrCopy, Out};
    use dlfield::{Access, Dims, Element, FieldSpec, Signature, Tensor, dispatch};
    use pyo3::exceptions::PyTypeError;
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    /// An array of any element type, order and place, to write.
    type AnyOut<'py> = Out<'py, Any, IxDyn, AnyOrder, Anywhere>;

    fn total<T: Element + Into<f64>, D: Dimension>(view: ArrayView<'_, T, D>) -> f64 {
        view.iter().map(|x| (*x).into()).sum()
    }

    #[pyfunction]
    fn sum_floats(numbers: AnyIn<'_>) -> PyResult<f64> {
        Ok(dispatch!(numbers, T in floats => total(numbers.view::<T, IxDyn>()?))?)
    }

    #[pyfunction]
    fn sum_ints(numbers: AnyIn<'_>) -> PyResult<i128> {
        let sum = dispatch!(numbers, T in ints => numbers.view::<T, IxDyn>()?.iter().map(|x| i128::from(*x)).sum());
        Ok(sum?)
    }

    #[pyfunction]
    fn sum_listed(numbers: AnyIn<'_>) -> PyResult<f64> {
        Ok(dispatch!(numbers, T in [f32, i16, u8] => total(numbers.view::<T, IxDyn>()?))?)
    }

    /// Clears an array of any elements.
    #[pyfunction]
    fn clear(mut out: AnyOut<'_>) -> PyResult<()> {
        Ok(dispatch!(out, T in all => out.view_mut::<T, IxDyn>()?.fill(T::default()))?)
    }

    /// Returns the sum of float64 in zero, one or two dimensions, by views of these ranks.
    #[pyfunction]
    fn sum_by_rank(numbers: In<'_, f64, IxDyn>) -> PyResult<f64> {
        let sum = match numbers.descriptor().ndim() {
            0 => numbers.view::<f64, Ix0>().map(total),
            1 => numbers.view::<f64, Ix1>().map(total),
            _ => numbers.view::<f64, Ix2>().map(total),
        };
        Ok(sum.map_err(|error| error.in_argument("numbers"))?)
    }

    #[pyfunction]
    fn fill_int32_matrix(mut out: AnyOut<'_>, value: i32) -> PyResult<()> {
        out.view_mut::<i32, Ix2>().map_err(|error| error.in_argument("out"))?.fill(value);
        Ok(())
    }

    #[pyfunction]
    fn fill_bools(mut out: AnyOut<'_>) -> PyResult<()> {
        out.view_mut::<bool, IxDyn>()?.fill(true);
        Ok(())
    }

    #[pyfunction]
    fn listed(x: In<'_, f64, Ix2, COrder>) -> Vec<f64> {
        x.as_slice().to_vec()
    }

    #[pyfunction]
    fn listed_or_copied(x: OrCopy<'_, f64, IxDyn, COrder>) -> Vec<f64> {
        x.as_slice().to_vec()
    }

    #[pyfunction]
    fn sort(mut out: Out<'_, f64, IxDyn, COrder>) -> usize {
        out.as_slice_mut().sort_by(f64::total_cmp);
        out.as_slice().len()
    }

    /// Returns a new field like the argument.
    #[pyfunction]
    fn like(x: AnyIn<'_>) -> PyResult<Tensor> {
        Ok(Tensor::zeros(&x.spec()?)?)
    }

    #[pyfunction]
    fn like_out(x: AnyOut<'_>) -> PyResult<Tensor> {
        Ok(Tensor::zeros(&x.spec()?)?)
    }

    /// Copies `inp` to `out` by views in the order I, J, regardless of their own.
    #[pyfunction]
    fn bound_copy(inp: In<'_, f64, IxDyn>, out: Out<'_, f64, IxDyn>) -> PyResult<()> {
        let field = || FieldSpec::new(dlfield::DType::F64, Dims::standard(2));
        let signature = Signature::new([("inp", field()), ("out", field().access(Access::Write))])?;
        let (inp, out) = (inp.labelled()?, out.labelled()?);
        let bound = signature.bind(&[("inp", &inp), ("out", &out)])?;
        // SAFETY: the arguments live, and do not overlap.
        let (inp, mut out) =
            unsafe { (bound.array_view::<f64, Ix2>("inp")?, bound.array_view_mut::<f64, Ix2>("out")?) };
        if inp.dim() != out.dim() {
            return Err(PyTypeError::new_err("other shapes"));
        }
        out.assign(&inp);
        Ok(())
    }

    /// Returns the array on the same memory.
    #[pyfunction]
    fn kept(x: Tensor) -> Tensor {
        x
    }

    /// Returns two tensors with the same owner.
    #[pyfunction]
    fn kept_twice(x: Tensor) -> (Tensor, Tensor) {
        (x.clone(), x)
    }

    /// Returns the sum of `x`, after `y` has been imported to be kept.
    #[pyfunction]
    fn sum_and_keep(x: In<'_, f64, IxDyn>, y: Tensor) -> (f64, Tensor) {
        (x.array().sum(), y)
    }

    /// Calls each safe function that reads elements, and returns the errors.
    #[pyfunction]
    fn read_kept(x: Tensor) -> Vec<String> {
        let errors = [
            x.read::<f64, IxDyn>().map(drop),
            x.to_vec::<f64>().map(drop),
            x.copy().map(drop),
            x.clone().into_array::<f64, IxDyn>().map(drop),
            x.clone().array_view_mut::<f64, IxDyn>().map(drop),
        ];
        errors.map(|error| error.map_or_else(|error| error.to_string(), |()| "none".to_owned())).to_vec()
    }

    /// Returns a tensor while a guard reads its memory; the error of the attempt.
    #[pyfunction]
    fn export_guarded(py: Python<'_>) -> PyResult<(String, Tensor)> {
        let field = Tensor::from(vec![1.0f64, 2.0]);
        let guard = field.read::<f64, Ix1>()?;
        let error = (&field).into_pyobject(py).err().map(|error| error.to_string());
        drop(guard);
        Ok((error.unwrap_or_default(), field))
    }

    /// A weighted sum: keeps its weights, and borrows them and its arguments by `extract`.
    #[pyclass(frozen)]
    struct Weights {
        weights: Tensor,
    }

    #[pymethods]
    impl Weights {
        #[new]
        fn new(py: Python<'_>, weights: Tensor) -> PyResult<Weights> {
            (&weights).into_pyobject(py)?.extract::<In<'_, f64, IxDyn>>()?;
            Ok(Weights { weights })
        }

        /// Takes float64 arrays by keyword; other values are ignored.
        #[pyo3(signature = (**fields))]
        fn weighted_sums(&self, py: Python<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<f64>> {
            let weights = (&self.weights).into_pyobject(py)?;
            let weights: In<'_, f64, IxDyn> = weights.extract()?;
            let mut sums = Vec::new();
            for (_, field) in fields.into_iter().flatten() {
                if let Ok(field) = field.extract::<In<'_, f64, IxDyn>>() {
                    sums.push((&weights.array() * &field.array()).sum());
                }
            }
            Ok(sums)
        }

        fn scale_itself(&self, py: Python<'_>, factor: f64) -> PyResult<()> {
            let weights = (&self.weights).into_pyobject(py)?;
            let mut weights: Out<'_, f64, IxDyn> = weights.extract()?;
            weights.array_mut().mapv_inplace(|weight| factor * weight);
            Ok(())
        }
    }

    #[pyfunction]
    fn labels_of_kept(x: Tensor) -> (String, Vec<i64>, Vec<(i64, i64)>) {
        (x.dims().to_string(), x.origin().to_vec(), x.halo().to_vec())
    }

    #[pyfunction]
    fn promise_of_kept(x: Tensor) -> (Vec<u8>, bool, i64, Vec<i64>) {
        (x.layout().to_vec(), x.padding() == dlfield::Padding::Row, x.alignment_size(), x.aligned_index().to_vec())
    }

    #[pyfunction]
    fn field3(x: AnyIn<'_>) -> PyResult<usize> {
        Ok(x.view::<f64, Ix3>()?.len())
    }
}
