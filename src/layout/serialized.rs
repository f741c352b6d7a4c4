//! Serialization of specs, and of the element types and devices in them.
//!
//! Names are those of Python: `"float64"`, `"cuda:0"`, `"row"`. A spec is checked as far as its parts can be; the rest when a
//! field is allocated, as for any spec.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::{Extents, Layout, Metadata, Padding, Spec};
use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::preset::{Alignment, LayoutRule, Preset, PresetRules};

/// As its name, for example `"float64"`.
impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        let name = String::deserialize(deserializer)?;
        DType::from_name(&name).ok_or_else(|| {
            let allowed: Vec<&str> = DType::all().map(DType::name).collect();
            D::Error::custom(format!("dtype: {name:?}; allowed are {}", allowed.join(", ")))
        })
    }
}

/// As text, for example `"cuda:0"`.
impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The fields of a [`Spec`] as they are serialized.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Spec", deny_unknown_fields)]
struct Fields {
    shape: Vec<i64>,
    dtype: DType,
    #[serde(default)]
    preset: Option<PresetFields>,
    #[serde(default)]
    layout: Option<Vec<u8>>,
    #[serde(default)]
    alignment_size: Option<i64>,
    #[serde(default)]
    aligned_index: Option<Vec<i64>>,
    #[serde(default)]
    padding: Option<String>,
    #[serde(default)]
    dims: Option<Vec<String>>,
    #[serde(default)]
    origin: Option<Vec<i64>>,
    #[serde(default)]
    halo: Option<Vec<(i64, i64)>>,
    #[serde(default)]
    halo_is_cut: bool,
    #[serde(default)]
    device: Option<Device>,
}

/// The rules of a preset: its name may mean another preset elsewhere.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Preset", deny_unknown_fields)]
struct PresetFields {
    device: Device,
    alignment: AlignmentFields,
    layout: RuleFields,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Alignment", rename_all = "lowercase")]
enum AlignmentFields {
    Elements(u32),
    Base(u32),
    Rows(u32),
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "LayoutRule")]
enum RuleFields {
    C,
    F,
    #[serde(rename = "grid")]
    Grid([u8; 3]),
    #[serde(rename = "horizontal first")]
    HorizontalFirst,
}

impl PresetFields {
    fn of(rules: PresetRules) -> PresetFields {
        PresetFields {
            device: rules.device,
            alignment: match rules.alignment {
                Alignment::Elements(count) => AlignmentFields::Elements(count),
                Alignment::Base(bytes) => AlignmentFields::Base(bytes),
                Alignment::Rows(bytes) => AlignmentFields::Rows(bytes),
            },
            layout: match rules.layout {
                LayoutRule::C => RuleFields::C,
                LayoutRule::F => RuleFields::F,
                LayoutRule::Grid(ranks) => RuleFields::Grid(ranks),
                LayoutRule::HorizontalFirst => RuleFields::HorizontalFirst,
            },
        }
    }

    fn rules(self) -> crate::Result<PresetRules> {
        let alignment = match self.alignment {
            AlignmentFields::Elements(count) => Alignment::Elements(count),
            AlignmentFields::Base(bytes) => Alignment::Base(bytes),
            AlignmentFields::Rows(bytes) => Alignment::Rows(bytes),
        };
        let layout = match self.layout {
            RuleFields::C => LayoutRule::C,
            RuleFields::F => LayoutRule::F,
            RuleFields::Grid(ranks) => LayoutRule::Grid(ranks),
            RuleFields::HorizontalFirst => LayoutRule::HorizontalFirst,
        };
        // Checks the rules.
        Ok(Preset::new("serialized", self.device, alignment, layout)?.rules())
    }
}

/// Returns the labels as text.
pub(crate) fn labels(dims: &Dims) -> Vec<String> {
    dims.iter().map(|dim| dim.to_string()).collect()
}

/// With the feature `serde`. A preset is serialized as its rules, without its name.
///
/// # Example
/// ```
/// use dlfield::{DType, Preset, Spec, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = Spec::new(&[8, 6], DType::F32).preset(Preset::find("gt:cpu_ifirst")?).halo(&[(1, 1), (0, 0)]);
/// let text = serde_json::to_string(&spec)?;
/// let read: Spec = serde_json::from_str(&text)?;
/// assert_eq!(Tensor::zeros(&read)?.descriptor().strides(), Tensor::zeros(&spec)?.descriptor().strides());
///
/// // Shape and element type are enough.
/// let short: Spec = serde_json::from_str(r#"{"shape": [3], "dtype": "int8"}"#)?;
/// assert_eq!((short.ndim(), short.dtype()), (1, DType::I8));
/// # Ok(())
/// # }
/// ```
impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = Fields {
            shape: self.shape.to_vec(),
            dtype: self.dtype,
            preset: self.preset.map(PresetFields::of),
            layout: self.layout.as_ref().map(Layout::to_vec),
            alignment_size: self.alignment_size,
            aligned_index: self.aligned_index.as_deref().map(<[i64]>::to_vec),
            padding: self.padding.map(|padding| padding.to_string()),
            dims: self.metadata.dims.as_ref().map(labels),
            origin: self.metadata.origin.as_deref().map(<[i64]>::to_vec),
            halo: self.metadata.halo.as_deref().map(<[(i64, i64)]>::to_vec),
            halo_is_cut: self.metadata.halo_is_cut,
            device: self.device,
        };
        Serialize::serialize(&fields, serializer)
    }
}

impl Fields {
    fn spec(self) -> crate::Result<Spec> {
        let ranked = |ranks: Vec<u8>| {
            let ranks: Vec<i64> = ranks.into_iter().map(i64::from).collect();
            Layout::new(&ranks, ranks.len())
        };
        let metadata = Metadata {
            dims: self.dims.map(Dims::parse).transpose()?,
            origin: self.origin.map(Vec::into_boxed_slice),
            halo: self.halo.map(Vec::into_boxed_slice),
            halo_is_cut: self.halo_is_cut,
        };
        Ok(Spec {
            shape: Extents::from_vec(self.shape),
            dtype: self.dtype,
            preset: self.preset.map(PresetFields::rules).transpose()?,
            layout: self.layout.map(ranked).transpose()?,
            alignment_size: self.alignment_size,
            aligned_index: self.aligned_index.map(Vec::into_boxed_slice),
            padding: self.padding.as_deref().map(Padding::from_str).transpose()?,
            metadata,
            device: self.device,
        })
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
        <Fields as Deserialize>::deserialize(deserializer)?.spec().map_err(D::Error::custom)
    }
}
