//! Spread of the drawn parameters around the measured ones.

use crate::simulation::ParameterSets;
use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::units::PerByte;

/// Ratio of times, to the winner's with the measured parameters, beyond which an algorithm cannot
/// win in any draw.
///
/// A simulated time increases with every cost of a message, and is homogeneous of degree 1 in them.
/// If all costs of a draw are between a and b times the measured ones, so are all times, and an
/// algorithm that took more than b/a times the shortest time still takes longer than that one.
/// (This holds as long as the order of events does not change.)
///
/// `largest` is the size of the longest message. Within a range costs are linear in the size, so
/// its two ends have the extreme ratios. `combine` is the same in all draws.
pub(super) fn reach(
    measured: &ParameterSets,
    draws: &[ParameterSets],
    largest: u64,
    combine: PerByte,
) -> f64 {
    let fixed = (combine > PerByte::ZERO).then_some(1.0);
    draws.iter().map(|draw| ratio(measured, draw, largest, fixed)).fold(1.0, f64::max)
}

/// The ratio b/a of one draw; `fixed` is a further ratio to include, if any.
fn ratio(measured: &ParameterSets, draw: &ParameterSets, largest: u64, fixed: Option<f64>) -> f64 {
    let (mut least, mut most) = (fixed.unwrap_or(f64::INFINITY), fixed.unwrap_or(0.0));
    let ends = measured.protocols.iter().skip(1).map(|next| next.first.0.saturating_sub(1));
    let ends = ends.chain([u64::MAX]);
    let pairs = measured.protocols.iter().zip(&draw.protocols).zip(ends).enumerate();
    for (place, ((old, new), end)) in pairs {
        let last = end.min(largest).max(old.first.0);
        for size in [old.first.0, last] {
            let before = costs(old, measured.receive_overhead(place), size);
            let after = costs(new, draw.receive_overhead(place), size);
            for (before, after) in before.into_iter().zip(after) {
                // Infinite if the measured cost is zero and the drawn one is not.
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

/// Costs of a message of `size` bytes, in seconds: L, both overheads, the time the receiver is held
/// while bytes arrive, the interface's gap, and the time per byte on the wire.
#[allow(clippy::cast_precision_loss, reason = "only ratios matter")]
fn costs(protocol: &Protocol, receive: ReceiveOverhead, size: u64) -> [f64; 6] {
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
