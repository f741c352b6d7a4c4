//! Serialization of descriptors.

use serde::ser::{Serialize, Serializer};

use super::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::serialized::labels;

/// The fields of a [`Descriptor`] as they are serialized.
#[derive(serde::Serialize)]
#[serde(rename = "Descriptor")]
struct Fields<'d> {
    device: Device,
    dtype: DType,
    readonly: bool,
    shape: &'d [i64],
    strides: &'d [i64],
    dims: Option<Vec<String>>,
    origin: Option<&'d [i64]>,
    halo: Option<&'d [(i64, i64)]>,
}

/// With the feature `serde`: everything but the address, which means nothing in another process. So a descriptor cannot be
/// deserialized: [`Descriptor::spec`] describes a new field like it, and can.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Tensor};
/// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64).halo(&[(1, 1), (0, 0)])).unwrap();
/// assert_eq!(
///     serde_json::to_string(field.descriptor()).unwrap(),
///     r#"{"device":"cpu","dtype":"float64","readonly":false,"shape":[4,5],"strides":[5,1],"#.to_owned()
///         + r#""dims":null,"origin":null,"halo":[[1,1],[0,0]]}"#
/// );
/// ```
impl Serialize for Descriptor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = Fields {
            device: self.device(),
            dtype: self.dtype(),
            readonly: self.is_readonly(),
            shape: self.shape(),
            strides: self.strides(),
            dims: self.dims().map(labels),
            origin: self.origin(),
            halo: self.halo(),
        };
        Serialize::serialize(&fields, serializer)
    }
}
