//! Why a program was not run, or not to its end.

use core::fmt;

use crate::sim::network::NetworkStopped;
use crate::units::Picos;

/// Why a program was not run, or not to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ImplicitError {
    /// A time past 2⁶⁴ ps on this rank, or on its way from it.
    Overflow {
        /// The rank.
        rank: u32,
    },
    /// o + L is 0, so that no rank can be run ahead of the others.
    NoLookahead,
    /// Messages of this size are above the eager limit.
    Rendezvous {
        /// Bytes.
        size: u64,
    },
    /// The messages are of more than one protocol or level of nearness.
    Protocols,
    /// More messages and operations wait than there are nodes.
    Nodes {
        /// How many were lent.
        lent: usize,
    },
    /// Parts send each other more messages in a window than the mail has room
    /// for.
    Mail,
    /// A part of the lent memory is smaller than [`Needs`](super::Needs) says.
    Memory,
    /// The program sends to a rank that does not exist.
    Peer {
        /// The rank that sends.
        rank: u32,
        /// The rank it sends to.
        peer: u32,
    },
    /// More than 2³² operations and messages were created at one instant.
    TooManyAtOnce {
        /// The instant.
        time: Picos,
    },
    /// In the network a time passes 2⁶⁴ ps.
    NetworkOverflow,
    /// More messages are under way than the network has memory for; run again
    /// with more.
    NetworkFull {
        /// The memory is for so many.
        messages: usize,
    },
    /// The program ends with messages that nobody received.
    Unreceived {
        /// How many.
        messages: u64,
    },
    /// The program ends with receives that no message came for.
    Waiting {
        /// How many.
        receives: u64,
    },
}

impl fmt::Display for ImplicitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { rank } => write!(
                f,
                "on rank {rank} a time passes 2^64 ps (213 days); make calculations, messages or \
                 parameters smaller"
            ),
            Self::NoLookahead => {
                f.write_str("with o + L = 0 a pattern cannot be computed; take a stored schedule")
            }
            Self::Rendezvous { size } => write!(
                f,
                "messages of {size} bytes are above the eager limit; take a stored schedule"
            ),
            Self::Protocols => f.write_str(
                "the messages are of several protocols or levels; take a stored schedule",
            ),
            Self::Nodes { lent } => {
                write!(f, "more than {lent} messages and operations wait; lend more nodes")
            }
            Self::Mail => {
                f.write_str("more messages are sent at a time than the mail has room for")
            }
            Self::Memory => f.write_str("the memory lent is smaller than needed"),
            Self::Peer { rank, peer } => {
                write!(f, "rank {rank} sends to rank {peer}, which does not exist")
            }
            Self::TooManyAtOnce { time } => {
                write!(f, "more than 2^32 operations become ready at {time}")
            }
            Self::NetworkOverflow => f.write_str(
                "in the network a time passes 2^64 ps (213 days); make messages or parameters \
                 smaller, or links wider",
            ),
            Self::NetworkFull { messages } => {
                write!(
                    f,
                    "more than {messages} messages are under way; lend the network more memory"
                )
            }
            Self::Unreceived { messages } => write!(f, "{messages} messages were never received"),
            Self::Waiting { receives } => write!(f, "{receives} receives never got a message"),
        }
    }
}

impl core::error::Error for ImplicitError {}

impl From<NetworkStopped> for ImplicitError {
    fn from(stopped: NetworkStopped) -> Self {
        match stopped {
            NetworkStopped::Overflow => Self::NetworkOverflow,
            NetworkStopped::Full { messages } => Self::NetworkFull { messages },
        }
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
            Self::NetworkOverflow => Self::Overflow { rank },
            other => other,
        }
    }
}
