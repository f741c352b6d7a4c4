//! The keywords that every allocation function takes.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::device::Device;
use crate::dims::{self, Dims};
use crate::layout::extents::{Extents, Halo};
use crate::layout::{self, Layout, Spec, check_len};
use crate::python::convert::errors::ErrorKind;
use crate::python::convert::{args, stream};
use crate::python::ffi::fastcall::{Argument, given};
use crate::python::interrupt;
use crate::python::module::classes::device::parse_device;
use crate::python::module::classes::preset::{parse_preset, warn_of_labels};

/// One keyword as given; absent and None are the same.
pub(crate) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

macro_rules! keywords {
    ($($name:ident),* $(,)?) => {
        /// The names of the keywords.
        const NAMES: [&str; COUNT] = [$(stringify!($name)),*];

        /// The number of keywords.
        pub(super) const COUNT: usize = [$(stringify!($name)),*].len();

        /// The keywords as a text signature has them.
        macro_rules! keywords_text {
            () => {
                concat!($(", ", stringify!($name), "=None"),*)
            };
        }

        /// The keywords as given.
        #[derive(Default)]
        pub(crate) struct Keywords<'a, 'py> {
            $(pub(crate) $name: Given<'a, 'py>,)*
        }

        impl<'a, 'py> Keywords<'a, 'py> {
            /// Takes the arguments for the keywords, in their order.
            #[inline(always)]
            pub(super) fn of(arguments: &'a [Argument<'_, 'py>]) -> Keywords<'a, 'py> {
                let mut arguments = arguments.iter();
                Keywords { $($name: arguments.next().and_then(given),)* }
            }
        }
    };
}

// The one list: `tests/py/docs/test_keywords.py` compares text signatures, stubs, `dlfield.storage` and `dlfield.gt4py` with it.
keywords! {
    backend, dims, layout, alignment_size, aligned_index, padding, halo, origin, device, stream, buffer,
}

/// What docstrings say of the keywords, of the result and of errors. Each line has the space of doc comments.
macro_rules! keywords_docs {
    () => {
        concat!(
            " backend : str, optional\n",
            "     A preset, such as \"gt:cpu_ifirst\", whose layout, alignment, padding and device apply.\n",
            " dims : str or sequence of str, optional\n",
            "     Labels of the dimensions: \"IJK\", \"lat lon\", or a sequence; integers from 0 for data dimensions.\n",
            " layout : sequence of int, optional\n",
            "     The rank of the stride of each dimension, 0 for the largest.\n",
            " alignment_size : int, optional\n",
            "     Alignment in bytes of the element at `aligned_index`.\n",
            " aligned_index : sequence of int or mapping, optional\n",
            "     An index; by default the lower halo.\n",
            " padding : {\"none\", \"row\"}, optional\n",
            "     Whether each row begins at a multiple of the alignment.\n",
            " halo : sequence of int or pairs, or mapping, optional\n",
            "     For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.\n",
            " origin : sequence of int or mapping, optional\n",
            "     Index of the first compute point; by default the lower halo.\n",
            " device : str or device, optional\n",
            "     \"cpu\", \"cuda:N\", \"cuda_host\" (pinned), \"cuda_managed\", or a device object of PyTorch, JAX,\n",
            "     CuPy, cuda.core or Numba.\n",
            " stream : int or stream, optional\n",
            "     The CUDA stream that orders the work; by default the current one.\n",
            " buffer : buffer or array, optional\n",
            "     Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on\n",
            "     `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others\n",
            "     overwrite them. The field begins at the first address that is aligned as asked for: by an\n",
            "     `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there\n",
            "     on. `frombuffer` reads them from a given byte.\n",
            "\n",
            " Returns\n",
            " -------\n",
            " Tensor\n",
            "     In new memory, or in that of `buffer`.\n",
            "\n",
            " Raises\n",
            " ------\n",
            " LayoutError, DimsError, DTypeError, DeviceError\n",
            "     An argument that does not fit; the message names it.\n",
            " TypeError\n",
            "     An argument of another type, as a number for `halo`.\n",
            " MemoryError\n",
            "     The allocation failed.\n",
            " ExchangeError, NotAnArrayError\n",
            "     The buffer is read-only, or has no memory; a stream for the host.\n",
            "\n",
            " Warns\n",
            " -----\n",
            " LayoutWarning\n",
            "     `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.\n",
            "\n",
            " Example\n",
            " -------\n",
        )
    };
}

