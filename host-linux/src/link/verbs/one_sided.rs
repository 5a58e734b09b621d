//! RDMA reads, in which the peer's processor is not involved.
//!
//! The initiator fetches messages from the peer's memory. A session needs a responder, but the peer
//! does nothing; so this end runs the responder itself, and the completion of a round's last read
//! stands for the reply. `docs/verbs.md` defines the meaning of the measured rounds.
//!
//! A round is counted when a poll finds its last read still outstanding, else before the next
//! round. Some devices do their work while a read is posted; counting between the post and the
//! first poll would then make the read longer.

use std::collections::VecDeque;

use loggap_core::measure::{Burst, Clock, LinkProperties, ResponderState};
use loggap_core::units::Bytes;
use loggap_core::wire::{Bounds, FRAME_LEN, MAGIC};

use super::error::VerbsError;
use super::link::VerbsLink;
use super::sending::Timing;
use crate::link::LinkError;
use crate::machine::clock::HostClock;

/// Local responder of a session.
#[derive(Debug)]
pub(super) struct OneSided {
    clock: HostClock,
    responder: ResponderState,
    /// Control frames to be received by this end.
    frames: VecDeque<[u8; FRAME_LEN]>,
    /// Buffer for the responder's frames.
    outgoing: [u8; FRAME_LEN],
    /// Number of reads in the current round.
    reads: u32,
    /// Reads of the current round that have not been posted yet.
    reads_left: u32,
    /// Length of the reply, bytes.
    reply_length: usize,
}

/// Stand-in for the reply of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Length in bytes.
    length: usize,
    /// First byte.
    tag: u8,
    /// Work request whose completion stands for the reply.
    request: u64,
}

impl OneSided {
    pub(super) fn new(longest: u32) -> Self {
        let bounds = Bounds { message: longest, ..Bounds::default() };
        let properties = LinkProperties::reliable(Bytes(longest.into()));
        Self {
            clock: HostClock::monotonic_raw(),
            responder: ResponderState::new(bounds, properties),
            frames: VecDeque::with_capacity(4),
            outgoing: [0; FRAME_LEN],
            reads: 0,
            reads_left: 0,
            reply_length: 0,
        }
    }

    /// Counts the finished round, and prepares the next.
    #[cold]
    fn next_round(&mut self) {
        if self.reads > self.reads_left {
            self.responder.handle_burst(self.reads - self.reads_left);
            // The reply is not sent: the completion of the read has stood for it.
            let _reply = self.responder.poll_transmit(&mut self.outgoing);
            self.take_frames();
        }
        let messages = self.responder.burst().map_or(0, |Burst { messages, .. }| messages);
        (self.reads, self.reads_left) = (messages, messages);
        self.reply_length = self.responder.reply_length();
    }

    /// Passes a control frame to the responder.
    #[cold]
    fn handle(&mut self, message: &[u8]) {
        self.next_round();
        let now = self.clock.duration(self.clock.now());
        self.responder.handle(now, message);
        self.take_frames();
        self.next_round();
    }

    fn take_frames(&mut self) {
        while self.responder.poll_transmit(&mut self.outgoing) == Some(FRAME_LEN) {
            self.frames.push_back(self.outgoing);
        }
    }
}

impl VerbsLink {
    /// Counts the current round if all of its reads are posted, so that this is not timed between
    /// the post of a read and its poll.
    #[inline]
    pub(super) fn count_finished_round(&mut self) {
        if let Some(one_sided) = &mut self.one_sided
            && one_sided.reads_left == 0
        {
            one_sided.next_round();
        }
    }

    /// Passes a control frame to the responder; for other messages, reads as many bytes.
    #[inline]
    pub(super) fn send_one_sided(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let Some(one_sided) = &mut self.one_sided else { return Ok(()) };
        if message.starts_with(&MAGIC) {
            one_sided.handle(message);
            return Ok(());
        }
        if one_sided.reads_left == 0 {
            one_sided.next_round();
        }
        if one_sided.reads_left == 0 {
            // A message outside of a round, or of a round that the responder would have to time.
            one_sided.handle(message);
            return Ok(());
        }
        one_sided.reads_left -= 1;
        let (is_last, length) = (one_sided.reads_left == 0, one_sided.reply_length);
        if is_last {
            if self.due.is_some() {
                return Err(VerbsError::Answers.into());
            }
            self.signal_next();
        }
        let tag = message.first().copied().unwrap_or_default();
        self.send_of_a_round(tag, message.len(), Timing::IfRequested)?;
        if is_last {
            self.due = Some(Due { length, tag, request: self.credits.posted });
        }
        Ok(())
    }

    /// Receives a control frame, or the reply once its read is completed.
    #[inline]
    pub(super) fn look_one_sided(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let Some(Due { length, tag, request }) = self.due else { return self.take_frame(buffer) };
        while self.credits.completed < request {
            if !self.reap_one()? {
                return Ok(None);
            }
        }
        self.due = None;
        if let Some(first) = buffer.first_mut() {
            *first = tag;
        }
        Ok(Some(length.min(buffer.len())))
    }

    #[cold]
    fn take_frame(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        self.count_finished_round();
        let frame = self.one_sided.as_mut().and_then(|one_sided| one_sided.frames.pop_front());
        let Some(frame) = frame else { return Ok(None) };
        match buffer.first_chunk_mut() {
            Some(target) => {
                *target = frame;
                Ok(Some(FRAME_LEN))
            }
            None => Err(self.too_long(FRAME_LEN)),
        }
    }
}
