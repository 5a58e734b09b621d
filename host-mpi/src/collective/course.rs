//! The course of a series at the leader: hands batches to the scheme, judges
//! what came of them, and keeps what counts. Knows nothing of MPI.

use loggap_core::stats::Sorted;
use loggap_core::units::Picos;

use super::judge::{self, Planned, Record, Repetition, Verdict};
use super::run::Plan;
use super::scheme::{Batch, Outcome, Scheme, Start};
use super::stop::{Series, StopRule, Stopped};

/// What one rank timed in one repetition, in ps after the common start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sample {
    /// Number of the repetition.
    pub repetition: u64,
    /// Whether it counts.
    pub valid: bool,
    /// When each rank started.
    pub starts: Vec<Picos>,
    /// When each rank was done.
    pub exits: Vec<Picos>,
}

/// Means over repetitions, of each rank's own time: over ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RankMeans {
    /// Mean.
    pub average: Picos,
    /// Of the quickest rank.
    pub least: Picos,
    /// Of the slowest.
    pub most: Picos,
}

/// What came of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Median, where anything counted.
    pub median: Option<Picos>,
    /// Its interval, where there are enough repetitions for one.
    pub interval: Option<(Picos, Picos)>,
    /// Of the ranks' own times.
    pub ranks: Option<RankMeans>,
    /// Repetitions that counted.
    pub valid: u64,
    /// Started late.
    pub late: u64,
    /// Ended after their window.
    pub too_long: u64,
    /// Median and greatest skew of starts.
    pub skew: Option<(Picos, Picos)>,
    /// Median of the longest computation of a rank in between.
    pub computed: Option<Picos>,
    /// What the clocks may be off by.
    pub clock_error: Picos,
    /// What ended it.
    pub stopped: Stopped,
    /// Why most did not count.
    pub diagnosis: Option<String>,
    /// What each rank timed.
    pub samples: Vec<Sample>,
}

/// A batch that all ranks have carried out.
#[derive(Debug)]
pub(super) struct Done<'a> {
    pub(super) batch: Batch,
    /// The common start of the first repetition.
    pub(super) start: Picos,
    /// Number of the first repetition.
    pub(super) first: u64,
    /// When the leader had heard of all ranks.
    pub(super) until: Picos,
    /// Time of the series that had passed before it.
    pub(super) elapsed: Picos,
    /// Of all ranks, rank by rank.
    pub(super) records: &'a [Record],
    /// Records of a rank.
    pub(super) each: usize,
}

/// A series that goes on.
#[derive(Debug)]
pub(super) struct Course<'a> {
    plan: &'a Plan,
    scheme: Scheme,
    series: Series,
    max_time: Picos,
    /// Batches so far.
    batches: u32,
    late: u64,
    too_long: u64,
    skews: Vec<Picos>,
    computed: Vec<Picos>,
    error: Picos,
    /// Of each rank, over repetitions that count.
    sums: Vec<u128>,
    samples: Vec<Sample>,
}

impl<'a> Course<'a> {
    /// Batches that warm caches and connections up and do not count: the
    /// first, and more while there is time.
    const WARM_UP: u32 = 5;
    /// Part of the time in which they may do so.
    const WARM_UP_PART: u64 = 4;

    pub(super) fn new(plan: &'a Plan, rule: StopRule) -> Self {
        Self {
            plan,
            scheme: Scheme::new(plan.scheme, rule.max_time),
            series: Series::new(rule),
            max_time: rule.max_time,
            batches: 0,
            late: 0,
            too_long: 0,
            skews: Vec::new(),
            computed: Vec::new(),
            error: Picos::ZERO,
            sums: vec![0; plan.delays.len()],
            samples: Vec::new(),
        }
    }

    pub(super) fn verdict(&self, elapsed: Picos) -> Option<Stopped> {
        // Once at least, so that every result is verified.
        if self.batches == 0 { None } else { self.series.verdict(elapsed) }
    }

    /// What to do next, with so much time left.
    pub(super) fn next(&self, left: Picos) -> Batch {
        let batch = self.scheme.next();
        let Start::Clock { window, .. } = batch.start else { return batch };
        let fitting = left.0.checked_div(window.0).unwrap_or(u64::MAX).max(1);
        Batch { count: batch.count.min(u32::try_from(fitting).unwrap_or(u32::MAX)), ..batch }
    }

