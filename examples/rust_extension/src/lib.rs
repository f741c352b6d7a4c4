//! A Python extension in Rust that accepts the arrays of every library and returns tensors. README.md explains it.

#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "kinds")]
mod kinds;
#[cfg(feature = "kinds")]
mod kinds_views;
#[cfg(feature = "peers")]
mod mixed;
#[cfg(feature = "peers")]
mod peers;
mod stencil;

use pyo3::prelude::*;

/// Functions on the arrays of any library.
#[pymodule]
mod rust_extension {
    use dlfield::python::{AnyIn, IJK, In, Out};
    use dlfield::{DType, Preset, Spec, Tensor, dispatch, traverse};
    use ndarray::{Axis, Ix3, IxDyn};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use super::gpu::{for_kernels, on_device};
    #[cfg(feature = "kinds")]
    #[pymodule_export]
    use super::kinds::kinds;
    #[cfg(feature = "kinds")]
    #[pymodule_export]
    use super::kinds_views::kinds_views;
    #[cfg(feature = "peers")]
    #[pymodule_export]
    use super::mixed::mixed;
    #[cfg(feature = "peers")]
    #[pymodule_export]
    use super::peers::peers;
    use super::stencil;

    /// Returns the number of dimensions of any array.
    #[pyfunction]
    fn ndim(x: AnyIn<'_>) -> usize {
        x.descriptor().ndim()
    }

    /// Returns the sum of any array of float64, in any layout.
    #[pyfunction]
    fn sum(py: Python<'_>, x: In<'_, f64, IxDyn>) -> f64 {
        let x = x.array();
        py.detach(|| stencil::sum(x))
    }

    /// Returns the sum of each column of a field, whose dims may come in any order.
    #[pyfunction]
    fn column_sums(field: In<'_, f64, IJK>) -> PyResult<Tensor> {
        Ok(Tensor::from_array(field.array().sum_axis(Axis(2)))?)
    }

    /// Returns the sum of any array of float32 or float64.
    #[pyfunction]
    fn total(numbers: AnyIn<'_>) -> PyResult<f64> {
        let total = dispatch!(numbers, T in floats => {
            numbers.view::<T, IxDyn>()?.iter().map(|number| f64::from(*number)).sum()
        });
        Ok(total?)
    }

    /// Adds `factor` times `inp` to `out`: two arrays of one shape, each in any layout.
    #[pyfunction]
    fn add_scaled(py: Python<'_>, factor: f64, inp: In<'_, f64, IxDyn>, mut out: Out<'_, f64, IxDyn>) -> PyResult<()> {
        let (inp, out) = (inp.array(), out.array_mut());
        Ok(py.detach(|| traverse::zip((inp, out), |(inp, out)| *out += factor * inp))?)
    }

    /// Writes the Laplacian of `inp` to the inner points of `out`; the outermost layer is not changed.
    #[pyfunction]
    fn laplacian(py: Python<'_>, inp: In<'_, f64, Ix3>, mut out: Out<'_, f64, Ix3>) -> PyResult<()> {
        let (inp, out) = (inp.array(), out.array_mut());
        if inp.dim() != out.dim() {
            return Err(PyValueError::new_err(format!("inp has shape {:?}, out {:?}", inp.shape(), out.shape())));
        }
        Ok(py.detach(|| stencil::laplacian(inp, out))?)
    }

    /// Returns a field of zeros with a halo of one point, in the layout of GT4Py's `gt:cpu_ifirst`.
    #[pyfunction]
    fn make_field(shape: [i64; 3]) -> PyResult<Tensor> {
        let spec = Spec::new(&shape, DType::F64).preset(Preset::find("gt:cpu_ifirst")?).halo(&[(1, 1); 3]);
        Ok(Tensor::zeros(&spec)?)
    }

    /// Weights that are kept between calls.
    #[pyclass(frozen)]
    struct Weights {
        weights: Py<PyAny>,
    }

    #[pymethods]
    impl Weights {
        #[new]
        fn new(weights: In<'_, f64, IxDyn>) -> Weights {
            Weights { weights: weights.object().clone().unbind() }
        }

        /// Multiplies an array in place.
        fn apply(&self, py: Python<'_>, mut out: Out<'_, f64, IxDyn>) -> PyResult<()> {
            let weights: In<'_, f64, IxDyn> = self.weights.extract(py)?;
            Ok(traverse::zip((out.array_mut(), weights.array()), |(out, weight)| *out *= weight)?)
        }
    }

    /// Returns the numbers below `stop`, on the memory of a vector.
    #[pyfunction]
    fn count_to(stop: u32) -> Tensor {
        Tensor::from((0..stop).collect::<Vec<u32>>())
    }
}
