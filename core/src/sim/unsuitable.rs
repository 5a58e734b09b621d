//! Reasons why only the engine in global order can run a schedule.

use crate::worded::errors;

errors! {
    /// Reason why a schedule has to run in global order.
    pub enum Unsuitable {
        /// o + L is 0, so there is no lookahead.
        NoLookahead => "o + L is 0";
        /// Ranks have several processors or interfaces.
        Units => "ranks have several processors or interfaces";
        /// A message is above the eager limit, and its sender resumes at the instant of the match.
        Rendezvous {
            /// Size of the message, bytes.
            size: u64,
        } => "senders of messages above the eager limit, as those of {size} bytes, go on at \
                     the instant of the match";
        /// A message has 2³² bytes or more.
        Long {
            /// Size of the message, bytes.
            size: u64,
        } => "messages of {size} bytes are longer than 4 GiB";
        /// There are 2³⁰ operations or more, or 2²³ on one rank.
        TooManyOps => "there are 2^30 operations or more, or 2^23 on one rank";
    }
}
