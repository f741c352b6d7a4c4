//! Presets: alignment, layout rule and device of a stencil backend or framework, by name.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use crate::device::Device;
use crate::dims::{Dim, Dims};
use crate::error::{LayoutError, Tuple};
use std::fmt::Display;

/// How a preset orders the strides.
///
/// # Example
/// ```
/// use dlfield::{Dims, Layout, LayoutRule};
/// let dims = Dims::parse(["K", "I"]).unwrap();
/// assert_eq!(Layout::by_rule(LayoutRule::C, &dims).to_vec(), [0, 1]);
/// assert_eq!(Layout::by_rule(LayoutRule::Grid([0, 1, 2]), &dims).to_vec(), [1, 0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LayoutRule {
    /// Last index contiguous, regardless of the labels.
    C,
    /// First index contiguous, regardless of the labels.
    F,
    /// By label: the ranks of I, J and K among each other; 0 is the largest stride, and dimensions of equal ranks keep their
    /// order. Data dimensions get the largest strides of all, "0" first; user labels come between those and the grid. Where K is not
    /// contiguous, user labels with K but neither I nor J stand for the horizontal, the last of them for the contiguous dimension.
    Grid([u8; 3]),
    /// By label, as the fields of `gt4py.next`: the horizontal dimensions (I, J, user labels) have the smallest strides, then K, then
    /// local dimensions (`C2E`, `E2C2V`); the first of each kind has the smallest. Data dimensions get the largest strides of all.
    HorizontalFirst,
}

impl LayoutRule {
    /// Returns whether the rule can order these dimensions: not if it goes by label, and there are several labels of the user but
    /// none of the grid.
    pub(crate) fn places(self, dims: &Dims) -> bool {
        let own = dims.iter().filter(|dim| matches!(dim, Dim::Label(_))).count();
        let of_grid = dims.iter().any(|dim| matches!(dim, Dim::I | Dim::J | Dim::K));
        !matches!(self, LayoutRule::Grid(_)) || own < 2 || of_grid
    }
}

/// The part of an allocation that a preset aligns.
///
/// # Example
/// ```
/// use dlfield::{Alignment, Preset};
/// assert_eq!(Preset::find("gt:gpu").unwrap().alignment(), Alignment::Elements(32));
/// assert_eq!(Preset::find("jax").unwrap().alignment(), Alignment::Base(64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Alignment {
    /// The aligned index, and every row at that index, to this many elements.
    Elements(u32),
    /// The start of the memory, to this many bytes, with compact rows, as array frameworks need.
    Base(u32),
    /// The aligned index, and every row at that index, to this many bytes.
    Rows(u32),
}

/// A named set of defaults for an allocation.
///
/// # Example
/// ```
/// use dlfield::Preset;
/// let preset = Preset::find("gt:cpu_kfirst").unwrap();
/// assert_eq!(preset.device().to_string(), "cpu");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preset {
    name: Cow<'static, str>,
    device: Device,
    alignment: Alignment,
    layout: LayoutRule,
}

/// Returns the error for an alignment of a preset below one element, or one that is too large.
#[cold]
pub(crate) fn wrong_alignment(got: i64) -> LayoutError {
    LayoutError::new("alignment", &"1 or more elements, below 2**31", &got)
}

/// Returns the error for ranks of I, J and K that are not a permutation.
#[cold]
pub(crate) fn wrong_ranks<T: Display>(ranks: &[T]) -> LayoutError {
    LayoutError::new("layout", &"a permutation of (0, 1, 2) as ranks of I, J, K, 'C' or 'F'", &Tuple(ranks))
}

const fn grid(name: &'static str, device: Device, alignment: u32, ranks: [u8; 3]) -> Preset {
    let (alignment, layout) = (Alignment::Elements(alignment), LayoutRule::Grid(ranks));
    Preset { name: Cow::Borrowed(name), device, alignment, layout }
}

const fn framework(name: &'static str, device: Device) -> Preset {
    let (alignment, layout) = (Alignment::Base(64), LayoutRule::Grid([0, 1, 2]));
    Preset { name: Cow::Borrowed(name), device, alignment, layout }
}

const fn next(name: &'static str, device: Device, bytes: u32) -> Preset {
    let (alignment, layout) = (Alignment::Rows(bytes), LayoutRule::HorizontalFirst);
    Preset { name: Cow::Borrowed(name), device, alignment, layout }
}

const fn by_index(name: &'static str, layout: LayoutRule) -> Preset {
    Preset { name: Cow::Borrowed(name), device: Device::CPU, alignment: Alignment::Elements(1), layout }
}

/// The built-in presets: the table of the specification, after `gt4py.storage`'s layout registry.
static BUILT_IN: [Preset; 20] = [
    grid("numpy", Device::CPU, 1, [0, 1, 2]),
    grid("debug", Device::CPU, 1, [0, 1, 2]),
    by_index("C", LayoutRule::C),
    by_index("F", LayoutRule::F),
    grid("gt:cpu_kfirst", Device::CPU, 1, [0, 1, 2]),
    grid("gtx86", Device::CPU, 1, [0, 1, 2]),
    grid("gt:cpu_ifirst", Device::CPU, 1, [2, 1, 0]),
    grid("gtmc", Device::CPU, 8, [0, 2, 1]),
    grid("gt:gpu", Device::cuda(0), 32, [2, 1, 0]),
    grid("gtcuda", Device::cuda(0), 32, [2, 1, 0]),
    grid("dace:cpu", Device::CPU, 1, [1, 2, 0]),
    grid("dace:cpu_kfirst", Device::CPU, 1, [0, 1, 2]),
    grid("dace:cpu_KJI", Device::CPU, 1, [2, 1, 0]),
    grid("dace:gpu", Device::cuda(0), 1, [2, 1, 0]),
    grid("dace:gpu_IJK", Device::cuda(0), 1, [0, 1, 2]),
    framework("jax", Device::CPU),
    framework("torch", Device::CPU),
    framework("cupy", Device::cuda(0)),
    next("gt4py.next", Device::CPU, 64),
    next("gt4py.next:gpu", Device::cuda(0), 128),
];

