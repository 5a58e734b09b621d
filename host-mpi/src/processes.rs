//! Processes of a job that simulate one schedule together.
//!
//! A process does not know from whom it receives in a window. So each window ends as in "Scalable
//! Communication Protocols for Dynamic Sparse Data Exchange" (Hoefler, Siebert, Lumsdaine, PPoPP
//! '10): synchronous sends, and when a process has completed its own, a nonblocking collective
//! operation, here the gathering of the next windows. When that is complete, all messages have been
//! received.

use std::cell::Cell;

use loggap::simulation::Processes;
use mpi::collective::{CommunicatorCollectives as _, Root as _};
use mpi::datatype::{Equivalence as _, PartitionMut};
use mpi::point_to_point::{Destination as _, Source as _};
use mpi::request;
use mpi::topology::{Communicator as _, SimpleCommunicator};

use crate::job::{CONTROLLER, Job};
use crate::waiting::{Waiting, is_done};

/// All ranks of a job.
#[derive(Debug)]
pub struct MpiProcesses<'j> {
    job: &'j Job,
    waiting: Waiting<'j>,
    /// Tag of the window: 0 and 1 in turn, as others may be a window ahead.
    turn: Cell<i32>,
}

impl<'j> MpiProcesses<'j> {
    /// All ranks of `job`.
    #[must_use]
    pub fn new(job: &'j Job) -> Self {
        Self { job, waiting: job.waiting(), turn: Cell::new(0) }
    }

    const fn ranks(&self) -> &SimpleCommunicator {
        self.job.data()
    }

    /// Appends a message of `turn` that has arrived, if any, to `incoming`.
    fn receive(&self, turn: i32, incoming: &mut Vec<u32>) {
        let arrived = self.ranks().any_process().immediate_matched_probe_with_tag(turn);
        let Some((message, status)) = arrived else { return };
        let (first, count) = (incoming.len(), status.count(u32::equivalent_datatype()));
        incoming.resize(first + usize::try_from(count).unwrap_or(0), 0);
        if let Some(place) = incoming.get_mut(first..) {
            message.matched_receive_into(place);
        }
    }
}

impl Processes for MpiProcesses<'_> {
    fn index(&self) -> u32 {
        self.job.rank().unsigned_abs()
    }

    fn count(&self) -> u32 {
        self.job.size().unsigned_abs()
    }

    /// Processors of the machine, divided among its ranks.
    fn threads(&self) -> usize {
        let sharing = self.job.sharing();
        let own = self.job.place(self.job.rank());
        let host = sharing.hosts().iter().find(|host| own.is_some_and(|own| own.host == host.host));
        host.map_or(1, |host| host.processors / host.ranks.max(1)).max(1)
    }

    fn exchange(&self, outgoing: &[Vec<u32>], incoming: &mut Vec<u32>, next: u64) -> Vec<u64> {
        let turn = self.turn.replace(1 - self.turn.get());
        let mut all = vec![0; self.count() as usize];
        let ranks = self.ranks();
        request::scope(|scope| {
            let full = (0..).zip(outgoing).filter(|(_, words)| !words.is_empty());
            let mut sends: Vec<_> = full
                .map(|(to, words)| {
                    let to = ranks.process_at_rank(to);
                    Some(to.immediate_synchronous_send_with_tag(scope, &words[..], turn))
                })
                .collect();
            self.waiting.poll(|| {
                self.receive(turn, incoming);
                sends.retain_mut(|send| !is_done(send));
                sends.is_empty()
            });
            let mut gathering = Some(ranks.immediate_all_gather_into(scope, &next, &mut all[..]));
            self.waiting.poll(|| {
                self.receive(turn, incoming);
                is_done(&mut gathering)
            });
        });
        all
    }

    fn all(&self, own: &[u64]) -> Vec<u64> {
        let mut all = vec![0; own.len() * self.count() as usize];
        request::scope(|scope| {
            let mut pending =
                Some(self.ranks().immediate_all_gather_into(scope, own, &mut all[..]));
            self.waiting.poll(|| is_done(&mut pending));
        });
        all
    }

    fn at_first(&self, own: Vec<u64>) -> Vec<u64> {
        let root = self.ranks().process_at_rank(CONTROLLER);
        let counts = self.all(&[own.len() as u64]);
        if !self.job.leads() {
            root.gather_varcount_into(&own[..]);
            return Vec::new();
        }
        let counts: Vec<i32> =
            counts.iter().map(|count| i32::try_from(*count).unwrap_or(i32::MAX)).collect();
        let mut displacements = Vec::with_capacity(counts.len());
        let mut end = 0i32;
        for count in &counts {
            displacements.push(end);
            end = end.saturating_add(*count);
        }
        let mut all = vec![0u64; usize::try_from(end).unwrap_or(0)];
        let mut places = PartitionMut::new(&mut all[..], &counts[..], &displacements[..]);
        root.gather_varcount_into_root(&own[..], &mut places);
        all
    }
}
