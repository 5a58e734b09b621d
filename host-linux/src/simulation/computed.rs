//! Runs of computed patterns at many points.
//!
//! Neighbouring points differ little: most ranks have the same events in the same order, so one run
//! can serve several points (see [`Lanes`]). If the orders diverge, each point is run separately.

use std::sync::atomic::{AtomicUsize, Ordering};

use loggap_core::sim::NoNoise;
use loggap_core::sim::implicit::{LaneMemory, LaneState, Lanes, Program, RankState, Requirements};
use loggap_core::units::Picos;
use loggap_core::with_program;

use super::implicit::{Means, PatternMemory, settled};
use super::noise::with_noise;
use super::points::{Batch, Completed, Ended, Point, of_one_point};
use super::side_by_side::side_by_side;
use super::{PatternError, RunError, Source};
use crate::sys::pages::Pages;

/// Points computed along with the one that is simulated.
const LANES: usize = 7;
/// Points of a group, computed in one run.
const GROUP: usize = 1 + LANES;
/// Approximate run time of a group, in units of the run time of one point.
const APART: usize = 3;
/// Limit on a thread's memory for group runs, bytes.
const MOST_GROUP_BYTES: u64 = 1 << 30;

/// Number of groups that succeeded in one run, and of those that diverged.
#[derive(Debug, Default)]
struct Tried {
    together: AtomicUsize,
    apart: AtomicUsize,
}

impl Tried {
    /// Number of groups that may diverge before one succeeds.
    const FIRST: usize = 2;

    /// Counts a group; `None` if it diverged.
    fn note<T>(&self, found: Option<&T>) {
        let count = if found.is_some() { &self.together } else { &self.apart };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// True if most groups have succeeded so far.
    fn is_worth_it(&self) -> bool {
        let together = self.together.load(Ordering::Relaxed);
        self.apart.load(Ordering::Relaxed) < Self::FIRST.saturating_add(together)
    }
}

/// Memory of a thread for its runs, allocated when it is first needed.
struct PatternMemories<S> {
    needs: Requirements,
    /// Memory limit of the thread, bytes.
    share: u64,
    group: Option<GroupMemory<S>>,
    single: Option<PatternMemory<S>>,
}

/// Sizes of the parts of [`LaneMemory`], in words.
struct LaneWords {
    clocks: usize,
    messages: usize,
}

/// Memory for group runs.
struct GroupMemory<S> {
    memory: PatternMemory<LaneState<S>>,
    clocks: Pages<u64>,
    messages: Pages<u64>,
}

impl<S: Copy + Default> PatternMemories<S> {
    fn single(&mut self) -> Result<&mut PatternMemory<S>, RunError> {
        Ok(match &mut self.single {
            Some(single) => single,
            none => none.insert(
                PatternMemory::new(self.needs, 1, self.needs.nodes).map_err(RunError::Pattern)?,
            ),
        })
    }

    /// `None` if memory is insufficient for a group; it may suffice for a single point.
    fn group(&mut self) -> Option<&mut GroupMemory<S>> {
        match &mut self.group {
            Some(group) => Some(group),
            none => Some(none.insert(GroupMemory::new(self.needs).ok()?)),
        }
    }
}

impl<S: Copy + Default> GroupMemory<S> {
    fn new(needs: Requirements) -> Result<Self, PatternError> {
        let refused = |error| PatternError::Memory { bytes: Self::bytes(&needs), error };
        let LaneWords { clocks, messages } = Self::words(&needs);
        let clocks = Pages::zeroed(clocks).map_err(refused)?;
        let messages = Pages::zeroed(messages).map_err(refused)?;
        Ok(Self { memory: PatternMemory::new(needs, 1, needs.nodes)?, clocks, messages })
    }

    /// Words for the lanes.
    const fn words(needs: &Requirements) -> LaneWords {
        LaneWords {
            clocks: needs.ranks.saturating_mul(4 * LANES),
            messages: needs.nodes.saturating_mul(LANES + 1),
        }
    }

    /// Total size in bytes.
    fn bytes(needs: &Requirements) -> u64 {
        let wide = |count: usize, size: usize| (count as u64).saturating_mul(size as u64);
        let ranks = wide(needs.ranks, size_of::<RankState<LaneState<S>>>());
        let LaneWords { clocks, messages } = Self::words(needs);
        let lanes = wide(clocks.saturating_add(messages), size_of::<u64>());
        needs.bytes().saturating_add(ranks).saturating_add(lanes)
    }
}

impl Batch<'_> {
    /// Results of points of a pattern that can be computed. Empty, or `None` for a point, if the
    /// schedule must be stored.
    pub(super) fn computed(
        &self,
        source: &Source,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        let program = source.program(self.plan.settings.receive);
        let Some(program) = program else { return Ok(Vec::new()) };
        with_program!(&program, program => self.computed_by(program, points))
    }

