//! What messages of one size cost, added up once for many of them.

use crate::sim::parameters::Parameters;
use crate::units::Overflow;

/// A sum, or that it is past 2⁶⁴ ps.
pub(super) type Sum = Result<u64, Overflow>;

/// The sum of times, checked.
#[inline]
pub(super) fn sum(a: u64, b: u64) -> Sum {
    a.checked_add(b).ok_or(Overflow)
}

/// What a message costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) size: u64,
    /// o.
    pub(super) overhead: u64,
    /// o + (s − 1)·O.
    pub(super) send: Sum,
    /// g + (s − 1)·G.
    pub(super) gap: Sum,
    /// o + (s − 1)·max(O, G).
    pub(super) receive: Sum,
    /// o + (s − 1)·G.
    pub(super) bytes: Sum,
    /// o + L.
    pub(super) delay: Sum,
    /// Whether its sender waits for its receive.
    pub(super) rendezvous: bool,
}

impl Price {
    pub(super) fn of(parameters: &Parameters<'_>, size: u64) -> Result<Self, Overflow> {
        let costs = parameters.costs(size)?;
        Ok(Self {
            size,
            overhead: costs.overhead,
            send: sum(costs.overhead, costs.overhead_bytes),
            gap: sum(costs.gap, costs.gap_bytes),
            receive: sum(costs.overhead, costs.overhead_bytes.max(costs.gap_bytes)),
            bytes: sum(costs.overhead, costs.gap_bytes),
            delay: sum(costs.overhead, costs.latency),
            rendezvous: costs.rendezvous,
        })
    }
}
