//! Duration of a repetition, and whether it counts.
//!
//! A rank knows exactly whether it missed its planned start, by its own clock
//! alone. That is judged by the tolerated share of the duration. Whether all
//! ranks planned the same instant depends on the synchronised clocks, whose
//! error has a worst-case bound: a deviation within the bound proves nothing.
//! It is judged as well, in both directions, but with the bound as tolerance if
//! that is larger. So a rank that lost its processor is found however bad the
//! synchronisation is, and the bound is reported beside the result.

use loggap_core::units::{Picos, SignedPicos};

/// Times of one rank in a repetition.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// Global time at which everything was prepared and the rank began to wait
    /// for the start.
    pub ready: Picos,
    /// Global time of the last reading before the operation.
    pub started: Picos,
    /// Global time of the first reading after the operation.
    pub ended: Picos,
    /// Delay of the last reading before the operation after the planned start,
    /// by the rank's own clock; zero if the start is not by the clock.
    pub missed: Picos,
    /// Time that it computed between start and wait.
    pub computed: Picos,
    /// Position of the first wrong element, from 1; 0 if all are right.
    pub wrong: u64,
    /// Bound of the error of global times, readings included; [`Picos::MAX`] if
    /// the clock is not synchronised.
    pub error: Picos,
    /// Time between two readings of its clock while it waits for a start, which
    /// limits how exactly it can start.
    pub reading: Picos,
}

/// Length of an encoded record in words.
pub const FIELDS: usize = 8;

impl Record {
    /// Encodes the record for the message to the root.
    #[must_use]
    pub const fn to_numbers(self) -> [u64; FIELDS] {
        let Self { ready, started, ended, missed, computed, wrong, error, reading } = self;
        [ready.0, started.0, ended.0, missed.0, computed.0, wrong, error.0, reading.0]
    }

    /// Decodes the result of [`Record::to_numbers`].
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

    /// Start of the rank after `planned`, as far as clocks tell; negative if it
    /// was before.
    #[must_use]
    pub fn deviation(&self, planned: Picos) -> SignedPicos {
        difference(self.started, planned)
    }
}

/// Signed difference of two times below 2⁶³ ps.
#[must_use]
pub const fn difference(later: Picos, earlier: Picos) -> SignedPicos {
    SignedPicos(later.0.wrapping_sub(earlier.0).cast_signed())
}

/// Verdict on a repetition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It counts.
    Valid,
    /// A rank started later than planned, or earlier according to the clocks,
    /// by more than is tolerated.
    Late,
    /// It ended after its window.
    TooLong,
    /// A rank's clock was not synchronised.
    NoClock,
}

/// Result of a repetition over all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repetition {
    /// Time from the common start to the last exit.
    pub time: Picos,
    /// Range of the ranks' deviations from their planned starts.
    pub skew: Picos,
    /// Bound of the clock error of the worst rank.
    pub error: Picos,
    /// Verdict.
    pub verdict: Verdict,
    /// True if a rank was not ready at its planned start: the announcement came
    /// too late, or it was still busy.
    pub unready: bool,
    /// Least time by which a rank was ready before its planned start.
    pub spare: Picos,
    /// Largest deviation of a rank from its planned start in percent of the
    /// time, rounded up: the tolerance that was needed.
    pub off_percent: u64,
}

/// Tolerance of starts that deviate from their plan; others are discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tolerance {
    /// Share of the time, in millionths.
    pub share_ppm: u32,
}

impl Tolerance {
    /// Tolerates every start.
    pub const ALL: Self = Self { share_ppm: u32::MAX };

    /// Tolerance for `time`: the share of it, or the uncertainty `unknown` if
    /// that is larger.
    #[must_use]
    pub fn of(self, time: Picos, unknown: Picos) -> Picos {
        let share = u128::from(time.0) * u128::from(self.share_ppm) / 1_000_000;
        Picos(u64::try_from(share).unwrap_or(u64::MAX)).max(unknown)
    }

    /// True if `record` deviates from the start `planned` by more than a
    /// repetition of `time` tolerates.
    fn is_off(self, record: &Record, planned: Picos, time: Picos) -> bool {
        let seen = Picos(record.deviation(planned).0.unsigned_abs());
        let unknown = Picos(record.error.0.saturating_add(record.reading.0));
        record.missed > self.of(time, record.reading) || seen > self.of(time, unknown)
    }
}

/// Planned start and end of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// Common start.
    pub start: Picos,
    /// Planned delay of each rank after the common start.
    pub delays: &'a [Picos],
    /// Time by which it has to be over; `None` if nothing follows by the clock.
    pub end: Option<Picos>,
    /// Usual duration of the operation; [`Picos::MAX`] if it is not known yet.
    /// It limits the tolerance, so that a rank that lost its processor is not
    /// excused by the longer time that it caused.
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

/// Merges the times that ranks measured from their own starts: the longest
/// counts. Nothing is discarded, as no error is known.
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

    /// Record of a rank that was to start at 1,000 us, with a correct clock.
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
        // 2% of a longer time is more.
        assert_eq!(of(1_003, 1_200), Verdict::Valid);
        // A common delay of both is late as well: the time would be too long.
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
        // The tolerance is a share of the 11 us after its arrival.
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
