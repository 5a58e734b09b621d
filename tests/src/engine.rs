//! Runs of the engine under test, with results in the form of the shadow's.

use crate::program::Program;
use crate::shadow::{self, Outcome};
use loggap::simulation::windows::{Resources, WindowError, WindowMemory};
use loggap::simulation::{
    self, Alone, NetworkPlan, OwnedMemory, ParameterSets, Placement, RunError, TopologyPlan,
};
use loggap::timeline::causes::{CauseRecorder, Causes, Quantity};
use loggap::timeline::link_holds::LinkHolds;
use loggap::timeline::{Recorder, Selection, Timeline};
use loggap_core::model::{LogGops, Protocol};
use loggap_core::sim::mail::Block;
use loggap_core::sim::network::Network;
use loggap_core::sim::windows::{self, Away, Unsuitable};
use loggap_core::sim::{
    BuildError, Builder, Counters, Engine, NoNoise, Noise, Observer, Parameters, RankCounters,
    Receive, Rendezvous, Schedule, Settings, Silent, SimError, Storage, Survey, Unfinished,
};
use loggap_core::units::{Bytes, Picos};

/// Quantities of the terms of L, o, g, G and O.
pub const PARAMETERS: [&[Quantity]; 5] = [
    &[Quantity::Latency],
    &[Quantity::SendOverhead, Quantity::ReceiveOverhead],
    &[Quantity::Gap],
    &[Quantity::GapPerByte],
    &[Quantity::SendOverheadPerByte, Quantity::ReceiveOverheadPerByte],
];

/// Noise that a function gives.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has nothing to show")]
pub struct Function<'a>(pub shadow::Noise<'a>);

impl Noise for Function<'_> {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        Picos((self.0)(rank as usize, start.0, length.0))
    }
}

/// The engine's settings for the shadow's.
#[must_use]
pub fn settings(settings: &shadow::Settings) -> Settings {
    Settings {
        receive: match settings.receive {
            shadow::Receive::Hold => Receive::Hold,
            shadow::Receive::Overlap => Receive::Overlap,
        },
        rendezvous: match settings.rendezvous {
            shadow::Rendezvous::Instant => Rendezvous::Instant,
            shadow::Rendezvous::Handshake => Rendezvous::Handshake,
        },
    }
}

/// The engine's parameter sets for the shadow's.
#[must_use]
pub fn sets(settings: &shadow::Settings) -> ParameterSets {
    let of = |sets: &[(u64, LogGops)]| {
        let mut first = Bytes(0);
        let of = |(last, parameters): &(u64, LogGops)| {
            let protocol = Protocol { first, parameters: *parameters };
            first = Bytes(last.saturating_add(1));
            protocol
        };
        sets.iter().map(of).collect::<Vec<_>>()
    };
    let own = ParameterSets { protocols: of(&settings.parameters), ..ParameterSets::default() };
    let with = |sets: ParameterSets, level: &shadow::Level| {
        let near = ParameterSets { protocols: of(&level.parameters), ..ParameterSets::default() };
        sets.with_level(level.places.try_into().unwrap(), near)
    };
    ParameterSets {
        receive: settings.receive_overheads.clone(),
        places: settings.places.clone(),
        ..settings.levels.iter().fold(own, with)
    }
}

/// What the engine makes of `program`. Timeline and spans stay empty: they
/// are the shadow's own.
#[must_use]
pub fn run(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
) -> Outcome {
    run_seen(program, settings, noise, |_| Silent).0
}

/// How a run in windows is divided.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The binary logarithm of the ranks of a partition.
    pub shift: u32,
    /// Threads.
    pub threads: usize,
    /// Bytes for messages under way.
    pub mail_bytes: u64,
}

/// What a run in windows makes of `program`; or why it cannot run in windows, or what it stopped with.
///
/// # Errors
///
/// [`Stopped`].
pub fn run_in_windows(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
    cut: Cut,
) -> Result<Outcome, Stopped> {
    let silent = |_: &[u32]| Silent;
    let ran = match noise {
        Some(noise) => in_windows(program, settings, Function(noise), cut, silent),
        None => in_windows(program, settings, NoNoise, cut, silent),
    };
    Ok(ran?.0)
}

/// What delayed each event of a run in windows, which are one after the other.
///
/// # Errors
///
/// As [`run_in_windows`].
pub fn causes_in_windows(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
) -> Result<Causes, Stopped> {
    let cut = Cut { shift: 31, threads: 1, mail_bytes: 1 << 20 };
    let (_, mut recorders) = match noise {
        Some(noise) => in_windows(program, settings, Function(noise), cut, CauseRecorder::new),
        None => in_windows(program, settings, NoNoise, cut, CauseRecorder::new),
    }?;
    assert_eq!(recorders.len(), 1, "all ranks together");
    Ok(recorders.remove(0).finish())
}

