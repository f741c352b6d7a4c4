//! The keywords that every allocation takes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{args, stream};
use crate::device::Device;
use crate::dims::Dims;
use crate::layout::{Extents, Layout, Spec, check_len};
use crate::preset::Preset;

/// One keyword as given; absent and None are the same.
pub(super) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The keywords as given.
pub(super) struct Keywords<'a, 'py> {
    pub(super) backend: Given<'a, 'py>,
    pub(super) dims: Given<'a, 'py>,
    pub(super) layout: Given<'a, 'py>,
    pub(super) alignment_size: Given<'a, 'py>,
    pub(super) aligned_index: Given<'a, 'py>,
    pub(super) padding: Given<'a, 'py>,
    pub(super) halo: Given<'a, 'py>,
    pub(super) origin: Given<'a, 'py>,
    pub(super) device: Given<'a, 'py>,
    pub(super) stream: Given<'a, 'py>,
}

impl Keywords<'_, '_> {
    /// States what was given on top of `spec`. A sub-array type has added `data` trailing dimensions, which the lists
    /// may leave out.
    pub(super) fn apply(&self, mut spec: Spec, data: usize) -> PyResult<Spec> {
        let ndim = spec.ndim();
        if let Some(name) = self.backend {
            spec = spec.preset(Preset::find(&text("backend", name)?.to_cow()?)?);
        }
        if let Some(dims) = self.dims {
            let dims = args::dims(dims)?;
            let short = data > 0 && dims.len() + data == ndim;
            spec = spec.dims(if short { dims.with_data(data) } else { dims });
        } else if data > 0 && !spec.has_dims() {
            spec = spec.dims(Dims::standard(ndim - data).with_data(data));
        }
        if let Some(ranks) = self.layout {
            let ranks = args::ints("layout", ranks)?;
            check_len("layout", ranks.len(), ndim)?;
            spec = spec.layout(Layout::new(&ranks, ndim)?);
        }
        if let Some(bytes) = self.alignment_size {
            spec = spec.alignment_size(args::int("alignment_size", bytes)?);
        }
        if let Some(index) = self.aligned_index {
            spec = spec.aligned_index(&extended(args::ints("aligned_index", index)?, data, ndim));
        }
        if let Some(padding) = self.padding {
            spec = spec.padding(text("padding", padding)?.to_cow()?.parse()?);
        }
        if let Some(halo) = self.halo {
            let mut halo = args::halo(halo)?;
            if halo.len() + data == ndim {
                halo.resize(ndim, (0, 0));
            }
            spec = spec.halo(&halo);
        }
        if let Some(origin) = self.origin {
            spec = spec.origin(&extended(args::ints("origin", origin)?, data, ndim));
        }
        if let Some(device) = self.device {
            spec = spec.device(args::device(device)?);
        }
        Ok(spec)
    }

    /// The device that was given, or that of the preset, or the host.
    pub(super) fn target(&self) -> PyResult<Device> {
        match (self.device, self.backend) {
            (Some(device), _) => args::device(device),
            (None, Some(name)) => Ok(Preset::find(&text("backend", name)?.to_cow()?)?.device()),
            (None, None) => Ok(Device::CPU),
        }
    }

    /// Does the work for a device in the stream that was given.
    pub(super) fn within<R>(&self, device: Device, work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
        stream::within(self.stream, device, work)
    }
}

/// A list for the dimensions before the sub-array's, with zeros for those.
fn extended(mut entries: Extents, data: usize, ndim: usize) -> Extents {
    if entries.len() + data == ndim {
        entries.resize(ndim, 0);
    }
    entries
}

fn text<'a, 'py>(argument: &str, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    value.cast().map_err(|_| PyTypeError::new_err(format!("{argument}: {} is not a string", args::shown(value))))
}
