//! Operations on labelled fields: computes dims, shape, layout and alignment of the result.
//!
//! Array libraries compute the elements; nothing here touches memory. A [`LabelledShape`] holds dims and shape of an operand,
//! [`LabelledShape::broadcast`] joins those of all operands, and [`LabelledShape::spec`] returns what to allocate for the result.
//! [`Tensor::broadcast_to`] makes the matching views of the operands.

pub(crate) mod halos;
mod order;
mod spec;

pub use halos::check_halos;
use smallvec::SmallVec;

use crate::dims::{Dim, Dims, wrong_axes};
use crate::error::{Count, DimsError, LayoutError, LayoutErrorKind, Result};
use crate::layout::{Extents, MAX_NDIM, too_many_dims};
use crate::tensor::Tensor;

/// Dims and shape of an operand or of a result.
///
/// # Example
/// ```
/// use dlfield::arithmetic::LabelledShape;
/// use dlfield::{DType, Dims, Spec, Tensor};
/// let plane = Tensor::zeros(&Spec::new(&[2, 3], DType::F64)).unwrap();
/// let column = Tensor::zeros(&Spec::new(&[4], DType::F64).dims(Dims::parse(["K"]).unwrap())).unwrap();
/// let result = LabelledShape::broadcast(&[LabelledShape::of(&column), LabelledShape::of(&plane)]).unwrap();
/// assert_eq!((result.dims().to_string(), result.shape()), ("I, J, K".to_owned(), &[2, 3, 4][..]));
/// let sum = Tensor::empty(&result.spec(DType::F64, &[&column, &plane]).unwrap()).unwrap();
/// assert_eq!(sum.descriptor().strides(), [12, 4, 1]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelledShape {
    dims: Dims,
    shape: Extents,
    /// Axes that a reduction has kept with extent 1.
    collapsed: SmallVec<[usize; 6]>,
}

impl LabelledShape {
    /// Combines dims with a shape, one extent per label.
    ///
    /// # Errors
    /// [`DimsError`] unless there is one label per extent.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// use dlfield::arithmetic::LabelledShape;
    /// assert!(LabelledShape::new(Dims::standard(3), &[2, 3]).is_err());
    /// ```
    pub fn new(dims: Dims, shape: &[i64]) -> Result<LabelledShape, DimsError> {
        dims.check_len(shape.len())?;
        Ok(LabelledShape { dims, shape: Extents::from_slice(shape), collapsed: SmallVec::new() })
    }

    /// Returns dims and shape of a field.
    ///
    /// # Example
    /// ```
    /// use dlfield::arithmetic::LabelledShape;
    /// use dlfield::{DType, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[2, 3], DType::F64)).unwrap();
    /// assert_eq!(LabelledShape::of(&field).dims().to_string(), "I, J");
    /// ```
    pub fn of(tensor: &Tensor) -> LabelledShape {
        let shape = Extents::from_slice(tensor.descriptor().shape());
        LabelledShape { dims: tensor.dims(), shape, collapsed: SmallVec::new() }
    }

    /// Returns the dims, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// use dlfield::arithmetic::LabelledShape;
    /// assert_eq!(LabelledShape::new(Dims::standard(2), &[2, 3]).unwrap().dims(), &Dims::standard(2));
    /// ```
    pub fn dims(&self) -> &Dims {
        &self.dims
    }

    /// Returns the extents, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// use dlfield::arithmetic::LabelledShape;
    /// assert_eq!(LabelledShape::new(Dims::standard(2), &[2, 3]).unwrap().shape(), [2, 3]);
    /// ```
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns dims and shape after a reduction over `axes`: with `keep` their extents become 1, else they are removed.
    ///
    /// # Errors
    /// [`DimsError`] unless every axis is below the number of dimensions.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// use dlfield::arithmetic::LabelledShape;
    /// let field = LabelledShape::new(Dims::standard(3), &[2, 3, 4]).unwrap();
    /// assert_eq!(field.reduced(&[1], false).unwrap().dims().to_string(), "I, K");
    /// assert_eq!(field.reduced(&[1], true).unwrap().shape(), [2, 1, 4]);
    /// ```
    pub fn reduced(&self, axes: &[usize], keep: bool) -> Result<LabelledShape, DimsError> {
        let ndim = self.shape.len();
        if axes.iter().any(|axis| *axis >= ndim) {
            return Err(wrong_axes(axes, ndim));
        }
        if keep {
            let size = |axis| if axes.contains(&axis) { 1 } else { self.shape[axis] };
            let shape = (0..ndim).map(size).collect();
            return Ok(LabelledShape { dims: self.dims.clone(), shape, collapsed: SmallVec::from_slice(axes) });
        }
        let left: SmallVec<[usize; 6]> = (0..ndim).filter(|axis| !axes.contains(axis)).collect();
        let shape = left.iter().map(|axis| self.shape[*axis]).collect();
        Ok(LabelledShape { dims: self.dims.select(&left), shape, collapsed: SmallVec::new() })
    }

