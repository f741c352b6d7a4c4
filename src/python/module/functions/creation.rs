//! The eight allocation functions and `from_array`.

#![allow(unsafe_code, reason = "the interpreter calls the functions with raw pointers")]

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;

use crate::copy::can_cast;
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Spec;
use crate::layout::extents::Extents;
use crate::memory::Contents;
use crate::python::convert::dtype;
use crate::python::copies::{self, GIL_RELEASE_BYTES};
use crate::python::ffi::fastcall::{self, Definition, Parameters};
use crate::python::module::export;
use crate::python::module::functions::call::Call;
use crate::python::module::functions::keywords::{self, FOREIGN_KEYWORDS, Keywords, too_many};
use crate::python::module::functions::specs::{converted, fresh, like, value_as_shape, with_metadata_of};
use crate::python::module::functions::{data_argument, docstring, fill_value, given_memory};
use crate::python::trace;
use crate::tensor::Tensor;

/// Allocates a field with undefined values.
#[inline]
fn undefined(call: &Call<'_, '_>, spec: &Spec, tensor: &mut Tensor) -> PyResult<()> {
    call.keywords.in_stream(spec.device(), || match call.keywords.buffer {
        None => Ok(tensor.allocate_in_place(spec, Contents::of_new(spec.dtype()))?),
        Some(buffer) => given_memory::place(call, buffer, spec, Contents::Undefined, tensor),
    })
}

/// Allocates a field of zeros.
#[inline]
fn zeroed(call: &Call<'_, '_>, spec: &Spec, tensor: &mut Tensor) -> PyResult<()> {
    call.keywords.in_stream(spec.device(), || match call.keywords.buffer {
        None => Ok(call.detached(spec, || tensor.allocate_in_place(spec, Contents::Zeros))?),
        Some(buffer) => given_memory::place(call, buffer, spec, Contents::Zeros, tensor),
    })
}

/// Allocates a field whose elements are all the same.
#[inline]
fn filled(
    call: &Call<'_, '_>,
    spec: &Spec,
    tensor: &mut Tensor,
    element: impl FnOnce() -> PyResult<SmallVec<[u8; 16]>>,
) -> PyResult<()> {
    call.keywords.in_stream(spec.device(), || {
        let element = element()?;
        match call.keywords.buffer {
            None => Ok(call.detached(spec, || tensor.allocate_full(spec, &element))?),
            Some(buffer) => given_memory::fill(call, buffer, spec, &element, tensor),
        }
    })
}

/// Why it copies, for `trace_copies`.
const FROM_ARRAY: &str = "from_array always copies";

/// Copies a small NumPy array at once: while this thread keeps the GIL and runs no other code, nobody moves the memory.
/// Returns whether it has.
fn copied_at_once(call: &Call<'_, '_>, given: Option<&(DType, Extents)>, tensor: &mut Tensor) -> PyResult<bool> {
    // The conversion of other keywords may run other code.
    let is_text = call.keywords.backend.is_none_or(|backend| backend.is_exact_instance_of::<PyString>());
    if cfg!(Py_GIL_DISABLED) || !is_text || !call.keywords.are_preset_alone() {
        return Ok(false);
    }
    let mut data = Descriptor::BLANK;
    if !data_argument::described_at_once(call.first, &mut data) {
        return Ok(false);
    }
    let (mut spec, added) = converted(&data, given)?;
    call.keywords.apply(&mut spec, added)?;
    // One number has to fit, which is looked at on the other way.
    let is_cast_number = data.ndim() == 0 && data.dtype() != spec.dtype();
    let at_once = !is_cast_number && spec.is_small_on_host(GIL_RELEASE_BYTES) && can_cast(data.dtype(), spec.dtype());
    if at_once {
        // SAFETY: the array's memory, which stays where it is until this returns. If another thread writes to it without the
        // GIL, which is the program's responsibility as with every array library, the copy has old or new elements.
        unsafe { tensor.allocate_copy_of(&spec, &data) }?;
        trace::copied(call.py, data.nbytes(), || FROM_ARRAY.to_owned());
    }
    Ok(at_once)
}

