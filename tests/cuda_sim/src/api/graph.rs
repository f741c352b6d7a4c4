//! Captured graphs.

use crate::driver::Handle;
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::c_ulonglong;

export! { driver:
    fn cuGraphDestroy(graph: Handle) {
        let found = driver.graphs.remove(&graph);
        driver.check_handle(found.is_some(), "graph", graph)
    }

    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        let made = driver.instantiate(graph, flags)?;
        executable.put(made)
    }

    fn cuGraphExecDestroy(executable: Handle) {
        let found = driver.executables.remove(&executable);
        driver.check_handle(found.is_some(), "executable graph", executable)
    }
}

export_on! { driver, stream:
    fn cuGraphLaunch(executable: Handle, stream: Handle) {
        driver.counters.graph_launches += 1;
        driver.launch_graph(executable, stream)
    }
}
