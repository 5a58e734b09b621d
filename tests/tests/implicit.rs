//! Patterns that are computed against the same patterns stored.

use std::cell::RefCell;

use loggap::simulation::{
    Computed, Job, Progress, RunError, Wanted, Watch, bytes_needed, run_pattern,
};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{LogGops, Protocol, ReceiveOverhead};
use loggap_core::random::Random;
use loggap_core::sim::implicit::{
    self, Extent, ImplicitError, Memory, Node, PatternProgram, ProgramFinished, RankState, Release,
    Requirements, Simulation, Transfer,
};
use loggap_core::sim::{self, NoNoise, Noise, Parameters, SimError};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::engine;
use loggap_tests::program::Program;
use loggap_tests::random_pattern::{options, patterns};
use loggap_tests::random_program::of_picos;
use loggap_tests::shadow::Settings;

/// ProgramFinished and finishing times of the computed form.
fn computed<N: Noise + Copy + Send>(
    program: &PatternProgram,
    set: LogGops,
    noise: N,
) -> Result<(ProgramFinished, Vec<u64>), ImplicitError> {
    let (computed, finish) = computed_with(&job(Parameters::one(set)), program, noise, &|_| {})?;
    Ok((computed.outcome, finish))
}

/// On one thread.
fn job(parameters: Parameters<'_>) -> Job<'_> {
    let wanted = Wanted { finish: true, ..Wanted::default() };
    Job { wanted, ..Job::new(parameters, sim::Settings::default()) }
}

fn computed_with<N: Noise + Copy + Send>(
    job: &Job<'_>,
    program: &PatternProgram,
    noise: N,
    watch: Watch<'_>,
) -> Result<(Computed, Vec<u64>), ImplicitError> {
    match run_pattern(program, job, noise, watch) {
        Ok(computed) => {
            let finish = computed.finish.iter().map(|time| time.0).collect();
            Ok((computed, finish))
        }
        Err(RunError::Pattern(error)) => Err(error),
        Err(RunError::PatternMemory { .. }) => Err(ImplicitError::Memory),
        Err(error) => panic!("{error}"),
    }
}

/// The parameter sets of the reference results, and the defaults.
fn sets() -> Vec<LogGops> {
    let rows = [
        [2_500, 1_500, 1_000, 6, 0],
        [2_500, 1_500, 4_000, 6, 0],
        [0, 1_500, 1_000, 6, 0],
        [2_500, 0, 1_000, 6, 0],
        [2_500, 100, 9_000, 1, 3],
        [2_500, 1_500, 0, 0, 0],
        [1, 1, 1, 1, 1],
        [700, 300, 2_000, 3, 7],
        [1, 0, 0, 0, 0],
    ];
    let of_nanos = |[latency, overhead, gap, gap_per_byte, overhead_per_byte]: [u64; 5]| {
        of_picos([latency, overhead, gap, gap_per_byte, overhead_per_byte].map(|time| time * 1_000))
    };
    rows.into_iter().map(of_nanos).collect()
}

/// Every third microsecond costs another 500 ns, from a phase of its own.
#[derive(Clone, Copy)]
struct Detours;

impl Noise for Detours {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        let phase = u64::from(rank) * 700_123;
        let before = |time: u64| (time + phase) / 3_000_000 * 500_000;
        Picos(before(start.0 + length.0) - before(start.0))
    }
}

