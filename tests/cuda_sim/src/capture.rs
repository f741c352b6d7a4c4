//! Capture: streams record their operations instead of queueing them.

use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::graph::{Graph, Node};
use crate::stream::{Operation, Stream, thread};
use std::cell::Cell;
use std::collections::BTreeMap;

pub const GLOBAL: i32 = 0;
const THREAD_LOCAL: i32 = 1;
const RELAXED: i32 = 2;

thread_local! {
    /// The capture mode of this thread: which captures may forbid its calls.
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
}

pub fn exchange_mode(mode: i32) -> Outcome<i32> {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(Failure::INVALID_VALUE);
    }
    Ok(MODE.with(|current| current.replace(mode)))
}

/// Result of `cuStreamIsCapturing`.
pub enum Status {
    None,
    Active(u64),
    Invalidated(u64),
}

pub struct Capture {
    origin: Handle,
    mode: i32,
    thread: u64,
    valid: bool,
    nodes: Vec<Node>,
    /// For each stream, the nodes before its next operation.
    tips: BTreeMap<Handle, Vec<usize>>,
}

impl Capture {
    pub fn tips(&self, stream: Handle) -> Vec<usize> {
        self.tips.get(&stream).cloned().unwrap_or_default()
    }

    /// Returns whether all captured nodes come before the next operation of the first stream.
    fn is_joined(&self) -> bool {
        let mut reached = vec![false; self.nodes.len()];
        let mut open = self.tips(self.origin);
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(&self.nodes[node].after);
            }
        }
        reached.into_iter().all(|node| node)
    }

    /// Returns whether the capture forbids this thread calls that could disturb it.
    fn forbids(&self) -> bool {
        let mine = self.thread == thread() && self.mode != RELAXED;
        match MODE.with(Cell::get) {
            GLOBAL => mine || self.mode == GLOBAL,
            THREAD_LOCAL => mine,
            _ => false,
        }
    }
}

impl Driver {
    pub fn capture(&mut self, id: u64) -> Outcome<&mut Capture> {
        match self.captures.get_mut(&id) {
            Some(capture) if capture.valid => Ok(capture),
            _ => Err(Failure::STREAM_CAPTURE_INVALIDATED),
        }
    }

