//! Computed patterns under several parameters in one simulation: whatever
//! lanes say is what a simulation with their parameters says.

use loggap::simulation::{
    Job, Means, ParameterSets, Plan, Point, Source, Wanted, makespan, run_pattern, run_points,
};
use loggap_core::goal::pattern::{Algorithm, Options, Pattern};
use loggap_core::model::{LogGops, Protocol};
use loggap_core::noise::Phases;
use loggap_core::random::Random;
use loggap_core::sim::implicit::{
    LaneMemory, LaneState, Lanes, Memory, PatternProgram, Program, RankState, Requirements,
    Simulation,
};
use loggap_core::sim::{NoNoise, Parameters, Settings};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_core::with_program;

const LANES: usize = 3;

/// The makespans of a simulation with the first set and of its lanes.
fn together<P: Program>(program: &P, sets: &[LogGops; 1 + LANES]) -> Option<[Picos; 1 + LANES]> {
    let needs = Requirements::of(program);
    let mut ranks = vec![RankState::<LaneState<P::State>>::default(); needs.ranks];
    let mut words = vec![0; needs.words];
    let mut nodes = vec![Default::default(); needs.nodes_most];
    // What lent memory holds does not matter.
    let mut messages = vec![0x1234_5678_9abc; needs.nodes_most * (LANES + 1)];
    let mut clocks = vec![0x1234_5678_9abc; needs.ranks * 4 * LANES];
    let lent = LaneMemory { clocks: &mut clocks, messages: &mut messages };
    let parameters = [1, 2, 3].map(|lane| Parameters::one(sets[lane]));
    let lanes = Lanes::<_, LANES>::new(program, parameters, lent).ok()?;
    let memory = Memory { ranks: &mut ranks, words: &mut words, nodes: &mut nodes };
    let mut simulation = Simulation::new(&lanes, Parameters::one(sets[0]), NoNoise, memory).ok()?;
    let outcome = simulation.run().ok().filter(|outcome| outcome.open_ties == 0)?;
    let [a, b, c] = lanes.makespans()?;
    Some([outcome.makespan, a, b, c])
}

fn together_any(program: &PatternProgram, sets: &[LogGops; 4]) -> Option<[Picos; 4]> {
    with_program!(program, program => together(program, sets))
}

/// Every pattern, with every algorithm.
fn patterns() -> impl Iterator<Item = (Pattern, Algorithm)> {
    use Algorithm::{Auto, BinomialTree, Linear, RecursiveDoubling, Ring};
    let with =
        |pattern| [Auto, Linear, BinomialTree, RecursiveDoubling, Ring].map(|a| (pattern, a));
    Pattern::all().iter().flat_map(move |described| with(described.pattern))
}

/// A set of multiples of `unit`, 1 or 1000 ps: full of equal times, or with
/// hardly any.
fn set(random: &mut Random, unit: u64) -> LogGops {
    let mut time = || Picos(random.below(4_000 / unit) * unit);
    let (latency, overhead, gap) = (time(), time(), time());
    let mut per_byte = || PerByte((random.below(300 / unit.min(100)) * unit.min(100)) << 16);
    let (gap_per_byte, overhead_per_byte) = (per_byte(), per_byte());
    let eager_limit = Bytes(1 << 30);
    LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit }
}

/// Four sets: alike but for one time, a little or much, or all drawn.
fn sets(random: &mut Random) -> [LogGops; 4] {
    let unit = if random.below(3) == 0 { 1_000 } else { 1 };
    let first = set(random, unit);
    let (which, step) = (random.below(4), (1 + random.below(900 / unit.min(450))) * unit);
    [0u64, 1, 2, 3].map(|lane| {
        let mut with = first;
        match which {
            0 => with.latency.0 += lane * step,
            1 => with.overhead.0 += lane * step,
            2 => with.gap.0 += lane * step,
            _ => return set(random, unit),
        }
        with
    })
}

fn options(random: &mut Random, algorithm: Algorithm) -> Options {
    let ranks = 2 + random.below(30) as u32;
    let compute = (random.below(3) == 0).then(|| Picos(random.below(9_000)));
    let size = 1 + random.below(40);
    let root = random.below(ranks.into()) as u32;
    let segment = (random.below(3) == 0).then_some(1 + size / 3);
    Options { root, segment, compute, algorithm, ..Options::new(ranks, size) }
}

#[test]
fn what_lanes_say_is_what_a_run_alone_says() {
    let mut random = Random::new(41);
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..60 {
        for (pattern, algorithm) in patterns() {
            let options = options(&mut random, algorithm);
            let Ok(Some(program)) = PatternProgram::new(pattern, &options) else { continue };
            let sets = sets(&mut random);
            let Some(found) = together_any(&program, &sets) else {
                unknown += 1;
                continue;
            };
            known += 1;
            for (set, found) in sets.into_iter().zip(found) {
                // Ties are decided by storing the schedule.
                let alone = run_pattern(
                    &program,
                    Parameters::one(set),
                    NoNoise,
                    &Means::ONE_THREAD,
                    |_, _| {},
                )
                .ok()
                .filter(|computed| computed.outcome.open_ties == 0)
                .map(|computed| computed.outcome.makespan);
                let alone = alone.unwrap_or_else(|| {
                    let source = Source::Pattern(pattern, options);
                    makespan(&source, &in_order(Parameters::one(set))).unwrap()
                });
                assert_eq!(alone, found, "{pattern:?}, {options:?}, {sets:?}");
            }
        }
    }
    assert!(known > 1_000 && unknown > 1_000, "{known} {unknown}");
}

/// What is counted runs event by event.
fn in_order(parameters: Parameters<'_>) -> Job<'_> {
    let wanted = Wanted { counters: true, ..Wanted::default() };
    Job { wanted, ..Job::new(parameters, Settings::default()) }
}

#[test]
fn points_are_the_same_together_and_alone() {
    let mut random = Random::new(43);
    for (pattern, algorithm) in patterns() {
        let source = Source::Pattern(pattern, options(&mut random, algorithm));
        let first = set(&mut random, 1);
        // A full group and a rest, with limits that messages are above of.
        let all: Vec<ParameterSets> = (0..13)
            .map(|at| {
                let latency = Picos(first.latency.0 + 1 + at * random.below(3) * 400);
                let eager_limit = Bytes(if random.below(20) == 0 { 3 } else { 1 << 30 });
                let parameters = LogGops { latency, eager_limit, ..first };
                ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
            })
            .collect();
        let point = |at: usize| Point { sets: all[at].clone(), phases: Phases::Drawn { seed: 0 } };
        let alone: Result<Vec<Picos>, String> = all
            .iter()
            .map(|sets| makespan(&source, &in_order(sets.parameters()?)))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string());
        for threads in [1, 3] {
            let plan = Plan { threads, ..Plan::new(Settings::default()) };
            let together = run_points(&source, all.len(), &point, &plan, &|| {});
            let together = together
                .map(|runs| runs.iter().map(|run| run.makespan).collect())
                .map_err(|error| error.to_string());
            assert_eq!(together, alone, "{pattern:?} {algorithm:?}");
        }
    }
}
