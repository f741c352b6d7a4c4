//! Capturing streams.

use crate::capture::{Status, exchange_mode};
use crate::codes::Outcome;
use crate::driver::{self, Handle};
use crate::entry::Out;
use crate::{export, export_on};
use std::ffi::{c_int, c_void};

const NONE: c_int = 0;
const ACTIVE: c_int = 1;
const INVALIDATED: c_int = 2;

fn info(stream: Handle, status: Out<c_int>, id: Out<u64>) -> Outcome {
    let (value, capture) = match driver::lock()?.capture_status(stream)? {
        Status::None => (NONE, 0),
        Status::Active(capture) => (ACTIVE, capture),
        Status::Invalidated(capture) => (INVALIDATED, capture),
    };
    id.put_if_wanted(capture);
    status.put(value)
}

export_on! { stream:
    fn cuStreamIsCapturing(stream: Handle, status: Out<c_int>) {
        info(stream, status, Out::new(std::ptr::null_mut()))
    }

    fn cuStreamGetCaptureInfo_v2(
        stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, dependencies: Out<*const c_void>,
        count: Out<usize>,
    ) {
        graph.put_if_wanted(0);
        dependencies.put_if_wanted(std::ptr::null());
        count.put_if_wanted(0);
        info(stream, status, id)
    }

    fn cuStreamGetCaptureInfo_v3(
        stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, dependencies: Out<*const c_void>, edges:
        Out<*const c_void>, count: Out<usize>,
    ) {
        graph.put_if_wanted(0);
        dependencies.put_if_wanted(std::ptr::null());
        edges.put_if_wanted(std::ptr::null());
        count.put_if_wanted(0);
        info(stream, status, id)
    }
}

export_on! { driver, stream:
    fn cuStreamBeginCapture_v2(stream: Handle, mode: c_int) {
        driver.begin_capture(stream, mode)
    }

    fn cuStreamEndCapture(stream: Handle, graph: Out<Handle>) {
        graph.put(0)?;
        let made = driver.end_capture(stream)?;
        graph.put(made)
    }
}

export! {
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        mode.put(exchange_mode(mode.get()?)?)
    }
}
