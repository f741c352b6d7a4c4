//! Errors: what went wrong, and what the caller can do about it.
//!
//! - Each layer has one error type, an [`ErrorOf`] its kind, and a kind for each thing that a caller can do about it, not one for
//!   each check: code matches on [`ErrorOf::kind`], people read the message.
//! - The sentence stands next to the check that fails. It has four parts, the argument by the name that the caller typed, what is
//!   expected, what was found and how to fix it; only the `Display` of [`ErrorOf`] puts them together:
//!   `shape: expected extents of 0 or more, got -1 at axis 0`.
//! - A sentence names no function of Python, save where the check is in `python`: the same error is for callers in Rust.
//! - An error is one pointer, made in a cold function: a longer message makes results neither larger nor slower.
//! - [`Error`] holds the error of any layer. Only functions that call several layers return it, and `python::convert::errors` maps
//!   it to the classes of Python's exceptions.
//! - This module imports no other one: errors hold texts and numbers, not the values that they are about.

use std::fmt::{self, Display};

/// The error of one layer: what kind it is of, and what it says.
///
/// # Example
/// ```
/// use dlfield::{LayoutError, LayoutErrorKind};
///
/// let error = LayoutError::new("shape", &"extents of 0 or more", &-1).with_fix(&"reverse the range");
/// assert_eq!(error.to_string(), "shape: expected extents of 0 or more, got -1; reverse the range");
/// assert_eq!((error.kind(), error.argument()), (LayoutErrorKind::Invalid, "shape"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorOf<Kind>(Box<Parts<Kind>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts<Kind> {
    kind: Kind,
    argument: String,
    /// Empty where `got` says what is wrong, such as "the memory is read-only".
    expected: String,
    got: String,
    /// Empty where what is expected says how to fix it.
    fix: String,
}

impl<Kind: Copy + Default> ErrorOf<Kind> {
    /// Makes an error of the default kind, an invalid argument: "argument: expected X, got Y".
    ///
    /// # Example
    /// ```
    /// let error = dlfield::LayoutError::new("halo", &"0 or more", &-1);
    /// assert_eq!(error.to_string(), "halo: expected 0 or more, got -1");
    /// ```
    #[cold]
    pub fn new(argument: &str, expected: &dyn Display, got: &dyn Display) -> ErrorOf<Kind> {
        let (argument, expected, got) = (argument.to_owned(), expected.to_string(), got.to_string());
        ErrorOf(Box::new(Parts { kind: Kind::default(), argument, expected, got, fix: String::new() }))
    }

    /// Makes an error of the default kind from a sentence that says what is wrong: "argument: sentence".
    #[cold]
    pub(crate) fn from_sentence(argument: &str, sentence: &dyn Display) -> ErrorOf<Kind> {
        ErrorOf::new(argument, &"", sentence)
    }

    /// Sets the kind.
    #[cold]
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: Kind) -> ErrorOf<Kind> {
        self.0.kind = kind;
        self
    }

    /// Sets how to fix the error, in words that follow a semicolon.
    ///
    /// # Example
    /// ```
    /// let error = dlfield::LayoutError::new("halo", &"0 or more", &-1).with_fix(&"pass 1");
    /// assert!(error.to_string().ends_with("got -1; pass 1"));
    /// ```
    #[cold]
    #[must_use]
    pub fn with_fix(mut self, fix: &dyn Display) -> ErrorOf<Kind> {
        self.0.fix = fix.to_string();
        self
    }

    /// Puts the part of a call that the error is about before the argument, such as a field's name.
    #[cold]
    #[must_use]
    pub(crate) fn within(mut self, part: &dyn Display) -> ErrorOf<Kind> {
        self.0.argument = format!("{part}: {}", self.0.argument);
        self
    }

    /// Returns the kind, by which code can decide what to do.
    ///
    /// # Example
    /// ```
    /// let error = dlfield::LayoutError::new("halo", &"0 or more", &-1);
    /// assert_eq!(error.kind(), dlfield::LayoutErrorKind::Invalid);
    /// ```
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the argument that the error is about, by the name that the caller typed.
    ///
    /// # Example
    /// ```
    /// let error = dlfield::LayoutError::new("halo", &"0 or more", &-1);
    /// assert_eq!(error.argument(), "halo");
    /// ```
    pub fn argument(&self) -> &str {
        &self.0.argument
    }

    /// Returns what was found.
    ///
    /// # Example
    /// ```
    /// let error = dlfield::LayoutError::new("halo", &"0 or more", &-1);
    /// assert_eq!(error.got(), "-1");
    /// ```
    pub fn got(&self) -> &str {
        &self.0.got
    }
}

