//! What an event charges to a processor and an interface, with noise, and what
//! observers are told of it: the same in global order and in windows.

use super::hooks::{Calculated, Handled, Noise, Observer, Sent};
use super::price::{Handling, Leaving, Price, sum};
use crate::units::{Overflow, Picos};

/// A calculation: `told`, but for its noise. Returns its end.
#[inline]
pub(super) fn calculate(
    noise: &impl Noise,
    observer: &mut impl Observer,
    told: Calculated,
) -> Result<u64, Overflow> {
    let Calculated { rank, start, work, .. } = told;
    let noise = noise.lost(rank, start, work);
    let end = sum(sum(start.0, work.0)?, noise.0)?;
    observer.calculated(&Calculated { noise, ..told });
    Ok(end)
}

/// A message of this price leaves: `told`, but for its costs.
#[inline]
pub(super) fn send(
    price: &Price,
    noise: &impl Noise,
    observer: &mut impl Observer,
    told: Sent,
) -> Result<Leaving, Overflow> {
    let costs = &price.costs;
    let overhead = Picos(costs.overhead);
    let noise = noise.lost(told.rank, told.start, overhead);
    let leaving = price.leave(told.start.0, noise.0)?;
    observer.sent(&Sent {
        noise,
        overhead,
        overhead_bytes: Picos(costs.overhead_bytes),
        receive_overhead: Picos(costs.receive_overhead),
        receive_overhead_bytes: Picos(costs.receive_overhead_bytes),
        gap: Picos(costs.gap),
        gap_bytes: Picos(costs.gap_bytes),
        arrival: Picos(leaving.arrival),
        ..told
    });
    Ok(leaving)
}

/// A message of this price was handled: `told`, but for what `handling` says.
#[inline]
pub(super) fn note_handled(
    price: &Price,
    observer: &mut impl Observer,
    handling: Handling,
    told: Handled,
) {
    let Handling { held, done, .. } = handling;
    let arrival = price.delay().map_or(told.start.0, |delay| told.sent.0.saturating_add(delay));
    let (arrival, held, done) = (Picos(arrival), Picos(held), Picos(done));
    observer.handled(&Handled { arrival, held, done, ..told });
}
