//! Events: points in streams, with handles.

use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::stream::{Operation, Point};
use crate::work::Work;

/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMING: u32 = 2;

pub struct Event {
    pub device: usize,
    pub flags: u32,
    /// How often it was recorded.
    pub records: u64,
    pub point: Option<Point>,
    /// The capture of the last record, and the nodes before it.
    pub captured: Option<(u64, Vec<usize>)>,
    time: Option<u64>,
}

impl Driver {
    pub fn make_event(&mut self, device: usize, flags: u32) -> Handle {
        let handle = self.handle();
        self.events.insert(handle, Event { device, flags, records: 0, point: None, captured: None, time: None });
        handle
    }

    pub fn event(&mut self, handle: Handle) -> Outcome<&mut Event> {
        if !self.events.contains_key(&handle) {
            return Err(self.dead_handle("event", handle));
        }
        self.events.get_mut(&handle).ok_or(Failure::INVALID_HANDLE)
    }

    /// Destroys an event. The error of a failed kernel does not prevent it.
    pub fn destroy_event(&mut self, handle: Handle) -> Outcome {
        let device = self.event(handle)?.device;
        self.events.remove(&handle);
        self.check_fault(device)
    }

    pub fn record(&mut self, event: Handle, stream: Handle) -> Outcome {
        let stream = self.resolve(stream)?;
        let found = self.event(event)?;
        let (device, number) = (found.device, found.records + 1);
        let in_stream = self.streams.get(&stream).ok_or(Failure::INVALID_HANDLE)?;
        if in_stream.device != device {
            self.counters.foreign_context += 1;
            self.report(format!("event {event:#x} of device {device} recorded in a stream of another one"));
            return Err(Failure::INVALID_HANDLE);
        }
        if let Some(capture) = in_stream.capture {
            let nodes = self.capture(capture)?.tips(stream);
            self.event(event)?.captured = Some((capture, nodes));
            return Ok(());
        }
        let point = self.submit(stream, Operation::new("cuEventRecord", vec![], Work::Record(event, number)))?;
        let found = self.event(event)?;
        found.records = number;
        found.point = Some(point);
        found.captured = None;
        found.time = None;
        Ok(())
    }

    /// Makes a stream wait for the last record of an event.
    pub fn wait_for_event(&mut self, stream: Handle, event: Handle) -> Outcome {
        let stream = self.resolve(stream)?;
        let found = self.event(event)?;
        let (captured, point) = (found.captured.clone(), found.point.clone());
        self.check_implicit(stream)?;
        self.check_capture(stream)?;
        let capturing = self.streams.get(&stream).and_then(|found| found.capture);
        match (captured, capturing) {
            (Some((capture, nodes)), _) if self.captures.contains_key(&capture) => {
                self.join_capture(capture, stream, &nodes)
            }
            (_, Some(capture)) if point.is_some() => self.invalidate(capture, Failure::STREAM_CAPTURE_ISOLATION),
            (_, Some(_)) => Ok(()),
            (_, None) => {
                self.next_moment(stream)?;
                point.map_or(Ok(()), |point| self.wait_in_stream(stream, &point))
            }
        }
    }

    /// Returns the point that the host has to reach for an event. To ask for it may disturb captures.
    pub fn event_point(&mut self, handle: Handle) -> Outcome<Option<Point>> {
        let event = self.event(handle)?;
        if event.captured.is_some() {
            return Err(Failure::CAPTURED_EVENT);
        }
        let (device, point) = (event.device, event.point.clone());
        self.check_fault(device)?;
        self.note_unsafe()?;
        Ok(point)
    }

    pub fn set_time(&mut self, event: Handle, stream: Handle, number: u64) {
        let now = self.now;
        if let Some(found) = self.events.get_mut(&event)
            && found.records == number
            && found.point.as_ref().is_some_and(|point| point.stream == stream)
        {
            found.time = Some(now);
        }
    }

    /// Returns milliseconds between two events; each operation counts as a microsecond.
    pub fn elapsed(&mut self, start: Handle, end: Handle) -> Outcome<f32> {
        let mut times = [0; 2];
        for (handle, time) in [start, end].into_iter().zip(&mut times) {
            let device = self.event(handle)?.device;
            self.check_fault(device)?;
            let event = self.event(handle)?;
            if event.flags & NO_TIMING != 0 || event.point.is_none() {
                return Err(Failure::INVALID_HANDLE);
            }
            *time = event.time.ok_or(Failure::NOT_READY)?;
        }
        Ok((times[1] as f32 - times[0] as f32) / 1000.0)
    }
}
