//! No freelist: each object is made and freed by PyO3.

use pyo3::prelude::*;

use crate::classes::freelist::HasFreelist;

/// Keeps nothing.
pub(crate) struct Freelist;

impl Freelist {
    pub(crate) const fn new() -> Freelist {
        Freelist
    }
}

/// Leaves the class as it is: PyO3 drops the values of freed objects.
pub(crate) fn install<T: HasFreelist>(_: Python<'_>) -> PyResult<()> {
    Ok(())
}

/// Makes an object of a blank value that is filled first.
pub(crate) fn create<'py, T: HasFreelist>(
    py: Python<'py>,
    fill: impl FnOnce(&mut T) -> PyResult<()>,
) -> PyResult<Bound<'py, T>> {
    let mut value = T::blank();
    fill(&mut value)?;
    Bound::new(py, value)
}
