//! Simulates the candidates of a [`Question`], and decides which of them need no simulation.

use std::slice;

use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::noise::Phases;
use loggap_core::units::{Bytes, PerByte, Picos};

use super::cell::{Candidate, Cell, Contest, Drawn, Time, Timed};
use super::spread::reach;
use crate::collective::{Algorithm, Call, Operation};
use crate::simulation::{ParameterSets, Plan, Point, RunError, Source, run_points};

/// Segment sizes to try, in addition to whole messages.
pub const SEGMENTS: [u64; 3] = [1 << 10, 8 << 10, 64 << 10];
/// Limit on the messages of a call: smaller segments are not tried.
const MOST_SEGMENTS: u64 = 1 << 18;
/// Upper limit on [`Answer::reach`]: candidates slower than this multiple of the winner's time are
/// neither drawn nor, for long chains, simulated, however wide the intervals are.
const MOST_REACH: f64 = 3.0;

/// Rank count and size at which an algorithm is to be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Case {
    /// Simulated rank count.
    pub ranks: u32,
    /// Largest rank count to which the same rules apply.
    pub most_ranks: u32,
    /// Bytes of the vector, or of each block.
    pub size: u64,
}

/// Restrictions on the algorithms that take part.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Bytes of an element: some algorithms need at least one element for each rank.
    pub element: u64,
    /// True if the reduction operators are known to commute.
    pub commutative: bool,
}

impl Case {
    /// Value of the field `most_ranks` if the next tested rank count is `next`.
    #[must_use]
    pub fn most_ranks(ranks: u32, next: Option<u32>) -> u32 {
        next.unwrap_or(ranks.saturating_mul(2)).saturating_sub(1)
    }

    /// True if rules may name `algorithm` for all rank counts between this one and the next tested
    /// one.
    fn holds_between(self, algorithm: &Algorithm) -> bool {
        let first = self.ranks.saturating_add(1);
        first <= self.most_ranks && algorithm.condition.holds_from(first, self.most_ranks)
    }
}

impl Offer {
    /// True if `algorithm` may be used in this case.
    #[must_use]
    pub fn holds(&self, algorithm: &Algorithm, at: Case) -> bool {
        let elements = at.size / self.element.max(1);
        algorithm.condition.holds(at.ranks)
            && (self.commutative || !algorithm.commutes)
            && (!algorithm.wants_elements || elements >= u64::from(at.most_ranks))
    }
}

/// Operation, sizes and parameters to compare algorithms for.
#[derive(Debug)]
pub struct Question<'a> {
    /// The operation.
    pub operation: Operation,
    /// Rank counts, ascending.
    pub ranks: &'a [u32],
    /// Bytes of the vector, or of each block, ascending.
    pub sizes: &'a [u64],
    /// Restrictions on the algorithms.
    pub offer: Offer,
    /// Time to combine a byte of two vectors.
    pub combine: PerByte,
    /// The parameters as measured or given.
    pub measured: &'a ParameterSets,
    /// Parameter sets drawn from the intervals of `measured`; empty without intervals.
    pub draws: &'a [ParameterSets],
    /// How to simulate.
    pub plan: Plan<'a>,
}

/// An algorithm left out because the vectors have too few elements.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TooShort {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Smallest size at which it was left out, in bytes.
    pub first: u64,
    /// Largest size at which it was left out, in bytes.
    pub last: u64,
}

/// Result of a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Cells by ranks, then by size.
    pub cells: Vec<Cell>,
    /// Number of leading cells that were completed; less than all only if the runs were
    /// [stopped](Plan::stop). The other cells have no candidates.
    pub done: usize,
    /// Multiple of the winner's time above which an algorithm got no draws, because it cannot win
    /// any of them (or, if this is the upper limit, is very unlikely to).
    pub reach: f64,
}

/// A simulation that failed.
#[derive(Debug, thiserror::Error)]
#[error("{} of {} ranks, {} B: {source}", .algorithm.name, .call.ranks, .call.size)]
pub struct Refused {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Rank count and size.
    pub call: Call,
    /// The error.
    pub source: RunError,
}

