//! What messages cost a processor and an interface: the one place where the
//! rules of sending and receiving turn into times, for all engines.

use super::parameters::{Costs, Parameters};
use crate::units::Overflow;

/// A sum, or that it is past 2⁶⁴ ps.
type Sum = Result<u64, Overflow>;

/// The sum of times, checked.
#[inline]
pub(super) fn sum(a: u64, b: u64) -> Sum {
    a.checked_add(b).ok_or(Overflow)
}

/// What a message costs, added up once for many of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    level: usize,
    size: u64,
    pub(super) costs: Costs,
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

/// A message leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// When the processor is free again.
    pub(super) cpu: u64,
    /// When the interface can send again.
    pub(super) out: u64,
    /// When the first byte arrives.
    pub(super) arrival: u64,
    /// Which protocol it has.
    pub(super) protocol: usize,
    /// Whether it waits for its receiver.
    pub(super) rendezvous: bool,
    /// (s − 1)·G.
    pub(super) volume: u64,
}

/// How messages are received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// Whether interfaces take them by themselves.
    pub(super) overlap: bool,
    /// Whether they come with their last byte, over links that were charged for all of
    /// them.
    pub(super) last: bool,
}

/// A processor handles a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handling {
    /// How long it is held, but for noise.
    pub(super) held: u64,
    /// When it is free again.
    pub(super) cpu: u64,
    /// When all of the message is there and handled.
    pub(super) done: u64,
}

impl Price {
    /// That of messages of `size` bytes at that level of nearness. Out of line, so
    /// that looking at the last price is not.
    #[inline(never)]
    pub(super) fn of(
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

    /// Whether one message alone is past 2⁶⁴ ps.
    pub(super) fn check(&self) -> Result<(), Overflow> {
        self.send
            .and(self.gap)
            .and(self.receive)
            .and(self.receive_taken)
            .and(self.delay)
            .map(|_| ())
    }

    /// From the start of a send to the arrival of its message.
    #[inline]
    pub(super) const fn delay(&self) -> Sum {
        self.delay
    }

    /// The processor and the interface send from `now` on.
    #[inline]
    pub(super) fn leave(&self, now: u64, noise: u64) -> Result<Leaving, Overflow> {
        Ok(Leaving {
            cpu: sum(sum(now, self.send?)?, noise)?,
            out: sum(now, self.gap?)?,
            arrival: sum(now, self.delay?)?,
            protocol: self.costs.protocol,
            rendezvous: self.costs.rendezvous,
            volume: self.costs.gap_bytes,
        })
    }

    /// The end of a send that began then.
    pub(super) fn sent(&self, start: u64, noise: u64) -> Sum {
        sum(sum(start, self.send?)?, noise)
    }

    /// When an interface that takes a message `now` can take the next. Links that were
    /// charged for its bytes leave the gap.
    #[inline]
    pub(super) fn take(&self, how: Reception, now: u64) -> Sum {
        sum(now, if how.last { self.costs.gap } else { self.gap? })
    }

    /// When the processor, free from `free` on, begins with what the interface has all of
    /// at `taken`: as the first byte would have been there, (s − 1)·G before, had the
    /// message come alone.
    #[inline]
    pub(super) fn begin_last(&self, free: u64, taken: u64) -> u64 {
        free.max(taken.saturating_sub(self.costs.gap_bytes))
    }

    /// The processor receives from `start` on what the interface began to take, or had all
    /// of, at `taken`; without overlap until that is all there.
    #[inline]
    pub(super) fn handle(
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

/// Prices for some parameters, of which the last is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices<'p> {
    parameters: Parameters<'p>,
    last: Option<Price>,
}

impl<'p> Prices<'p> {
    pub(super) const fn new(parameters: Parameters<'p>) -> Self {
        Self { parameters, last: None }
    }

    /// That of messages of `size` bytes from the one rank to the other.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn between(&mut self, one: u32, other: u32, size: u64) -> Result<&Price, Overflow> {
        self.at(self.parameters.level(one, other), size)
    }

    /// That of messages of `size` bytes at that level of nearness.
    #[inline]
    pub(super) fn at(&mut self, level: usize, size: u64) -> Result<&Price, Overflow> {
        if self.last.as_ref().is_none_or(|last| last.size != size || last.level != level) {
            self.last = Some(Price::of(&self.parameters, level, size)?);
        }
        self.last.as_ref().ok_or(Overflow)
    }
}
