//! What a repetition took, and whether it counts.
//!
//! Whether a rank missed its planned start it knows by its own clock, exactly:
//! that needs no other clock and is judged by the share of the time that is
//! tolerated. Whether all ranks planned the same instant only clocks that were
//! put on one axis can tell, and these have a bound of error, the worst case:
//! a deviation within it proves nothing. It is judged too, in both directions,
//! but by the bound where that is more. So a rank that lost its processor is
//! found however bad the axis is, and how bad that is stands beside the result.

use loggap_core::units::{Picos, SignedPicos};

/// What one rank knows of a repetition.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// When it began to wait for the start, on the global axis: all is
    /// prepared.
    pub ready: Picos,
    /// The last reading before the operation, on the global axis.
    pub started: Picos,
    /// The first one behind it, on the global axis.
    pub ended: Picos,
    /// How long after its planned start the last reading before the operation
    /// was, by its own clock; zero where the start was not by the clock.
    pub missed: Picos,
    /// How long it computed in between.
    pub computed: Picos,
    /// Number of the first wrong element, from 1 on; 0 where all are right.
    pub wrong: u64,
    /// What times on the global axis may be off by, readings included;
    /// [`Picos::MAX`] where the clock is not on it.
    pub error: Picos,
    /// Between two readings of its clock while it waits for a start: none is
    /// nearer to its plan than that.
    pub reading: Picos,
}

/// How many numbers a record is.
pub const FIELDS: usize = 8;

impl Record {
    /// For the way to the root.
    #[must_use]
    pub const fn to_numbers(self) -> [u64; FIELDS] {
        let Self { ready, started, ended, missed, computed, wrong, error, reading } = self;
        [ready.0, started.0, ended.0, missed.0, computed.0, wrong, error.0, reading.0]
    }

    /// What [`Record::to_numbers`] gave.
    #[must_use]
    pub const fn from_numbers(
        [ready, started, ended, missed, computed, wrong, error, reading]: [u64; FIELDS],
    ) -> Self {
        Self {
            ready: Picos(ready),
            started: Picos(started),
            ended: Picos(ended),
            missed: Picos(missed),
            computed: Picos(computed),
            wrong,
            error: Picos(error),
            reading: Picos(reading),
        }
    }

    /// How much later than `planned` it started, as far as clocks tell;
    /// negative where earlier.
    #[must_use]
    pub fn deviation(&self, planned: Picos) -> SignedPicos {
        difference(self.started, planned)
    }
}

/// `later` less `earlier`, whichever is more: times are below 2⁶³ ps.
#[must_use]
pub const fn difference(later: Picos, earlier: Picos) -> SignedPicos {
    SignedPicos(later.0.wrapping_sub(earlier.0).cast_signed())
}

/// Whether a repetition counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It does.
    Valid,
    /// A rank started later than planned, or clocks say that it started
    /// earlier, by more than is tolerated.
    Late,
    /// It ended after its window.
    TooLong,
    /// A rank's clock was not on the common axis.
    NoClock,
}

/// A repetition over all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repetition {
    /// From the common start to the last exit.
    pub time: Picos,
    /// Between the rank that started earliest against its plan and the one
    /// that started latest.
    pub skew: Picos,
    /// What the clocks may be off by, on the worst rank.
    pub error: Picos,
    /// Whether it counts.
    pub verdict: Verdict,
    /// Whether a rank was not ready at its planned start: it heard of it too
    /// late, or was still busy with what came before.
    pub unready: bool,
    /// How long before its planned start the last rank was ready.
    pub spare: Picos,
    /// Share of the time by which a rank started off its plan, in percent,
    /// rounded up: what had to be tolerated.
    pub off_percent: u64,
}

/// What is tolerated: the rule by which starts off their plan are discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tolerance {
    /// Share of the time, in millionths.
    pub share_ppm: u32,
}

impl Tolerance {
    /// Discards nothing: every start that is off its plan is tolerated.
    pub const ALL: Self = Self { share_ppm: u32::MAX };

    /// The share of `time`, or what cannot be told anyway, whichever is more.
    #[must_use]
    pub fn of(self, time: Picos, unknown: Picos) -> Picos {
        let share = u128::from(time.0) * u128::from(self.share_ppm) / 1_000_000;
        Picos(u64::try_from(share).unwrap_or(u64::MAX)).max(unknown)
    }

    /// Whether `record`, of a rank that was to start at `planned`, started off
    /// its plan in a repetition of `time`.
    fn is_off(self, record: &Record, planned: Picos, time: Picos) -> bool {
        let seen = Picos(record.deviation(planned).0.unsigned_abs());
        let unknown = Picos(record.error.0.saturating_add(record.reading.0));
        record.missed > self.of(time, record.reading) || seen > self.of(time, unknown)
    }
}

