//! Posting sends and the writes that say what was consumed, and reaping their
//! completions.

use std::thread;

use loggap_core::wire::MAGIC;

use super::error::FLUSHED;
use super::link::{LOOKS_BEFORE_ASKING, VerbsLink};
use super::settings::Operation;
use super::station::{
    CONSUMED_BY_PEER, CONSUMED_HERE, EMPTY, ESCAPED_BY_PEER, ESCAPED_HERE, PAYLOAD,
};
use crate::link::{LinkError, Waiting};
use crate::machine::clock::Deadline;
use crate::sys::verbs::{Completion, Source, Verb, Work};

/// Looks in a row that found nothing before the same, where the processor is given
/// away after each.
const YIELDS_BEFORE_ASKING: u32 = 1 << 8;

/// Whether the parts of a post are timed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timing {
    /// Of a message of a round, where the link was asked to.
    WhereAsked,
    /// Of what the link itself has to say, and of control frames.
    Never,
}

/// Most work requests of one message: itself and the word about its last byte.
const REQUESTS_OF_A_MESSAGE: u64 = 2;

impl VerbsLink {
    /// Whether the send queue takes `count` more requests.
    #[inline]
    pub(super) const fn has_entries(&self, count: u64) -> bool {
        self.posted - self.completed + count <= self.capacity
    }

