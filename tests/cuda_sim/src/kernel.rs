//! Simulated kernels: the work of this project's kernels, written for the host and found by name.
//!
//! A kernel is a line in [`KERNELS`]: its name, the sizes of its parameters, and a function that turns those into its accesses
//! and its work. The work is the same for every grid, as for kernels that loop over the grid.

use crate::clocks::{Area, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::memory::{Kind, Memory};
use crate::stream::Operation;
use crate::work::Work;
use std::sync::Arc;

const RANK: usize = 8;

type Run = dyn Fn(&Memory) -> bool + Send + Sync;

/// A kernel with its parameters: its accesses and its work.
#[derive(Clone)]
pub struct Launch {
    /// Bytes of an item, and alignment of its addresses.
    item: u64,
    touches: Vec<Touch>,
    run: Arc<Run>,
}

impl Launch {
    pub fn run(&self, memory: &Memory) -> bool {
        (self.run)(memory)
    }
}

pub struct Kernel {
    pub name: &'static str,
    /// Bytes of each parameter.
    pub parameters: &'static [usize],
    prepare: fn(&Parameters) -> Launch,
}

const POINTER: usize = 8;
const COUNT: usize = 8;
/// `count: u64, ndim: u32, pad: u32, shape, destination strides, source strides: [i64; 8]`, all in elements.
const LAYOUT: usize = 16 + 3 * 8 * RANK;
const FILL_8: &[usize] = &[POINTER, COUNT, 8];
const FILL_16: &[usize] = &[POINTER, COUNT, 16];
const FILL_STRIDED: &[usize] = &[POINTER, LAYOUT, 16];
const COPY: &[usize] = &[POINTER, POINTER, LAYOUT];

pub const KERNELS: &[Kernel] = &[
    Kernel { name: "dlfield_fill_8", parameters: FILL_8, prepare: fill::<8> },
    Kernel { name: "dlfield_fill_16", parameters: FILL_16, prepare: fill::<16> },
    Kernel { name: "dlfield_fill_strided_1", parameters: FILL_STRIDED, prepare: fill_strided::<1> },
    Kernel { name: "dlfield_fill_strided_2", parameters: FILL_STRIDED, prepare: fill_strided::<2> },
    Kernel { name: "dlfield_fill_strided_4", parameters: FILL_STRIDED, prepare: fill_strided::<4> },
    Kernel { name: "dlfield_fill_strided_8", parameters: FILL_STRIDED, prepare: fill_strided::<8> },
    Kernel { name: "dlfield_fill_strided_16", parameters: FILL_STRIDED, prepare: fill_strided::<16> },
    Kernel { name: "dlfield_copy_1", parameters: COPY, prepare: copy::<1> },
    Kernel { name: "dlfield_copy_2", parameters: COPY, prepare: copy::<2> },
    Kernel { name: "dlfield_copy_4", parameters: COPY, prepare: copy::<4> },
    Kernel { name: "dlfield_copy_8", parameters: COPY, prepare: copy::<8> },
    Kernel { name: "dlfield_copy_16", parameters: COPY, prepare: copy::<16> },
    Kernel { name: "dlfield_transpose_1", parameters: COPY, prepare: copy::<1> },
    Kernel { name: "dlfield_transpose_2", parameters: COPY, prepare: copy::<2> },
    Kernel { name: "dlfield_transpose_4", parameters: COPY, prepare: copy::<4> },
    Kernel { name: "dlfield_transpose_8", parameters: COPY, prepare: copy::<8> },
    Kernel { name: "dlfield_transpose_16", parameters: COPY, prepare: copy::<16> },
];

/// `(destination, count, value)`
fn fill<const ITEM: u64>(parameters: &Parameters) -> Launch {
    let (destination, count) = (parameters.u64(0), parameters.u64(1));
    let value = parameters.bytes(2).to_vec();
    let bytes = count.saturating_mul(ITEM);
    Launch {
        item: ITEM,
        touches: vec![Touch::write(Area::block(destination, bytes))],
        run: Arc::new(move |memory| memory.write(destination, &value.repeat(count as usize))),
    }
}

/// `(destination, layout, value)`; the first bytes of the value count.
fn fill_strided<const ITEM: u64>(parameters: &Parameters) -> Launch {
    let destination = parameters.u64(0);
    let layout = Layout::read(parameters.bytes(1));
    let value = parameters.bytes(2)[..ITEM as usize].to_vec();
    Launch {
        item: ITEM,
        touches: vec![Touch::write(layout.area(destination, ITEM, &layout.destination))],
        run: Arc::new(move |memory| {
            layout.addresses(destination, ITEM, &layout.destination).all(|at| memory.write(at, &value))
        }),
    }
}

/// `(destination, source, layout)`
fn copy<const ITEM: u64>(parameters: &Parameters) -> Launch {
    let (destination, source) = (parameters.u64(0), parameters.u64(1));
    let layout = Layout::read(parameters.bytes(2));
    Launch {
        item: ITEM,
        touches: vec![
            Touch::read(layout.area(source, ITEM, &layout.source)),
            Touch::write(layout.area(destination, ITEM, &layout.destination)),
        ],
        run: Arc::new(move |memory| {
            let to = layout.addresses(destination, ITEM, &layout.destination);
            let from = layout.addresses(source, ITEM, &layout.source);
            to.zip(from).all(|(to, from)| memory.copy(to, from, ITEM))
        }),
    }
}

/// Elements of an array in row-major order of its shape, with strides.
struct Layout {
    count: u64,
    shape: Vec<i64>,
    destination: Vec<i64>,
    source: Vec<i64>,
}

impl Layout {
    fn read(bytes: &[u8]) -> Layout {
        let rank = (word(bytes, 1) as u32 as usize).min(RANK);
        let row = |index: usize| (0..rank).map(|axis| word(bytes, 2 + index * RANK + axis) as i64).collect();
        Layout { count: word(bytes, 0), shape: row(0), destination: row(1), source: row(2) }
    }

    fn area(&self, start: u64, item: u64, strides: &[i64]) -> Area {
        let steps = self.shape.iter().zip(strides);
        let steps: Vec<_> = steps.map(|(&length, &stride)| (length as u64, stride * item as i64)).collect();
        Area::rows(start, if self.count == 0 { 0 } else { item }, &steps)
    }

    fn addresses<'a>(&'a self, start: u64, item: u64, strides: &'a [i64]) -> impl Iterator<Item = u64> + 'a {
        (0..self.count).map(move |element| {
            let mut rest = element as i64;
            let mut offset = 0;
            for (&length, &stride) in self.shape.iter().zip(strides).rev() {
                offset += rest % length * stride;
                rest /= length;
            }
            start.wrapping_add_signed(offset * item as i64)
        })
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    bytes[8 * index..][..8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The bytes of each parameter of a launch.
pub struct Parameters(pub Vec<Vec<u8>>);

impl Parameters {
    fn bytes(&self, index: usize) -> &[u8] {
        &self.0[index]
    }

    fn u64(&self, index: usize) -> u64 {
        word(self.bytes(index), 0)
    }
}

/// Loaded code: its text, if it is PTX.
pub struct Module {
    pub context: Handle,
    pub text: Option<String>,
}

pub struct Function {
    pub context: Handle,
    pub module: Handle,
    pub kernel: &'static Kernel,
}

/// Blocks in a grid, or threads in a block.
pub type Dimensions = [u32; 3];

impl Driver {
    /// Returns the handle of a kernel of [`KERNELS`] that a module contains.
    pub fn function(&mut self, module: Handle, name: &str) -> Outcome<Handle> {
        let Some(found) = self.modules.get(&module) else { return Err(self.bad_handle("module", module)) };
        let held = found.text.as_ref().is_none_or(|text| {
            let mut words = text.split(|symbol: char| symbol != '$' && symbol != '_' && !symbol.is_alphanumeric());
            words.any(|word| word == name)
        });
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name).filter(|_| held).ok_or(Failure::NOT_FOUND)?;
        let context = found.context;
        let device = self.device_of_context(context)?;
        self.check_fault(device)?;
        let known = self.functions.iter().find(|(_, old)| old.module == module && old.kernel.name == name);
        if let Some((&handle, _)) = known {
            return Ok(handle);
        }
        let handle = self.handle();
        self.functions.insert(handle, Function { context, module, kernel });
        Ok(handle)
    }

    pub fn kernel(&mut self, function: Handle) -> Outcome<(&'static Kernel, Handle)> {
        match self.functions.get(&function) {
            Some(found) => Ok((found.kernel, found.context)),
            None => Err(self.bad_handle("function", function)),
        }
    }

    pub fn launch(
        &mut self,
        function: Handle,
        grid: Dimensions,
        block: Dimensions,
        stream: Handle,
        parameters: &Parameters,
    ) -> Outcome {
        let (kernel, context) = self.kernel(function)?;
        let stream = self.resolve(stream)?;
        let in_stream = self.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?;
        let device = in_stream.device;
        if in_stream.context != context {
            self.counters.foreign_context += 1;
            self.report(format!("{} of one context launched in a stream of another", kernel.name));
            return Err(Failure::INVALID_HANDLE);
        }
        let threads = block.iter().try_fold(1u32, |product, &count| product.checked_mul(count));
        let fits = grid[0] <= i32::MAX as u32 && grid[1] <= 0xFFFF && grid[2] <= 0xFFFF && block[2] <= 64;
        if grid.contains(&0) || block.contains(&0) || threads.is_none_or(|threads| threads > 1024) || !fits {
            return Err(Failure::INVALID_VALUE);
        }
        let launch = (kernel.prepare)(parameters);
        self.counters.kernels += 1;
        let odd = |touch: &&Touch| touch.area.span().is_some_and(|(low, _)| low % launch.item != 0);
        if let Some(touch) = launch.touches.iter().find(odd) {
            self.counters.misaligned += 1;
            self.report(format!("{} touches {:?}, not aligned", kernel.name, touch.area.span()));
            self.devices[device].fault = Some(Failure::MISALIGNED_ADDRESS);
            return Ok(());
        }
        if let Err(failure) = self.check_reach(device, kernel.name, &launch.touches) {
            self.devices[device].fault = Some(failure);
            return Ok(());
        }
        let touches = launch.touches.clone();
        match self.submit(stream, Operation::new(kernel.name, touches, Work::Kernel(launch))) {
            // A failing kernel is not an error of its launch, but of later calls.
            Err(Failure::INVALID_VALUE) => self.devices[device].fault = Some(Failure::ILLEGAL_ADDRESS),
            outcome => {
                outcome?;
            }
        }
        Ok(())
    }

    /// Rejects addresses that the device cannot access at all.
    fn check_reach(&mut self, device: usize, name: &str, touches: &[Touch]) -> Outcome {
        for (low, _) in touches.iter().filter_map(|touch| touch.area.span()) {
            let owner = self.memory.find(low).filter(|found| matches!(found.kind, Kind::Device | Kind::Opened));
            let owner = owner.map(|found| (found.device, found.pool));
            if let Some((owner, pool)) = owner
                && owner != device
            {
                let access = match pool.and_then(|pool| self.pools.get(&pool)) {
                    Some(pool) => pool.access.contains(&device),
                    None => self.devices[device].peers.contains(&owner),
                };
                if !access {
                    self.counters.no_peer_access += 1;
                    self.report(format!("{name} on device {device} touches memory of device {owner}, no peer"));
                    return Err(Failure::ILLEGAL_ADDRESS);
                }
            } else if self.memory.is_pageable(low) {
                self.counters.out_of_bounds += 1;
                self.report(format!("{name} touches {low:#x}, which is pageable memory of the host"));
                return Err(Failure::ILLEGAL_ADDRESS);
            }
        }
        Ok(())
    }
}
