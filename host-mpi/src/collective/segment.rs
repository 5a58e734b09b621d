//! The part of a series between two synchronisations, whose times are
//! corrected when the second one is there.

use loggap_core::sync::{ClockModel, RankClock};
use loggap_core::units::Picos;

use super::course::{Carried, Course, Records};
use super::judge::Record;

/// What one rank keeps from one synchronisation to the next.
#[derive(Debug)]
pub(super) struct Segment {
    /// What was known at its begin.
    pub(super) before: RankClock,
    provisional: ClockModel,
    /// The rank's records of every batch.
    batches: Vec<Vec<Record>>,
    /// At the leader, the batches themselves.
    carried: Vec<Carried>,
}

impl Segment {
    pub(super) const fn new(before: RankClock, provisional: ClockModel) -> Self {
        Self { before, provisional, batches: Vec::new(), carried: Vec::new() }
    }

    pub(super) fn push(&mut self, records: &[Record], carried: Option<Carried>) {
        self.batches.push(records.to_vec());
        self.carried.extend(carried);
    }

    /// Every batch as it looks by `model`: hands the rank's records to `gather`,
    /// which gives those of all ranks at the leader, and those to `course`.
    pub(super) fn correct(
        self,
        model: Option<&ClockModel>,
        mut gather: impl FnMut(&[Record]) -> Vec<Record>,
        mut course: Option<&mut Course<'_>>,
    ) {
        let mut carried = self.carried.iter();
        for batch in &self.batches {
            let own: Vec<Record> = match model {
                Some(model) => {
                    batch.iter().map(|one| corrected(one, (&self.provisional, model))).collect()
                }
                None => batch.clone(),
            };
            let all = gather(&own);
            if let (Some(course), Some(carried)) = (course.as_deref_mut(), carried.next()) {
                course.handle(carried, Records { all: &all, each: own.len() });
            }
        }
    }
}

/// A record by another model than the one it was taken by.
fn corrected(record: &Record, (provisional, model): (&ClockModel, &ClockModel)) -> Record {
    let local = |global: Picos| provisional.local_at(global);
    let global = |time: Picos| model.reference_at(local(time));
    // What the reading itself is uncertain by stays.
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
        let found = corrected(&record, (&provisional, &right));
        for (found, truth) in [found.started, found.ended].into_iter().zip(truth) {
            assert!(found.0.abs_diff(truth.0) <= 2, "{found} {truth}");
        }
        assert!(found.error < Picos(100), "{found:?}");
    }
}
