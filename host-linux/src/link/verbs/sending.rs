//! Posting messages and announcements, and polling their completions.

use std::{io, thread};

use super::error::FLUSHED;
use super::link::{LOOKS_BEFORE_ASKING, RemoteMemory, VerbsLink};
use super::settings::Operation;
use super::station::{
    CONSUMED_BY_PEER, CONSUMED_HERE, EMPTY, ESCAPED_BY_PEER, ESCAPED_HERE, TEMPLATE,
};
use crate::link::{LinkError, Waiting};
use crate::machine::clock::Deadline;
use crate::sys::verbs::{Completion, Failure, Repost, Source, Verb, Work};

/// As [`LOOKS_BEFORE_ASKING`], for polls after each of which the processor is yielded.
const YIELDS_BEFORE_ASKING: u32 = 1 << 8;

/// Timing of the post of a message of a round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timing {
    /// Time the post if the link is timing calls.
    IfRequested,
    /// Do not time it, because the link is not timing calls now.
    Off,
}

impl VerbsLink {
    /// True if there is a slot for one more message at both ends.
    #[inline]
    pub(super) fn has_credit(&self) -> bool {
        self.credits.has_credit(|| self.announced_by_peer())
    }

    /// Number of messages that the peer has announced as consumed.
    #[inline]
    fn announced_by_peer(&self) -> u32 {
        self.queue.memory().number(CONSUMED_BY_PEER)
    }

    /// Waits until [`Self::has_credit`]. The peer may be waiting for a credit too, so an
    /// announcement is sent first if it is due.
    #[cold]
    pub(super) fn wait_for_credit(&mut self) -> Result<(), LinkError> {
        self.replenish()?;
        self.wait_until(Self::has_credit)
    }

    /// Polls completions of sends one at a time until `is_so`; fails at the link's time limit, or
    /// if the peer is gone.
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

