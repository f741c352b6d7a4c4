//! Dims: the labels of a field's dimensions, in index order.

use crate::error::{Count, DimsError, Tuple};
use std::fmt;
use std::sync::Arc;

/// The label of one dimension.
///
/// `I`, `J`, `K` are the axes of the grid; decimal numbers are data dimensions (the components of a vector at a grid point);
/// anything else is a user label. As these cover every text, no further kind will come.
///
/// # Example
/// ```
/// use dlfield::Dim;
/// assert_eq!(["K", "0", "cell"].map(|text| Dim::parse(text).unwrap()), [Dim::K, Dim::Data(0), Dim::Label("cell".into())]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// First horizontal axis.
    I,
    /// Second horizontal axis.
    J,
    /// Vertical axis.
    K,
    /// The data dimension with this number, written `"0"`, `"1"`, ….
    Data(u32),
    /// A user label.
    Label(Arc<str>),
}

impl Dim {
    /// Parses one label; `None` for the empty string.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dim;
    /// assert_eq!(Dim::parse("0"), Some(Dim::Data(0)));
    /// assert_eq!(Dim::parse(""), None);
    /// ```
    pub fn parse(text: &str) -> Option<Dim> {
        let number = || text.parse().ok().filter(|number: &u32| number.to_string() == text);
        match text {
            "" => None,
            "I" => Some(Dim::I),
            "J" => Some(Dim::J),
            "K" => Some(Dim::K),
            _ => Some(number().map_or_else(|| Dim::Label(text.into()), Dim::Data)),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::I => f.write_str("I"),
            Dim::J => f.write_str("J"),
            Dim::K => f.write_str("K"),
            Dim::Data(number) => write!(f, "{number}"),
            Dim::Label(label) => f.write_str(label),
        }
    }
}

/// The labels of all dimensions of a field, all different.
///
/// # Example
/// ```
/// use dlfield::Dims;
/// assert_eq!(Dims::standard(4).to_string(), "I, J, K, 0");
/// assert_eq!(Dims::parse(["K", "I"]).unwrap().position("I"), Some(1));
/// ```
#[derive(Clone)]
pub struct Dims(Repr);

/// The standard labels need no allocation, so fields without explicit dims stay cheap.
#[derive(Clone)]
enum Repr {
    Standard(usize),
    Named(Arc<[Dim]>),
}

