//! Hooks of a simulation: noise that it applies, and observers of its events.

use crate::noise::{Phases, Trace};
use crate::units::Picos;

/// Takes time from operations.
pub trait Noise {
    /// Time lost to noise by an operation of `rank` that holds a processor for `length` from
    /// `start` on.
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos;
}

/// No noise; compiled to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNoise;

impl Noise for NoNoise {
    #[inline]
    fn lost(&self, _rank: u32, _start: Picos, _length: Picos) -> Picos {
        Picos::ZERO
    }
}

/// Message of a send: the only one, or a step of its handshake.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MessageKind {
    /// An eager message, or a send that has not left yet.
    #[default]
    Whole,
    /// RTS of a handshake, to the receiver.
    Rts,
    /// CTS of a handshake, back to the sender.
    Cts,
    /// Data of a handshake, to the receiver.
    Data,
}

impl MessageKind {
    /// Size in bytes of this message of a send of `size` bytes.
    #[inline]
    pub(super) const fn bytes(self, size: u64) -> u64 {
        match self {
            Self::Whole | Self::Data => size,
            Self::Rts | Self::Cts => 1,
        }
    }
}

/// Event: a calculation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Calculated {
    /// Rank that calculates.
    pub rank: u32,
    /// Index of the operation in the whole schedule.
    pub op: u32,
    /// Processor that calculates.
    pub cpu: u16,
    /// Start time.
    pub start: Picos,
    /// Duration without noise.
    pub work: Picos,
    /// Time added by noise.
    pub noise: Picos,
}

/// Event: a message leaves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sent {
    /// Rank that sends.
    pub rank: u32,
    /// Rank that receives.
    pub to: u32,
    /// Index of the send in the whole schedule; it identifies the message.
    pub op: u32,
    /// Message of the send.
    pub message_kind: MessageKind,
    /// Processor that sends.
    pub cpu: u16,
    /// Interface that sends.
    pub nic: u16,
    /// Bytes of this message; 1 for RTS and CTS.
    pub size: u64,
    /// Tag; meaningless in CTS and data messages.
    pub tag: u64,
    /// Time at which the processor began.
    pub start: Picos,
    /// Time added by noise.
    pub noise: Picos,
    /// o; o_s where the overheads of the two ends differ.
    pub overhead: Picos,
    /// (s − 1)·O, of the sender.
    pub overhead_bytes: Picos,
    /// o_r, of the receiver.
    pub receive_overhead: Picos,
    /// (s − 1)·O_r, of the receiver.
    pub receive_overhead_bytes: Picos,
    /// g.
    pub gap: Picos,
    /// (s − 1)·G.
    pub gap_bytes: Picos,
    /// Arrival time of the first byte.
    pub arrival: Picos,
}

/// Event: the receiver has handled a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handled {
    /// Rank that received.
    pub rank: u32,
    /// Rank that sent.
    pub from: u32,
    /// Index of the send in the whole schedule.
    pub op: u32,
    /// Message of the send.
    pub message_kind: MessageKind,
    /// Time at which the sender began to send it.
    pub sent: Picos,
    /// Arrival time of the first byte; on a network, as if the message had its links for itself.
    pub arrival: Picos,
    /// Processor that received.
    pub cpu: u16,
    /// Interface that received.
    pub nic: u16,
    /// Time at which the interface took the message.
    pub taken: Picos,
    /// Time at which the processor began to handle it.
    pub start: Picos,
    /// Time for which the processor was held, without noise.
    pub held: Picos,
    /// Time added by noise.
    pub noise: Picos,
    /// Time at which the message was completely received and handled.
    pub done: Picos,
}

/// Event: a message and a receive are matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Matched {
    /// Rank of the receive.
    pub rank: u32,
    /// Index of the send in the whole schedule.
    pub send: u32,
    /// Index of the receive in the whole schedule.
    pub receive: u32,
    /// Time of the match.
    pub time: Picos,
    /// True if the message was handled before the receive was posted.
    pub unexpected: bool,
}

/// Kind of event on a rank.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Turn {
    /// A calculation.
    Calculation,
    /// A send, or a CTS or data message, leaves.
    Send,
    /// A receive is posted or takes an unexpected message.
    Receive,
    /// An interface takes a message, or a processor handles it. If the processor or interface of
    /// the matching receive is busy, the message waits again, and neither is reported.
    Message,
}