static REGISTERED: RwLock<Vec<Preset>> = RwLock::new(Vec::new());

impl Preset {
    /// Builds a preset for [`Preset::register`] from name, device, alignment and layout rule.
    ///
    /// # Errors
    /// [`LayoutError`] for an empty name, an alignment of 0, or ranks that are not a permutation of 0, 1, 2.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Alignment, Device, LayoutRule, Preset};
    /// let preset = Preset::new("mine", Device::CPU, Alignment::Elements(8), LayoutRule::Grid([0, 2, 1])).unwrap();
    /// assert_eq!(preset.name(), "mine");
    /// assert!(Preset::new("", Device::CPU, Alignment::Elements(8), LayoutRule::C).is_err());
    /// ```
    pub fn new(name: &str, device: Device, alignment: Alignment, layout: LayoutRule) -> Result<Preset, LayoutError> {
        if name.is_empty() {
            return Err(LayoutError::new("name", &"a new non-empty name", &"''"));
        }
        if let Alignment::Elements(0) | Alignment::Base(0) | Alignment::Rows(0) = alignment {
            return Err(wrong_alignment(0));
        }
        if let LayoutRule::Grid(ranks) = layout
            && !(0..3).all(|rank| ranks.contains(&rank))
        {
            return Err(wrong_ranks(&ranks));
        }
        Ok(Preset { name: Cow::Owned(name.to_owned()), device, alignment, layout })
    }

    /// Finds a preset by its name.
    ///
    /// # Errors
    /// [`LayoutError`], with all registered names.
    ///
    /// # Example
    /// ```
    /// use dlfield::Preset;
    /// assert_eq!(Preset::find("gtmc").unwrap().name(), "gtmc");
    /// assert!(Preset::find("gtmcc").is_err());
    /// ```
    pub fn find(name: &str) -> Result<Preset, LayoutError> {
        if let Some(preset) = BUILT_IN.iter().find(|preset| preset.name == name) {
            return Ok(preset.clone());
        }
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        registered.iter().find(|preset| preset.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = BUILT_IN.iter().chain(registered.iter()).map(Preset::name).collect();
            let expected = format_args!("one of the presets {}", names.join(", "));
            LayoutError::new("backend", &expected, &format_args!("{name:?}"))
        })
    }

    /// Returns all presets: the built-in ones in the order of the specification, then the registered ones.
    ///
    /// # Example
    /// ```
    /// use dlfield::Preset;
    /// assert!(Preset::all().iter().any(|preset| preset.name() == "gt:gpu"));
    /// ```
    pub fn all() -> Vec<Preset> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        BUILT_IN.iter().chain(registered.iter()).cloned().collect()
    }

    /// Registers a preset until the process ends, so that [`Preset::find`] finds it.
    ///
    /// # Errors
    /// [`LayoutError`] if the name is in use: a preset never changes once it is registered.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Alignment, Device, LayoutRule, Preset};
    /// let preset = Preset::new("for the docs", Device::CPU, Alignment::Base(128), LayoutRule::C).unwrap();
    /// Preset::register(preset.clone()).unwrap();
    /// assert_eq!(Preset::find("for the docs").unwrap().alignment(), Alignment::Base(128));
    /// assert!(Preset::register(preset).is_err());
    /// ```
    pub fn register(preset: Preset) -> Result<(), LayoutError> {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        if BUILT_IN.iter().chain(registered.iter()).any(|known| known.name == preset.name) {
            let got = format_args!("{:?}, which exists already", preset.name);
            return Err(LayoutError::new("name", &"a new non-empty name", &got));
        }
        registered.push(preset);
        Ok(())
    }

    /// Returns the name, as `backend=` takes it.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Preset::find("gtmc").unwrap().name(), "gtmc");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the device of the allocation.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Device, Preset};
    /// assert_eq!(Preset::find("gt:gpu").unwrap().device(), Device::cuda(0));
    /// ```
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns what is aligned, and to how much.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Alignment, Preset};
    /// assert_eq!(Preset::find("gtmc").unwrap().alignment(), Alignment::Elements(8));
    /// ```
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// Returns how strides are ordered.
    ///
    /// # Example
    /// ```
    /// use dlfield::{LayoutRule, Preset};
    /// assert_eq!(Preset::find("gtmc").unwrap().layout(), LayoutRule::Grid([0, 2, 1]));
    /// ```
    pub fn layout(&self) -> LayoutRule {
        self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registering_twice_is_refused() {
        let preset = Preset::new("mine", Device::CPU, Alignment::Elements(4), LayoutRule::F).expect("valid");
        assert_eq!(Preset::register(preset.clone()), Ok(()));
        assert_eq!(Preset::find("mine"), Ok(preset.clone()));
        assert!(Preset::register(preset).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        let new = |name, alignment, layout| Preset::new(name, Device::CPU, alignment, layout);
        assert!(new("", Alignment::Elements(1), LayoutRule::C).is_err());
        assert!(new("x", Alignment::Elements(0), LayoutRule::C).is_err());
        assert!(new("x", Alignment::Elements(1), LayoutRule::Grid([0, 1, 1])).is_err());
        assert!(Preset::find("gt:tpu").is_err_and(|error| error.argument() == "backend"));
    }
}
