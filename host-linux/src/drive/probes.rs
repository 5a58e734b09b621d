//! Schedule of the LogP signature and of pLogP: probes in random order, each timed alone until it is
//! exact enough. Which probes there are is the core's decision, from the medians so far.

use loggap_core::measure::{
    AssessError, Assessment, BRIEF_BATCH, Clock, Conclusion, Initiator, Link, PROBE_BATCH,
    PlanOptions, PlogpOptions, Probe, ProbeKind, ProbeRow, ProbeTime, Progress, SampleStore,
    SessionError, SignatureOptions, TIME_SLICE, floor, missing_points, missing_probes,
};
use loggap_core::model::{Estimate, Mark};
use loggap_core::random::Random;
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::{Picos, SignedPicos};

use super::derived;
use super::{AssessBuffers, Memory};
use crate::samples::TimedSample;

/// Most messages of a run that is taken to be short.
const SHORT: u32 = 16;
/// Repetitions of a probe whose duration is unknown, and of one of more messages.
const FIRST: u64 = 4;
const FIRST_LONG: u64 = 2;
/// Timings of one probe after which it is exact enough in any case.
const MOST_TIMINGS: usize = 2_048;
/// Batches of a probe without a timing, as messages are lost, after which it is abandoned unless it
/// has more timings.
const MOST_MISSES: u32 = 3;
/// Lost batches of long messages, none of which arrives, after which they are abandoned, unless
/// others are lost as well.
const LOSSES_BEYOND: u64 = 3;
/// Inverse of the largest share of the other batches whose loss is put down to chance.
const CHANCE_SHARE: u64 = 8;
/// Part of the time limit that the computations of a single run may take.
const LONGEST_WAIT_SHARE: u64 = 8;
/// Runs of which the fastest tells how long a probe takes.
const FEW: usize = 4;
/// Round trips at each size before a connection's first probe, which do not count.
const WARM_UP: u16 = 4;

/// A method of probes, with its options.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProbeMethod {
    /// The LogP signature.
    Signature(SignatureOptions),
    /// pLogP, with the confidence of its intervals.
    Plogp(PlogpOptions, Confidence),
}

/// A timing of a probe.
#[derive(Clone, Copy, Debug)]
pub struct TimedProbe {
    /// Result.
    pub time: ProbeTime,
    /// Index of the launch, from 0.
    pub launch: u32,
    /// Begin of its batch, from the begin of the measurement.
    pub at: Picos,
}

/// A probe with its timings.
#[derive(Clone, Debug)]
pub struct Series {
    /// The probe.
    pub probe: Probe,
    /// Its timings, in their order.
    pub timings: Vec<TimedProbe>,
    /// Medians of the timings at the end of the last sweep.
    pub(super) row: Option<ProbeRow>,
    /// True if it is exact enough, or abandoned.
    is_done: bool,
    /// True if it is abandoned because its delays alone would take too long.
    pub(super) is_too_long: bool,
    misses: u32,
    /// Batches with a lost message.
    lost: u32,
    /// Fastest run, also of those that do not count, and number of runs.
    fastest: SignedPicos,
    runs: usize,
}

impl Series {
    const fn new(probe: Probe) -> Self {
        let fastest = SignedPicos(i64::MAX);
        let timings = Vec::new();
        let (is_done, is_too_long) = (false, false);
        Self {
            probe,
            timings,
            row: None,
            is_done,
            is_too_long,
            misses: 0,
            lost: 0,
            fastest,
            runs: 0,
        }
    }

    /// Repetitions for a batch of [`BRIEF_BATCH`], with one that does not count.
    fn repeats(&self, most: usize) -> u16 {
        let wanted = match &self.row {
            Some(row) => {
                let whole = row.whole.value.0.unsigned_abs();
                (BRIEF_BATCH.0 / whole.max(1)).max(1)
            }
            None if self.probe.messages > SHORT || self.probe.delay >= TIME_SLICE => FIRST_LONG,
            None => FIRST,
        };
        let left = most.saturating_sub(self.timings.len()).saturating_add(1);
        let most = u64::try_from(left).unwrap_or(u64::MAX).min(PROBE_BATCH.into());
        u16::try_from(wanted.min(most)).unwrap_or(PROBE_BATCH)
    }

    /// Time of all delays of `repeats` runs.
    fn waits(&self, repeats: u16) -> Picos {
        let count = u64::from(self.probe.messages).saturating_mul(repeats.into());
        Picos(self.probe.delay.0.saturating_mul(count))
    }

