//! What messages cost.

use crate::model::{LogGops, Protocol, ReceiveOverhead};
use crate::units::{Bytes, Overflow, Picos};

/// How messages are received.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Receive {
    /// The processor is held for o and the longer of (s − 1)·O and
    /// (s − 1)·G, as in LogGOPSim.
    #[default]
    Hold,
    /// The processor is held for o + (s − 1)·O, while the interface takes
    /// the bytes by itself, as in LogGOPS.
    Overlap,
}

/// How messages above the eager limit are sent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rendezvous {
    /// The sender is released at the instant of the match, as in LogGOPSim.
    #[default]
    Instant,
    /// Request, ready and data are messages, as in LogGPS.
    Handshake,
}

/// The switches of a simulation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Settings {
    /// How messages are received.
    pub receive: Receive,
    /// How long messages are sent.
    pub rendezvous: Rendezvous,
}

/// What one message costs, in ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) overhead: u64,
    /// (s − 1)·O.
    pub(super) overhead_bytes: u64,
    /// That of the receiver, o_r.
    pub(super) receive_overhead: u64,
    pub(super) gap: u64,
    /// (s − 1)·G.
    pub(super) gap_bytes: u64,
    pub(super) latency: u64,
    /// Which protocol.
    pub(super) protocol: usize,
    /// Whether the message is longer than the eager limit.
    pub(super) rendezvous: bool,
}

/// Parameter sets, one for each range of sizes.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    first: Protocol,
    further: &'a [Protocol],
    /// What receiving costs, for each set; none where that is what sending
    /// costs.
    receive: &'a [ReceiveOverhead],
}

impl<'a> Parameters<'a> {
    /// The most protocols that a simulation takes.
    pub const MOST: usize = 16;

    /// One set for all sizes.
    #[must_use]
    pub const fn one(parameters: LogGops) -> Self {
        Self { first: Protocol { first: Bytes(0), parameters }, further: &[], receive: &[] }
    }

    /// One set per protocol, ascending in size; the first also holds for
    /// smaller sizes. `None` without any, with more than
    /// [`Self::MOST`], or out of order.
    #[must_use]
    pub fn per_protocol(protocols: &'a [Protocol]) -> Option<Self> {
        let (first, further) = protocols.split_first()?;
        let ascending = protocols.is_sorted_by(|a, b| a.first < b.first);
        let few = protocols.len() <= Self::MOST;
        (ascending && few).then_some(Self { first: *first, further, receive: &[] })
    }

    /// The same, with receivers that pay these overheads and senders that pay
    /// those of the sets; one for each set, in their order. `None` where their
    /// number differs.
    #[must_use]
    pub const fn with_receive(self, receive: &'a [ReceiveOverhead]) -> Option<Self> {
        if receive.len() == self.further.len() + 1 { Some(Self { receive, ..self }) } else { None }
    }

    /// The sets.
    fn all(&self) -> impl Iterator<Item = &Protocol> {
        core::iter::once(&self.first).chain(self.further)
    }

    /// Whether the sets begin at the same sizes and have the same eager limits
    /// as `other`'s.
    #[cfg(target_has_atomic = "64")]
    pub(super) fn has_limits_of(&self, other: &Parameters<'_>) -> bool {
        let limits = |of: &Protocol| (of.first, of.parameters.eager_limit);
        self.further.len() == other.further.len()
            && self.all().zip(other.all()).all(|(own, other)| limits(own) == limits(other))
    }

    /// Time from the start of a send to the arrival of its message, for each
    /// set; saturating.
    pub(super) fn delays(&self) -> impl Iterator<Item = u64> {
        self.all().map(|protocol| {
            let set = &protocol.parameters;
            set.overhead.0.saturating_add(set.latency.0)
        })
    }

    /// Time from the start of a send of `size` bytes to the arrival of its
    /// message.
    #[inline]
    pub(super) fn delay(&self, size: u64) -> Result<u64, Overflow> {
        let set = if self.further.is_empty() { &self.first.parameters } else { self.at(size).1 };
        Ok(set.overhead.plus(set.latency)?.0)
    }

    fn at(&self, size: u64) -> (usize, &LogGops) {
        let later = self.further.iter().rposition(|protocol| protocol.first.0 <= size);
        match later.and_then(|at| Some((at + 1, self.further.get(at)?))) {
            Some((at, protocol)) => (at, &protocol.parameters),
            None => (0, &self.first.parameters),
        }
    }

    /// (s − 1)·O_r of a message that costs its sender so much.
    #[inline]
    pub(super) fn receive_bytes(&self, size: u64, sender: &Costs) -> Result<u64, Overflow> {
        let Some(receive) = self.receive.get(sender.protocol) else {
            return Ok(sender.overhead_bytes);
        };
        Ok(receive.overhead_per_byte.times(Bytes(size).after_first())?.0)
    }

    #[inline]
    pub(super) fn costs(&self, size: u64) -> Result<Costs, Overflow> {
        let (protocol, set) =
            if self.further.is_empty() { (0, &self.first.parameters) } else { self.at(size) };
        let rest = Bytes(size).after_first();
        let receive = self.receive.get(protocol).map_or(set.overhead, |ends| ends.overhead);
        Ok(Costs {
            receive_overhead: receive.0,
            overhead: set.overhead.0,
            overhead_bytes: set.overhead_per_byte.times(rest)?.0,
            gap: set.gap.0,
            gap_bytes: set.gap_per_byte.times(rest)?.0,
            latency: set.latency.0,
            protocol,
            rendezvous: size > set.eager_limit.0,
        })
    }

    /// The least time between the start of a send and the arrival of its
    /// message, over all sets: how far ahead of the others a rank can be
    /// simulated.
    #[must_use]
    pub fn lookahead(&self) -> Picos {
        Picos(self.delays().min().unwrap_or_default())
    }
}