impl Dims {
    /// Returns the default dims of a field: I, J, K, "0", "1", ….
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Dims::standard(4).to_string(), "I, J, K, 0");
    /// ```
    pub fn standard(ndim: usize) -> Dims {
        Dims(Repr::Standard(ndim))
    }

    /// Returns whether these are the default dims, in their order.
    pub(crate) fn is_standard(&self) -> bool {
        match &self.0 {
            Repr::Standard(_) => true,
            Repr::Named(labels) => {
                matches!(&**labels, [] | [Dim::I] | [Dim::I, Dim::J] | [Dim::I, Dim::J, Dim::K])
            }
        }
    }

    /// Builds dims from labels.
    ///
    /// # Errors
    /// [`DimsError`] unless all labels are different.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Dim, Dims};
    /// assert_eq!(Dims::new(vec![Dim::K, Dim::I]).unwrap().to_string(), "K, I");
    /// assert!(Dims::new(vec![Dim::K, Dim::K]).is_err());
    /// ```
    pub fn new(labels: Vec<Dim>) -> Result<Dims, DimsError> {
        for (second, label) in labels.iter().enumerate() {
            if let Some(first) = labels[..second].iter().position(|other| other == label) {
                return Err(duplicate(label, first, second));
            }
        }
        Ok(Dims(Repr::Named(labels.into())))
    }

    /// Parses dims from strings.
    ///
    /// # Errors
    /// [`DimsError`] for an empty string, and unless all labels are different.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// assert_eq!(Dims::parse(["K", "cell"]).unwrap().len(), 2);
    /// assert!(Dims::parse(["K", "K"]).is_err());
    /// ```
    pub fn parse<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Result<Dims, DimsError> {
        let labels = labels
            .into_iter()
            .enumerate()
            .map(|(axis, text)| Dim::parse(text.as_ref()).ok_or_else(|| empty_label(axis)));
        Dims::new(labels.collect::<Result<_, _>>()?)
    }

    /// Returns the number of dimensions.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Dims::standard(4).len(), 4);
    /// ```
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Standard(ndim) => *ndim,
            Repr::Named(labels) => labels.len(),
        }
    }

    /// Returns whether there are no dimensions.
    ///
    /// # Example
    /// ```
    /// assert!(dlfield::Dims::standard(0).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the labels, in index order.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Dim, Dims};
    /// assert!(Dims::standard(2).iter().eq([Dim::I, Dim::J]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Dim> + '_ {
        (0..self.len()).map(|axis| self.get(axis))
    }

    /// Returns the label of an axis.
    pub(crate) fn get(&self, axis: usize) -> Dim {
        match &self.0 {
            Repr::Named(labels) => labels[axis].clone(),
            Repr::Standard(_) => match axis {
                0 => Dim::I,
                1 => Dim::J,
                2 => Dim::K,
                _ => Dim::Data(u32::try_from(axis - 3).unwrap_or(u32::MAX)),
            },
        }
    }

    /// Returns the axis with this label, if there is one.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// assert_eq!(Dims::standard(3).position("K"), Some(2));
    /// assert_eq!(Dims::standard(3).position("x"), None);
    /// ```
    pub fn position(&self, label: &str) -> Option<usize> {
        let wanted = Dim::parse(label)?;
        self.iter().position(|dim| dim == wanted)
    }

    /// Returns the labels of the given axes, in the order given: the dims of a view. Axes that do not exist, or come again, are
    /// left out.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Dims::standard(3).select(&[2, 0]).to_string(), "K, I");
    /// ```
    pub fn select(&self, axes: &[usize]) -> Dims {
        if let Repr::Standard(_) = self.0
            && axes.len() <= self.len()
            && axes.iter().enumerate().all(|(new, old)| new == *old)
        {
            return Dims::standard(axes.len());
        }
        let kept = distinct(axes).filter(|axis| *axis < self.len());
        Dims(Repr::Named(kept.map(|axis| self.get(axis)).collect()))
    }

    /// Appends `count` data dimensions, numbered from the first number not in use.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Dims::standard(3).with_data(2).to_string(), "I, J, K, 0, 1");
    /// ```
    pub fn with_data(&self, count: usize) -> Dims {
        let used: Vec<Dim> = self.iter().collect();
        let number = |dim: &Dim| if let Dim::Data(number) = dim { Some(number.saturating_add(1)) } else { None };
        let first = used.iter().filter_map(number).max().unwrap_or(0);
        // After the last number there is, starts at the first one again.
        let numbers = (first..=u32::MAX).chain(0..first).map(Dim::Data);
        let added = numbers.filter(|dim| !used.contains(dim)).take(count);
        Dims(Repr::Named(used.iter().cloned().chain(added).collect()))
    }

    /// Returns the axes in GT4Py's order: I, J, K, then data dimensions by number; user labels last.
    ///
    /// Source: `_extract_array_infos` of GT4Py 1.1, which sorts a field's dimensions before it runs a stencil.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// assert_eq!(Dims::parse(["0", "K", "I"]).unwrap().gt4py_order(), [2, 1, 0]);
    /// ```
    pub fn gt4py_order(&self) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..self.len()).collect();
        axes.sort_unstable_by_key(|axis| match self.get(*axis) {
            Dim::I => (0, 0, *axis),
            Dim::J => (0, 1, *axis),
            Dim::K => (0, 2, *axis),
            Dim::Data(number) => (1, number, *axis),
            Dim::Label(_) => (2, 0, *axis),
        });
        axes
    }

    /// Checks that there is one label per dimension.
    ///
    /// # Errors
    /// [`DimsError`] unless the number of labels is `ndim`.
    ///
    /// # Example
    /// ```
    /// use dlfield::Dims;
    /// assert!(Dims::standard(3).check_len(3).is_ok());
    /// assert!(Dims::standard(3).check_len(2).is_err());
    /// ```
    pub fn check_len(&self, ndim: usize) -> Result<(), DimsError> {
        if self.len() == ndim { Ok(()) } else { Err(wrong_count(self.len(), ndim)) }
    }
}