/// Copies `data` to a new tensor and casts its elements.
fn copy(py: Python<'_>, tensor: &mut Tensor, spec: &Spec, data: &Tensor) -> PyResult<()> {
    if can_cast(data.descriptor().dtype(), spec.dtype()) {
        *tensor = copies::copy_into(py, spec, data, FROM_ARRAY)?;
        return Ok(());
    }
    // NumPy can cast more element types.
    let data = export::numpy::for_cast(py, data, (spec.dtype(), spec.device()), "data")?;
    let cast = Tensor::empty(&spec.clone().with_device(Device::CPU))?;
    export::numpy::assign(&export::numpy::view(py, &cast)?, export::numpy::view(py, &data)?.as_any(), "data")?;
    *tensor = if spec.device() == Device::CPU { cast } else { copies::copy_into(py, spec, &cast, FROM_ARRAY)? };
    Ok(())
}

/// What the docstrings say of the parameters that are not keywords of all functions. Each line has the space of doc comments.
macro_rules! own {
    (shape) => {
        " Parameters\n ----------\n shape : int or sequence of int\n     Elements per dimension.\n"
    };
    (data) => {
        " Parameters\n ----------\n data : array\n     An array of any library, or what NumPy can convert to one.\n"
    };
    (fill_value) => {
        " fill_value : number\n     The value of every element, cast as by `numpy.full`, with its bits kept.\n"
    };
    (dtype of shape) => {
        " dtype : str, type or dtype, optional\n     What `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax.\n"
    };
    (dtype of data) => {
        " dtype : str, type or dtype, optional\n     As for `empty`; that of `data` if it is not given.\n"
    };
}

