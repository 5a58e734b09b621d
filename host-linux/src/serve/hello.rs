//! Hellos on datagram links, whose source address may be spoofed.

use std::hash::{Hash, Hasher};
use std::io;
use std::time::Duration;

use loggap_core::wire::{Admission, FRAME_LEN, Message, Request};
use siphasher::sip::SipHasher24;

use crate::machine::clock::Deadline;

/// Verifies that the sender of a hello receives at its source address: only then can it echo the
/// nonce sent there. The nonce is a keyed hash of the address, so no state is kept for unverified
/// senders.
#[derive(Debug)]
pub(super) struct HelloVerifier {
    /// Current and previous key of the nonces.
    keys: [[u8; 16]; 2],
    /// Expiry of the current key.
    renewal: Deadline,
}

impl HelloVerifier {
    /// Lifetime of a key; its nonces stay valid for as long again.
    const RENEWAL: Duration = Duration::from_secs(20);

    pub(super) fn new() -> io::Result<Self> {
        let keys = [random_key()?, random_key()?];
        Ok(Self { keys, renewal: Deadline::after(Self::RENEWAL) })
    }

    /// Decides about a datagram from `address`; `None` if it is no hello. Answers are as long as the
    /// datagram, so the listener amplifies no attack.
    pub(super) fn judge(&mut self, address: &impl Hash, datagram: &[u8]) -> Option<Admission> {
        let Ok(Request::Hello(hello)) = Request::parse(datagram) else { return None };
        if self.renewal.expired()
            && let Ok(key) = random_key()
        {
            self.keys = [key, self.keys[0]];
            self.renewal = Deadline::after(Self::RENEWAL);
        }
        Some(hello.admission(&self.keys.map(|key| nonce(&key, address))))
    }
}

/// Encodes a control frame.
pub(super) fn frame(message: &Message) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame
}

fn random_key() -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// Nonce for `address`; never 0, which means none.
fn nonce(key: &[u8; 16], address: &impl Hash) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    address.hash(&mut hasher);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::wire::{Bounds, Hello, Refusal, VERSION, Versions};

    fn hello(nonce: u64, versions: Versions) -> [u8; FRAME_LEN] {
        let bounds = Bounds::default();
        frame(&Message::Hello(Hello { versions, capabilities: 0, bounds, nonce }))
    }

    /// Nonce of the challenge that answers a hello.
    fn challenged(verifier: &mut HelloVerifier, address: u8, nonce: u64) -> u64 {
        match verifier.judge(&address, &hello(nonce, Versions::OURS)) {
            Some(Admission::Challenged(nonce)) => nonce,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_nonce_is_good_for_the_address_that_it_was_sent_to_and_for_no_other() {
        let mut verifier = HelloVerifier::new().unwrap();
        let nonce = challenged(&mut verifier, 1, 0);
        assert_eq!(challenged(&mut verifier, 1, nonce ^ 1), nonce);
        assert_ne!(challenged(&mut verifier, 2, nonce), nonce);
        let echoed = hello(nonce, Versions::OURS);
        let accepted = Some(Admission::Accepted(VERSION));
        assert_eq!(verifier.judge(&1_u8, &echoed), accepted);
        assert_ne!(HelloVerifier::new().unwrap().judge(&1_u8, &echoed), accepted);
    }

    #[test]
    fn a_nonce_outlives_one_renewal_of_the_key_and_no_second() {
        let mut verifier = HelloVerifier::new().unwrap();
        let nonce = challenged(&mut verifier, 1, 0);
        verifier.renewal = Deadline::after(Duration::ZERO);
        let accepted = Some(Admission::Accepted(VERSION));
        assert_eq!(verifier.judge(&1_u8, &hello(nonce, Versions::OURS)), accepted);
        verifier.renewal = Deadline::after(Duration::ZERO);
        assert_ne!(challenged(&mut verifier, 1, nonce), nonce);
    }

    #[test]
    fn another_version_is_refused_with_both_named() {
        let mut verifier = HelloVerifier::new().unwrap();
        let initiator = Versions { lowest: 1, highest: 1 };
        let refusal = Refusal::Version { initiator, responder: Versions::OURS };
        let admission = verifier.judge(&1_u8, &hello(0, initiator));
        assert_eq!(admission, Some(Admission::Refused(refusal)));
        assert_eq!(verifier.judge(&1_u8, b"GET /"), None);
    }
}
