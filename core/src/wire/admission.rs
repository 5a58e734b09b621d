//! Challenge against forged source addresses.

use super::{Hello, Refusal, Versions};

/// Decision about a hello.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Admission {
    /// The session opens, with this version.
    Accepted(u8),
    /// The sender has to echo this nonce first, which proves that it receives at its source
    /// address.
    Challenged(u64),
    /// Both ends have no version in common.
    Refused(Refusal),
}

impl Hello {
    /// Decides about a hello that has to carry one of `nonces`, the newest first. These are
    /// unpredictable, and sent to no other address; without any, the address counts as verified.
    #[must_use]
    pub fn admission(&self, nonces: &[u64]) -> Admission {
        let (initiator, responder) = (self.versions, Versions::OURS);
        match (initiator.newest_common(responder), nonces.first()) {
            (None, _) => Admission::Refused(Refusal::Version { initiator, responder }),
            (_, Some(&newest)) if !nonces.contains(&self.nonce) => Admission::Challenged(newest),
            (Some(version), _) => Admission::Accepted(version),
        }
    }
}
