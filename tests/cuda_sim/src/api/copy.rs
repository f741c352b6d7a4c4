//! Copies: flat, of rows, and of boxes.

use crate::codes::{Failure, Outcome};
use crate::copy::{Copy, Extent, Side, complete, queue};
use crate::driver::Handle;
use crate::entry::In;
use crate::{export_default, export_on};
use std::ffi::c_uint;

macro_rules! flat {
    ($($name:ident $queued:ident;)*) => {$(
        export_default! { stream:
            fn $name(destination: u64, source: u64, bytes: usize) {
                complete(stream, Copy::flat(destination, source, bytes as u64), stringify!($name))
            }
        }
        export_on! { stream:
            fn $queued(destination: u64, source: u64, bytes: usize, stream: Handle) {
                queue(stream, Copy::flat(destination, source, bytes as u64), stringify!($queued))
            }
        }
    )*};
}

flat! {
    cuMemcpy cuMemcpyAsync;
    cuMemcpyHtoD_v2 cuMemcpyHtoDAsync_v2;
    cuMemcpyDtoH_v2 cuMemcpyDtoHAsync_v2;
    cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2;
}

export_default! { stream:
    fn cuMemcpy2D_v2(copy: In<Rows>) {
        complete(stream, copy.get()?.copy()?, "cuMemcpy2D")
    }
}

export_on! { stream:
    fn cuMemcpyPeerAsync(to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize, stream: Handle) {
        queue(stream, Copy::flat(to, from, bytes as u64), "cuMemcpyPeerAsync")
    }

    fn cuMemcpy2DAsync_v2(copy: In<Rows>, stream: Handle) {
        queue(stream, copy.get()?.copy()?, "cuMemcpy2DAsync")
    }

    fn cuMemcpy3DAsync_v2(copy: In<Box3>, stream: Handle) {
        queue(stream, copy.get()?.copy()?, "cuMemcpy3DAsync")
    }

    fn cuMemcpy3DPeerAsync(copy: In<Box3>, stream: Handle) {
        queue(stream, copy.get()?.copy()?, "cuMemcpy3DPeerAsync")
    }
}

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const UNIFIED: c_uint = 4;

fn start(kind: c_uint, host: u64, device: u64, array: u64) -> Outcome<u64> {
    match kind {
        _ if array != 0 => Err(Failure::NOT_SUPPORTED),
        HOST => Ok(host),
        DEVICE | UNIFIED => Ok(device),
        _ => Err(Failure::INVALID_VALUE),
    }
}

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RowsSide {
    pub x: usize,
    pub y: usize,
    pub kind: c_uint,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub pitch: usize,
}

impl RowsSide {
    fn side(&self, width: usize) -> Outcome<Side> {
        let pitch = if self.pitch == 0 { width } else { self.pitch } as u64;
        let start = start(self.kind, self.host, self.device, self.array)?;
        Ok(Side { start: start + self.x as u64 + self.y as u64 * pitch, pitch, layer: 0 })
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rows {
    pub source: RowsSide,
    pub destination: RowsSide,
    pub width: usize,
    pub height: usize,
}

impl Rows {
    fn copy(&self) -> Outcome<Copy> {
        let extent = Extent { width: self.width as u64, height: self.height as u64, depth: 1 };
        Ok(Copy::new(self.destination.side(self.width)?, self.source.side(self.width)?, extent))
    }
}

/// One side of `CUDA_MEMCPY3D` and of `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BoxSide {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    pub kind: c_uint,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    /// Reserved, or a context.
    pub context: u64,
    pub pitch: usize,
    pub height: usize,
}

impl BoxSide {
    fn side(&self, width: usize, height: usize) -> Outcome<Side> {
        let pitch = if self.pitch == 0 { width } else { self.pitch } as u64;
        let layer = pitch * if self.height == 0 { height } else { self.height } as u64;
        let start = start(self.kind, self.host, self.device, self.array)?;
        Ok(Side { start: start + self.x as u64 + self.y as u64 * pitch + self.z as u64 * layer, pitch, layer })
    }
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has contexts in the reserved fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Box3 {
    pub source: BoxSide,
    pub destination: BoxSide,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

impl Box3 {
    fn copy(&self) -> Outcome<Copy> {
        let (width, height) = (self.width, self.height);
        let extent = Extent { width: width as u64, height: height as u64, depth: self.depth as u64 };
        Ok(Copy::new(self.destination.side(width, height)?, self.source.side(width, height)?, extent))
    }
}
