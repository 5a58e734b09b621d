//! State of a series at the leader: takes batches from the scheme, judges their
//! repetitions, and keeps those that count. Independent of MPI.

use loggap_core::stats::Sorted;
use loggap_core::units::{Picos, SignedPicos};

use super::completed::{CompletedBatch, Records};
use super::interval;
use super::judge::{self, Planned, Record, Repetition, Verdict};
use super::run::Plan;
use super::scheme::{Batch, Outcome, Recent, Scheme, Start};
use super::stop::{Series, StopRule, Stopped};

/// Times of all ranks in one repetition, in ps after the common start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sample {
    /// Number of the repetition.
    pub repetition: u64,
    /// True if it counts.
    pub valid: bool,
    /// Start of each rank; negative if the clocks show it before the common start.
    pub starts: Vec<SignedPicos>,
    /// Exit of each rank; zero if the clocks show it before the common start.
    pub exits: Vec<Picos>,
}

/// Summary over the ranks of each one's mean time over the repetitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RankMeans {
    /// Average over the ranks.
    pub average: Picos,
    /// Mean of the quickest rank.
    pub least: Picos,
    /// Mean of the slowest rank.
    pub most: Picos,
}

/// Numbers of repetitions and synchronisations of a series.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Repetitions that started late.
    pub late: u64,
    /// Repetitions that ended after their window.
    pub too_long: u64,
    /// Repetitions timed while a rank's clock was not synchronised.
    pub no_clock: u64,
    /// Intervals between two synchronisations with such repetitions.
    pub lost_segments: u64,
    /// Synchronisations of the clocks, including the one at the start.
    pub synchronisations: u32,
}

impl Counts {
    /// Number of repetitions that did not count.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.late.saturating_add(self.too_long).saturating_add(self.no_clock)
    }
}

/// Result of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Median; `None` if no repetition counted.
    pub median: Option<Picos>,
    /// Confidence interval of the median; `None` with too few repetitions.
    pub interval: Option<(Picos, Picos)>,
    /// Effective sample size: independent repetitions that those which counted are worth.
    pub effective: u64,
    /// Means of the ranks' own times.
    pub ranks: Option<RankMeans>,
    /// Number of repetitions that counted.
    pub valid: u64,
    /// Number of those that did not, and of synchronisations.
    pub counts: Counts,
    /// Median and maximum of the skew of the starts.
    pub skew: Option<(Picos, Picos)>,
    /// Median over the repetitions of the longest computation of a rank.
    pub computed: Option<Picos>,
    /// Bound of the error of the clocks.
    pub clock_error: Picos,
    /// Condition that ended it.
    pub stopped: Stopped,
    /// Reason why most repetitions did not count.
    pub diagnosis: Option<String>,
    /// Times of the ranks in each repetition, if they are kept.
    pub samples: Vec<Sample>,
}

/// A series in progress.
#[derive(Debug)]
pub(super) struct SeriesState<'a> {
    plan: &'a Plan,
    scheme: Scheme,
    series: Series,
    max_time: Picos,
    /// Number of batches so far.
    batches: u32,
    /// Durations of the operation in the last repetitions, whether they count or not.
    recent: Recent<64>,
    /// Median of these; [`Picos::MAX`] without any.
    usual: Picos,
    counts: Counts,
    /// Tolerance in percent that each of the late repetitions needed.
    off_percents: Vec<u64>,
    skews: Vec<Picos>,
    computed: Vec<Picos>,
    error: Picos,
    /// Sum of each rank's times over the repetitions that count.
    sums: Vec<u128>,
    samples: Vec<Sample>,
}

impl<'a> SeriesState<'a> {
    /// Number of batches that warm up caches and connections and do not count:
    /// always the first one, the others only while there is time.
    const WARM_UP: u32 = 5;
    /// Divisor of the time limit: after this part of it, further batches count.
    const WARM_UP_PART: u64 = 4;

    pub(super) fn new(plan: &'a Plan, rule: StopRule) -> Self {
        Self {
            plan,
            scheme: Scheme::new(plan.scheme, rule.max_time),
            series: Series::new(rule),
            max_time: rule.max_time,
            batches: 0,
            recent: Recent::new(),
            usual: Picos::MAX,
            counts: Counts { synchronisations: 1, ..Counts::default() },
            off_percents: Vec::new(),
            skews: Vec::new(),
            computed: Vec::new(),
            error: Picos::ZERO,
            sums: vec![0; plan.delays.len()],
            samples: Vec::new(),
        }
    }

