//! Rounds of the PRTT method over several launches: one planner serves all launches and makes one
//! pass over all sizes in each.

use loggap_core::measure::{PlanError, PlanOptions, Planner};
use loggap_core::units::Picos;

use super::Memory;

/// Passes over all sizes that the first launch makes until its assessment; further launches make
/// one.
const SWEEPS: u64 = 8;
/// Share of the time budget over which samples are to be spread, percent.
const SAMPLED_PERCENT: u64 = 95;

/// A PRTT plan for several launches.
#[derive(Debug)]
pub(super) struct Rounds<'m> {
    pub(super) planner: Planner<'m>,
    max_messages: u64,
}

impl<'m> Rounds<'m> {
    /// Creates a plan for `sizes` whose samples cover the time budget.
    pub(super) fn new(
        options: PlanOptions,
        sizes: &[u32],
        memory: &'m mut Memory,
    ) -> Result<Self, PlanError> {
        let least_time = Picos(options.max_time.0 / 100 * SAMPLED_PERCENT);
        let planned = PlanOptions { least_time, ..options };
        let planner = Planner::new(planned, sizes, memory.lend())?;
        Ok(Self { planner, max_messages: options.max_messages })
    }

    /// Number of launches after the first, at most `wanted`, that fit into the time `left` and the
    /// message budget. A launch takes `opening` to connect, then a share of the time `taken` by the
    /// first launch until its assessment; on a busy machine all of `taken`, so that it yields as
    /// many samples as the first.
    pub(super) fn launches(&self, wanted: u32, opening: Picos, taken: Picos, left: Picos) -> u32 {
        let sweeps = if self.planner.is_busy() { taken.0 } else { 2 * taken.0 / SWEEPS };
        let each = opening.0.saturating_add(sweeps).max(1);
        let messages = self.planner.progress(Picos::ZERO).messages;
        let messages_left = self.max_messages.saturating_sub(messages);
        let by_messages = messages_left / (2 * messages / SWEEPS).max(1);
        u32::try_from((left.0 / each).min(by_messages)).unwrap_or(u32::MAX).min(wanted)
    }

    /// Messages that a launch may spread over its time if this many `further` ones share what is
    /// left; `None` if unlimited.
    pub(super) fn messages_of_launch(&self, further: u32) -> Option<u64> {
        let spent = self.planner.progress(Picos::ZERO).messages;
        let left = self.max_messages.saturating_sub(spent);
        (self.max_messages < u64::MAX).then(|| left / u64::from(further.max(1)))
    }
}
