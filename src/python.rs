//! Rust functions for Python that take any array and give tensors back, for crates that use PyO3.
//!
//! [`In`], [`Out`], [`AnyIn`] and [`OrCopy`] are argument types: they say what is wanted of an array, and extract from every
//! array library's. A [`Tensor`](crate::Tensor) that is returned becomes a `dlfield.Tensor`, which every array library
//! takes; arrays of `ndarray` and vectors become a `Tensor` with [`Tensor::from_array`](crate::Tensor::from_array) and
//! `Tensor::from`. Nothing is copied on any of these ways, unless [`OrCopy`] is asked for.
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
//! Each argument is described and validated as by `dlfield.describe`; its element type, number of dimensions, order, device
//! and alignment are held against the type; bools are looked at one by one, as any byte but 0 and 1 would be undefined
//! behaviour. [`Out`] refuses memory that is read-only, or puts two elements at one place. Arguments that overlap, where one
//! of them is an [`Out`], are refused exactly: interleaved views do not overlap. That holds for all arguments that are alive,
//! of whatever call in whatever thread, as long as the calls are in the same extension: each has its own ledger.
//!
//! To read an argument may run Python code: its `__dlpack__`, its `__array_interface__`, a property. After that the arguments
//! that were read before, and of which there is no view yet, are looked at once more: if a NumPy array or a PyTorch tensor,
//! or one inside an xarray or GT4Py object, has its memory elsewhere, or another shape, strides or element type, if memory
//! to write has become read-only, or a bool is none any more, the argument that did it is refused.
//!
//! What no library can check is what others do with the memory:
//!
//! - Python code that runs in another thread, or is called while a view lives, can write to it or have it freed
//!   (`numpy.ndarray.resize`). So can code that the function itself calls before it takes a view, and arguments of other
//!   types that are read after the arrays and run Python code: a `Vec` of a sequence class written in Python, a type with a
//!   `FromPyObject` of its own. The same holds for rust-numpy's borrows.
//! - Views of an array that was resized: they still say what they said before, in NumPy too. And of memory that an object
//!   only tells the address of, as `__array_interface__` does, its word is all there is.
//! - rust-numpy's `PyReadonlyArray` and `PyReadwriteArray` keep a list of their own, and neither list knows the other: an
//!   [`Out`] beside a `PyReadwriteArray` of the same array would be two `&mut`. In one function, take arrays by the types
//!   of this crate only, and do not call a function that takes them the other way while one is borrowed.
//! - PyTorch's tensors do not say that memory is read-only, but for its `ReadOnlyTensorWrapper`. What `torch.frombuffer`
//!   makes of `bytes`, or `torch.from_numpy` of a read-only array, counts as memory to write: [`Out`] cannot refuse it.

pub use crate::py::from_py::{
    Any, AnyIn, AnyOrder, Anywhere, COrder, Cuda, Elements, FOrder, Host, In, OrCopy, Order, Out, Place,
};
