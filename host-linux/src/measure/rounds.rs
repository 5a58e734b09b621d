//! The rounds of the PRTT method over several launches: one planner goes on
//! over all of them, and goes once through all sizes in each.

use loggap_core::measure::{PlanError, PlanOptions, Planner};
use loggap_core::units::Picos;

use super::Memory;

/// A launch goes once through what the first one went through this many times
/// before it was assessed.
const SWEEPS: u64 = 8;
/// Share of the time allowed over which samples are to be spread, in percent.
const SPREAD: u64 = 95;

/// A plan and what its launches take.
#[derive(Debug)]
pub(super) struct Rounds<'m> {
    pub(super) planner: Planner<'m>,
    pub(super) options: PlanOptions,
}

impl<'m> Rounds<'m> {
    /// A plan for `sizes`, whose samples cover the time allowed.
    pub(super) fn new(
        options: PlanOptions,
        sizes: &[u32],
        memory: &'m mut Memory,
    ) -> Result<Self, PlanError> {
        let least_time = Picos(options.max_time.0 / 100 * SPREAD);
        let planned = PlanOptions { least_time, ..options };
        Ok(Self { planner: Planner::new(planned, sizes, memory.lend())?, options })
    }

    /// Launches beyond the first that there is room for, of up to `wanted`:
    /// each takes `opening` to connect and a sweep like those of the first
    /// one, which took `taken` until it could be assessed, of what is `left`. On
    /// a busy machine samples come first: a launch is to bring as many as the
    /// first one.
    pub(super) fn launches(&self, wanted: u32, opening: Picos, taken: Picos, left: Picos) -> u32 {
        let sweeps = if self.planner.is_busy() { taken.0 } else { 2 * taken.0 / SWEEPS };
        let each = opening.0.saturating_add(sweeps).max(1);
        let messages = self.planner.progress(Picos::ZERO).messages;
        let messages_left = self.options.max_messages.saturating_sub(messages);
        let by_messages = messages_left / (2 * messages / SWEEPS).max(1);
        u32::try_from((left.0 / each).min(by_messages)).unwrap_or(u32::MAX).min(wanted)
    }

    /// Messages that the plan may still send; `None` where nothing bounds
    /// them.
    pub(super) fn messages_left(&self) -> Option<u64> {
        let spent = self.planner.progress(Picos::ZERO).messages;
        let bounded = self.options.max_messages < u64::MAX;
        bounded.then(|| self.options.max_messages.saturating_sub(spent))
    }
}
