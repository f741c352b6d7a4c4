//! What an allocation promises about its memory.

use super::{Layout, Padding};

/// What an allocation promises about its memory beyond shape and strides. A [`super::Spec`] has optional values instead, as a
/// preset supplies those that are absent.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// The order of the strides; `None` if it follows from them.
    pub(crate) layout: Option<Layout>,
    pub(crate) padding: Padding,
    /// The address of the element at `aligned_index` is a multiple of this many bytes.
    pub(crate) alignment_size: i64,
    /// `None` for all zeros.
    pub(crate) aligned_index: Option<Box<[i64]>>,
}

impl Promise {
    /// Whether it promises anything, or has another layout than follows from the strides.
    pub(crate) fn is_stated(&self) -> bool {
        self.alignment_size > 1
            || self.padding != Padding::None
            || self.layout.is_some()
            || self.aligned_index.is_some()
    }

    /// No promise.
    pub(crate) const NONE: Promise =
        Promise { layout: None, padding: Padding::None, alignment_size: 1, aligned_index: None };
}
