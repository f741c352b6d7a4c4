//! Safe access to the elements of a tensor that may have clones and views.

#![allow(unsafe_code, reason = "views are made from addresses")]

use std::fmt;
use std::ops::Deref;

use ndarray::{ArrayRef, ArrayView, Dimension, IxDyn};

use super::owner::Guard;
use super::{Element, Tensor, ndarray as views};
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::memory::Executor;

/// The elements of a tensor for reading; made by [`Tensor::read`]. It dereferences to the array reference of the crate
/// `ndarray`, whose [`view`](ArrayRef::view) returns an array view.
///
/// While it lives, the memory cannot be exported to another library.
///
/// # Example
/// ```
/// use dlfield::ndarray::Ix1;
/// use dlfield::{ReadGuard, Tensor};
/// let field = Tensor::from(vec![1.0, 2.0]);
/// let guard: ReadGuard<f64, Ix1> = field.read().unwrap();
/// assert_eq!(guard.sum(), 3.0);
/// ```
pub struct ReadGuard<'t, T, D> {
    // Before the guard, as it must not be used after that is dropped.
    view: ArrayView<'t, T, D>,
    _guard: Guard<'t>,
}

/// The reference lives as long as that to the guard: a view with the tensor's lifetime would survive the guard.
///
/// ```compile_fail,E0505
/// use dlfield::Tensor;
/// use dlfield::ndarray::Ix1;
/// let field = Tensor::from(vec![1.0f64, 2.0]);
/// let guard = field.read::<f64, Ix1>().unwrap();
/// let view = guard.view();
/// drop(guard); // error: cannot move out of `guard` because it is borrowed
/// println!("{view}");
/// ```
impl<T, D: Dimension> Deref for ReadGuard<'_, T, D> {
    type Target = ArrayRef<T, D>;

    #[inline]
    fn deref(&self) -> &ArrayRef<T, D> {
        &self.view
    }
}

impl<T: fmt::Debug, D: Dimension> fmt::Debug for ReadGuard<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadGuard").field(&self.view).finish()
    }
}

impl Tensor {
    /// Returns the elements for reading. Clones, views and other threads can read them too; safe functions cannot write to
    /// them, and an export to another library, which could, is an error while the guard lives. That holds for this tensor, its
    /// clones and its views: what [`Tensor::from_managed`] makes counts exports of its own, and its caller promises that nobody
    /// writes.
    ///
    /// # Errors
    /// [`ExchangeError`](crate::ExchangeError) if the memory was exported, or imported from Python. Once all that was exported is
    /// dropped, [`Tensor::array_view_mut`] succeeds, and after it this function too. The same if 2^31 guards were forgotten, on
    /// 32-bit platforms 2^15. [`DTypeError`](crate::DTypeError) or [`LayoutError`](crate::LayoutError) for another element type or
    /// number of dimensions; also for memory that the host cannot reach, that is misaligned for `T`, or that
    /// has bools other than 0 and 1.
    ///
    /// # Example
    /// ```
    /// use dlfield::ndarray::Ix2;
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3, 4], DType::F64)).unwrap();
    /// let clone = field.clone();
    /// let elements = field.read::<f64, Ix2>().unwrap();
    /// assert_eq!(elements.dim(), (3, 4));
    /// assert_eq!(elements.sum(), clone.read::<f64, Ix2>().unwrap().sum());
    ///
    /// let error = clone.to_versioned(false).err().unwrap();
    /// assert!(error.to_string().starts_with("owner: expected memory without guards"));
    /// drop(elements);
    /// assert!(clone.to_versioned(false).is_ok());
    /// ```
    pub fn read<T: Element, D: Dimension>(&self) -> Result<ReadGuard<'_, T, D>> {
        // SAFETY: the descriptor is this tensor's.
        unsafe { self.read_as(&self.descriptor) }
    }

    /// As [`Tensor::read`], with the dimensions as in a descriptor.
    ///
    /// # Safety
    /// - The descriptor has the elements of this tensor, whose dimensions may be in another order.
    pub(crate) unsafe fn read_as<T: Element, D: Dimension>(&self, field: &Descriptor) -> Result<ReadGuard<'_, T, D>> {
        // Before the guard: it may run code of other libraries, which may export the memory.
        self.before_use_by(Executor::Host)?;
        let guard = self.owner.guard()?;
        // SAFETY: by the caller's contract, the elements are in the tensor's memory, which the tensor keeps. It is not exported while the
        // guard lives, so safe code cannot write to it.
        let view = unsafe {
            views::check::<T, D>(field)?;
            views::view(field)
        };
        Ok(ReadGuard { view, _guard: guard })
    }

    /// Copies the elements into a vector, in the order of their indices, the last one fastest. Any number of dimensions.
    ///
    /// # Errors
    /// As for [`Tensor::read`], and [`MemoryError`](crate::MemoryError).
    ///
    /// # Example
    /// ```
    /// use dlfield::Tensor;
    /// use dlfield::ndarray::array;
    /// let field = Tensor::from_array(array![[1, 2, 3], [4, 5, 6]]).unwrap();
    /// assert_eq!(field.transpose(&[1, 0]).unwrap().to_vec::<i32>().unwrap(), [1, 4, 2, 5, 3, 6]);
    /// assert_eq!(field.to_vec::<i64>().unwrap_err().to_string(), "dtype: expected int64, got int32");
    /// ```
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.before_use_by(Executor::Host)?;
        self.owner.read(|| {
            // SAFETY: the tensor keeps its memory, which is not exported, so safe code cannot write to it.
            unsafe {
                views::check::<T, IxDyn>(&self.descriptor)?;
                views::collected(&views::view::<T, IxDyn>(&self.descriptor))
            }
        })?
    }
}
