//! Simulations on several processes, here threads that exchange what processes would, against one.

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use loggap::schedule::{Form, ScheduleFile, WriteError, write_text};
use loggap::simulation::{
    Job, LoadError, Method, Outcome, ParameterSets, Parts, Processes, ProgramForm, RunError,
    Source, Wanted,
};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::{RankCounters, Rendezvous, Settings};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::program::Program;
use loggap_tests::random_pattern::{options, patterns};
use loggap_tests::random_program::{Shape, parameters, program};
use loggap_tests::{engine, seeds, shadow, streamed};

/// What each process brings to a meeting: words for the others, and numbers.
type Brought = (Vec<Vec<u32>>, Vec<u64>);

/// Meeting of all processes, again and again.
#[derive(Debug, Default)]
struct Room {
    /// Number of the meeting, and what was brought to it so far and to the one before.
    state: Mutex<(usize, Vec<Option<Brought>>, Vec<Brought>)>,
    full: Condvar,
}

/// One of the processes.
#[derive(Debug)]
struct Process<'r> {
    room: &'r Room,
    index: u32,
    count: u32,
}

impl Process<'_> {
    /// What all bring; waits for them.
    fn meet(&self, own: Brought) -> Vec<Brought> {
        let mut state = self.room.state.lock().unwrap();
        let meeting = state.0;
        state.1.resize(self.count as usize, None);
        state.1[self.index as usize] = Some(own);
        if state.1.iter().all(Option::is_some) {
            state.2 = state.1.drain(..).flatten().collect();
            state.0 += 1;
            self.room.full.notify_all();
        }
        // Nobody begins the meeting after the next before this one has read.
        let limit = Duration::from_secs(30);
        let waits = |state: &mut (usize, Vec<_>, Vec<_>)| state.0 == meeting;
        let (state, waited) = self.room.full.wait_timeout_while(state, limit, waits).unwrap();
        assert!(!waited.timed_out(), "process {} waits in vain", self.index);
        state.2.clone()
    }
}

impl Processes for Process<'_> {
    fn index(&self) -> u32 {
        self.index
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn exchange(&self, outgoing: &[Vec<u32>], incoming: &mut Vec<u32>, next: u64) -> Vec<u64> {
        let all = self.meet((outgoing.to_vec(), vec![next]));
        // In another order at each process.
        for (words, _) in all.iter().cycle().skip(self.index as usize).take(all.len()) {
            incoming.extend(&words[self.index as usize]);
        }
        all.iter().map(|(_, next)| next[0]).collect()
    }

    fn all(&self, own: &[u64]) -> Vec<u64> {
        self.meet((Vec::new(), own.to_vec())).into_iter().flat_map(|(_, numbers)| numbers).collect()
    }

    fn at_first(&self, own: Vec<u64>) -> Vec<u64> {
        let all = self.all(&own);
        if self.index == 0 { all } else { Vec::new() }
    }
}

/// What `job` makes of a schedule on `count` processes, with `parts` of them or with blocks of the
/// ranks: the outcome of the first.
fn on_processes(
    job: &Job<'_>,
    sets: &ParameterSets,
    source: impl Fn() -> Source + Sync,
    count: u32,
    parts: Option<&[u32]>,
) -> Result<Outcome, RunError> {
    in_room(&Room::default(), job, sets, source, count, parts)
}

/// As [`on_processes`], with the room in which they meet.
fn in_room(
    room: &Room,
    job: &Job<'_>,
    sets: &ParameterSets,
    source: impl Fn() -> Source + Sync,
    count: u32,
    parts: Option<&[u32]>,
) -> Result<Outcome, RunError> {
    let mut ran: Vec<_> = thread::scope(|scope| {
        let run = |index| {
            let source = &source;
            let Job { parameters, settings, noise, threads, wanted, program, .. } = job.clone();
            move || {
                let process = Process { room, index, count };
                let parts = parts.map(|parts| Parts::new(parts, threads, &process).unwrap());
                let (parts, ranks) = (parts.as_ref(), parts.as_ref().map_or(&[][..], Parts::ranks));
                let numbered = sets.numbered(ranks);
                let parameters =
                    if parts.is_some() { numbered.parameters().unwrap() } else { parameters };
                let job = Job { noise, threads, wanted, program, ..Job::new(parameters, settings) };
                Job { processes: &process, parts, ..job }.simulate(&source(), &|_| {})
            }
        };
        let started: Vec<_> = (0..count).map(|index| scope.spawn(run(index))).collect();
        started.into_iter().map(|process| process.join().unwrap()).collect()
    });
    let errors = ran.iter().filter(|ran| matches!(ran, Err(error) if !is_of_another(error)));
    let failed = errors.count();
    // One process says why.
    if let Some(at) = ran.iter().position(|ran| matches!(ran, Err(error) if !is_of_another(error)))
    {
        assert!(ran.iter().all(Result::is_err) && failed > 0);
        return ran.swap_remove(at);
    }
    ran.swap_remove(0)
}

