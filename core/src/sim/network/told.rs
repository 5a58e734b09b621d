//! What is told of flows while they go on.

use core::fmt;

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
    /// The link that holds it back, if one does.
    pub held_by: Option<u32>,
}

/// Who is told of rates, if anybody is. Flows that nothing holds back until they end are told
/// of at their end only.
pub(super) struct RateObserver<'m>(pub(super) Option<&'m mut dyn FnMut(&FlowRate)>);

impl RateObserver<'_> {
    /// `flow` has that rate.
    #[inline]
    pub(super) fn tell(&mut self, flow: &Flow, rate: f64, now: u64) {
        if let Some(told) = &mut self.0 {
            let held_by = Some(flow.held_by).filter(|&link| link != NONE && rate > 0.0);
            told(&FlowRate { op: flow.op, now, rate, held_by });
        }
    }
}

impl fmt::Debug for RateObserver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateObserver").field(&self.0.is_some()).finish()
    }
}
