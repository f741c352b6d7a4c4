//! `dlfield.Descriptor`.

use numpy::PyArrayDescr;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::classes::device::PyDevice;
use crate::classes::freelist::{Freelist, HasFreelist};
use crate::methods::common;
use dlfield::descriptor::Descriptor;
use dlfield::native::{Description, args, dtype};
use dlfield::tensor::Owner;

/// The validated description of an array of any library: what `describe` returns.
///
/// Strides are in bytes. `dims`, `origin` and `halo` are None if unknown. Keeps the array alive.
///
/// >>> import dlfield as dl, numpy as np
/// >>> seen = dl.describe(np.ones((2, 3), "int16"), dims="JI")
/// >>> seen.strides, seen.dims, seen.readonly, str(seen.device)
/// ((6, 2), ('J', 'I'), False, 'cpu')
#[pyclass(name = "Descriptor", module = "dlfield", frozen, weakref)]
pub(crate) struct PyDescriptor {
    descriptor: Descriptor,
    /// Absent only before the description is complete.
    object: Option<Py<PyAny>>,
    /// The owner that the producer passed for this description, if any.
    owner: Option<Owner>,
    protocol: &'static str,
}

impl PyDescriptor {
    /// Sets the described object, the owner beside the object, and the protocol.
    pub(crate) fn set(&mut self, object: Bound<'_, PyAny>, owner: Option<Owner>, protocol: &'static str) {
        (self.object, self.owner, self.protocol) = (Some(object.unbind()), owner, protocol);
    }

    pub(crate) fn descriptor_mut(&mut self) -> &mut Descriptor {
        &mut self.descriptor
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.object.as_ref().map_or_else(|| py.None(), |object| object.clone_ref(py)).into_bound(py)
    }

    /// Returns the parts that imports use.
    pub(crate) fn parts<'py>(&self, py: Python<'py>) -> Description<'_, 'py> {
        Description { descriptor: &self.descriptor, object: self.object(py), owner: self.owner.as_ref() }
    }
}

static FREED: Freelist = Freelist::new();

impl HasFreelist for PyDescriptor {
    fn freelist() -> &'static Freelist {
        &FREED
    }

    fn blank() -> PyDescriptor {
        PyDescriptor { descriptor: Descriptor::BLANK, object: None, owner: None, protocol: "" }
    }

    fn release(&mut self, py: Python<'_>) {
        match self.owner.take() {
            // The host may have to wait for the device before the memory is freed.
            Some(owner) if owner.stream_uses().is_some() => py.detach(|| drop(owner)),
            owner => drop(owner),
        }
        self.descriptor.clear();
        drop(self.object.take().map(|object| object.into_bound(py)));
    }
}

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
        common::strides(py, &self.descriptor)
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
        self.descriptor.dims().map(|dims| common::labels(py, dims)).transpose()
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
        common::layout(py, &self.descriptor.layout())
    }

    /// Address of the element at index 0.
    #[getter]
    fn ptr(&self) -> usize {
        self.descriptor.ptr().addr()
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
        common::contiguous(&self.descriptor, order)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?.repr()?;
        let strides = self.strides(py)?.repr()?;
        let descriptor = &self.descriptor;
        Ok(format!(
            "Descriptor(shape={shape}, strides={strides}, dtype={}, device='{}'{}, protocol='{}', owner={})",
            descriptor.dtype(),
            descriptor.device(),
            if descriptor.is_readonly() { ", readonly" } else { "" },
            self.protocol,
            args::shown(self.object(py).get_type().as_any())
        ))
    }
}
