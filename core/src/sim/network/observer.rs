//! What an observer of flows learns while they are under way.

use super::memory::{Flow, NONE};

/// From now on a flow has this rate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FlowRate {
    /// The send of its message, counted over the whole schedule.
    pub op: u32,
    /// When, in ps.
    pub now: u64,
    /// Of a host's link; 0 where the flow has ended.
    pub rate: f64,
    /// The link that limits it, if one does.
    pub bottleneck: Option<u32>,
}

impl FlowRate {
    /// That of `flow`.
    #[inline]
    pub(super) fn of(flow: &Flow, rate: f64, now: u64) -> Self {
        let bottleneck = Some(flow.bottleneck).filter(|&link| link != NONE && rate > 0.0);
        Self { op: flow.op, now, rate, bottleneck }
    }
}

/// Is called whenever the rate of a flow changes, or its bottleneck. Of a flow that has no
/// bottleneck until it ends, it sees only the end.
pub trait FlowObserver {
    /// The rate of a flow changes.
    fn changed(&mut self, flow: &FlowRate);
}

/// No observer; the calls vanish.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl FlowObserver for Unobserved {
    #[inline]
    fn changed(&mut self, _flow: &FlowRate) {}
}

/// A function, which may be missing.
impl<T: FnMut(&FlowRate)> FlowObserver for Option<T> {
    #[inline]
    fn changed(&mut self, flow: &FlowRate) {
        if let Some(observe) = self {
            observe(flow);
        }
    }
}
