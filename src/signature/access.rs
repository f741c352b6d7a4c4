//! How a stencil uses a field.

/// How a stencil uses a field.
///
/// # Example
/// ```
/// use dlfield::Access;
/// assert_eq!([Access::Read, Access::Write, Access::ReadWrite].map(Access::writes), [false, true, true]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it without relying on its old values. Elements that it does not write keep their values.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

impl Access {
    /// Returns whether elements are written.
    ///
    /// # Example
    /// ```
    /// use dlfield::Access;
    /// assert!(Access::ReadWrite.writes() && !Access::Read.writes());
    /// ```
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}
