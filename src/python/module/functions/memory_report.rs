//! `_memory_report`: the blocks that live, for `dlfield.memory_report`.

use pyo3::prelude::*;

use crate::tensor::{BlockInfo, memory_report};

/// Address, bytes, bytes of elements, device, dims, owners, exported.
type Row = (usize, usize, Option<usize>, String, Option<Vec<String>>, usize, bool);

/// Returns all large blocks, number and bytes of small ones, number and bytes of large ones by the allocation counters, and the
/// bytes of freed blocks that are kept.
#[pyfunction]
#[pyo3(name = "_memory_report")]
fn report(py: Python<'_>) -> (Vec<Row>, (usize, usize), (usize, usize), usize) {
    let found = py.detach(memory_report);
    let blocks = found.blocks.into_iter().map(row).collect();
    (blocks, (found.small.blocks, found.small.bytes), (found.large.blocks, found.large.bytes), found.cached_bytes)
}

fn row(block: BlockInfo) -> Row {
    let BlockInfo { address, bytes, element_bytes, device, dims, owners, exported } = block;
    let dims = dims.map(|dims| dims.iter().map(|dim| dim.to_string()).collect());
    (address, bytes, element_bytes, device.to_string(), dims, owners, exported)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(report, module)?)
}
