//! The attributes of a tensor: its memory and its metadata.

use numpy::PyArrayDescr;
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::layout::extents::Halo;
use crate::python::convert::{args, dtype};
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::attribute_values;
use crate::python::module::classes::device::PyDevice;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};

#[pymethods]
impl PyTensor {
    /// Extents, in index order.
    #[getter]
    pub(crate) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.descriptor().shape())
    }

    /// Bytes from one element to the next, in index order.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attribute_values::strides(py, self.descriptor())
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
    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        dtype::to_numpy(py, self.descriptor().dtype()).cloned()
    }

    /// The device of the memory.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.descriptor().device())
    }

    /// Labels of the dimensions, in index order.
    #[getter]
    pub(crate) fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attribute_values::labels(py, &self.0.dims())
    }

    /// Index of the first compute point.
    #[getter]
    pub(crate) fn origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.inline_origin())
    }

    /// (lower, upper) halo widths per dimension.
    ///
    /// Can be set, each entry to a pair or to one number for both; raises `LayoutError` if they do not fit the shape.
    /// Setting the halo sets the origin to the lower widths. Dims, memory, aligned index and existing views do not change.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((6, 6))
    /// >>> field.halo = (1, (2, 0))
    /// >>> field.origin, field.domain_view.shape
    /// ((1, 2), (4, 4))
    #[getter]
    pub(crate) fn halo<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.halo().iter().copied())
    }

    #[setter]
    fn set_halo(&self, halo: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(self.0.set_halo(&self.halo_widths(halo)?)?)
    }

    /// The `xarray.Variable` on the same memory, with the dims: by it the operators and `where` of a `DataArray` on the left match
    /// dimensions by label. Absent while xarray is not imported.
    ///
    /// >>> import dlfield as dl, xarray
    /// >>> field = dl.zeros((2, 3), dims="KI")
    /// >>> field.variable.dims, (xarray.DataArray([1.0, 2.0, 3.0], dims="I") - field).dims
    /// (('K', 'I'), ('I', 'K'))
    #[getter]
    fn variable<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = match getattr::loaded(py, "xarray")? {
            Some(xarray) => xarray.getattr_opt(intern!(py, "Variable"))?,
            None => None,
        };
        let Some(class) = class else {
            let why = "'Tensor' object has no attribute 'variable' before xarray is imported: import xarray";
            return Err(new_error::<PyAttributeError>(why));
        };
        let on_device = slf.get().descriptor().device().is_cuda();
        let array = if on_device { cupy::array(slf)? } else { export::numpy::view_of(slf)? };
        class.call1((slf.get().dims(py)?, array))
    }

    /// Rank of each dimension's stride; 0 is the largest.
    #[getter]
    pub(crate) fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attribute_values::layout(py, &self.0.layout())
    }

    /// Alignment in bytes of the element at `aligned_index`.
    #[getter]
    fn alignment_size(&self) -> i64 {
        self.0.alignment_size()
    }

    /// The index of the aligned element.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.aligned_index())
    }

    /// Address of the element at index 0.
    #[getter]
    fn ptr(&self) -> usize {
        self.descriptor().ptr().addr()
    }

    /// Whether the memory is read-only through this tensor.
    #[getter]
    fn readonly(&self) -> bool {
        self.descriptor().is_readonly()
    }

    /// Returns the largest power of two that divides the address of the element at index 0, in bytes: its actual alignment.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.zeros(3).alignment() >= 64
    /// True
    fn alignment(&self) -> u64 {
        self.descriptor().alignment()
    }

    /// Returns whether the elements are contiguous: "C" with the last index fastest, "F" with the first, "A" either. Raises
    /// `ValueError` for another order.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.zeros((2, 3), backend="F")
    /// >>> field.is_contiguous(), field.is_contiguous("F")
    /// (False, True)
    #[pyo3(signature = (order="C"))]
    fn is_contiguous(&self, order: &str) -> PyResult<bool> {
        attribute_values::contiguous(self.descriptor(), order)
    }
}

impl PyTensor {
    /// Converts a halo of this tensor, also by label; 0 for labels that a mapping leaves out.
    pub(super) fn halo_widths(&self, halo: &Bound<'_, PyAny>) -> PyResult<Halo> {
        let none = || Halo::from_elem((0, 0), self.descriptor().ndim());
        args::halo_by_label("halo", halo, &self.0.dims(), 0, none)
    }
}
