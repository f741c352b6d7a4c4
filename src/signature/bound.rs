//! The validated arguments of one call.

use std::marker::PhantomData;

use super::Signature;
use super::arguments::{Argument, Arguments};
use super::writeback::{Fit, Writeback};
use crate::descriptor::Descriptor;
use crate::dims::Dim;
use crate::error::Result;
use crate::tensor::Tensor;

/// The fields of one call, borrowed, with dimensions in the order that the kernel was written for.
///
/// # Example
/// ```
/// use dlfield::{BoundCall, DType, Dims, FieldSpec, Signature, Spec, Tensor};
///
/// # fn main() -> dlfield::Result<()> {
/// fn points(call: &BoundCall) -> i64 {
///     call.domain().1.iter().product()
/// }
///
/// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
/// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
/// assert_eq!(points(&signature.bind(&[("inp", inp.descriptor())])?), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BoundCall<'a> {
    signature: Signature,
    arguments: Arguments<Field>,
    slow: Vec<Box<str>>,
    /// The memory that the descriptors describe.
    borrowed: PhantomData<&'a Descriptor>,
}

/// An argument that was described by Rust code.
#[derive(Clone, Debug)]
struct Field {
    original: Descriptor,
    copy: Option<Writeback>,
}

impl Argument for Field {
    fn original(&self) -> &Descriptor {
        &self.original
    }

    fn copy(&self) -> Option<&Writeback> {
        self.copy.as_ref()
    }

    fn share_copy(&mut self, other: &Field) {
        self.copy.clone_from(&other.copy);
    }
}

impl<'a> BoundCall<'a> {
    /// Binds arguments. `parts` returns the description of one, and the tensor if it may be copied.
    pub(super) fn new<T>(
        signature: &Signature,
        given: &[(&str, T)],
        parts: impl Fn(&T) -> (&Descriptor, Option<&Tensor>),
    ) -> Result<BoundCall<'a>> {
        let (mut arguments, mut slow) = (Arguments::NONE, Vec::new());
        arguments.prepare(signature);
        for (position, (name, argument)) in given.iter().enumerate() {
            let place = signature.find(name, position)?;
            let vacant = arguments.vacant(signature, place)?;
            let (described, tensor) = parts(argument);
            let mut original = described.clone();
            let fit = signature.fit(place, &mut original, tensor.is_some())?;
            let named = |error: crate::Error| error.in_field(name);
            let copy = match (&fit, tensor) {
                (Fit::Copied(_), Some(tensor)) => {
                    let (spec, owner) = (&signature.fields()[place].1, tensor.owner().clone());
                    Some(Writeback::of(spec, original.clone(), owner, signature.device()).map_err(named)?)
                }
                (_, Some(tensor)) if described.device() != signature.device() => {
                    tensor.order_use_on(signature.device()).map_err(named)?;
                    None
                }
                _ => None,
            };
            if let Fit::Slow = fit {
                slow.push(place);
            }
            *vacant = Some(Field { original, copy });
        }
        arguments.check(signature)?;
        slow.sort_unstable();
        let slow = slow.into_iter().map(|place| signature.fields()[place].0.clone()).collect();
        Ok(BoundCall { signature: signature.clone(), arguments, slow, borrowed: PhantomData })
    }

    /// Binds tensors, with a temporary copy, which `fill` fills, of each that does not fit.
    pub(super) fn with_copies(
        signature: &Signature,
        given: &[(&str, &'a Tensor)],
        fill: impl Fn(&Writeback) -> Result<()>,
    ) -> Result<BoundCall<'a>> {
        let bound = BoundCall::new(signature, given, |tensor| (tensor.descriptor(), Some(tensor)))?;
        for (name, _, copy) in bound.copies() {
            fill(copy).map_err(|error| error.in_field(name))?;
        }
        Ok(bound)
    }

    /// The signature that the arguments were checked against.
    #[cfg(feature = "ndarray")]
    pub(super) fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The names of the fields that temporaries replace, whether they are written, and their temporaries.
    fn copies(&self) -> impl Iterator<Item = (&str, bool, &Writeback)> {
        self.arguments.given().filter_map(|(place, argument)| {
            let (name, spec) = &self.signature.fields()[place];
            Some((&**name, spec.declared_access().writes(), argument.copy.as_ref()?))
        })
    }

    /// Returns a field, if it was given.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.get("inp").unwrap().shape(), [4, 3]);
    /// assert!(bound.get("other").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, name: &str) -> Option<&Descriptor> {
        let field = self.arguments.get(self.signature.place(name, 0)?)?;
        Some(field.copy.as_ref().map_or(&field.original, |copy| copy.tensor().descriptor()))
    }

    /// Returns the names of the fields that temporaries replace.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let signature = Signature::new([("x", spec)])?;
    /// let x = Tensor::from(vec![1.0f32, 2.0]);
    /// let bound = signature.bind_or_copy(&[("x", &x)])?;
    /// assert!(bound.copied().eq(["x"])); // float32 is converted to float64
    /// # Ok(())
    /// # }
    /// ```
    pub fn copied(&self) -> impl Iterator<Item = &str> {
        self.copies().map(|(name, ..)| name)
    }

    /// Copies the temporaries of the written fields back into the originals.
    ///
    /// # Errors
    /// [`crate::MemoryError`].
    ///
    /// # Safety
    /// - The fields' memory may be written, and no other code uses it, or the temporaries, meanwhile.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(1)).access(Access::ReadWrite);
    /// let signature = Signature::new([("x", spec)])?;
    /// let x = Tensor::from(vec![1.0f32, 2.0]);
    /// let bound = signature.bind_or_copy(&[("x", &x)])?;
    /// // … the kernel runs on `bound.get("x")` …
    /// // SAFETY: this function owns the memory, and nothing else uses it.
    /// unsafe { bound.copy_back()? };
    /// # Ok(())
    /// # }
    /// ```
    #[allow(unsafe_code, reason = "the caller vouches for the memory")]
    pub unsafe fn copy_back(&self) -> Result<()> {
        let mut written = self.copies().filter(|(_, writes, _)| *writes);
        // SAFETY: passed on from the caller: no other code uses the originals or the temporaries.
        written.try_for_each(|(_, _, copy)| unsafe { copy.copy_back() })
    }

    /// Returns the names of the fields with a slow layout.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, FieldSpec, Layout, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)).layout(Layout::f_order(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.slow(), ["inp".into()]); // it is in C order
    /// # Ok(())
    /// # }
    /// ```
    pub fn slow(&self) -> &[Box<str>] {
        &self.slow
    }

    /// Returns the labels and extents of the largest domain that all fields cover, from each origin to its upper halo, or to the points
    /// that the kernel reads above it ([`FieldSpec::boundary`](crate::FieldSpec::boundary)): I, J and K first, then users' labels
    /// in order of appearance. Data dimensions belong to no domain.
    ///
    /// Source: `StencilObject._get_max_domain` of GT4Py 1.1.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dim, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[4, 3], DType::F64).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// assert_eq!(bound.domain(), (vec![Dim::I, Dim::J], vec![2, 3]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain(&self) -> (Vec<Dim>, Vec<i64>) {
        self.arguments.domain(&self.signature).into_iter().unzip()
    }
}