impl PartialEq for Dims {
    fn eq(&self, other: &Dims) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Dims {}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, dim) in self.iter().enumerate() {
            write!(f, "{}{dim}", if axis == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cold]
fn duplicate(label: &Dim, first: usize, second: usize) -> DimsError {
    DimsError::new("dims", &"each label once", &format_args!("{:?} at {first} and at {second}", label.to_string()))
}

/// Returns the error for an empty label.
#[cold]
pub(crate) fn empty_label(axis: usize) -> DimsError {
    let expected = "'I', 'J', 'K', a decimal number or any other non-empty string";
    DimsError::new("dims", &expected, &format_args!("an empty label at {axis}"))
}

/// Returns the error for a number of labels other than that of dimensions.
#[cold]
pub(crate) fn wrong_count(got: usize, ndim: usize) -> DimsError {
    DimsError::new(
        "dims",
        &"one label for each dimension",
        &format_args!("{} for {}", Count(got, "label"), Count(ndim, "dimension")),
    )
}

/// Returns the error for axes that are not those of `ndim` dimensions.
#[cold]
pub(crate) fn wrong_axes(axes: &[usize], ndim: usize) -> DimsError {
    let expected = format_args!("each of 0 to {} once, or each label once", ndim.saturating_sub(1));
    DimsError::new("axes", &expected, &format_args!("{} for {}", Tuple(axes), Count(ndim, "dimension")))
}

/// Iterates over the axes, each where it is named first.
pub(crate) fn distinct(axes: &[usize]) -> impl Iterator<Item = usize> + '_ {
    axes.iter().enumerate().filter(|(position, axis)| !axes[..*position].contains(axis)).map(|(_, axis)| *axis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_labels_equal_named_ones() {
        let named = Dims::parse(["I", "J", "K", "0", "1"]).expect("valid");
        assert_eq!(Dims::standard(5), named);
        assert_ne!(Dims::standard(4), named);
    }

    #[test]
    fn numbers_are_data_only_in_canonical_form() {
        assert_eq!(Dim::parse("12"), Some(Dim::Data(12)));
        assert_eq!(Dim::parse("012"), Some(Dim::Label("012".into())));
        assert_eq!(Dim::parse("+1"), Some(Dim::Label("+1".into())));
        assert_eq!(Dim::parse("99999999999"), Some(Dim::Label("99999999999".into())));
    }

    #[test]
    fn wrong_labels_are_refused() {
        assert_eq!(Dims::parse(["I", ""]), Err(empty_label(1)));
        assert_eq!(Dims::parse(["J", "I", "J"]), Err(duplicate(&Dim::J, 0, 2)));
    }

    #[test]
    fn selected_labels_differ() {
        assert_eq!(Dims::standard(3).select(&[0, 0, 2, 7]).to_string(), "I, K");
        assert_eq!(Dims::standard(2).select(&[0, 1, 2]), Dims::standard(2));
        let named = Dims::parse(["x", "I"]).expect("valid");
        assert_eq!(named.select(&[1, 1, 2, 0]).to_string(), "I, x");
    }

    #[test]
    fn data_dimensions_continue_the_numbers() {
        assert_eq!(Dims::standard(2).with_data(2).to_string(), "I, J, 0, 1");
        assert_eq!(Dims::standard(4).with_data(1).to_string(), "I, J, K, 0, 1");
    }
}