    pub fn begin_capture(&mut self, stream: Handle, mode: i32) -> Outcome {
        let stream = self.resolve(stream)?;
        let found = self.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?;
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Failure::INVALID_VALUE);
        }
        if found.legacy {
            return Err(Failure::STREAM_CAPTURE_UNSUPPORTED);
        }
        if found.capture.is_some() {
            return Err(Failure::ILLEGAL_STATE);
        }
        let id = self.handle();
        let tips = BTreeMap::from([(stream, vec![])]);
        let capture = Capture { origin: stream, mode, thread: thread(), valid: true, nodes: vec![], tips };
        self.captures.insert(id, capture);
        self.set_capture(stream, Some(id));
        Ok(())
    }

    /// Ends a capture and returns the handle of its graph.
    pub fn end_capture(&mut self, stream: Handle) -> Outcome<Handle> {
        let stream = self.resolve(stream)?;
        let id = self.streams.get(&stream).and_then(|found| found.capture).ok_or(Failure::ILLEGAL_STATE)?;
        let capture = self.captures.get(&id).ok_or(Failure::STREAM_CAPTURE_INVALIDATED)?;
        if capture.origin != stream {
            return self.invalidate(id, Failure::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != thread() {
            return Err(Failure::STREAM_CAPTURE_WRONG_THREAD);
        }
        let capture = self.take_capture(id).ok_or(Failure::STREAM_CAPTURE_INVALIDATED)?;
        if !capture.valid {
            return Err(Failure::STREAM_CAPTURE_INVALIDATED);
        }
        if !capture.is_joined() {
            return Err(Failure::STREAM_CAPTURE_UNJOINED);
        }
        let graph = self.handle();
        self.graphs.insert(graph, Graph { nodes: capture.nodes });
        Ok(graph)
    }

    pub fn capture_status(&mut self, stream: Handle) -> Outcome<Status> {
        let stream = self.resolve(stream)?;
        // A query does not invalidate the capture.
        if !self.implicit(stream).is_empty() {
            return Err(Failure::STREAM_CAPTURE_IMPLICIT);
        }
        let Some(id) = self.streams.get(&stream).and_then(|found| found.capture) else { return Ok(Status::None) };
        Ok(if self.capture(id).is_ok() { Status::Active(id) } else { Status::Invalidated(id) })
    }

    fn set_capture(&mut self, stream: Handle, capture: Option<u64>) {
        if let Some(found) = self.streams.get_mut(&stream) {
            found.capture = capture;
        }
    }

    pub fn add_node(&mut self, id: u64, stream: Handle, operation: Operation) -> Outcome {
        let capture = self.capture(id)?;
        let after = capture.tips(stream);
        capture.tips.insert(stream, vec![capture.nodes.len()]);
        capture.nodes.push(Node { operation, after });
        Ok(())
    }

    /// Orders the next captured operations of a stream after these nodes; a stream that was not capturing joins the capture.
    pub fn join_capture(&mut self, id: u64, stream: Handle, nodes: &[usize]) -> Outcome {
        let other = self.streams.get(&stream).and_then(|found| found.capture);
        if other.is_some_and(|other| other != id) {
            return self.invalidate(id, Failure::STREAM_CAPTURE_MERGE);
        }
        self.check_implicit(stream)?;
        if self.streams.get(&stream).is_some_and(|found| found.legacy) {
            return self.invalidate(id, Failure::STREAM_CAPTURE_IMPLICIT);
        }
        let tips = self.capture(id)?.tips.entry(stream).or_default();
        tips.extend(nodes);
        tips.sort_unstable();
        tips.dedup();
        self.set_capture(stream, Some(id));
        Ok(())
    }

    /// Invalidates a capture and returns the failure.
    pub fn invalidate<T>(&mut self, id: u64, failure: Failure) -> Outcome<T> {
        if let Some(capture) = self.captures.get_mut(&id) {
            capture.valid = false;
        }
        self.report(format!("a capture was invalidated: {failure:?}"));
        Err(failure)
    }

    /// Rejects a call, and invalidates all captures that it would disturb, if there are any.
    fn protect(&mut self, disturbed: Vec<u64>, failure: Failure) -> Outcome {
        let mut outcome = Ok(());
        for id in disturbed {
            outcome = self.invalidate(id, failure);
        }
        outcome
    }

    /// Rejects a stream whose capture was invalidated and has not ended yet.
    pub fn check_capture(&mut self, stream: Handle) -> Outcome {
        match self.streams.get(&stream).and_then(|found| found.capture) {
            Some(id) => self.capture(id).map(drop),
            None => Ok(()),
        }
    }

    /// Ends a capture in all its streams, without a graph.
    pub fn take_capture(&mut self, id: u64) -> Option<Capture> {
        let capture = self.captures.remove(&id)?;
        for stream in capture.tips.keys() {
            self.set_capture(*stream, None);
        }
        Some(capture)
    }

    /// Rejects what a stream cannot do during capture.
    pub fn refuse_in_capture(&mut self, stream: Handle) -> Outcome {
        self.check_capture(stream)?;
        let disturbed = self.streams.get(&stream).and_then(|found| found.capture);
        self.protect(disturbed.into_iter().collect(), Failure::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Rejects what would make the legacy stream wait for a captured stream.
    pub fn check_implicit(&mut self, stream: Handle) -> Outcome {
        self.protect(self.implicit(stream), Failure::STREAM_CAPTURE_IMPLICIT)
    }

    /// Returns the captures of blocking streams, if this is the legacy stream of their device.
    fn implicit(&self, stream: Handle) -> Vec<u64> {
        match self.streams.get(&stream).filter(|found| found.legacy) {
            Some(found) => self.captures_of(|other| other.device == found.device && other.is_blocking()),
            None => vec![],
        }
    }

    /// Returns the captures of the streams for which `belongs` holds.
    fn captures_of(&self, belongs: impl Fn(&Stream) -> bool) -> Vec<u64> {
        let captures = self.streams.values().filter(|stream| belongs(stream)).filter_map(|stream| stream.capture);
        captures.collect()
    }

    /// Rejects a call that could disturb a capture, such as an allocation, unless the modes of the captures and of this thread
    /// allow it.
    pub fn note_unsafe(&mut self) -> Outcome {
        let disturbed = self.captures.iter().filter(|(_, capture)| capture.forbids()).map(|(&id, _)| id);
        self.protect(disturbed.collect(), Failure::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Rejects waiting for a device that has a captured stream, in every mode.
    pub fn refuse_while_capturing(&mut self, device: usize) -> Outcome {
        self.protect(self.captures_of(|stream| stream.device == device), Failure::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Rejects the first use of a device during any capture, in every mode.
    pub fn refuse_first_use(&mut self) -> Outcome {
        self.protect(self.captures.keys().copied().collect(), Failure::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Forgets the captures of streams that were destroyed with their context.
    pub fn drop_lost_captures(&mut self) {
        let streams = &self.streams;
        self.captures.retain(|_, capture| streams.contains_key(&capture.origin));
    }
}
