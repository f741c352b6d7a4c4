//! The text of specifications and signatures, as error messages show what is expected.

use std::fmt;

use super::{Access, FieldSpec, Signature, Size};
use crate::device::Device;
use crate::dims::Dim;

/// `Field[float64, I J K]`: the element types; the dimensions, with sizes where they are stated; then what differs from the
/// defaults.
impl fmt::Display for FieldSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

/// `(inp: Field[float64, I J K, cpu], out: Field[float64, I J K, cpu, w])`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |(name, spec): &(Box<str>, FieldSpec)| format!("{name}: {}", spec.text(Some(self.device())));
        let fields: Vec<String> = self.fields().iter().map(field).collect();
        write!(f, "({})", fields.join(", "))
    }
}

impl FieldSpec {
    fn text(&self, device: Option<Device>) -> String {
        let mut parts = vec![self.dtype_text(), self.dims_text()];
        parts.extend(device.map(|device| device.to_string()));
        match self.declared_access() {
            Access::Read => {}
            Access::Write => parts.push("w".to_owned()),
            Access::ReadWrite => parts.push("rw".to_owned()),
        }
        let (layout, alignment_size) = self.explicit();
        parts.extend(layout.map(|layout| format!("layout={:?}", layout.to_vec())));
        parts.extend(self.declared_boundary().map(|boundary| format!("boundary={boundary:?}")));
        parts.extend(alignment_size.map(|bytes| format!("alignment_size={bytes}")));
        parts.extend(self.declared_preset().map(|preset| format!("backend={}", preset.name())));
        if self.is_optional() {
            parts.push("optional".to_owned());
        }
        format!("Field[{}]", parts.join(", "))
    }

    fn dtype_text(&self) -> String {
        let names: Vec<&str> = self.declared_dtypes().iter().map(|dtype| dtype.name()).collect();
        if names.is_empty() { "any".to_owned() } else { names.join(" | ") }
    }

    /// The dimensions: `I`, `I=5`, `I=n+1`, `I+1` where the size has the label's name, `*` without a label; `...` for any number.
    fn dims_text(&self) -> String {
        let Some(ndim) = self.ndim() else { return "...".to_owned() };
        if ndim == 0 {
            return "()".to_owned();
        }
        let label = |axis: usize| self.dims()?.iter().nth(axis);
        let size = |axis: usize| self.declared_shape().map_or(&Size::Any, |shape| &shape[axis]);
        let axes: Vec<String> = (0..ndim).map(|axis| dim_text(label(axis), size(axis))).collect();
        axes.join(" ")
    }
}

fn dim_text(label: Option<Dim>, size: &Size) -> String {
    match (label.map(|label| label.to_string()), size) {
        (None, size) => size.to_string(),
        (Some(label), Size::Any) => label,
        (Some(label), Size::Named { name, .. }) if **name == *label => size.to_string(),
        (Some(label), size) => format!("{label}={size}"),
    }
}
