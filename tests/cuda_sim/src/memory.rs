//! Memory of the devices, and host memory that the driver knows.
//!
//! Device addresses are a range without access, so a host that dereferences one crashes as it would with a GPU. The bytes are
//! in a twin of that range, at a constant distance. Addresses are never reused.

use crate::clocks::History;
use crate::codes::{Failure, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Addresses that one device has for the life of the process; this reserves no memory.
const RANGE: u64 = 1 << 37;
/// The memory that a device reports.
pub const TOTAL: u64 = 4 << 30;
/// Addresses are multiples of 256, as CUDA promises, and not of more, as it does not promise that.
const ALIGNMENT: u64 = 256;
const PAGE: u64 = 4096;
/// Above this many bytes, freed memory returns to the system instead of being overwritten.
const OVERWRITTEN: u64 = 1 << 20;

const FRESH: u8 = 0xCD;
const FREED: u8 = 0xDD;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    /// Memory of a device that another process has allocated.
    Opened,
    Managed,
    Pinned,
    Registered,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// The address is known from a capture, but there is no memory yet.
    Unborn,
    Live,
    /// The free is queued in a stream.
    Leaving,
    Freed,
}

#[derive(Debug)]
pub struct Allocation {
    pub base: u64,
    pub size: u64,
    pub kind: Kind,
    pub device: usize,
    pub life: Life,
    pub pool: Option<u64>,
    pub number: u64,
    pub history: History,
}

/// The location of the bytes of an address.
#[derive(Clone, Copy)]
pub enum Place {
    /// Memory of the double, which exists.
    Known(*mut u8),
    /// Host memory that the driver was not told about; it may be unmapped.
    Pageable(*mut u8),
    /// Freed memory of the double.
    Gone,
}

struct Range {
    base: u64,
    twin: u64,
    taken: u64,
}

#[derive(Default)]
pub struct Memory {
    ranges: Vec<Range>,
    pub allocations: BTreeMap<u64, Allocation>,
    /// The addresses of those that are not freed.
    not_freed: BTreeSet<u64>,
    count: u64,
}

impl Memory {
    /// Reserves addresses for `devices` devices; `None` if the system does not have them.
    pub fn new(devices: usize) -> Option<Memory> {
        let range = |_| {
            let base = reserve(RANGE, libc::PROT_NONE)?;
            let twin = reserve(RANGE, libc::PROT_READ | libc::PROT_WRITE)?;
            Some(Range { base, twin, taken: PAGE })
        };
        let ranges = (0..devices).map(range).collect::<Option<_>>()?;
        Some(Memory { ranges, ..Memory::default() })
    }

    /// Returns the allocations that are not freed, without a look at all that ever were.
    pub fn not_freed(&self) -> impl Iterator<Item = &Allocation> + Clone {
        self.not_freed.iter().filter_map(|base| self.allocations.get(base))
    }

    /// Forgets the accesses of streams whose work is known to be done.
    pub fn forget(&mut self, streams: &BTreeSet<u64>) {
        for base in &self.not_freed {
            if let Some(found) = self.allocations.get_mut(base) {
                found.history.forget(streams);
            }
        }
    }

    pub fn device_of(&self, address: u64) -> Option<usize> {
        self.ranges.iter().position(|range| (range.base..range.base + RANGE).contains(&address))
    }

