//! Pools of stream-ordered memory: bytes in use, and bytes kept for later.

use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};

#[derive(Default)]
pub struct Pool {
    pub device: usize,
    /// Bytes that may stay reserved when the host waits.
    pub threshold: u64,
    pub used: u64,
    pub used_high: u64,
    pub reserved: u64,
    pub reserved_high: u64,
    /// The three reuse policies, which have no effect here.
    pub reuse: [u32; 3],
    /// Devices that may access the memory.
    pub access: Vec<usize>,
    /// Destroyed by the program, and kept until its memory is freed.
    pub destroyed: bool,
}

impl Pool {
    pub fn new(device: usize) -> Pool {
        Pool { device, reuse: [1; 3], access: vec![device], ..Pool::default() }
    }

    pub fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.reserved = self.reserved.max(self.used);
        self.used_high = self.used_high.max(self.used);
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    pub fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(keep).max(self.used);
    }

    /// Returns an attribute by its number in `CUmemPool_attribute`: the first three have 32 bits, the others 64.
    pub fn attribute(&self, number: i32) -> Outcome<u64> {
        Ok(match number {
            1..=3 => u64::from(self.reuse[number as usize - 1]),
            4 => self.threshold,
            5 => self.reserved,
            6 => self.reserved_high,
            7 => self.used,
            8 => self.used_high,
            _ => return Err(Failure::INVALID_VALUE),
        })
    }

    /// High-water marks can only be set to zero, which resets them to the present use.
    pub fn set_attribute(&mut self, number: i32, value: u64) -> Outcome {
        match (number, value) {
            (1..=3, _) => self.reuse[number as usize - 1] = value as u32,
            (4, _) => self.threshold = value,
            (6, 0) => self.reserved_high = self.reserved,
            (8, 0) => self.used_high = self.used,
            _ => return Err(Failure::INVALID_VALUE),
        }
        Ok(())
    }
}

impl Driver {
    pub fn pool(&mut self, handle: Handle) -> Outcome<&mut Pool> {
        match self.pools.get_mut(&handle) {
            Some(pool) if !pool.destroyed => Ok(pool),
            _ => {
                self.counters.bad_handles += 1;
                Err(Failure::INVALID_VALUE)
            }
        }
    }

    pub fn require_pools(&self) -> Outcome {
        if self.pools_supported { Ok(()) } else { Err(Failure::NOT_SUPPORTED) }
    }

    /// Trims the pools, as every wait of the host does.
    pub fn settle_pools(&mut self) {
        for pool in self.pools.values_mut() {
            let keep = if pool.destroyed { 0 } else { pool.threshold };
            pool.trim(keep);
        }
        self.pools.retain(|_, pool| !(pool.destroyed && pool.used == 0));
    }
}
