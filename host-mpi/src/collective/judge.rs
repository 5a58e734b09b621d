//! What a repetition took, and whether it counts.

use loggap_core::units::Picos;

/// What one rank knows of a repetition, on the global axis.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// When it began to wait for the start: all is prepared.
    pub ready: Picos,
    /// The last reading before the operation.
    pub started: Picos,
    /// The first one behind it.
    pub ended: Picos,
    /// How long it computed in between.
    pub computed: Picos,
    /// Number of the first wrong element, from 1 on; 0 where all are right.
    pub wrong: u64,
    /// What these times may be off by.
    pub error: Picos,
}

/// How many numbers a record is.
pub const FIELDS: usize = 6;

impl Record {
    /// For the way to the root.
    #[must_use]
    pub const fn to_numbers(self) -> [u64; FIELDS] {
        let Self { ready, started, ended, computed, wrong, error } = self;
        [ready.0, started.0, ended.0, computed.0, wrong, error.0]
    }

    /// What [`Record::to_numbers`] gave.
    #[must_use]
    pub const fn from_numbers(
        [ready, started, ended, computed, wrong, error]: [u64; FIELDS],
    ) -> Self {
        Self {
            ready: Picos(ready),
            started: Picos(started),
            ended: Picos(ended),
            computed: Picos(computed),
            wrong,
            error: Picos(error),
        }
    }
}

/// Whether a repetition counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It does.
    Valid,
    /// A rank started later than planned, by more than is tolerated.
    Late,
    /// It ended after its window.
    TooLong,
}

/// A repetition over all ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repetition {
    /// From the common start to the last exit.
    pub time: Picos,
    /// Between the rank that deviated least from its planned start and the
    /// one that did most.
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
}

/// What is tolerated: the rule by which late starts are discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tolerance {
    /// Share of the time, in millionths.
    pub share_ppm: u32,
}

impl Tolerance {
    /// Twice the clocks' error or the share of `time`, whichever is more.
    #[must_use]
    pub fn of(self, time: Picos, error: Picos) -> Picos {
        let share = u128::from(time.0) * u128::from(self.share_ppm) / 1_000_000;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        Picos(share.max(error.0.saturating_mul(2)))
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
}

/// Judges a repetition that started by the clock.
#[must_use]
pub fn judge(records: &[Record], planned: &Planned<'_>, tolerance: Tolerance) -> Repetition {
    let deviations = records.iter().zip(planned.delays).map(|(record, delay)| {
        Picos(record.started.since(planned.start).0.saturating_sub(delay.0))
    });
    let latest = deviations.clone().max().unwrap_or(Picos::ZERO);
    let skew = latest.since(deviations.min().unwrap_or(Picos::ZERO));
    let last = records.iter().map(|record| record.ended).max().unwrap_or(planned.start);
    let time = last.since(planned.start);
    let error = worst_error(records);
    // The delays are part of the time, but not of the operation.
    let delay = planned.delays.iter().copied().max().unwrap_or(Picos::ZERO);
    let verdict = if error == Picos::MAX || latest > tolerance.of(time.since(delay), error) {
        Verdict::Late
    } else if planned.end.is_some_and(|end| last > end) {
        Verdict::TooLong
    } else {
        Verdict::Valid
    };
    let ready = records.iter().zip(planned.delays).map(|(record, delay)| {
        let start = planned.start.0.saturating_add(delay.0);
        (record.ready.0 > start, Picos(start.saturating_sub(record.ready.0)))
    });
    let unready = ready.clone().any(|(unready, _)| unready);
    let spare = ready.map(|(_, spare)| spare).min().unwrap_or(Picos::ZERO);
    Repetition { time, skew, error, verdict, unready, spare }
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

    fn record(started: u64, ended: u64) -> Record {
        let (started, ended) = (Picos(started * US), Picos(ended * US));
        Record { started, ended, error: Picos(US / 4), ..Record::default() }
    }

    fn planned(delays: &[Picos]) -> Planned<'_> {
        Planned { start: Picos(1_000 * US), delays, end: None }
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

    #[test]
    fn what_the_clocks_cannot_tell_is_tolerated() {
        let worse = |started| Record { error: Picos(2 * US), ..record(started, started + 1) };
        let judged = judge(&[worse(1_000), worse(1_004)], &planned(&[Picos(0); 2]), TOLERANCE);
        assert_eq!(judged.verdict, Verdict::Valid);
        let judged = judge(&[worse(1_000), worse(1_005)], &planned(&[Picos(0); 2]), TOLERANCE);
        assert_eq!(judged.verdict, Verdict::Late);
    }

    #[test]
    fn clocks_of_which_nothing_is_known_tell_nothing() {
        let lost = Record { error: Picos::MAX, ..record(1_000, 1_001) };
        assert_eq!(judge(&[lost], &planned(&[Picos(0)]), TOLERANCE).verdict, Verdict::Late);
    }

    #[test]
    fn a_rank_that_is_to_come_later_is_not_late() {
        let delays = [Picos(0), Picos(500 * US)];
        let judged =
            judge(&[record(1_000, 1_510), record(1_500, 1_511)], &planned(&delays), TOLERANCE);
        assert_eq!(judged.verdict, Verdict::Valid);
        assert_eq!((judged.time, judged.skew), (Picos(511 * US), Picos(0)));
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
        let record = Record { ready: Picos(3), computed: Picos(4), wrong: 9, ..record(1, 2) };
        assert_eq!(Record::from_numbers(record.to_numbers()), record);
    }
}
