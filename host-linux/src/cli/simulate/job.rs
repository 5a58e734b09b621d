//! Loads a schedule, runs it, and gathers what was asked for.

use std::cell::Cell;

use loggap_core::measure::Clock;
use loggap_core::noise::Phases;
use loggap_core::sim::network::{Network, Taper};
use loggap_core::sim::{
    Counters, Engine, Finished, NoNoise, Noise, Observer, Parameters, RankCounters, Schedule,
    Settings, Silent, SimError, TraceNoise, Unfinished,
};
use loggap_core::units::Picos;

use super::computed::computed;
use super::progress::ProgressLine;
use super::windows::in_windows;
use crate::cli::{CliError, Console};
use crate::machine::clock::HostClock;
use crate::simulation::{Limit, LoadError, Needs, NetworkPlan, NetworkUse, NoiseSource, Source};
use crate::timeline::causes::{CauseRecorder, Causes};
use crate::timeline::{Message, Recorder, Selection, Timeline};

/// Turns of the engine between two changes of the line of progress.
const TURNS: u64 = 1 << 18;
/// Of what never came to its end, this many of each kind are kept.
pub(super) const LISTED: usize = 100;

/// What is simulated, how, and what is to be known of it.
pub(super) struct Job<'a> {
    pub(super) parameters: Parameters<'a>,
    pub(super) settings: Settings,
    pub(super) noise: Option<(&'a NoiseSource, Phases)>,
    /// What is between ranks, where messages share links.
    pub(super) network: Option<NetworkJob>,
    pub(super) most_bytes: u64,
    /// Threads to use, where several can be used.
    pub(super) threads: usize,
    pub(super) wanted: Wanted,
}

/// Links between ranks.
pub(super) struct NetworkJob {
    pub(super) plan: NetworkPlan,
    /// Messages under way at a time that there is memory for; 0 until ranks are
    /// counted.
    pub(super) messages: Cell<usize>,
    /// Whether there were more.
    pub(super) full: Cell<bool>,
}

impl NetworkJob {
    /// Messages under way at a time, at first; where there are more the run
    /// begins anew with memory for [`Self::MORE`] times as many.
    const EACH: usize = 16;
    const LEAST: usize = 1 << 12;
    const MORE: usize = 8;

    /// See [`NetworkJob::messages`]; no more than operations.
    fn messages(&self, needs: &Needs) -> usize {
        if self.messages.get() == 0 {
            self.messages.set((needs.ranks as usize).saturating_mul(Self::EACH).max(Self::LEAST));
        }
        let ops = usize::try_from(needs.ops).unwrap_or(usize::MAX);
        self.messages.get().min(ops.max(1))
    }

    /// Whether to run again with more memory.
    fn wants_more(&self) -> bool {
        self.messages.set(self.messages.get().saturating_mul(Self::MORE));
        self.full.replace(false)
    }
}

/// What is to be known besides the makespan.
pub(super) struct Wanted {
    /// When each rank is done.
    pub(super) finish: bool,
    pub(super) counters: bool,
    /// The part of the timeline that is drawn.
    pub(super) selection: Option<Selection>,
    /// What delayed each event.
    pub(super) causes: bool,
    /// Each instant as a function of the parameters.
    pub(super) sensitivity: bool,
}

impl Wanted {
    /// Whether the run needs an observer.
    pub(super) const fn observed(&self) -> bool {
        self.counters || self.causes || self.selection.is_some()
    }
}

/// What a schedule was run by.
#[derive(Clone, Debug, Default)]
pub(super) struct EngineUsed {
    pub(super) name: &'static str,
    /// Why not in windows.
    pub(super) reason: Option<String>,
    pub(super) threads: usize,
    pub(super) partitions: usize,
}

impl EngineUsed {
    pub(super) const fn windows(threads: usize, partitions: usize) -> Self {
        Self { name: "windows", reason: None, threads, partitions }
    }

    pub(super) const fn computed() -> Self {
        Self { name: "computed", reason: None, threads: 1, partitions: 1 }
    }

    const fn sequential(reason: String) -> Self {
        Self { name: "sequential", reason: Some(reason), threads: 1, partitions: 1 }
    }
}

/// What came of it.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) ranks: u32,
    pub(super) ops: u64,
    pub(super) memory_bytes: u64,
    pub(super) finished: Finished,
    pub(super) load: Picos,
    pub(super) run: Picos,
    pub(super) stuck: Stuck,
    pub(super) finish: Option<Vec<Picos>>,
    pub(super) counters: Option<Vec<RankCounters>>,
    pub(super) timeline: Option<Timeline>,
    pub(super) causes: Option<Causes>,
    pub(super) engine: EngineUsed,
    /// Which links were busy, where messages shared them.
    pub(super) network: Option<NetworkUse>,
    /// Otherwise from which taper on links would decide.
    pub(super) taper: Option<Taper>,
}

