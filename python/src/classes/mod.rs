//! The classes: their Rust structs, and how their objects are made and freed.

pub(crate) mod attribute_values;
pub(crate) mod buffer_parts;
pub(crate) mod descriptor;
pub(crate) mod device;
pub(crate) mod freelist;
mod panic;
pub(crate) mod preset;
pub(crate) mod tensor;

use dlfield::native::{OwnClasses, register_own_classes};
use pyo3::prelude::*;

use self::descriptor::PyDescriptor;
use self::tensor::PyTensor;

/// Adds the classes to the module and makes them known to the imports of the library.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<device::PyDevice>()?;
    module.add_class::<preset::PyPreset>()?;
    module.add_class::<PyTensor>()?;
    module.add_class::<PyDescriptor>()?;
    freelist::install::<PyTensor>(py)?;
    freelist::install::<PyDescriptor>(py)?;
    let classes = OwnClasses {
        tensor: |object| object.cast_exact::<PyTensor>().ok().map(|tensor| &tensor.get().0),
        description: |object| object.cast_exact::<PyDescriptor>().ok().map(|found| found.get().parts(object.py())),
        text: |object| {
            let text = object.cast_exact::<PyTensor>().ok()?.get().attributes_text(object.py()).ok()?;
            Some(format!("Tensor({text})"))
        },
    };
    register_own_classes(classes, &py.get_type::<PyTensor>(), &py.get_type::<PyDescriptor>());
    panic::register(py)
}
