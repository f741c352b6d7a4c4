//! The arguments that a stencil takes, specified once and checked at every call.
//!
//! ```text
//! call:   arguments -> (python/import) -> Signature::bind -> BoundCall -> kernel
//! ```
//!
//! A [`FieldSpec`] specifies one field, a [`Signature`] all fields of a stencil. [`Signature::bind`] turns the arguments of a
//! call into a [`BoundCall`]: descriptors with dimensions in the order that the kernel was written for. What would be undefined
//! behaviour is an error that names the field. [`BoundCall::slow`] names the fields that are only slow because of another layout.

mod access;
mod alignment;
pub(crate) mod arguments;
mod bound;
mod fit;
mod overlap;
mod size;
mod spec;
mod text;
#[cfg(feature = "ndarray")]
mod views;
pub(crate) mod writeback;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use self::access::Access;
pub use self::bound::BoundCall;
pub(crate) use self::fit::orient_labelled;
pub use self::size::Size;
pub use self::spec::FieldSpec;
#[cfg(feature = "ndarray")]
pub use self::views::BorrowedCall;
use self::writeback::Writeback;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::error::{Error, Result, SignatureError};
use crate::tensor::Tensor;

/// The fields that a stencil takes, by name, and its device.
///
/// # Example
/// ```
/// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor};
///
/// # fn main() -> dlfield::Result<()> {
/// let field = || FieldSpec::new(DType::F64, Dims::standard(3));
/// let signature = Signature::new([("inp", field()), ("out", field().access(Access::Write))])?;
/// // Here the dimensions come in another order, with a halo of one point around I and J.
/// let spec = Spec::new(&[8, 6, 6], DType::F64).dims(Dims::parse(["K", "J", "I"])?);
/// let inp = Tensor::zeros(&spec.clone().halo(&[(0, 0), (1, 1), (1, 1)]))?;
/// let out = Tensor::zeros(&Spec::new(&[4, 4, 8], DType::F64))?;
/// let bound = signature.bind(&[("inp", inp.descriptor()), ("out", out.descriptor())])?;
/// assert_eq!(bound.get("inp").unwrap().shape(), [6, 6, 8]);
/// assert_eq!(bound.get("inp").unwrap().strides(), [1, 6, 36]);
/// assert_eq!(bound.domain().1, [4, 4, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Signature {
    table: Arc<Table>,
    device: Device,
    allow_overlap: bool,
}

/// The fields of a signature, which its calls share.
#[derive(Debug)]
struct Table {
    fields: Vec<(Box<str>, FieldSpec)>,
    /// The position of each field, by name.
    places: BTreeMap<Box<str>, usize>,
    /// The extents that have a size by name: position of the field, axis, and the position of the name among all names of sizes.
    named_extents: Vec<(usize, usize, usize)>,
}

