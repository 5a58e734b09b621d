//! A run takes no memory but what it was lent.

#[allow(unsafe_code, reason = "an allocator that counts is an allocator")]
#[path = "../src/counting.rs"]
mod counting;

use loggap::simulation::windows::{Resources, WindowMemory, run};
use loggap::simulation::{Alone, NetworkPlan, OwnedMemory, Placement, TopologyPlan};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{LogGops, Preset};
use loggap_core::random::Random;
use loggap_core::sim::implicit::{
    Memory, Node, OrderedMemory, PatternProgram, Program, RankState, Requirements, Simulation,
};
use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::Away;
use loggap_core::sim::{
    Builder, Engine, Entry, NoNoise, Parameters, Receive, Rendezvous, Settings, Silent, Survey,
    windows,
};
use loggap_core::with_program;
use loggap_tests::program;
use loggap_tests::random_program::crowded;

use counting::CALLS;

/// What `run` returns, and how often it called the allocator.
fn calls_of<T>(run: impl FnOnce() -> T) -> (T, u64) {
    CALLS.set(0);
    let result = run();
    (result, CALLS.get())
}

/// The default parameters, with rendezvous above so many bytes.
fn parameters(eager_limit: u64) -> LogGops {
    let preset: Preset = "loggopsim".parse().unwrap();
    let mut set = preset.protocols[0].parameters;
    set.eager_limit.0 = eager_limit;
    set
}

fn assert_engine_allocates_nothing(program: &program::Program, settings: Settings, limit: u64) {
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let requirements = survey.requirements(settings).unwrap();
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).unwrap();
    program.replay(&mut builder).unwrap();
    let schedule = builder.finish().unwrap();
    let parameters = Parameters::one(parameters(limit));
    let (finished, calls) = calls_of(|| Engine::new(schedule, parameters, settings).run().unwrap());
    assert!(finished.events > 0);
    assert_eq!(calls, 0, "{settings:?}");
}

const SETTINGS: [Settings; 4] = [
    Settings { receive: Receive::Hold, rendezvous: Rendezvous::Instant },
    Settings { receive: Receive::Hold, rendezvous: Rendezvous::Handshake },
    Settings { receive: Receive::Overlap, rendezvous: Rendezvous::Instant },
    Settings { receive: Receive::Overlap, rendezvous: Rendezvous::Handshake },
];

#[test]
fn the_counter_counts() {
    let (boxed, calls) = calls_of(|| std::hint::black_box(Box::new(7)));
    assert_eq!((*boxed, calls), (7, 1));
}

#[test]
fn the_engine_allocates_nothing_once_the_schedule_is_built() {
    for pattern in [
        Pattern::BinomialBroadcast,
        Pattern::Dissemination,
        Pattern::NWayDissemination,
        Pattern::AllToAll,
        Pattern::RingAllreduce,
        Pattern::RecursiveDoubling,
        Pattern::ResNet,
    ] {
        let program = program::Program::of_pattern(pattern, &Options::new(150, 15_000));
        for settings in SETTINGS {
            assert_engine_allocates_nothing(&program, settings, 99);
        }
    }
    for seed in 0..8 {
        let program = crowded(&mut Random::new(seed));
        for settings in SETTINGS {
            assert_engine_allocates_nothing(&program, settings, 3);
        }
    }
}

/// Events of a run in windows on one thread, and its calls of the allocator.
fn windows_of(pattern: Pattern) -> (u64, u64) {
    let settings = Settings::default();
    let program = program::Program::of_pattern(pattern, &Options::new(64, 1));
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let parameters = Parameters::one(parameters(u64::MAX));
    let needs =
        windows::Requirements::of(&survey, &parameters, settings, (3, Block::ALL), Away::FEW)
            .unwrap();
    let mut memory = WindowMemory::new(&needs).unwrap();
    let mut builder = windows::Builder::new(memory.lend(), needs, parameters).unwrap();
    program.replay(&mut builder).unwrap();
    let schedule = builder.finish().unwrap();
    let resources =
        Resources { threads: 1, mail_bytes: u64::MAX, small: Resources::SMALL, processes: &Alone };
    let (ended, calls) =
        calls_of(|| run(schedule, NoNoise, |_| Silent, &resources, &mut |_| {}).unwrap().unwrap());
    (ended.finished().events, calls)
}

#[test]
fn windows_allocate_when_a_run_begins_and_never_after() {
    let (few, calls) = windows_of(Pattern::BinomialBroadcast);
    let (many, more) = windows_of(Pattern::AllToAll);
    assert!(many > 50 * few, "{few} and {many} events");
    assert!(calls > 0);
    assert_eq!(calls, more);
}

fn assert_simulation_allocates_nothing<P: Program>(pattern: Pattern, program: &P) {
    let needs = Requirements::of(program);
    let mut ranks = vec![RankState::default(); needs.ranks];
    let (mut words, mut nodes) = (vec![0; needs.words], vec![Node::default(); needs.nodes]);
    let memory = Memory { ranks: &mut ranks, words: &mut words, nodes: &mut nodes };
    let parameters = Parameters::one(parameters(u64::MAX));
    let mut simulation = Simulation::new(program, parameters, NoNoise, memory).unwrap();
    let (outcome, calls) = calls_of(|| simulation.run().unwrap());
    assert!(outcome.events > 0);
    assert_eq!(calls, 0, "{pattern}");

    let plan = NetworkPlan {
        topology: TopologyPlan::new("torus:10x10").unwrap(),
        link_capacity: 1.0,
        placement: Placement::Block,
        seed: 1,
        watched: true,
    };
    let mut placed = plan.place(program.extent().ranks, 1, needs.nodes_most).unwrap();
    let memory = OrderedMemory {
        ranks: &mut vec![RankState::default(); needs.ranks],
        queue: &mut vec![Entry::default(); 2 * needs.ranks],
        places: &mut vec![0; needs.ranks],
        nodes: &mut vec![Node::default(); needs.nodes_most],
    };
    let network = placed.lend().unwrap();
    let mut simulation =
        Simulation::on_network(program, parameters, NoNoise, network, memory).unwrap();
    let (on_network, calls) = calls_of(|| simulation.run().unwrap());
    assert_eq!(on_network.events, outcome.events, "{pattern}");
    assert_eq!(calls, 0, "{pattern} on a network");
}

#[test]
fn computed_patterns_allocate_nothing_once_they_run() {
    let mut computed = 0;
    for pattern in [
        Pattern::BinomialBroadcast,
        Pattern::BinomialReduce,
        Pattern::BinaryBroadcast,
        Pattern::Gather,
        Pattern::Scatter,
        Pattern::AllToAll,
        Pattern::PipelinedRing,
        Pattern::RingAllreduce,
        Pattern::Dissemination,
        Pattern::RecursiveDoubling,
    ] {
        let options = Options::new(100, 5_000);
        let Ok(Some(program)) = PatternProgram::new(pattern, &options) else { continue };
        computed += 1;
        with_program!(&program, program => assert_simulation_allocates_nothing(pattern, program));
    }
    assert_eq!(computed, 10);
}
