//! An extension with one function, which takes two arrays.

#[cfg(feature = "dlfield")]
#[pyo3::pymodule]
mod extension {
    use dlfield::ndarray::Ix1;
    use dlfield::python::{In, Out};
    use pyo3::prelude::*;

    #[pyfunction]
    fn axpy(a: f64, x: In<'_, f64, Ix1>, mut y: Out<'_, f64, Ix1>) {
        y.array_mut().zip_mut_with(&x.array(), |y, x| *y += a * x);
    }
}

#[cfg(feature = "rust-numpy")]
#[pyo3::pymodule]
mod extension {
    use numpy::{PyReadonlyArray1, PyReadwriteArray1};
    use pyo3::prelude::*;

    #[pyfunction]
    fn axpy(a: f64, x: PyReadonlyArray1<'_, f64>, mut y: PyReadwriteArray1<'_, f64>) {
        y.as_array_mut().zip_mut_with(&x.as_array(), |y, x| *y += a * x);
    }
}