fn is_of_another(error: &RunError) -> bool {
    error.to_string() == "another process failed"
}

/// Everything of an outcome that does not depend on how it was found.
fn results(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let left: Vec<_> = outcome.stuck.listed().copied().collect();
    let Outcome { ranks, ops, finished, finish, counters, .. } = outcome;
    let public = |c: &RankCounters| {
        let counts = [c.calcs, c.sent, c.bytes_sent.0, c.received, c.unexpected];
        let times = [c.calculating, c.sending, c.receiving, c.noise, c.messages_waited];
        (counts, times, [c.max_posted, c.max_unexpected])
    };
    let counters: Option<Vec<_>> =
        counters.as_ref().map(|counters| counters.iter().map(public).collect());
    (*ranks, *ops, *finished, finish.clone(), counters, left, outcome.stuck.total)
}

fn text(program: &Program) -> Vec<u8> {
    let mut text = Vec::new();
    let wrote: Result<(), WriteError> = write_text(&mut text, |writer| {
        program.replay(writer).map_err(|error| WriteError::Schedule(error.to_string()))
    });
    wrote.unwrap();
    text
}

#[test]
fn random_programs_give_the_same_on_several_processes() {
    let (mut compared, mut crossing) = (0, 0);
    for seed in seeds(0..600) {
        let mut random = Random::new(seed);
        let shape = Shape { ranks: 9, messages: 40, wildcards: 10, faults: 1, ..Shape::PLAIN };
        let program = program(&mut random, &shape);
        let settings = shadow::Settings {
            rendezvous: shadow::Rendezvous::Handshake,
            ..shadow::Settings::random(&mut random)
        };
        let sets = engine::sets(&settings);
        let wanted = Wanted { finish: true, counters: random.below(2) == 0, ..Wanted::default() };
        let threads = 1 + random.below(2) as usize;
        let job = Job {
            wanted,
            threads,
            ..Job::new(sets.parameters().unwrap(), engine::settings(&settings))
        };
        let text = text(&program);
        let source = || Source::File(ScheduleFile::from_bytes("t.goal", text.clone()).unwrap());
        let alone = job.simulate(&source(), &|_| {});
        for count in [2, 3, 5] {
            let at_random: Vec<u32> = (0..9).map(|_| random.below(count.into()) as u32).collect();
            let at_random = at_random.get(..program.ranks.len());
            let parts = if random.below(2) == 0 { at_random } else { None };
            match (on_processes(&job, &sets, source, count, parts), &alone) {
                (Err(RunError::Load(LoadError::OneProcess(why))), _) => {
                    assert!(why.contains("o + L is 0"), "{seed} {count}: {why}");
                }
                (Ok(together), Ok(alone)) => {
                    assert_eq!(results(&together), results(alone), "{seed} {count}");
                    compared += 1;
                    crossing += together.crossing;
                }
                (together, alone) => {
                    assert_eq!(
                        together.err().map(|error| error.to_string()),
                        alone.as_ref().err().map(ToString::to_string),
                        "{seed} {count}"
                    );
                }
            }
        }
    }

    assert!(compared > 300 && crossing > 3_000, "{compared} compared, {crossing} messages");
}

#[test]
fn random_programs_that_are_looked_up_give_the_same_on_several_processes() {
    let (mut compared, mut crossing, mut for_one) = (0, 0, 0);
    for seed in seeds(0..600) {
        let mut random = Random::new(seed);
        let shape = Shape { ranks: 9, messages: 60, faults: 1, ..Shape::PLAIN };
        let program = program(&mut random, &shape);
        let mut settings = shadow::Settings::random(&mut random);
        settings.receive = shadow::Receive::Hold;
        let levels = settings.levels.iter_mut().flat_map(|level| &mut level.parameters);
        for (_, set) in settings.parameters.iter_mut().chain(levels) {
            set.eager_limit = Bytes(u64::MAX);
        }
        let sets = engine::sets(&settings);
        let job = Job {
            wanted: Wanted { finish: true, ..Wanted::default() },
            threads: 1 + random.below(2) as usize,
            program: Some(ProgramForm::Streamed),
            ..Job::new(sets.parameters().unwrap(), engine::settings(&settings))
        };
        let form = [Form::Native, Form::Reference][random.below(2) as usize];
        let bytes = streamed::bytes(&program, form).unwrap();
        let source = || Source::File(ScheduleFile::from_bytes("t.bin", bytes.clone()).unwrap());
        let alone = job.simulate(&source(), &|_| {}).unwrap();
        for count in [2, 3, 5] {
            match on_processes(&job, &sets, source, count, None) {
                Err(RunError::Load(LoadError::OneProcess(why))) => {
                    assert!(why.contains("simultaneous") || why.contains("o + L is 0"), "{why}");
                    for_one += 1;
                }
                together => {
                    let together = together.unwrap();
                    assert_eq!(results(&together), results(&alone), "{seed} {count} {form}");
                    let Method::Streamed { in_order: None, .. } = together.method else {
                        panic!("{:?}", together.method)
                    };
                    compared += 1;
                    crossing += together.crossing;
                }
            }
        }
    }
    assert!(compared > 5 * for_one && crossing > 3_000, "{compared} {for_one} {crossing}");
}

