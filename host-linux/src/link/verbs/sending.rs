//! Posting sends and the writes that say what was consumed, and reaping their
//! completions.

use std::{io, thread};

use super::error::FLUSHED;
use super::link::{LOOKS_BEFORE_ASKING, RemoteMemory, VerbsLink};
use super::settings::Operation;
use super::station::{
    CONSUMED_BY_PEER, CONSUMED_HERE, EMPTY, ESCAPED_BY_PEER, ESCAPED_HERE, TEMPLATE,
};
use crate::link::{LinkError, Waiting};
use crate::machine::clock::Deadline;
use crate::sys::verbs::{Completion, Failure, Source, Verb, Work};

/// As [`LOOKS_BEFORE_ASKING`], of looks after each of which the processor is yielded.
const YIELDS_BEFORE_ASKING: u32 = 1 << 8;

/// Whether the parts of posting a message of a round are timed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timing {
    /// While the link times calls.
    IfRequested,
    /// Never: it does not time calls now.
    Off,
}

impl VerbsLink {
    /// Whether one more message finds a slot at both ends.
    #[inline]
    pub(super) fn has_credit(&self) -> bool {
        self.credits.has_credit(|| self.announced_by_peer())
    }

    /// How many messages the peer says that it has consumed.
    #[inline]
    fn announced_by_peer(&self) -> u32 {
        self.queue.memory().number(CONSUMED_BY_PEER)
    }

