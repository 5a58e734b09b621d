//! Patterns that are computed on a network against the same patterns stored.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests: a wrong assumption should end the test"
)]

#[allow(dead_code, reason = "shared with the other tests")]
#[macro_use]
mod engines;

#[allow(dead_code, unreachable_pub, clippy::expect_used, reason = "shared with the other crate")]
#[path = "../../tests/src/program.rs"]
mod program;

#[allow(unreachable_pub, reason = "shared with the other crate")]
#[path = "../../tests/src/random_pattern.rs"]
mod random_pattern;

use engines::{Detours, Outcome, finish, with_schedule};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{LogGops, ReceiveOverhead};
use loggap_core::random::Random;
use loggap_core::sim::implicit::{
    self, ImplicitError, Node, OrderedMemory, PatternProgram, RankState, Requirements, Simulation,
};
use loggap_core::sim::network::{
    Fabric as _, Flows, FlowsMemory, FlowsRequirements, Tenants, Topology, Usage,
};
use loggap_core::sim::{Engine, Entry, NoNoise, Noise, Parameters, Settings, Silent, SimError};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_core::{with_network_memory_parts, with_program};
use program::Program;
use random_pattern::{options, patterns};

/// Of 48 hosts at least, of every kind.
const TOPOLOGIES: &str = "star tree:5:4 fat-tree:6 fat-tree:8:2.5 torus:7x7 torus:4x4x3 \
    dragonfly:4:4:3 rail:4:3:3";
const HOSTS: u32 = 48;
/// Steps in which links are watched.
const STEPS: usize = 8;

/// Where ranks are.
#[derive(Debug)]
struct Place {
    topology: Topology,
    hosts: Vec<u32>,
    seed: u64,
    /// Messages under way that there is memory for.
    messages: usize,
}

/// What a run gave, and what its links carried: in all, and in each step.
#[derive(Debug, Eq, PartialEq)]
struct Ran {
    outcome: Outcome,
    carried: Vec<u64>,
    over_time: Vec<u64>,
}

impl Place {
    fn draw(random: &mut Random, ranks: u32) -> Self {
        let name = TOPOLOGIES.split(' ').nth(random.below(8) as usize).unwrap();
        let factor = [0.25, 1.0, 3.0][random.below(3) as usize];
        let topology = Topology::parse(name, HOSTS).unwrap().with_link_capacity(factor).unwrap();
        let hosts = match random.below(3) {
            0 => Vec::new(),
            1 => (0..ranks).map(|_| random.below(topology.hosts().into()) as u32).collect(),
            _ => (0..ranks).map(|rank| (rank * 5 + 3) % HOSTS).collect(),
        };
        Self { topology, hosts, seed: random.below(9), messages: 4_000 }
    }

