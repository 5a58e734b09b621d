//! Prices of messages for a processor and an interface: the one place where the rules of sending
//! and receiving become times, for all engines.

use crate::sim::parameters::{Costs, Parameters};
use crate::units::Overflow;

/// Checked sum in ps; `Err` past 2⁶⁴ ps.
type Sum = Result<u64, Overflow>;

/// Checked sum of two times, ps.
#[inline]
pub(in crate::sim) fn sum(a: u64, b: u64) -> Sum {
    a.checked_add(b).ok_or(Overflow)
}

/// Costs of a message, with sums precomputed for all messages of the same size and level.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Price {
    level: usize,
    size: u64,
    pub(in crate::sim) costs: Costs,
    /// o_s + (s − 1)·O_s.
    send: Sum,
    /// g + (s − 1)·G.
    gap: Sum,
    /// o_r + (s − 1)·max(O_r, G).
    receive: Sum,
    /// o_r + (s − 1)·O_r.
    receive_taken: Sum,
    /// o_s + L.
    delay: Sum,
}

/// Times that result from sending a message, ps.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Leaving {
    /// Time at which the processor is free again.
    pub(in crate::sim) cpu: u64,
    /// Time at which the interface can send again.
    pub(in crate::sim) out: u64,
    /// Arrival time of the first byte.
    pub(in crate::sim) arrival: u64,
    /// True if the message is above the eager limit.
    pub(in crate::sim) rendezvous: bool,
    /// (s − 1)·G.
    pub(in crate::sim) volume: u64,
}

/// Mode in which messages are received.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Reception {
    /// True if interfaces take messages without the processor (overlap).
    pub(in crate::sim) overlap: bool,
    /// True if a message arrives with its last byte, because links were charged for all its bytes.
    pub(in crate::sim) last: bool,
}

/// Times that result from handling a message, ps.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Handling {
    /// Time for which the processor is held, without noise.
    pub(in crate::sim) held: u64,
    /// Time at which the processor is free again.
    pub(in crate::sim) cpu: u64,
    /// Time at which the message is completely received and handled.
    pub(in crate::sim) done: u64,
}

impl Price {
    /// Price of messages of `size` bytes at a level of nearness. Out of line, to keep the lookup of
    /// the cached price inlined.
    #[inline(never)]
    pub(in crate::sim) fn of(
        parameters: &Parameters<'_>,
        level: usize,
        size: u64,
    ) -> Result<Self, Overflow> {
        let costs = parameters.costs(level, size)?;
        let (overhead, bytes) = (costs.receive_overhead, costs.receive_overhead_bytes);
        Ok(Self {
            level,
            size,
            send: sum(costs.overhead, costs.overhead_bytes),
            gap: sum(costs.gap, costs.gap_bytes),
            receive: sum(overhead, bytes.max(costs.gap_bytes)),
            receive_taken: sum(overhead, bytes),
            delay: sum(costs.overhead, costs.latency),
            costs,
        })
    }

    /// `Err` if a single message exceeds 2⁶⁴ ps.
    pub(in crate::sim) fn check(&self) -> Result<(), Overflow> {
        self.send
            .and(self.gap)
            .and(self.receive)
            .and(self.receive_taken)
            .and(self.delay)
            .map(|_| ())
    }

    /// o_s + L: time from the start of a send to the arrival of its message.
    #[inline]
    pub(in crate::sim) const fn delay(&self) -> Sum {
        self.delay
    }

    /// Sends a message at `now`.
    #[inline]
    pub(in crate::sim) fn leave(&self, now: u64, noise: u64) -> Result<Leaving, Overflow> {
        Ok(Leaving {
            cpu: sum(sum(now, self.send?)?, noise)?,
            out: sum(now, self.gap?)?,
            arrival: sum(now, self.delay?)?,
            rendezvous: self.costs.rendezvous,
            volume: self.costs.gap_bytes,
        })
    }

    /// End of a send that began at `start`.
    pub(in crate::sim) fn sent(&self, start: u64, noise: u64) -> Sum {
        sum(sum(start, self.send?)?, noise)
    }

    /// Time at which an interface that takes a message at `now` can take the next. Only g if links
    /// were charged for the bytes.
    #[inline]
    pub(in crate::sim) fn take(&self, how: Reception, now: u64) -> Sum {
        sum(now, if how.last { self.costs.gap } else { self.gap? })
    }

    /// Time at which a processor, free from `free` on, begins with a message that is complete at
    /// `taken`: (s − 1)·G earlier, when the first byte would have arrived had the message come
    /// alone.
    #[inline]
    pub(in crate::sim) fn begin_last(&self, free: u64, taken: u64) -> u64 {
        free.max(taken.saturating_sub(self.costs.gap_bytes))
    }

    /// Handles a message from `start` on. The interface began to take it at `taken`, or with
    /// `how.last` had all of it then. Without overlap the processor is held until it is complete.
    #[inline]
    pub(in crate::sim) fn handle(
        &self,
        how: Reception,
        start: u64,
        taken: u64,
        noise: u64,
    ) -> Result<Handling, Overflow> {
        let Costs { receive_overhead, gap_bytes, .. } = self.costs;
        let there = match (how.last, how.overlap) {
            (true, _) => sum(taken, receive_overhead)?,
            (false, true) => sum(sum(taken, receive_overhead)?, gap_bytes)?,
            (false, false) => 0,
        };
        let held = if how.last || how.overlap { self.receive_taken? } else { self.receive? };
        let end = sum(start, held)?.max(if how.overlap { 0 } else { there });
        let cpu = sum(end, noise)?;
        Ok(Handling { held: end - start, cpu, done: cpu.max(there) })
    }
}

/// Prices under some parameters, with the last one cached.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Prices<'p> {
    parameters: Parameters<'p>,
    last: Option<Price>,
}

impl<'p> Prices<'p> {
    pub(in crate::sim) const fn new(parameters: Parameters<'p>) -> Self {
        Self { parameters, last: None }
    }

    /// Price of messages of `size` bytes between two ranks.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(in crate::sim) fn between(
        &mut self,
        one: u32,
        other: u32,
        size: u64,
    ) -> Result<&Price, Overflow> {
        self.at(self.parameters.level(one, other), size)
    }

    /// Price of messages of `size` bytes at a level of nearness.
    #[inline]
    pub(in crate::sim) fn at(&mut self, level: usize, size: u64) -> Result<&Price, Overflow> {
        if self.last.as_ref().is_none_or(|last| last.size != size || last.level != level) {
            self.last = Some(Price::of(&self.parameters, level, size)?);
        }
        self.last.as_ref().ok_or(Overflow)
    }
}