    /// Counts the runs of a batch, and tells if the probe takes longer than other processes' time
    /// slices: even the fastest of a few runs does.
    fn outlasts_slices(&mut self, times: &[ProbeTime]) -> bool {
        let fastest = times.iter().map(|time| time.whole).min();
        self.fastest = fastest.map_or(self.fastest, |fastest| fastest.min(self.fastest));
        self.runs = self.runs.saturating_add(times.len());
        self.runs >= FEW && self.fastest.0.unsigned_abs() >= TIME_SLICE.0
    }

    /// Medians of the timings, with intervals of `confidence` that are marked unless half of them is
    /// at most `error` of the value; `None` without timings.
    fn medians(&self, confidence: Confidence, error: f64) -> Option<ProbeRow> {
        let median = |of: fn(&ProbeTime) -> SignedPicos| {
            let mut values: Vec<_> = self.timings.iter().map(|timed| of(&timed.time)).collect();
            let found = Sorted::new(&mut values).median_interval(confidence)?;
            let (value, low, high) = (found.median, found.low, found.high);
            let half = (high.0 - value.0).max(value.0 - low.0);
            #[allow(clippy::cast_precision_loss, reason = "a share of a few percent")]
            let is_known = found.reached && half as f64 <= error * value.0.unsigned_abs() as f64;
            let mark = if is_known { Mark::Converged } else { Mark::BudgetSpent };
            Some(Estimate { value, low, high, mark })
        };
        let (time, whole) = (median(|time| time.time)?, median(|time| time.whole)?);
        let unanswered = self.timings.iter().map(|timed| u64::from(timed.time.unanswered));
        let mut unanswered: Vec<u64> = unanswered.collect();
        let unanswered = u32::try_from(Sorted::new(&mut unanswered).median()?).ok()?;
        Some(ProbeRow { probe: self.probe, time, whole, unanswered, samples: self.timings.len() })
    }
}

impl ProbeMethod {
    /// Most timings of `probe`.
    fn most(&self, probe: &Probe) -> usize {
        match self {
            Self::Signature(_) => MOST_TIMINGS,
            Self::Plogp(options, _) => options.most(probe),
        }
    }

    /// True if `row` needs no more timings.
    fn is_exact(&self, row: &ProbeRow) -> bool {
        // A single way is read off the send calls or off the whole.
        let is_known = match row.probe.kind {
            ProbeKind::Flood | ProbeKind::Receive => row.whole.mark.converged(),
            ProbeKind::Issue { .. } | ProbeKind::Train => row.time.mark.converged(),
        };
        match self {
            // A batch of 50, or as few as give an interval where a batch takes long.
            Self::Signature(_) => {
                let is_long = row.whole.value.0.unsigned_abs() > BRIEF_BATCH.0;
                let fewest = if is_long { FEWEST_LONG } else { usize::from(PROBE_BATCH) };
                is_known && row.samples >= fewest || row.samples >= MOST_TIMINGS
            }
            Self::Plogp(options, _) => {
                let is_known = row.time.mark.converged() && row.whole.mark.converged();
                let fewest = options.fewest(&row.probe);
                is_known && row.samples >= fewest || row.samples >= options.most(&row.probe)
            }
        }
    }
}

/// Fewest timings of a run longer than a batch.
const FEWEST_LONG: usize = 8;

/// Schedule of the signature or of pLogP.
#[derive(Debug)]
pub(super) struct Probes {
    pub(super) method: ProbeMethod,
    pub(super) options: PlanOptions,
    pub(super) sizes: Vec<u32>,
    pub(super) series: Vec<Series>,
    /// Indices of this sweep's series in random order, and the number of them done.
    order: Vec<usize>,
    done: usize,
    random: Random,
    /// True if no probe was missing at the end of the last sweep.
    is_complete: bool,
    /// Number of launches begun, and true before the first probe of the last.
    launches: u32,
    is_cold: bool,
    /// True if an end was preempted during the last batch.
    is_disturbed: bool,
    /// Messages sent over this connection, and over earlier ones.
    messages: u64,
    earlier_messages: u64,
    /// Batches, and those with a lost message.
    batches: u64,
    lost: u64,
    /// Runs that were discarded because an end was preempted.
    pub(super) left_out: u64,
    pub(super) conclusion: Option<Conclusion>,
}

impl Probes {
    pub(super) fn new(method: ProbeMethod, sizes: &[u32], options: PlanOptions) -> Self {
        Self {
            method,
            options,
            sizes: sizes.to_vec(),
            series: Vec::new(),
            order: Vec::new(),
            done: 0,
            random: Random::new(options.seed),
            is_complete: false,
            launches: 0,
            is_cold: true,
            is_disturbed: false,
            messages: 0,
            earlier_messages: 0,
            batches: 0,
            lost: 0,
            left_out: 0,
            conclusion: None,
        }
    }

