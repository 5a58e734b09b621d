//! One pass over the tree: each rank synchronises with its parent.

use std::convert::Infallible;

use loggap_core::measure::Clock as _;
use loggap_core::sync::{
    Edge as EdgeKind, Offset, ParentClock, Ping, Pinger, Role, SeriesOptions, Step, SyncOptions,
    measure_offset,
};
use loggap_core::units::{Picos, SignedPicos};
use mpi::topology::{Communicator as _, Process};

use super::GlobalClock;
use crate::job::Job;
use crate::waiting::Waiting;

/// Messages of a rank to its parent: a request for a time stamp, and the end.
const PING: u64 = 1;
const DONE: u64 = 0;

/// Result of a pass at one rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// Edge to the parent; `None` at the root.
    pub edge: Option<Edge>,
    /// Duration of the pass at this rank.
    pub took: Picos,
}

/// Result of the pings with the parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edge {
    /// Rank of the parent.
    pub parent: i32,
    /// True if both read the same clock.
    pub shared: bool,
    /// Own minus parent's clock, with bounds; `None` if a shared clock was only
    /// checked, or the measurement failed.
    pub offset: Option<Offset>,
    /// Median of single pings, for comparison.
    pub median: Option<SignedPicos>,
    /// True if the median lies outside of the bounds, as the two directions differ.
    pub median_outside: bool,
    /// Number of offsets so far that contradicted earlier ones: the clocks
    /// drift apart faster than assumed, or one was set.
    pub contradictions: u32,
}

/// This rank's end of an edge.
pub(crate) struct Ends<'a> {
    pub(crate) clock: &'a GlobalClock,
    pub(crate) peer: Process<'a>,
    pub(crate) waiting: Waiting<'a>,
}

impl Pinger for Ends<'_> {
    type Error = Infallible;

    fn now(&mut self) -> Picos {
        self.clock.local(self.clock.read())
    }

    fn ping(&mut self) -> Result<Ping, Infallible> {
        let sent = self.clock.read();
        self.waiting.send(&self.peer, &[PING]);
        let stamped = self.waiting.number_from(&self.peer);
        let received = self.clock.read();
        let [sent, received] = [sent, received].map(|reading| self.clock.local(reading));
        Ok(Ping { sent, stamped: Picos(stamped), received })
    }
}

impl Ends<'_> {
    /// Answers pings with the local time until the peer ends them.
    pub(crate) fn answer(&self) {
        while self.waiting.number_from(&self.peer) == PING {
            self.waiting.send(&self.peer, &[self.clock.local(self.clock.read()).0]);
        }
    }

    /// Ends the pings.
    pub(crate) fn end(&self) {
        self.waiting.send(&self.peer, &[DONE]);
    }
}

pub(super) fn over_the_tree(clock: &mut GlobalClock, job: &Job, waiting: Waiting<'_>) -> Pass {
    let began = clock.read();
    let rank = u32::try_from(job.rank()).unwrap_or(0);
    let steps: Vec<Step> = clock.with_tree(|tree| tree.steps(rank).collect()).unwrap_or_default();
    let mut edge = None;
    for step in steps {
        let Ok(peer) = i32::try_from(step.peer) else { continue };
        let peer = job.control().process_at_rank(peer);
        match step.role {
            Role::Child => edge = Some(follow(clock, peer, step.edge, waiting)),
            Role::Parent => {
                let announced = clock.rank.announce(&clock.assumptions);
                // Invalid words tell the child that its parent is not
                // synchronised; then it is not, either.
                let words = announced.map_or([u64::MAX; WORDS], |announced| announced.to_words());
                waiting.send(&peer, &words);
                Ends { clock, peer, waiting }.answer();
            }
        }
    }
    let took = clock.clock.duration(clock.read().saturating_sub(began));
    Pass { edge, took }
}

/// Time limit of an edge, however disturbed.
const LONGEST: Picos = Picos(200_000_000_000);

/// Words of a parent's announcement.
const WORDS: usize = ParentClock::WORDS;

/// Pings the parent, and synchronises with it.
fn follow(
    clock: &mut GlobalClock,
    peer: Process<'_>,
    kind: EdgeKind,
    waiting: Waiting<'_>,
) -> Edge {
    /// Number of single pings whose median is taken.
    const MIDDLES: usize = 256;
    let parent = peer.rank();
    let mut words = [0_u64; WORDS];
    waiting.numbers_from(&peer, &mut words);
    let Some(announced) = ParentClock::from_words(&words) else {
        waiting.send(&peer, &[DONE]);
        let contradictions = clock.rank.contradictions();
        return Edge { parent, contradictions, ..Edge::default() };
    };
    let quickest = quickest(clock, peer, waiting);
    let resolution = Picos(2 * clock.read_cost().0.max(1_000));
    let options = SyncOptions::expecting(quickest, quickest, resolution, clock.assumptions);
    // The kernel's clock is the same for all its processes.
    let mut options = SyncOptions { trusts_domains: true, ..options };
    (options.series.longest, options.check.longest) = (LONGEST, LONGEST);
    let mut rank = clock.rank;
    let mut ends = Ends { clock, peer, waiting };
    let shared = kind == EdgeKind::Domain
        && rank.share(&announced, &mut ends, &options).is_ok_and(|shared| shared);
    let mut middles = [SignedPicos(0); MIDDLES];
    let series = if shared {
        None
    } else {
        rank.synchronise(&announced, &mut ends, &options, &mut middles).ok()
    };
    ends.end();
    clock.rank = rank;
    let series = series.map(|(series, _)| series);
    let median = series.and_then(|series| Some(series.median?.median));
    let median_outside = series.is_some_and(|series| series.median_outside);
    Edge {
        parent,
        shared,
        offset: series.map(|series| series.offset),
        median,
        median_outside,
        contradictions: rank.contradictions(),
    }
}

/// Quickest round trip with `peer` in the first series, by which disturbed
/// series are recognised.
fn quickest(clock: &mut GlobalClock, peer: Process<'_>, waiting: Waiting<'_>) -> Picos {
    let peer_rank = peer.rank();
    let known = clock.quickest.iter().find(|(rank, _)| *rank == peer_rank);
    if let Some((_, known)) = known {
        return *known;
    }
    let mut ends = Ends { clock, peer, waiting };
    let mut options = SeriesOptions { longest: LONGEST, ..SeriesOptions::default() };
    options.offset.drift_ppm = clock.assumptions.drift_ppm;
    let series = measure_offset(&mut ends, &options, &mut []);
    let round_trip = series.map_or(Picos(1_000_000), |series| series.offset.round_trip);
    clock.quickest.push((peer_rank, round_trip));
    round_trip
}
