//! `dlfield.set_num_threads` and `num_threads`: the threads for large copies and fills on the host (`copy/threads.rs`).

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::python::convert::args;
use crate::python::ffi::new_error::{ArgumentError, new_error};
use rayon::max_num_threads;

/// Sets the number of threads among which large copies and fills are divided, for the whole process.
///
/// `threads` is a count; 0 restores the default: one thread per core, or the environment variable `RAYON_NUM_THREADS`.
/// Small copies, and copies in the child of a fork, run on the calling thread alone; in such a child the call does nothing.
/// Raises `ValueError` for a count below 0 or above the maximum, `RuntimeError` if the system cannot start the threads.
///
/// >>> import dlfield as dl
/// >>> dl.set_num_threads(2)
/// >>> dl.num_threads()
/// 2
/// >>> dl.set_num_threads(0)
#[pyfunction]
fn set_num_threads(py: Python<'_>, threads: &Bound<'_, PyAny>) -> PyResult<()> {
    if args::is_bool(threads) {
        return Err(args::not_an_integer("threads", threads));
    }
    let most = max_num_threads();
    let count: Option<usize> = match threads.extract::<i64>() {
        Ok(found) => usize::try_from(found).ok(),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            return Err(args::not_an_integer("threads", threads));
        }
        Err(error) => return Err(error),
    };
    let Some(count) = count.filter(|count| *count <= most) else {
        let expected = format_args!("0 to {most}, 0 for the default");
        return Err(new_error::<PyValueError>(ArgumentError::new("threads", &expected, &args::shown(threads))));
    };
    py.detach(|| crate::copy::set_num_threads(count))
        .map_err(|error| new_error::<PyRuntimeError>(format!("threads: {count} could not be started: {error}")))
}

/// Returns the number of threads among which large copies and fills are divided; 1 in the child of a fork.
///
/// >>> import dlfield as dl
/// >>> dl.num_threads() >= 1
/// True
#[pyfunction]
fn num_threads() -> usize {
    crate::copy::num_threads()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(num_threads, module)?)
}
