//! The counters of the double, and failures that a test requests.

use crate::codes::Failure;
use crate::driver::Driver;
use crate::memory::{Kind, Life, TOTAL};
use std::fmt::Write;

const MESSAGES: usize = 1000;
/// Calls whose names are kept.
const LATEST: usize = 32;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Number of occurrences since the last reset.
        #[derive(Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

counters! {
    calls, allocations, frees, double_frees,
    /// Frees of an address that does not start an allocation, or of another kind.
    bad_frees,
    use_after_free,
    out_of_bounds,
    /// Kernels with misaligned items.
    misaligned,
    races,
    bad_handles,
    /// Handles of memory that this process allocated, opened here.
    opened_at_home,
    /// Closing memory that no handle was opened for.
    bad_closes,
    /// Calls that failed because there was no context.
    no_context,
    /// Calls made while another device's context was current.
    foreign_context,
    /// Kernels that accessed memory of a device that is not a peer.
    no_peer_access,
    /// Allocations that were live when their context was destroyed.
    lost_with_context,
    /// Copies that ran after the pageable memory was unmapped, or the pinned memory freed.
    host_memory_gone,
    /// Driver functions that a host function called.
    calls_in_host_functions,
    failed_on_demand,
    panics,
    copies_to_device, copies_to_host, copies_on_device, copies_on_host,
    bytes_to_device, bytes_to_host, bytes_on_device, bytes_on_host,
    sets, kernels, graph_launches,
    stream_syncs, event_syncs, context_syncs,
}

impl Driver {
    pub fn note_call(&mut self, name: &'static str) {
        self.counters.calls += 1;
        if self.latest.len() == LATEST {
            self.latest.pop_front();
        }
        self.latest.push_back(name);
    }

    pub fn report(&mut self, message: String) {
        if self.messages.len() < MESSAGES {
            self.messages.push(message);
        }
    }

    /// Takes the failure that a test requested for the next call of this function.
    pub fn take_failure(&mut self, name: &str) -> Option<Failure> {
        if self.failures.is_empty() {
            return None;
        }
        let failure = self.failures.remove(plain_name(name))?;
        self.counters.failed_on_demand += 1;
        Some(failure)
    }

    /// Returns everything as JSON.
    pub fn json(&self) -> String {
        let all = self.memory.not_freed();
        let live = |kind| all.clone().filter(|found| found.kind == kind && found.life == Life::Live).count();
        let kinds = [Kind::Device, Kind::Managed, Kind::Pinned, Kind::Registered, Kind::Opened].map(live);
        let streams = self.streams.values().filter(|stream| !stream.implicit && !stream.destroyed).count();
        let state = [
            ("leaks", kinds[..4].iter().sum()),
            ("live_device", kinds[0]),
            ("live_managed", kinds[1]),
            ("live_pinned", kinds[2]),
            ("live_registered", kinds[3]),
            ("live_opened", kinds[4]),
            ("leaving", all.clone().filter(|found| found.life == Life::Leaving).count()),
            ("live_streams", streams),
            ("live_events", self.events.len()),
            ("live_pools", self.pools.len() - self.devices.len()),
            ("live_modules", self.modules.len()),
            ("live_graphs", self.graphs.len()),
            ("live_executables", self.executables.len()),
            ("captures", self.captures.len()),
            ("pending", self.streams.values().map(|stream| stream.pending()).sum()),
        ];
        let mut out = "{".to_owned();
        let state = state.map(|(name, value)| (name, value as u64));
        for (name, value) in state.into_iter().chain(self.counters.list()) {
            let _ = write!(out, "\"{name}\": {value}, ");
        }
        let retained: Vec<u64> = self.devices.iter().map(|device| device.retained).collect();
        let used = |index| TOTAL - self.device_bytes(index).0;
        let used: Vec<u64> = (0..self.devices.len()).map(used).collect();
        let _ = write!(out, "\"retained\": {retained:?}, \"used\": {used:?}, ");
        let messages: Vec<String> = self.messages.iter().map(|message| format!("\"{}\"", escaped(message))).collect();
        let _ = write!(out, "\"messages\": [{}], \"latest\": {:?}}}", messages.join(", "), self.latest);
        out
    }
}

fn escaped(text: &str) -> String {
    text.chars()
        .map(|symbol| match symbol {
            '"' | '\\' => format!("\\{symbol}"),
            symbol if symbol.is_control() => " ".to_owned(),
            symbol => symbol.to_string(),
        })
        .collect()
}

/// Returns a function's name without its version suffixes.
pub fn plain_name(name: &str) -> &str {
    let mut plain = name;
    for suffix in ["_ptsz", "_ptds", "_v2", "_v3", "_v4"] {
        plain = plain.strip_suffix(suffix).unwrap_or(plain);
    }
    plain
}
