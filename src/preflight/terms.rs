//! What is asked of a framework, and the outcome.

use std::fmt;

/// A framework whose array a field may become.
///
/// # Example
/// ```
/// use dlfield::Target;
/// assert_eq!(Target::ALL.map(Target::name), ["numpy", "torch", "jax", "cupy"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Target {
    /// `numpy.ndarray`, on memory that the host can read.
    NumPy,
    /// `torch.Tensor`, on writable memory of the host or of CUDA, without negative strides.
    Torch,
    /// `jax.Array`, on compact memory, on the host at multiples of 64 bytes; never written to.
    Jax,
    /// `cupy.ndarray`, on writable CUDA memory.
    CuPy,
}

impl Target {
    /// All frameworks.
    pub const ALL: [Target; 4] = [Target::NumPy, Target::Torch, Target::Jax, Target::CuPy];

    /// Returns the framework with this [`Target::name`].
    ///
    /// # Example
    /// ```
    /// use dlfield::Target;
    /// assert_eq!(Target::from_name("torch"), Some(Target::Torch));
    /// assert_eq!(Target::from_name("tensorflow"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Returns the name of its Python module.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Target::Jax.name(), "jax");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Target::NumPy => "numpy",
            Target::Torch => "torch",
            Target::Jax => "jax",
            Target::CuPy => "cupy",
        }
    }

    /// Returns the name of its class of arrays.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Target::Jax.class(), "Array");
    /// ```
    pub fn class(self) -> &'static str {
        match self {
            Target::NumPy | Target::CuPy => "ndarray",
            Target::Torch => "Tensor",
            Target::Jax => "Array",
        }
    }

    /// Returns its name for use in sentences.
    pub(super) fn title(self) -> &'static str {
        match self {
            Target::NumPy => "NumPy",
            Target::Torch => "PyTorch",
            Target::Jax => "JAX",
            Target::CuPy => "CuPy",
        }
    }
}

/// How the installed version of a framework supports an element type.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Support, Target, Tensor, Verdict, preflight};
/// let field = Tensor::zeros(&Spec::new(&[4], DType::BF16)).unwrap();
/// let found = preflight(field.descriptor(), Target::NumPy, false, Support::Lacks);
/// assert_eq!(found.verdict, Verdict::Impossible);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Support {
    /// It shares memory of this type.
    Shares,
    /// It has the type, but copies the memory.
    Copies,
    /// It does not have the type.
    Lacks,
}

/// The outcome for the memory.
///
/// # Example
/// ```
/// use dlfield::Verdict;
/// assert_eq!(Verdict::ZeroCopy.to_string(), "zero-copy");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// The framework shares the memory.
    ZeroCopy,
    /// The framework gets a copy.
    Copy,
    /// The framework cannot have such an array.
    Impossible,
}

impl Verdict {
    /// Returns `"zero-copy"`, `"copy"` or `"impossible"`.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Verdict::Copy.name(), "copy");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Verdict::ZeroCopy => "zero-copy",
            Verdict::Copy => "copy",
            Verdict::Impossible => "impossible",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
