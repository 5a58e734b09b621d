//! Errors of a computed schedule.

use crate::sim::outcome::SimError;
use crate::worded::errors;

errors! {
    /// Reason why a program could not be run, or not to the end.
    pub enum ImplicitError {
        /// A time exceeds 2⁶⁴ ps, too many operations become ready at once, or the network is full.
        Stopped(error: SimError) => "{error}";
        /// o + L is 0, so there is no lookahead.
        NoLookahead => "with o + L = 0 a pattern cannot be computed; take a stored schedule";
        /// Messages of this size are above the eager limit.
        Rendezvous {
            /// Size, bytes.
            size: u64,
        } => "messages of {size} bytes are above the eager limit; take a stored schedule";
        /// The messages use several protocols or levels of nearness.
        Protocols => "the messages are of several protocols or levels; take a stored schedule";
        /// More messages and operations are waiting than there are nodes.
        Nodes {
            /// Number of nodes lent.
            lent: usize,
        } => "more than {lent} messages and operations wait; lend more nodes";
        /// Parts send each other more messages in a window than the mail can hold.
        Mail => "more messages are sent at a time than the mail has room for";
        /// A part of the lent memory is smaller than its [`Requirements`](super::Requirements).
        Memory => "the memory lent is smaller than needed";
        /// The program sends to a rank that does not exist.
        Peer {
            /// Rank that sends.
            rank: u32,
            /// Rank that does not exist.
            peer: u32,
        } => "rank {rank} sends to rank {peer}, which does not exist";
        /// Messages were left without a receive.
        Unreceived {
            /// Number of messages.
            messages: u64,
        } => "{messages} messages were never received";
        /// Receives were left without a message.
        Waiting {
            /// Number of receives.
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
    /// True if the program can be run as a stored schedule.
    #[must_use]
    pub const fn wants_storing(&self) -> bool {
        matches!(self, Self::NoLookahead | Self::Rendezvous { .. } | Self::Protocols)
    }

    /// The error with `rank` as its cause.
    pub(super) const fn on(self, rank: u32) -> Self {
        match self {
            Self::Stopped(error) => Self::Stopped(error.on(rank)),
            other => other,
        }
    }
}
