//! The keywords that every allocation function takes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::classes::device::parse_device;
use crate::classes::preset::{parse_preset, warn_of_labels};
use dlfield::device::Device;
use dlfield::dims::{Dims, DimsError};
use dlfield::layout::{Extents, Layout, Spec};
use dlfield::native::did_you_mean;
use dlfield::native::errors::ErrorKind;
use dlfield::native::{args, check_len, stream};

/// One keyword as given; absent and None are the same.
pub(crate) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

macro_rules! keywords {
    ($($name:ident),* $(,)?) => {
        /// The names of the keywords.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// The keywords as given.
        pub(crate) struct Keywords<'a, 'py> {
            $(pub(crate) $name: Given<'a, 'py>,)*
        }
    };
}

// The one list: `tests/py/test_keywords.py` compares text signatures, stubs, `dlfield.storage` and `dlfield.gt4py` with it.
keywords! {
    backend, dims, layout, alignment_size, aligned_index, padding, halo, origin, device, stream,
}

impl Keywords<'_, '_> {
    /// Applies the keywords to `spec`. A sub-array type has added `data` trailing dimensions, for which the lists may lack
    /// entries.
    pub(crate) fn apply(&self, mut spec: Spec, data: usize) -> PyResult<Spec> {
        let ndim = spec.ndim();
        if let Some(name) = self.backend {
            spec = spec.preset(parse_preset(name)?);
        }
        if let Some(dims) = self.dims {
            let labels = args::dims(dims)?;
            let short = data > 0 && labels.len() + data == ndim;
            if !short && labels.len() != ndim {
                return Err(wrong_count(dims, &labels, ndim));
            }
            spec = spec.dims(if short { labels.with_data(data) } else { labels });
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
            spec = spec.padding(args::string("padding", padding)?.to_cow()?.parse()?);
        }
        if let Some(halo) = self.halo {
            let mut halo = args::halo(halo, Some(ndim - data))?;
            if halo.len() + data == ndim {
                halo.resize(ndim, (0, 0));
            }
            spec = spec.halo(&halo);
        }
        if let Some(origin) = self.origin {
            spec = spec.origin(&extended(args::ints("origin", origin)?, data, ndim));
        }
        if let Some(device) = self.device {
            spec = spec.with_device(parse_device(device)?);
        }
        if let (Some(name), Some(dims)) = (self.backend, spec.unplaced_dims()) {
            warn_of_labels(name, &dims.to_string())?;
        }
        Ok(spec)
    }

    /// The given device, else that of the preset, else the host.
    pub(crate) fn device_or_default(&self) -> PyResult<Device> {
        match (self.device, self.backend) {
            (Some(device), _) => parse_device(device),
            (None, Some(name)) => Ok(parse_preset(name)?.device()),
            (None, None) => Ok(Device::CPU),
        }
    }

    /// Runs `work` for a device in the given stream.
    pub(crate) fn in_stream<R>(&self, device: Device, work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
        stream::in_stream(self.stream, device, work)
    }
}

/// The error for another number of labels than dimensions.
#[cold]
fn wrong_count(given: &Bound<'_, PyAny>, labels: &Dims, ndim: usize) -> PyErr {
    let message = DimsError::Length { got: labels.len(), ndim }.to_string();
    ErrorKind::Dims.error(match given.cast::<PyString>() {
        Ok(text) => format!("{message}{}", args::longer_labels(&text.to_string_lossy())),
        Err(_) => message,
    })
}

/// Keywords of other libraries, and what to write here.
const FOREIGN_KEYWORDS: [(&str, &str); 8] = [
    ("alignment", "write alignment_size, in bytes"),
    ("align", "write alignment_size, in bytes"),
    ("order", "write backend='C' or backend='F', or rank the strides with layout"),
    ("layout_map", "write layout, a rank for each dimension's stride"),
    ("dimensions", "write dims"),
    ("defaults", "write backend"),
    ("preset", "write backend"),
    ("shape", "the shape is that of the data; use zeros(shape, ...) for another one"),
];

/// Arguments of a call beyond the parameters of an allocation function.
pub(crate) struct ExtraArguments<'a, 'py> {
    /// Positional arguments after the last positional parameter.
    pub(crate) extra: &'a Bound<'py, PyTuple>,
    /// Unknown keywords.
    pub(crate) unknown: Option<&'a Bound<'py, PyDict>>,
}

impl<'py> ExtraArguments<'_, 'py> {
    /// Rejects all of them. `names` are the positional parameters; `first` and `dtype` are the arguments for the first and
    /// the last of them.
    #[inline]
    pub(crate) fn refuse(
        &self,
        function: &str,
        names: &[&str],
        first: &Bound<'py, PyAny>,
        dtype: Given<'_, 'py>,
    ) -> PyResult<()> {
        if self.extra.is_empty() && self.unknown.is_none() {
            return Ok(());
        }
        Err(self.error(function, names, first, dtype)?)
    }

    #[cold]
    fn error(
        &self,
        function: &str,
        names: &[&str],
        first: &Bound<'py, PyAny>,
        dtype: Given<'_, 'py>,
    ) -> PyResult<PyErr> {
        if let Some((name, _)) = self.unknown.and_then(|unknown| unknown.iter().next()) {
            let (py, name) = (name.py(), name.str()?.to_string());
            let hint = match FOREIGN_KEYWORDS.iter().find(|(known, _)| *known == name) {
                Some((_, hint)) => format!("; {hint}"),
                None => did_you_mean(py, &name, names.iter().chain(NAMES)),
            };
            return Ok(PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'{hint}")));
        }
        let (most, given) = (names.len(), names.len() + self.extra.len());
        let hint = match (names, dtype) {
            (["shape", "dtype"], Some(dtype)) => sizes(function, [first, dtype], self.extra),
            _ => None,
        };
        let hint = hint.unwrap_or_else(|| format!("; they are {}", names.join(", ")));
        let message = format!("{function}() takes at most {most} positional arguments but {given} were given{hint}");
        Ok(PyTypeError::new_err(message))
    }
}

/// The correct call if sizes were given as separate arguments; `None` if they are not sizes.
#[cold]
pub(crate) fn sizes<'py>(
    function: &str,
    first: [&Bound<'py, PyAny>; 2],
    others: &Bound<'py, PyTuple>,
) -> Option<String> {
    let all: Vec<String> = first
        .into_iter()
        .cloned()
        .chain(others.iter())
        .map(|size| size.extract::<i64>().map(|size| size.to_string()))
        .collect::<PyResult<_>>()
        .ok()?;
    Some(format!("; a shape is one argument, a tuple: {function}(({}))", all.join(", ")))
}

/// Appends zeros for the dimensions of the sub-array to a list that has none for them.
fn extended(mut entries: Extents, data: usize, ndim: usize) -> Extents {
    if entries.len() + data == ndim {
        entries.resize(ndim, 0);
    }
    entries
}
