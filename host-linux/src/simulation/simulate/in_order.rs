//! Runs in order of events.

use loggap_core::sim::network::Network;
use loggap_core::sim::{
    Counters, Engine, Noise, Observer, RankCounters, Schedule, Silent, Storage,
};

use super::{Job, Method, Outcome, Progress, Stopwatch, Stuck, WATCHED, WATCHED_ON_NETWORK, Watch};
use crate::simulation::network::{messages, with_more_memory};
use crate::simulation::noise::with_noise;
use crate::simulation::{LookedUp, Needs, NetworkUse, RunError, Source, StreamedSchedule, stream};
use crate::timeline::Recorder;
use crate::timeline::causes::CauseRecorder;
use crate::timeline::link_holds::LinkHolds;

/// Result of a run, with an additional value.
type WithRest<T> = Result<(Outcome, T), RunError>;

/// A run in order of events.
pub(in crate::simulation) struct InOrder<'j> {
    pub(in crate::simulation) job: &'j Job<'j>,
    /// Memory for messages in the network, as a multiple of the usual number.
    pub(in crate::simulation) times: usize,
    pub(in crate::simulation) watch: Watch<'j>,
}

impl Job<'_> {
    /// Runs in order; `reason` explains why windows are not used.
    pub(super) fn in_order(
        &self,
        source: &Source,
        reason: &str,
        watch: Watch<'_>,
    ) -> Result<Outcome, RunError> {
        with_more_memory(&mut 1, |times| InOrder { job: self, times, watch }.of(source, reason))
    }

    /// Looks the operations up during the run; `reason` is why they are not stored.
    pub(super) fn streamed(
        &self,
        source: &Source,
        reason: &str,
        watch: Watch<'_>,
    ) -> Result<Outcome, RunError> {
        let why = match self.streamed_in_windows(LookedUp::of(source)?, reason, watch)? {
            Ok(outcome) => return Ok(outcome),
            Err(why) => why,
        };
        let reasons = [reason, why];
        with_more_memory(&mut 1, |times| {
            InOrder { job: self, times, watch }.of_streamed(source, reasons)
        })
    }
}