    /// Returns the allocation that contains this address, freed ones included.
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        (address < allocation.base + allocation.size).then_some(allocation)
    }

    pub fn find_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (_, allocation) = self.allocations.range_mut(..=address).next_back()?;
        (address < allocation.base + allocation.size).then_some(allocation)
    }

    /// Returns the allocation at this address that programs may still query.
    pub fn known(&self, address: u64) -> Option<&Allocation> {
        self.find(address).filter(|found| matches!(found.life, Life::Live | Life::Leaving))
    }

    pub fn is_pageable(&self, address: u64) -> bool {
        self.device_of(address).is_none() && self.find(address).is_none()
    }

    pub fn place(&self, address: u64) -> Place {
        if let Some(device) = self.device_of(address) {
            let range = &self.ranges[device];
            return Place::Known((address - range.base + range.twin) as *mut u8);
        }
        match self.find(address) {
            None => Place::Pageable(address as *mut u8),
            Some(found) if found.life == Life::Freed => Place::Gone,
            Some(_) => Place::Known(address as *mut u8),
        }
    }

    /// Copies, and returns whether the memory of both sides exists.
    pub fn copy(&self, destination: u64, source: u64, bytes: u64) -> bool {
        copy(self.place(destination), self.place(source), bytes as usize)
    }

    /// Copies `bytes`, which are not device memory, to an address, and returns whether its memory exists.
    pub fn write(&self, destination: u64, bytes: &[u8]) -> bool {
        copy(self.place(destination), Place::Known(bytes.as_ptr().cast_mut()), bytes.len())
    }

    /// Copies from an address, and returns whether its memory exists.
    pub fn read(&self, source: u64, bytes: &mut [u8]) -> bool {
        copy(Place::Known(bytes.as_mut_ptr()), self.place(source), bytes.len())
    }

    /// Takes new addresses and fills the memory, unless its life starts later.
    pub fn allocate(&mut self, device: usize, size: u64, kind: Kind, pool: Option<u64>, life: Life) -> Outcome<u64> {
        let base = match kind {
            Kind::Device => {
                let range = &mut self.ranges[device];
                // Memory outside pools may be shared with other processes, in whole pages.
                let unit = if pool.is_some() { 2 * ALIGNMENT } else { PAGE };
                let start = range.taken.next_multiple_of(unit) + ALIGNMENT;
                if start > RANGE || size > RANGE - start {
                    return Err(Failure::OUT_OF_MEMORY);
                }
                // A gap follows each block, so an overrun never reaches a neighbour.
                range.taken = (start + size).next_multiple_of(unit) + 2 * ALIGNMENT;
                range.base + start
            }
            Kind::Managed | Kind::Pinned => reserve(size.next_multiple_of(PAGE), libc::PROT_READ | libc::PROT_WRITE)
                .ok_or(Failure::OUT_OF_MEMORY)?,
            Kind::Opened | Kind::Registered => return Err(Failure::INVALID_VALUE),
        };
        self.add(base, size, kind, device, pool, life);
        if life == Life::Live {
            self.fill(base, size, FRESH);
        }
        Ok(base)
    }

    /// Moves the memory of an allocation into an empty file, from which other processes map it. Returns whether the system did.
    pub fn move_to_file(&self, base: u64, size: u64, file: &File) -> bool {
        let (first, bytes) = pages(base, size);
        let Place::Known(start) = self.place(first) else { return false };
        // SAFETY: whole pages of one allocation, which nobody else uses while the driver is locked.
        let content = unsafe { std::slice::from_raw_parts(start, bytes as usize) };
        file.write_all_at(content, 0).is_ok() && map(start, bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// Gives the memory that another process has moved into a file a new address on a device.
    pub fn open_file(&mut self, device: usize, offset: u64, size: u64, file: &File) -> Outcome<u64> {
        let range = &mut self.ranges[device];
        let (start, bytes) = (range.taken.next_multiple_of(PAGE), (offset + size).next_multiple_of(PAGE));
        if start > RANGE || bytes > RANGE - start {
            return Err(Failure::OUT_OF_MEMORY);
        }
        if !map((range.twin + start) as *mut u8, bytes, libc::MAP_SHARED, file.as_raw_fd()) {
            return Err(Failure::MAP_FAILED);
        }
        range.taken = start + bytes + 2 * ALIGNMENT;
        let base = range.base + start + offset;
        self.add(base, size, Kind::Opened, device, None, Life::Live);
        Ok(base)
    }

    /// Registers host memory.
    pub fn register(&mut self, base: u64, size: u64, device: usize) -> Outcome {
        let before = self.allocations.range(..base + size).next_back();
        if before.is_some_and(|(_, found)| found.base + found.size > base && found.life != Life::Freed) {
            return Err(Failure::HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.add(base, size, Kind::Registered, device, None, Life::Live);
        Ok(())
    }

    fn add(&mut self, base: u64, size: u64, kind: Kind, device: usize, pool: Option<u64>, life: Life) {
        self.count += 1;
        let number = self.count;
        let history = History::default();
        self.not_freed.insert(base);
        self.allocations.insert(base, Allocation { base, size, kind, device, life, pool, number, history });
    }

    /// Fills the memory of a graph's allocation when its life starts.
    pub fn refresh(&mut self, base: u64) {
        if let Some(found) = self.allocations.get(&base) {
            self.fill(base, found.size, FRESH);
        }
    }

    /// Ends an allocation: overwrites it, and never reuses its addresses.
    pub fn release(&mut self, base: u64) {
        let Some(found) = self.allocations.get_mut(&base) else { return };
        found.life = Life::Freed;
        self.not_freed.remove(&base);
        found.history.clear();
        let (kind, size) = (found.kind, found.size);
        match kind {
            Kind::Device => {
                self.fill(base, size.min(OVERWRITTEN), FREED);
                if size > OVERWRITTEN
                    && let Place::Known(start) = self.place(base)
                {
                    let low = (start as u64 + OVERWRITTEN).next_multiple_of(PAGE);
                    give_back(low, (start as u64 + size).saturating_sub(low) / PAGE * PAGE);
                }
            }
            Kind::Managed | Kind::Pinned => {
                let bytes = size.next_multiple_of(PAGE);
                give_back(base, bytes);
                // SAFETY: these pages were mapped for this allocation alone.
                unsafe { libc::mprotect(base as *mut c_void, bytes as usize, libc::PROT_NONE) };
            }
            Kind::Opened => {
                // The bytes stay those of the other process.
                let (first, bytes) = pages(base, size);
                if let Place::Known(start) = self.place(first) {
                    map(start, bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1);
                }
            }
            Kind::Registered => {
                self.allocations.remove(&base);
            }
        }
    }

    fn fill(&self, base: u64, size: u64, byte: u8) {
        if let Place::Known(start) = self.place(base) {
            // SAFETY: the bytes belong to this allocation.
            unsafe { std::ptr::write_bytes(start, byte, size as usize) };
        }
    }
}

fn reserve(bytes: u64, protection: i32) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the system chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start as u64)
}

/// Returns the first of the pages with an allocation, and their bytes.
pub fn pages(base: u64, size: u64) -> (u64, u64) {
    let first = base / PAGE * PAGE;
    (first, (base + size).next_multiple_of(PAGE) - first)
}

/// Replaces pages of the double; returns whether the system did.
fn map(start: *mut u8, bytes: u64, flags: i32, file: i32) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: whole pages of the double's own memory, which only the locked driver uses.
    let made = unsafe { libc::mmap(start.cast(), bytes as usize, protection, flags | libc::MAP_FIXED, file, 0) };
    made != libc::MAP_FAILED
}

