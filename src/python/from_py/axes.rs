//! The axes of array arguments: by position, or by label.

use ndarray::{Dimension, Ix1, Ix2, Ix3};

/// How an argument indexes its array: by label, as [`IJK`] does, or by position, as `ndarray`'s `Ix0` to `Ix6` and `IxDyn` do.
///
/// By label, the view has the dimensions in the order of the type; the argument may have them in any order. An array with other labels is
/// rejected; one without labels, such as a NumPy array, is taken to be in this order. By position, labels are ignored: a field with
/// the dims K, J, I is indexed in that order.
///
/// # Example
/// Labels of one's own, for fields and for arrays of xarray:
/// ```
/// use dlfield::ndarray::Ix2;
/// use dlfield::python::{Axes, In};
/// use pyo3::prelude::*;
///
/// enum LatLon {}
///
/// impl Axes for LatLon {
///     type Dim = Ix2;
///     const LABELS: Option<&'static [&'static str]> = Some(&["lat", "lon"]);
/// }
///
/// /// The mean of each circle of latitude; the argument may have the dims lon, lat.
/// #[pyfunction]
/// fn zonal_means(t: In<'_, f64, LatLon>) -> Vec<f64> {
///     let t = t.array();
///     t.rows().into_iter().map(|circle| circle.sum() / circle.len() as f64).collect()
/// }
/// ```
pub trait Axes {
    /// The number of dimensions of the views.
    type Dim: Dimension;

    /// The label of each dimension, in the order of the views; `None` for dimensions by position.
    const LABELS: Option<&'static [&'static str]>;
}

impl<D: Dimension> Axes for D {
    type Dim = D;

    const LABELS: Option<&'static [&'static str]> = None;
}

macro_rules! labelled {
    ($($name:ident: $dim:ident = [$($label:literal),+] in $text:literal),+ $(,)?) => {
        $(
            #[doc = $text]
            ///
            /// # Example
            /// ```
            #[doc = concat!("use dlfield::python::{", stringify!($name), ", In};")]
            /// use pyo3::prelude::*;
            ///
            /// #[pyfunction]
            #[doc = concat!("fn total(x: In<'_, f64, ", stringify!($name), ">) -> f64 {")]
            ///     x.array().sum()
            /// }
            /// ```
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl Axes for $name {
                type Dim = $dim;

                const LABELS: Option<&'static [&'static str]> = Some(&[$($label),+]);
            }
        )+
    };
}

labelled! {
    I: Ix1 = ["I"] in "The axis I.",
    J: Ix1 = ["J"] in "The axis J.",
    K: Ix1 = ["K"] in "The axis K: vertical profiles.",
    IJ: Ix2 = ["I", "J"] in "The axes I, J, by label: horizontal fields.",
    IK: Ix2 = ["I", "K"] in "The axes I, K, by label.",
    JK: Ix2 = ["J", "K"] in "The axes J, K, by label.",
    IJK: Ix3 = ["I", "J", "K"] in "The axes I, J, K, by label.",
}