impl InOrder<'_> {
    fn of(&self, source: &Source, reason: &str) -> Result<Outcome, RunError> {
        let besides = |needs: &Needs| self.besides(needs);
        let loading = Stopwatch::start();
        source.load(self.job.settings, &self.job.limit(&besides), |schedule, needs| {
            let load = loading.read();
            let method = Method::InOrder { reason: reason.to_owned() };
            Ok(Outcome { load, method, ..self.run(schedule, needs)? })
        })?
    }

    /// As [`Self::of`], for a program that is looked up during the run.
    fn of_streamed(
        &self,
        source: &Source,
        [reason, in_order]: [&str; 2],
    ) -> Result<Outcome, RunError> {
        let besides = |needs: &Needs| self.besides(needs);
        let loading = Stopwatch::start();
        let run = |schedule: StreamedSchedule<'_>, needs: &Needs| {
            let load = loading.read();
            let (reason, in_order) = (reason.to_owned(), Some(in_order.to_owned()));
            let method = Method::Streamed { reason, in_order, parts: [1, 1] };
            Ok(Outcome { load, method, ..self.run(schedule, needs)? })
        };
        stream(LookedUp::of(source)?, self.job.settings, &self.job.limit(&besides), run)
    }

    /// Runs a schedule that is loaded.
    pub(in crate::simulation) fn run<S: Storage>(
        &self,
        schedule: Schedule<'_, S>,
        needs: &Needs,
    ) -> Result<Outcome, RunError> {
        with_noise!(self.job.noise, noise => self.with_observer(schedule, needs, noise))
    }

    /// Memory of observers and network, bytes.
    fn besides(&self, needs: &Needs) -> u64 {
        let network = self.job.network;
        let network =
            network.map_or(0, |plan| plan.bytes(needs.ranks, messages(needs, self.times)));
        self.job.besides(needs).saturating_add(network)
    }

    fn with_observer<N: Noise, S: Storage>(
        &self,
        schedule: Schedule<'_, S>,
        needs: &Needs,
        noise: N,
    ) -> Result<Outcome, RunError> {
        let wanted = &self.job.wanted;
        if !wanted.observed() {
            return Ok(self.drive(schedule, needs, noise, Silent, None)?.0);
        }
        let size = |wanted: bool, count: usize| if wanted { count } else { 0 };
        let mut ranks = vec![RankCounters::default(); size(wanted.counters, needs.ranks as usize)];
        let counting = wanted.counters.then(|| Counters::new(&mut ranks));
        let first_ops = schedule.first_ops();
        let recorder = wanted.selection.clone().map(|kept| Recorder::new(first_ops.into(), kept));
        let holds = self.job.network.filter(|_| wanted.causes).map(|_| LinkHolds::default());
        let causes = wanted.causes.then(|| match &holds {
            Some(holds) => CauseRecorder::new(first_ops).with_holds(holds.clone()),
            None => CauseRecorder::new(first_ops),
        });
        let observers = ((counting, recorder), causes);
        let interfaces = schedule.interfaces();
        let (outcome, ((counting, recorder), causes)) =
            self.drive(schedule, needs, noise, observers, holds.clone())?;
        if let (Some(holds), Some(plan)) = (holds.as_ref(), self.job.network) {
            let topology = plan.topology(needs.ranks, interfaces)?;
            holds.name_links(|link| topology.link_name(link));
        }
        Ok(Outcome {
            counters: counting.map(|counting| counting.finish().to_vec()),
            timeline: recorder.map(Recorder::finish),
            causes: causes.map(CauseRecorder::finish),
            ..outcome
        })
    }

    fn drive<N: Noise, O: Observer, S: Storage>(
        &self,
        schedule: Schedule<'_, S>,
        needs: &Needs,
        noise: N,
        observer: O,
        mut holds: Option<LinkHolds>,
    ) -> WithRest<O> {
        // One event for each operation, and two for each message.
        let of = schedule.events().saturating_add(schedule.sends().into());
        let Job { parameters, settings, .. } = *self.job;
        let Some(plan) = self.job.network else {
            let engine = Engine::with(schedule, parameters, settings, noise, observer);
            let (outcome, engine) = self.finish(engine, needs, of)?;
            return Ok((outcome, engine.into_observer()));
        };
        let messages = messages(needs, self.times);
        let mut placed = plan.place(needs.ranks, schedule.interfaces(), messages)?;
        let network = placed.lend()?;
        let network = match &mut holds {
            Some(holds) => network.with_observer(holds),
            None => network,
        };
        let engine = Engine::on_network(schedule, parameters, settings, noise, observer, network);
        let (outcome, engine) = self.finish(engine, needs, of)?;
        let network = Some(NetworkUse::of(engine.network(), outcome.finished.makespan.0));
        Ok((Outcome { network, ..outcome }, engine.into_observer()))
    }

    /// Runs `engine` to the end; `of` is the approximate number of events.
    fn finish<'m, 'p, N: Noise, O: Observer, W: Network, S: Storage>(
        &self,
        mut engine: Engine<'m, 'p, N, O, W, S>,
        needs: &Needs,
        of: u64,
    ) -> WithRest<Engine<'m, 'p, N, O, W, S>> {
        let running = Stopwatch::start();
        let turns = self.job.network.map_or(WATCHED, |_| WATCHED_ON_NETWORK);
        let mut done = 0;
        let finished = loop {
            if let Some(finished) = engine.run_some(turns)? {
                break finished;
            }
            done += turns;
            (self.watch)(Progress { done, of, time: None });
        };
        let run = running.read();
        let mut stuck = Stuck::default();
        engine.unfinished(|left| stuck.add(left));
        let wanted = self.job.wanted.finish;
        let finish = wanted.then(|| (0..needs.ranks).map(|rank| engine.finish(rank)).collect());
        let most_under_way = engine.most_records().map(u64::from);
        let under_way = needs.each.saturating_mul(most_under_way.unwrap_or_default());
        let outcome = Outcome {
            ranks: needs.ranks,
            ops: needs.ops,
            memory_bytes: needs.bytes.saturating_add(under_way).saturating_add(self.besides(needs)),
            most_under_way,
            finished,
            run,
            stuck,
            finish,
            ..Outcome::default()
        };
        Ok((outcome, engine))
    }
}