    fn computed_by<P: Program + Sync>(
        &self,
        program: &P,
        points: &[usize],
    ) -> Result<Vec<Option<Ended>>, RunError> {
        let (needs, kept) = (Requirements::of(program), self.kept(program.ranks()));
        let threads = self.threads(needs.bytes(), kept, points.len())?;
        let share = self.plan.most_bytes.saturating_sub(kept) / threads as u64;
        let further = GroupMemory::<P::State>::bytes(&needs);
        // Runs of single points keep the memory that they may come to need.
        let room = share.saturating_sub(needs.bytes_with(needs.nodes_most)).min(MOST_GROUP_BYTES);
        let whole = points.len() / GROUP;
        let grouped = self.plan.noise.is_none()
            && self.plan.finish == 0
            && further <= room
            && points.len() > APART * threads;
        let (together, rest) = points.split_at(if grouped { whole * GROUP } else { 0 });
        let groups: Vec<&[usize]> = together.chunks(GROUP).chain(rest.chunks(1)).collect();
        let all: Vec<usize> = (0..groups.len()).collect();
        let tried = Tried::default();
        let found = side_by_side(
            threads,
            &all,
            || {
                Ok(PatternMemories {
                    needs,
                    share: share - if grouped { further } else { 0 },
                    group: None,
                    single: None,
                })
            },
            |memory, at| {
                let group = groups.get(at).copied().unwrap_or_default();
                if self.plan.is_stopped() {
                    return Ok(group.iter().map(|_| None).collect());
                }
                let together = group.len() == GROUP && tried.is_worth_it();
                if together {
                    let found = self.together(program, memory, group)?;
                    tried.note(found.as_ref());
                    if let Some(found) = found {
                        found.iter().for_each(|_| (self.note)());
                        return Ok(found
                            .into_iter()
                            .map(|completed| Some(Ok(completed)))
                            .collect());
                    }
                }
                group.iter().map(|&at| self.one(program, memory, at)).collect::<Result<Vec<_>, _>>()
            },
        )?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Results of a group in one run; `None` if the points diverge.
    fn together<P: Program>(
        &self,
        program: &P,
        memory: &mut PatternMemories<P::State>,
        group: &[usize],
    ) -> Result<Option<Vec<Completed>>, RunError> {
        let points: Vec<Point> = group.iter().map(|&at| (self.point)(at)).collect();
        let parameters = points.iter().map(|point| point.sets.parameters());
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let Some((&first, others)) = parameters.split_first() else { return Ok(None) };
        let Ok(others) = others.try_into() else { return Ok(None) };
        let Some(GroupMemory { memory, clocks, messages }) = memory.group() else {
            return Ok(None);
        };
        let lent = LaneMemory { clocks, messages };
        // An error of a single point is found again when it is run separately.
        let Ok(lanes) = Lanes::<_, LANES>::new(program, others, lent) else { return Ok(None) };
        let outcome = match memory.run(
            &lanes,
            first,
            NoNoise,
            &Means { most_bytes: 0, ..Means::ONE_THREAD },
            |_, _| {},
        ) {
            Ok(computed) if computed.outcome.open_ties == 0 => computed.outcome,
            Ok(_) | Err(PatternError::Stopped(_)) => return Ok(None),
            Err(error) => return Err(RunError::Pattern(error)),
        };
        let completed = |makespan| Completed { makespan, finish: Vec::new() };
        let together = |others: [Picos; LANES]| {
            std::iter::once(outcome.makespan).chain(others).map(completed).collect()
        };
        Ok(lanes.makespans().map(together))
    }

    /// Result of a single point; `None` if the schedule must be stored.
    fn one<P: Program>(
        &self,
        program: &P,
        memory: &mut PatternMemories<P::State>,
        at: usize,
    ) -> Result<Option<Ended>, RunError> {
        let share = memory.share;
        let ended = of_one_point(self.compute(program, memory.single()?, at, share))?.transpose();
        if ended.is_some() {
            (self.note)();
        }
        Ok(ended)
    }

    fn compute<P: Program>(
        &self,
        program: &P,
        memory: &mut PatternMemory<P::State>,
        at: usize,
        most_bytes: u64,
    ) -> Result<Option<Completed>, RunError> {
        let point = (self.point)(at);
        let mut finish = Vec::new();
        let listed = at < self.plan.finish;
        let each = |_, time| {
            if listed {
                finish.push(time);
            }
        };
        let parameters = point.sets.parameters()?;
        let means = Means { most_bytes, ..Means::ONE_THREAD };
        let result = with_noise!(self.noise(&point), noise => {
            memory.run(program, parameters, noise, &means, each)
        });
        let computed = settled(result.map_err(RunError::Pattern))?;
        Ok(computed.map(|computed| Completed { makespan: computed.outcome.makespan, finish }))
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::goal::pattern::{Options, Pattern};
    use loggap_core::model::{LogGops, Protocol};
    use loggap_core::noise::Phases;
    use loggap_core::sim::Settings;
    use loggap_core::sim::implicit::{PatternProgram, Release, Transfer};
    use loggap_core::units::{Bytes, PerByte};

    use super::*;
    use crate::simulation::{ParameterSets, Plan};

    /// A program that counts its simulations: rank 0 starts once in each.
    struct Counted<'a, P> {
        program: &'a P,
        simulations: AtomicUsize,
    }

    impl<P: Program> Program for Counted<'_, P> {
        type State = P::State;

        fn ranks(&self) -> u32 {
            self.program.ranks()
        }

        fn sizes(&self) -> [u64; 2] {
            self.program.sizes()
        }

        fn waiting(&self) -> u64 {
            self.program.waiting()
        }

        fn messages(&self) -> u64 {
            self.program.messages()
        }

        fn interchangeable(&self, rank: u32) -> bool {
            self.program.interchangeable(rank)
        }

        fn start(&self, rank: u32, state: &mut Self::State) -> Release {
            self.simulations.fetch_add(usize::from(rank == 0), Ordering::Relaxed);
            self.program.start(rank, state)
        }

        fn sent(&self, rank: u32, state: &mut Self::State, send: u32) -> Release {
            self.program.sent(rank, state, send)
        }

        fn received(&self, rank: u32, state: &mut Self::State, receive: u32) -> Release {
            self.program.received(rank, state, receive)
        }

        fn calculated(&self, rank: u32, state: &mut Self::State, calc: u32) -> Release {
            self.program.calculated(rank, state, calc)
        }

        fn transfer(&self, rank: u32, send: u32) -> Transfer {
            self.program.transfer(rank, send)
        }

        fn met(&self, rank: u32, state: &mut Self::State, receive: u32) -> u32 {
            self.program.met(rank, state, receive)
        }

        fn expected(&self, rank: u32, receive: u32) -> u64 {
            self.program.expected(rank, receive)
        }

        fn calc(&self, rank: u32, calc: u32) -> Picos {
            self.program.calc(rank, calc)
        }
    }

