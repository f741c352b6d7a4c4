//! How `{:?}` shows fields: by what their methods return, not by how that is stored.

use std::fmt::{Debug, Formatter, Result};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dims::Dims;
use crate::tensor::Tensor;

impl Debug for Device {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Device({self})")
    }
}

impl Debug for Dims {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Dims({self})")
    }
}

impl Debug for Descriptor {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("Descriptor");
        shown.field("shape", &self.shape()).field("strides", &self.strides()).field("dtype", &self.dtype());
        shown.field("device", &self.device()).field("ptr", &self.ptr()).field("readonly", &self.is_readonly());
        shown.field("dims", &self.dims()).field("origin", &self.origin()).field("halo", &self.halo()).finish()
    }
}

impl Debug for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let field = self.descriptor();
        let mut shown = f.debug_struct("Tensor");
        shown.field("shape", &field.shape()).field("strides", &field.strides()).field("dtype", &field.dtype());
        shown.field("device", &field.device()).field("ptr", &field.ptr()).field("readonly", &field.is_readonly());
        shown.field("dims", &self.dims()).field("origin", &self.origin()).field("halo", &self.halo());
        shown.field("layout", &self.layout()).field("padding", &self.padding());
        shown.field("alignment_size", &self.alignment_size()).field("aligned_index", &self.aligned_index());
        shown.field("owner", self.owner()).finish()
    }
}
