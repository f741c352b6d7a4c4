//! `dlfield.FieldSpec`, `dlfield.Signature` and the `BoundCall` that its `bind` returns.

mod argument;
mod bind;
mod bound;
mod call;
mod dtypes;
mod field;
mod hooks;
pub(crate) mod kernel;
mod pickle;
mod spec;
mod stencil;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use bound::PyBound;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use spec::PyFieldSpec;

use crate::device::Device;
use crate::error::{Error, SignatureErrorKind};
use crate::python::convert::{args, errors};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::device::{PyDevice, parse_device};
use crate::python::module::classes::freelist;
use crate::signature::{FieldSpec, Signature};

/// As many names are compared one by one in less time than one is looked up.
const FEW: usize = 16;

/// The fields that a stencil takes, checked at every call by `bind`.
///
/// Parameters
/// ----------
/// device : str or device, optional
///     The device that uses the fields: a `Device`, its name, DLPack's pair, or a device of PyTorch, JAX, CuPy, cuda.core or
///     Numba. Pinned and managed memory fits the host, which waits for the work on it, and CUDA devices.
/// on_mismatch : {"raise", "copy"}, optional
///     What happens to a field with another device, dtype, alignment or layout than expected. "raise": an error, or for
///     layout a `LayoutWarning`. "copy": the stencil gets a temporary copy, with one warning for each field; it is written
///     back after the call if the field is written. Dtypes are cast by NumPy's "same_kind" rule, both ways if written, except
///     for those of less than 16 bits that NumPy itself does not have (float8, int4). The host casts, so another dtype remains an error if
///     the host can reach neither the field nor the copy.
/// allow_overlap : bool, optional
///     Whether written fields may share memory with other fields, as when an array is passed twice. The kernel is then
///     responsible for the order of its reads and writes. Fields with the same elements share one temporary copy; a
///     temporary copy of only one of two fields that overlap is an error.
/// fields : FieldSpec
///     A `FieldSpec` for each field, by its name.
///
/// Raises
/// ------
/// LayoutError, DimsError, DTypeError, DeviceError
///     A `FieldSpec` whose parts do not fit together, or an invalid device.
/// TypeError
///     A field that is not a `FieldSpec`.
/// ValueError
///     Another value of `on_mismatch`.
///
/// Example
/// -------
/// >>> import dlfield as dl, numpy as np
/// >>> sig = dl.Signature(inp=dl.FieldSpec("float64", "IJ"), out=dl.FieldSpec("float64", "IJ", access="w"))
/// >>> with sig.bind(inp=np.ones((4, 5)), out=dl.zeros((5, 4), dims="JI")) as fields:
/// ...     fields.out.shape, fields.out.strides, fields.domain
/// ((4, 5), (8, 32), (4, 5))
/// >>> print(sig)
/// (inp: Field[float64, I J, cpu], out: Field[float64, I J, cpu, w])
#[pyclass(name = "Signature", module = "dlfield", frozen, weakref)]
pub(crate) struct PySignature {
    signature: Signature,
    /// The names, interned, in the signature's order.
    names: Vec<Py<PyString>>,
    /// The position of each name by its address, as most names in code are interned.
    by_address: HashMap<usize, usize>,
    /// Whether a field has the name of an attribute of `BoundCall`.
    hidden: Vec<bool>,
    copies: bool,
    /// Whether the user was warned that a field is copied.
    warned: Vec<AtomicBool>,
}