    pub(super) fn verdict(&self, elapsed: Picos) -> Option<Stopped> {
        // Not before the first batch, so that every result is verified.
        if self.batches == 0 { None } else { self.series.verdict(elapsed) }
    }

    /// Next batch, shortened to the time `left`.
    pub(super) fn next(&self, left: Picos) -> Batch {
        let batch = self.scheme.next();
        let Start::Clock { window, .. } = batch.start else { return batch };
        let fitting = left.0.checked_div(window.0).unwrap_or(u64::MAX).max(1);
        Batch { count: batch.count.min(u32::try_from(fitting).unwrap_or(u32::MAX)), ..batch }
    }

    pub(super) fn handle(&mut self, completed: &CompletedBatch, records: Records<'_>) {
        let repetitions: Vec<Repetition> = (0..records.each)
            .map(|index| self.judge(completed, &records.of(index), index))
            .collect();
        let announced = completed.announced();
        let ready = records.ready().unwrap_or(announced);
        self.scheme.handle(&Outcome {
            announced: ready.since(announced),
            took: completed.until.since(announced),
            repetitions: &repetitions,
        });
        let delay = self.plan.delays.iter().copied().max().unwrap_or_default();
        for repetition in &repetitions {
            let recent = self.recent.keep(repetition.time.since(delay));
            self.usual = interval::median(recent).unwrap_or(Picos::MAX);
        }
        self.batches += 1;
        let early = completed.elapsed.0 < self.max_time.0 / Self::WARM_UP_PART;
        if self.batches == 1 || early && self.batches <= Self::WARM_UP {
            return;
        }
        for (index, repetition) in repetitions.iter().enumerate() {
            self.keep(completed, index, &records.of(index), repetition);
        }
    }

    fn judge(&self, completed: &CompletedBatch, records: &[Record], index: usize) -> Repetition {
        let Batch { start, count } = completed.batch;
        match start {
            Start::Clock { .. } => {
                let begin = |index: usize| start.of(index as u64, completed.start);
                let end = (count > 1).then(|| begin(index + 1));
                let (delays, usual) = (&self.plan.delays[..], self.usual);
                let planned = Planned { start: begin(index), delays, end, usual };
                judge::judge(records, &planned, self.plan.tolerance)
            }
            Start::Barrier | Start::Announced => judge::merge(records),
            Start::BackToBack { .. } => {
                // The root's own time, as benchmarks that use such a loop report it.
                let root = usize::try_from(self.plan.root).unwrap_or(0);
                let own = records.get(root).copied().unwrap_or_default();
                let whole = own.ended.since(own.started);
                let time = Picos(whole.0 / u64::from(count.max(1)));
                Repetition { time, ..judge::merge(records) }
            }
        }
    }

    fn keep(
        &mut self,
        completed: &CompletedBatch,
        index: usize,
        records: &[Record],
        repetition: &Repetition,
    ) {
        let valid = repetition.verdict == Verdict::Valid;
        self.series.push(valid.then_some(repetition.time));
        let begin = completed.begin(index);
        match repetition.verdict {
            Verdict::Valid => {
                self.error = self.error.max(repetition.error);
                self.skews.push(repetition.skew);
                self.computed.extend(records.iter().map(|record| record.computed).max());
                let share = match completed.batch.start {
                    Start::BackToBack { .. } => u64::from(completed.batch.count.max(1)),
                    Start::Clock { .. } | Start::Barrier | Start::Announced => 1,
                };
                for (sum, record) in self.sums.iter_mut().zip(records) {
                    let from = begin.unwrap_or(record.started);
                    *sum += u128::from(record.ended.since(from).0 / share);
                }
            }
            Verdict::Late => {
                self.counts.late += 1;
                self.off_percents.push(repetition.off_percent);
            }
            Verdict::TooLong => self.counts.too_long += 1,
            Verdict::NoClock => self.counts.no_clock += 1,
        }
        if self.plan.keeps_samples {
            let first = records.iter().map(|record| record.started).min().unwrap_or_default();
            let begin = begin.unwrap_or(first);
            self.samples.push(Sample {
                repetition: completed.first + index as u64,
                valid,
                starts: records.iter().map(|record| record.deviation(begin)).collect(),
                exits: records.iter().map(|record| record.ended.since(begin)).collect(),
            });
        }
    }

