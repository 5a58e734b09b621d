//! Observer of the rates of flows.

use core::fmt;

use super::memory::{Flow, NONE};

/// Event: the rate of a flow changes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FlowRate {
    /// Index of the message's send in the whole schedule.
    pub op: u32,
    /// Time of the change, ps.
    pub now: u64,
    /// New rate, in units of a host's link; 0 if the flow has ended.
    pub rate: f64,
    /// Bottleneck of the flow.
    pub bottleneck: Option<u32>,
}

impl FlowRate {
    /// Event for `flow`.
    #[inline]
    pub(super) fn of(flow: &Flow, rate: f64, now: u64) -> Self {
        let bottleneck = Some(flow.bottleneck).filter(|&link| link != NONE && rate > 0.0);
        Self { op: flow.op, now, rate, bottleneck }
    }
}

/// Observer that is called when the rate or the bottleneck of a flow changes. For a flow that never
/// has a bottleneck it is called only at the end.
pub trait FlowObserver: fmt::Debug {
    /// Called when the rate of a flow changes.
    fn changed(&mut self, flow: &FlowRate);
}
