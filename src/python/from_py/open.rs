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
use crate::python::ffi::new_error::new_error;
use crate::python::from_py::axes::Axes;
use crate::python::from_py::borrows::Loan;
use crate::python::from_py::kinds::{Elements, Place};
use crate::python::from_py::ledger::{BorrowSource, CheckValues};
use crate::python::import::{self, Found, Imported, Kind, Request, RequestAccess, kind_of};
use crate::python::own_classes;
use crate::python::tensor_api::{self, UNORDERED};
use crate::signature::orient_labelled;
use crate::tensor::{Owner, ndarray as views};

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
        None => open_by_position(object, writes, viewed, values, false, check),
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
    // The properties of the object may run any code, which may move the memory of earlier arguments.
    let found = import::metadata_of(object)?.with_default_origin();
    let ordered = |field: &Descriptor| {
        let mut field = field.clone();
        field.relabel(found.clone())?;
        orient_labelled(&wanted, &mut field)?;
        Ok::<_, Error>(field)
    };
    let mut loan = open_by_position(object, writes, viewed, values, true, |field| check(&ordered(field)?))?;
    loan.order(ordered(loan.descriptor::<IxDyn>()).map_err(refusal)?, found.dims);
    Ok(loan)
}

/// As [`open`]. `ran`: code of others has run since the last argument.
#[inline]
fn open_by_position<'py>(
    object: &Bound<'py, PyAny>,
    writes: bool,
    viewed: bool,
    values: Option<CheckValues>,
    ran: bool,
    check: impl Fn(&Descriptor) -> Result<()>,
) -> PyResult<Loan<'py>> {
    let mut loan = Loan::new(object);
    if object.is_exact_instance_of::<PyCapsule>() && inspect_capsule(object, viewed, loan.descriptor_mut(), &check)? {
        // A capsule can be consumed only once, so that is done last, when nothing can be rejected any more. Those of earlier arguments
        // are consumed by then: PyO3 extracts one after the other.
        loan.borrow(writes, values, None, BorrowSource::None, ran).map_err(refusal)?;
        let mut taken = Descriptor::BLANK;
        loan.keep(describe(object, writes, &mut taken)?.owner);
        return Ok(loan);
    }
    let field = loan.descriptor_mut();
    let located = locate(object, field).or_else(|error| as_refusal(object.py(), error))?;
    let is_located = located.is_some();
    let (owner, source) = match located {
        Some(source) => {
            check(field).map_err(refusal)?;
            (None, source)
        }
        None => {
            let is_description = kind_of(object)? == Kind::Description && own_classes::description(object).is_none();
            let describe = if is_description { describe_described } else { describe };
            let Described { array, owner, source, .. } =
                describe(object, writes, field).or_else(|error| as_refusal(object.py(), error))?;
            check(field).map_err(|error| refusal(import::read_only_output(object, error)))?;
            if viewed && needs_wait(field) {
                import::synchronize_described(array.bind(object.py()), owner.as_ref(), field)?;
            }
            (owner, source)
        }
    };
    loan.borrow(writes, values, owner, source, ran || !is_located).map_err(refusal)?;
    Ok(loan)
}

/// Describes a capsule that is not consumed yet, without consuming it, and checks that; `false` for any other.
#[cold]
fn inspect_capsule(
    capsule: &Bound<'_, PyAny>,
    viewed: bool,
    field: &mut Descriptor,
    check: &dyn Fn(&Descriptor) -> Result<()>,
) -> PyResult<bool> {
    if !import::inspect_capsule(capsule, field).or_else(|error| as_refusal(capsule.py(), error))? {
        return Ok(false);
    }
    check(field).map_err(refusal)?;
    if !(viewed && needs_wait(field)) {
        return Ok(true);
    }
    import::synchronize_described(capsule, None, field)?;
    // Another thread may have consumed the capsule during the wait.
    import::inspect_capsule(capsule, field)
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

/// Memory that was described for the length of one call.
struct Described {
    /// The array that has it: the object, or what that wraps.
    array: Py<PyAny>,
    /// The owner, if the producer passed one.
    owner: Option<Owner>,
    source: BorrowSource,
    /// Whether the memory counts as read-only because its protocol has no read-only flag.
    readonly_unknown: bool,
}

/// Describes the memory of an object, without metadata, if that needs no call of other code, nor a wait, in which other threads
/// would run: of tensors of dlfield and arrays of NumPy, as most arguments of an extension are. `None` for other objects.
#[inline]
fn locate(object: &Bound<'_, PyAny>, field: &mut Descriptor) -> PyResult<Option<BorrowSource>> {
    if let Some(api) = tensor_api::of(object) {
        return Ok(api.describe(object, UNORDERED, field)?.then_some(BorrowSource::None));
    }
    Ok(import::locate_array(object, field)?.then_some(BorrowSource::Argument))
}

/// Describes the memory of any object, without metadata. May call other code, which may move the memory of other arguments.
fn describe(object: &Bound<'_, PyAny>, writes: bool, field: &mut Descriptor) -> PyResult<Described> {
    let (read, write) = const { (&Request::new(RequestAccess::Read), &Request::new(RequestAccess::Write)) };
    let mut imported = Imported::new(field);
    let described = import::describe(object, if writes { write } else { read }, &mut imported);
    described.map_err(|error| if writes { import::not_an_output(object, error) } else { error })?;
    let array = imported.innermost(object);
    let can_move = imported.protocol == "numpy" || imported.protocol == "dlpack-c" && kind_of(array)? == Kind::Torch;
    let source = if imported.inner.is_some() && can_move {
        // A wrapper's owner keeps the memory, but an array of NumPy or PyTorch may be given another one, or another shape.
        BorrowSource::Inside(array.clone().unbind())
    } else if imported.owner.is_some() || imported.is_tensor {
        BorrowSource::None
    } else {
        BorrowSource::Argument
    };
    let array = array.clone().unbind();
    let Found { owner, readonly_unknown, .. } = imported.found();
    Ok(Described { array, owner, source, readonly_unknown })
}

/// Describes the object of a `dlfield.Descriptor`. That class belongs to the module: another extension that this crate is built into
/// cannot read it.
#[cold]
fn describe_described(object: &Bound<'_, PyAny>, writes: bool, field: &mut Descriptor) -> PyResult<Described> {
    let py = object.py();
    let owner = object.getattr(intern!(py, "owner"))?;
    if owner.is_exact_instance_of::<PyCapsule>() {
        let got = "a dlfield.Descriptor of a DLPack capsule, which was consumed to describe it".to_owned();
        let allowed =
            "an object that can be described again, such as the tensor that dlfield.from_dlpack makes of a capsule";
        return Err(refusal(ExchangeError::new("obj", &allowed, &got).into()));
    }
    let mut described = describe(&owner, writes, field)?;
    if described.readonly_unknown && !object.getattr(intern!(py, "readonly"))?.is_truthy()? {
        // The user passed `writable=True`.
        field.set_readonly(false);
    }
    if let BorrowSource::Argument = described.source {
        described.source = BorrowSource::Inside(owner.unbind());
    }
    Ok(described)
}