/// Why a run in windows has no outcome.
#[derive(Debug)]
pub enum Stopped {
    /// The program is for the other engine.
    Unsuitable(Unsuitable),
    /// The run was given up.
    GivenUp(WindowError),
    /// The run stopped.
    Error(SimError),
}

fn in_windows<N: Noise + Clone + Send, O: Observer + Send>(
    program: &Program,
    settings: &shadow::Settings,
    noise: N,
    cut: Cut,
    observe: impl Fn(&[u32]) -> O,
) -> Result<(Outcome, Vec<O>), Stopped> {
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let sets = sets(settings);
    let parameters = sets.parameters().unwrap();
    let settings = self::settings(settings);
    let needs = windows::Requirements::of(
        &survey,
        &parameters,
        settings,
        (cut.shift, Block::ALL),
        Away::FEW,
    );
    let needs = needs.map_err(Stopped::Unsuitable)?;
    let mut memory = WindowMemory::new(&needs).unwrap();
    let mut builder = windows::Builder::new(memory.lend(), needs, parameters).unwrap();
    match program.replay(&mut builder) {
        Err(BuildError::Unsuitable(why)) => return Err(Stopped::Unsuitable(why)),
        other => other.unwrap(),
    }
    let schedule = builder.finish().unwrap();
    let resources =
        Resources { threads: cut.threads, mail_bytes: cut.mail_bytes, small: 0, processes: &Alone };
    let first_ops = schedule.first_ops().to_vec();
    let observe = |_| observe(&first_ops);
    let ended = match simulation::windows::run(schedule, noise, observe, &resources, &mut |_| {}) {
        Err(RunError::Stopped(error)) => return Err(Stopped::Error(error)),
        other => other.unwrap().map_err(Stopped::GivenUp)?,
    };
    let finished = ended.finished();
    let mut outcome = Outcome { events: finished.events, ..Outcome::default() };
    outcome.finish = ended.finish().map(|time| time.0).collect();
    assert_eq!(outcome.makespan(), finished.makespan.0);
    ended.unfinished(|left| note(&mut outcome, &left));
    Ok((outcome, ended.into_observers().collect()))
}

pub(crate) fn note(outcome: &mut Outcome, left: &Unfinished) {
    match *left {
        Unfinished::Unreceived { rank, from, tag, .. } => {
            outcome.unexpected.push((rank as usize, from as usize, tag));
        }
        Unfinished::Waiting { rank, op, .. } => outcome.posted.push((rank as usize, op as usize)),
        Unfinished::NeverReady { rank, op } => {
            outcome.never_ready.push((rank as usize, op as usize));
        }
    }
}

/// The course of the same run.
#[must_use]
pub fn timeline(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
) -> Timeline {
    let everything = |first_ops: &[u32]| Recorder::new(first_ops.into(), Selection::default());
    run_seen(program, settings, noise, everything).1.finish()
}

/// What delayed each event of the same run.
#[must_use]
pub fn causes(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
) -> Causes {
    run_seen(program, settings, noise, CauseRecorder::new).1.finish()
}

/// The most receives that are posted, and the most messages that wait, at a
/// time on a rank.
#[must_use]
pub fn longest_queues(program: &Program, settings: &shadow::Settings) -> [u32; 2] {
    let mut ranks = vec![RankCounters::default(); program.ranks.len()];
    let counters = Counters::new(&mut ranks);
    let (_, counters) = run_observed(program, settings, NoNoise, |_| counters);
    let ranks = counters.finish();
    let most = |of: fn(&RankCounters) -> u32| ranks.iter().map(of).max().unwrap_or_default();
    [most(|rank| rank.max_posted), most(|rank| rank.max_unexpected)]
}

/// [`run_observed`] with noise or without.
fn run_seen<O: Observer>(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
    observe: impl FnOnce(&[u32]) -> O,
) -> (Outcome, O) {
    match noise {
        Some(noise) => run_observed(program, settings, Function(noise), observe),
        None => run_observed(program, settings, NoNoise, observe),
    }
}