    /// Waits until [`Self::has_credit`]. The peer may be waiting for a credit, too: it is
    /// told of what was consumed before, where that is due.
    #[cold]
    pub(super) fn wait_for_credit(&mut self) -> Result<(), LinkError> {
        self.replenish()?;
        self.wait_until(Self::has_credit)
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

    /// Sends a message of a round, of which nobody looks at more than its length and
    /// the first byte, see
    /// [`Link::begin_session`](loggap_core::measure::Link::begin_session): from the
    /// filling, as a round's buffer may hold what a frame left there. All that its
    /// peer waits for is done before, and what can be done once is not done here.
    #[inline(always)]
    pub(super) fn send_of_a_round(
        &mut self,
        (tag, length): (u8, usize),
        timing: Timing,
    ) -> Result<(), LinkError> {
        if !self.credits.has_prechecked() {
            self.find_credits()?;
        }
        if length != self.standing_length {
            self.build_for(length)?;
        }
        // The message before it has arrived if it began otherwise: a round ends with
        // its reply.
        self.queue.memory().set_byte(TEMPLATE, tag);
        let target = match self.operation {
            Operation::Write => Some(self.target_of(length)),
            Operation::WriteImmediate => Some(self.layout.incoming(self.credits.sent)),
            _ => None,
        };
        let address = target.map(|offset| self.remote.address.wrapping_add(offset as u64));
        let head = (self.credits.posted + 1, self.take_signal());
        let Self { queue, calls, .. } = self;
        let posted = match calls {
            Some(calls) if timing == Timing::IfRequested => {
                calls.post(|built| queue.post_again(head, address, built))
            }
            _ => queue.post_again(head, address, || ()),
        };
        if let Err(source) = posted {
            return Err(self.not_posted(source));
        }
        self.credits.post_prechecked();
        Ok(())
    }

    #[cold]
    fn not_posted(&self, source: io::Error) -> LinkError {
        self.failed(if self.operation == Operation::Read { "read" } else { "send" }, source)
    }

    /// Does what the first of some messages of a round would do else, without a wait, and
    /// without a look for completions, in which an error could be found.
    #[inline]
    pub(super) fn prebuild_request(&mut self, length: usize) {
        if length != self.standing_length {
            // An error here comes again at the send.
            let _shows_again = self.build_for(length);
        }
        if !self.credits.has_prechecked() && self.has_credit() {
            self.precheck_credits();
        }
    }

    /// Finds a credit for a message of a round at least, and counts for how many there are.
    #[cold]
    fn find_credits(&mut self) -> Result<(), LinkError> {
        self.obtain_credit()?;
        self.precheck_credits();
        Ok(())
    }

    fn precheck_credits(&mut self) {
        let word = self.announced_by_peer();
        self.credits.precheck(word);
    }

    /// Builds the request of messages of rounds of this length.
    #[cold]
    fn build_for(&mut self, length: usize) -> Result<(), LinkError> {
        if length > self.longest {
            return Err(self.too_long(length));
        }
        let source = match self.operation {
            // Nobody looks at what is read, so that all of it may go to one slot.
            Operation::Read => Source::Memory { offset: self.layout.incoming(0), length },
            _ if length <= self.inline => Source::Copied { offset: TEMPLATE, length },
            _ => Source::Memory { offset: TEMPLATE, length },
        };
        let RemoteMemory { address: start, key: remote_key } = self.remote;
        // Of writes every message has another one.
        let remote_address = start.wrapping_add(TEMPLATE as u64);
        let verb = self.verb_of(length);
        let work = Work { verb, remote_address, remote_key, id: 0, signalled: false };
        self.queue
            .build(&work, source)
            .map_err(|source| self.failed("building a request", source))?;
        self.standing_length = length;
        Ok(())
    }

    /// Sends what is no message of a round, and the messages of rounds whose calls are
    /// timed.
    #[inline(never)]
    pub(super) fn send_otherwise(&mut self, message: &[u8]) -> Result<(), LinkError> {
        if message.len() > self.longest {
            return Err(self.too_long(message.len()));
        }
        // Nobody could see it arrive.
        debug_assert!(!message.is_empty());
        self.obtain_credit()?;
        if self.calls.is_some() {
            self.signal_next();
        }
        match (self.operation, message.first()) {
            (Operation::Read, _) => self.send_one_sided(message),
            (_, Some(&tag)) if self.in_session && is_tag(tag) => {
                self.send_of_a_round((tag, message.len()), Timing::IfRequested)
            }
            _ => self.send_now(message),
        }
    }

    /// Looks at sends that are over, and waits where there is no credit for a message.
    #[inline]
    fn obtain_credit(&mut self) -> Result<(), LinkError> {
        self.reap_some()?;
        match self.has_credit() {
            true => Ok(()),
            false => self.wait_for_credit(),
        }
    }

    /// What the device is asked to do with a message.
    fn verb_of(&self, length: usize) -> Verb {
        match self.operation {
            Operation::Write => Verb::Write,
            Operation::WriteImmediate => {
                Verb::WriteImmediate(u32::try_from(length).unwrap_or(u32::MAX))
            }
            Operation::Read => Verb::Read,
            Operation::Send | Operation::Datagram => Verb::Send,
        }
    }

    /// Where the next message is written to, whose last byte is the last of its slot,
    /// which the peer polls.
    #[inline]
    const fn target_of(&self, length: usize) -> usize {
        self.layout.end_of_incoming(self.credits.sent) - length
    }

    /// Sends a message for which there is a credit, every byte of it.
    pub(super) fn send_now(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let length = message.len();
        let to = match self.operation {
            Operation::Write if message.last() == Some(&EMPTY) => {
                return self.send_escaped(message);
            }
            Operation::Write => self.target_of(length),
            _ => self.layout.incoming(self.credits.sent),
        };
        let source = if length <= self.inline {
            Source::Inline(message)
        } else {
            let offset = self.layout.outgoing(self.credits.sent);
            if !self.queue.memory().write(offset, message) {
                return Err(self.too_long(length));
            }
            Source::Memory { offset, length }
        };
        self.post("send", self.verb_of(length), to, source)?;
        self.credits.sent += 1;
        Ok(())
    }

    /// Writes a message whose last byte is what an empty slot ends with: with
    /// another one, and with a word about that before it, which arrives first.
    #[cold]
    fn send_escaped(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let number = Self::escape(self.credits.sent);
        let (from, length) = (ESCAPED_HERE, number.len());
        self.queue.memory().write(from, &number);
        self.signal_next();
        let word = Source::Memory { offset: from, length };
        self.post("send", Verb::Write, ESCAPED_BY_PEER, word)?;
        let offset = self.layout.outgoing(self.credits.sent);
        let target = self.target_of(message.len());
        let memory = self.queue.memory();
        if !memory.write(offset, message) {
            return Err(self.too_long(message.len()));
        }
        memory.set_byte(offset + message.len() - 1, !EMPTY);
        self.signal_next();
        let source = Source::Memory { offset, length: message.len() };
        self.post("send", Verb::Write, target, source)?;
        self.credits.sent += 1;
        // The memory of that word is free for the next one then.
        self.wait_until(|link| link.credits.under_way() == 0)
    }

    /// The word about message `index`; 0 is about none.
    pub(super) const fn escape(index: u64) -> [u8; 4] {
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let number = (index as u32).wrapping_add(1);
        number.to_le_bytes()
    }

    /// Tells the peer how many messages were consumed.
    #[cold]
    pub(super) fn announce_consumed(&mut self) -> Result<(), LinkError> {
        self.free_consumed()?;
        if !self.credits.has_entries(1) {
            self.wait_until(|link| link.credits.has_entries(1))?;
        }
        let bytes = self.credits.announcement().to_le_bytes();
        let source = if bytes.len() <= self.inline {
            Source::Inline(&bytes)
        } else {
            // What the device has not fetched yet is overwritten by what is true, too.
            self.queue.memory().write(CONSUMED_HERE, &bytes);
            Source::Memory { offset: CONSUMED_HERE, length: bytes.len() }
        };
        self.post("telling what was consumed", Verb::Write, CONSUMED_BY_PEER, source)?;
        self.credits.note_announced();
        Ok(())
    }

    /// Posts a work request that acts on the peer's memory at `offset`.
    #[inline(always)]
    pub(super) fn post(
        &mut self,
        action: &'static str,
        verb: Verb,
        offset: usize,
        source: Source<'_>,
    ) -> Result<(), LinkError> {
        if self.calls.is_some() {
            self.signal_next();
        }
        self.credits.forget_prechecked();
        let signalled = self.take_signal();
        let work = Work {
            verb,
            remote_address: self.remote.address.wrapping_add(offset as u64),
            remote_key: self.remote.key,
            id: self.credits.posted + 1,
            signalled,
        };
        match self.queue.post(&work, source) {
            Ok(()) => {
                self.credits.posted += 1;
                Ok(())
            }
            Err(source) => Err(self.failed(action, source)),
        }
    }

    /// Counts the request that is posted now; whether it gets a completion, which is
    /// looked for then.
    #[inline(always)]
    fn take_signal(&mut self) -> bool {
        let signalled = self.signal.tick();
        if signalled {
            self.signal.restart();
            self.housekeep_soon();
        }
        signalled
    }

    /// The next request gets a completion.
    pub(super) fn signal_next(&mut self) {
        self.signal.hurry();
    }

    /// Looks at all sends that are over.
    #[inline]
    pub(super) fn reap(&mut self) -> Result<(), LinkError> {
        while self.reap_one()? {}
        Ok(())
    }

    /// Looks at sends that are over where many are not known to be: at two at most,
    /// so that no send pays for all of those before it.
    #[inline]
    pub(super) fn reap_some(&mut self) -> Result<(), LinkError> {
        if self.credits.under_way() >= self.credits.reap_threshold() && self.reap_one()? {
            self.reap_one()?;
        }
        Ok(())
    }

    /// Whether a send that gets a completion is not known to be over.
    #[inline(always)]
    pub(super) fn expects_completion(&self) -> bool {
        self.credits.under_way() >= u64::from(self.signal.every())
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
            Ok(false) => Ok(false),
            Ok(true) => match self.queue.completion() {
                Completion { id, error: None, .. } => {
                    self.credits.completed = id;
                    Ok(true)
                }
                Completion { error: Some(error), .. } => Err(self.send_ended(error)),
            },
            Err(source) => Err(self.failed("polling for completions", source)),
        }
    }

    /// A send failed. Where it was flushed only, a receive may have failed
    /// before.
    #[cold]
    fn send_ended(&mut self, error: Failure) -> LinkError {
        if error.status == FLUSHED {
            while let Ok(true) = self.queue.poll_received() {
                if let Some(cause) =
                    self.queue.completion().error.filter(|cause| cause.status != FLUSHED)
                {
                    return self.ended("a receive", cause);
                }
            }
        }
        self.ended("a message to it", error)
    }
}

/// Whether a message of a session that begins with this byte is of a round: those
/// of rounds begin with a tag, control frames with what no tag is.
#[inline]
pub(super) const fn is_tag(first: u8) -> bool {
    first < 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::wire::{MAGIC, tag_of};

    #[test]
    fn messages_of_rounds_are_told_from_frames_and_from_what_looks_empty() {
        assert!((0..1_000).all(|sequence| is_tag(tag_of(sequence))));
        assert!(!is_tag(MAGIC[0]) && !is_tag(EMPTY));
    }
}
