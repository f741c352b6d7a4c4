//! The attributes and methods of a descriptor.

use crate::python::convert::{args, dtype};
use crate::python::module::classes::attribute_values;
use crate::python::module::classes::descriptor::PyDescriptor;
use crate::python::module::classes::device::PyDevice;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::package;
use numpy::PyArrayDescr;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

#[pymethods]
impl PyDescriptor {
    /// The object may refer to its description; clearing the object breaks the cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }

    /// Extents, in index order.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.descriptor.shape())
    }

    /// Bytes from one element to the next, in index order.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attribute_values::strides(py, &self.descriptor)
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.descriptor.ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.descriptor.size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.descriptor.itemsize()
    }

    /// Bytes of all elements, without padding.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.descriptor.nbytes()
    }

    /// Element type, as `numpy.dtype`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        dtype::to_numpy(py, self.descriptor.dtype()).cloned()
    }

    /// The device of the memory.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.descriptor.device())
    }

    /// Labels of the dimensions; None if unknown.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.descriptor.dims().map(|dims| attribute_values::labels(py, dims)).transpose()
    }

    /// Index of the first compute point; None if unknown.
    #[getter]
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.descriptor.origin().map(|origin| PyTuple::new(py, origin)).transpose()
    }

    /// (lower, upper) halo widths per dimension; None if unknown.
    #[getter]
    fn halo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.descriptor.halo().map(|halo| PyTuple::new(py, halo.iter().copied())).transpose()
    }

    /// Rank of each dimension's stride; 0 is the largest.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        attribute_values::layout(py, &self.descriptor.layout())
    }

    /// Alignment in bytes of the element at `aligned_index`, which a `Tensor` promises; 1 for other objects.
    #[getter]
    fn alignment_size(&self, py: Python<'_>) -> i64 {
        self.promised_alignment(py).map_or(1, |(size, _)| size)
    }

    /// The index of the aligned element; zeros for objects that promise none.
    #[getter]
    fn aligned_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.promised_alignment(py) {
            Some((_, index)) => PyTuple::new(py, index),
            None => attribute_values::zeros(py, self.descriptor.ndim()),
        }
    }

    /// The description with its dimensions, and their labels, in reverse order; `owner` is the same object.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> dl.describe(np.ones((2, 3)), dims="JI").T.dims
    /// ('I', 'J')
    #[getter]
    #[pyo3(name = "T")]
    fn reversed_dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDescriptor>> {
        self.reversed(py)
    }

    /// Address of the element at index 0.
    #[getter]
    fn ptr(&self) -> usize {
        self.descriptor.ptr().addr()
    }

    /// Address of the first point to compute: the element at `origin`, or without one after the lower halo.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.describe(dl.zeros((4, 5), halo=(1, 2)))
    /// >>> field.domain_ptr - field.ptr == field.strides[0] + 2 * field.strides[1]
    /// True
    #[getter]
    fn domain_ptr(&self) -> usize {
        self.descriptor.domain_ptr().addr()
    }

    /// Elements from one element to the next, in index order.
    ///
    /// >>> import dlfield as dl, numpy as np
    /// >>> dl.describe(np.ones((2, 3))).element_strides
    /// (3, 1)
    #[getter]
    fn element_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.descriptor.strides())
    }

    /// The memory for `ctypes`, as `numpy.ndarray.ctypes`: `data` is the address of the element at index 0, `shape` and `strides`
    /// are arrays of `c_ssize_t`, and `data_as`, `shape_as` and `strides_as` take another type.
    ///
    /// >>> import ctypes, dlfield as dl
    /// >>> field = dl.describe(dl.full((2, 3), 5.0))
    /// >>> field.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0], list(field.ctypes.strides_as(ctypes.c_int))
    /// (5.0, [24, 8])
    #[getter]
    fn ctypes<'py>(slf: &Bound<'py, PyDescriptor>) -> PyResult<Bound<'py, PyAny>> {
        package::functions(slf.py())?.call_method1(intern!(slf.py(), "Ctypes"), (slf,))
    }

    /// Returns the NumPy array on the same memory, cast or copied if requested.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, PyDescriptor>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = package::functions(slf.py())?.call_method1(intern!(slf.py(), "from_dlpack"), (slf,))?;
        tensor.call_method1(intern!(slf.py(), "__array__"), (dtype, copy))
    }

    /// Whether the memory is read-only.
    #[getter]
    fn readonly(&self) -> bool {
        self.descriptor.is_readonly()
    }

    /// The object that was described.
    #[getter]
    fn owner<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.object(py)
    }

    /// The protocol that it was imported by.
    #[getter]
    fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Returns the largest power of two that divides the address.
    fn alignment(&self) -> u64 {
        self.descriptor.alignment()
    }

    /// Returns whether the elements are contiguous: "C" with the last index fastest, "F" with the first, "A" either.
    #[pyo3(signature = (order="C"))]
    fn is_contiguous(&self, order: &str) -> PyResult<bool> {
        attribute_values::contiguous(&self.descriptor, order)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?.repr()?;
        let strides = self.strides(py)?.repr()?;
        let descriptor = &self.descriptor;
        let mut stated = String::new();
        for (name, value) in [("dims", self.dims(py)?), ("halo", self.halo(py)?), ("origin", self.origin(py)?)] {
            if let Some(value) = value {
                stated += &format!(", {name}={}", value.repr()?);
            }
        }
        Ok(format!(
            "Descriptor(shape={shape}, strides={strides}, dtype={}{stated}, device='{}'{}, protocol='{}', owner={})",
            descriptor.dtype(),
            descriptor.device(),
            if descriptor.is_readonly() { ", readonly" } else { "" },
            self.protocol,
            args::shown(self.object(py).get_type().as_any())
        ))
    }
}

impl PyDescriptor {
    /// The alignment that the object promises, and the index of the aligned element among the dimensions of this description:
    /// `describe` has those of the object, `T` and `bind` have them in another order.
    fn promised_alignment(&self, py: Python<'_>) -> Option<(i64, SmallVec<[i64; 6]>)> {
        let object = self.object(py);
        let tensor = &object.cast::<PyTensor>().ok()?.get().0;
        let (here, there) = (&self.descriptor, tensor.descriptor());
        if here.ptr() != there.ptr() || here.ndim() != there.ndim() {
            return None;
        }
        let mut left: SmallVec<[_; 6]> =
            there.shape().iter().zip(there.strides()).zip(tensor.aligned_index()).collect();
        let mut index = SmallVec::<[i64; 6]>::new();
        for dimension in here.shape().iter().zip(here.strides()) {
            // Of several with the same extent and stride, each order has the same address.
            let at = left.iter().position(|(other, _)| *other == dimension)?;
            index.push(*left.remove(at).1);
        }
        Some((tensor.alignment_size(), index))
    }
}