/// Events of computed patterns are those of stored ones, and finishing times are where no
/// tie is open; `rounds` of each pattern. How many had such ties, and how many had none.
fn compare_with_stored<N: Noise + Copy + Send + Sync>(
    seed: u64,
    rounds: usize,
    noise: N,
    mut ends: impl FnMut(&mut Random) -> Vec<ReceiveOverhead>,
) -> [u32; 2] {
    let mut counts = [0; 2];
    let mut random = Random::new(seed);
    for (pattern, algorithm) in patterns() {
        for round in 0..rounds {
            let options = options(&mut random, algorithm);
            let Ok(Some(program)) = PatternProgram::new(pattern, &options) else { continue };
            let sets = sets();
            let set = sets[round % sets.len()];
            let ends = ends(&mut random);
            let label = format!("{pattern} {options:?} {set:?} {ends:?}");
            let parameters = Parameters::one(set);
            let parameters = match ends[..] {
                [] => parameters,
                _ => parameters.with_receive(&ends).unwrap(),
            };
            let run = computed_with(&job(parameters), &program, noise, &|_| {});
            let (Computed { outcome, .. }, finish) = run.expect(&label);
            let lost =
                |rank: usize, start, length| noise.lost(rank as u32, Picos(start), Picos(length)).0;
            let settings = Settings { receive_overheads: ends.clone(), ..Settings::new(set) };
            let program = Program::of_pattern(pattern, &options);
            let stored = engine::run(&program, &settings, Some(&lost));
            assert_eq!(outcome.events, stored.events, "{label}");
            let decided = outcome.open_ties == 0;
            assert!(!decided || finish == stored.finish, "{label}");
            counts[usize::from(decided)] += 1;
        }
    }
    counts
}

#[test]
fn computed_patterns_equal_stored_ones() {
    let [open, decided] = compare_with_stored(21, 60, NoNoise, |_| Vec::new());
    assert!(decided > 1_000 && open * 20 < decided, "{open} open, {decided} not");
}

#[test]
fn computed_patterns_equal_stored_ones_with_noise_on_every_rank() {
    let [_, decided] = compare_with_stored(22, 15, Detours, |_| Vec::new());
    assert!(decided > 300, "{decided}");
}

#[test]
fn computed_patterns_equal_stored_ones_with_overheads_of_the_ends_apart() {
    let ends = |random: &mut Random| {
        vec![ReceiveOverhead {
            overhead: Picos(random.below(4) * 900_000),
            overhead_per_byte: PerByte((random.below(9) * 1_000) << 16),
        }]
    };
    let [_, decided] = compare_with_stored(23, 15, Detours, ends);
    assert!(decided > 300, "{decided}");
}

/// Computed on one thread and on several, with the same result; how many of
/// them in parts.
fn compare_on_threads<N: Noise + Copy + Send>(noise: N, latest: u64, rounds: u64) -> u32 {
    let mut random = Random::new(24);
    let (sets, mut parted) = (sets(), 0);
    for (pattern, algorithm) in patterns() {
        for _ in 0..rounds {
            let small = options(&mut random, algorithm);
            let mut draw = |bound: u64| random.below(bound) as u32;
            let ranks = if draw(2) == 0 { 512 } else { 500 + draw(120) };
            let root = if small.root == 0 { 0 } else { draw(ranks.into()) };
            let options = Options { ranks, root, ..small };
            let Ok(Some(program)) = PatternProgram::new(pattern, &options) else { continue };
            let Some(&(mut set)) = sets.get(random.below(sets.len() as u64) as usize) else {
                continue;
            };
            if random.below(8) == 0 {
                // Where it is large, some time is past 2^64 ps.
                set.latency = Picos(latest / (1 + random.below(8)));
            }
            let threads = 2 + random.below(3) as usize;
            // The mail, or the nodes, may turn out to be too few.
            let most_bytes = if random.below(3) == 0 { 1 << 22 } else { u64::MAX };
            let label = format!("{pattern} {options:?} {set:?}, {threads} threads, {most_bytes}");
            let one = job(Parameters::one(set));
            let run = |job: &Job<'_>| computed_with(job, &program, noise, &|_| {});
            let with = Job { threads, most_bytes, least_messages: 0, ..one.clone() };
            match (run(&one), run(&with)) {
                (_, Err(error @ ImplicitError::Nodes { .. })) => {
                    let one = Job { most_bytes, ..one };
                    assert_eq!(run(&one).err(), Some(error), "{label}");
                }
                (Ok((alone, finish)), Ok((together, finish_together))) => {
                    // How many ties are open depends on which are compared.
                    let outcome = |computed: &Computed| ProgramFinished {
                        open_ties: computed.outcome.open_ties.min(1),
                        ..computed.outcome
                    };
                    assert_eq!(outcome(&together), outcome(&alone), "{label}");
                    assert_eq!(finish_together, finish, "{label}");
                    assert_eq!(together.threads, threads.min(together.parts), "{label}");
                    assert!(together.memory_bytes <= most_bytes, "{label}");
                    parted += u32::from(together.parts > 1);
                }
                (alone, together) => {
                    assert_eq!(together.err(), alone.err(), "{label}");
                }
            }
        }
    }
    parted
}

