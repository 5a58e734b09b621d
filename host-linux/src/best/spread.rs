//! How far drawn parameters lie from the measured ones.

use crate::simulation::ParameterSets;
use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::units::PerByte;

/// No draw lets an algorithm win that takes more than so many times as long
/// as the winner with the measured parameters.
///
/// A simulated time grows with every cost of a message, and in proportion to
/// them all. Where a draw's costs are between a and b times the measured ones,
/// so are all times, and what took more than b/a times the least then takes
/// more than the least now. (That holds where the order of events stays.)
///
/// `largest` is the size of the longest message. Costs of a range grow along
/// a line, so that its ends have the extremes. `combine` is a cost that is the
/// same in all draws.
pub(super) fn reach(
    measured: &ParameterSets,
    draws: &[ParameterSets],
    (largest, combine): (u64, PerByte),
) -> f64 {
    let fixed = (combine > PerByte::ZERO).then_some(1.0);
    draws.iter().map(|draw| ratio(measured, draw, (largest, fixed))).fold(1.0, f64::max)
}

/// b/a of one draw; one of the changes is `fixed`, if any.
fn ratio(
    measured: &ParameterSets,
    draw: &ParameterSets,
    (largest, fixed): (u64, Option<f64>),
) -> f64 {
    let (mut least, mut most) = (fixed.unwrap_or(f64::INFINITY), fixed.unwrap_or(0.0));
    let ends = measured.protocols.iter().skip(1).map(|next| next.first.0.saturating_sub(1));
    let ends = ends.chain([u64::MAX]);
    let pairs = measured.protocols.iter().zip(&draw.protocols).zip(ends).enumerate();
    for (place, ((old, new), end)) in pairs {
        let receive = |sets: &ParameterSets, protocol: &Protocol| {
            let own = sets.receive.get(place).copied();
            own.unwrap_or_else(|| protocol.parameters.receive_overhead())
        };
        let last = end.min(largest).max(old.first.0);
        for size in [old.first.0, last] {
            let before = costs(old, &receive(measured, old), size);
            let after = costs(new, &receive(draw, new), size);
            for (before, after) in before.into_iter().zip(after) {
                // Infinite where something is added to nothing.
                let change = after / before;
                if change.is_nan() {
                    continue;
                }
                (least, most) = (least.min(change), most.max(change));
            }
        }
    }
    if most > 0.0 { most / least } else { 1.0 }
}

/// What a message of `size` bytes costs, in seconds: L, both ends, a receiver
/// that is held while the bytes come, the interface, and the bytes on the wire.
#[allow(clippy::cast_precision_loss, reason = "only ratios matter")]
fn costs(protocol: &Protocol, receive: &ReceiveOverhead, size: u64) -> [f64; 6] {
    let set = &protocol.parameters;
    let bytes = size.max(1) as f64 - 1.0;
    [
        set.latency.seconds(),
        set.overhead.seconds() + bytes * set.overhead_per_byte.seconds(),
        receive.overhead.seconds() + bytes * receive.overhead_per_byte.seconds(),
        receive.overhead.seconds()
            + bytes * receive.overhead_per_byte.max(set.gap_per_byte).seconds(),
        set.gap.seconds() + bytes * set.gap_per_byte.seconds(),
        set.gap_per_byte.seconds(),
    ]
}
