//! Copies of rows and boxes between devices and the host.

use crate::clocks::{Area, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{self, Driver, Handle};
use crate::memory::Memory;
use crate::stream::{Operation, Point};
use crate::work::Work;
use std::sync::Arc;

/// One side of a copy: the first byte, and the byte strides of rows and layers.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub start: u64,
    pub pitch: u64,
    pub layer: u64,
}

impl Side {
    fn row(&self, y: u64, z: u64) -> u64 {
        self.start.wrapping_add(y.wrapping_mul(self.pitch)).wrapping_add(z.wrapping_mul(self.layer))
    }
}

/// Bytes in a row, rows in a layer, layers.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

impl Extent {
    fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    fn area(&self, side: Side) -> Area {
        Area::rows(side.start, self.width, &[(self.height, side.pitch as i64), (self.depth, side.layer as i64)])
    }

    fn rows(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let height = self.height;
        (0..self.depth).flat_map(move |z| (0..height).map(move |y| (y, z)))
    }
}

#[derive(Clone, Debug)]
pub struct Copy {
    pub destination: Side,
    pub source: Side,
    pub extent: Extent,
    /// The source's bytes when the copy was queued, which replace the source.
    staged: Option<Arc<[u8]>>,
}

impl Copy {
    pub fn new(destination: Side, source: Side, extent: Extent) -> Copy {
        Copy { destination, source, extent, staged: None }
    }

    pub fn flat(destination: u64, source: u64, bytes: u64) -> Copy {
        let side = |start| Side { start, pitch: 0, layer: 0 };
        Copy::new(side(destination), side(source), Extent { width: bytes, height: 1, depth: 1 })
    }

    /// Copies, and returns whether the memory of both sides exists.
    pub fn run(&self, memory: &Memory) -> bool {
        let width = self.extent.width;
        match &self.staged {
            None => {
                self.extent.rows().all(|(y, z)| memory.copy(self.destination.row(y, z), self.source.row(y, z), width))
            }
            Some(bytes) => self
                .extent
                .rows()
                .zip(bytes.chunks_exact(width as usize))
                .all(|((y, z), row)| memory.write(self.destination.row(y, z), row)),
        }
    }

    /// Stores the source's present bytes.
    fn stage(&mut self, memory: &Memory) -> Outcome {
        let mut bytes = vec![0; self.extent.bytes() as usize];
        for ((y, z), row) in self.extent.rows().zip(bytes.chunks_exact_mut(self.extent.width as usize)) {
            if !memory.read(self.source.row(y, z), row) {
                return Err(Failure::INVALID_VALUE);
            }
        }
        self.staged = Some(bytes.into());
        Ok(())
    }
}

/// The kind of memory on each side, as the driver sees it.
#[derive(Clone, Copy)]
struct Route {
    from_device: bool,
    to_device: bool,
    from_pageable: bool,
    to_pageable: bool,
}

impl Driver {
    fn route(&self, copy: &Copy) -> Route {
        let (from, to) = (copy.source.start, copy.destination.start);
        Route {
            from_device: self.memory.device_of(from).is_some(),
            to_device: self.memory.device_of(to).is_some(),
            from_pageable: self.memory.is_pageable(from),
            to_pageable: self.memory.is_pageable(to),
        }
    }

    fn submit_copy(&mut self, stream: Handle, copy: Copy, what: &str) -> Outcome<Point> {
        let mut touches = vec![Touch::write(copy.extent.area(copy.destination))];
        if copy.staged.is_none() {
            touches.insert(0, Touch::read(copy.extent.area(copy.source)));
        }
        let route = self.route(&copy);
        let bytes = copy.extent.bytes();
        let point = self.submit(stream, Operation::new(what, touches, Work::Copy(copy)))?;
        let (copies, moved) = match (route.from_device, route.to_device) {
            (false, true) => (&mut self.counters.copies_to_device, &mut self.counters.bytes_to_device),
            (true, false) => (&mut self.counters.copies_to_host, &mut self.counters.bytes_to_host),
            (true, true) => (&mut self.counters.copies_on_device, &mut self.counters.bytes_on_device),
            (false, false) => (&mut self.counters.copies_on_host, &mut self.counters.bytes_on_host),
        };
        *copies += 1;
        *moved += bytes;
        Ok(point)
    }

    /// Returns whether there is nothing to copy; rejects overlapping rows or layers, as CUDA does.
    fn check_copy(copy: &Copy) -> Outcome<bool> {
        let Extent { width, height, depth } = copy.extent;
        for side in [copy.source, copy.destination] {
            if (height > 1 && side.pitch < width) || (depth > 1 && side.layer < side.pitch * height) {
                return Err(Failure::INVALID_VALUE);
            }
        }
        Ok(width == 0 || height == 0 || depth == 0)
    }
}

/// Queues a copy in a stream. It reads and writes pageable memory when it runs, which may be after this returns.
pub fn queue(stream: Handle, mut copy: Copy, what: &str) -> Outcome {
    let points = {
        let mut driver = driver::lock()?;
        let stream = driver.resolve(stream)?;
        if Driver::check_copy(&copy)? {
            return Ok(());
        }
        let route = driver.route(&copy);
        if route.from_pageable || route.to_pageable {
            driver.refuse_in_capture(stream)?;
        }
        if driver.staging && route.from_pageable {
            copy.stage(&driver.memory)?;
        }
        let point = driver.submit_copy(stream, copy, what)?;
        let between_host = !route.from_device && !route.to_device;
        if between_host || (driver.staging && route.to_pageable) { vec![point] } else { vec![] }
    };
    driver::wait(&points)
}

/// Copies, and returns when the host's side is done; the device's side may still be running.
pub fn complete(stream: Handle, mut copy: Copy, what: &str) -> Outcome {
    let (stream, route, before) = {
        let mut driver = driver::lock()?;
        let stream = driver.resolve(stream)?;
        if Driver::check_copy(&copy)? {
            return Ok(());
        }
        driver.check_implicit(stream)?;
        driver.refuse_in_capture(stream)?;
        driver.note_unsafe()?;
        (stream, driver.route(&copy), driver.tail(stream))
    };
    let staged = route.from_pageable && route.to_device;
    if staged {
        driver::wait(&[before])?;
    }
    let point = {
        let mut driver = driver::lock()?;
        if staged {
            copy.stage(&driver.memory)?;
        }
        driver.submit_copy(stream, copy, what)?
    };
    if staged || (route.from_device && route.to_device) { Ok(()) } else { driver::wait(&[point]) }
}