#[test]
fn on_threads_computed_patterns_give_the_same() {
    let parted = compare_on_threads(NoNoise, u64::MAX, 1);
    assert!(parted > 7, "{parted}");
}

#[test]
fn on_threads_computed_patterns_give_the_same_with_noise() {
    let parted = compare_on_threads(Detours, 1 << 40, 1);
    assert!(parted > 7, "{parted}");
}

#[test]
fn runs_are_parted_where_it_pays_and_there_is_room() {
    let run = |pattern, options: Options, most_bytes| {
        let program = PatternProgram::new(pattern, &options).unwrap().unwrap();
        let job = Job { threads: 2, most_bytes, ..job(Parameters::one(sets()[0])) };
        computed_with(&job, &program, NoNoise, &|_| {}).unwrap().0
    };
    let parted = |pattern, ranks| run(pattern, Options::new(ranks, 8), u64::MAX).parts > 1;
    assert!(parted(Pattern::Dissemination, 1 << 14));
    // Too few messages; too few ranks at a time.
    assert!(!parted(Pattern::Dissemination, 1 << 10));
    assert!(parted(Pattern::AllToAll, 512) && !parted(Pattern::AllToAll, 500));
    assert!(!parted(Pattern::Gather, 1 << 18) && !parted(Pattern::LinearBarrier, 1 << 18));
    assert!(!parted(Pattern::PipelinedRing, 1 << 18) && !parted(Pattern::DoubleRing, 1 << 18));
    let cut = Options { segment: Some(1), ..Options::new(1 << 10, 1 << 10) };
    assert!(run(Pattern::PipelinedRing, cut, u64::MAX).parts > 1);
    // With the memory of one part alone.
    let whole = run(Pattern::Dissemination, Options::new(1 << 14, 8), u64::MAX);
    assert!(whole.parts > 1 && whole.memory_bytes > (1 << 14) * 44, "{whole:?}");
    let program = PatternProgram::new(Pattern::Dissemination, &Options::new(1 << 14, 8));
    let least = bytes_needed(&program.unwrap().unwrap());
    let alone = run(Pattern::Dissemination, Options::new(1 << 14, 8), least);
    assert_eq!((alone.parts, alone.outcome), (1, whole.outcome));
    assert!(alone.memory_bytes <= least && alone.memory_bytes > (1 << 14) * 44, "{alone:?}");
}

#[test]
fn long_runs_say_how_far_they_are() {
    let options = Options::new(1 << 15, 1);
    let program = PatternProgram::new(Pattern::Dissemination, &options).unwrap().unwrap();
    for threads in [1, 2] {
        let told = RefCell::new(Vec::new());
        let watch = |progress: Progress| told.borrow_mut().push((progress.done, progress.of));
        let job = Job { threads, ..job(Parameters::one(sets()[0])) };
        let (computed, _) = computed_with(&job, &program, NoNoise, &watch).unwrap();
        assert_eq!(computed.threads, threads);
        let told = told.take();
        assert!(told.len() > 3, "{told:?}");
        assert!(told.is_sorted_by_key(|(events, _)| *events), "{told:?}");
        let all = computed.outcome.events;
        assert!(told.iter().all(|&(events, of)| events <= all && of == all), "{told:?} of {all}");
    }
}