#[test]
fn patterns_give_the_same_on_several_processes() {
    let (mut random, mut compared) = (Random::new(5), 0);
    for (pattern, algorithm) in patterns() {
        for _ in 0..2 {
            let options =
                Options { ranks: 40 + random.below(60) as u32, ..options(&mut random, algorithm) };
            let options = Options { root: options.root.min(39), ..options };
            let mut set = parameters(&mut random);
            set.eager_limit = Bytes(u64::MAX);
            let sets = engine::sets(&shadow::Settings::new(set));
            let wanted = Wanted { finish: true, ..Wanted::default() };
            let settings = Settings { rendezvous: Rendezvous::Instant, ..Settings::default() };
            let job = Job { wanted, ..Job::new(sets.parameters().unwrap(), settings) };
            let source = || Source::Pattern(pattern, options);
            let alone = job.simulate(&source(), &|_| {});
            for count in [2, 4] {
                match (on_processes(&job, &sets, source, count, None), &alone) {
                    (Err(RunError::Load(LoadError::OneProcess(why))), _) => {
                        assert!(why.contains("o + L is 0"), "{pattern} {count}: {why}");
                    }
                    (Ok(together), Ok(alone)) => {
                        assert_eq!(
                            results(&together),
                            results(alone),
                            "{pattern} {options:?} {set:?}"
                        );
                        compared += 1;
                    }
                    (together, alone) => {
                        let told = together.err().map(|error| error.to_string());
                        assert_eq!(
                            told,
                            alone.as_ref().err().map(ToString::to_string),
                            "{pattern}"
                        );
                    }
                }
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

/// Parameters of no machine in which nothing is 0 that keeps messages apart.
const SET: LogGops = LogGops {
    latency: Picos(2_500_000),
    overhead: Picos(1_500_000),
    gap: Picos(1_000_000),
    gap_per_byte: PerByte(6_000 << 16),
    overhead_per_byte: PerByte(0),
    eager_limit: Bytes(u64::MAX),
};

/// Messages between `count` processes, each with a block of the ranks, in a pattern that is stored or
/// computed, whose results are those of one process; `None` if it does not exist.
fn crossing(
    pattern: Pattern,
    options: Options,
    count: u32,
    program: Option<ProgramForm>,
) -> Option<u64> {
    let sets = engine::sets(&shadow::Settings::new(SET));
    let wanted = Wanted { finish: true, ..Wanted::default() };
    let settings = Settings { rendezvous: Rendezvous::Instant, ..Settings::default() };
    let job = Job { wanted, ..Job::new(sets.parameters().unwrap(), settings) };
    let source = || Source::Pattern(pattern, options);
    let alone = job.simulate(&source(), &|_| {}).ok()?;
    let job = Job { program, ..job };
    let blocks: Vec<_> = (0..options.ranks).map(|rank| rank * count / options.ranks).collect();
    let blocks = program.map(|_| &blocks[..]);
    let together = on_processes(&job, &sets, source, count, blocks).unwrap();
    assert_eq!(results(&together), results(&alone), "{pattern} {options:?} {count}");
    Some(together.crossing)
}

#[test]
fn stored_patterns_give_the_same_on_several_processes() {
    let (mut random, mut compared) = (Random::new(6), 0);
    for (pattern, algorithm) in patterns() {
        let options = Options { ranks: 36, root: 0, ..options(&mut random, algorithm) };
        for count in [2, 3] {
            let crossing = crossing(pattern, options, count, Some(ProgramForm::Stored));
            compared += u32::from(crossing.is_some_and(|crossing| crossing > 0));
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn messages_of_a_window_that_cross_in_pieces_give_the_same() {
    let options = Options::new(1 << 15, 8);
    for program in [None, Some(ProgramForm::Stored)] {
        // In the last round all messages of a process cross, more than a piece has words for.
        let crossing = crossing(Pattern::Dissemination, options, 2, program);
        assert!(crossing > Some(1 << 15), "{crossing:?}");
    }
}

#[test]
fn a_process_that_alone_has_events_does_not_meet_the_others() {
    let sets = engine::sets(&shadow::Settings::new(SET));
    let settings = Settings { rendezvous: Rendezvous::Instant, ..Settings::default() };
    let job = Job::new(sets.parameters().unwrap(), settings);
    let source = || Source::Pattern(Pattern::PipelinedRing, Options::new(4_096, 8));
    let alone = job.simulate(&source(), &|_| {}).unwrap();
    let room = Room::default();
    let together = in_room(&room, &job, &sets, source, 2, None).unwrap();
    assert_eq!(together.finished, alone.finished);
    // A token passes 4,096 ranks in as many windows, and two of them are another process's.
    let meetings = room.state.lock().unwrap().0;
    assert!(meetings < 100, "{meetings}");
}
