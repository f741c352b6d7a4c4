//! References whose drop PyO3 has deferred.

use pyo3::prelude::*;

use super::attach::release_deferred;

/// Attaches this thread in PyO3's view too, so that PyO3 drops the references that it has deferred. The module's functions
/// (`fastcall`) do not attach otherwise, because that takes longer than the shortest of them; so PyO3 defers
/// the drop of its own references, such as those of a discarded error. A function that discards one and succeeds has to call
/// this, or memory grows with each call.
pub fn drop_deferred_references() {
    Python::try_attach(release_deferred);
}
