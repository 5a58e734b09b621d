//! Reads, in which the peer's processor has no part.
//!
//! The initiator fetches messages from the peer's memory. A session needs
//! somebody who answers, which nobody there does: this end answers itself, and
//! the reply of a round is the completion of its last read. What the rounds
//! then mean is defined in `docs/verbs.md`.

use std::collections::VecDeque;

use loggap_core::measure::{Burst, Clock, LinkProperties, ResponderState};
use loggap_core::units::Bytes;
use loggap_core::wire::{Bounds, FRAME_LEN, MAGIC};

use super::link::VerbsLink;
use crate::link::LinkError;
use crate::machine::clock::HostClock;
use crate::sys::verbs::{Source, Verb};

/// The other side of a session, at this end.
#[derive(Debug)]
pub(super) struct OneSided {
    clock: HostClock,
    responder: ResponderState,
    /// Control frames to be received.
    frames: VecDeque<[u8; FRAME_LEN]>,
    /// Where the responder writes what it says.
    outgoing: [u8; FRAME_LEN],
    /// Reads of the round under way.
    taken: u32,
    /// The reply to be received: its length, its first byte, and the request
    /// whose completion it is.
    due: Option<(usize, u8, u64)>,
}

impl OneSided {
    pub(super) fn new(longest: u32) -> Self {
        let bounds = Bounds { message: longest, ..Bounds::default() };
        let properties = LinkProperties { max_message: Bytes(longest.into()), reliable: true };
        Self {
            clock: HostClock::monotonic_raw(),
            responder: ResponderState::new(bounds, properties),
            frames: VecDeque::with_capacity(4),
            outgoing: [0; FRAME_LEN],
            taken: 0,
            due: None,
        }
    }

    /// Answers a control frame; reads as many bytes as a message has.
    #[inline]
    pub(super) fn send(&mut self, link: &mut VerbsLink, message: &[u8]) -> Result<(), LinkError> {
        if message.starts_with(&MAGIC) {
            self.handle(message);
            return Ok(());
        }
        let index = link.posted();
        let last = match self.responder.burst() {
            Some(Burst { messages, .. }) => self.taken + 1 >= messages,
            None => true,
        };
        if last {
            link.signal_next();
        }
        let (from, to) = (link.layout.outgoing(index), link.layout.incoming(index));
        let target = Source::Memory { offset: to, length: message.len() };
        link.post("read", Verb::Read, from, target)?;
        self.taken += 1;
        if last {
            self.end_round(link.posted(), message);
        }
        Ok(())
    }

    /// The last read of a round was posted.
    fn end_round(&mut self, request: u64, message: &[u8]) {
        let length = self.responder.reply_length();
        if self.responder.burst().is_some() {
            self.responder.handle_burst(self.taken);
        } else {
            let now = self.clock.duration(self.clock.now());
            self.responder.handle(now, message);
        }
        self.taken = 0;
        if self.responder.is_transmit_due()
            && self.responder.poll_transmit(&mut self.outgoing).is_some()
        {
            self.due = Some((length, self.outgoing[0], request));
        }
        self.take_frames();
    }

    #[cold]
    fn handle(&mut self, frame: &[u8]) {
        let now = self.clock.duration(self.clock.now());
        self.taken = 0;
        self.responder.handle(now, frame);
        self.take_frames();
    }

    fn take_frames(&mut self) {
        while self.responder.poll_transmit(&mut self.outgoing) == Some(FRAME_LEN) {
            self.frames.push_back(self.outgoing);
        }
    }

    /// A control frame, or the reply once its read is over.
    #[inline]
    pub(super) fn look(
        &mut self,
        link: &mut VerbsLink,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        if let Some((length, tag, request)) = self.due {
            link.reap()?;
            if link.completed() < request {
                return Ok(None);
            }
            self.due = None;
            // What was read stays in registered memory, as nobody asks for it.
            if let Some(first) = buffer.first_mut() {
                *first = tag;
            }
            return Ok(Some(length.min(buffer.len())));
        }
        let Some(frame) = self.frames.pop_front() else { return Ok(None) };
        match buffer.first_chunk_mut() {
            Some(target) => {
                *target = frame;
                Ok(Some(FRAME_LEN))
            }
            None => Err(link.too_long(FRAME_LEN)),
        }
    }
}