/// Defines an allocation function; all of them have the same keywords. The function with its name returns the definition.
macro_rules! allocation {
    (
        $(#[doc = $summary:literal])*
        example $(#[doc = $example:literal])*
        fn $name:ident($call:ident, $tensor:ident; $first:ident $(, $value:ident)?; dtype = $dtype:literal) $body:block
    ) => {
        fn $name() -> &'static Definition {
            const OWN: &[&str] = &[stringify!($first), $(stringify!($value),)? "dtype"];
            const ALL: usize = OWN.len() + keywords::COUNT;
            const TEXT: &str = concat!(
                stringify!($name), "(", stringify!($first), $(", ", stringify!($value),)? ", dtype=", $dtype, ", *",
                keywords::text!(), ")\n--\n\n", $($summary, "\n",)*
                "\n", own!($first), $(own!($value),)? own!(dtype of $first), keywords::docs!(),
                $($example, "\n",)*
            );
            const DOC: &CStr = docstring::of(&const { docstring::unindented::<{ TEXT.len() }>(TEXT) });

            static PARAMETERS: Parameters<ALL> =
                Parameters::new(stringify!($name), keywords::joined::<ALL>(OWN), OWN.len(), OWN.len() - 1)
                    .with_hints(FOREIGN_KEYWORDS)
                    .with_hint_for_too_many(too_many);

            fastcall::c_function!(called, PARAMETERS, |module, all| {
                let (own, keywords) = all.split_at(OWN.len());
                let mut places = own.iter();
                let first = fastcall::required(places.next())?;
                $(let $value = fastcall::required(places.next())?;)?
                let $call = &Call {
                    py: module.py(),
                    function: stringify!($name),
                    first,
                    dtype: own.last().and_then(fastcall::given),
                    keywords: Keywords::of(keywords),
                };
                $call.create(|$tensor: &mut Tensor| $body).map(Bound::into_any)
            });

            static DEFINITION: Definition = Definition::new(docstring::name(concat!(stringify!($name), "\0")), DOC, called);
            &DEFINITION
        }
    };
}

allocation! {
    /// Allocates a field of the given shape with undefined values.
    example
    /// >>> import dlfield as dl
    /// >>> dl.empty((10, 10, 7), backend="gt:cpu_ifirst").strides
    /// (8, 80, 800)
    fn empty(call, tensor; shape; dtype = "'float64'") {
        let mut spec = Spec::blank();
        fresh(call, &mut spec)?;
        undefined(call, &spec, tensor)
    }
}

allocation! {
    /// Allocates a field of zeros of the given shape.
    example
    /// >>> import dlfield as dl
    /// >>> dl.zeros((4, 3), halo=(1, 0)).origin
    /// (1, 0)
    fn zeros(call, tensor; shape; dtype = "'float64'") {
        let mut spec = Spec::blank();
        fresh(call, &mut spec)?;
        zeroed(call, &spec, tensor)
    }
}

allocation! {
    /// Allocates a field of ones of the given shape.
    example
    /// >>> import dlfield as dl
    /// >>> float(dl.ones((2, 2), "float32")[1, 1])
    /// 1.0
    fn ones(call, tensor; shape; dtype = "'float64'") {
        let mut spec = Spec::blank();
        fresh(call, &mut spec)?;
        filled(call, &spec, tensor, || fill_value::one(call.py, spec.dtype()))
    }
}

allocation! {
    /// Allocates a field of the given shape with every element `fill_value`.
    ///
    /// Raises `OverflowError` for an integer that does not fit.
    example
    /// >>> import dlfield as dl
    /// >>> float(dl.full((2, 2), -0.0)[0, 0])
    /// -0.0
    fn full(call, tensor; shape, fill_value; dtype = "'float64'") {
        let mut spec = Spec::blank();
        fresh(call, &mut spec).map_err(|error| value_as_shape(call.first, fill_value, error))?;
        filled(call, &spec, tensor, || fill_value::element(fill_value, spec.dtype()))
    }
}

allocation! {
    /// Allocates a field like `data` with undefined values.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    /// layout, alignment, padding and device. The shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> dl.empty_like(dl.zeros((4, 3), layout=(1, 0))).layout
    /// (1, 0)
    fn empty_like(call, tensor; data; dtype = "None") {
        let spec = like(call)?;
        undefined(call, &spec, tensor)
    }
}

allocation! {
    /// Allocates a field of zeros like `data`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    /// layout, alignment, padding and device. The shape cannot be overridden.
    example
    /// >>> import dlfield as dl, numpy as np
    /// >>> dl.zeros_like(np.ones((4, 3), order="F")).layout
    /// (1, 0)
    fn zeros_like(call, tensor; data; dtype = "None") {
        let spec = like(call)?;
        zeroed(call, &spec, tensor)
    }
}

allocation! {
    /// Allocates a field of ones like `data`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    /// layout, alignment, padding and device. The shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> dl.ones_like(dl.zeros((4, 3), dims="KI")).dims
    /// ('K', 'I')
    fn ones_like(call, tensor; data; dtype = "None") {
        let spec = like(call)?;
        filled(call, &spec, tensor, || fill_value::one(call.py, spec.dtype()))
    }
}

allocation! {
    /// Allocates a field like `data` with every element `fill_value`.
    ///
    /// Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    /// any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    /// layout, alignment, padding and device. The shape cannot be overridden.
    example
    /// >>> import dlfield as dl
    /// >>> int(dl.full_like(dl.zeros((4, 3), "int32"), 7)[0, 0])
    /// 7
    fn full_like(call, tensor; data, fill_value; dtype = "None") {
        let spec = like(call)?;
        filled(call, &spec, tensor, || fill_value::element(fill_value, spec.dtype()))
    }
}

allocation! {
    /// Allocates a field and copies `data` into it, in the layout that `backend` or the keywords ask for.
    ///
    /// `data` is any array, or what NumPy can convert to one. Its element type is kept unless `dtype` is given; then
    /// elements are cast by NumPy's "same_kind" rule, and integers in lists to any type; `OverflowError` for one that does not
    /// fit. The other byte order is converted, and `longdouble` if `dtype` is given. Dims, halo and origin come from `data` unless
    /// given. Errors for `data` are those of `from_dlpack`; `ExchangeError` for a masked point, in lists too, `ValueError` for
    /// lists of different lengths.
    example
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2, 3], [4, 5, 6]], backend="F").strides
    /// (8, 16)
    fn from_array(call, tensor; data; dtype = "None") {
        let given = call.dtype.map(dtype::parse).transpose()?;
        if copied_at_once(call, given.as_ref(), tensor)? {
            return Ok(());
        }
        let near = call.keywords.device_or_default()?;
        let element = given.as_ref().map(|given| given.0);
        let data = data_argument::readable(call.first, near, element, call.keywords.origin)?;
        let (spec, added) = converted(data.descriptor(), given.as_ref())?;
        export::numpy::check_number(call.py, &data, spec.dtype(), "data")?;
        let mut spec = with_metadata_of(spec, &data);
        call.keywords.apply(&mut spec, added)?;
        let found = data.descriptor().device();
        let stream_device = if found == Device::CPU { spec.device() } else { found };
        let made = call.keywords.in_stream(stream_device, || match call.keywords.buffer {
            None => copy(call.py, tensor, &spec, &data),
            Some(buffer) => given_memory::copy(call, buffer, &spec, &data, tensor),
        });
        data.done(call.py, made)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let functions =
        [empty(), zeros(), ones(), full(), empty_like(), zeros_like(), ones_like(), full_like(), from_array()];
    functions.into_iter().try_for_each(|function| function.add_to(module))
}
