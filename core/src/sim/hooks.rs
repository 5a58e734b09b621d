//! What a simulation can be given and can tell: noise and observers.

use crate::noise::{Phases, Trace};
use crate::units::Picos;

/// Takes time from operations.
pub trait Noise {
    /// What an operation of `rank` that holds a processor for `length` from
    /// `start` on loses.
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

/// Which message of a send.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MessageKind {
    /// The only one, or none yet.
    #[default]
    Whole,
    /// Of a handshake: asks the receiver.
    Rts,
    /// Of a handshake: tells the sender to go on.
    Cts,
    /// Of a handshake: the data.
    Data,
}

impl MessageKind {
    /// Bytes of the message of a send of `size` bytes.
    #[inline]
    pub(super) const fn bytes(self, size: u64) -> u64 {
        match self {
            Self::Whole | Self::Data => size,
            Self::Rts | Self::Cts => 1,
        }
    }
}

/// A calculation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Calculated {
    /// Its rank.
    pub rank: u32,
    /// The operation, counted over the whole schedule.
    pub op: u32,
    /// Its processor.
    pub cpu: u16,
    /// When it began.
    pub start: Picos,
    /// How long it was meant to take.
    pub work: Picos,
    /// What noise added.
    pub noise: Picos,
}

/// A message leaves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sent {
    /// The rank that sends.
    pub rank: u32,
    /// The rank that the message goes to.
    pub to: u32,
    /// The send, counted over the whole schedule; it names the message.
    pub op: u32,
    /// Which message of the send.
    pub message_kind: MessageKind,
    /// The processor that sends.
    pub cpu: u16,
    /// The interface that sends.
    pub nic: u16,
    /// Bytes; 1 where only the handshake itself is sent.
    pub size: u64,
    /// Tag; meaningless in CTS and data messages.
    pub tag: u64,
    /// When the processor began.
    pub start: Picos,
    /// What noise added.
    pub noise: Picos,
    /// o, that of the sender where the overheads of both ends differ.
    pub overhead: Picos,
    /// (s − 1)·O, as o.
    pub overhead_bytes: Picos,
    /// o of the receiver.
    pub receive_overhead: Picos,
    /// (s − 1)·O of the receiver.
    pub receive_overhead_bytes: Picos,
    /// g.
    pub gap: Picos,
    /// (s − 1)·G.
    pub gap_bytes: Picos,
    /// When the first byte arrives.
    pub arrival: Picos,
}

/// A message has been handled where it arrived.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handled {
    /// The rank that received.
    pub rank: u32,
    /// The rank that sent.
    pub from: u32,
    /// The send, counted over the whole schedule.
    pub op: u32,
    /// Which message of the send.
    pub message_kind: MessageKind,
    /// When its sender began with it.
    pub sent: Picos,
    /// When its first byte arrived; on a network as if it shared no link.
    pub arrival: Picos,
    /// The processor that received.
    pub cpu: u16,
    /// The interface that received.
    pub nic: u16,
    /// When the interface took the message.
    pub taken: Picos,
    /// When the processor began with it.
    pub start: Picos,
    /// How long it was held.
    pub held: Picos,
    /// What noise added.
    pub noise: Picos,
    /// When all of it was there and handled.
    pub done: Picos,
}

/// A message and a receive have met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Matched {
    /// The rank of the receive.
    pub rank: u32,
    /// The send, counted over the whole schedule.
    pub send: u32,
    /// The receive, counted over the whole schedule.
    pub receive: u32,
    /// When.
    pub time: Picos,
    /// Whether the message was there before the receive.
    pub unexpected: bool,
}

/// What begins on a rank.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Turn {
    /// A calculation.
    Calculation,
    /// A send, or a later message of a handshake, leaves.
    Send,
    /// A receive is posted, or finds its message.
    Receive,
    /// An interface takes a message, or a processor handles it. It may have
    /// to wait again, for what its receive names; then neither is told.
    Message,
}

/// An event begins: what an operation or a message waited for has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Begun {
    /// Where.
    pub rank: u32,
    /// The operation, of a message its send; counted over the whole
    /// schedule.
    pub op: u32,
    /// What begins.
    pub turn: Turn,
    /// When.
    pub time: Picos,
}

/// A dependency is fulfilled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Satisfied {
    /// The rank of both operations.
    pub rank: u32,
    /// The operation that waits, counted over the whole schedule.
    pub op: u32,
    /// The operation that it waited for.
    pub on: u32,
    /// Whether for its end, not its start.
    pub end: bool,
}