    /// Number of simulations for `count` points with latencies of 1 µs plus `latency` ns, and of
    /// points that fail.
    fn simulations(
        count: usize,
        threads: usize,
        latency: impl Fn(usize) -> u64 + Sync,
    ) -> [usize; 2] {
        let point = |at: usize| {
            let parameters = LogGops {
                latency: Picos(1_000_000 + latency(at) * 1_000),
                overhead: Picos(500_000),
                gap: Picos(300_000),
                gap_per_byte: PerByte::ZERO,
                overhead_per_byte: PerByte::ZERO,
                eager_limit: Bytes(u64::MAX),
            };
            let sets =
                ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new());
            Point { sets, phases: Phases::Drawn { seed: 0 } }
        };
        let plan = Plan { threads, ..Plan::new(Settings::default()) };
        let batch = Batch { plan: &plan, point: &point, note: &|| {} };
        let points: Vec<usize> = (0..count).collect();
        let options = Options::new(16, 8);
        let program = PatternProgram::new(Pattern::BinomialBroadcast, &options).unwrap().unwrap();
        with_program!(&program, program => {
            let counted = Counted { program, simulations: AtomicUsize::new(0) };
            let found = batch.computed_by(&counted, &points).unwrap();
            assert_eq!(found.iter().flatten().count(), count);
            let failed = found.iter().flatten().filter(|ended| ended.is_err()).count();
            [counted.simulations.into_inner(), failed]
        })
    }

    #[test]
    fn points_that_follow_each_other_share_a_simulation_by_eight() {
        assert_eq!(simulations(40, 1, |at| at as u64), [5, 0]);
        // The remainder is run separately, and so are few points.
        assert_eq!(simulations(43, 1, |at| at as u64), [5 + 3, 0]);
        assert_eq!(simulations(APART, 1, |at| at as u64), [APART, 0]);
        assert_eq!(simulations(40, 2, |at| at as u64), [5, 0]);
    }

    #[test]
    fn a_point_that_fails_fails_alone_and_no_other_is_run_again() {
        let overflows_at_1 = |at| if at == 1 { u64::MAX / 2_000 } else { at as u64 };
        assert_eq!(simulations(APART, 1, overflows_at_1), [APART, 1]);
    }
}