    /// Joins the dims of all operands, with one extent per label.
    ///
    /// The dims of the first operand that has dimensions keep their order. Each further label is inserted by the order I, J, K,
    /// user labels, "0", "1", …: before the first label that comes later in that order. An extent of 1 is repeated.
    ///
    /// # Errors
    /// [`LayoutError`] naming the label, the two operands and their extents, which must be equal or 1;
    /// that for more than [`MAX_NDIM`] labels.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// use dlfield::arithmetic::LabelledShape;
    /// let labelled = |labels: &str, shape: &[i64]| {
    ///     let labels: Vec<String> = labels.chars().map(String::from).collect();
    ///     LabelledShape::new(Dims::parse(labels).unwrap(), shape).unwrap()
    /// };
    /// let all = [labelled("KI", &[4, 2]), labelled("J", &[3]), labelled("K0", &[1, 5])];
    /// let joined = LabelledShape::broadcast(&all).unwrap();
    /// assert_eq!((joined.dims().to_string(), joined.shape()), ("J, K, I, 0".to_owned(), &[3, 4, 2, 5][..]));
    /// assert!(LabelledShape::broadcast(&[labelled("I", &[2]), labelled("I", &[3])]).is_err());
    /// ```
    pub fn broadcast(operands: &[LabelledShape]) -> Result<LabelledShape, LayoutError> {
        LabelledShape::broadcast_or(operands, |label, first, second| {
            let got = format_args!(
                "{} in operand {} and {} in operand {}",
                Count(first.1, "point"),
                first.0,
                second.1,
                second.0
            );
            LayoutError::new("shape", &format_args!("equal sizes of dimension {:?}, or 1", label.to_string()), &got)
                .with_kind(LayoutErrorKind::Mismatch)
        })
    }

    /// As [`LabelledShape::broadcast`], with the error for two operands that differ: of the label, and of the position and the
    /// extent of each.
    pub(crate) fn broadcast_or<E: From<LayoutError>>(
        operands: &[LabelledShape],
        differing: impl FnOnce(&Dim, (usize, i64), (usize, i64)) -> E,
    ) -> Result<LabelledShape, E> {
        let Some((first, others)) = operands.split_first() else {
            return Ok(LabelledShape { dims: Dims::standard(0), shape: Extents::new(), collapsed: SmallVec::new() });
        };
        let plain = |operand: &LabelledShape| LabelledShape { collapsed: SmallVec::new(), ..operand.clone() };
        if others.iter().all(|other| other.shape == first.shape && other.dims == first.dims) {
            return Ok(plain(first));
        }
        // An operand without dimensions has no order.
        let first = operands.iter().find(|operand| !operand.dims.is_empty()).unwrap_or(first);
        let mut joined = Joined::new();
        for (number, operand) in operands.iter().enumerate() {
            if let Some((label, first, second)) = joined.add(number, operand)? {
                return Err(differing(&label, first, second));
            }
        }
        // The first operand's dims may be the standard ones, which need no list.
        let same = joined.labels.len() == first.shape.len();
        let dims = if same { first.dims.clone() } else { joined.dims() };
        Ok(LabelledShape { dims, shape: joined.shape, collapsed: SmallVec::new() })
    }
}

/// The dims of the operands added so far.
struct Joined {
    labels: SmallVec<[Dim; 6]>,
    shape: Extents,
    /// The operand that each extent comes from.
    from: SmallVec<[usize; 6]>,
}

/// A label, and position and extent of two operands that differ.
type Differing = (Dim, (usize, i64), (usize, i64));

impl Joined {
    fn new() -> Joined {
        Joined { labels: SmallVec::new(), shape: Extents::new(), from: SmallVec::new() }
    }

    /// Adds an operand. Returns the first label with differing extents: with position and extent of both operands.
    fn add(&mut self, number: usize, operand: &LabelledShape) -> Result<Option<Differing>, LayoutError> {
        if self.labels.is_empty() {
            self.labels.extend(operand.dims.iter());
            self.shape.clone_from(&operand.shape);
            self.from.resize(self.labels.len(), number);
            return Ok(None);
        }
        for (label, extent) in operand.dims.iter().zip(operand.shape.iter().copied()) {
            let Some(at) = self.labels.iter().position(|known| *known == label) else {
                self.insert(number, label, extent)?;
                continue;
            };
            if self.shape[at] == 1 && extent != 1 {
                (self.shape[at], self.from[at]) = (extent, number);
            } else if extent != 1 && extent != self.shape[at] {
                return Ok(Some((label, (self.from[at], self.shape[at]), (number, extent))));
            }
        }
        Ok(None)
    }

    fn insert(&mut self, number: usize, label: Dim, extent: i64) -> Result<(), LayoutError> {
        if self.labels.len() == MAX_NDIM {
            return Err(too_many_dims(MAX_NDIM + 1));
        }
        let behind = self.labels.iter().position(|known| rank(known) > rank(&label));
        let at = behind.unwrap_or(self.labels.len());
        self.labels.insert(at, label);
        self.shape.insert(at, extent);
        self.from.insert(at, number);
        Ok(())
    }

    fn dims(&self) -> Dims {
        // Each operand's labels are unique, and only new ones are inserted.
        Dims::new(self.labels.to_vec()).unwrap_or_else(|_| Dims::standard(self.labels.len()))
    }
}

/// The sort key of a label that is inserted.
fn rank(label: &Dim) -> (u8, u32) {
    match label {
        Dim::I => (0, 0),
        Dim::J => (0, 1),
        Dim::K => (0, 2),
        Dim::Label(_) => (1, 0),
        Dim::Data(number) => (2, *number),
    }
}
