//! From a question to its answer: what is simulated, and what is left out.

use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::noise::Phases;
use loggap_core::units::{Bytes, PerByte, Picos};

use super::cell::{Candidate, Cell, Contest, Drawn, Time, Timed};
use super::spread::reach;
use crate::collective::{Algorithm, Call, Operation};
use crate::simulation::{Completed, ParameterSets, Plan, Point, RunError, Source, run_points};

/// Sizes of segments that are tried, beside whole messages.
pub const SEGMENTS: [u64; 3] = [1 << 10, 8 << 10, 64 << 10];
/// Segments are not made so small that more messages than this are sent.
const MOST_SEGMENTS: u64 = 1 << 18;
/// Draws are not made, and long chains not simulated, for algorithms that take
/// longer than so many times as long as the winner, however wide intervals
/// are.
const MOST_REACH: f64 = 3.0;

/// Where an algorithm is to be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Case {
    /// Ranks that are simulated.
    pub ranks: u32,
    /// The largest number of ranks that has the same rules.
    pub most_ranks: u32,
    /// Bytes of the vector, or of each block.
    pub size: u64,
}

/// Which algorithms take part.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Bytes of an element: some algorithms need one for each rank.
    pub element: u64,
    /// Whether operators of reductions are known to commute.
    pub commutative: bool,
}

impl Case {
    /// Where the next number of ranks is `next`.
    #[must_use]
    pub fn most_ranks(ranks: u32, next: Option<u32>) -> u32 {
        next.unwrap_or(ranks.saturating_mul(2)).saturating_sub(1)
    }

    /// Whether rules can name `algorithm` for what is between this number of ranks
    /// and the next.
    fn holds_between(self, algorithm: &Algorithm) -> bool {
        let first = self.ranks.saturating_add(1);
        first <= self.most_ranks && algorithm.condition.holds_from(first, self.most_ranks)
    }
}

impl Offer {
    /// Whether `algorithm` is one for this case.
    #[must_use]
    pub fn holds(&self, algorithm: &Algorithm, at: Case) -> bool {
        let elements = at.size / self.element.max(1);
        algorithm.condition.holds(at.ranks)
            && (self.commutative || !algorithm.commutes)
            && (!algorithm.wants_elements || elements >= u64::from(at.most_ranks))
    }
}

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The operation.
    pub operation: Operation,
    /// Numbers of ranks, ascending.
    pub ranks: &'a [u32],
    /// Bytes of the vector, or of each block, ascending.
    pub sizes: &'a [u64],
    /// Which algorithms.
    pub offer: Offer,
    /// What combining a byte takes.
    pub combine: PerByte,
    /// The parameters, as they were measured or given.
    pub measured: &'a ParameterSets,
    /// The same, drawn from their intervals; none without intervals.
    pub draws: &'a [ParameterSets],
    /// How to simulate.
    pub plan: Plan<'a>,
}

/// An algorithm that was left out for vectors of too few elements.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TooShort {
    /// Which one.
    pub algorithm: &'static Algorithm,
    /// The smallest size for which it was, in bytes.
    pub first: u64,
    /// The largest.
    pub last: u64,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// By ranks, then by size.
    pub cells: Vec<Cell>,
    /// So many of them, the first ones, were looked at before the runs were
    /// [stopped](Plan::stop); all without that. The others have no candidates.
    pub done: usize,
    /// Algorithms that took more than so many times as long as the winner had
    /// no draws, as these could not change that, or not by as much.
    pub reach: f64,
}

/// A simulation that failed.
#[derive(Debug, thiserror::Error)]
#[error("{} of {} ranks, {} B: {source}", .algorithm.name, .call.ranks, .call.size)]
pub struct Refused {
    /// By which algorithm.
    pub algorithm: &'static Algorithm,
    /// Of what.
    pub call: Call,
    /// Why.
    pub source: RunError,
}

