//! Docstrings from doc comments, for functions that PyO3 does not define.

use std::ffi::CStr;

/// Removes the space at the start of each line of doc comments, and the end of the last line. What is left of the array is 0.
pub(super) const fn unindented<const N: usize>(text: &str) -> [u8; N] {
    let (text, mut made) = (text.as_bytes(), [0; N]);
    let (mut from, mut to, mut at_start) = (0, 0, true);
    while from + 1 < text.len() {
        if !(at_start && text[from] == b' ') {
            made[to] = text[from];
            to += 1;
        }
        at_start = text[from] == b'\n';
        from += 1;
    }
    made
}

/// The text up to the first 0, which [`unindented`] always leaves; empty without one.
pub(super) const fn of(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_until_nul(bytes) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

/// The name of a function, given with a 0 at its end.
pub(super) const fn name(text: &'static str) -> &'static CStr {
    of(text.as_bytes())
}
