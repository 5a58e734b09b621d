//! What only the engine that goes event by event can run.

use core::fmt;

/// Why a schedule has to run event by event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Unsuitable {
    /// o + L is 0, so that nothing can be simulated ahead of the rest.
    NoLookahead,
    /// Ranks have several processors or interfaces.
    Units,
    /// A message is longer than the eager limit, so that its sender goes on
    /// at the instant at which its receiver does.
    Rendezvous {
        /// Its bytes.
        size: u64,
    },
    /// A message has 2³² bytes or more.
    Long {
        /// Its bytes.
        size: u64,
    },
    /// There are 2³⁰ operations or more, or 2²³ on one rank.
    TooManyOps,
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLookahead => f.write_str("o + L is 0"),
            Self::Units => f.write_str("ranks have several processors or interfaces"),
            Self::Rendezvous { size } => {
                write!(
                    f,
                    "senders of messages above the eager limit, as those of {size} bytes, go on at \
                     the instant of the match"
                )
            }
            Self::Long { size } => write!(f, "messages of {size} bytes are longer than 4 GiB"),
            Self::TooManyOps => {
                f.write_str("there are 2^30 operations or more, or 2^23 on one rank")
            }
        }
    }
}

impl core::error::Error for Unsuitable {}