/// What `then` makes of the program as a schedule, and of parameters and settings.
fn with_schedule<T>(
    program: &Program,
    settings: &shadow::Settings,
    then: impl FnOnce(Schedule<'_>, Parameters<'_>, Settings) -> T,
) -> T {
    let mut survey = Survey::default();
    program.replay(&mut survey).unwrap();
    let sets = sets(settings);
    let settings = self::settings(settings);
    let requirements = survey.requirements(settings).unwrap();
    let mut memory = OwnedMemory::new(&requirements).unwrap();
    let mut builder = Builder::new(memory.lend(), requirements).unwrap();
    program.replay(&mut builder).unwrap();
    then(builder.finish().unwrap(), sets.parameters().unwrap(), settings)
}

/// What the engine stops with, if it does.
#[must_use]
pub fn error(program: &Program, settings: &shadow::Settings) -> Option<SimError> {
    with_schedule(program, settings, |schedule, parameters, settings| {
        Engine::new(schedule, parameters, settings).run().err()
    })
}

/// Runs under the eyes of the observer that `observe` makes of the first
/// operations of the ranks.
pub fn run_observed<O: Observer>(
    program: &Program,
    settings: &shadow::Settings,
    noise: impl Noise,
    observe: impl FnOnce(&[u32]) -> O,
) -> (Outcome, O) {
    with_schedule(program, settings, |schedule, parameters, settings| {
        let observer = observe(schedule.first_ops());
        let mut engine = Engine::with(schedule, parameters, settings, noise, observer);
        (outcome(&mut engine, program.ranks.len() as u32), engine.into_observer())
    })
}

/// A network of flows, with ranks at random places.
#[must_use]
pub fn network(topology: &str) -> NetworkPlan {
    NetworkPlan {
        topology: TopologyPlan::new(topology).unwrap(),
        link_capacity: 1.0,
        placement: Placement::Random,
        seed: 1,
        watched: true,
    }
}

/// Runs where messages share the links of `topology`.
#[must_use]
pub fn on_network(program: &Program, settings: &shadow::Settings, topology: &str) -> Outcome {
    let seen = |_: &[u32]| Silent;
    run_on_network(program, settings, NoNoise, (&network(topology), None), seen).0
}

/// The same, under the eyes of `observer`.
pub fn on_network_observed<O: Observer>(
    program: &Program,
    settings: &shadow::Settings,
    topology: &str,
    observer: O,
) -> (Outcome, O) {
    let plan = network(topology);
    run_on_network(program, settings, NoNoise, (&plan, None), |_| observer)
}

/// What delayed each event of a run on a network, and what became of it.
#[must_use]
pub fn causes_on_network(
    program: &Program,
    settings: &shadow::Settings,
    noise: Option<shadow::Noise<'_>>,
    plan: &NetworkPlan,
) -> (Outcome, Causes) {
    let holds = LinkHolds::default();
    let recorder = |first_ops: &[u32]| CauseRecorder::new(first_ops).with_holds(holds.clone());
    let plan = (plan, Some(&holds));
    let (outcome, recorder) = match noise {
        Some(noise) => run_on_network(program, settings, Function(noise), plan, recorder),
        None => run_on_network(program, settings, NoNoise, plan, recorder),
    };
    (outcome, recorder.finish())
}

fn run_on_network<O: Observer>(
    program: &Program,
    settings: &shadow::Settings,
    noise: impl Noise,
    (plan, holds): (&NetworkPlan, Option<&LinkHolds>),
    observe: impl FnOnce(&[u32]) -> O,
) -> (Outcome, O) {
    with_schedule(program, settings, |schedule, parameters, settings| {
        let ranks = program.ranks.len() as u32;
        let observer = observe(schedule.first_ops());
        let messages = schedule.sends() as usize;
        let mut placed = plan.place(ranks, schedule.interfaces(), messages).unwrap();
        let network = placed.lend().unwrap();
        let mut holds = holds.cloned();
        let network = match &mut holds {
            Some(holds) => network.with_observer(holds),
            None => network,
        };
        let mut engine =
            Engine::on_network(schedule, parameters, settings, noise, observer, network);
        (outcome(&mut engine, ranks), engine.into_observer())
    })
}

/// Runs an engine to its end.
pub(crate) fn outcome<N: Noise, O: Observer, W: Network, S: Storage>(
    engine: &mut Engine<'_, '_, N, O, W, S>,
    ranks: u32,
) -> Outcome {
    let finished = engine.run().unwrap();
    let mut outcome = Outcome { events: finished.events, ..Outcome::default() };
    outcome.finish = (0..ranks).map(|rank| engine.finish(rank).0).collect();
    assert_eq!(outcome.makespan(), finished.makespan.0);
    engine.unfinished(|left| note(&mut outcome, &left));
    outcome
}
