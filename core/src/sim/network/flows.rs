//! Network of flows that share links.

use super::build_error::NetworkBuildError;
use super::fabric::{Fabric, PlacedFabric, Tenants};
use super::memory::{Delivery, Flow, Memory, Requirements};
use super::observer::FlowObserver;
use super::rates::Rates;
use super::topology::Topology;
use super::usage::Usage;
use super::{Departure, InFlight, Network, NetworkStopped};
use crate::sim::queues::agenda::Agenda;
use crate::sim::queues::queue::Entry;

/// Network whose links are shared max-min fairly.
#[derive(Debug)]
pub struct Flows<'m, F = Topology> {
    fabric: PlacedFabric<'m, F>,
    rates: Rates<'m>,
    /// Messages whose last byte is in flight.
    arrivals: Agenda<'m>,
    /// Capacity: number of messages under way at a time.
    capacity: usize,
    under_way: usize,
    /// Number of messages that crossed links.
    begun: u64,
    now: u64,
}

impl<'m, F: Fabric> Flows<'m, F> {
    /// Creates a network on `fabric` with a placement of ranks.
    ///
    /// # Errors
    ///
    /// [`NetworkBuildError`].
    pub fn new(
        fabric: &'m F,
        tenants: Tenants<'m>,
        memory: Memory<'m>,
    ) -> Result<Self, NetworkBuildError> {
        let requirements = Requirements::new(fabric, tenants.messages);
        let ends = requirements.links.saturating_add(requirements.flows);
        let is_small = u32::try_from(requirements.hops.max(ends)).is_ok();
        let memory = memory.cut(&requirements).filter(|_| is_small);
        let mut memory = memory.ok_or(NetworkBuildError::Full)?;
        let placed = PlacedFabric::new(fabric, &tenants)?;
        let [arrivals, in_order] =
            [&mut memory.arrivals, &mut memory.arrivals_in_order].map(core::mem::take);
        Ok(Self {
            rates: Rates::new(memory, fabric),
            fabric: placed,
            arrivals: Agenda::new(arrivals, in_order),
            capacity: tenants.messages,
            under_way: 0,
            begun: 0,
            now: 0,
        })
    }

    /// Records link loads over time.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage<'m>) -> Self {
        self.rates.watch.get_or_insert_default().usage = Some(usage);
        self
    }

    /// Reports the rates of flows.
    #[must_use]
    pub fn with_observer(mut self, observer: &'m mut dyn FlowObserver) -> Self {
        self.rates.watch.get_or_insert_default().observer = Some(observer);
        self
    }

    /// Link loads over time, if recorded.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage<'m>> {
        self.rates.watch.as_ref()?.usage.as_ref()
    }

    /// Topology of the network.
    #[must_use]
    pub const fn fabric(&self) -> &'m F {
        self.fabric.fabric
    }

    /// Number of messages that crossed links with at least one byte after the first.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Load of each link: bytes after the first of each message, times G, in ps of a host's link.
    pub fn carried(&self) -> impl Iterator<Item = f64> {
        self.rates.links.iter().map(|link| link.carried)
    }

    /// Ends all flows that end at `time`.
    fn end(&mut self, time: u64) -> Result<(), NetworkStopped> {
        debug_assert!(time > self.now, "flows take time");
        self.now = time;
        let Self { rates, arrivals, .. } = self;
        let mut overflow = false;
        // Messages of a pair that complete together arrive in their order.
        let (mut last_pair, mut last_arrival) = (0, 0);
        let mut through = |flow: &Flow, delivery: &Delivery| {
            let &Flow { created, seq, op, .. } = flow;
            let &Delivery { pair, delay, .. } = delivery;
            let arrival = time.checked_add(delay);
            overflow |= arrival.is_none();
            let earliest = if last_pair == pair { last_arrival } else { 0 };
            let time = arrival.unwrap_or(u64::MAX).max(earliest);
            (last_pair, last_arrival) = (pair, time);
            arrivals.add(Entry { time, created, seq, index: op }, |_, _| {});
        };
        while rates.end(time, &mut through).is_some() {}
        if overflow { Err(NetworkStopped::Overflow) } else { Ok(()) }
    }
}

#[allow(private_bounds, reason = "as of the trait")]
impl<F: Fabric> Network for Flows<'_, F> {
    const SHARED: bool = true;

    fn launch(
        &mut self,
        departure: &Departure,
        _messages: &mut impl InFlight,
    ) -> Result<(), NetworkStopped> {
        let Departure { op, source, target, now, seq, volume, delay } = *departure;
        debug_assert!(now >= self.now, "messages leave in the order of time");
        if self.under_way == self.capacity {
            return Err(NetworkStopped::Full { messages: self.capacity });
        }
        self.under_way += 1;
        self.now = now;
        let pair = u64::from(source) << 32 | u64::from(target);
        let route = self.fabric.route_of(departure);
        let flow = Flow { volume, created: now, seq, op, ..Flow::default() };
        let delivery = Delivery { pair, delay, ..Delivery::default() };
        if volume == 0 || route.is_local() {
            let time = now.checked_add(volume).and_then(|end| end.checked_add(delay));
            let time = time.ok_or(NetworkStopped::Overflow)?;
            if route.is_local() || !self.rates.wait_in_order(flow, delivery) {
                let entry = Entry { time, created: now, seq, index: op };
                self.arrivals.add(entry, |_, _| {});
            }
            return Ok(());
        }
        self.begun += 1;
        self.rates.begin(flow, delivery, &route)
    }

    #[inline]
    fn first(
        &mut self,
        next: u64,
        _messages: &impl InFlight,
    ) -> Result<Option<Entry>, NetworkStopped> {
        loop {
            let arrival = self.arrivals.first();
            let limit = arrival.map_or(next, |arrival| arrival.time.min(next));
            if self.rates.is_stale() {
                if limit <= self.now {
                    return Ok(arrival);
                }
                self.rates.solve(self.now).map_err(|_| NetworkStopped::Overflow)?;
            }
            match self.rates.first_end() {
                Some(end) if end <= limit => self.end(end)?,
                _ => return Ok(arrival),
            }
        }
    }

    fn land(&mut self, _messages: &mut impl InFlight) {
        debug_assert!(self.under_way > 0, "what lands was under way");
        self.arrivals.remove_first(|_, _| {});
        self.under_way = self.under_way.saturating_sub(1);
    }
}
