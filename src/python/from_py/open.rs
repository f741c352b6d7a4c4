//! Opens a loan on an object: describes it, checks it against the type, borrows its memory, checks its elements.

use ndarray::{Dimension, IxDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::error::{Error, ExchangeError, Result};
use crate::python::convert::errors::ErrorKind;
use crate::python::ffi::getattr;
use crate::python::ffi::new_error::new_error;
use crate::python::from_py::axes::Axes;
use crate::python::from_py::borrows::{CheckValues, Loan, check_undisturbed};
use crate::python::from_py::kinds::{Elements, Place};
use crate::python::import;
use crate::python::import::{BorrowSource, Borrowed};
use crate::signature::orient_labelled;
use crate::tensor::ndarray as views;

/// Describes an object, checks it against the type, and borrows its memory; only then checks its elements. `viewed`: the
/// host may have a view of them, so it waits for device work on pinned and managed memory. `check` gets the dimensions in the order
/// of the axes.
#[inline]
pub(super) fn open<'py, D: Axes>(
    object: &Bound<'py, PyAny>,
    writes: bool,
    viewed: bool,
    values: Option<CheckValues>,
    check: impl Fn(&Descriptor) -> Result<()>,
) -> PyResult<Loan<'py>> {
    match D::LABELS {
        None => open_by_position(object, writes, viewed, values, check),
        Some(labels) => open_by_label(object, writes, viewed, values, labels, &check),
    }
}

/// As [`open`], for axes that go by label.
#[inline(never)]
fn open_by_label<'py>(
    object: &Bound<'py, PyAny>,
    writes: bool,
    viewed: bool,
    values: Option<CheckValues>,
    labels: &[&str],
    check: &dyn Fn(&Descriptor) -> Result<()>,
) -> PyResult<Loan<'py>> {
    let wanted = Dims::parse(labels)?;
    let found = import::metadata_of(object)?.with_default_origin();
    let ordered = |field: &Descriptor| {
        let mut field = field.clone();
        field.relabel(found.clone())?;
        orient_labelled(&wanted, &mut field)?;
        Ok::<_, Error>(field)
    };
    let mut loan = open_by_position(object, writes, viewed, values, |field| check(&ordered(field)?))?;
    loan.order(ordered(loan.descriptor::<IxDyn>()).map_err(refusal)?);
    // The properties of the object may have run any code, which may have moved the memory of earlier arguments.
    check_undisturbed(object.py()).map_err(refusal)?;
    Ok(loan)
}

#[inline]
fn open_by_position<'py>(
    object: &Bound<'py, PyAny>,
    writes: bool,
    viewed: bool,
    values: Option<CheckValues>,
    check: impl Fn(&Descriptor) -> Result<()>,
) -> PyResult<Loan<'py>> {
    if object.is_exact_instance_of::<PyCapsule>()
        && let Some(loan) = open_capsule(object, writes, viewed, values, &check)?
    {
        return Ok(loan);
    }
    let mut is_located = false;
    let mut loan = Loan::open(object, |descriptor| {
        if let Some(source) = import::locate(object, descriptor).or_else(|error| as_refusal(object.py(), error))? {
            is_located = true;
            check(descriptor).map_err(refusal)?;
            return Ok((None, source));
        }
        let borrowed = describe(object, writes, descriptor)?;
        check(descriptor).map_err(|error| refusal(import::read_only_output(object, error)))?;
        if viewed && needs_wait(descriptor) {
            borrowed.synchronize(object, descriptor)?;
        }
        Ok((borrowed.owner, borrowed.source))
    })?;
    loan.borrow(writes, values).map_err(refusal)?;
    if !is_located {
        // Other code may have run, which may have moved the memory of earlier arguments.
        check_undisturbed(object.py()).map_err(refusal)?;
    }
    loan.check_values().map_err(refusal)?;
    Ok(loan)
}

