//! Functions for comparison in `make bench`: arguments of rust-numpy's types, the same loops over slices, and loops over strides
//! by hand and by `ndarray`.

use pyo3::prelude::*;

/// The same functions without dlfield, or without its loops, and an empty one with it.
#[pymodule]
pub mod peers {
    use dlfield::python::{In, Out};
    use dlfield::traverse;
    use ndarray::{Ix1, Ix3, IxDyn, Zip};
    use numpy::{PyReadonlyArray3, PyReadonlyArrayDyn, PyReadwriteArray3, PyUntypedArrayMethods};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use rayon::prelude::*;

    /// Takes three one-dimensional arrays of float32 by dlfield and does nothing.
    #[pyfunction]
    fn empty(_a: In<'_, f32, Ix1>, _b: In<'_, f32, Ix1>, _c: In<'_, f32, Ix1>) {}

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