impl Question<'_> {
    /// Simulates whatever is needed; calls `note` after each cell, with the first
    /// simulation that failed. A cell of which one failed has no candidates.
    /// Once the plan is stopped no further cell is looked at.
    pub fn answer(&self, note: &mut dyn FnMut(Result<(), Refused>)) -> Answer {
        let largest = self.sizes.last().copied().unwrap_or(0);
        // The longest messages carry the blocks of all ranks.
        let ranks = self.ranks.last().copied().unwrap_or(1);
        let largest = largest.saturating_mul(ranks.into());
        let reach = reach(self.measured, self.draws, (largest, self.combine)).min(MOST_REACH);
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

    /// Algorithms that a cell has not because its vector has fewer elements than
    /// ranks to which the same rules apply.
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

    /// What every cell is about, by ranks, then by size.
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
                drawn.push(Drawn { place, times: self.drawn(candidate, at)? });
            }
        }
        let contest =
            drawn.split_first().map(|(winner, others)| Contest::of(&winner.times, others));
        Ok(Cell { ranks: at.ranks, size: at.size, candidates, contest })
    }

    /// The time of every algorithm that is offered, the fastest first.
    fn times(&self, at: Case, reach: f64) -> Result<Vec<Timed>, Refused> {
        let offered = |algorithm: &&Algorithm| self.offer.holds(algorithm, at);
        let mut open: Vec<(Candidate, Picos)> = self
            .operation
            .algorithms()
            .filter(offered)
            .flat_map(|algorithm| segments(algorithm, at))
            .map(|candidate| (candidate, self.bound(&self.call(&candidate, at))))
            .collect();
        // What may be long is known to be too long when the rest has run.
        open.sort_by_key(|(_, bound)| *bound);
        let mut times: Vec<Timed> = Vec::new();
        // Of all, and of those that rules can name between numbers of ranks.
        let (mut best, mut best_between) = (None::<Picos>, None::<Picos>);
        for (candidate, bound) in open {
            let holds_between = at.holds_between(candidate.algorithm);
            let rival = if holds_between { best_between } else { best };
            let time = if rival.is_some_and(|rival| is_beyond(bound, rival, reach)) {
                Time::AtLeast(bound)
            } else {
                let call = self.call(&candidate, at);
                let point = |_| self.point(self.measured);
                let ran = self.run(&candidate, call, 1, &point)?;
                let time = ran.first().map_or(Picos::ZERO, |run| run.makespan);
                best = Some(best.map_or(time, |best| best.min(time)));
                if holds_between {
                    best_between = Some(best_between.map_or(time, |best| best.min(time)));
                }
                Time::Simulated(time)
            };
            // Of the sizes of segments of an algorithm the best one is kept.
            let of_same = |kept: &&mut Timed| kept.candidate.algorithm == candidate.algorithm;
            match times.iter_mut().find(of_same) {
                None => times.push(Timed { candidate, time }),
                Some(kept) if is_better(time, kept.time) => *kept = Timed { candidate, time },
                Some(_) => {}
            }
        }
        // Of two that take equally long, one that does not copy is preferred.
        times.sort_by_key(|Timed { candidate: Candidate { algorithm, .. }, time }| {
            (time.bound(), algorithm.copies, algorithm.number)
        });
        Ok(times)
    }

    /// What `candidate` takes in each draw.
    fn drawn(&self, candidate: &Candidate, at: Case) -> Result<Vec<Picos>, Refused> {
        let point = |draw: usize| self.point(self.draws.get(draw).unwrap_or(self.measured));
        let call = self.call(candidate, at);
        let ran = self.run(candidate, call, self.draws.len(), &point)?;
        Ok(ran.into_iter().map(|run| run.makespan).collect())
    }

    fn run(
        &self,
        candidate: &Candidate,
        call: Call,
        count: usize,
        point: &(dyn Fn(usize) -> Point + Sync),
    ) -> Result<Vec<Completed>, Refused> {
        run_points(&Source::Collective(call), count, point, &self.plan, &|| {})
            .map_err(|source| Refused { algorithm: candidate.algorithm, call, source })
    }

    fn point(&self, sets: &ParameterSets) -> Point {
        Point { sets: sets.clone(), phases: Phases::Drawn { seed: 0 } }
    }

    const fn call(&self, candidate: &Candidate, at: Case) -> Call {
        let Case { ranks, size, .. } = at;
        let shape = candidate.algorithm.shape;
        Call { shape, ranks, size, segment: candidate.segment, combine: self.combine }
    }

    /// The least that a call takes, as far as its [`Call::chain`] says;
    /// saturating.
    pub(super) fn bound(&self, call: &Call) -> Picos {
        let chain = call.chain();
        Picos(self.hop(Bytes(chain.size)).saturating_mul(chain.messages))
    }

    /// From the start of a send of so many bytes to the end of its receive, at
    /// least, in ps.
    fn hop(&self, size: Bytes) -> u64 {
        let sets = self.measured;
        let place = sets.protocols.iter().rposition(|protocol| protocol.first <= size);
        let place = place.unwrap_or(0);
        let Some(Protocol { parameters, .. }) = sets.protocols.get(place) else { return 0 };
        let receive = sets.receive.get(place).copied();
        let ReceiveOverhead { overhead, overhead_per_byte } =
            receive.unwrap_or_else(|| parameters.receive_overhead());
        let bytes = size.after_first();
        let wire = parameters.gap_per_byte.times(bytes).map_or(u64::MAX, |time| time.0);
        let handled = overhead_per_byte.times(bytes).and_then(|rest| overhead.plus(rest));
        let handled = handled.map_or(u64::MAX, |time| time.0);
        let sent = parameters.overhead.0.saturating_add(parameters.latency.0);
        sent.saturating_add(handled.max(wire))
    }
}

/// Whether `time` is more than `reach` times `best`.
fn is_beyond(time: Picos, best: Picos, reach: f64) -> bool {
    time.seconds() > best.seconds() * reach
}

/// A time that is known is better than a bound, and a lesser one than a
/// greater one.
fn is_better(time: Time, than: Time) -> bool {
    match (time, than) {
        (Time::Simulated(time), Time::Simulated(than)) => time < than,
        (Time::Simulated(_), Time::AtLeast(_)) => true,
        (Time::AtLeast(_), Time::Simulated(_)) => false,
        (Time::AtLeast(time), Time::AtLeast(than)) => time < than,
    }
}

/// `algorithm` with each size of segments that it can have.
fn segments(algorithm: &'static Algorithm, at: Case) -> impl Iterator<Item = Candidate> {
    let possible = move |segment: &u64| {
        let messages = at.size.div_ceil(*segment).saturating_mul(at.ranks.into());
        algorithm.segments && *segment < at.size && messages <= MOST_SEGMENTS
    };
    let cut = SEGMENTS.into_iter().filter(possible);
    std::iter::once(0).chain(cut).map(move |segment| Candidate { algorithm, segment })
}
