//! Captured graphs.

use crate::driver::Handle;
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::c_ulonglong;

export! { driver:
    fn cuGraphDestroy(graph: Handle) {
        if driver.graphs.remove(&graph).is_none() {
            return Err(driver.bad_handle("graph", graph));
        }
        Ok(())
    }

    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        let made = driver.instantiate(graph, flags)?;
        executable.put(made)
    }

    fn cuGraphExecDestroy(executable: Handle) {
        if driver.executables.remove(&executable).is_none() {
            return Err(driver.bad_handle("executable graph", executable));
        }
        Ok(())
    }
}

export_on! { driver, stream:
    fn cuGraphLaunch(executable: Handle, stream: Handle) {
        driver.counters.graph_launches += 1;
        driver.launch_graph(executable, stream)
    }
}
