//! One schedule under many parameters.

use loggap::schedule::ScheduleFile;
use loggap::simulation::windows::{self, WindowMemory};
use loggap::simulation::{
    Job, Limit, NoiseSource, OwnedMemory, ParameterSets, Plan, Point, RunError, Source, Wanted,
    makespan, run_each_point, run_points,
};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{LogGops, Protocol, ReceiveOverhead};
use loggap_core::noise::Phases;
use loggap_core::random::Random;
use loggap_core::sim::windows::Requirements;
use loggap_core::sim::{Memory, Parameters, Receive, Rendezvous, Settings};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::cases::Case;
use loggap_tests::random_program::of_picos;

/// Sets full of equal times; some without any. Without a `limit` each has its
/// own.
fn sets(random: &mut Random, limit: Option<Bytes>) -> ParameterSets {
    let protocols = [0, 9].map(|first| {
        let mut time = || Picos(random.below(4) * 1_000);
        let (latency, overhead, gap) = (time(), time(), time());
        let mut per_byte = || PerByte(random.below(3) << 24);
        let (gap_per_byte, overhead_per_byte) = (per_byte(), per_byte());
        let eager_limit = limit.unwrap_or(Bytes(random.below(30)));
        let parameters =
            LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit };
        Protocol { first: Bytes(first), parameters }
    });
    let receive = [0; 2].map(|_| ReceiveOverhead {
        overhead: Picos(random.below(3) * 1_000),
        overhead_per_byte: PerByte(random.below(2) << 24),
    });
    ParameterSets::new(protocols.to_vec(), receive.to_vec())
}

/// Compares `source` at ten points with as many runs of it alone: with eager
/// limits that differ, so that copies for windows serve one point only, and
/// with equal ones.
fn compare(source: &Source, random: &mut Random, whose: &str) {
    let limits = [None, Some(Bytes(12)), Some(Bytes(65_535))];
    compare_with(limits[random.below(3) as usize], source, random, whose);
}

fn compare_with(limit: Option<Bytes>, source: &Source, random: &mut Random, whose: &str) {
    const POINTS: usize = 10;
    let all: Vec<ParameterSets> = (0..POINTS).map(|_| sets(random, limit)).collect();
    let point = |at: usize| Point { sets: all[at].clone(), phases: Phases::Drawn { seed: 0 } };
    for receive in [Receive::Hold, Receive::Overlap] {
        for rendezvous in [Rendezvous::Instant, Rendezvous::Handshake] {
            let settings = Settings { receive, rendezvous };
            // What is counted runs event by event.
            let wanted = Wanted { counters: true, ..Wanted::default() };
            let job = |parameters| Job { wanted: wanted.clone(), ..Job::new(parameters, settings) };
            let alone: Result<Vec<Picos>, RunError> =
                all.iter().map(|sets| makespan(source, &job(sets.parameters()?))).collect();
            let alone = alone.map_err(|error| error.to_string());
            let plan = Plan { finish: POINTS, ..Plan::new(settings) };
            for threads in [1, 3] {
                let plan = Plan { threads, ..plan };
                let together = run_points(source, POINTS, &point, &plan, &|| {});
                let makespans: Result<Vec<Picos>, String> = match &together {
                    Ok(runs) => Ok(runs.iter().map(|run| run.makespan).collect()),
                    Err(error) => Err(error.to_string()),
                };
                assert_eq!(makespans, alone, "{whose}, {settings:?}, {threads} threads");
                for run in together.iter().flatten() {
                    assert_eq!(run.finish.iter().max(), Some(&run.makespan), "{whose}");
                }
            }
        }
    }
}

#[test]
fn every_pattern_is_at_every_point_as_if_run_alone() {
    let mut random = Random::new(29);
    for description in Pattern::all() {
        for size in [1, 20] {
            let source = Source::Pattern(description.pattern, Options::new(8, size));
            compare(&source, &mut random, description.name);
        }
    }
}

