//! Functions for comparison in `make bench`: arguments of rust-numpy's types, and the same loops over slices.

use pyo3::prelude::*;

/// The same functions without dlfield, and an empty one with it.
#[pymodule]
pub mod peers {
    use dlfield::ndarray::Ix1;
    use dlfield::python::In;
    use numpy::{PyReadonlyArray3, PyReadonlyArrayDyn, PyReadwriteArray3, PyUntypedArrayMethods};
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