    /// Counts another synchronisation of the clocks.
    pub(super) const fn synchronised(&mut self) {
        self.counts.synchronisations += 1;
    }

    /// Counts an interval between two synchronisations in which a rank's clock
    /// was not synchronised.
    pub(super) const fn lose_segment(&mut self) {
        self.counts.lost_segments += 1;
    }

    pub(super) fn finish(mut self, stopped: Stopped) -> Measured {
        let valid = self.series.times().len() as u64;
        let interval = self.series.interval();
        let most = self.counts.discarded() > valid;
        // An interruption proves nothing about the settings.
        let is_judged = stopped != Stopped::Interrupted && (most || valid == 0);
        let diagnosis = is_judged.then(|| self.diagnosis(valid));
        let skew = Sorted::new(&mut self.skews);
        let skew = skew.median().zip(skew.quantile(1, 1));
        Measured {
            median: interval.map(|interval| interval.median),
            interval: interval.and_then(|interval| interval.ends),
            effective: interval.map_or(0, |interval| interval.effective),
            ranks: means(&self.sums, valid),
            valid,
            counts: self.counts,
            skew,
            computed: interval::median(self.computed),
            clock_error: self.error,
            stopped,
            diagnosis,
            samples: self.samples,
        }
    }

    fn diagnosis(&self, valid: u64) -> String {
        let more = self.more_tolerance();
        let Counts { late, too_long, no_clock, .. } = self.counts;
        let total = valid + self.counts.discarded();
        if total == 0 {
            return "the time was spent before the first repetition counted: give more with \
                    --max-time"
                .to_owned();
        }
        let why = self.scheme.diagnosis();
        let no_clock = if no_clock > 0 {
            format!(", {no_clock} were timed by a clock that was lost")
        } else {
            String::new()
        };
        format!(
            "{late} of {total} repetitions started late, {too_long} were too \
             long{no_clock}: {why}{more}"
        )
    }

    /// Advice on the tolerance with which half of the late repetitions would count.
    fn more_tolerance(&self) -> String {
        const STEP: u64 = 10;
        const MOST: u64 = 90;
        let median = interval::median(self.off_percents.iter().copied());
        match median.map(|percent| percent.next_multiple_of(STEP)) {
            Some(percent) if percent <= MOST => {
                format!("; with --max-skew {percent}% half of these would count")
            }
            Some(_) => "; operations that take longer would count, such as with -s 64K".to_owned(),
            None => String::new(),
        }
    }
}

