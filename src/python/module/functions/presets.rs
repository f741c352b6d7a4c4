//! The functions `presets` and `register_preset`.

use crate::device::Device;
use crate::error::LayoutError;
use crate::preset::{Alignment, LayoutRule, Preset, wrong_alignment, wrong_ranks};
use crate::python::convert::args;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::preset::{PyPreset, PyPresets};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// All presets by name: the built-in ones, then the registered ones.
///
/// >>> import dlfield as dl
/// >>> dl.presets()["gt:cpu_ifirst"].layout
/// (2, 1, 0)
#[pyfunction]
fn presets(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = Bound::new(py, PyPresets)?.into_super();
    for preset in Preset::all() {
        let name = preset.name().to_owned();
        all.set_item(name, Py::new(py, PyPreset(preset))?)?;
    }
    Ok(all)
}

/// Adds a preset for the rest of the process and returns it.
///
/// Parameters
/// ----------
/// name : str
///     The name that `backend=` will take.
/// alignment : int, optional
///     In elements.
/// layout : {"C", "F"} or sequence of int, optional
///     The ranks of I, J and K, 0 for the largest stride; they go by label. "C" and "F" go by index.
/// device : str or device, optional
///     Where fields are allocated.
///
/// Returns
/// -------
/// Preset
///
/// Raises
/// ------
/// LayoutError
///     A name in use, an alignment below 1, or ranks that are not a permutation.
///
/// Example
/// -------
/// >>> import dlfield as dl
/// >>> dl.register_preset("mine", alignment=8, layout=(0, 2, 1)).alignment
/// 8
/// >>> dl.zeros((4, 4, 4), backend="mine").layout
/// (0, 2, 1)
#[pyfunction]
#[pyo3(
    signature = (name, *, alignment=None, layout=None, device=None),
    text_signature = "(name, *, alignment=1, layout=(0, 1, 2), device='cpu')"
)]
fn register_preset(
    name: &str,
    alignment: Option<&Bound<'_, PyAny>>,
    layout: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyPreset> {
    let got = alignment.map_or(Ok(1), |alignment| args::int("alignment", alignment))?;
    let elements = u32::try_from(got).ok().filter(|elements| (1..1 << 31).contains(elements));
    let alignment = Alignment::Elements(elements.ok_or_else(|| wrong_alignment(got))?);
    let rule = layout.map_or(Ok(LayoutRule::Grid([0, 1, 2])), layout_rule)?;
    let device = device.map_or(Ok(Device::CPU), parse_device)?;
    let preset = Preset::new(name, device, alignment, rule)?;
    Preset::register(preset.clone())?;
    Ok(PyPreset(preset))
}

fn layout_rule(value: &Bound<'_, PyAny>) -> PyResult<LayoutRule> {
    if let Ok(text) = value.cast::<PyString>() {
        return match &*text.to_cow()? {
            "C" => Ok(LayoutRule::C),
            "F" => Ok(LayoutRule::F),
            other => {
                Err(LayoutError::new("layout", &"'C', 'F' or the ranks of I, J, K", &format_args!("'{other}'")).into())
            }
        };
    }
    let ranks = args::ints("layout", value)?;
    let small: Vec<u8> = ranks.iter().filter_map(|rank| u8::try_from(*rank).ok()).collect();
    match <[u8; 3]>::try_from(small) {
        Ok(all) if ranks.len() == 3 => Ok(LayoutRule::Grid(all)),
        _ => Err(wrong_ranks(&ranks).into()),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(presets, module)?)?;
    module.add_function(wrap_pyfunction!(register_preset, module)?)
}