/// Some points of a computed pattern last longer than times reach: whichever they are, the
/// others have their makespans.
#[test]
fn points_that_last_too_long_do_not_take_the_others_along() {
    let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(8, 1));
    let settings = Settings::default();
    for count in [2, 7, 8, 40] {
        for too_long in [&[0][..], &[1], &[0, 1], &[1, 4, 6]] {
            let sets = |at: usize| {
                let latency = if too_long.contains(&at) { u64::MAX / 2 } else { 1_000 };
                let parameters = of_picos([latency + at as u64, 300, 200, 0, 0]);
                ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], Vec::new())
            };
            let point = |at: usize| Point { sets: sets(at), phases: Phases::Drawn { seed: 0 } };
            for threads in [1, 3] {
                let plan = Plan { threads, ..Plan::new(settings) };
                let ended = run_each_point(&source, count, &point, &plan, &|| {}).unwrap();
                assert_eq!(ended.len(), count);
                for (at, ended) in ended.into_iter().enumerate() {
                    let sets = sets(at);
                    let alone = makespan(&source, &Job::new(sets.parameters().unwrap(), settings));
                    let makespan = ended.map(|completed| completed.makespan);
                    assert_eq!(makespan.is_err(), too_long.contains(&at), "{at} of {count}");
                    assert_eq!(makespan.ok(), alone.ok(), "{at} of {count}");
                }
            }
        }
    }
}

#[test]
fn schedules_by_hand_are_at_every_point_as_if_run_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(31);
    let mut compared = 0;
    for case in Case::all() {
        let (Some(goal), Some(name)) = (&case.goal, &case.name) else { continue };
        let path = folder.path().join("case.goal");
        std::fs::write(&path, goal).unwrap();
        compare(&Source::File(ScheduleFile::open(&path).unwrap()), &mut random, name);
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn phases_of_noise_are_those_of_the_point() {
    let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(64, 8));
    let noise = NoiseSource::periodic(Picos(7_000_000), Picos(900_000)).unwrap();
    let one = sets(&mut Random::new(3), None);
    let point = |at: usize| Point {
        sets: one.clone(),
        phases: Phases::Drawn { seed: u64::try_from(at / 2).unwrap() },
    };
    let mut documents = Vec::new();
    for (receive, threads) in [(Receive::Hold, 1), (Receive::Hold, 3), (Receive::Overlap, 3)] {
        let settings = Settings { receive, ..Settings::default() };
        let (noise, most_bytes) = (Some(&noise), u64::MAX);
        let plan = Plan { noise, most_bytes, threads, finish: 1, ..Plan::new(settings) };
        let runs = run_points(&source, 20, &point, &plan, &|| {}).unwrap();
        assert!(runs.chunks(2).all(|pair| pair[0].makespan == pair[1].makespan));
        assert!(runs.iter().any(|run| run.makespan != runs[0].makespan));
        assert_eq!([runs[0].finish.len(), runs[1].finish.len()], [64, 0]);
        documents.push(runs);
    }
    assert_eq!(documents[0], documents[1]);
}

#[test]
fn a_copy_is_refused_where_memory_or_parameters_do_not_fit() {
    let source = Source::Pattern(Pattern::BinomialBroadcast, Options::new(8, 20));
    let settings = Settings::default();
    source
        .load(settings, &Limit::none(), |schedule, _| {
            let mut memory = OwnedMemory::new(&schedule.copy_requirements()).unwrap();
            assert!(schedule.copy(memory.lend()).is_some());
            assert!(schedule.copy(Memory::default()).is_none());
        })
        .unwrap();
    let set =
        |latency, limit| LogGops { eager_limit: Bytes(limit), ..of_picos([latency, 0, 5, 0, 0]) };
    let ran = windows::load(
        &source,
        Parameters::one(set(9, 100)),
        settings,
        &Limit::none(),
        windows::Split::Threads(1),
        |schedule, _, _| {
            let mut memory = WindowMemory::new(&schedule.copy_requirements()).unwrap();
            let mut copied = |set| schedule.copy(memory.lend(), Parameters::one(set)).is_some();
            assert!(copied(set(9, 100)) && copied(set(1, 100)));
            // Messages of 20 bytes would be others than those built; no lookahead.
            assert!(!copied(set(9, 10)) && !copied(set(0, 100)));
            let mut nothing = WindowMemory::new(&Requirements::default()).unwrap();
            assert!(schedule.copy(nothing.lend(), Parameters::one(set(9, 100))).is_none());
        },
    );
    assert!(ran.is_ok());
}