impl Signature {
    /// Returns the signature of a stencil on the host.
    ///
    /// # Errors
    /// [`SignatureError`] for a repeated name; the errors of [`FieldSpec::check`], with the field's name.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// assert!(Signature::new([("inp", spec.clone()), ("out", spec.clone())]).is_ok());
    /// let error = Signature::new([("inp", spec.clone()), ("inp", spec)]).unwrap_err();
    /// assert_eq!(error.to_string(), "field \"inp\": named twice; name each field once");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new<N: Into<Box<str>>>(fields: impl IntoIterator<Item = (N, FieldSpec)>) -> Result<Signature> {
        let mut table = Table { fields: Vec::new(), places: BTreeMap::new(), named_extents: Vec::new() };
        for (name, spec) in fields {
            let name = name.into();
            spec.check().map_err(|error| Error::from(error).in_field(&name))?;
            if table.places.insert(name.clone(), table.fields.len()).is_some() {
                return Err(twice(&name).into());
            }
            table.fields.push((name, spec));
        }
        table.named_extents = named_extents(&table.fields);
        Ok(Signature { table: Arc::new(table), device: Device::CPU, allow_overlap: false })
    }

    /// Sets the device that uses the fields: their memory must be there, or pinned or managed memory that it can access.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Dims, FieldSpec, Signature};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", spec)])?.with_device(Device::cuda(0));
    /// assert_eq!(signature.device(), Device::cuda(0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_device(mut self, device: Device) -> Signature {
        self.device = device;
        self
    }

    /// Sets whether written fields may share memory with other fields; false by default. The kernel is then responsible for
    /// the order of its reads and writes. Fields with the same elements share one temporary copy.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let field = |access| FieldSpec::new(DType::F64, Dims::standard(2)).access(access);
    /// let fields = [("inp", field(Access::Read)), ("out", field(Access::Write))];
    /// let tensor = Tensor::zeros(&Spec::new(&[2, 3], DType::F64))?;
    /// let same = [("inp", tensor.descriptor()), ("out", tensor.descriptor())];
    /// assert!(Signature::new(fields.clone())?.bind(&same).is_err());
    /// assert!(Signature::new(fields)?.allow_overlap(true).bind(&same).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn allow_overlap(mut self, allow: bool) -> Signature {
        self.allow_overlap = allow;
        self
    }

    /// Returns whether written fields may share memory with other fields.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", spec)])?;
    /// assert!(!signature.allows_overlap());
    /// assert!(signature.allow_overlap(true).allows_overlap());
    /// # Ok(())
    /// # }
    /// ```
    pub fn allows_overlap(&self) -> bool {
        self.allow_overlap
    }

    /// Returns the names and specifications, in the order in which they were given.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", spec.clone()), ("out", spec)])?;
    /// assert!(signature.fields().iter().map(|(name, _)| &**name).eq(["inp", "out"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields(&self) -> &[(Box<str>, FieldSpec)] {
        &self.table.fields
    }

    /// Returns the device that uses the fields.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Device, Dims, FieldSpec, Signature};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// assert_eq!(Signature::new([("inp", spec)])?.device(), Device::CPU);
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> Device {
        self.device
    }

    /// Checks the arguments of a call against the signature, and permutes their dimensions into the expected order.
    ///
    /// The labels of a field are trusted; a field without labels is taken to be in the expected order. Without an origin, a
    /// field's compute points start after its lower halo, or at index 0. Descriptors do not know what work is pending on pinned
    /// and managed memory: wait for it first, or use [`Tensor::to_device`] or [`Signature::bind_or_copy`], which wait.
    ///
    /// # Errors
    /// [`SignatureError`] for a field that is missing, unknown or given twice, for fields that disagree on a named size, and for a
    /// written field that shares memory with another one; the error of a field, in its device, element type, labels, extents or
    /// alignment, or because its memory must not be written.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// let signature = Signature::new([("inp", spec)])?;
    /// let inp = Tensor::zeros(&Spec::new(&[3, 4], DType::F64).dims(Dims::parse(["J", "I"])?))?;
    /// assert_eq!(signature.bind(&[("inp", inp.descriptor())])?.get("inp").unwrap().shape(), [4, 3]);
    /// let wrong = Tensor::zeros(&Spec::new(&[3, 4], DType::F32))?;
    /// let error = signature.bind(&[("inp", wrong.descriptor())]).unwrap_err();
    /// assert_eq!(error.to_string(), "field \"inp\": dtype: expected float64, got float32");
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind<'a>(&self, fields: &[(&str, &'a Descriptor)]) -> Result<BoundCall<'a>> {
        BoundCall::new(self, fields, |field| (*field, None))
    }

    /// As [`Signature::bind`], with a temporary copy of each field that does not fit only because of its device, element type,
    /// alignment or layout. Elements are converted if the host reaches the field or the copy. [`BoundCall::copied`] names these
    /// fields; [`BoundCall::copy_back`] copies what was written to the temporaries into the fields.
    ///
    /// # Errors
    /// As for [`Signature::bind`], also if [`can_cast`](crate::can_cast) forbids the cast of the elements, for written fields
    /// in both directions; [`crate::MemoryError`]; [`ExchangeError`](crate::ExchangeError) if the memory to
    /// copy was exported to another library: [`Signature::bind_or_copy_shared`] copies that.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Layout, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2)).access(Access::Write).layout(Layout::f_order(2));
    /// let signature = Signature::new([("out", spec)])?;
    /// let out = Tensor::zeros(&Spec::new(&[2, 3], DType::F32))?;
    /// let bound = signature.bind_or_copy(&[("out", &out)])?;
    /// assert_eq!(bound.get("out").unwrap().strides(), [1, 2]);
    /// // SAFETY: the copy has six elements of this type, and nobody else knows the two fields.
    /// unsafe {
    ///     bound.get("out").unwrap().ptr().cast::<f64>().add(2).write(7.5); // index (0, 1)
    ///     bound.copy_back()?;
    ///     assert_eq!(out.descriptor().ptr().cast::<f32>().add(1).read(), 7.5);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_or_copy<'a>(&self, fields: &[(&str, &'a Tensor)]) -> Result<BoundCall<'a>> {
        BoundCall::with_copies(self, fields, Writeback::fill_unexported)
    }

    /// As [`Signature::bind_or_copy`], also for memory that was exported.
    ///
    /// # Errors
    /// As for [`Signature::bind_or_copy`], except [`ExchangeError`](crate::ExchangeError).
    ///
    /// # Safety
    /// - No other code writes to the fields' memory meanwhile; on a device, until its current stream has finished the copies.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[2, 3], DType::F32))?;
    /// let lent = inp.to_versioned(false)?;
    /// assert!(signature.bind_or_copy(&[("inp", &inp)]).is_err());
    /// // SAFETY: what was lent is here, and nothing is done with it.
    /// let bound = unsafe { signature.bind_or_copy_shared(&[("inp", &inp)]) }?;
    /// assert_eq!(bound.copied().collect::<Vec<_>>(), ["inp"]);
    /// drop(lent);
    /// # Ok(())
    /// # }
    /// ```
    #[allow(unsafe_code, reason = "the caller vouches for the memory")]
    pub unsafe fn bind_or_copy_shared<'a>(&self, fields: &[(&str, &'a Tensor)]) -> Result<BoundCall<'a>> {
        // SAFETY: passed on from the caller: no other code writes to the originals. It has no access to the copies yet.
        BoundCall::with_copies(self, fields, |copy| unsafe { copy.fill() })
    }
}

