//! Specs of new fields like an existing one.

use crate::descriptor::Descriptor;
use crate::layout::{Promise, Spec};

impl Descriptor {
    /// Returns the spec of a new field like this one: same element type, shape, labels, order of strides and device, without
    /// gaps. For alignment and padding too, use [`Tensor::spec`](crate::Tensor::spec).
    ///
    /// # Example
    /// ```
    /// use dlfield::{Access, DType, Dims, FieldSpec, Signature, Spec, Tensor};
    ///
    /// # fn main() -> dlfield::Result<()> {
    /// let signature = Signature::new([("inp", FieldSpec::new(DType::F64, Dims::standard(2)))])?;
    /// let inp = Tensor::zeros(&Spec::new(&[6, 4], DType::F64).dims(Dims::parse(["J", "I"])?).halo(&[(1, 1), (0, 0)]))?;
    /// let bound = signature.bind(&[("inp", inp.descriptor())])?;
    /// // A temporary field of the kernel, in the kernel's order of dimensions.
    /// let temporary = Tensor::zeros(&bound.get("inp").unwrap().spec().with_dtype(DType::F32))?;
    /// assert_eq!((temporary.descriptor().shape(), temporary.descriptor().strides()), (&[4, 6][..], &[1, 4][..]));
    /// assert_eq!(temporary.halo(), [(0, 0), (1, 1)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spec(&self) -> Spec {
        self.spec_with(Promise { layout: Some(self.layout()), ..Promise::NONE })
    }

    pub(super) fn spec_with(&self, promise: Promise) -> Spec {
        let metadata = self.metadata().cloned().unwrap_or_default();
        Spec::like(self.shape(), self.dtype(), metadata, promise).derived(self.device())
    }
}