impl Question<'_> {
    /// Simulates all candidates that can win. Calls `note` after each cell, with the first
    /// simulation that failed, if any; such a cell has no candidates. Once the plan is stopped, no
    /// further cell is simulated.
    pub fn answer(&self, note: &mut dyn FnMut(Result<(), Refused>)) -> Answer {
        let largest = self.sizes.last().copied().unwrap_or(0);
        // The longest messages carry the blocks of all ranks.
        let ranks = self.ranks.last().copied().unwrap_or(1);
        let largest = largest.saturating_mul(ranks.into());
        let reach = reach(self.measured, self.draws, largest, self.combine).min(MOST_REACH);
        let mut cells = Vec::with_capacity(self.ranks.len().saturating_mul(self.sizes.len()));
        let unknown = |Case { ranks, size, .. }: Case| {
            let candidates = Vec::new();
            Cell { ranks, size, candidates, contest: None }
        };
        for case in self.cases() {
            let (cell, done) = match self.cell(case, reach) {
                Ok(cell) => (cell, Ok(())),
                Err(Refused { source: RunError::Interrupted, .. }) => break,
                Err(refused) => (unknown(case), Err(refused)),
            };
            cells.push(cell);
            note(done);
        }
        let done = cells.len();
        cells.extend(self.cases().skip(done).map(unknown));
        Answer { cells, done, reach }
    }

    /// Algorithms left out of a cell because its vector has fewer elements than the largest rank
    /// count to which its rules apply.
    #[must_use]
    pub fn too_short(&self) -> Vec<TooShort> {
        let of = |algorithm: &'static Algorithm| {
            let left_out = |&at: &Case| {
                let long = Case { size: u64::MAX, ..at };
                !self.offer.holds(algorithm, at) && self.offer.holds(algorithm, long)
            };
            let sizes = || self.cases().filter(left_out).map(|at| at.size);
            Some(TooShort { algorithm, first: sizes().min()?, last: sizes().max()? })
        };
        self.operation.algorithms().filter_map(of).collect()
    }

    /// All cases, by ranks, then by size.
    fn cases(&self) -> impl Iterator<Item = Case> {
        self.ranks.iter().enumerate().flat_map(|(place, &ranks)| {
            let most_ranks = Case::most_ranks(ranks, self.ranks.get(place + 1).copied());
            self.sizes.iter().map(move |&size| Case { ranks, most_ranks, size })
        })
    }

    fn cell(&self, at: Case, reach: f64) -> Result<Cell, Refused> {
        let candidates = self.times(at, if self.draws.is_empty() { 1.0 } else { reach })?;
        let best = candidates.first().map(|timed| timed.time.bound());
        let mut drawn = Vec::new();
        for (place, Timed { candidate, time }) in candidates.iter().enumerate() {
            let near = best.is_some_and(|best| !is_beyond(time.bound(), best, reach));
            if near && matches!(time, Time::Simulated(_)) && !self.draws.is_empty() {
                drawn.push(Drawn { place, times: self.run(candidate, at, self.draws)? });
            }
        }
        let contest =
            drawn.split_first().map(|(winner, others)| Contest::of(&winner.times, others));
        Ok(Cell { ranks: at.ranks, size: at.size, candidates, contest })
    }

    /// Times of all offered algorithms, fastest first.
    fn times(&self, at: Case, reach: f64) -> Result<Vec<Timed>, Refused> {
        let offered = |algorithm: &&Algorithm| self.offer.holds(algorithm, at);
        let mut open: Vec<(Candidate, Picos)> = self
            .operation
            .algorithms()
            .filter(offered)
            .flat_map(|algorithm| segments(algorithm, at))
            .map(|candidate| (candidate, self.bound(&self.call(&candidate, at))))
            .collect();
        // Smallest lower bound first: those with a large one can often be ruled out without
        // simulation.
        open.sort_by_key(|(_, bound)| *bound);
        let mut times: Vec<Timed> = Vec::new();
        // Best time of all candidates, and of those that rules may name between tested rank counts.
        let (mut best, mut best_between) = (None::<Picos>, None::<Picos>);
        for (candidate, bound) in open {
            let holds_between = at.holds_between(candidate.algorithm);
            let rival = if holds_between { best_between } else { best };
            let time = if rival.is_some_and(|rival| is_beyond(bound, rival, reach)) {
                Time::AtLeast(bound)
            } else {
                let ran = self.run(&candidate, at, slice::from_ref(self.measured))?;
                let time = ran.first().copied().unwrap_or_default();
                best = Some(best.map_or(time, |best| best.min(time)));
                if holds_between {
                    best_between = Some(best_between.map_or(time, |best| best.min(time)));
                }
                Time::Simulated(time)
            };
            // Keep only the best segment size of each algorithm.
            let of_same = |kept: &&mut Timed| kept.candidate.algorithm == candidate.algorithm;
            match times.iter_mut().find(of_same) {
                None => times.push(Timed { candidate, time }),
                Some(kept) if is_better(time, kept.time) => *kept = Timed { candidate, time },
                Some(_) => {}
            }
        }
        // Ties go to the algorithm that copies nothing in memory.
        times.sort_by_key(|Timed { candidate: Candidate { algorithm, .. }, time }| {
            (time.bound(), algorithm.copies, algorithm.number)
        });
        Ok(times)
    }

    /// Durations of `candidate` with each of the parameter sets.
    fn run(
        &self,
        candidate: &Candidate,
        at: Case,
        sets: &[ParameterSets],
    ) -> Result<Vec<Picos>, Refused> {
        let call = self.call(candidate, at);
        let point = |draw: usize| Point {
            sets: sets.get(draw).cloned().unwrap_or_default(),
            phases: Phases::Drawn { seed: 0 },
        };
        run_points(&Source::Collective(call), sets.len(), &point, &self.plan, &|| {})
            .map(|ran| ran.into_iter().map(|run| run.makespan).collect())
            .map_err(|source| Refused { algorithm: candidate.algorithm, call, source })
    }

    const fn call(&self, candidate: &Candidate, at: Case) -> Call {
        let Case { ranks, size, .. } = at;
        let shape = candidate.algorithm.shape;
        Call { shape, ranks, size, segment: candidate.segment, combine: self.combine }
    }

    /// Lower bound of a call's duration, from its [`Call::chain`]; saturating.
    pub(super) fn bound(&self, call: &Call) -> Picos {
        let chain = call.chain();
        Picos(self.hop(Bytes(chain.size)).saturating_mul(chain.messages))
    }

    /// Lower bound, in ps, of the time from the start of a send of `size` bytes to the end of its
    /// receive.
    fn hop(&self, size: Bytes) -> u64 {
        let sets = self.measured;
        let place = sets.protocols.iter().rposition(|protocol| protocol.first <= size);
        let place = place.unwrap_or(0);
        let Some(Protocol { parameters, .. }) = sets.protocols.get(place) else { return 0 };
        let ReceiveOverhead { overhead, overhead_per_byte } = sets.receive_overhead(place);
        let bytes = size.after_first();
        let wire = parameters.gap_per_byte.times(bytes).map_or(u64::MAX, |time| time.0);
        let handled = overhead_per_byte.times(bytes).and_then(|rest| overhead.plus(rest));
        let handled = handled.map_or(u64::MAX, |time| time.0);
        let sent = parameters.overhead.0.saturating_add(parameters.latency.0);
        sent.saturating_add(handled.max(wire))
    }
}

/// True if `time` is more than `reach` times `best`.
fn is_beyond(time: Picos, best: Picos, reach: f64) -> bool {
    time.seconds() > best.seconds() * reach
}

/// Ordering of times: a simulated time beats a bound; otherwise the lesser one wins.
fn is_better(time: Time, than: Time) -> bool {
    let key = |time: Time| (matches!(time, Time::AtLeast(_)), time.bound());
    key(time) < key(than)
}

/// `algorithm` with each segment size that is possible in this case.
fn segments(algorithm: &'static Algorithm, at: Case) -> impl Iterator<Item = Candidate> {
    let possible = move |segment: &u64| {
        let messages = at.size.div_ceil(*segment).saturating_mul(at.ranks.into());
        algorithm.segments && *segment < at.size && messages <= MOST_SEGMENTS
    };
    let cut = SEGMENTS.into_iter().filter(possible);
    std::iter::once(0).chain(cut).map(move |segment| Candidate { algorithm, segment })
}
