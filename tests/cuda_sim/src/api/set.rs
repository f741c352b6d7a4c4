//! Filling memory with one element.

use crate::clocks::{Area, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{self, Handle};
use crate::memory::Kind;
use crate::stream::Operation;
use crate::work::{Set, Work};
use crate::{export_default, export_on};

fn submit(stream: Handle, set: Set, complete: bool, what: &str) -> Outcome {
    let points = {
        let mut driver = driver::lock()?;
        let stream = driver.resolve(stream)?;
        let item = set.element.len() as u64;
        if !set.destination.is_multiple_of(item) || (set.height > 1 && set.pitch < set.width * item) {
            return Err(Failure::INVALID_VALUE);
        }
        if set.width == 0 || set.height == 0 {
            return Ok(());
        }
        if complete {
            driver.check_implicit(stream)?;
            driver.note_unsafe()?;
        }
        if driver.memory.is_pageable(set.destination) {
            return Err(Failure::INVALID_VALUE);
        }
        let area = Area::rows(set.destination, set.width * item, &[(set.height, set.pitch as i64)]);
        let on_host =
            driver.memory.find(set.destination).is_some_and(|found| !matches!(found.kind, Kind::Device | Kind::Opened));
        let point = driver.submit(stream, Operation::new(what, vec![Touch::write(area)], Work::Set(set)))?;
        driver.counters.sets += 1;
        // On device memory the call does not wait, even without a stream argument.
        if complete && on_host { vec![point] } else { vec![] }
    };
    driver::wait(&points)
}

macro_rules! sets {
    ($($type:ty: $flat:ident $flat_queued:ident $rows:ident $rows_queued:ident;)*) => {$(
        export_default! { stream:
            fn $flat(to: u64, value: $type, count: usize) {
                submit(stream, Set::rows(to, 0, &value.to_ne_bytes(), count, 1), true, stringify!($flat))
            }

            fn $rows(to: u64, pitch: usize, value: $type, width: usize, height: usize) {
                submit(stream, Set::rows(to, pitch, &value.to_ne_bytes(), width, height), true, stringify!($rows))
            }
        }
        export_on! { stream:
            fn $flat_queued(to: u64, value: $type, count: usize, stream: Handle) {
                submit(stream, Set::rows(to, 0, &value.to_ne_bytes(), count, 1), false, stringify!($flat_queued))
            }

            fn $rows_queued(to: u64, pitch: usize, value: $type, width: usize, height: usize, stream: Handle) {
                let set = Set::rows(to, pitch, &value.to_ne_bytes(), width, height);
                submit(stream, set, false, stringify!($rows_queued))
            }
        }
    )*};
}

sets! {
    u8: cuMemsetD8_v2 cuMemsetD8Async cuMemsetD2D8_v2 cuMemsetD2D8Async;
    u16: cuMemsetD16_v2 cuMemsetD16Async cuMemsetD2D16_v2 cuMemsetD2D16Async;
    u32: cuMemsetD32_v2 cuMemsetD32Async cuMemsetD2D32_v2 cuMemsetD2D32Async;
}
