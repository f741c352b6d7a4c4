//! The metadata of a field: dims, origin and halo.

use std::sync::Arc;

use crate::dims::Dims;

/// The metadata that was set explicitly; [`crate::Tensor`] supplies the defaults for the rest.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Metadata {
    pub(super) dims: Option<Dims>,
    pub(super) origin: Option<Box<[i64]>>,
    pub(super) halo: Option<Box<[(i64, i64)]>>,
    /// Whether a slice has cut the halo: it then marks halo points, but does not say where the domain begins.
    pub(super) halo_is_cut: bool,
}

impl Metadata {
    /// Returns the metadata of a field with these dims, the origin at index 0 and no halo.
    pub(crate) fn plain(dims: Dims) -> Arc<Metadata> {
        let origin = Some(vec![0; dims.len()].into());
        Arc::new(Metadata { dims: Some(dims), origin, halo: None, halo_is_cut: false })
    }
}
