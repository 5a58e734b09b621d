//! What can be found wrong with a schedule before it runs.

use core::fmt;

use super::order::Cycle;
use crate::goal::op::{ANY, ANY_TAG};

/// Something wrong with a schedule, or possibly wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Finding {
    /// A send or receive names a rank that does not exist.
    PeerOutOfRange {
        /// Where.
        place: Place,
        /// The rank it names.
        peer: u32,
        /// How many ranks there are.
        ranks: u32,
    },
    /// Operations wait for each other in a cycle and never run.
    Cycle {
        /// The first of them.
        place: Place,
        /// All of them.
        cycle: Cycle,
        /// Operations that never run because of this cycle or another one
        /// of the rank.
        blocked: u32,
    },
    /// There are not as many sends as receives.
    Unmatched {
        /// An operation too many.
        place: Place,
        /// Which messages.
        messages: Envelope,
        /// How many sends.
        sends: u32,
        /// How many receives.
        receives: u32,
        /// Whether the order in which wildcards take messages decides.
        certainty: Certainty,
    },
    /// A send and the receive that takes its message name different sizes.
    SizeMismatch {
        /// The send.
        send: (Place, u64),
        /// The receive.
        receive: (Place, u64),
        /// Which messages.
        messages: Envelope,
        /// Whether the order of the messages decides.
        certainty: Certainty,
    },
    /// A receive with any tag can take a message of a collective operation, which another
    /// receive then waits for.
    TakesCollective {
        /// The receive with any tag.
        place: Place,
        /// The collective's message.
        messages: Envelope,
        /// The receive that waits for it.
        instead_of: Place,
    },
}

/// An operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Place {
    /// Its rank.
    pub rank: u32,
    /// Its index in the rank, from 0.
    pub op: u32,
}

/// Messages that a receive can tell apart from others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Envelope {
    /// Sending rank, [`ANY`] for all.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// Tag, [`ANY`] for all.
    pub tag: u64,
}

/// Whether something is wrong in every run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Certainty {
    /// In every run.
    Certain,
    /// In some runs, or none: it depends on times.
    Possible,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Severity {
    /// It may be meant, or depend on times.
    Warning,
    /// The schedule cannot run to its end as written, or cuts messages off.
    Error,
}

impl Finding {
    /// How bad it is. A receive larger than its message is a warning: in MPI
    /// it is legal.
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

    /// An operation that has to do with it.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::PeerOutOfRange { place, .. }
            | Self::Cycle { place, .. }
            | Self::Unmatched { place, .. }
            | Self::TakesCollective { place, .. } => *place,
            Self::SizeMismatch { receive, .. } => receive.0,
        }
    }
}

impl fmt::Display for Place {
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

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerOutOfRange { peer, ranks, .. } => {
                write!(f, "peer {peer} does not exist: there are {ranks} ranks")
            }
            Self::Cycle { cycle, blocked, .. } => write_cycle(f, cycle, *blocked),
            Self::Unmatched { messages, sends, receives, certainty, .. } => {
                let possibly = match certainty {
                    Certainty::Certain => "",
                    Certainty::Possible => "possibly unmatched: ",
                };
                write!(f, "{possibly}{messages}: {sends} sent, {receives} received")
            }
            Self::TakesCollective { messages, instead_of, .. } => write!(
                f,
                "this receive with any tag can take a collective's message, for which operation {} \
                 waits ({messages}): give it a tag",
                instead_of.op
            ),
            Self::SizeMismatch { send, receive, messages, certainty } => {
                let possibly = match certainty {
                    Certainty::Certain => "",
                    Certainty::Possible => "possibly: ",
                };
                write!(
                    f,
                    "{possibly}{messages}: operation {} of rank {} sends {} B, this receives {} B",
                    send.0.op, send.0.rank, send.1, receive.1
                )
            }
        }
    }
}

fn write_cycle(f: &mut fmt::Formatter<'_>, cycle: &Cycle, blocked: u32) -> fmt::Result {
    f.write_str("operations wait for each other: ")?;
    for op in cycle.ops() {
        write!(f, "{op} -> ")?;
    }
    if cycle.length() as usize > cycle.ops().len() {
        write!(f, "... ({} in all) -> ", cycle.length())?;
    }
    write!(f, "{}; {blocked} never run", cycle.ops().first().copied().unwrap_or(0))
}
