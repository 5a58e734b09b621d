//! Trial of published schemes on virtual clocks with known truth.

use super::published::{Scheme, stop_after};
use super::simulated::{NoClock, VirtualClock, VirtualPinger};
use super::{Residual, ResidualSummary, Residuals, Scenario, SeriesError};
use crate::random::Random;
use crate::units::{Picos, SignedPicos};

/// Most pings of a series.
const MOST_PINGS: u32 = 100_000;

/// Memory of a trial, an element per rank; the shortest slice limits the number of ranks.
#[derive(Debug)]
pub struct SchemeMemory<'m> {
    /// Clock of each rank.
    pub clocks: &'m mut [VirtualClock],
    /// Correction to add to each rank's clock.
    pub offsets: &'m mut [SignedPicos],
    /// True time at which each rank is free.
    pub free: &'m mut [Picos],
    /// Working memory for quantiles.
    pub residuals: &'m mut [Picos],
}

/// Result of a scheme.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SchemeReport {
    /// True time until all ranks were synchronised.
    pub took: Picos,
    /// Total number of pings.
    pub pings: u64,
    /// Corrected clock minus root's clock at the end, of all ranks but the root. The claims are
    /// empty.
    pub residuals: ResidualSummary,
    /// Mean magnitude of the residuals.
    pub mean: Picos,
}

/// Synchronises `ranks` virtual clocks, one per rank, over the network of `scenario` with a
/// published scheme, and compares them with the truth at the end.
///
/// # Errors
///
/// [`SeriesError::Exchange`] if there is too little memory.
pub fn scheme_trial(
    scheme: Scheme,
    ranks: u32,
    patience: u32,
    scenario: &Scenario,
    memory: SchemeMemory<'_>,
) -> Result<SchemeReport, SeriesError<NoClock>> {
    let SchemeMemory { clocks, offsets, free, residuals } = memory;
    for (clock, stream) in clocks.iter_mut().zip(0..) {
        *clock = VirtualClock::new(scenario.clocks, scenario.seed, stream);
    }
    offsets.fill(SignedPicos(0));
    free.fill(Picos::ZERO);
    let mut report = SchemeReport::default();
    for step in scheme.steps(ranks) {
        let (client, server) = (index(step.client), index(step.server));
        let free_at = |rank: usize| free.get(rank).copied().ok_or(NoClock(rank));
        let now = free_at(client).and_then(|client| Ok(client.max(free_at(server)?)));
        let path = scenario.network.turned(&mut Random::stream(!scenario.seed, server as u64));
        let random = Random::stream(scenario.seed, server as u64 + (1 << 32));
        let now = now.map_err(SeriesError::Exchange)?;
        let mut pinger = VirtualPinger::new(clocks, (client, server), path, now, random);
        let offset = stop_after(&mut pinger, patience, MOST_PINGS)?;
        Scheme::merge(&step, offset.value, offsets);
        for rank in [client, server] {
            if let Some(free) = free.get_mut(rank) {
                *free = pinger.true_now();
            }
        }
        report.took = report.took.max(pinger.true_now());
        report.pings = report.pings.saturating_add(pinger.pings());
    }
    let truth = clocks.first_mut().map(|root| root.exact_at(report.took)).unwrap_or_default();
    let mut kept = Residuals::new(residuals);
    let mut sum = 0_u64;
    for (clock, offset) in clocks.iter_mut().zip(&*offsets).take(index(ranks)).skip(1) {
        let corrected = Picos(clock.exact_at(report.took).0.saturating_add_signed(offset.0));
        let value = SignedPicos(corrected.signed_difference(truth));
        sum = sum.saturating_add(value.0.unsigned_abs());
        let pushed = kept.push(Residual { at: truth, value, ..Residual::default() });
        pushed.map_err(|_| SeriesError::Exchange(NoClock(index(ranks))))?;
    }
    report.residuals = kept.summary();
    report.mean = Picos(sum.checked_div(report.residuals.count.into()).unwrap_or(0));
    Ok(report)
}

/// Index of a rank; past the end of any slice if it does not fit into `usize`.
fn index(rank: u32) -> usize {
    usize::try_from(rank).unwrap_or(usize::MAX)
}