    pub(super) fn handle(&mut self, done: &Done<'_>) {
        let announced = done.announced();
        let repetitions: Vec<Repetition> =
            (0..done.each).map(|index| self.judge(done, index)).collect();
        let took = done.until.since(announced.0);
        let announced = announced.1;
        self.scheme.handle(&Outcome { announced, took, repetitions: &repetitions });
        self.batches += 1;
        let early = done.elapsed.0 < self.max_time.0 / Self::WARM_UP_PART;
        if self.batches == 1 || early && self.batches <= Self::WARM_UP {
            return;
        }
        for (index, repetition) in repetitions.iter().enumerate() {
            self.keep(done, index, repetition);
        }
    }

    fn judge(&self, done: &Done<'_>, index: usize) -> Repetition {
        let records = done.of(index);
        match done.batch.start {
            Start::Clock { window, .. } => {
                let begin =
                    |index: u64| done.start.0.saturating_add(window.0.saturating_mul(index));
                let end = (done.batch.count > 1).then(|| Picos(begin(index as u64 + 1)));
                let start = Picos(begin(index as u64));
                let planned = Planned { start, delays: &self.plan.delays, end };
                judge::judge(&records, &planned, self.plan.tolerance)
            }
            Start::Barrier | Start::Announced => judge::merge(&records),
            Start::BackToBack { .. } => {
                // The root's own time, as those who use it do.
                let root = usize::try_from(self.plan.root).unwrap_or(0);
                let own = records.get(root).copied().unwrap_or_default();
                let whole = own.ended.since(own.started);
                let time = Picos(whole.0 / u64::from(done.batch.count.max(1)));
                Repetition { time, ..judge::merge(&records) }
            }
        }
    }

    fn keep(&mut self, done: &Done<'_>, index: usize, repetition: &Repetition) {
        let valid = repetition.verdict == Verdict::Valid;
        self.series.push(valid.then_some(repetition.time));
        self.error = self.error.max(repetition.error);
        let records = done.of(index);
        let begin = Self::begin(done, index);
        match repetition.verdict {
            Verdict::Valid => {
                self.skews.push(repetition.skew);
                self.computed.extend(records.iter().map(|record| record.computed).max());
                for (sum, record) in self.sums.iter_mut().zip(&records) {
                    let from = begin.unwrap_or(record.started);
                    let share = if let Start::BackToBack { .. } = done.batch.start {
                        u64::from(done.batch.count.max(1))
                    } else {
                        1
                    };
                    *sum += u128::from(record.ended.since(from).0 / share);
                }
            }
            Verdict::Late => self.late += 1,
            Verdict::TooLong => self.too_long += 1,
        }
        if self.plan.keeps_samples {
            let first = records.iter().map(|record| record.started).min().unwrap_or_default();
            let begin = begin.unwrap_or(first);
            self.samples.push(Sample {
                repetition: done.first + index as u64,
                valid,
                starts: records.iter().map(|record| record.started.since(begin)).collect(),
                exits: records.iter().map(|record| record.ended.since(begin)).collect(),
            });
        }
    }

    /// The common start, where there is one.
    fn begin(done: &Done<'_>, index: usize) -> Option<Picos> {
        let Start::Clock { window, .. } = done.batch.start else { return None };
        Some(Picos(done.start.0.saturating_add(window.0.saturating_mul(index as u64))))
    }

    pub(super) fn finish(mut self, stopped: Stopped) -> Measured {
        let valid = self.series.times().len() as u64;
        let interval = self.series.interval();
        let most = self.late.saturating_add(self.too_long) > valid;
        let diagnosis = (most || valid == 0).then(|| self.diagnosis(valid));
        let skew = Sorted::new(&mut self.skews);
        let skew = skew.median().zip(skew.quantile(1, 1));
        Measured {
            median: interval.map(|interval| interval.median),
            interval: interval.filter(|found| found.reached).map(|found| (found.low, found.high)),
            ranks: means(&self.sums, valid),
            valid,
            late: self.late,
            too_long: self.too_long,
            skew,
            computed: Sorted::new(&mut self.computed).median(),
            clock_error: self.error,
            stopped,
            diagnosis,
            samples: self.samples,
        }
    }

    fn diagnosis(&self, valid: u64) -> String {
        let Self { late, too_long, .. } = self;
        let total = valid + late + too_long;
        if total == 0 {
            return "the time was spent before the first repetition counted: give more with \
                    --max-time"
                .to_owned();
        }
        let why = self.scheme.diagnosis();
        format!("{late} of {total} repetitions started late, {too_long} were too long: {why}")
    }
}