#[pymethods]
impl PySignature {
    #[new]
    #[pyo3(
        signature = (*surplus, device=None, on_mismatch=None, allow_overlap=None, **fields),
        text_signature = "(*, device='cpu', on_mismatch='raise', allow_overlap=False, **fields)"
    )]
    fn new(
        py: Python<'_>,
        surplus: &Bound<'_, PyTuple>,
        device: Option<&Bound<'_, PyAny>>,
        on_mismatch: Option<&Bound<'_, PyAny>>,
        allow_overlap: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySignature> {
        if let Some(first) = surplus.iter().next() {
            return Err(given_by_position(&first));
        }
        let copies = on_mismatch.map_or(Ok(0), |given| args::choice("on_mismatch", given, &["raise", "copy"]))? == 1;
        let device = device.map_or(Ok(Device::CPU), parse_device)?;
        let allow_overlap = allow_overlap.map_or(Ok(false), |flag| args::flag("allow_overlap", flag))?;
        let (mut specs, mut names) = (Vec::new(), Vec::new());
        for (name, spec) in fields.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            specs.push((name.to_cow()?.into_owned(), PyFieldSpec::given(&name, &spec)?));
            names.push(PyString::intern(py, &name.to_cow()?).unbind());
        }
        let warned = names.iter().map(|_| AtomicBool::new(false)).collect();
        let hides = |name: &Py<PyString>| py.get_type::<PyBound>().hasattr(name);
        let hidden = names.iter().map(hides).collect::<PyResult<_>>()?;
        let signature = Signature::new(specs)?.with_device(device).allow_overlap(allow_overlap);
        let by_address = names.iter().enumerate().map(|(place, name)| (name.as_ptr().addr(), place)).collect();
        Ok(PySignature { signature, names, by_address, hidden, copies, warned })
    }

    /// Return the signature of the fields that a function, a class or a mapping annotates.
    ///
    /// Parameters
    /// ----------
    /// annotated : function, class or mapping
    ///     A function or a class with annotations, whose bases count too, or a mapping of names to annotations. Those of fields
    ///     are `dl.Field[...]`, `Annotated[Any, dl.FieldSpec(...)]`, `gtscript.Field[...]`, which is read and written, and
    ///     entries of a stencil's `field_info`; each may be `... | None` for a field that may be left out, as one with the
    ///     default None. Others, such as those of scalars, are left out.
    /// device, on_mismatch, allow_overlap : optional
    ///     As for `Signature`.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     No field is annotated, `annotated` is something else, or an annotation in a mapping is text.
    /// Exception
    ///     What the evaluation of annotations that are text raises, with a note that names the parameter.
    ///
    /// Example
    /// -------
    /// >>> import dlfield as dl
    /// >>> def step(inp: dl.Field["float64", "IJ"], out: dl.Field["float64", "IJ", "w"], dt: float): ...
    /// >>> dl.Signature.from_annotations(step)
    /// Signature(inp=FieldSpec('float64', ('I', 'J')), out=FieldSpec('float64', ('I', 'J'), access='w'), device='cpu')
    #[classmethod]
    #[pyo3(
        signature = (annotated, *, device=None, on_mismatch=None, allow_overlap=None),
        text_signature = "(annotated, *, device='cpu', on_mismatch='raise', allow_overlap=False)"
    )]
    fn from_annotations<'py>(
        _class: &Bound<'py, PyType>,
        annotated: &Bound<'py, PyAny>,
        device: Option<&Bound<'py, PyAny>>,
        on_mismatch: Option<&Bound<'py, PyAny>>,
        allow_overlap: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = (annotated, device, on_mismatch, allow_overlap);
        kernel::signature_from(annotated.py(), "signature_from_annotations", arguments)
    }

    /// Return the signature of a compiled GT4Py stencil, from its `field_info`.
    ///
    /// Each field has the layout in which the stencil's backend is fast. One that the stencil does not use may be left out.
    /// Scalars are not part of a signature.
    ///
    /// Parameters
    /// ----------
    /// stencil : stencil of GT4Py
    ///     A stencil of `gtscript.stencil` or `gtscript.lazy_stencil`, which is compiled now, a frozen one, or a wrapped one.
    /// device : str or device, optional
    ///     The device of all fields, by default that of the backend.
    /// on_mismatch, allow_overlap : optional
    ///     As for `Signature`.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `stencil` is of another type.
    ///
    /// Example
    /// -------
    /// >>> import dlfield as dl
    /// >>> from gt4py.cartesian import gtscript
    /// >>> @gtscript.stencil(backend="numpy")
    /// ... def double(inp: gtscript.Field[float], out: gtscript.Field[gtscript.IJK, float]):
    /// ...     with computation(PARALLEL), interval(...):
    /// ...         out = 2.0 * inp
    /// >>> dl.Signature.from_stencil(double).fields["out"]
    /// FieldSpec('float64', ('I', 'J', 'K'), access='w', layout=(0, 1, 2), shape=(None, None, None))
    #[classmethod]
    #[pyo3(
        signature = (stencil, *, device=None, on_mismatch=None, allow_overlap=None),
        text_signature = "(stencil, *, device=None, on_mismatch='raise', allow_overlap=False)"
    )]
    fn from_stencil<'py>(
        _class: &Bound<'py, PyType>,
        stencil: &Bound<'py, PyAny>,
        device: Option<&Bound<'py, PyAny>>,
        on_mismatch: Option<&Bound<'py, PyAny>>,
        allow_overlap: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = (stencil, device, on_mismatch, allow_overlap);
        kernel::signature_from(stencil.py(), "signature_from_stencil", arguments)
    }

    /// Return a function that binds its arguments and calls another one with them: no body in between.
    ///
    /// Parameters
    /// ----------
    /// function
    ///     A function of C, by `ctypes`, cffi (`ffi.addressof(lib, "name")`) or `numba.cfunc`; or one of Python or f2py.
    /// order
    ///     What the function takes, in its order, as text: attributes of the fields, "domain" and scalars. Attributes are
    ///     "ptr", "domain_ptr" (the first point to compute), "shape", "strides" (bytes), "element_strides", "origin", "size",
    ///     "ndim", "nbytes", "itemsize", and for a function of Python "array", of NumPy. Consecutive ones are those of each
    ///     field in turn, so that "ptr strides domain" is pointer and strides of the first, pointer and strides of the second,
    ///     then the domain; "inp.ptr" is that of one field. Any other name is a scalar argument, after the fields. A C function
    ///     gets a list as the address of integers, or with a star, "*domain", as that many integers. By default, "array".
    ///
    /// Returns
    /// -------
    /// function
    ///     With the fields and the scalars as parameters. It returns what `function` returns.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     An order that the function cannot have. At a call, of a C function with `argtypes`: another number or type of
    ///     arguments, as `double *` for a field of float32.
    /// OverflowError
    ///     At a call: an integer that does not fit the C type.
    /// Error
    ///     At a call, as by `bind`.
    ///
    /// Example
    /// -------
    /// >>> import ctypes, dlfield as dl
    /// >>> memcpy = ctypes.CDLL(None).memcpy
    /// >>> memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    /// >>> sig = dl.Signature(out=dl.FieldSpec("float64", "I", access="w"), inp=dl.FieldSpec("float64", "I"))
    /// >>> copy = sig.wrap(memcpy, "out.ptr inp.ptr inp.nbytes")
    /// >>> inp, out = dl.full(3, 2.0), dl.zeros(3)
    /// >>> address = copy(inp=inp, out=out)
    /// >>> out.tolist()
    /// [2.0, 2.0, 2.0]
    #[pyo3(signature = (function, order=None))]
    fn wrap<'py>(
        slf: &Bound<'py, PySignature>,
        function: &Bound<'py, PyAny>,
        order: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        kernel::signature_from(slf.py(), "wrapped", (slf, function, order))
    }

    /// Raises TypeError with what to call instead.
    #[pyo3(signature = (*_args, **_keywords))]
    fn __call__(&self, _args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let fields = self.example();
        Err(new_error::<PyTypeError>(format!(
            "a Signature is not a function; bind({fields}) checks the arguments of a call and returns them for the kernel"
        )))
    }

    /// The `FieldSpec` of each field, by name.
    #[getter]
    pub(crate) fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for ((_, spec), name) in self.signature.fields().iter().zip(&self.names) {
            fields.set_item(name, Py::new(py, PyFieldSpec(spec.clone()))?)?;
        }
        Ok(fields)
    }

    /// The device that uses the fields.
    #[getter]
    pub(crate) fn device(&self) -> PyDevice {
        PyDevice(self.signature.device())
    }

    /// "raise", or "copy" for temporary copies.
    #[getter]
    pub(crate) fn on_mismatch(&self) -> &'static str {
        if self.copies { "copy" } else { "raise" }
    }

    /// Whether written fields may share memory with other fields.
    #[getter]
    pub(crate) fn allow_overlap(&self) -> bool {
        self.signature.allows_overlap()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = "Signature(".to_owned();
        for (name, spec) in self.signature.fields() {
            text += &format!("{name}={}, ", PyFieldSpec(spec.clone()).text(py)?);
        }
        text += &format!("device='{}'", self.signature.device());
        if self.copies {
            text += ", on_mismatch='copy'";
        }
        if self.signature.allows_overlap() {
            text += ", allow_overlap=True";
        }
        Ok(text + ")")
    }

    /// Short, as function signatures are written; a note of the errors about the fields of a call as a whole has it too.
    fn __str__(&self) -> String {
        self.signature.to_string()
    }
}