fn give_back(start: u64, bytes: u64) {
    if bytes > 0 {
        // SAFETY: whole pages of a freed allocation.
        unsafe { libc::madvise(start as *mut c_void, bytes as usize, libc::MADV_DONTNEED) };
    }
}

fn copy(to: Place, from: Place, bytes: usize) -> bool {
    match (to, from) {
        (Place::Gone, _) | (_, Place::Gone) => false,
        // SAFETY: both sides are memory of the double or of its caller; queueing has checked that operations stay inside it.
        (Place::Known(to), Place::Known(from)) => unsafe {
            std::ptr::copy(from, to, bytes);
            true
        },
        (Place::Known(to) | Place::Pageable(to), Place::Known(from) | Place::Pageable(from)) => {
            copy_if_mapped(to, from, bytes)
        }
    }
}

/// Copies through the system, which returns an error where the CPU would fault.
fn copy_if_mapped(to: *mut u8, from: *const u8, bytes: usize) -> bool {
    let mut done = 0;
    while done < bytes {
        let left = bytes - done;
        let local = libc::iovec { iov_base: from.wrapping_add(done) as *mut c_void, iov_len: left };
        let remote = libc::iovec { iov_base: to.wrapping_add(done) as *mut c_void, iov_len: left };
        // SAFETY: the system checks both ranges.
        let moved = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
        if moved > 0 {
            done += moved as usize;
            continue;
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        if !matches!(error, Some(libc::ENOSYS | libc::EPERM)) {
            return false;
        }
        // SAFETY: the system cannot check here, so this is as safe as the caller's pointers.
        unsafe { std::ptr::copy(from.wrapping_add(done), to.wrapping_add(done), left) };
        return true;
    }
    true
}
