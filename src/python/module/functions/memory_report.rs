//! `_memory_report`: the blocks that live, for `dlfield.memory_report`.

use pyo3::prelude::*;

use crate::tensor::{BlockInfo, memory_report};

/// Address, bytes, device, owners, exported, and of the field bytes, shape, dtype and dims.
type Row = (usize, usize, String, usize, bool, Option<(i64, Vec<i64>, &'static str, Vec<String>)>);

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
    let BlockInfo { address, bytes, device, field, owners, exported } = block;
    let field = field.map(|field| {
        let dims = field.dims.iter().map(|dim| dim.to_string()).collect();
        (field.nbytes, field.shape.to_vec(), field.dtype.name(), dims)
    });
    (address, bytes, device.to_string(), owners, exported, field)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(report, module)?)
}
