//! Links of a network that limit flows, and the time that each costs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loggap_core::sim::network::{FlowObserver, FlowRate};
use loggap_core::units::Picos;

/// Time that a message lost by sharing a link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkLoss {
    /// Number of the link in the network.
    pub link: u32,
    /// Lost time.
    pub lost: Picos,
}

/// The flow of a message, up to its last change of rate.
#[derive(Clone, Debug, Default)]
struct Flow {
    since: u64,
    /// Rate from `since` on, as a share of that of a host's link.
    rate: f64,
    bottleneck: Option<u32>,
    ended: bool,
    /// Time lost to each link that limited it, in ps; at rate r, 1 − r of the time is lost.
    lost: Vec<(u32, f64)>,
}

impl Flow {
    fn change(&mut self, flow: &FlowRate) {
        #[allow(clippy::cast_precision_loss, reason = "times are far below 2^53 ps, or shares")]
        let lost = flow.now.saturating_sub(self.since) as f64 * (1.0 - self.rate);
        if let Some(link) = self.bottleneck.filter(|_| lost > 0.0) {
            match self.lost.iter_mut().find(|(other, _)| *other == link) {
                Some((_, sum)) => *sum += lost,
                None => self.lost.push((link, lost)),
            }
        }
        (self.since, self.rate, self.bottleneck) = (flow.now, flow.rate, flow.bottleneck);
        self.ended = flow.rate <= 0.0;
    }
}

/// End of a flow, and the time it lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    /// Time at which its last byte was through.
    pub(super) at: Picos,
    lost: Vec<(u32, f64)>,
}

impl Ended {
    /// Divides `total` among the links, exact to the picosecond.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "parts of a time, which are no greater"
    )]
    pub(super) fn losses(&self, total: Picos) -> Vec<LinkLoss> {
        let whole: f64 = self.lost.iter().map(|(_, lost)| lost).sum();
        let (mut sum, mut before) = (0.0, 0);
        let last = self.lost.len().saturating_sub(1);
        let mut parts = Vec::with_capacity(self.lost.len());
        for (at, &(link, lost)) in self.lost.iter().enumerate() {
            sum += lost;
            let until = (total.0 as f64 * (sum / whole) + 0.5) as u64;
            let until = if at == last { total.0 } else { until.clamp(before, total.0) };
            parts.push(LinkLoss { link, lost: Picos(until - before) });
            before = until;
        }
        parts
    }
}

#[derive(Debug, Default)]
struct State {
    /// Flows that were limited and whose messages have not arrived, by send operation.
    flows: HashMap<u32, Flow>,
    names: HashMap<u32, String>,
}

/// Collects the links that limit the flows of a run. Clones share the state: one is for the
/// network, one for the [`CauseRecorder`](super::causes::CauseRecorder).
#[derive(Clone, Debug, Default)]
pub struct LinkHolds(Arc<Mutex<State>>);

impl LinkHolds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the names of all links that limited a flow.
    pub fn name_links(&self, name: impl Fn(u32) -> String) {
        for (link, found) in &mut self.state().names {
            *found = name(*link);
        }
    }

    /// Names of the links that limited a flow.
    pub(super) fn into_names(self) -> HashMap<u32, String> {
        std::mem::take(&mut self.state().names)
    }

    /// Removes the flow of a message that arrives; `None` if no link limited it.
    pub(super) fn take(&self, op: u32) -> Option<Ended> {
        let Flow { since, lost, ended, .. } = self.state().flows.remove(&op)?;
        debug_assert!(ended, "the flow of {op} is over when its message arrives");
        Some(Ended { at: Picos(since), lost })
    }
}

impl FlowObserver for LinkHolds {
    fn changed(&mut self, flow: &FlowRate) {
        let mut state = self.state();
        if let Some(link) = flow.bottleneck {
            state.names.entry(link).or_default();
        } else if !state.flows.contains_key(&flow.op) {
            // No link has limited it so far.
            return;
        }
        let new = || Flow { since: flow.now, rate: 1.0, ..Flow::default() };
        state.flows.entry(flow.op).or_insert_with(new).change(flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(now: u64, rate: f64, bottleneck: Option<u32>) -> FlowRate {
        FlowRate { op: 7, now, rate, bottleneck }
    }

    #[test]
    fn what_links_cost_is_told_apart_and_adds_up() {
        let mut holds = LinkHolds::default();
        // 100 ps at full rate; then 30 at half the rate, 60 at a third, 65 at full rate.
        for told in [
            rate(10, 1.0, None),
            rate(20, 0.5, Some(3)),
            rate(50, 1.0 / 3.0, Some(1)),
            rate(110, 1.0, None),
            rate(165, 0.0, None),
        ] {
            holds.changed(&told);
        }
        holds.name_links(|link| format!("link {link}"));
        let ended = holds.take(7).unwrap();
        assert_eq!(ended.at, Picos(165));
        let losses = ended.losses(Picos(55));
        let losses: Vec<_> = losses.iter().map(|loss| (loss.link, loss.lost.0)).collect();
        assert_eq!(losses, [(3, 15), (1, 40)]);
        assert!(holds.take(7).is_none());
        let names = holds.into_names();
        assert_eq!(names.len(), 2);
        assert_eq!(names[&3], "link 3");
    }
}
