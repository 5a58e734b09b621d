//! Segment of a series between two synchronisations, whose times are corrected
//! after the second one.

use loggap_core::sync::{ClockModel, RankClock};
use loggap_core::units::Picos;

use super::completed::{CompletedBatch, Records};
use super::judge::Record;
use super::series::SeriesState;

/// Records that one rank keeps from one synchronisation to the next.
#[derive(Debug)]
pub(super) struct Segment {
    /// State of the clock's synchronisation at the start.
    pub(super) before: RankClock,
    provisional: ClockModel,
    /// The rank's records of every batch.
    batches: Vec<Vec<Record>>,
    /// The batches themselves, at the leader only.
    completed: Vec<CompletedBatch>,
}

impl Segment {
    pub(super) const fn new(before: RankClock, provisional: ClockModel) -> Self {
        Self { before, provisional, batches: Vec::new(), completed: Vec::new() }
    }

    pub(super) fn push(&mut self, records: &[Record], completed: Option<CompletedBatch>) {
        self.batches.push(records.to_vec());
        self.completed.extend(completed);
    }

    /// Corrects every batch by `model`: passes the rank's records to `gather`,
    /// which returns those of all ranks at the leader, and passes these to
    /// `state`. Without a model the provisional times are invalid, and do not
    /// count.
    pub(super) fn correct(
        self,
        model: Option<&ClockModel>,
        mut gather: impl FnMut(&[Record]) -> Vec<Record>,
        mut state: Option<&mut SeriesState<'_>>,
    ) {
        let (mut completed, mut is_lost) = (self.completed.iter(), false);
        for batch in &self.batches {
            let right = |record: &Record| match model {
                Some(model) => corrected(record, &self.provisional, model),
                None => Record { error: Picos::MAX, ..*record },
            };
            let own: Vec<Record> = batch.iter().map(right).collect();
            let all = gather(&own);
            is_lost |= all.iter().any(|record| record.error == Picos::MAX);
            if let (Some(state), Some(completed)) = (state.as_deref_mut(), completed.next()) {
                state.handle(completed, Records { all: &all, each: own.len() });
            }
        }
        if let Some(state) = state {
            state.synchronised();
            if is_lost {
                state.lose_segment();
            }
        }
    }
}

/// Converts a record from the provisional model to `model`.
fn corrected(record: &Record, provisional: &ClockModel, model: &ClockModel) -> Record {
    let local = |global: Picos| provisional.local_at(global);
    let global = |time: Picos| model.reference_at(local(time));
    // The uncertainty of the reading itself stays.
    let reading = record.error.since(provisional.error_at(local(record.ended)));
    Record {
        ready: global(record.ready),
        started: global(record.started),
        ended: global(record.ended),
        error: Picos(model.error_at(local(record.ended)).0.saturating_add(reading.0)),
        ..*record
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheme::{Batch, SchemeName, Start};
    use super::super::series::tests::plan;
    use super::super::stop::Stopped;
    use super::*;
    use loggap_core::units::SignedPicos;

    const US: u64 = 1_000_000;

    #[test]
    fn what_was_timed_by_a_wrong_model_is_put_right() {
        let right = ClockModel {
            offset: SignedPicos(-7_000_000),
            drift: 20_000_000,
            ..ClockModel::reference()
        };
        let provisional = ClockModel { drift: 0, error: Picos(9), ..right };
        let truth = [5_000 * US, 5_010 * US].map(Picos);
        let by = |model: &ClockModel| truth.map(|time| model.reference_at(right.local_at(time)));
        let [started, ended] = by(&provisional);
        assert_ne!([started, ended], truth);
        let record = Record { ready: started, started, ended, ..Record::default() };
        let found = corrected(&record, &provisional, &right);
        for (found, truth) in [found.started, found.ended].into_iter().zip(truth) {
            assert!(found.0.abs_diff(truth.0) <= 2, "{found} {truth}");
        }
        assert!(found.error < Picos(100), "{found:?}");
    }

    /// Corrects a segment of a few repetitions of 10 us on one rank.
    fn count(model: Option<&ClockModel>) -> super::super::series::Measured {
        let plan = plan(SchemeName::Roundtime, 1);
        let mut state = SeriesState::new(&plan, plan.rule);
        let mut segment = Segment::new(RankClock::root(), ClockModel::reference());
        for first in 0..8 {
            let start = Picos(first * 100 * US);
            let (started, ended) = (start, Picos(start.0 + 10 * US));
            let record = Record { ready: start, started, ended, ..Record::default() };
            let start_by = Start::Clock { lead: Picos(0), window: Picos(0) };
            let batch = Batch { start: start_by, count: 1 };
            let completed =
                CompletedBatch { batch, start, first, until: ended, elapsed: plan.rule.max_time };
            segment.push(&[record], Some(completed));
        }
        segment.correct(model, |own| own.to_vec(), Some(&mut state));
        state.finish(Stopped::Time)
    }

    #[test]
    fn provisional_times_never_count() {
        let found = count(Some(&ClockModel::reference()));
        assert_eq!((found.median, found.valid), (Some(Picos(10 * US)), 7));
        assert_eq!((found.counts.no_clock, found.counts.lost_segments), (0, 0));
        let found = count(None);
        assert_eq!((found.median, found.valid), (None, 0));
        assert_eq!((found.counts.no_clock, found.counts.lost_segments), (7, 1));
        assert!(found.diagnosis.unwrap().contains("7 were timed by a clock that was lost"));
    }
}
