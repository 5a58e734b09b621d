//! Why a program was not run, or not to its end.

use core::fmt;

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
    /// A part of the lent memory is smaller than [`Needs`](super::Needs) says.
    Memory,
    /// The program sends to a rank that does not exist.
    Peer {
        /// The rank that sends.
        rank: u32,
        /// The rank it sends to.
        peer: u32,
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
            Self::Memory => f.write_str("the memory lent is smaller than needed"),
            Self::Peer { rank, peer } => {
                write!(f, "rank {rank} sends to rank {peer}, which does not exist")
            }
            Self::Unreceived { messages } => write!(f, "{messages} messages were never received"),
            Self::Waiting { receives } => write!(f, "{receives} receives never got a message"),
        }
    }
}

impl core::error::Error for ImplicitError {}
