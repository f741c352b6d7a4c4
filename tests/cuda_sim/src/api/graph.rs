//! Captured graphs.

use crate::codes::Failure;
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::{c_char, c_uint, c_ulonglong};

export! {
    fn cuGraphCreate(graph: Out<Handle>, _flags: c_uint) {
        let mut driver = driver::lock()?;
        let handle = driver.handle();
        driver.graphs.insert(handle, Default::default());
        graph.put(handle)
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let mut driver = driver::lock()?;
        let Some(found) = driver.graphs.get(&graph) else { return Err(driver.bad_handle("graph", graph)) };
        if nodes.get().is_ok() {
            return Err(Failure::NOT_SUPPORTED);
        }
        count.put(found.nodes.len())
    }

    fn cuGraphDestroy(graph: Handle) {
        let mut driver = driver::lock()?;
        if driver.graphs.remove(&graph).is_none() {
            return Err(driver.bad_handle("graph", graph));
        }
        Ok(())
    }

    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        let made = driver::lock()?.instantiate(graph, flags)?;
        executable.put(made)
    }

    fn cuGraphInstantiate_v2(
        executable: Out<Handle>,
        graph: Handle,
        _node: Out<Handle>,
        _log: *mut c_char,
        _room: usize,
    ) {
        let made = driver::lock()?.instantiate(graph, 0)?;
        executable.put(made)
    }

    fn cuGraphExecDestroy(executable: Handle) {
        let mut driver = driver::lock()?;
        if driver.executables.remove(&executable).is_none() {
            return Err(driver.bad_handle("executable graph", executable));
        }
        Ok(())
    }
}

export_on! { stream:
    fn cuGraphUpload / cuGraphUpload_ptsz(executable: Handle, stream: Handle) {
        let mut driver = driver::lock()?;
        driver.resolve(stream)?;
        if !driver.executables.contains_key(&executable) {
            return Err(driver.bad_handle("executable graph", executable));
        }
        Ok(())
    }

    fn cuGraphLaunch / cuGraphLaunch_ptsz(executable: Handle, stream: Handle) {
        let mut driver = driver::lock()?;
        driver.counters.graph_launches += 1;
        driver.launch_graph(executable, stream)
    }
}
