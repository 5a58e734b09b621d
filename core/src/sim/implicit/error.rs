//! Why a program was not run, or not to its end.

use crate::sim::engine::SimError;
use crate::worded::errors;

errors! {
    /// Why a program was not run, or not to its end.
    pub enum ImplicitError {
        /// A time is past 2⁶⁴ ps, too much happens at once, or the network is full.
        Stopped(error: SimError) => "{error}";
        /// o + L is 0, so that no rank can be run ahead of the others.
        NoLookahead => "with o + L = 0 a pattern cannot be computed; take a stored schedule";
        /// Messages of this size are above the eager limit.
        Rendezvous {
            /// Bytes.
            size: u64,
        } => "messages of {size} bytes are above the eager limit; take a stored schedule";
        /// The messages are of more than one protocol or level of nearness.
        Protocols => "the messages are of several protocols or levels; take a stored schedule";
        /// More messages and operations wait than there are nodes.
        Nodes {
            /// How many were lent.
            lent: usize,
        } => "more than {lent} messages and operations wait; lend more nodes";
        /// Parts send each other more messages in a window than the mail has room
        /// for.
        Mail => "more messages are sent at a time than the mail has room for";
        /// A part of the lent memory is smaller than [`Requirements`](super::Requirements) says.
        Memory => "the memory lent is smaller than needed";
        /// The program sends to a rank that does not exist.
        Peer {
            /// The rank that sends.
            rank: u32,
            /// The rank it sends to.
            peer: u32,
        } => "rank {rank} sends to rank {peer}, which does not exist";
        /// The program ends with messages that nobody received.
        Unreceived {
            /// How many.
            messages: u64,
        } => "{messages} messages were never received";
        /// The program ends with receives that no message came for.
        Waiting {
            /// How many.
            receives: u64,
        } => "{receives} receives never got a message";
    }
}

impl<E: Into<SimError>> From<E> for ImplicitError {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

impl ImplicitError {
    /// Whether the program would run if it were stored.
    #[must_use]
    pub const fn wants_storing(&self) -> bool {
        matches!(self, Self::NoLookahead | Self::Rendezvous { .. } | Self::Protocols)
    }

    /// The same where `rank` is known to have caused it.
    pub(super) const fn on(self, rank: u32) -> Self {
        match self {
            Self::Stopped(error) => Self::Stopped(error.on(rank)),
            other => other,
        }
    }
}