/// Lists the extents that have a size by name: position of the field, axis, and position of the name among all names.
fn named_extents(fields: &[(Box<str>, FieldSpec)]) -> Vec<(usize, usize, usize)> {
    let (mut names, mut found) = (HashMap::new(), Vec::new());
    for (place, (_, spec)) in fields.iter().enumerate() {
        for (axis, size) in spec.declared_shape().into_iter().flatten().enumerate() {
            if let Size::Named { name, .. } = size {
                let number = names.len();
                found.push((place, axis, *names.entry(&**name).or_insert(number)));
            }
        }
    }
    found
}

/// Returns what an error calls a field.
fn field_of(name: &str) -> String {
    format!("field {name:?}")
}

/// Returns the error for a field that the signature does not have.
#[cold]
pub fn unknown(name: &str, known: &[(Box<str>, FieldSpec)]) -> SignatureError {
    let names: Vec<&str> = known.iter().map(|(name, _)| &**name).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    SignatureError::from_sentence(&field_of(name), &format_args!("unexpected; the fields are {names}"))
}

/// Returns the error for a field that was not passed and is not optional.
#[cold]
pub(crate) fn missing(name: &str) -> SignatureError {
    SignatureError::from_sentence(&field_of(name), &"missing")
        .with_fix(&"a field may be left out if its FieldSpec says optional")
}

/// Returns the error for a field that was passed twice.
#[cold]
pub(crate) fn twice(name: &str) -> SignatureError {
    SignatureError::from_sentence(&field_of(name), &"named twice").with_fix(&"name each field once")
}