/// When a repetition was to start and end.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The common start.
    pub start: Picos,
    /// Of each rank after it.
    pub delays: &'a [Picos],
    /// When it had to be over; `None` where nothing follows by the clock.
    pub end: Option<Picos>,
    /// What the operation usually takes; [`Picos::MAX`] where that is not known
    /// yet. One that took longer than usual, perhaps because a rank lost its
    /// processor, does not excuse that rank.
    pub usual: Picos,
}

/// Judges a repetition that started by the clock.
#[must_use]
pub fn judge(records: &[Record], planned: &Planned<'_>, tolerance: Tolerance) -> Repetition {
    let starts = planned.delays.iter().map(|delay| Picos(planned.start.0.saturating_add(delay.0)));
    let ranks = || records.iter().zip(starts.clone());
    let deviations = ranks().map(|(record, start)| record.deviation(start).0);
    let (least, most) = (deviations.clone().min(), deviations.max());
    let skew = Picos(least.zip(most).map_or(0, |(least, most)| most.abs_diff(least)));
    let last = records.iter().map(|record| record.ended).max().unwrap_or(planned.start);
    let time = last.since(planned.start);
    let error = worst_error(records);
    // The delays are part of the time, but not of the operation.
    let delay = planned.delays.iter().copied().max().unwrap_or(Picos::ZERO);
    let operation = time.since(delay).min(planned.usual);
    let verdict = if error == Picos::MAX {
        Verdict::NoClock
    } else if ranks().any(|(record, start)| tolerance.is_off(record, start, operation)) {
        Verdict::Late
    } else if planned.end.is_some_and(|end| last > end) {
        Verdict::TooLong
    } else {
        Verdict::Valid
    };
    let off = |(record, start): (&Record, Picos)| {
        record.missed.max(Picos(record.deviation(start).0.unsigned_abs())).0
    };
    let off_percent =
        ranks().map(off).max().unwrap_or(0).saturating_mul(100).div_ceil(operation.0.max(1));
    let unready = ranks().any(|(record, start)| record.ready > start);
    let spare = ranks().map(|(record, start)| start.since(record.ready)).min();
    let spare = spare.unwrap_or(Picos::ZERO);
    Repetition { time, skew, error, verdict, unready, spare, off_percent }
}

/// Merges what ranks timed each for itself, from its own start on: the longest
/// of them. Nothing is discarded, as nothing is known to be wrong.
#[must_use]
pub fn merge(records: &[Record]) -> Repetition {
    let times = records.iter().map(|record| record.ended.since(record.started));
    let starts = records.iter().map(|record| record.started);
    let skew = starts.clone().max().unwrap_or_default().since(starts.min().unwrap_or_default());
    Repetition {
        time: times.max().unwrap_or_default(),
        skew,
        error: worst_error(records),
        verdict: Verdict::Valid,
        unready: false,
        spare: Picos::ZERO,
        off_percent: 0,
    }
}