impl PySignature {
    /// An error about several fields of a call; if it is about which are there, or their sizes, with a note that says what is expected.
    #[cold]
    fn misused(&self, py: Python<'_>, error: impl Into<Error>) -> PyErr {
        let error = error.into();
        let is_about_memory = matches!(&error, Error::Signature(error) if error.kind() == SignatureErrorKind::Overlap);
        let error = error.into();
        if is_about_memory { error } else { errors::noted(py, &self.expected(), error) }
    }

    /// The fields as a call of `bind` gives them, the first three.
    fn example(&self) -> String {
        let names: Vec<String> = self.signature.fields().iter().map(|(name, _)| format!("{name}=...")).collect();
        if names.len() > 3 { format!("{}, ...", names[..3].join(", ")) } else { names.join(", ") }
    }

    /// The note that says which fields are expected.
    fn expected(&self) -> String {
        format!("expected: {}", self.signature)
    }

    fn spec(&self, place: usize) -> (&str, &FieldSpec) {
        let (name, spec) = &self.signature.fields()[place];
        (name, spec)
    }

    /// The position of the field with this name, if the name is interned.
    fn place_of_interned(&self, name: &Bound<'_, PyAny>) -> Option<usize> {
        if self.names.len() <= FEW {
            return self.names.iter().position(|known| name.is(known));
        }
        self.by_address.get(&name.as_ptr().addr()).copied()
    }

