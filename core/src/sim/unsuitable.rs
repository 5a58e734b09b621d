//! What only the engine that goes event by event can run.

use crate::worded::errors;

errors! {
    /// Why a schedule has to run event by event.
    pub enum Unsuitable {
        /// o + L is 0, so that nothing can be simulated ahead of the rest.
        NoLookahead => "o + L is 0";
        /// Ranks have several processors or interfaces.
        Units => "ranks have several processors or interfaces";
        /// A message is longer than the eager limit, so that its sender goes on
        /// at the instant at which its receiver does.
        Rendezvous {
            /// Its bytes.
            size: u64,
        } => "senders of messages above the eager limit, as those of {size} bytes, go on at \
                     the instant of the match";
        /// A message has 2³² bytes or more.
        Long {
            /// Its bytes.
            size: u64,
        } => "messages of {size} bytes are longer than 4 GiB";
        /// There are 2³⁰ operations or more, or 2²³ on one rank.
        TooManyOps => "there are 2^30 operations or more, or 2^23 on one rank";
    }
}