fn worst_error(records: &[Record]) -> Picos {
    records.iter().map(|record| record.error).max().unwrap_or(Picos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;
    const TOLERANCE: Tolerance = Tolerance { share_ppm: 20_000 };

    /// Of a rank that was to start at 1,000 us, by a clock that is right.
    fn record(started: u64, ended: u64) -> Record {
        let missed = Picos(started.saturating_sub(1_000) * US);
        let (started, ended) = (Picos(started * US), Picos(ended * US));
        let (error, reading) = (Picos(US / 4), Picos(US / 4));
        Record { started, ended, missed, error, reading, ..Record::default() }
    }

    fn planned(delays: &[Picos]) -> Planned<'_> {
        Planned { start: Picos(1_000 * US), delays, end: None, usual: Picos::MAX }
    }

    #[test]
    fn the_time_is_from_the_common_start_to_the_last_exit() {
        let records = [record(1_000, 1_040), record(1_001, 1_100)];
        let judged = judge(&records, &planned(&[Picos(0); 2]), TOLERANCE);
        assert_eq!(judged.time, Picos(100 * US));
        assert_eq!(judged.skew, Picos(US));
        assert_eq!(judged.verdict, Verdict::Valid);
    }

    #[test]
    fn a_start_that_is_late_by_more_than_is_tolerated_does_not_count() {
        let of = |started, ended| {
            let records = [record(1_000, 1_010), record(started, ended)];
            judge(&records, &planned(&[Picos(0); 2]), TOLERANCE).verdict
        };
        assert_eq!(of(1_003, 1_100), Verdict::Late);
        // 2% of a longer time are more.
        assert_eq!(of(1_003, 1_200), Verdict::Valid);
        // Both late by the same is late as well: the time would be too long.
        let records = [record(1_050, 1_060); 2];
        assert_eq!(judge(&records, &planned(&[Picos(0); 2]), TOLERANCE).verdict, Verdict::Late);
    }

    #[test]
    fn a_rank_that_lost_its_processor_was_ready_and_one_that_was_told_too_late_was_not() {
        let lost = record(1_050, 1_060);
        let told_late = Record { ready: Picos(1_050 * US), ..lost };
        let unready = |record| judge(&[record], &planned(&[Picos(0)]), TOLERANCE).unready;
        assert!(!unready(lost) && unready(told_late));
        let early = Record { ready: Picos(990 * US), ..lost };
        assert_eq!(judge(&[early], &planned(&[Picos(0)]), TOLERANCE).spare, Picos(10 * US));
    }

    fn verdict(records: &[Record]) -> Verdict {
        let delays = vec![Picos(0); records.len()];
        judge(records, &planned(&delays), TOLERANCE).verdict
    }

    #[test]
    fn what_clocks_cannot_tell_is_tolerated_in_both_directions() {
        // Started as planned by its own clock.
        let seen = |at| Record { missed: Picos(0), error: Picos(2 * US), ..record(at, at + 1) };
        assert_eq!(verdict(&[seen(1_000), seen(1_002)]), Verdict::Valid);
        assert_eq!(verdict(&[seen(1_000), seen(1_003)]), Verdict::Late);
        assert_eq!(verdict(&[seen(1_000), seen(998)]), Verdict::Valid);
        assert_eq!(verdict(&[seen(1_000), seen(997)]), Verdict::Late);
    }

    #[test]
    fn a_rank_that_started_early_is_no_less_off_its_plan_than_a_late_one() {
        let early =
            judge(&[record(950, 1_010), record(1_000, 1_010)], &planned(&[Picos(0); 2]), TOLERANCE);
        assert_eq!((early.verdict, early.skew), (Verdict::Late, Picos(50 * US)));
    }

    #[test]
    fn a_rank_that_missed_its_start_is_late_however_bad_the_axis_is() {
        let error = Picos(100 * US);
        let late = Record { error, ..record(1_020, 1_030) };
        assert_eq!(verdict(&[record(1_000, 1_030), late]), Verdict::Late);
        let in_time = Record { missed: Picos(0), ..late };
        assert_eq!(verdict(&[record(1_000, 1_030), in_time]), Verdict::Valid);
    }

    #[test]
    fn a_pause_does_not_excuse_the_rank_that_made_it() {
        let records = [record(1_000, 501_000), record(1_000 + 5_000, 501_000)];
        let delays = [Picos(0); 2];
        let of = |usual| judge(&records, &Planned { usual, ..planned(&delays) }, TOLERANCE).verdict;
        assert_eq!(of(Picos::MAX), Verdict::Valid);
        assert_eq!(of(Picos(3 * US)), Verdict::Late);
    }

    #[test]
    fn nobody_starts_nearer_to_the_plan_than_from_reading_to_reading() {
        let missed = |missed| Record { missed: Picos(missed), ..record(1_000, 1_001) };
        assert_eq!(verdict(&[missed(US / 4)]), Verdict::Valid);
        assert_eq!(verdict(&[missed(US / 4 + 1)]), Verdict::Late);
    }

    #[test]
    fn clocks_of_which_nothing_is_known_tell_nothing() {
        let lost = Record { error: Picos::MAX, ..record(1_000, 1_001) };
        assert_eq!(verdict(&[lost, record(1_000, 1_001)]), Verdict::NoClock);
    }

    #[test]
    fn a_rank_that_is_to_come_later_is_not_late() {
        let delays = [Picos(0), Picos(500 * US)];
        let of = |missed| {
            let last = Record { missed: Picos(missed), ..record(1_500, 1_511) };
            judge(&[record(1_000, 1_510), last], &planned(&delays), TOLERANCE)
        };
        let judged = of(0);
        assert_eq!(judged.verdict, Verdict::Valid);
        assert_eq!((judged.time, judged.skew), (Picos(511 * US), Picos(0)));
        // What is tolerated is a share of the 11 us behind its arrival.
        assert_eq!(of(US).verdict, Verdict::Late);
    }

    #[test]
    fn what_ends_after_its_window_is_too_long() {
        let records = [record(1_000, 1_040)];
        let of = |end| {
            let planned = Planned { end: Some(Picos(end * US)), ..planned(&[Picos(0)]) };
            judge(&records, &planned, TOLERANCE).verdict
        };
        assert_eq!(of(1_040), Verdict::Valid);
        assert_eq!(of(1_039), Verdict::TooLong);
    }

    #[test]
    fn what_ranks_timed_for_themselves_does_not_see_the_skew() {
        let merged = merge(&[record(1_000, 1_010), record(1_020, 1_025)]);
        assert_eq!((merged.time, merged.skew), (Picos(10 * US), Picos(20 * US)));
    }

    #[test]
    fn records_travel_as_numbers() {
        let record = Record { ready: Picos(3), computed: Picos(4), wrong: 9, ..record(1_005, 2) };
        assert_eq!(Record::from_numbers(record.to_numbers()), record);
    }
}
