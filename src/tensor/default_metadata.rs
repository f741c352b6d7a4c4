//! Descriptions of tensors, which state the metadata that a tensor has by default.

use std::sync::{Arc, OnceLock};

use super::Tensor;
use crate::descriptor::Descriptor;
use crate::layout::Metadata;

/// Up to this many dimensions share their defaults: a grid and three data dimensions.
const FEW: usize = 6;

/// The metadata of tensors for which none was set, by the number of dimensions: describing such a tensor would otherwise
/// allocate four times.
static DEFAULTS: [OnceLock<Arc<Metadata>>; FEW + 1] = [const { OnceLock::new() }; FEW + 1];

impl Tensor {
    /// Describes the tensor in place: its memory, and its dims, halo and origin also where they are the default ones.
    pub(crate) fn describe_into(&self, descriptor: &mut Descriptor) {
        descriptor.clone_from(&self.descriptor);
        let metadata = match self.descriptor.metadata() {
            None => match DEFAULTS.get(self.descriptor.ndim()) {
                Some(defaults) => Arc::clone(defaults.get_or_init(|| self.all_metadata())),
                None => self.all_metadata(),
            },
            // The clone has it already.
            Some(Metadata { dims: Some(_), origin: Some(_), halo: Some(_), halo_is_cut: false }) => return,
            Some(_) => self.all_metadata(),
        };
        descriptor.set_metadata(Some(metadata));
    }

    /// Returns the metadata, the default ones included.
    #[cold]
    fn all_metadata(&self) -> Arc<Metadata> {
        let set = self.descriptor.metadata().cloned().unwrap_or_default();
        Arc::new(set.with_defaults(self.descriptor.ndim()))
    }
}
