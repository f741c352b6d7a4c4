//! The names of the protocol and metadata attributes that importers look up, and sets of them.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// An attribute that is looked up for a protocol or for metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Dlpack,
    DlpackDevice,
    GtDataInterface,
    GtInterface,
    CudaArrayInterface,
    HipArrayInterface,
    ArrayInterface,
    ArrayStruct,
    Array,
    GtDims,
    Dims,
    GtOrigin,
    DefaultOrigin,
}

impl Name {
    /// All names, in the order of the enumeration.
    pub(super) const ALL: [Name; 13] = [
        Name::Dlpack,
        Name::DlpackDevice,
        Name::GtDataInterface,
        Name::GtInterface,
        Name::CudaArrayInterface,
        Name::HipArrayInterface,
        Name::ArrayInterface,
        Name::ArrayStruct,
        Name::Array,
        Name::GtDims,
        Name::Dims,
        Name::GtOrigin,
        Name::DefaultOrigin,
    ];

    /// The attributes that have metadata.
    pub(super) const LABELS: Names = Names::of(&[
        Name::GtDataInterface,
        Name::GtInterface,
        Name::GtDims,
        Name::Dims,
        Name::GtOrigin,
        Name::DefaultOrigin,
    ]);

    /// The attributes that have hooks.
    pub(super) const INTERFACES: Names = Names::of(&[Name::GtDataInterface, Name::GtInterface]);

    /// The attribute's name, interned.
    pub(super) fn text(self, py: Python<'_>) -> &Bound<'_, PyString> {
        match self {
            Name::Dlpack => intern!(py, "__dlpack__"),
            Name::DlpackDevice => intern!(py, "__dlpack_device__"),
            Name::GtDataInterface => intern!(py, "__gt_data_interface__"),
            Name::GtInterface => intern!(py, "__gt_interface__"),
            Name::CudaArrayInterface => intern!(py, "__cuda_array_interface__"),
            Name::HipArrayInterface => intern!(py, "__hip_array_interface__"),
            Name::ArrayInterface => intern!(py, "__array_interface__"),
            Name::ArrayStruct => intern!(py, "__array_struct__"),
            Name::Array => intern!(py, "__array__"),
            Name::GtDims => intern!(py, "__gt_dims__"),
            Name::Dims => intern!(py, "dims"),
            Name::GtOrigin => intern!(py, "__gt_origin__"),
            Name::DefaultOrigin => intern!(py, "default_origin"),
        }
    }
}

/// A set of names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Names(u16);

impl Names {
    pub(super) const NONE: Names = Names(0);

    pub(super) const fn of(names: &[Name]) -> Names {
        let (mut bits, mut place) = (0, 0);
        while place < names.len() {
            bits |= 1 << names[place] as u16;
            place += 1;
        }
        Names(bits)
    }

    pub(super) fn insert(&mut self, name: Name) {
        self.0 |= Names::of(&[name]).0;
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two have any name in common.
    pub(super) fn meets(self, other: Names) -> bool {
        self.0 & other.0 != 0
    }
}

impl From<Name> for Names {
    fn from(name: Name) -> Names {
        Names::of(&[name])
    }
}
