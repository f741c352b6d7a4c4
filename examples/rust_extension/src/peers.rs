//! Functions for comparison in `make bench`: arguments of rust-numpy's types, the same loops over slices, and loops over strides
//! by hand and by `ndarray`.

use pyo3::prelude::*;

/// The same functions without dlfield, or without its loops, and an empty one with it.
#[pymodule]
pub mod peers {
    use dlfield::python::{Any, AnyIn, In, OrCopy, Out};
    use dlfield::{Dims, dispatch, traverse};
    use ndarray::{Ix1, Ix2, Ix3, IxDyn, Zip};
    use numpy::{
        AllowTypeChange, Element, PyArray1, PyArray2, PyArray3, PyArrayDescrMethods, PyArrayLike3, PyArrayMethods,
        PyReadonlyArray3, PyReadonlyArrayDyn, PyReadwriteArray3, PyUntypedArray, PyUntypedArrayMethods,
    };
    use pyo3::exceptions::{PyTypeError, PyValueError};
    use pyo3::prelude::*;
    use rayon::prelude::*;

    /// Takes three one-dimensional arrays of float32 by dlfield and does nothing.
    #[pyfunction]
    fn empty(_a: In<'_, f32, Ix1>, _b: In<'_, f32, Ix1>, _c: In<'_, f32, Ix1>) {}

    /// Returns the first element.
    #[pyfunction]
    fn read(x: In<'_, f64, Ix3>) -> f64 {
        x.array()[[0, 0, 0]]
    }

    /// Writes the first element.
    #[pyfunction]
    fn write(mut x: Out<'_, f64, Ix3>) {
        x.array_mut()[[0, 0, 0]] = 1.0;
    }

    /// Returns the first element of an array of a type that is known at run time.
    #[pyfunction]
    fn read_any(x: AnyIn<'_>) -> PyResult<f64> {
        Ok(x.view::<f64, Ix3>()?[[0, 0, 0]])
    }

    /// Returns the first element of a field whose dims are I, J and K.
    #[pyfunction]
    fn read_labelled(x: In<'_, f64, Ix3>) -> PyResult<f64> {
        let field = x.labelled()?;
        if !field.dims().is_some_and(|dims| *dims == Dims::standard(3)) {
            return Err(PyValueError::new_err("x: expected the dims I, J, K"));
        }
        Ok(x.array()[[0, 0, 0]])
    }

    /// Returns the first element of an array of float32 or float64 with one to three dimensions, by a view of these.
    #[pyfunction]
    fn read_by_type(x: AnyIn<'_>) -> PyResult<f64> {
        Ok(dispatch!(x, T in floats => match x.descriptor().ndim() {
            1 => f64::from(x.view::<T, Ix1>()?[0]),
            2 => f64::from(x.view::<T, Ix2>()?[[0, 0]]),
            _ => f64::from(x.view::<T, Ix3>()?[[0, 0, 0]]),
        })?)
    }

    /// Writes the first element of such an array.
    #[pyfunction]
    fn write_by_type(mut x: Out<'_, Any, IxDyn>) -> PyResult<()> {
        Ok(dispatch!(x, T in floats => match x.descriptor().ndim() {
            1 => x.view_mut::<T, Ix1>()?[0] = T::from(1u8),
            2 => x.view_mut::<T, Ix2>()?[[0, 0]] = T::from(1u8),
            _ => x.view_mut::<T, Ix3>()?[[0, 0, 0]] = T::from(1u8),
        })?)
    }

    /// Returns the first element of an array, or of a copy that has the type.
    #[pyfunction]
    fn read_or_copy(x: OrCopy<'_, f64, Ix3>) -> f64 {
        x.array()[[0, 0, 0]]
    }

    /// As `read`, of a NumPy array.
    #[pyfunction]
    fn numpy_read(x: PyReadonlyArray3<'_, f64>) -> f64 {
        x.as_array()[[0, 0, 0]]
    }

    /// As `write`, to a NumPy array.
    #[pyfunction]
    fn numpy_write(mut x: PyReadwriteArray3<'_, f64>) {
        x.as_array_mut()[[0, 0, 0]] = 1.0;
    }

    /// As `read_any`, of a NumPy array.
    #[pyfunction]
    fn numpy_read_any(x: &Bound<'_, PyUntypedArray>) -> PyResult<f64> {
        Ok(x.cast::<PyArray3<f64>>()?.try_readonly()?.as_array()[[0, 0, 0]])
    }

    /// As `read_by_type`, of a NumPy array.
    #[pyfunction]
    fn numpy_read_by_type(x: &Bound<'_, PyUntypedArray>) -> PyResult<f64> {
        if let Some(first) = numpy_first::<f32>(x)? {
            return Ok(first.into());
        }
        numpy_first::<f64>(x)?.ok_or_else(|| PyTypeError::new_err("x: expected float32 or float64"))
    }

    /// As `write_by_type`, to a NumPy array.
    #[pyfunction]
    fn numpy_write_by_type(x: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        if numpy_set_first(x, 1.0f32)? || numpy_set_first(x, 1.0f64)? {
            return Ok(());
        }
        Err(PyTypeError::new_err("x: expected float32 or float64"))
    }

    /// Returns the first element of a NumPy array with one to three dimensions; `None` if its elements are of another type.
    fn numpy_first<T: Element + Copy>(x: &Bound<'_, PyUntypedArray>) -> PyResult<Option<T>> {
        if !x.dtype().is_equiv_to(&numpy::dtype::<T>(x.py())) {
            return Ok(None);
        }
        Ok(Some(match x.ndim() {
            1 => x.cast::<PyArray1<T>>()?.try_readonly()?.as_array()[0],
            2 => x.cast::<PyArray2<T>>()?.try_readonly()?.as_array()[[0, 0]],
            _ => x.cast::<PyArray3<T>>()?.try_readonly()?.as_array()[[0, 0, 0]],
        }))
    }

    /// Writes the first element of a NumPy array with one to three dimensions. Returns whether its elements are of this type.
    fn numpy_set_first<T: Element>(x: &Bound<'_, PyUntypedArray>, value: T) -> PyResult<bool> {
        if !x.dtype().is_equiv_to(&numpy::dtype::<T>(x.py())) {
            return Ok(false);
        }
        match x.ndim() {
            1 => x.cast::<PyArray1<T>>()?.try_readwrite()?.as_array_mut()[0] = value,
            2 => x.cast::<PyArray2<T>>()?.try_readwrite()?.as_array_mut()[[0, 0]] = value,
            _ => x.cast::<PyArray3<T>>()?.try_readwrite()?.as_array_mut()[[0, 0, 0]] = value,
        }
        Ok(true)
    }

    /// As `read_or_copy`, of what `np.asarray` makes an array of.
    #[pyfunction]
    fn numpy_read_or_copy(x: PyArrayLike3<'_, f64, AllowTypeChange>) -> f64 {
        x.as_array()[[0, 0, 0]]
    }

    /// Returns the number of dimensions of a NumPy array of float64.
    #[pyfunction]
    fn ndim(x: PyReadonlyArrayDyn<'_, f64>) -> usize {
        x.ndim()
    }

    /// Returns the number of dimensions of a three-dimensional NumPy array of float64.
    #[pyfunction]
    fn ndim3(x: PyReadonlyArray3<'_, f64>) -> usize {
        x.ndim()
    }

    /// Returns the numbers below `stop` as a NumPy array, on the memory of a vector.
    #[pyfunction]
    fn count_to(py: Python<'_>, stop: u32) -> Bound<'_, PyArray1<u32>> {
        PyArray1::from_vec(py, (0..stop).collect())
    }

    /// Returns a NumPy array of zeros.
    #[pyfunction]
    fn zeros(py: Python<'_>, shape: [usize; 3]) -> Bound<'_, PyArray3<f64>> {
        PyArray3::zeros(py, shape, false)
    }

    /// Returns the sum of a NumPy array in C order, over its slice, eight numbers at a time.
    #[pyfunction]
    fn sum(py: Python<'_>, x: PyReadonlyArrayDyn<'_, f64>) -> PyResult<f64> {
        let numbers = x.as_slice()?;
        Ok(py.detach(|| {
            let (eights, rest) = numbers.as_chunks::<8>();
            let mut sums = [0.0; 8];
            for eight in eights {
                for (sum, number) in sums.iter_mut().zip(eight) {
                    *sum += number;
                }
            }
            sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
        }))
    }

    /// Returns the sum by one addition after the other, as `sum_loop`, in the order of memory.
    #[pyfunction]
    fn sum_fold(py: Python<'_>, x: In<'_, f64, IxDyn>) -> f64 {
        let x = x.array();
        py.detach(|| traverse::fold(x, 0.0, |sum, x| sum + x))
    }

    /// Returns the sum by a loop over strides, in the order of indices.
    #[pyfunction]
    fn sum_loop(py: Python<'_>, x: In<'_, f64, Ix3>) -> f64 {
        let x = x.array();
        py.detach(|| {
            let ([ni, nj, nk], [si, sj, sk]) = loops(x.shape(), x.strides());
            let start = x.as_ptr();
            let mut sum = 0.0;
            for i in 0..ni {
                for j in 0..nj {
                    for k in 0..nk {
                        // SAFETY: the address of an element of the view.
                        sum += unsafe { *start.offset(i * si + j * sj + k * sk) };
                    }
                }
            }
            sum
        })
    }

    /// Returns the sum that `ndarray` computes.
    #[pyfunction]
    fn sum_ndarray(py: Python<'_>, x: In<'_, f64, IxDyn>) -> f64 {
        let x = x.array();
        py.detach(|| x.sum())
    }

    /// Returns the sum over `ndarray`'s iterator.
    #[pyfunction]
    fn sum_iter(py: Python<'_>, x: In<'_, f64, IxDyn>) -> f64 {
        let x = x.array();
        py.detach(|| x.iter().sum())
    }

    /// Adds `factor` times `inp` to `out` by a loop over strides, in the order of indices.
    #[pyfunction]
    fn add_scaled_loop(py: Python<'_>, factor: f64, inp: In<'_, f64, Ix3>, mut out: Out<'_, f64, Ix3>) -> PyResult<()> {
        let (inp, mut out) = (inp.array(), out.array_mut());
        if inp.shape() != out.shape() {
            return Err(PyValueError::new_err("other shapes"));
        }
        py.detach(|| {
            let ([ni, nj, nk], [si, sj, sk]) = loops(inp.shape(), inp.strides());
            let (_, [ti, tj, tk]) = loops(out.shape(), out.strides());
            let (from, to) = (inp.as_ptr(), out.as_mut_ptr());
            for i in 0..ni {
                for j in 0..nj {
                    for k in 0..nk {
                        // SAFETY: the addresses of elements of the views, which have the same shape.
                        unsafe {
                            *to.offset(i * ti + j * tj + k * tk) += factor * *from.offset(i * si + j * sj + k * sk)
                        };
                    }
                }
            }
        });
        Ok(())
    }

    /// Adds `factor` times `inp` to `out` with `Zip` of `ndarray`.
    #[pyfunction]
    fn add_scaled_zip(
        py: Python<'_>,
        factor: f64,
        inp: In<'_, f64, IxDyn>,
        mut out: Out<'_, f64, IxDyn>,
    ) -> PyResult<()> {
        let (inp, out) = (inp.array(), out.array_mut());
        if inp.shape() != out.shape() {
            return Err(PyValueError::new_err("other shapes"));
        }
        py.detach(|| Zip::from(out).and(inp).for_each(|out, inp| *out += factor * inp));
        Ok(())
    }

    /// Returns extents and strides in elements, of three dimensions.
    fn loops(shape: &[usize], strides: &[isize]) -> ([isize; 3], [isize; 3]) {
        ([0, 1, 2].map(|axis| shape[axis].cast_signed()), [0, 1, 2].map(|axis| strides[axis]))
    }

    /// Writes the Laplacian of a NumPy array to another, over slices in C order, with planes divided among threads.
    #[pyfunction]
    fn laplacian(py: Python<'_>, inp: PyReadonlyArray3<'_, f64>, mut out: PyReadwriteArray3<'_, f64>) -> PyResult<()> {
        let [ni, nj, nk] = [inp.shape()[0], inp.shape()[1], inp.shape()[2]];
        let (inp, out) = (inp.as_slice()?, out.as_slice_mut()?);
        py.detach(|| {
            let planes = out.par_chunks_mut(nj * nk).enumerate().skip(1).take(ni - 2);
            planes.for_each(|(i, plane)| {
                for j in 1..nj - 1 {
                    let start = (i * nj + j) * nk;
                    let out = &mut plane[j * nk + 1..(j + 1) * nk - 1];
                    let len = out.len();
                    let row = |start: usize| &inp[start..start + len];
                    let (north, south) = (row(start + 1 - nj * nk), row(start + 1 + nj * nk));
                    let (west, east) = (row(start + 1 - nk), row(start + 1 + nk));
                    let (before, middle, after) = (row(start), row(start + 1), row(start + 2));
                    for k in 0..len {
                        out[k] = north[k] + south[k] + west[k] + east[k] + before[k] + after[k] - 6.0 * middle[k];
                    }
                }
            });
        });
        Ok(())
    }
}