#[test]
fn what_cannot_be_computed_is_refused_with_its_reason() {
    let set = sets()[0];
    let program = |pattern, options: &Options| PatternProgram::new(pattern, options).unwrap();
    let broadcast = program(Pattern::BinomialBroadcast, &Options::new(8, 100)).unwrap();
    let instant = LogGops { latency: Picos(0), overhead: Picos(0), ..set };
    assert_eq!(computed(&broadcast, instant, NoNoise).unwrap_err(), ImplicitError::NoLookahead);
    let long = LogGops { eager_limit: Bytes(99), ..set };
    let error = computed(&broadcast, long, NoNoise).unwrap_err();
    assert_eq!(error, ImplicitError::Rendezvous { size: 100 });
    let endless = LogGops { latency: Picos(u64::MAX / 3), ..set };
    let error = computed(&broadcast, endless, NoNoise).unwrap_err();
    assert!(matches!(error, ImplicitError::Stopped(SimError::Overflow { .. })), "{error}");

    let options = Options { segment: Some(64), ..Options::new(8, 100) };
    let ring = program(Pattern::PipelinedRing, &options).unwrap();
    let protocols = [0, 50].map(|first| Protocol { first: Bytes(first), parameters: set });
    let parameters = Parameters::per_protocol(&protocols).unwrap();
    let run = |program| run_pattern(program, &job(parameters), NoNoise, &|_| {});
    let error = run(&ring).unwrap_err();
    assert!(matches!(error, RunError::Pattern(ImplicitError::Protocols)), "{error}");
    assert!(run(&broadcast).is_ok());

    assert!(program(Pattern::ResNet, &Options::new(8, 100)).is_none());
    let repeated = Options { repeat: 2, ..Options::new(8, 100) };
    assert!(program(Pattern::BinomialBroadcast, &repeated).is_none());
}

/// Two ranks; the first sends what the second does not receive, or the
/// second waits for what does not come, or somebody sends nowhere, or calculates
/// to the last instant that there is before it sends.
#[derive(Clone, Copy, Debug)]
struct Broken {
    sends: u32,
    receives: u32,
    to: u32,
    is_late: bool,
}

impl implicit::Program for Broken {
    type State = ();
    fn extent(&self) -> Extent {
        let (messages, sizes) = (self.sends.into(), [1, 1]);
        Extent { ranks: 2, sizes, waiting: 8, messages, busy: 2, interchangeable: true }
    }
    fn start(&self, rank: u32, _state: &mut ()) -> Release {
        match rank {
            0 if self.is_late => Release::calc(0),
            0 => Release::sends(0, self.sends),
            _ => Release::receives(self.receives),
        }
    }
    fn sent(&self, _rank: u32, _state: &mut (), _send: u32) -> Release {
        Release::NOTHING
    }
    fn received(&self, _rank: u32, _state: &mut (), _receive: u32) -> Release {
        Release::NOTHING
    }
    fn calculated(&self, _rank: u32, _state: &mut (), _calc: u32) -> Release {
        Release::sends(0, self.sends)
    }
    fn transfer(&self, _rank: u32, send: u32) -> Transfer {
        Transfer { to: self.to, receive: send, size: 1 }
    }
    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        1
    }
    fn calc(&self, _rank: u32, _calc: u32) -> Picos {
        Picos::MAX
    }
}

#[test]
fn a_program_of_ones_own_that_does_not_end_well_is_told_so() {
    let run = |program: Broken, nodes: usize| {
        let needs = Requirements::of(&program);
        let mut ranks = vec![RankState::default(); needs.ranks];
        let (mut words, mut nodes) = (vec![0; needs.words], vec![Node::default(); nodes]);
        let memory = Memory { ranks: &mut ranks, words: &mut words, nodes: &mut nodes };
        Simulation::new(&program, Parameters::one(sets()[0]), NoNoise, memory)?.run()
    };
    let sound = Broken { sends: 2, receives: 2, to: 1, is_late: false };
    assert_eq!(run(sound, 9).unwrap().events, 6);
    let error = run(Broken { receives: 1, ..sound }, 9).unwrap_err();
    assert_eq!(error, ImplicitError::Unreceived { messages: 1 });
    let error = run(Broken { sends: 1, ..sound }, 9).unwrap_err();
    assert_eq!(error, ImplicitError::Waiting { receives: 1 });
    assert_eq!(
        run(Broken { to: 2, ..sound }, 9).unwrap_err(),
        ImplicitError::Peer { rank: 0, peer: 2 }
    );
    assert_eq!(run(sound, 2).unwrap_err(), ImplicitError::Nodes { lent: 2 });
    let error = run(Broken { sends: 1, receives: 1, is_late: true, ..sound }, 9).unwrap_err();
    assert_eq!(error, ImplicitError::Stopped(SimError::Overflow { rank: 0 }));
}