    /// Whether one more message finds a place at both ends.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        if !self.has_entries(REQUESTS_OF_A_MESSAGE) {
            return false;
        }
        let under_way = match self.operation {
            Operation::Read => return true,
            // Its place is free when the device has sent it.
            Operation::Datagram => self.posted - self.completed,
            _ => {
                let consumed = self.queue.memory().number(CONSUMED_BY_PEER);
                // Counts modulo 2³².
                #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
                let sent = self.sent as u32;
                u64::from(sent.wrapping_sub(consumed))
            }
        };
        under_way < self.layout.depth as u64
    }

    /// Waits until [`Self::has_room`]. The peer may be waiting for room, too: it is
    /// told of what was consumed before, where that is due.
    #[cold]
    pub(super) fn wait_for_room(&mut self) -> Result<(), LinkError> {
        self.prepare()?;
        self.wait_until(Self::has_room)
    }

    /// Looks at sends that are over, one at a time, until what is waited for is so;
    /// for no longer than the link's limit, nor than the peer lives.
    #[cold]
    fn wait_until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.settings.limit);
        let mut looks = 0_u32;
        loop {
            if is_so(self) {
                return Ok(());
            }
            if self.reap_one()? {
                continue;
            }
            looks = looks.wrapping_add(1);
            let blocks = self.settings.waiting == Waiting::Block;
            let asks = if blocks { YIELDS_BEFORE_ASKING } else { LOOKS_BEFORE_ASKING };
            if looks.is_multiple_of(asks) {
                if self.peer_has_closed()? {
                    return Err(LinkError::Closed { peer: self.peer.clone() });
                }
                if deadline.expired() {
                    let limit = self.settings.limit;
                    return Err(LinkError::Stuck { peer: self.peer.clone(), limit });
                }
            }
            if blocks {
                thread::yield_now();
            }
        }
    }

    /// Sends a message for which there is room.
    #[inline(always)]
    pub(super) fn send_now(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let length = message.len();
        let is_inline = length <= self.inline;
        let is_payload = self.in_session && is_of_a_round(message);
        let place = self.layout.incoming(self.sent);
        let (verb, to) = match self.operation {
            // The last byte is the last of its place, which the peer polls.
            Operation::Write if !is_payload && message.last() == Some(&EMPTY) => {
                return self.send_escaped(message);
            }
            Operation::Write => (Verb::Write, place + self.layout.slot_bytes - length),
            Operation::WriteImmediate => {
                (Verb::WriteImmediate(u32::try_from(length).unwrap_or(u32::MAX)), place)
            }
            _ => (Verb::Send, place),
        };
        let source = if is_payload {
            // The message before it has arrived if it began otherwise: a round ends
            // with its reply.
            self.queue.memory().set_byte(PAYLOAD, message.first().copied().unwrap_or_default());
            match is_inline {
                true => Source::Copied { offset: PAYLOAD, length },
                false => Source::Memory { offset: PAYLOAD, length },
            }
        } else if is_inline {
            Source::Inline(message)
        } else {
            let offset = self.layout.outgoing(self.sent);
            if !self.queue.memory().write(offset, message) {
                return Err(self.too_long(length));
            }
            Source::Memory { offset, length }
        };
        let timing = if is_frame(message) { Timing::Never } else { Timing::WhereAsked };
        self.post(("send", timing), verb, to, source)?;
        self.sent += 1;
        Ok(())
    }

    /// Writes a message whose last byte is what an empty place ends with: with
    /// another one, and with a word about that before it, which arrives first.
    #[cold]
    fn send_escaped(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let number = Self::escape(self.sent);
        let (from, length) = (ESCAPED_HERE, number.len());
        self.queue.memory().write(from, &number);
        self.signal_next();
        let word = Source::Memory { offset: from, length };
        self.post(("send", Timing::Never), Verb::Write, ESCAPED_BY_PEER, word)?;
        let offset = self.layout.outgoing(self.sent);
        let place = self.layout.incoming(self.sent) + self.layout.slot_bytes - message.len();
        let memory = self.queue.memory();
        if !memory.write(offset, message) {
            return Err(self.too_long(message.len()));
        }
        memory.set_byte(offset + message.len() - 1, !EMPTY);
        self.signal_next();
        let source = Source::Memory { offset, length: message.len() };
        self.post(("send", Timing::Never), Verb::Write, place, source)?;
        self.sent += 1;
        // The word's place is free for the next one then.
        self.wait_until(|link| link.completed >= link.posted)
    }

    /// The word about message `index`; 0 is about none.
    pub(super) const fn escape(index: u64) -> [u8; 4] {
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let number = (index as u32).wrapping_add(1);
        number.to_le_bytes()
    }

    /// Tells the peer how many messages were consumed.
    #[cold]
    pub(super) fn tell_consumed(&mut self) -> Result<(), LinkError> {
        self.free_consumed()?;
        if !self.has_entries(1) {
            self.wait_until(|link| link.has_entries(1))?;
        }
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let bytes = (self.consumed as u32).to_le_bytes();
        let source = if bytes.len() <= self.inline {
            Source::Inline(&bytes)
        } else {
            // What the device has not fetched yet is overwritten by what is true, too.
            self.queue.memory().write(CONSUMED_HERE, &bytes);
            Source::Memory { offset: CONSUMED_HERE, length: bytes.len() }
        };
        let what = ("telling what was consumed", Timing::Never);
        self.post(what, Verb::Write, CONSUMED_BY_PEER, source)?;
        self.returned = self.consumed;
        Ok(())
    }

    /// Posts a work request that acts on the peer's memory at `offset`.
    #[inline(always)]
    pub(super) fn post(
        &mut self,
        (action, timing): (&'static str, Timing),
        verb: Verb,
        offset: usize,
        source: Source<'_>,
    ) -> Result<(), LinkError> {
        self.signal.1 -= 1;
        let signalled = self.signal.1 == 0 || self.calls.is_some();
        if signalled {
            self.signal.1 = self.signal.0;
        }
        let work = Work {
            verb,
            remote_address: self.remote.0.wrapping_add(offset as u64),
            remote_key: self.remote.1,
            id: self.posted + 1,
            signalled,
        };
        let Self { queue, calls, .. } = self;
        let posted = match calls {
            Some(calls) if timing == Timing::WhereAsked => {
                calls.post(|built| queue.post(&work, source, built))
            }
            _ => queue.post(&work, source, || ()),
        };
        match posted {
            Ok(()) => {
                self.posted += 1;
                Ok(())
            }
            Err(source) => Err(self.failed(action, source)),
        }
    }

    /// The next request gets a completion.
    pub(super) fn signal_next(&mut self) {
        self.signal.1 = 1;
    }

    /// Looks at all sends that are over.
    #[inline]
    pub(super) fn reap(&mut self) -> Result<(), LinkError> {
        while self.reap_one()? {}
        Ok(())
    }

    /// Looks at sends that are over where many are not known to be: at two at most,
    /// so that no send pays for all of those before it.
    #[inline(always)]
    pub(super) fn reap_some(&mut self) -> Result<(), LinkError> {
        let many = match self.operation {
            Operation::Datagram => self.layout.depth as u64 / 2,
            _ => self.capacity / 2,
        };
        if self.posted - self.completed >= many && self.reap_one()? {
            self.reap_one()?;
        }
        Ok(())
    }

    /// Whether a send that gets a completion is not known to be over.
    #[inline(always)]
    pub(super) fn expects_completion(&self) -> bool {
        self.posted - self.completed >= u64::from(self.signal.0)
    }

    /// Looks at one send that is over; false where there is none.
    #[inline(always)]
    pub(super) fn reap_one(&mut self) -> Result<bool, LinkError> {
        let Self { queue, calls, .. } = self;
        let found = match calls {
            None => queue.poll_sent(),
            Some(calls) => calls.poll(|| queue.poll_sent()),
        };
        match found {
            Ok(None) => Ok(false),
            Ok(Some(Completion { id, error: None, .. })) => {
                self.completed = id;
                Ok(true)
            }
            Ok(Some(Completion { error: Some(error), .. })) => Err(self.send_ended(error)),
            Err(source) => Err(self.failed("polling for completions", source)),
        }
    }

    /// A send failed. Where it was flushed only, a receive may have failed
    /// before.
    #[cold]
    fn send_ended(&mut self, error: (u32, u32)) -> LinkError {
        if error.0 == FLUSHED {
            while let Ok(Some(arrived)) = self.queue.poll_received() {
                if let Some(cause) = arrived.error.filter(|cause| cause.0 != FLUSHED) {
                    return self.ended("a receive", cause);
                }
            }
        }
        self.ended("a message to it", error)
    }
}

/// Whether nobody looks at `message`, of a session, beyond its first byte, see
/// [`Link::begin_session`](loggap_core::measure::Link::begin_session): it is sent
/// from the filling, as a round's buffer may hold what a frame left there. One byte
/// alone is sent as it is.
#[inline]
fn is_of_a_round(message: &[u8]) -> bool {
    message.len() > 1 && !is_frame(message)
}

/// Whether `message`, of a session, is a control frame.
#[inline]
fn is_frame(message: &[u8]) -> bool {
    message.first() == MAGIC.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_frame_left_in_a_buffer_is_not_sent_in_a_round() {
        let mut buffer = [EMPTY; 8];
        buffer[..4].copy_from_slice(&MAGIC);
        assert!(!is_of_a_round(&buffer), "a frame is sent as it is");
        // The tag of a round over the frame, whose last byte would be escaped.
        buffer[0] = 5;
        assert!(is_of_a_round(&buffer) && is_of_a_round(&buffer[..2]));
        assert!(!is_of_a_round(&buffer[..1]));
    }
}