pub(super) use keywords_docs as docs;
pub(super) use keywords_text as text;

/// The names of all parameters: a function's own, then the keywords.
pub(super) const fn joined<const ALL: usize>(own: &[&'static str]) -> [&'static str; ALL] {
    let (mut names, mut place) = ([""; ALL], 0);
    while place < ALL {
        names[place] = if place < own.len() { own[place] } else { NAMES[place - own.len()] };
        place += 1;
    }
    names
}

impl<'a, 'py> Keywords<'a, 'py> {
    /// The labels alone, for functions that take no others.
    pub(super) fn of_labels(dims: Given<'a, 'py>, halo: Given<'a, 'py>, origin: Given<'a, 'py>) -> Keywords<'a, 'py> {
        Keywords { dims, halo, origin, ..Keywords::default() }
    }
}

impl Keywords<'_, '_> {
    /// Whether no keyword is given but `backend`.
    pub(super) fn are_preset_alone(&self) -> bool {
        // Without `..`, so that no keyword is forgotten here.
        let Keywords {
            backend: _,
            dims,
            layout,
            alignment_size,
            aligned_index,
            padding,
            halo,
            origin,
            device,
            stream,
            buffer,
        } = self;
        let others = [dims, layout, alignment_size, aligned_index, padding, halo, origin, device, stream, buffer];
        others.iter().all(|other| other.is_none())
    }

    /// Applies the keywords to `spec`. A sub-array type has added `data` trailing dimensions, for which the lists may not have
    /// entries.
    #[inline]
    pub(super) fn apply(&self, spec: &mut Spec, data: usize) -> PyResult<()> {
        let Some(name) = self.backend else {
            return if data == 0 && self.are_preset_alone() { Ok(()) } else { self.apply_others(spec, data) };
        };
        spec.set_preset(parse_preset(name)?);
        if data > 0 || !self.are_preset_alone() {
            self.apply_others(spec, data)?;
        }
        match spec.unplaced_dims() {
            Some(dims) => warn_of_labels(name, &dims.to_string()),
            None => Ok(()),
        }
    }

    /// Applies the keywords except `backend`.
    fn apply_others(&self, changed: &mut Spec, data: usize) -> PyResult<()> {
        let ndim = changed.ndim();
        let mut spec = std::mem::replace(changed, Spec::new(&[], changed.dtype()));
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
            let others = || match spec.explicit_aligned_index() {
                Some(index) => Extents::from_slice(index),
                None => Extents::from_elem(0, ndim),
            };
            let index = args::ints_by_label("aligned_index", index, &dims_of(&spec), others)?;
            spec = spec.aligned_index(&extended(index, data, ndim));
        }
        if let Some(padding) = self.padding {
            let word = args::string("padding", padding).map_err(|_| no_padding(padding))?;
            spec = spec.padding(word.to_cow()?.parse()?);
        }
        if let Some(halo) = self.halo {
            let others = || match &spec.metadata().halo {
                Some(halo) => Halo::from_slice(halo),
                None => Halo::from_elem((0, 0), ndim),
            };
            let mut halo = args::halo_by_label("halo", halo, &dims_of(&spec), data, others)?;
            if let (1, [(lower, _), (upper, _)]) = (ndim, &halo[..]) {
                return Err(no_pair(*lower, *upper));
            }
            if halo.len() + data == ndim {
                halo.resize(ndim, (0, 0));
            }
            spec = spec.halo(&halo);
        }
        if let Some(origin) = self.origin {
            let others = || {
                let known = spec.metadata().clone().with_default_origin().origin;
                known.map_or_else(|| Extents::from_elem(0, ndim), |origin| Extents::from_slice(&origin))
            };
            let origin = args::ints_by_label("origin", origin, &dims_of(&spec), others)?;
            spec = spec.origin(&extended(origin, data, ndim));
        }
        if let Some(device) = self.device {
            spec = spec.with_device(parse_device(device)?);
        }
        *changed = spec;
        Ok(())
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

/// The error for a padding that is not a text.
#[cold]
fn no_padding(given: &Bound<'_, PyAny>) -> PyErr {
    args::wrong_type("padding", "'none' or 'row'", given)
}

/// The error for two widths of a field with one dimension.
#[cold]
fn no_pair(lower: i64, upper: i64) -> PyErr {
    layout::wrong_count("halo", 2, 1).with_fix(&format_args!("a pair is one entry: halo=(({lower}, {upper}),)")).into()
}

/// The error for another number of labels than dimensions.
#[cold]
fn wrong_count(given: &Bound<'_, PyAny>, labels: &Dims, ndim: usize) -> PyErr {
    let message = dims::wrong_count(labels.len(), ndim).to_string();
    ErrorKind::Dims.error(match given.cast::<PyString>() {
        Ok(text) => format!("{message}{}", args::both_spellings(&text.to_string_lossy())),
        Err(_) => message,
    })
}

/// Keywords of other libraries, and what to write here.
pub(super) const FOREIGN_KEYWORDS: &[(&str, &str)] = &[
    ("alignment", "write alignment_size, in bytes"),
    ("align", "write alignment_size, in bytes"),
    ("order", "write backend='C' or backend='F', or rank the strides with layout"),
    ("layout_map", "write layout, a rank for each dimension's stride"),
    ("dimensions", "write dims"),
    ("defaults", "write backend"),
    ("preset", "write backend"),
    ("strides", "write layout, alignment_size and padding, from which they follow; frombuffer takes any strides"),
    ("like", "write zeros_like(data) or another function ending in _like"),
    ("fill_value", "write full(shape, fill_value)"),
    ("shared", "write zeros(...).share(), a copy in shared memory"),
    ("pin_memory", "write device='cuda_host'"),
    ("requires_grad", "PyTorch has it: dl.as_torch(field).requires_grad_()"),
    ("copy", "write from_array(data), which always copies, or from_dlpack(obj), which shares the memory"),
    ("shape", "the shape is that of the data; use zeros(shape, ...) for another one"),
];

/// The hint for too many positional arguments.
pub(super) fn too_many(function: &str, names: &[&str], all: &[Borrowed<'_, '_, PyAny>]) -> String {
    let are_sizes = names == ["shape", "dtype"];
    are_sizes.then(|| sizes(function, all.iter().map(|size| &**size))).flatten().unwrap_or_else(|| {
        let text = all[names.len()..].first().filter(|value| value.is_instance_of::<PyString>());
        let example = text.map_or_else(|| "'C'".to_owned(), |text| args::shown(text));
        format!("; they are {}; give the others by name, as in backend={example}", names.join(", "))
    })
}

/// The correct call if sizes were given as separate arguments; `None` if they are not sizes.
#[cold]
pub(super) fn sizes<'a, 'py: 'a>(
    function: &str,
    all: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> Option<String> {
    let all: PyResult<Vec<i64>> =
        all.into_iter().map(|size| size.extract().inspect_err(|error| interrupt::put_off(size.py(), error))).collect();
    let all: Vec<String> = all.ok()?.iter().map(i64::to_string).collect();
    // Which of its numbers `full` fills with is a guess.
    (function != "full").then(|| format!("; a shape is one argument, a tuple: {function}(({}))", all.join(", ")))
}

/// The labels of a field to allocate.
fn dims_of(spec: &Spec) -> Dims {
    spec.metadata().dims.clone().unwrap_or_else(|| Dims::standard(spec.ndim()))
}

/// Appends zeros for the dimensions of the sub-array to a list that has none for them.
fn extended(mut entries: Extents, data: usize, ndim: usize) -> Extents {
    if entries.len() + data == ndim {
        entries.resize(ndim, 0);
    }
    entries
}
