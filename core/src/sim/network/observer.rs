//! Observer of the rates of flows.

use core::fmt;
use core::ops::Range;

use super::memory::{Flow, Hop};
use super::usage::Usage;

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

/// Observer that is called when the rate or the bottleneck of a flow changes. For a flow that never
/// has a bottleneck it is called only at the end.
pub trait FlowObserver: fmt::Debug + Send {
    /// Called when the rate of a flow changes.
    fn changed(&mut self, flow: &FlowRate);
}

/// Records of what flows do.
#[derive(Debug, Default)]
pub(super) struct Watch<'m> {
    pub(super) usage: Option<Usage<'m>>,
    pub(super) observer: Option<&'m mut dyn FlowObserver>,
}

impl Watch<'_> {
    /// Notes that `flow`, over the hops of `route`, changes.
    #[cold]
    pub(super) fn note(&mut self, hops: &[Hop], route: Range<usize>, flow: &Flow, to: &FlowRate) {
        if let Some(usage) = &mut self.usage {
            usage.add_flow(hops, route, flow, to.now);
        }
        if let Some(observer) = &mut self.observer {
            observer.changed(to);
        }
    }
}
