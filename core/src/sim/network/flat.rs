//! Network in which messages do not interact.

use super::{Departure, InFlight, Network, NetworkStopped};
use crate::sim::parameters::Parameters;
use crate::sim::queues::queue::Entry;
use crate::sim::record::NONE;

/// Flat network: the first byte of each message arrives o + L after its send began.
///
/// Messages with the same o + L arrive in the order in which they leave, so they are a list.
#[derive(Clone, Copy, Debug)]
pub struct Flat {
    flights: [Flight; Parameters::MOST],
    /// Number of lists in use.
    used: usize,
    /// List of the first arrival.
    landing: usize,
}

/// Messages with one o + L.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// Last message of the list.
    last: u32,
    /// o + L, ps.
    delay: u64,
}

impl Default for Flat {
    fn default() -> Self {
        let none = Flight { last: NONE, delay: 0 };
        Self { flights: [none; Parameters::MOST], used: 0, landing: 0 }
    }
}

#[allow(private_bounds, reason = "as of the trait")]
impl Network for Flat {
    const SHARED: bool = false;

    #[inline]
    fn launch(
        &mut self,
        departure: &Departure,
        messages: &mut impl InFlight,
    ) -> Result<(), NetworkStopped> {
        let &Departure { op, delay, .. } = departure;
        let known = self.flights.iter().take(self.used).position(|flight| flight.delay == delay);
        let at = known.unwrap_or(self.used);
        self.used = self.used.max(at + 1);
        // There is a list for each parameter set.
        let full = NetworkStopped::Full { messages: self.flights.len() };
        let flight = self.flights.get_mut(at).ok_or(full)?;
        flight.delay = delay;
        messages.push(&mut flight.last, op);
        Ok(())
    }

    #[inline]
    fn first(
        &mut self,
        _next: u64,
        messages: &impl InFlight,
    ) -> Result<Option<Entry>, NetworkStopped> {
        let mut first: Option<Entry> = None;
        for (at, &Flight { last, delay }) in self.flights.iter().take(self.used).enumerate() {
            if last == NONE {
                continue;
            }
            let arrival = messages.arrival(messages.next(last), delay);
            if first.is_none_or(|first| arrival.before(&first)) {
                self.landing = at;
                first = Some(arrival);
            }
        }
        Ok(first)
    }

    #[inline]
    fn land(&mut self, messages: &mut impl InFlight) {
        if let Some(Flight { last, .. }) = self.flights.get_mut(self.landing) {
            let (before, first) = (*last, messages.next(*last));
            messages.remove(last, before, first);
        }
    }
}
