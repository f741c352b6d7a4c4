//! Argument and return types for Rust functions that take arrays from Python and return tensors, for crates that use PyO3.
//!
//! [`In`], [`Out`], [`AnyIn`] and [`OrCopy`] are argument types: they say what a function needs of an array, and extract
//! from the arrays of every library. A returned [`Tensor`](crate::Tensor) becomes a `dlfield.Tensor`, which every array
//! library can import; arrays of `ndarray` and vectors become a `Tensor` with
//! [`Tensor::from_array`](crate::Tensor::from_array) and `Tensor::from`. Only [`OrCopy`] copies elements.
//!
//! ```
//! #[pyo3::pymodule]
//! mod fields {
//!     use dlfield::Tensor;
//!     use dlfield::ndarray::{Ix1, Ix2};
//!     use dlfield::python::{In, Out};
//!     use pyo3::prelude::*;
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
//!     /// Adds in place, on whatever memory the caller has.
//!     #[pyfunction]
//!     fn add(mut to: Out<'_, f64, Ix1>, number: f64) {
//!         to.array_mut().mapv_inplace(|old| old + number);
//!     }
//! }
//! ```
//!
//! The crate's `examples/rust_extension` is a complete extension, and its README a tutorial.
//!
//! # What is checked, and what cannot be
//!
//! Each argument is described and validated as by `dlfield.describe`. Its element type, number of dimensions, order, device
//! and alignment are checked against the type. Each bool is checked, because a byte other than 0 and 1 would be undefined
//! behaviour. [`Out`] rejects memory that is read-only, or in which two elements overlap. Two arguments of which one is an
//! [`Out`] are rejected if they overlap; the check is exact: interleaved views do not overlap. It covers all live arguments
//! of all calls and threads in the same extension: each extension has its own ledger.
//!
//! Extracting an argument may run Python code: its `__dlpack__`, its `__array_interface__`, a property. After that, the
//! arguments extracted before it that have no view yet are checked again. The new argument is rejected if a NumPy array or
//! a PyTorch tensor, or one inside an xarray or GT4Py object, has moved its memory or changed its shape, strides or element
//! type; if memory to write has become read-only; or if a bool has become another byte than 0 or 1.
//!
//! No library can check what other code does with the memory:
//!
//! - Python code that runs in another thread, or is called while a view lives, can write to the memory or free it
//!   (`numpy.ndarray.resize`). So can code that the function itself calls before it takes a view, and arguments of other
//!   types that are extracted after the arrays and run Python code: a `Vec` of a sequence class written in Python, a type
//!   with its own `FromPyObject`. The same holds for rust-numpy's borrows.
//! - Views of an array that was resized keep their old address and shape, in NumPy too. Memory of an object that only
//!   states its address, as `__array_interface__` does, cannot be checked at all.
//! - rust-numpy's `PyReadonlyArray` and `PyReadwriteArray` have their own list of borrows, and neither list knows the
//!   other: an [`Out`] beside a `PyReadwriteArray` of the same array would be two `&mut`. In one function, take all arrays
//!   by the types of this crate, and do not call a function that takes them by rust-numpy's types while one is borrowed.
//! - PyTorch's tensors have no read-only flag, except for its `ReadOnlyTensorWrapper`. A tensor that `torch.frombuffer`
//!   makes from `bytes`, or `torch.from_numpy` from a read-only array, counts as writable: [`Out`] cannot reject it.

#[allow(missing_docs, reason = "public only for `native`")]
pub(crate) mod convert;
#[allow(missing_docs, reason = "public only for `native`")]
pub(crate) mod ffi;
mod from_py;
#[allow(missing_docs, reason = "public only for `native`")]
pub(crate) mod import;
mod into_py;
pub(crate) mod nearest;
#[allow(missing_docs, reason = "public only for `native`")]
pub(crate) mod own_classes;
mod py_owner;
#[allow(missing_docs, reason = "public only for `native`")]
pub(crate) mod sync;

pub use self::from_py::{
    Any, AnyIn, AnyOrder, Anywhere, COrder, Cuda, Elements, FOrder, Host, In, OrCopy, Order, Out, Place,
};
