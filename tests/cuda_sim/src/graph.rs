//! Graphs of captured operations, and their launches.

use crate::clocks::{Actor, Clock, Moment};
use crate::codes::{Failure, Outcome};
use crate::driver::{Driver, Handle};
use crate::memory::Life;
use crate::stream::{Operation, Point};
use crate::work::Work;

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
const FREE_ON_LAUNCH: u64 = 1;

#[derive(Clone)]
pub struct Node {
    pub operation: Operation,
    /// The nodes before it.
    pub after: Vec<usize>,
}

#[derive(Clone, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
}

/// A graph that can be launched.
pub struct Executable {
    nodes: Vec<Node>,
    /// For each node, its branch.
    branches: Vec<Actor>,
    flags: u64,
    launches: u64,
    pub last: Option<Point>,
}

impl Driver {
    pub fn instantiate(&mut self, graph: Handle, flags: u64) -> Outcome<Handle> {
        let Some(Graph { nodes }) = self.graphs.get(&graph).cloned() else {
            return Err(self.bad_handle("graph", graph));
        };
        let mut branches: Vec<Actor> = vec![];
        for node in &nodes {
            // A node continues the branch of a node before it, if no other node has.
            let goes_on = node.after.iter().find(|&&before| !branches[before + 1..].contains(&branches[before]));
            let branch = match goes_on {
                Some(&before) => branches[before],
                None => self.handle(),
            };
            branches.push(branch);
        }
        let handle = self.handle();
        self.executables.insert(handle, Executable { nodes, branches, flags, launches: 0, last: None });
        Ok(handle)
    }

    /// Queues all nodes in a stream; their clocks keep the branches apart.
    pub fn launch_graph(&mut self, handle: Handle, stream: Handle) -> Outcome {
        let stream = self.resolve(stream)?;
        self.refuse_in_capture(stream)?;
        self.check_implicit(stream)?;
        let Some(found) = self.executables.get_mut(&handle) else {
            return Err(self.bad_handle("executable graph", handle));
        };
        let (nodes, branches, flags) = (found.nodes.clone(), found.branches.clone(), found.flags);
        let first = found.launches * nodes.len() as u64 + 1;
        found.launches += 1;
        if let Some(last) = found.last.clone() {
            self.wait_in_stream(stream, &last)?;
        }
        let start = self.next_moment(stream)?.clock;
        let mut clocks: Vec<Clock> = vec![];
        for (index, (node, &actor)) in nodes.into_iter().zip(&branches).enumerate() {
            let mut clock = start.clone();
            for &before in &node.after {
                clock.join(&clocks[before]);
            }
            let moment = Moment { actor, number: first + index as u64, clock: clock.clone() };
            if let Work::Birth(base) = node.operation.work {
                self.begin_life(stream, base, flags)?;
            }
            self.touch_all(&moment, &node.operation)?;
            if let Work::Free(base) = node.operation.work {
                self.end_life(base);
            }
            self.push(stream, node.operation.work)?;
            clock.advance(actor, moment.number);
            clocks.push(clock);
        }
        for clock in &clocks {
            if let Some(found) = self.streams.get_mut(&stream) {
                found.clock.join(clock);
            }
        }
        let last = self.push(stream, Work::Nothing)?;
        if let Some(found) = self.executables.get_mut(&handle) {
            found.last = Some(last);
        }
        Ok(())
    }

    /// Starts the life of a graph's allocation. It must not exist already, unless the graph was created to free it then.
    fn begin_life(&mut self, stream: Handle, base: u64, flags: u64) -> Outcome {
        let life = self.memory.allocations.get(&base).map(|found| found.life);
        if life == Some(Life::Live) {
            if flags & FREE_ON_LAUNCH == 0 {
                return Err(Failure::INVALID_VALUE);
            }
            self.push(stream, Work::Free(base))?;
        }
        if let Some(found) = self.memory.allocations.get_mut(&base) {
            found.life = Life::Live;
        }
        self.account(base);
        Ok(())
    }

    /// Marks an allocation as leaving: no later operation may use it.
    pub fn end_life(&mut self, base: u64) {
        if let Some(found) = self.memory.allocations.get_mut(&base) {
            found.life = Life::Leaving;
        }
        self.counters.frees += 1;
    }
}