/// An operation, or the next message of a handshake, is ready: from here on it
/// waits for its turn on its rank. Told in the order of stamps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Released {
    /// The rank on which it waits.
    pub rank: u32,
    /// The operation, counted over the whole schedule.
    pub op: u32,
    /// The processor that it names; of an answer, that of the receive.
    pub cpu: u16,
}

/// A message has come through a network whose links are shared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Arrived {
    /// The rank that receives.
    pub rank: u32,
    /// The send, counted over the whole schedule.
    pub op: u32,
    /// When.
    pub time: Picos,
    /// Whether this is its last byte, as links were charged for the bytes.
    pub whole: bool,
}

/// An interface has taken a message, whose processor may be busy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Taken {
    /// The rank that receives.
    pub rank: u32,
    /// The send, counted over the whole schedule.
    pub op: u32,
    /// The interface.
    pub nic: u16,
    /// When.
    pub time: Picos,
}

/// A match ends a send above the eager limit and holds its sender's processor
/// and interface until that instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Resumed {
    /// The sender.
    pub rank: u32,
    /// The send, counted over the whole schedule.
    pub op: u32,
    /// Its processor.
    pub cpu: u16,
    /// Its interface.
    pub nic: u16,
    /// When.
    pub time: Picos,
}

/// Is told what happens, in the order of events; in [windows](super::windows) each
/// partition tells its own, of each rank in the order of its events.
///
/// What delays an event can be told from the causes: an event begins when the
/// dependencies that were [`Satisfied`], the processor and interface that it
/// names, and the arrival of its message allow.
pub trait Observer {
    /// An event begins.
    #[inline]
    fn begun(&mut self, event: &Begun) {
        let _ = event;
    }
    /// A dependency is fulfilled.
    #[inline]
    fn satisfied(&mut self, event: &Satisfied) {
        let _ = event;
    }
    /// An operation is ready.
    #[inline]
    fn released(&mut self, event: &Released) {
        let _ = event;
    }
    /// A message has come through a network.
    #[inline]
    fn arrived(&mut self, event: &Arrived) {
        let _ = event;
    }
    /// An interface has taken a message.
    #[inline]
    fn taken(&mut self, event: &Taken) {
        let _ = event;
    }
    /// A match ends a send above the eager limit.
    #[inline]
    fn resumed(&mut self, event: &Resumed) {
        let _ = event;
    }
    /// A calculation began.
    fn calculated(&mut self, event: &Calculated);
    /// A message left.
    fn sent(&mut self, event: &Sent);
    /// A message was handled.
    fn handled(&mut self, event: &Handled);
    /// A message and a receive met.
    fn matched(&mut self, event: &Matched);
}

/// No observer; compiled to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    #[inline]
    fn calculated(&mut self, _event: &Calculated) {}
    #[inline]
    fn sent(&mut self, _event: &Sent) {}
    #[inline]
    fn handled(&mut self, _event: &Handled) {}
    #[inline]
    fn matched(&mut self, _event: &Matched) {}
}

/// Observers that pass on all that they are told.
macro_rules! pass_on {
    ($($told:ident: $event:ty,)*) => {
        /// One that may be missing.
        impl<O: Observer> Observer for Option<O> {
            $(
                fn $told(&mut self, event: &$event) {
                    if let Some(observer) = self {
                        observer.$told(event);
                    }
                }
            )*
        }

        /// Two, one after the other.
        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(
                fn $told(&mut self, event: &$event) {
                    self.0.$told(event);
                    self.1.$told(event);
                }
            )*
        }
    };
}

pass_on! {
    begun: Begun,
    satisfied: Satisfied,
    released: Released,
    arrived: Arrived,
    taken: Taken,
    resumed: Resumed,
    calculated: Calculated,
    sent: Sent,
    handled: Handled,
    matched: Matched,
}

/// Noise from a trace that every rank runs through from a phase of its own.
#[derive(Clone, Copy, Debug)]
pub struct TraceNoise<'a> {
    /// The trace.
    pub trace: Trace<'a>,
    /// Where in it each rank begins.
    pub phases: Phases,
}

impl Noise for TraceNoise<'_> {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        self.trace.lost(self.phases.of(rank, self.trace.length()), start, length)
    }
}
