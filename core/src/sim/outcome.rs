//! Result of a run, or the reason why it stopped.

use core::fmt;

use super::network::NetworkStopped;
use super::record::NONE;
use crate::units::{Overflow, Picos};
use crate::worded::errors;

errors! {
    /// Reason why a run stopped.
    pub enum SimError {
        /// A time exceeds 2⁶⁴ ps, on this rank or for a message that it sent.
        Overflow {
            /// Rank of the event; `u32::MAX` for a time in the network.
            rank: u32,
        } => "{}", TooLate(*rank);
        /// More than 2³² operations and messages were created at one instant.
        TooManyAtOnce {
            /// The instant.
            time: Picos,
        } => "more than 2^32 operations become ready at {time}";
        /// More messages are under way than the network has memory for; run again with more.
        NetworkFull {
            /// Capacity in messages.
            messages: usize,
        } => "more than {messages} messages are under way; lend the network more memory";
        /// More operations of a [streamed](super::streamed) schedule are under way than there are
        /// records.
        RecordsFull {
            /// Capacity in records.
            records: usize,
        } => "more than {records} operations are under way at once, for which there is no memory";
        /// An operation of a streamed schedule has changed in its file.
        Unreadable {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} is not what it was before the run: another program \
              wrote to the file";
        /// A record or rank that does not exist was written, so the results are wrong.
        Defect => "the simulator wrote beyond its memory; this is a defect, please report it";
    }
}

/// Formats an overflow on a rank or in the network.
struct TooLate(u32);

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NONE => f.write_str(
                "in the network a time passes 2^64 ps (213 days); make messages or parameters \
                 smaller, or links wider",
            ),
            rank => write!(
                f,
                "on rank {rank} a time passes 2^64 ps (213 days); make calculations, messages or \
                 parameters smaller"
            ),
        }
    }
}

impl From<Overflow> for SimError {
    /// The event loop fills in the rank.
    fn from(_: Overflow) -> Self {
        Self::Overflow { rank: NONE }
    }
}

impl From<NetworkStopped> for SimError {
    fn from(stopped: NetworkStopped) -> Self {
        match stopped {
            NetworkStopped::Overflow => Self::Overflow { rank: NONE },
            NetworkStopped::Full { messages } => Self::NetworkFull { messages },
        }
    }
}

/// Result of a complete run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Finished {
    /// Finishing time of the last rank.
    pub makespan: Picos,
    /// Rank that finished last; the lowest of several.
    pub last_rank: u32,
    /// Operations released plus messages created. CTS and data messages count twice: when they
    /// become ready to leave, and when they are sent.
    pub events: u64,
}

impl Finished {
    /// Adds the result of other ranks, which come after these.
    pub fn join(&mut self, other: &Self) {
        self.add(other.last_rank, other.makespan);
        self.events += other.events;
    }

    /// Adds the finishing time of the next rank.
    pub(super) fn add(&mut self, rank: u32, finish: Picos) {
        if finish > self.makespan {
            (self.makespan, self.last_rank) = (finish, rank);
        }
    }
}

impl SimError {
    /// The error with `rank` as its cause.
    pub(super) const fn on(self, rank: u32) -> Self {
        match self {
            Self::Overflow { .. } => Self::Overflow { rank },
            other => other,
        }
    }
}