fn means(sums: &[u128], valid: u64) -> Option<RankMeans> {
    let picos = |number: u128| Picos(u64::try_from(number).unwrap_or(u64::MAX));
    let mean = |sum: u128| sum.checked_div(u128::from(valid)).map(picos);
    let total: u128 = sums.iter().sum();
    Some(RankMeans {
        average: mean(total.checked_div(sums.len() as u128)?)?,
        least: mean(*sums.iter().min()?)?,
        most: mean(*sums.iter().max()?)?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::judge::Tolerance;
    use super::super::scheme::SchemeName;
    use super::*;
    use crate::clocks::Domains;

    const US: u64 = 1_000_000;

    pub(in super::super) fn plan(scheme: SchemeName, ranks: usize) -> Plan {
        Plan {
            scheme,
            root: 0,
            delays: vec![Picos(0); ranks],
            tolerance: Tolerance { share_ppm: 20_000 },
            rule: StopRule { max_time: Picos(1_000_000 * US), rel_err_ppm: 1, least: 50, most: 60 },
            keeps_samples: true,
            alignment: loggap::machine::buffer::Alignment::default(),
            domains: Domains::Machine,
            assumptions: loggap_core::sync::Assumptions::default(),
        }
    }

    /// Simulates two ranks. They start `late` after the planned start, and an
    /// operation takes 10 us on rank 1, half of that on rank 0.
    fn simulate(plan: &Plan, late: impl Fn(u64) -> u64) -> Measured {
        let mut state = SeriesState::new(plan, plan.rule);
        let (mut now, mut first) = (0, 0);
        loop {
            if let Some(stopped) = state.verdict(Picos(now)) {
                return state.finish(stopped);
            }
            let batch = state.next(plan.rule.max_time.since(Picos(now)));
            let (lead, window) = match batch.start {
                Start::Clock { lead, window } => (lead.0, window.0),
                _ => (0, 0),
            };
            let each = if let Start::BackToBack { .. } = batch.start { 1 } else { batch.count };
            let operations = u64::from(if each == 1 { batch.count } else { 1 });
            let start = now + lead;
            let mut records = Vec::new();
            for rank in 1..=2 {
                let mut free = 0;
                for index in 0..u64::from(each) {
                    let planned = start + index * window;
                    let missed = planned.max(free) - planned + late(first + index);
                    let started = planned + missed;
                    let ended = started + 5 * US * rank * operations;
                    free = ended + US;
                    records.push(Record {
                        ready: Picos(if index == 0 { now + 3 * US } else { free }),
                        started: Picos(started),
                        ended: Picos(ended),
                        missed: Picos(missed),
                        ..Record::default()
                    });
                }
            }
            now = records.iter().map(|record| record.ended.0).max().unwrap() + 5 * US;
            let (until, elapsed) = (Picos(now), Picos(now));
            let completed = CompletedBatch { batch, start: Picos(start), first, until, elapsed };
            state.handle(&completed, Records { all: &records, each: records.len() / 2 });
            first += u64::from(each);
        }
    }

    #[test]
    fn the_time_to_the_last_exit_is_found() {
        for scheme in [SchemeName::Roundtime, SchemeName::Barrier, SchemeName::Window] {
            let found = simulate(&plan(scheme, 2), |_| 0);
            assert_eq!(found.median, Some(Picos(10 * US)), "{scheme:?}");
            let ranks = found.ranks.unwrap();
            assert_eq!((ranks.least, ranks.most), (Picos(5 * US), Picos(10 * US)));
            assert_eq!(ranks.average, Picos(15 * US / 2));
            assert!(found.diagnosis.is_none() && found.interval.is_some());
        }
    }

    #[test]
    fn a_loop_gives_what_the_root_sees() {
        let found = simulate(&plan(SchemeName::Loop, 2), |_| 0);
        assert_eq!(found.median, Some(Picos(5 * US)));
    }

    #[test]
    fn the_first_repetitions_warm_up_and_do_not_count() {
        // The first five are late, and are not even counted as such.
        let found = simulate(&plan(SchemeName::Roundtime, 2), |n| if n < 5 { US } else { 0 });
        assert_eq!((found.counts.late, found.valid), (0, 60));
        assert_eq!(found.samples[0].repetition, 5);
        // Without much time, the first one only.
        let hasty = plan(SchemeName::Roundtime, 2);
        let hasty = Plan { rule: StopRule { max_time: Picos(60 * US), ..hasty.rule }, ..hasty };
        assert_eq!(simulate(&hasty, |_| 0).samples[0].repetition, 1);
    }

    #[test]
    fn late_starts_are_counted_and_do_not_count() {
        let found = simulate(&plan(SchemeName::Roundtime, 2), |n| if n % 4 == 0 { US } else { 0 });
        assert_eq!((found.median, found.valid), (Some(Picos(10 * US)), 60));
        assert!(found.counts.late > 10 && found.diagnosis.is_none());
        assert_eq!(
            found.samples.iter().filter(|sample| !sample.valid).count() as u64,
            found.counts.late
        );
    }

    #[test]
    fn nothing_that_counts_is_no_number_and_a_diagnosis() {
        let found = simulate(&plan(SchemeName::Roundtime, 2), |_| US);
        assert_eq!((found.median, found.interval, found.ranks), (None, None, None));
        assert!(found.skew.is_none() && found.valid == 0);
        let diagnosis = found.diagnosis.unwrap();
        assert!(diagnosis.contains("started late"), "{diagnosis}");
        // Operations of 10 us start 1 us late: the diagnosis names a remedy that works.
        assert!(
            diagnosis.ends_with("with --max-skew 10% half of these would count"),
            "{diagnosis}"
        );
        let tolerance = Tolerance { share_ppm: 100_000 };
        let plan = Plan { tolerance, ..plan(SchemeName::Roundtime, 2) };
        assert!(simulate(&plan, |_| US).valid >= 50);
    }

    #[test]
    fn windows_become_long_enough() {
        let found = simulate(&plan(SchemeName::Window, 2), |_| 0);
        assert_eq!(found.stopped, Stopped::Precision);
        assert!(found.counts.too_long + found.counts.late < found.valid, "{found:?}");
    }
}