/// Event: an operation, or the handling of a message, begins on a rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Begun {
    /// Rank of the event.
    pub rank: u32,
    /// Index of the operation in the whole schedule; for a message, of its send.
    pub op: u32,
    /// Kind of the event.
    pub turn: Turn,
    /// Time of the event.
    pub time: Picos,
}

/// Event: a dependency is fulfilled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Satisfied {
    /// Rank of both operations.
    pub rank: u32,
    /// Index of the waiting operation in the whole schedule.
    pub op: u32,
    /// Index of the operation that it waited for, in the whole schedule.
    pub on: u32,
    /// True if the dependency is on its end, false if on its start.
    pub end: bool,
}

/// Event: an operation, or the next message of a handshake, becomes ready and waits for its turn on
/// its rank. Reported in the order of stamps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Released {
    /// Rank on which it waits.
    pub rank: u32,
    /// Index of the operation in the whole schedule.
    pub op: u32,
    /// Processor of the operation; for a CTS, that of the receive.
    pub cpu: u16,
}

/// Event: the last byte of a message has crossed a network with shared links.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Arrived {
    /// Rank that receives.
    pub rank: u32,
    /// Index of the send in the whole schedule.
    pub op: u32,
    /// Arrival time.
    pub time: Picos,
}

/// Event: an interface has taken a message; the processor may still be busy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Taken {
    /// Rank that receives.
    pub rank: u32,
    /// Index of the send in the whole schedule.
    pub op: u32,
    /// Interface that received.
    pub nic: u16,
    /// Time at which it took the message.
    pub time: Picos,
}

/// Event: a match ends a send above the eager limit. The sender's processor and interface were
/// blocked until now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Resumed {
    /// Rank that sends.
    pub rank: u32,
    /// Index of the send in the whole schedule.
    pub op: u32,
    /// Processor that is released.
    pub cpu: u16,
    /// Interface that is released.
    pub nic: u16,
    /// Time of the match.
    pub time: Picos,
}

/// Event of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Observed<'e> {
    /// Start of an event.
    Begun(&'e Begun),
    /// Fulfilled dependency.
    Satisfied(&'e Satisfied),
    /// Operation that became ready.
    Released(&'e Released),
    /// Message that crossed a network.
    Arrived(&'e Arrived),
    /// Message taken by an interface.
    Taken(&'e Taken),
    /// Send above the eager limit, ended by its match.
    Resumed(&'e Resumed),
    /// Calculation.
    Calculated(&'e Calculated),
    /// Message sent.
    Sent(&'e Sent),
    /// Message handled.
    Handled(&'e Handled),
    /// Message matched with a receive.
    Matched(&'e Matched),
}

/// Receiver of a run's events, in the order of execution. In [windows](super::windows) each
/// partition reports its own, in order for each rank.
///
/// The cause of a delay follows from the events: an event begins as soon as the dependencies that
/// were [`Satisfied`], the processor and interface that it names, and the arrival of its message
/// allow.
pub trait Observer {
    /// Takes note of an event.
    fn observe(&mut self, event: Observed<'_>);
}

/// No observer; compiled to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    #[inline]
    fn observe(&mut self, _event: Observed<'_>) {}
}

/// An optional observer.
impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn observe(&mut self, event: Observed<'_>) {
        if let Some(observer) = self {
            observer.observe(event);
        }
    }
}

/// A pair of observers, called one after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn observe(&mut self, event: Observed<'_>) {
        self.0.observe(event);
        self.1.observe(event);
    }
}

/// Noise from one trace, which each rank replays from its own phase.
#[derive(Clone, Copy, Debug)]
pub struct TraceNoise<'a> {
    /// Trace of detours.
    pub trace: Trace<'a>,
    /// Phase of each rank in the trace.
    pub phases: Phases,
    /// Number of each rank by which it has its phase; that of the rank where it has none.
    pub names: &'a [u32],
}

impl Noise for TraceNoise<'_> {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        let rank = self.names.get(rank as usize).copied().unwrap_or(rank);
        self.trace.lost(self.phases.of(rank, self.trace.length()), start, length)
    }
}