/// Shows a number of things, whose word is in the singular: `1 dimension`, `2 entries`.
pub(crate) struct Count<N>(pub(crate) N, pub(crate) &'static str);

impl<N: Display + PartialEq + From<u8>> Display for Count<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, word) = self;
        if *number == N::from(1) {
            return write!(f, "{number} {word}");
        }
        match word.strip_suffix('y') {
            Some(stem) => write!(f, "{number} {stem}ies"),
            None => write!(f, "{number} {word}s"),
        }
    }
}

impl<Kind> Display for ErrorOf<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { argument, expected, got, fix, .. } = &*self.0;
        let (before, between) = if expected.is_empty() { ("", "") } else { ("expected ", ", got ") };
        write!(f, "{argument}: {before}{expected}{between}{got}")?;
        if fix.is_empty() { Ok(()) } else { write!(f, "; {fix}") }
    }
}

impl<Kind: fmt::Debug> std::error::Error for ErrorOf<Kind> {}

/// Declares the error type of a layer and its kinds, the first of which is the default.
macro_rules! layer {
    (
        $(#[$error_doc:meta])* $error:ident;
        $(#[$kind_doc:meta])* $kind:ident { $(#[$first_doc:meta])* $first:ident, $($(#[$doc:meta])* $variant:ident,)* }
    ) => {
        $(#[$error_doc])*
        pub type $error = ErrorOf<$kind>;

        $(#[$kind_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $kind { $(#[$first_doc])* #[default] $first, $($(#[$doc])* $variant,)* }
    };
}

layer! {
    /// An invalid shape, layout, alignment, halo, origin or preset.
    LayoutError;
    /// What a caller can do about a [`LayoutError`].
    ///
    /// # Example
    /// ```
    /// let error = "rows".parse::<dlfield::Padding>().unwrap_err();
    /// assert_eq!(error.kind(), dlfield::LayoutErrorKind::Invalid);
    /// ```
    LayoutErrorKind {
        /// Correct the argument.
        Invalid,
        /// Ask for less: sizes or addresses overflow.
        TooLarge,
        /// Pass arguments that fit each other, or what a function or a stencil expects.
        Mismatch,
        /// Pass a copy: the elements are not laid out or aligned as needed.
        NeedsCopy,
        /// Pass a copy: elements that are written share memory with each other.
        Overlap,
    }
}

layer! {
    /// An invalid or unsupported element type.
    DTypeError;
    /// What a caller can do about a [`DTypeError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, DTypeErrorKind, Error, Spec, Tensor};
    /// let Err(Error::DType(error)) = Tensor::full(&Spec::new(&[3], DType::F64), 0i32) else { unreachable!() };
    /// assert_eq!(error.kind(), DTypeErrorKind::Mismatch);
    /// ```
    DTypeErrorKind {
        /// Correct the description of the elements, or the elements.
        Invalid,
        /// Convert the elements: their type cannot be shared.
        Unsupported,
        /// Convert the elements to the native byte order.
        ByteOrder,
        /// Pass elements of the expected type.
        Mismatch,
        /// Convert the elements explicitly: the cast may lose more than precision.
        Cast,
        /// Cast on the host, before or after the copy.
        CastOnDevice,
    }
}

layer! {
    /// Invalid dims.
    DimsError;
    /// What a caller can do about a [`DimsError`].
    ///
    /// # Example
    /// ```
    /// let error = dlfield::Dims::parse(["I", "I"]).unwrap_err();
    /// assert_eq!(error.kind(), dlfield::DimsErrorKind::Invalid);
    /// ```
    DimsErrorKind {
        /// Correct the labels or axes.
        Invalid,
        /// Pass a field with the expected labels.
        Mismatch,
    }
}

layer! {
    /// An invalid or unavailable device or stream.
    DeviceError;
    /// What a caller can do about a [`DeviceError`].
    ///
    /// # Example
    /// ```
    /// let error = "tpu".parse::<dlfield::Device>().unwrap_err();
    /// assert_eq!(error.kind(), dlfield::DeviceErrorKind::Invalid);
    /// ```
    DeviceErrorKind {
        /// Correct the device.
        Invalid,
        /// Use another device: dlfield does not support this one.
        Unsupported,
        /// Copy the memory to the expected device.
        Mismatch,
        /// Install or repair CUDA: the device cannot be used.
        Unavailable,
        /// Look up the code of CUDA's driver, a function of which failed.
        Driver,
        /// Pass a stream of the device.
        Stream,
        /// Do it before or after the graph capture.
        Capturing,
    }
}

layer! {
    /// An invalid import from another library, or an invalid export request.
    ExchangeError;
    /// What a caller can do about an [`ExchangeError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Descriptor, Device, ExchangeErrorKind};
    /// let error = Descriptor::new(std::ptr::null_mut(), Device::CPU, DType::F64, false, &[3], &[1]).unwrap_err();
    /// assert_eq!(error.kind(), ExchangeErrorKind::Invalid);
    /// ```
    ExchangeErrorKind {
        /// Correct what was exported or requested.
        Invalid,
        /// Use another protocol, or ask the library for another array: the protocol cannot express this one.
        Unsupported,
        /// Write to a copy, or ask for read-only memory.
        ReadOnly,
        /// Allow a copy.
        NeedsCopy,
        /// Wait until the call or the guard that uses the memory has ended, or pass a copy.
        Borrowed,
        /// Import the object again: its memory has changed.
        Moved,
        /// Drop the other owners, or take a copy.
        Shared,
        /// Take a copy before the export: others may write to the memory.
        Exported,
    }
}

layer! {
    /// An invalid index.
    IndexError;
    /// What a caller can do about an [`IndexError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Error, Index, IndexErrorKind, Spec, Tensor};
    /// let field = Tensor::zeros(&Spec::new(&[3], DType::F64)).unwrap();
    /// let Err(Error::Index(error)) = field.view(&[Index::At(3)]) else { unreachable!() };
    /// assert_eq!(error.kind(), IndexErrorKind::OutOfBounds);
    /// ```
    IndexErrorKind {
        /// Correct the position.
        OutOfBounds,
        /// Pass fewer entries.
        TooMany,
    }
}

layer! {
    /// Arguments of a stencil that do not fit its signature, or each other.
    SignatureError;
    /// What a caller can do about a [`SignatureError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Dims, Error, FieldSpec, Signature, SignatureErrorKind};
    /// let spec = FieldSpec::new(DType::F64, Dims::standard(2));
    /// let Err(Error::Signature(error)) = Signature::new([("inp", spec.clone()), ("inp", spec)]) else { unreachable!() };
    /// assert_eq!(error.kind(), SignatureErrorKind::Fields);
    /// ```
    SignatureErrorKind {
        /// Pass the fields of the signature, each once.
        Fields,
        /// Pass fields that agree on their sizes.
        Sizes,
        /// Pass fields that do not overlap.
        Overlap,
    }
}

layer! {
    /// A failed allocation.
    MemoryError;
    /// What a caller can do about a [`MemoryError`].
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Error, MemoryErrorKind, Spec, Tensor};
    /// if let Err(Error::Memory(error)) = Tensor::zeros(&Spec::new(&[1 << 55], DType::U8)) {
    ///     assert_eq!(error.kind(), MemoryErrorKind::OutOfMemory);
    /// }
    /// ```
    MemoryErrorKind {
        /// Ask for less, or free memory first.
        OutOfMemory,
    }
}

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid shape, layout, alignment or preset.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An invalid or unsupported element type.
    #[error(transparent)]
    DType(#[from] DTypeError),
    /// Invalid dims.
    #[error(transparent)]
    Dims(#[from] DimsError),
    /// An invalid or unavailable device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An invalid import from another library, or an invalid export request.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// An invalid index or list of axes.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Invalid arguments of a stencil.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A failed allocation.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Work that a signal has stopped, such as Ctrl+C: what it was writing is written in part.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Adds the name of the argument that the error is about.
    ///
    /// # Example
    /// ```
    /// use dlfield::{DType, Spec, Tensor};
    /// let error = Tensor::zeros(&Spec::new(&[-1], DType::F64)).map_err(|error| error.in_argument("out")).unwrap_err();
    /// assert_eq!(error.to_string(), "argument \"out\": shape: expected extents of 0 or more, got -1 at axis 0");
    /// ```
    #[cold]
    #[must_use]
    pub fn in_argument(self, argument: &str) -> Error {
        self.within(&format_args!("argument {argument:?}"))
    }

    /// Adds the name of the field of a stencil that the error is about.
    #[cold]
    #[must_use]
    pub(crate) fn in_field(self, field: &str) -> Error {
        self.within(&format_args!("field {field:?}"))
    }

    fn within(self, part: &dyn Display) -> Error {
        match self {
            Error::Layout(error) => error.within(part).into(),
            Error::DType(error) => error.within(part).into(),
            Error::Dims(error) => error.within(part).into(),
            Error::Device(error) => error.within(part).into(),
            Error::Exchange(error) => error.within(part).into(),
            Error::Index(error) => error.within(part).into(),
            Error::Signature(error) => error.within(part).into(),
            Error::Memory(error) => error.within(part).into(),
            Error::Interrupted => self,
        }
    }
}

/// A result whose error is this crate's [`Error`] by default.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Tensor};
///
/// fn plane(extent: i64) -> dlfield::Result<Tensor> {
///     Tensor::zeros(&Spec::new(&[extent, extent], DType::F64))
/// }
///
/// assert!(plane(4).is_ok() && plane(-4).is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Numbers or names as Python prints a tuple.
pub struct Tuple<'a, T>(pub &'a [T]);

impl<T: Display> Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (position, item) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}
