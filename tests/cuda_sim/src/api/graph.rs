//! Captured graphs.

use crate::codes::Failure;
use crate::driver::Handle;
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::{c_char, c_uint, c_ulonglong};

export! { driver:
    fn cuGraphCreate(graph: Out<Handle>, _flags: c_uint) {
        let handle = driver.handle();
        driver.graphs.insert(handle, Default::default());
        graph.put(handle)
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let Some(found) = driver.graphs.get(&graph) else { return Err(driver.bad_handle("graph", graph)) };
        if nodes.get().is_ok() {
            return Err(Failure::NOT_SUPPORTED);
        }
        count.put(found.nodes.len())
    }

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

    fn cuGraphInstantiate_v2(
        executable: Out<Handle>,
        graph: Handle,
        _node: Out<Handle>,
        _log: *mut c_char,
        _room: usize,
    ) {
        let made = driver.instantiate(graph, 0)?;
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
    fn cuGraphUpload(executable: Handle, stream: Handle) {
        driver.resolve(stream)?;
        if !driver.executables.contains_key(&executable) {
            return Err(driver.bad_handle("executable graph", executable));
        }
        Ok(())
    }

    fn cuGraphLaunch(executable: Handle, stream: Handle) {
        driver.counters.graph_launches += 1;
        driver.launch_graph(executable, stream)
    }
}
