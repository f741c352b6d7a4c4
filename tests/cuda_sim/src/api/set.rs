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
    ($($type:ty: $flat:ident / $flat_thread:ident, $flat_queued:ident / $flat_queued_thread:ident,
       $rows:ident / $rows_thread:ident, $rows_queued:ident / $rows_queued_thread:ident;)*) => {$(
        export_default! { stream:
            fn $flat / $flat_thread(destination: u64, value: $type, count: usize) {
                let element = value.to_ne_bytes().to_vec();
                let set = Set { destination, pitch: 0, element, width: count as u64, height: 1 };
                submit(stream, set, true, stringify!($flat))
            }

            fn $rows / $rows_thread(destination: u64, pitch: usize, value: $type, width: usize, height: usize) {
                let element = value.to_ne_bytes().to_vec();
                let set = Set { destination, pitch: pitch as u64, element, width: width as u64, height: height as u64 };
                submit(stream, set, true, stringify!($rows))
            }
        }
        export_on! { stream:
            fn $flat_queued / $flat_queued_thread(destination: u64, value: $type, count: usize, stream: Handle) {
                let element = value.to_ne_bytes().to_vec();
                let set = Set { destination, pitch: 0, element, width: count as u64, height: 1 };
                submit(stream, set, false, stringify!($flat_queued))
            }

            fn $rows_queued / $rows_queued_thread(
                destination: u64,
                pitch: usize,
                value: $type,
                width: usize,
                height: usize,
                stream: Handle,
            ) {
                let element = value.to_ne_bytes().to_vec();
                let set = Set { destination, pitch: pitch as u64, element, width: width as u64, height: height as u64 };
                submit(stream, set, false, stringify!($rows_queued))
            }
        }
    )*};
}

sets! {
    u8: cuMemsetD8_v2 / cuMemsetD8_v2_ptds, cuMemsetD8Async / cuMemsetD8Async_ptsz,
        cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds, cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz;
    u16: cuMemsetD16_v2 / cuMemsetD16_v2_ptds, cuMemsetD16Async / cuMemsetD16Async_ptsz,
        cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds, cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz;
    u32: cuMemsetD32_v2 / cuMemsetD32_v2_ptds, cuMemsetD32Async / cuMemsetD32Async_ptsz,
        cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds, cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz;
}
