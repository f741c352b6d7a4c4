//! Objects into descriptors: the protocols in the order they are tried.
//!
//! Each reader probes first, and where its protocol is absent the next one is asked. One that is present is final: its
//! errors, and the producer's, reach the caller.

mod capsule;
mod dlpack;
mod exchange;
mod facts;
mod functions;
mod numpy;
mod ours;

pub(super) use dlpack::take;
pub(super) use exchange::table;
pub(super) use functions::register;
use pyo3::prelude::*;

use self::facts::{Facts, Library};
use super::errors::Kind;
use super::labels::Labels;
use super::tensor::PyTensor;
use crate::descriptor::Descriptor;
use crate::device::{Device, DeviceError};
use crate::dims::Dims;
use crate::layout::Extents;
use crate::tensor::{Owner, Tensor};

/// What the caller asks of the producer.
#[derive(Default)]
struct Request<'a, 'py> {
    device: Option<Device>,
    copy: Option<bool>,
    stream: Option<&'a Bound<'py, PyAny>>,
}

/// Who keeps the memory that a reader has described.
enum Reading {
    /// An owner of its own.
    Owned(Owner),
    /// The same, from a struct that cannot say whether the memory may be written: it may not, unless the caller knows
    /// better.
    Unsure(Owner),
    /// The object.
    Borrowed,
}

impl Reading {
    /// What the producer handed over, if it did.
    fn into_shared(self) -> Option<Owner> {
        match self {
            Reading::Owned(owner) | Reading::Unsure(owner) => Some(owner),
            Reading::Borrowed => None,
        }
    }

    /// An owner of the memory: what the object keeps, it keeps.
    fn into_owner(self, object: &Bound<'_, PyAny>) -> Owner {
        match self {
            Reading::Owned(owner) | Reading::Unsure(owner) => owner,
            Reading::Borrowed => ours::keeper(object),
        }
    }
}

/// One protocol.
struct Reader {
    protocol: &'static str,
    /// Describes the object in place; `None` where it does not have the protocol.
    read: fn(&Bound<'_, PyAny>, &Request<'_, '_>, Purpose, &mut Descriptor) -> PyResult<Option<Reading>>,
    /// Whether the reading carries all labels there are, so that nobody has to look for more.
    labelled: bool,
}

/// Whether the memory has to outlive the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Describe,
    Own,
}

/// The order of protocols.
static READERS: [Reader; 6] = [
    Reader { protocol: "dlfield", read: ours::read, labelled: true },
    Reader { protocol: "numpy", read: numpy::read, labelled: true },
    Reader { protocol: "dlpack-c", read: exchange::read, labelled: false },
    Reader { protocol: "numpy", read: numpy::read_subclass, labelled: false },
    Reader { protocol: "dlpack", read: dlpack::read, labelled: false },
    Reader { protocol: "dlpack", read: capsule::read, labelled: true },
];

type Found = (Reading, &'static Reader);

fn probe<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Option<Found>> {
    for reader in &READERS {
        if let Some(reading) = (reader.read)(object, request, purpose, descriptor)? {
            return Ok(Some((reading, reader)));
        }
    }
    Ok(None)
}

fn read<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    purpose: Purpose,
    descriptor: &mut Descriptor,
) -> PyResult<Found> {
    if let Some(found) = probe(object, request, purpose, descriptor)? {
        return Ok(found);
    }
    Err(Kind::NotAnArray.error(format!(
        "obj: {} has no protocol of an array; allowed are NumPy arrays, objects with __dlpack__, and DLPack capsules",
        object.get_type()
    )))
}

/// Whether the object may state labels that the reader has not brought along.
fn may_state_labels(object: &Bound<'_, PyAny>, reader: &Reader) -> PyResult<bool> {
    Ok(!reader.labelled && Facts::of(object)?.may_be_labelled(object))
}

/// The labels for what a reader found: those given, and what the object states of the others.
fn labels(object: &Bound<'_, PyAny>, reader: &Reader, dims: Option<Dims>, origin: Option<Extents>) -> PyResult<Labels> {
    if may_state_labels(object, reader)? { Labels::find(object, dims, origin) } else { Ok(Labels::given(dims, origin)) }
}

/// Fills `tensor` with what the object is, as a tensor that owns its memory.
fn own_into<'py>(
    object: &Bound<'py, PyAny>,
    request: &Request<'_, 'py>,
    tensor: &mut Tensor,
) -> PyResult<&'static Reader> {
    if let Ok(ours) = object.cast_exact::<PyTensor>() {
        // With what only a tensor knows: layout, padding and alignment.
        *tensor = ours.get().0.clone();
        return Ok(&READERS[0]);
    }
    #[allow(unsafe_code, reason = "the producer's word for its memory is taken here")]
    // SAFETY: the object has said through its protocol that the memory is there while the owner that is asked for lives.
    let (descriptor, owner) = unsafe { tensor.parts_mut() };
    let (reading, reader) = read(object, request, Purpose::Own, descriptor)?;
    *owner = reading.into_owner(object);
    Ok(reader)
}

/// The object as a tensor that owns its memory, as it is; `None` for an object with no protocol.
pub(super) fn own(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let mut tensor = Tensor::BLANK;
    let reader = match own_into(object, &Request::default(), &mut tensor) {
        Err(error) if Kind::NotAnArray.is(object.py(), &error) => return Ok(None),
        other => other?,
    };
    labels(object, reader, None, None)?.attach(&mut tensor)?;
    Ok(Some(tensor))
}

/// The object as a tensor that owns its memory; `copy=False` is passed on to its producer.
pub(super) fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let mut tensor = Tensor::BLANK;
    own_into(object, &Request { copy, ..Request::default() }, &mut tensor)?;
    Ok(tensor)
}

/// Whether the object is a PyTorch tensor, of whatever subclass.
pub(super) fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Facts::of(object)?.library == Library::Torch)
}

/// What the object is, in place: its description, and what the producer handed over for that, if it did.
pub(super) fn description(object: &Bound<'_, PyAny>) -> PyResult<(Descriptor, Option<Owner>)> {
    let mut descriptor = Descriptor::BLANK;
    let (reading, _) = read(object, &Request::default(), Purpose::Describe, &mut descriptor)?;
    Ok((descriptor, reading.into_shared()))
}

pub(super) fn check_device(wanted: Option<Device>, found: Device) -> PyResult<()> {
    match wanted {
        Some(wanted) if wanted != found => Err(DeviceError::Mismatch { found, wanted }.into()),
        _ => Ok(()),
    }
}
