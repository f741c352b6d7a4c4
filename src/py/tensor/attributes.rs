//! What a tensor is: the attributes of its memory and of its labels.

use numpy::PyArrayDescr;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::PyTensor;
use crate::py::device::PyDevice;
use crate::py::{args, attributes, dtype, import};

#[pymethods]
impl PyTensor {
    /// Extents, in index order.
    #[getter]
    pub(super) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.descriptor().shape())
    }

    /// Bytes from one element to the next, in index order.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::strides(py, self.descriptor())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.descriptor().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.descriptor().size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.descriptor().itemsize()
    }

    /// Bytes of all elements, without padding.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.descriptor().nbytes()
    }

    /// Element type, as `numpy.dtype`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        dtype::to_numpy(py, self.descriptor().dtype()).cloned()
    }

    /// Where the memory is.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.descriptor().device())
    }

    /// Labels of the dimensions, in index order.
    #[getter]
    pub(super) fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::labels(py, &self.0.dims())
    }

    /// Index of the first compute point.
    #[getter]
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.origin())
    }

    /// (lower, upper) ghost widths per dimension.
    ///
    /// They can be set, each to a pair or to one number for both; `LayoutError` if they do not fit the shape. The dims stay,
    /// and the origin is the lower width from then on. The memory stays as it is, and with it the aligned index; so do views
    /// that were made before.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((6, 6))
    /// >>> field.halo = (1, (2, 0))
    /// >>> field.origin, field.domain_view.shape
    /// ((1, 2), (4, 4))
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.halo())
    }

    #[setter]
    fn set_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<()> {
        let widths = args::halo(halo, Some(self.descriptor().ndim()))
            .map_err(|error| import::misstated(halo.py(), "halo", error))?;
        Ok(self.0.set_halo(&widths)?)
    }

    /// Rank of each dimension's stride; 0 is the largest.
    #[getter]
    pub(super) fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attributes::layout(py, &self.0.layout())
    }

    /// Bytes that the address of the element at `aligned_index` is a multiple of.
    #[getter]
    fn alignment_size(&self) -> i64 {
        self.0.alignment_size()
    }

    /// The index that is aligned.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.aligned_index())
    }

    /// Address of the element at index 0.
    #[getter]
    fn ptr(&self) -> usize {
        self.descriptor().ptr().addr()
    }

    /// Whether the memory must not be written through this tensor.
    #[getter]
    fn readonly(&self) -> bool {
        self.descriptor().is_readonly()
    }

    /// The largest power of two that divides the address of the element at index 0, in bytes: what the pointer really has.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).alignment() >= 64
    /// True
    fn alignment(&self) -> u64 {
        self.descriptor().alignment()
    }

    /// Whether the elements follow each other without gaps: "C" last index fastest, "F" first, "A" either. `ValueError` for
    /// another order.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="F")
    /// >>> field.is_contiguous(), field.is_contiguous("F")
    /// (False, True)
    #[pyo3(signature = (order="C"))]
    fn is_contiguous(&self, order: &str) -> PyResult<bool> {
        attributes::contiguous(self.descriptor(), order)
    }
}