/// What never came to its end: the first [`LISTED`] of each kind, and how
/// many there are.
#[derive(Default)]
pub(super) struct Stuck {
    pub(super) unreceived: Vec<Unfinished>,
    pub(super) waiting: Vec<Unfinished>,
    pub(super) never_ready: Vec<Unfinished>,
    pub(super) total: u64,
}

impl Stuck {
    pub(super) fn add(&mut self, left: Unfinished) {
        self.total += 1;
        let kind = match left {
            Unfinished::Unreceived { .. } => &mut self.unreceived,
            Unfinished::Waiting { .. } => &mut self.waiting,
            Unfinished::NeverReady { .. } => &mut self.never_ready,
        };
        if kind.len() < LISTED {
            kind.push(left);
        }
    }

    /// What is kept, causes before consequences.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Unfinished> {
        self.unreceived.iter().chain(&self.waiting).chain(&self.never_ready)
    }
}

/// What progress is shown on, and timed by.
struct Monitor<'a> {
    console: &'a Console,
    clock: HostClock,
}

/// A clock and when it started.
pub(super) type Stopwatch = (HostClock, u64);

impl Job<'_> {
    /// Runs `source`, after loading it where it has to be stored.
    pub(super) fn run(
        &self,
        source: &Source,
        (clock, started): Stopwatch,
        console: &Console,
    ) -> Result<Outcome, CliError> {
        // Part of the load, as opening the source is; what was tried in vain is not.
        let opening = clock.now().saturating_sub(started);
        let afresh = || clock.now().saturating_sub(opening);
        let reason = if self.network.is_some() {
            "messages that share links are simulated in the order in which they do".to_owned()
        } else {
            if let Some(outcome) = computed(self, source, (clock, afresh()))? {
                return Ok(outcome);
            }
            match in_windows(self, source, (clock, afresh()), console)? {
                Ok(outcome) => return Ok(outcome),
                Err(reason) => reason,
            }
        };
        let monitor = Monitor { console, clock };
        loop {
            let outcome = self.in_order(source, &reason, (&monitor, afresh()));
            if outcome.is_ok() || !self.network.as_ref().is_some_and(NetworkJob::wants_more) {
                return outcome;
            }
        }
    }

    /// Runs event by event.
    fn in_order(
        &self,
        source: &Source,
        reason: &str,
        (monitor, started): (&Monitor<'_>, u64),
    ) -> Result<Outcome, CliError> {
        let limit = Limit { bytes: self.most_bytes, besides: &|needs| self.besides(needs) };
        let ran = source.load(self.settings, &limit, |schedule, needs| {
            let load = Self::since((monitor.clock, started));
            let engine = EngineUsed::sequential(reason.to_owned());
            Ok(Outcome { load, engine, ..self.with_noise(schedule, needs, monitor)? })
        });
        match ran {
            Ok(outcome) => outcome,
            Err(error @ LoadError::Memory { .. }) => Err(CliError::failed(error)),
            Err(error) => Err(CliError::usage(error)),
        }
    }

    /// The time since a stopwatch was started.
    pub(super) fn since((clock, started): Stopwatch) -> Picos {
        clock.duration(clock.now().saturating_sub(started))
    }

    /// Bytes that observers take.
    pub(super) fn besides(&self, needs: &Needs) -> u64 {
        // The operation and its message, each an event or three.
        const CAUSES: usize = 4 * Causes::bytes_an_event();
        // Their functions, each kept in a table and evaluated at both ends of an
        // interval, where none equals another.
        const FUNCTIONS: usize = 4 * 160;
        // The table of messages under way.
        const RECORDED: usize = size_of::<Message>() + 40;
        let (ranks, ops) = (u64::from(needs.ranks), needs.ops);
        let mut bytes = 0u64;
        let mut take = |count: u64, size: usize| {
            bytes = bytes.saturating_add(count.saturating_mul(size as u64));
        };
        if let Some(network) = &self.network {
            take(network.plan.bytes(needs.ranks, network.messages(needs)), 1);
        }
        if self.wanted.finish {
            take(ranks, size_of::<Picos>());
        }
        if self.wanted.counters {
            take(ranks, size_of::<RankCounters>());
            take(ops, size_of::<Picos>());
        }
        if self.wanted.causes {
            take(ops, CAUSES);
        }
        if self.wanted.sensitivity {
            take(ops, FUNCTIONS);
        }
        if let Some(selection) = &self.wanted.selection {
            let kept = u64::from(selection.ranks.end.min(needs.ranks))
                .saturating_sub(u64::from(selection.ranks.start));
            // Both ends of a message may be selected.
            let share = u128::from(ops) * u128::from(kept) * 2 / u128::from(ranks.max(1));
            take(u64::try_from(share).unwrap_or(u64::MAX).min(ops), RECORDED);
        }
        bytes
    }

    fn with_noise(
        &self,
        schedule: Schedule<'_>,
        needs: &Needs,
        monitor: &Monitor<'_>,
    ) -> Result<Outcome, CliError> {
        match self.noise {
            None => self.with_observer(schedule, needs, NoNoise, monitor),
            Some((source, phases)) => {
                let trace = source.trace().map_err(CliError::usage)?;
                self.with_observer(schedule, needs, TraceNoise { trace, phases }, monitor)
            }
        }
    }

    fn with_observer<N: Noise>(
        &self,
        schedule: Schedule<'_>,
        needs: &Needs,
        noise: N,
        monitor: &Monitor<'_>,
    ) -> Result<Outcome, CliError> {
        let Wanted { counters, selection, causes, .. } = &self.wanted;
        if !self.wanted.observed() {
            return Ok(self.drive(schedule, needs, (noise, Silent), monitor)?.0);
        }
        let size = |wanted: bool, count: usize| if wanted { count } else { 0 };
        let ops = usize::try_from(needs.ops).unwrap_or(usize::MAX);
        let mut ranks = vec![RankCounters::default(); size(*counters, needs.ranks as usize)];
        let mut arrivals = vec![Picos::ZERO; size(*counters, ops)];
        let counting = counters.then(|| Counters::new(&mut ranks, &mut arrivals));
        let first_ops = schedule.first_ops();
        let recorder = selection.clone().map(|kept| Recorder::new(first_ops, kept));
        let causes = causes.then(|| CauseRecorder::new(first_ops));
        let observers = ((counting, recorder), causes);
        let (outcome, ((counting, recorder), causes)) =
            self.drive(schedule, needs, (noise, observers), monitor)?;
        Ok(Outcome {
            counters: counting.map(|counting| counting.finish().to_vec()),
            timeline: recorder.map(Recorder::finish),
            causes: causes.map(CauseRecorder::finish),
            ..outcome
        })
    }

    fn drive<N: Noise, O: Observer>(
        &self,
        schedule: Schedule<'_>,
        needs: &Needs,
        hooks: (N, O),
        monitor: &Monitor<'_>,
    ) -> Result<(Outcome, O), CliError> {
        let progress = ProgressLine::new(monitor.console, schedule.events());
        let costs = (self.parameters, self.settings);
        let Some(network) = &self.network else {
            let engine = Engine::with(schedule, costs, hooks.0, hooks.1);
            let (outcome, engine) = self.finish(engine, needs, (monitor, progress))?;
            return Ok((outcome, engine.into_observer()));
        };
        let size = (needs.ranks, schedule.interfaces());
        let placed = network.plan.place(size, network.messages(needs));
        let mut placed = placed.map_err(CliError::usage)?;
        let flows = placed.lend().map_err(CliError::usage)?;
        let engine = Engine::on_network(schedule, costs, hooks, flows);
        let (outcome, engine) = self.finish(engine, needs, (monitor, progress))?;
        let network = Some(NetworkUse::of(engine.network(), outcome.finished.makespan.0));
        Ok((Outcome { network, ..outcome }, engine.into_observer()))
    }

    /// Runs `engine` to the end.
    fn finish<'m, 'p, N: Noise, O: Observer, W: Network>(
        &self,
        mut engine: Engine<'m, 'p, N, O, W>,
        needs: &Needs,
        (monitor, progress): (&Monitor<'_>, ProgressLine),
    ) -> Result<(Outcome, Engine<'m, 'p, N, O, W>), CliError> {
        let started = monitor.clock.now();
        let finished = loop {
            let turned = engine.run_some(TURNS);
            if let (Err(SimError::NetworkFull { .. }), Some(network)) = (turned, &self.network) {
                network.full.set(true);
            }
            if let Some(finished) = turned.map_err(CliError::failed)? {
                break finished;
            }
            progress.show(engine.events());
        };
        drop(progress);
        let run = Self::since((monitor.clock, started));
        let mut stuck = Stuck::default();
        engine.unfinished(|left| stuck.add(left));
        let finish =
            self.wanted.finish.then(|| (0..needs.ranks).map(|rank| engine.finish(rank)).collect());
        let memory_bytes = needs.bytes.saturating_add(self.besides(needs));
        let outcome = Outcome {
            ranks: needs.ranks,
            ops: needs.ops,
            memory_bytes,
            finished,
            run,
            stuck,
            finish,
            ..Outcome::default()
        };
        Ok((outcome, engine))
    }
}