    /// The position of the field that an interned attribute name refers to.
    fn attribute(&self, name: &Bound<'_, PyAny>) -> Option<usize> {
        self.place_of_interned(name).filter(|place| !self.hidden[*place])
    }

    /// The position of a field. Tries `guess` first: callers tend to name fields in the signature's order.
    fn place(&self, name: &Bound<'_, PyString>, guess: usize) -> PyResult<usize> {
        if self.names.get(guess).is_some_and(|known| name.is(known)) {
            return Ok(guess);
        }
        if let Some(place) = self.place_of_interned(name) {
            return Ok(place);
        }
        // Names that are built at run time are not interned.
        self.signature.find(&name.to_string_lossy(), guess).map_err(|error| self.misused(name.py(), error))
    }

    /// Warns once that a field is copied. If the warning raises, the call fails, so the next call warns again.
    fn warn_once(&self, place: usize, warn: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
        let warned = &self.warned[place];
        if warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        warn().inspect_err(|_| warned.store(false, Ordering::Relaxed))
    }
}

/// The error for fields by position.
#[cold]
fn given_by_position(first: &Bound<'_, PyAny>) -> PyErr {
    let call = if first.is_instance_of::<PyDict>() { "Signature(**fields)" } else { "Signature(u=FieldSpec(...))" };
    let found = args::shown(first);
    new_error::<PyTypeError>(format!(
        "Signature() takes each field by its name, found {found} without one; write {call}"
    ))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFieldSpec>()?;
    module.add_class::<PySignature>()?;
    module.add_class::<PyBound>()?;
    call::register(module)?;
    kernel::register(module)?;
    stencil::register(module)?;
    freelist::install::<PyBound>(module.py())?;
    bind::install(module.py())
}
