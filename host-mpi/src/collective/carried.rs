//! A batch that was carried out, and what ranks timed in it.

use loggap_core::units::Picos;

use super::judge::Record;
use super::scheme::{Batch, Start};

/// A batch that all ranks have carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) batch: Batch,
    /// The common start of the first repetition; where there is none, when the
    /// batch was announced.
    pub(super) start: Picos,
    /// Number of the first repetition.
    pub(super) first: u64,
    /// When the leader had heard of all ranks.
    pub(super) until: Picos,
    /// Time of the series that had passed before it.
    pub(super) elapsed: Picos,
}

impl Carried {
    /// When it was announced.
    pub(super) fn announced(&self) -> Picos {
        let lead =
            if let Start::Clock { lead, .. } = self.batch.start { lead } else { Picos::ZERO };
        Picos(self.start.0.saturating_sub(lead.0))
    }

    /// The common start of repetition `index`, where there is one.
    pub(super) fn begin(&self, index: usize) -> Option<Picos> {
        let Start::Clock { .. } = self.batch.start else { return None };
        Some(self.batch.start.of(index as u64, self.start))
    }
}

/// What all ranks timed in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'a> {
    /// Rank by rank.
    pub(super) all: &'a [Record],
    /// Of one rank.
    pub(super) each: usize,
}

impl Records<'_> {
    /// Record `index` of all ranks.
    pub(super) fn of(&self, index: usize) -> Vec<Record> {
        self.all.chunks(self.each.max(1)).filter_map(|own| own.get(index).copied()).collect()
    }

    /// When the last rank was ready for the first repetition.
    pub(super) fn ready(&self) -> Option<Picos> {
        self.of(0).iter().map(|record| record.ready).max()
    }
}
