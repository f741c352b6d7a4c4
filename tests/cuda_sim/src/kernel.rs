//! Kernels: those of this project, compiled for the host, found by name.

use crate::clocks::{Area, Touch};
use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::memory::{Kind, Memory, Place};
use crate::stream::Operation;
use crate::work::Work;

unsafe extern "C" {
    /// In device.cpp.
    fn device_run(
        kernel: u32,
        grid: *const u32,
        block: *const u32,
        to: *mut u8,
        from: *const u8,
        over: *const Grid,
        value: *const [u64; 2],
    );
}

/// A kernel with its parameters.
#[derive(Clone)]
pub struct Launch {
    kernel: &'static Kernel,
    grid: Dimensions,
    block: Dimensions,
    to: u64,
    from: u64,
    over: Grid,
    value: [u64; 2],
}

impl Launch {
    fn touches(&self) -> Vec<Touch> {
        let over = &self.over;
        let inner = |down, right| [(over.height as u64, down), (over.width as u64, right)];
        let area = |start, size, strides: &[i64], inner: [(u64, i64); 2]| {
            let outer = over.shape.iter().zip(strides).take(over.ndim as usize);
            let steps: Vec<_> = outer.map(|(&length, &stride)| (length as u64, stride)).chain(inner).collect();
            Area::rows(start, u64::from(size), &steps)
        };
        let written = area(self.to, over.to_size, &over.to, inner(over.to_down, over.to_right));
        let read = area(self.from, over.from_size, &over.from, inner(over.from_down, over.from_right));
        let read = (self.from != 0).then(|| Touch::read(read));
        read.into_iter().chain([Touch::write(written)]).collect()
    }

    /// Returns whether the addresses are multiples of what the kernel accesses at once.
    fn is_aligned(&self) -> bool {
        let over = &self.over;
        let outer = over.ndim as usize;
        let side = |start: u64, access: u32, strides: &[i64], inner: [i64; 2]| {
            let mut distances = strides.iter().take(outer).chain(&inner);
            let unit = access.max(1);
            start.is_multiple_of(u64::from(unit)) && distances.all(|distance| distance % i64::from(unit) == 0)
        };
        if self.kernel.packed > 0 {
            let size = over.to_size;
            return (over.from_down, over.to_right) == (size.into(), size.into())
                && side(self.to, self.kernel.packed, &over.to, [over.to_down, 0])
                && side(self.from, self.kernel.packed, &over.from, [over.from_right, 0]);
        }
        side(self.to, over.to_access, &over.to, [over.to_down, over.to_right])
            && side(self.from, over.from_access, &over.from, [over.from_down, over.from_right])
    }

    pub fn run(&self, memory: &Memory) -> bool {
        let place = |address| match memory.place(address) {
            Place::Known(place) => Some(place),
            Place::Pageable(_) if address == 0 => Some(std::ptr::null_mut()),
            _ => None,
        };
        let (Some(to), Some(from)) = (place(self.to), place(self.from)) else { return false };
        let (grid, block) = (self.grid.as_ptr(), self.block.as_ptr());
        // SAFETY: queueing has checked that the accesses stay inside one block of memory on each side, which is in one piece on the
        // host too; the driver is locked, so nothing else runs.
        unsafe { device_run(self.kernel.number, grid, block, to, from, &self.over, &self.value) };
        true
    }
}

pub struct Kernel {
    pub name: &'static str,
    number: u32,
    /// Bytes that a transpose accesses at once; 0 for the others.
    packed: u32,
    /// Bytes of each parameter.
    pub parameters: &'static [usize],
}

const POINTER: usize = 8;
const GRID: usize = size_of::<Grid>();
const TRANSPOSE: &[usize] = &[POINTER, POINTER, GRID];

pub const KERNELS: &[Kernel] = &[
    Kernel { name: "dlfield_copy", number: u32::MAX, packed: 0, parameters: &[POINTER, POINTER, GRID, 16] },
    Kernel { name: "dlfield_transpose", number: 0, packed: 0, parameters: TRANSPOSE },
    Kernel { name: "dlfield_transpose_1", number: 1, packed: 4, parameters: TRANSPOSE },
    Kernel { name: "dlfield_transpose_2", number: 2, packed: 8, parameters: TRANSPOSE },
    Kernel { name: "dlfield_transpose_4", number: 4, packed: 8, parameters: TRANSPOSE },
];

/// `Grid` in kernels.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Grid {
    shape: [i64; 7],
    to: [i64; 7],
    from: [i64; 7],
    width: i64,
    to_right: i64,
    from_right: i64,
    height: i64,
    to_down: i64,
    from_down: i64,
    ndim: u32,
    across: u32,
    count: u32,
    to_size: u32,
    from_size: u32,
    to_access: u32,
    from_access: u32,
    to_kind: u32,
    from_kind: u32,
}

impl Grid {
    fn read(bytes: &[u8]) -> Grid {
        assert_eq!(bytes.len(), GRID);
        // SAFETY: so many bytes, of numbers that may have any bits.
        unsafe { bytes.as_ptr().cast::<Grid>().read_unaligned() }
    }
}

fn word(bytes: &[u8], index: usize) -> u64 {
    bytes[8 * index..][..8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The bytes of each parameter of a launch.
pub struct Parameters(pub Vec<Vec<u8>>);

impl Parameters {
    fn u64(&self, index: usize) -> u64 {
        word(&self.0[index], 0)
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
        let value = parameters.0.get(3).map_or([0; 2], |bytes| [word(bytes, 0), word(bytes, 1)]);
        let (to, from, over) = (parameters.u64(0), parameters.u64(1), Grid::read(&parameters.0[2]));
        let launch = Launch { kernel, grid, block, to, from, over, value };
        let touches = launch.touches();
        self.counters.kernels += 1;
        if !launch.is_aligned() {
            self.counters.misaligned += 1;
            self.report(format!("{} on {to:#x} and {from:#x}, not aligned", kernel.name));
            self.devices[device].fault = Some(Failure::MISALIGNED_ADDRESS);
            return Ok(());
        }
        if let Err(failure) = self.check_reach(device, kernel.name, &touches) {
            self.devices[device].fault = Some(failure);
            return Ok(());
        }
        match self.submit(stream, Operation::new(kernel.name, touches, Work::Kernel(Box::new(launch)))) {
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
