//! No documented way to ask: threads are always attached once more.

/// Whether this thread is known to be attached to the interpreter.
pub fn is_attached() -> bool {
    false
}
