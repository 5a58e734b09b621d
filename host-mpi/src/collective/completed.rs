//! A completed batch, and the times that ranks measured in it.

use loggap_core::units::Picos;

use super::judge::Record;
use super::scheme::{Batch, Start};

/// A batch that all ranks have completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedBatch {
    pub(super) batch: Batch,
    /// Common start of the first repetition, or else the time of the announcement.
    pub(super) start: Picos,
    /// Number of the first repetition.
    pub(super) first: u64,
    /// Time at which the leader had received the records of all ranks.
    pub(super) until: Picos,
    /// Time of the series that had elapsed before the batch.
    pub(super) elapsed: Picos,
}

impl CompletedBatch {
    /// Time at which the batch was announced.
    pub(super) fn announced(&self) -> Picos {
        let lead =
            if let Start::Clock { lead, .. } = self.batch.start { lead } else { Picos::ZERO };
        Picos(self.start.0.saturating_sub(lead.0))
    }

    /// Common start of repetition `index`; `None` if it has none.
    pub(super) fn begin(&self, index: usize) -> Option<Picos> {
        let Start::Clock { .. } = self.batch.start else { return None };
        Some(self.batch.start.of(index as u64, self.start))
    }
}

/// Records of all ranks in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'a> {
    /// Records, rank by rank.
    pub(super) all: &'a [Record],
    /// Number of records per rank.
    pub(super) each: usize,
}

impl Records<'_> {
    /// Record `index` of all ranks.
    pub(super) fn of(&self, index: usize) -> Vec<Record> {
        self.all.chunks(self.each.max(1)).filter_map(|own| own.get(index).copied()).collect()
    }

    /// Time at which the last rank was ready for the first repetition.
    pub(super) fn ready(&self) -> Option<Picos> {
        self.of(0).iter().map(|record| record.ready).max()
    }
}
