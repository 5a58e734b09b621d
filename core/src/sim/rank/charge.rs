//! Time that an event charges to a processor and an interface, with noise, and the report to the
//! observer; the same in global order and in windows.

use crate::sim::hooks::{Calculated, Handled, Noise, Observed, Observer, Sent, Taken};
use crate::sim::rank::price::{Handling, Leaving, Prices, Reception, sum};
use crate::units::{Overflow, Picos};

/// Prices, noise and observer of a run.
#[derive(Debug)]
pub(in crate::sim) struct Charges<'p, N, O> {
    pub(in crate::sim) prices: Prices<'p>,
    pub(in crate::sim) noise: N,
    pub(in crate::sim) observer: O,
}

/// Times that result from receiving a message, ps.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Received {
    /// Time at which the processor is free again.
    pub(in crate::sim) cpu: u64,
    /// Time at which the interface can take the next message; `None` if it took this one before.
    pub(in crate::sim) into: Option<u64>,
    /// Time at which the message is completely received and handled.
    pub(in crate::sim) done: u64,
}

impl<N: Noise, O: Observer> Charges<'_, N, O> {
    /// Charges a calculation. `event` lacks its noise. Returns the end, ps.
    #[inline]
    pub(in crate::sim) fn calculate(&mut self, event: Calculated) -> Result<u64, Overflow> {
        let Calculated { rank, start, work, .. } = event;
        let noise = self.noise.lost(rank, start, work);
        let end = sum(sum(start.0, work.0)?, noise.0)?;
        self.observer.observe(Observed::Calculated(&Calculated { noise, ..event }));
        Ok(end)
    }

    /// Charges a message that leaves. `event` lacks its costs.
    #[inline]
    pub(in crate::sim) fn send(&mut self, event: Sent) -> Result<Leaving, Overflow> {
        let price = self.prices.between(event.rank, event.to, event.size)?;
        let costs = &price.costs;
        let overhead = Picos(costs.overhead);
        let noise = self.noise.lost(event.rank, event.start, overhead);
        let leaving = price.leave(event.start.0, noise.0)?;
        self.observer.observe(Observed::Sent(&Sent {
            noise,
            overhead,
            overhead_bytes: Picos(costs.overhead_bytes),
            receive_overhead: Picos(costs.receive_overhead),
            receive_overhead_bytes: Picos(costs.receive_overhead_bytes),
            gap: Picos(costs.gap),
            gap_bytes: Picos(costs.gap_bytes),
            arrival: Picos(leaving.arrival),
            ..event
        }));
        Ok(leaving)
    }

    /// Charges an interface for taking a message of `size` bytes from rank `from`. Returns the time
    /// at which it can take the next, ps.
    pub(in crate::sim) fn take(
        &mut self,
        event: &Taken,
        from: u32,
        size: u64,
        how: Reception,
    ) -> Result<u64, Overflow> {
        let price = self.prices.between(event.rank, from, size)?;
        let free = price.take(how, event.time.0)?;
        self.observer.observe(Observed::Taken(event));
        Ok(free)
    }

    /// Charges a processor, free from `free` on, for handling a message of `size` bytes. `event`
    /// lacks the resulting times.
    #[allow(clippy::inline_always, reason = "measured")]
    #[inline(always)]
    pub(in crate::sim) fn handle(
        &mut self,
        event: Handled,
        size: u64,
        free: u64,
        how: Reception,
    ) -> Result<Received, Overflow> {
        let Handled { rank, start: Picos(now), taken: Picos(taken), .. } = event;
        let price = self.prices.between(rank, event.from, size)?;
        // A message that waited for its processor is already complete.
        let late = how.last && taken == now;
        let start = if late { price.begin_last(free, taken) } else { now };
        let noise = self.noise.lost(rank, Picos(start), Picos(price.costs.receive_overhead));
        let into = if how.overlap { None } else { Some(price.take(how, taken)?) };
        let Handling { held, cpu, done } = price.handle(how, start, taken, noise.0)?;
        // Observers get arrivals of first bytes.
        let taken = if how.last { price.begin_last(0, taken).min(start) } else { taken };
        let arrival = price.delay().map_or(start, |delay| event.sent.0.saturating_add(delay));
        self.observer.observe(Observed::Handled(&Handled {
            start: Picos(start),
            taken: Picos(taken),
            arrival: Picos(arrival),
            held: Picos(held),
            noise,
            done: Picos(done),
            ..event
        }));
        Ok(Received { cpu, into, done })
    }
}
