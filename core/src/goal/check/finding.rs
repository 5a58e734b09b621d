//! Findings of a check of a schedule.

use core::fmt;

use super::order::Cycle;
use crate::goal::lookup::OpIndex;
use crate::goal::op::{ANY, ANY_TAG};
use crate::worded::worded;

worded! {
    /// Error or possible error of a schedule.
    pub enum Finding {
        /// A send or receive names a rank that does not exist.
        PeerOutOfRange {
            /// Operation with this peer.
            place: OpIndex,
            /// Rank that it names.
            peer: u32,
            /// Number of ranks.
            ranks: u32,
        } => "peer {peer} does not exist: there are {ranks} ranks";
        /// Operations wait for each other in a cycle and never run.
        Cycle {
            /// First operation of the cycle.
            place: OpIndex,
            /// The cycle.
            cycle: Cycle,
            /// Number of operations that never run because of this or another cycle of the rank.
            blocked: u32,
        } => "{cycle}; {blocked} never run";
        /// The numbers of sends and receives differ.
        Unmatched {
            /// An unpaired send or receive.
            place: OpIndex,
            /// Envelope of the messages.
            messages: Envelope,
            /// Number of sends.
            sends: u32,
            /// Number of receives.
            receives: u32,
            /// Certain, or possible depending on the order in which wildcards take messages.
            certainty: Certainty,
        } => "{}{messages}: {sends} sent, {receives} received",
            certainty.before("possibly unmatched: ");
        /// A send and the receive that matches it have different sizes.
        SizeMismatch {
            /// The send and its size, bytes.
            send: (OpIndex, u64),
            /// The receive and its size, bytes.
            receive: (OpIndex, u64),
            /// Envelope of the messages.
            messages: Envelope,
            /// Certain, or possible depending on the order of the messages.
            certainty: Certainty,
        } => "{}{messages}: operation {} of rank {} sends {} B, this receives {} B",
            certainty.before("possibly: "), send.0.op, send.0.rank, send.1, receive.1;
        /// A receive with a wildcard tag can take a message of a collective operation, for which
        /// another receive then waits.
        TakesCollective {
            /// The receive with the wildcard tag.
            place: OpIndex,
            /// Envelope of the collective's message.
            messages: Envelope,
            /// The receive that waits for it.
            instead_of: OpIndex,
        } => "this receive with any tag can take a collective's message, for which operation {} \
                 waits ({messages}): give it a tag", instead_of.op;
    }
}

/// Envelope of messages, as receives distinguish them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Envelope {
    /// Sending rank; [`ANY`] for all.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// Tag; [`ANY_TAG`] for all.
    pub tag: u64,
}

/// Certainty of a finding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Certainty {
    /// It occurs in every run.
    Certain,
    /// It occurs in some runs or none, depending on times.
    Possible,
}

impl Certainty {
    /// `doubt` before what is not certain.
    const fn before(self, doubt: &'static str) -> &'static str {
        match self {
            Self::Certain => "",
            Self::Possible => doubt,
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Severity {
    /// It may be intended, or depend on times.
    Warning,
    /// The schedule cannot complete as written, or truncates messages.
    Error,
}

impl Finding {
    /// Severity of the finding. A receive larger than its message is a warning, because it is legal
    /// in MPI.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::PeerOutOfRange { .. } | Self::Cycle { .. } => Severity::Error,
            Self::Unmatched { certainty: Certainty::Certain, .. } => Severity::Error,
            Self::SizeMismatch { send, receive, certainty: Certainty::Certain, .. }
                if send.1 > receive.1 =>
            {
                Severity::Error
            }
            Self::Unmatched { .. } | Self::SizeMismatch { .. } | Self::TakesCollective { .. } => {
                Severity::Warning
            }
        }
    }

    /// Operation concerned.
    #[must_use]
    pub const fn place(&self) -> OpIndex {
        match self {
            Self::PeerOutOfRange { place, .. }
            | Self::Cycle { place, .. }
            | Self::Unmatched { place, .. }
            | Self::TakesCollective { place, .. } => *place,
            Self::SizeMismatch { receive, .. } => receive.0,
        }
    }
}

impl fmt::Display for OpIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, operation {}", self.rank, self.op)
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            ANY => f.write_str("messages from any rank")?,
            from => write!(f, "messages from rank {from}")?,
        }
        write!(f, " to rank {}", self.to)?;
        match self.tag {
            ANY_TAG => f.write_str(" with any tag"),
            tag => write!(f, " with tag {tag}"),
        }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operations wait for each other: ")?;
        for op in self.ops() {
            write!(f, "{op} -> ")?;
        }
        if self.length() as usize > self.ops().len() {
            write!(f, "... ({} in all) -> ", self.length())?;
        }
        write!(f, "{}", self.ops().first().copied().unwrap_or(0))
    }
}
