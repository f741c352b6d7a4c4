//! Argument and return types for Rust functions that take arrays from Python and return tensors, for crates that use PyO3.
//!
//! [`In`], [`Out`], [`AnyIn`] and [`OrCopy`] are argument types: they say what a function needs of an array, and extract
//! from the arrays of every library. A [`Tensor`](crate::Tensor) as an argument shares the memory beyond the call. A returned
//! one becomes a `dlfield.Tensor`, which every array library can import; arrays of `ndarray` and vectors become a `Tensor` with
//! [`Tensor::from_array`](crate::Tensor::from_array) and `Tensor::from`. Only [`OrCopy`] copies elements.
//!
//! Arguments go by label, as with [`IJK`], or by position, as with `ndarray`'s `Ix2`: see [`Axes`].
//!
//! ```
//! #[pyo3::pymodule]
//! mod fields {
//!     use dlfield::Tensor;
//!     use dlfield::ndarray::{Axis, Ix1, Ix2};
//!     use dlfield::python::{IJK, In, Out};
//!     use pyo3::prelude::*;
//!
//!     /// The sums over K of a field, whose dims may come in any order.
//!     #[pyfunction]
//!     fn column_sums(field: In<'_, f64, IJK>) -> PyResult<Tensor> {
//!         Ok(Tensor::from_array(field.array().sum_axis(Axis(2)))?)
//!     }
//!
//!     /// The means of the columns of any two-dimensional array of `float64`.
//!     #[pyfunction]
//!     fn means(table: In<'_, f64, Ix2>) -> Tensor {
//!         let table = table.array();
//!         let rows = table.nrows() as f64;
//!         let means: Vec<f64> = table.columns().into_iter().map(|column| column.sum() / rows).collect();
//!         Tensor::from(means)
//!     }
//!
//!     /// Adds in place, on any memory the caller has.
//!     #[pyfunction]
//!     fn add(mut to: Out<'_, f64, Ix1>, number: f64) {
//!         to.array_mut().mapv_inplace(|old| old + number);
//!     }
//! }
//! ```
//!
//! The crate's `examples/rust_extension` is a complete extension, and its README a tutorial.
//!
//! # Arrays that are not arguments
//!
//! `extract` borrows any object as an argument would be, for example in the methods of a class: one that the class keeps, an
//! attribute, an item of a list. The borrow ends when the value is dropped, so extract again in each call, and keep the object
//! or a `Tensor` between calls:
//!
//! ```
//! use dlfield::ndarray::Ix1;
//! use dlfield::python::{In, Out};
//! use pyo3::prelude::*;
//!
//! #[pyclass(frozen)]
//! struct Accumulator {
//!     total: Py<PyAny>,
//! }
//!
//! #[pymethods]
//! impl Accumulator {
//!     /// Takes an array to add to.
//!     #[new]
//!     fn new(total: Out<'_, f64, Ix1>) -> Accumulator {
//!         // Checked here as an argument, but kept as an object.
//!         Accumulator { total: total.object().clone().unbind() }
//!     }
//!
//!     fn add(&self, py: Python<'_>, numbers: In<'_, f64, Ix1>) -> PyResult<()> {
//!         // An error if the array no longer fits, or overlaps `numbers`.
//!         let mut total: Out<'_, f64, Ix1> = self.total.bind(py).extract()?;
//!         Ok(dlfield::traverse::zip((total.array_mut(), numbers.array()), |(total, number)| *total += number)?)
//!     }
//! }
//! ```
//!
//! A class that keeps a field as a `Tensor`, and reads it in a later call:
//!
//! ```
//! use dlfield::ndarray::Ix1;
//! use dlfield::python::{In, Out};
//! use dlfield::{Tensor, traverse};
//! use pyo3::prelude::*;
//!
//! #[pyclass(frozen)]
//! struct Damping {
//!     coefficients: Tensor,
//! }
//!
//! #[pymethods]
//! impl Damping {
//!     #[new]
//!     fn new(py: Python<'_>, coefficients: Tensor) -> PyResult<Damping> {
//!         // An error now rather than at the first call.
//!         (&coefficients).into_pyobject(py)?.extract::<In<'_, f64, Ix1>>()?;
//!         Ok(Damping { coefficients })
//!     }
//!
//!     fn apply(&self, py: Python<'_>, mut out: Out<'_, f64, Ix1>) -> PyResult<()> {
//!         let kept = (&self.coefficients).into_pyobject(py)?;
//!         // An error if `out` is the same memory.
//!         let coefficients: In<'_, f64, Ix1> = kept.extract()?;
//!         let views = (out.array_mut(), coefficients.array());
//!         Ok(traverse::zip(views, |(out, coefficient)| *out *= coefficient)?)
//!     }
//! }
//! ```
//!
//! An `In` or `Out` belongs to the call: a class cannot keep it, and code without Python, inside `py.detach`, can only have a view
//! that was taken before:
//!
//! ```compile_fail
//! # use dlfield::ndarray::Ix1;
//! # use dlfield::python::Out;
//! # use pyo3::prelude::*;
//! #[pyclass]
//! struct Accumulator {
//!     total: Out<'static, f64, Ix1>, // error: used without Python, or kept after the call
//! }
//! ```
//!
//! # What is checked, and what cannot be
//!
//! Each argument is described and validated as by `dlfield.describe`. Its element type, number of dimensions, order, device
//! and alignment are checked against the type. Each bool is checked, because a byte other than 0 and 1 would be undefined
//! behaviour. [`Out`] rejects memory that is read-only, or in which two elements overlap. Two arguments of which one is an
//! [`Out`] are rejected if they overlap; the check is exact: interleaved views do not overlap, except views so intricate that
//! 10,000 comparisons do not tell. It covers all live arguments of all calls and threads in the same extension: each extension
//! has its own ledger.
//!
//! The types of rust-numpy take part, also in other extensions: a `PyReadonlyArray` or `PyReadwriteArray` and an argument of
//! these types are not borrowed together if they overlap and one of them writes; the later one is rejected. For this,
//! rust-numpy's extensions share a list of borrows through NumPy's module `numpy._core.multiarray`, by the attribute
//! `_RUST_NUMPY_BORROW_CHECKING_API`. The extension that borrows an array first makes the list. If that is one of this
//! crate, its list is the ledger, which covers the memory of all objects, and arguments cost no more. If it is another
//! one, this crate enters its NumPy arrays in that list, which takes longer than a borrow of rust-numpy; that list knows arrays
//! by the object that owns their memory.
//!
//! Extracting an argument may run Python code: its `__dlpack__`, its `__array_interface__`, a property. After that, the
//! arguments extracted before it that have no view yet are checked again. The new argument is rejected if a NumPy array or
//! a PyTorch tensor, or one inside an xarray or GT4Py object, has moved its memory or changed its shape, strides or element
//! type; if memory to write has become read-only; or if a bool has become another byte than 0 or 1.
//!
//! The same is checked before an argument's first view, as arguments of other types may have run code since: a number with a
//! `__float__`, a `Vec` of a sequence class. `view` returns the error. `array`, `array_mut`, `as_slice` and `as_slice_mut`, which
//! return none, unwind with its text, and PyO3 raises its `PanicException`; a program with `panic = "abort"` ends. The address in
//! `descriptor` is not checked again. So take numbers before arrays.
//!
//! No library can check what other code does with the memory:
//!
//! - Python code that runs in another thread, or is called while a view lives, can write to the memory or free it
//!   (`numpy.ndarray.resize`). So can code that the function itself calls between two views. The same holds for rust-numpy's
//!   borrows, from the argument on.
//! - Views of an array that was resized keep their old address and shape, in NumPy too. Memory of an object that only
//!   states its address, as `__array_interface__` does, cannot be checked at all.
//! - Where another extension has made the list of borrows that rust-numpy's types use, memory of one NumPy array that
//!   comes as an object of another kind is not found in it: a PyTorch tensor, or a `dlfield.Tensor`, that shares the memory of
//!   a `PyReadwriteArray`. Nor are arrays without dimensions, and arrays of one memory with elements of other sizes, such as
//!   complex numbers and their real parts: rust-numpy itself takes them for apart. Take such objects by the types of this
//!   crate in all arguments. On an interpreter without the GIL, two arguments of this crate that interleave are rejected
//!   then, as that list takes them for overlapping.
//! - An argument that is forgotten (`std::mem::forget`) stays borrowed for the rest of the process, as with `RefCell`: nothing tells
//!   that no view of it is left. So do, in a child process after `os.fork`, the arguments of the parent's other threads.
//! - An `extract` in the function itself that fails may have run Python code, too.
//! - PyTorch's tensors have no read-only flag, except for its `ReadOnlyTensorWrapper`. A tensor that `torch.frombuffer`
//!   makes from `bytes`, or `torch.from_numpy` from a read-only array, counts as writable: [`Out`] cannot reject it.

pub(crate) mod consumers;
pub(crate) mod convert;
pub(crate) mod copies;
pub(crate) mod ffi;
mod from_py;
pub(crate) mod import;
pub(crate) mod interrupt;
mod into_py;
#[cfg(feature = "module")]
#[doc(hidden)]
pub mod module;
pub(crate) mod nearest;
pub(crate) mod own_classes;
pub(crate) mod package;
mod py_owner;
pub(crate) mod sync;
pub(crate) mod tensor_api;
pub(crate) mod trace;

pub use self::from_py::OrCopy;
pub use self::from_py::{
    Any, AnyIn, AnyOrder, Anywhere, Axes, COrder, Cuda, Elements, FOrder, Host, I, IJ, IJK, IK, In, J, JK, K, Order,
    Out, Place, ViewAs, ViewedByHost,
};