    /// Sends a message of a round, of which only the length and the first byte matter, see
    /// [`Link::begin_session`](loggap_core::measure::Link::begin_session). The bytes sent are those
    /// of the template, because a round's buffer may still contain a control frame. Everything that
    /// can be prepared has been done before, as the peer is waiting.
    #[inline(always)]
    pub(super) fn send_of_a_round(
        &mut self,
        tag: u8,
        length: usize,
        timing: Timing,
    ) -> Result<(), LinkError> {
        if !self.credits.has_prechecked() {
            self.find_credits()?;
        }
        if length != self.standing_length {
            self.build_for(length)?;
        }
        // A previous message with another first byte has already arrived, because a round ends with
        // its reply; so the template may be changed.
        self.queue.memory().set_byte(TEMPLATE, tag);
        let target = match self.operation {
            Operation::Write => Some(self.target_of(length)),
            Operation::WriteImmediate => Some(self.layout.incoming(self.credits.sent)),
            _ => None,
        };
        let remote_address = target.map(|offset| self.remote.address.wrapping_add(offset as u64));
        let (id, signalled) = (self.credits.posted + 1, self.take_signal());
        let repost = Repost { id, signalled, remote_address };
        let Self { queue, calls, .. } = self;
        let posted = match calls {
            Some(calls) if timing == Timing::IfRequested => {
                calls.post(|built| queue.post_again(repost, built))
            }
            _ => queue.post_again(repost, || ()),
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

    /// Prepares the first of the next messages of a round, without waiting and without polling
    /// completions, where an error could be found.
    #[inline]
    pub(super) fn prebuild_request(&mut self, length: usize) {
        if length != self.standing_length {
            // An error here is reported again by the send.
            let _shows_again = self.build_for(length);
        }
        if !self.credits.has_prechecked() && self.has_credit() {
            self.precheck_credits();
        }
    }

    /// Obtains at least one credit for a message of a round, and counts how many there are.
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

    /// Builds the request for messages of rounds of this length.
    #[cold]
    fn build_for(&mut self, length: usize) -> Result<(), LinkError> {
        if length > self.longest {
            return Err(self.too_long(length));
        }
        let source = match self.operation {
            // The content of reads is ignored, so all of them may go to one slot.
            Operation::Read => Source::Memory { offset: self.layout.incoming(0), length },
            _ if length <= self.inline => Source::Copied { offset: TEMPLATE, length },
            _ => Source::Memory { offset: TEMPLATE, length },
        };
        let RemoteMemory { address: start, key: remote_key } = self.remote;
        // For writes, each message gets its own address later.
        let remote_address = start.wrapping_add(TEMPLATE as u64);
        let verb = self.verb_of(length);
        let work = Work { verb, remote_address, remote_key, id: 0, signalled: false };
        self.queue
            .build(&work, source)
            .map_err(|source| self.failed("building a request", source))?;
        self.standing_length = length;
        Ok(())
    }

    /// Sends control frames, and messages of rounds whose calls are timed.
    #[inline(never)]
    pub(super) fn send_otherwise(&mut self, message: &[u8]) -> Result<(), LinkError> {
        if message.len() > self.longest {
            return Err(self.too_long(message.len()));
        }
        // An empty message could not be detected by the receiver.
        debug_assert!(!message.is_empty());
        self.obtain_credit()?;
        if self.calls.is_some() {
            self.signal_next();
        }
        match (self.operation, message.first()) {
            (Operation::Read, _) => self.send_one_sided(message),
            (_, Some(&tag)) if self.in_session && is_tag(tag) => {
                self.send_of_a_round(tag, message.len(), Timing::IfRequested)
            }
            _ => self.send_now(message),
        }
    }

    /// Polls completions if many are outstanding, and waits if there is no credit for a message.
    #[inline]
    fn obtain_credit(&mut self) -> Result<(), LinkError> {
        self.reap_some()?;
        match self.has_credit() {
            true => Ok(()),
            false => self.wait_for_credit(),
        }
    }

    /// Operation of the work request for a message.
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

    /// Offset of the next message in the peer's memory: its last byte is the last of its slot,
    /// which the peer polls.
    #[inline]
    const fn target_of(&self, length: usize) -> usize {
        self.layout.end_of_incoming(self.credits.sent) - length
    }

    /// Sends all bytes of a message for which there is a credit.
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

    /// Writes a message whose last byte is that of an empty slot ([`EMPTY`]): that byte is
    /// inverted, and a preceding write of the message's number tells the peer to restore it.
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
        // The memory of the escape can be reused only then.
        self.wait_until(|link| link.credits.under_way() == 0)
    }

    /// Escape for message `index`; 0 stands for none.
    pub(super) const fn escape(index: u64) -> [u8; 4] {
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let number = (index as u32).wrapping_add(1);
        number.to_le_bytes()
    }

    /// Announces to the peer the number of messages consumed.
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
            // If the device has not fetched an earlier announcement yet, it fetches the newer one,
            // which is also valid.
            self.queue.memory().write(CONSUMED_HERE, &bytes);
            Source::Memory { offset: CONSUMED_HERE, length: bytes.len() }
        };
        self.post("telling what was consumed", Verb::Write, CONSUMED_BY_PEER, source)?;
        self.credits.note_announced();
        Ok(())
    }

    /// Posts a work request; `offset` is in the peer's memory.
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

    /// Counts the request posted now; true if it is signalled, in which case its completion will be
    /// polled for.
    #[inline(always)]
    fn take_signal(&mut self) -> bool {
        let signalled = self.signal.tick();
        if signalled {
            self.signal.restart();
            self.housekeep_soon();
        }
        signalled
    }

    /// Makes the next request a signalled one.
    pub(super) fn signal_next(&mut self) {
        self.signal.hurry();
    }

    /// Polls all available completions of sends.
    #[inline]
    pub(super) fn reap(&mut self) -> Result<(), LinkError> {
        while self.reap_one()? {}
        Ok(())
    }

    /// Polls completions if many are outstanding: at most two, so that no send pays for all
    /// previous ones.
    #[inline]
    pub(super) fn reap_some(&mut self) -> Result<(), LinkError> {
        if self.credits.under_way() >= self.credits.reap_threshold() && self.reap_one()? {
            self.reap_one()?;
        }
        Ok(())
    }

    /// True if a signalled send has not been completed yet.
    #[inline(always)]
    pub(super) fn expects_completion(&self) -> bool {
        self.credits.under_way() >= u64::from(self.signal.every())
    }

    /// Polls for one completion of a send; true if one was found.
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

    /// Error of a failed send. If it was only flushed, the cause may be a receive that failed
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

/// True if a message of a session with this first byte belongs to a round: those begin with a tag,
/// which no control frame does.
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