    /// Calls `then` with the network.
    fn lend<T>(&self, ranks: u32, then: impl FnOnce(Flows<'_>) -> T) -> T {
        let needs = FlowsRequirements::new(&self.topology, self.messages);
        let memory = with_network_memory_parts!(lend needs, FlowsMemory;);
        let mut carried = vec![0.0; needs.links * STEPS];
        let usage = Usage::new(&mut carried, STEPS).unwrap();
        let Self { ref hosts, seed, messages, .. } = *self;
        let flows = Flows::new(&self.topology, Tenants { ranks, hosts, seed, messages }, memory);
        then(flows.unwrap().with_usage(usage))
    }
}

impl Ran {
    fn of(outcome: Outcome, network: &Flows<'_>) -> Self {
        let usage = network.usage().unwrap();
        let links = 0..network.fabric().links();
        Self {
            outcome,
            carried: network.carried().map(f64::to_bits).collect(),
            over_time: links.flat_map(|link| usage.of_link(link)).map(|c| c.to_bits()).collect(),
        }
    }
}

/// The engine on the stored pattern.
fn stored(
    program: &Program,
    place: &Place,
    parameters: Parameters<'_>,
    noise: impl Noise,
) -> Result<Ran, SimError> {
    let settings = Settings::default();
    with_schedule(program, settings, |schedule| {
        place.lend(program.ranks.len() as u32, |flows| {
            let engine = Engine::on_network(schedule, parameters, settings, noise, Silent, flows);
            let (outcome, engine) = finish(engine, program)?;
            Ok(Ran::of(outcome, engine.network()))
        })
    })
}

fn computed(
    program: &PatternProgram,
    place: &Place,
    parameters: Parameters<'_>,
    noise: impl Noise,
) -> Result<Ran, ImplicitError> {
    with_program!(program, program => compute(program, place, parameters, noise))
}

fn compute<P: implicit::Program>(
    program: &P,
    place: &Place,
    parameters: Parameters<'_>,
    noise: impl Noise,
) -> Result<Ran, ImplicitError> {
    let needs = Requirements::of(program);
    let (ranks, nodes) = (needs.ranks, needs.nodes_most);
    let parts = [
        ranks * size_of::<RankState<P::State>>(),
        ranks * (2 * size_of::<Entry>() + size_of::<u32>()),
        nodes * size_of::<Node>(),
    ];
    assert_eq!(needs.ordered_bytes_with(nodes), parts.iter().sum::<usize>() as u64);
    let memory = OrderedMemory {
        ranks: &mut vec![RankState::default(); ranks],
        queue: &mut vec![Entry::default(); 2 * ranks],
        places: &mut vec![0; ranks],
        nodes: &mut vec![Node::default(); nodes],
    };
    place.lend(program.extent().ranks, |flows| {
        let mut simulation = Simulation::on_network(program, parameters, noise, flows, memory)?;
        let ended = simulation.run()?;
        assert_eq!(ended.open_ties, 0);
        let finish: Vec<u64> = simulation.finishes().map(|(_, time)| time.0).collect();
        assert_eq!(finish.iter().max().copied().unwrap_or_default(), ended.makespan.0);
        let outcome = Outcome { finish, events: ended.events, ..Outcome::default() };
        Ok(Ran::of(outcome, simulation.network()))
    })
}

/// Times that are often the same, so that there are ties, or hardly ever.
fn set(random: &mut Random) -> LogGops {
    let coarse = random.below(2) == 0;
    let mut draw = |most: u64| {
        if coarse { random.below(4) * most / 4 } else { random.below(most) }
    };
    LogGops {
        latency: Picos(draw(4_000_000)),
        overhead: Picos(draw(2_000_000)),
        gap: Picos(draw(4_000_000)),
        gap_per_byte: PerByte(draw(8_000) << 16),
        overhead_per_byte: PerByte(draw(8_000) << 16),
        eager_limit: Bytes(1 << 30),
    }
}

#[test]
fn computed_patterns_on_networks_equal_stored_ones() {
    let (mut compared, mut refused, mut noisy) = (0, 0, 0);
    let mut random = Random::new(41);
    for (pattern, algorithm) in patterns() {
        for _ in 0..40 {
            let options = options(&mut random, algorithm);
            let Ok(Some(program)) = PatternProgram::new(pattern, &options) else { continue };
            let (place, set) = (Place::draw(&mut random, options.ranks), set(&mut random));
            let ends = [ReceiveOverhead {
                overhead: Picos(random.below(4) * 900_000),
                overhead_per_byte: PerByte((random.below(9) * 1_000) << 16),
            }];
            let mut parameters = Parameters::one(set);
            if random.below(2) == 0 {
                parameters = parameters.with_receive(&ends).unwrap();
            }
            let label = format!("{pattern} {options:?} {set:?} {ends:?} {place:?}");
            let noise = Detours(3_000_000);
            let noise = (random.below(2) == 0).then_some(noise);
            let ran = match noise {
                None => computed(&program, &place, parameters, NoNoise),
                Some(noise) => computed(&program, &place, parameters, noise),
            };
            let ran = match ran {
                Err(ImplicitError::NoLookahead) => {
                    assert_eq!((set.latency.0, set.overhead.0), (0, 0), "{label}");
                    refused += 1;
                    continue;
                }
                other => other.expect(&label),
            };
            let schedule = Program::of_pattern(pattern, &options);
            let expected = match noise {
                None => stored(&schedule, &place, parameters, NoNoise),
                Some(noise) => stored(&schedule, &place, parameters, noise),
            };
            assert!(ran == expected.unwrap(), "{label}");
            compared += 1;
            noisy += u32::from(noise.is_some());
        }
    }
    assert!(compared > 1_000 && noisy > 400 && refused * 9 < compared, "{compared} {refused}");
}

#[test]
fn a_network_and_nodes_that_are_full_are_told_by_how_many_there_were() {
    let options = Options::new(16, 4_000);
    let pattern = Pattern::AllToAll;
    let program = PatternProgram::new(pattern, &options).unwrap().unwrap();
    let set = LogGops {
        latency: Picos(1_000_000),
        gap_per_byte: PerByte(1_000 << 16),
        overhead: Picos(1_000),
        gap: Picos(1_000),
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(1 << 30),
    };
    let place = |messages| Place {
        topology: Topology::parse("tree:4:4", 16).unwrap(),
        hosts: Vec::new(),
        seed: 0,
        messages,
    };
    let parameters = Parameters::one(set);
    let error = computed(&program, &place(30), parameters, NoNoise).unwrap_err();
    assert_eq!(error, ImplicitError::Stopped(SimError::NetworkFull { messages: 30 }));
    let schedule = Program::of_pattern(pattern, &options);
    let error = stored(&schedule, &place(30), parameters, NoNoise).unwrap_err();
    assert_eq!(error, SimError::NetworkFull { messages: 30 });
    let ran = computed(&program, &place(300), parameters, NoNoise).unwrap();
    assert!(ran == stored(&schedule, &place(300), parameters, NoNoise).unwrap());

    let endless = LogGops { latency: Picos(u64::MAX / 2), overhead: Picos(u64::MAX / 3), ..set };
    let error = computed(&program, &place(300), Parameters::one(endless), NoNoise).unwrap_err();
    assert!(matches!(error, ImplicitError::Stopped(SimError::Overflow { .. })), "{error}");
}