    /// Drops sizes of more than `longest` bytes; if sizes may be added, `longest` itself is then
    /// the last one. False if there are none to drop, or no others.
    pub(super) fn limit_sizes(&mut self, longest: u32) -> bool {
        if let ProbeMethod::Plogp(options, _) = &mut self.method {
            options.longest = options.longest.min(longest);
        }
        let kept = self.sizes.iter().filter(|size| **size <= longest).count();
        let is_limited = 0 < kept && kept < self.sizes.len();
        if is_limited {
            self.sizes.retain(|size| *size <= longest);
            if self.options.adapt_sizes && !self.sizes.contains(&longest) {
                self.sizes.push(longest);
            }
        }
        is_limited
    }

    pub(super) fn begin_launch(&mut self) {
        self.launches = self.launches.saturating_add(1);
        (self.is_cold, self.done) = (true, 0);
        // Every connection is measured, also after convergence.
        self.conclusion = self.conclusion.filter(|found| *found != Conclusion::Converged);
        self.order = (0..self.series.len()).collect();
        self.random.shuffle(&mut self.order);
        self.earlier_messages = self.earlier_messages.saturating_add(self.messages);
        self.messages = 0;
    }

    /// True if there are enough timings for a first assessment.
    pub(super) fn has_base(&self) -> bool {
        let is_founded = |one: &Series| one.is_done || one.timings.len() >= floor::VALUE;
        self.is_complete && self.series.iter().all(is_founded)
    }

    pub(super) const fn progress(&self) -> Progress {
        let messages = self.earlier_messages.saturating_add(self.messages);
        Progress { spent_ppm: 0, widest_ppm: None, messages, lost: self.lost }
    }