impl Done<'_> {
    /// Record `index` of all ranks.
    fn of(&self, index: usize) -> Vec<Record> {
        self.records.chunks(self.each.max(1)).filter_map(|own| own.get(index).copied()).collect()
    }

    /// When the batch was announced, and how long after that all ranks were
    /// ready.
    fn announced(&self) -> (Picos, Picos) {
        let lead =
            if let Start::Clock { lead, .. } = self.batch.start { lead } else { Picos::ZERO };
        let at = Picos(self.start.0.saturating_sub(lead.0));
        let ready = self.of(0).iter().map(|record| record.ready).max().unwrap_or(at);
        (at, ready.since(at))
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
mod tests {
    use super::super::judge::Tolerance;
    use super::super::scheme::SchemeName;
    use super::*;
    use crate::clocks::Domains;

    const US: u64 = 1_000_000;

    fn plan(scheme: SchemeName) -> Plan {
        Plan {
            scheme,
            root: 0,
            delays: vec![Picos(0); 2],
            tolerance: Tolerance { share_ppm: 20_000 },
            rule: StopRule { max_time: Picos(1_000_000 * US), rel_err_ppm: 1, least: 50, most: 60 },
            keeps_samples: true,
            yields: false,
            domains: Domains::Machine,
            assumptions: loggap_core::sync::Assumptions::default(),
        }
    }

    /// Two ranks that carry out whatever is asked for: `late` after the
    /// start, and 10 us long on rank 1, half of that on rank 0.
    fn simulate(plan: &Plan, late: impl Fn(u64) -> u64) -> Measured {
        let mut course = Course::new(plan, plan.rule);
        let (mut now, mut first) = (0, 0);
        loop {
            if let Some(stopped) = course.verdict(Picos(now)) {
                return course.finish(stopped);
            }
            let batch = course.next(plan.rule.max_time.since(Picos(now)));
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
                    let started = planned.max(free) + late(first + index);
                    let ended = started + 5 * US * rank * operations;
                    free = ended + US;
                    records.push(Record {
                        ready: Picos(if index == 0 { now + 3 * US } else { free }),
                        started: Picos(started),
                        ended: Picos(ended),
                        ..Record::default()
                    });
                }
            }
            now = records.iter().map(|record| record.ended.0).max().unwrap() + 5 * US;
            course.handle(&Done {
                batch,
                start: Picos(start),
                first,
                until: Picos(now),
                elapsed: Picos(now),
                records: &records,
                each: records.len() / 2,
            });
            first += u64::from(each);
        }
    }

    #[test]
    fn the_time_to_the_last_exit_is_found() {
        for scheme in [SchemeName::Roundtime, SchemeName::Barrier, SchemeName::Window] {
            let found = simulate(&plan(scheme), |_| 0);
            assert_eq!(found.median, Some(Picos(10 * US)), "{scheme:?}");
            let ranks = found.ranks.unwrap();
            assert_eq!((ranks.least, ranks.most), (Picos(5 * US), Picos(10 * US)));
            assert_eq!(ranks.average, Picos(15 * US / 2));
            assert!(found.diagnosis.is_none() && found.interval.is_some());
        }
    }

    #[test]
    fn a_loop_gives_what_the_root_sees() {
        let found = simulate(&plan(SchemeName::Loop), |_| 0);
        assert_eq!(found.median, Some(Picos(5 * US)));
    }

    #[test]
    fn late_starts_are_counted_and_do_not_count() {
        let found = simulate(&plan(SchemeName::Roundtime), |n| if n % 4 == 0 { US } else { 0 });
        assert_eq!((found.median, found.valid), (Some(Picos(10 * US)), 50));
        assert!(found.late > 10 && found.diagnosis.is_none());
        assert_eq!(found.samples.iter().filter(|sample| !sample.valid).count() as u64, found.late);
    }

    #[test]
    fn nothing_that_counts_is_no_number_and_a_diagnosis() {
        let found = simulate(&plan(SchemeName::Roundtime), |_| US);
        assert_eq!((found.median, found.interval, found.ranks), (None, None, None));
        assert!(found.skew.is_none() && found.valid == 0);
        assert!(found.diagnosis.unwrap().contains("started late"));
    }

    #[test]
    fn windows_become_long_enough() {
        let found = simulate(&plan(SchemeName::Window), |_| 0);
        assert_eq!(found.stopped, Stopped::Precision);
        assert!(found.too_long + found.late < found.valid, "{found:?}");
    }
}