/// As [`open`], for a capsule that is not consumed yet; `None` for any other. It can be consumed only once, so that is done
/// last, when nothing can be rejected any more. Capsules of earlier arguments are consumed by then: PyO3 extracts one after
/// the other.
#[cold]
fn open_capsule<'py>(
    object: &Bound<'py, PyAny>,
    writes: bool,
    viewed: bool,
    values: Option<CheckValues>,
    check: &dyn Fn(&Descriptor) -> Result<()>,
) -> PyResult<Option<Loan<'py>>> {
    let mut fresh = false;
    let mut loan = Loan::open(object, |descriptor| {
        fresh = import::inspect_capsule(object, descriptor).or_else(|error| as_refusal(object.py(), error))?;
        if fresh {
            check(descriptor).map_err(refusal)?;
        }
        if fresh && viewed && needs_wait(descriptor) {
            import::synchronize_described(object, None, descriptor)?;
            // Another thread may have consumed the capsule during the wait.
            fresh = import::inspect_capsule(object, descriptor)?;
        }
        Ok((None, BorrowSource::None))
    })?;
    if !fresh {
        return Ok(None);
    }
    loan.borrow(writes, values).map_err(refusal)?;
    loan.check_values().map_err(refusal)?;
    // The capsule has the same description as when it was inspected: no code has run since.
    let mut taken = Descriptor::BLANK;
    loan.keep(import::borrow(object, writes, &mut taken)?.owner);
    Ok(Some(loan))
}

/// Whether the memory is pinned or managed: the host can reach it, and a device may be working on it.
#[inline]
fn needs_wait(field: &Descriptor) -> bool {
    field.device() != Device::CPU && Device::CPU.can_access(field.device())
}

/// Rejects another element type, number of dimensions or place than the expected one.
#[inline]
pub(super) fn check<T: Elements, D: Axes, M: Place>(field: &Descriptor) -> Result<()> {
    views::check_shape(field, T::DTYPE, D::Dim::NDIM)?;
    M::check(field)?;
    if M::IS_HOST { T::check_place(field) } else { Ok(()) }
}

/// The check of the elements, if the host can reach them.
#[inline]
pub(super) fn values<T: Elements, M: Place>() -> Option<CheckValues> {
    if M::IS_HOST { T::values() } else { None }
}

/// The error for an array that does not match the type.
#[cold]
pub(super) fn refusal(error: Error) -> PyErr {
    match error {
        // Another array would fail too.
        Error::Memory(_) => error.into(),
        error => new_error::<PyTypeError>(error.to_string()),
    }
}

/// As [`refusal`], for an array that could not be described: a `TypeError` too, unless the error is the producer's own.
#[cold]
pub(super) fn as_refusal<R>(py: Python<'_>, error: PyErr) -> PyResult<R> {
    Err(if ErrorKind::is_any(py, &error) { new_error::<PyTypeError>(error.value(py).to_string()) } else { error })
}

/// Describes any object; for a `dlfield.Descriptor`, the object that it describes. That class belongs to the module, and
/// another extension that this crate is built into does not know it.
#[inline]
fn describe(object: &Bound<'_, PyAny>, writes: bool, descriptor: &mut Descriptor) -> PyResult<Borrowed> {
    match import::borrow(object, writes, descriptor) {
        Ok(borrowed) => Ok(borrowed),
        Err(error) => describe_described(object, writes, descriptor, error),
    }
}

/// Describes the object of a `dlfield.Descriptor`; for other objects returns the error.
#[cold]
fn describe_described(
    object: &Bound<'_, PyAny>,
    writes: bool,
    descriptor: &mut Descriptor,
    error: PyErr,
) -> PyResult<Borrowed> {
    let py = object.py();
    let class = match getattr::loaded(py, "dlfield._native")? {
        Some(module) => module.getattr_opt(intern!(py, "Descriptor"))?,
        None => None,
    };
    if !class.is_some_and(|class| object.get_type().is(&class)) {
        return as_refusal(py, error);
    }
    let described = object.getattr(intern!(py, "owner"))?;
    if described.is_exact_instance_of::<PyCapsule>() {
        let got = "a dlfield.Descriptor of a DLPack capsule, which was consumed to describe it".to_owned();
        let allowed =
            "an object that can be described again, such as the tensor that dlfield.from_dlpack makes of a capsule";
        return Err(refusal(ExchangeError::new("obj", &allowed, &got).into()));
    }
    let mut borrowed = import::borrow(&described, writes, descriptor).or_else(|error| as_refusal(py, error))?;
    if borrowed.readonly_unknown && !object.getattr(intern!(py, "readonly"))?.is_truthy()? {
        // The user passed `writable=True`.
        descriptor.set_readonly(false);
    }
    if let BorrowSource::Argument = borrowed.source {
        borrowed.source = BorrowSource::Inside(described.unbind());
    }
    Ok(borrowed)
}