    /// Times a batch of the next probe, at `now`; false once the run has concluded.
    pub(super) fn step<C: Clock, L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        now: Picos,
    ) -> Result<bool, SessionError<L::Error>> {
        if self.is_cold {
            self.is_cold = false;
            self.warm_up(session)?;
        }
        if self.done == self.order.len() {
            self.begin_sweep();
        }
        let (None, Some(&index)) = (self.conclusion, self.order.get(self.done)) else {
            return Ok(false);
        };
        self.done = self.done.saturating_add(1);
        let Some(series) = self.series.get_mut(index) else { return Ok(true) };
        let repeats = series.repeats(self.method.most(&series.probe));
        let limit = self.options.max_time;
        series.is_too_long = series.waits(1).0 > limit.0 / LONGEST_WAIT_SHARE;
        if series.is_too_long || series.waits(repeats) > limit.since(now) {
            series.is_done = true;
            return Ok(true);
        }
        if self.is_disturbed {
            session.meet()?;
        }
        let before = session.clock().interruptions();
        let mut times = Vec::new();
        let is_whole = session.probe(&series.probe, repeats, |time| times.push(time))?;
        self.is_disturbed = session.clock().interruptions() != before;
        let outlasted = series.outlasts_slices(&[]);
        let outlasts = series.outlasts_slices(&times);
        if outlasted && !outlasts {
            // All runs so far were hit.
            series.timings.clear();
            (series.row, series.is_done) = (None, false);
        }
        series.lost = series.lost.saturating_add(u32::from(!is_whole));
        if self.is_disturbed && !outlasts {
            self.left_out += times.len() as u64;
            times.clear();
        } else if !is_whole && times.is_empty() {
            series.misses = series.misses.saturating_add(1);
            let timings = u32::try_from(series.timings.len()).unwrap_or(u32::MAX);
            series.is_done |= series.misses >= MOST_MISSES.max(timings);
        }
        self.batches = self.batches.saturating_add(1);
        self.lost = self.lost.saturating_add(u64::from(!is_whole));
        // The first run of a batch finds the caches of another probe.
        let cold = usize::from(times.len() > 1);
        let launch = self.launches.saturating_sub(1);
        let timed = |time| TimedProbe { time, launch, at: now };
        series.timings.extend(times.into_iter().skip(cold).map(timed));
        if !is_whole && let Some(reached) = self.reached() {
            let beyond = self.series.iter_mut().filter(|one| one.probe.size > reached);
            beyond.for_each(|one| one.is_done = true);
        }
        self.messages = session.traffic().messages();
        if self.progress().messages >= self.options.max_messages {
            self.conclusion.get_or_insert(Conclusion::MessagesSpent);
        }
        Ok(true)
    }

    /// Largest size whose messages arrive, bytes, if no longer ones do: all of their batches are
    /// lost, and few of the others, whatever preempted them.
    pub(super) fn reached(&self) -> Option<u32> {
        let arrived = self.series.iter().filter(|one| !one.timings.is_empty());
        let arrived = arrived.map(|one| one.probe.size).max()?;
        let beyond = self.series.iter().filter(|one| one.probe.size > arrived);
        let lost: u64 = beyond.map(|one| u64::from(one.lost)).sum();
        let by_chance = self.lost.saturating_sub(lost).max(1);
        let is_rare = by_chance.saturating_mul(CHANCE_SHARE) <= self.batches.saturating_sub(lost);
        (lost >= LOSSES_BEYOND && is_rare).then_some(arrived)
    }

    fn warm_up<C: Clock, L: Link>(
        &self,
        session: &mut Initiator<'_, C, L>,
    ) -> Result<(), SessionError<L::Error>> {
        let reached = self.reached().unwrap_or(u32::MAX);
        for size in self.sizes.iter().filter(|size| **size <= reached) {
            session.probe(&Probe::round_trip(*size), WARM_UP, |_| {})?;
        }
        Ok(())
    }

    /// Computes the medians, adds the probes that are missing, and orders those that are not exact
    /// yet; concludes where there are none.
    fn begin_sweep(&mut self) {
        self.update();
        self.is_complete = !self.add_missing();
        self.order =
            (0..).zip(&self.series).filter(|(_, one)| !one.is_done).map(|at| at.0).collect();
        self.random.shuffle(&mut self.order);
        self.done = 0;
        if self.order.is_empty() {
            self.conclusion.get_or_insert(Conclusion::Converged);
        }
    }

    /// Computes the medians of all series with new timings.
    pub(super) fn update(&mut self) {
        let Self { method, options, series, .. } = self;
        let (confidence, error) = match method {
            ProbeMethod::Signature(signature) => {
                (options.assess.confidence, signature.relative_error)
            }
            ProbeMethod::Plogp(plogp, confidence) => (*confidence, plogp.eps),
        };
        let is_new = |one: &&mut Series| one.row.is_none_or(|row| row.samples < one.timings.len());
        for one in series.iter_mut().filter(is_new) {
            one.row = one.medians(confidence, error);
            one.is_done |= one.row.is_some_and(|row| method.is_exact(&row));
        }
    }

    /// Adds the probes that are missing; false if none are.
    fn add_missing(&mut self) -> bool {
        let mut missing = Vec::new();
        match &self.method {
            ProbeMethod::Signature(options) => {
                for size in &self.sizes {
                    missing_points(*size, &self.rows_of(*size), options, |probe| {
                        missing.push(probe)
                    });
                }
            }
            // The next step of pLogP depends on finished ones.
            ProbeMethod::Plogp(..) if self.series.iter().any(|one| !one.is_done) => return true,
            ProbeMethod::Plogp(options, _) => {
                let add = |probe| missing.push(probe);
                missing_probes(&self.sizes, &self.rows(), options, add);
            }
        }
        missing.retain(|probe| self.series.iter().all(|one| one.probe != *probe));
        let count = self.series.len();
        for probe in missing {
            if self.series.iter().skip(count).all(|one| one.probe != probe) {
                self.series.push(Series::new(probe));
            }
        }
        self.series.len() > count
    }

    /// Medians of all probes.
    pub(super) fn rows(&self) -> Vec<ProbeRow> {
        self.series.iter().filter_map(|one| one.row).collect()
    }

    /// Medians of the probes of one size.
    pub(super) fn rows_of(&self, size: u32) -> Vec<ProbeRow> {
        let of_size = self.series.iter().filter(|one| one.probe.size == size);
        of_size.filter_map(|one| one.row).collect()
    }
}

/// Memory for samples of the PRTT method on a link with the parameters that probes found.
#[derive(Debug)]
pub(super) struct Derived<'m> {
    pub(super) store: SampleStore<'m>,
    memory: &'m mut AssessBuffers,
}

impl<'m> Derived<'m> {
    pub(super) fn new(memory: &'m mut Memory) -> Self {
        let (store, memory) = memory.lend_store();
        Self { store, memory }
    }

    /// The samples in the order of measuring, and their assessment.
    pub(super) fn assess(
        &mut self,
        probes: &mut Probes,
    ) -> (Vec<TimedSample>, Result<Assessment, AssessError>) {
        probes.update();
        let samples = derived::samples(probes);
        for timed in &samples {
            if self.store.insert(&timed.sample).is_err() {
                probes.conclusion.get_or_insert(Conclusion::MemorySpent);
                break;
            }
        }
        let assessment =
            Assessment::new(&self.store, &probes.options.assess, &mut self.memory.lend());
        (samples, assessment)
    }
}
