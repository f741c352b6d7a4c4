//! Dims, origin and halo of a field, as far as they are stated.

use std::sync::Arc;

use crate::dims::Dims;

/// The stated part of a field's metadata; the defaults are a tensor's.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Metadata {
    pub(super) dims: Option<Dims>,
    pub(super) origin: Option<Box<[i64]>>,
    pub(super) halo: Option<Box<[(i64, i64)]>>,
    /// Whether a slice has cut the halo: it then marks ghost points, but not where the domain begins.
    pub(super) halo_is_cut: bool,
}

impl Metadata {
    /// The metadata of a field with these dims and the origin at index 0.
    pub(crate) fn plain(dims: Dims) -> Arc<Metadata> {
        let origin = Some(vec![0; dims.len()].into());
        Arc::new(Metadata { dims: Some(dims), origin, halo: None, halo_is_cut: false })
    }
}
