//! Receiving: what has arrived, and places that are free again.

use std::thread;

use loggap_core::wire::MAGIC;
use nix::poll::PollFlags;

use super::error::FLUSHED;
use super::link::{LOOKS_BEFORE_ASKING, VerbsLink};
use super::settings::Operation;
use super::station::{DATAGRAM_HEAD, EMPTY, ESCAPED_BY_PEER};
use crate::link::LinkError;
use crate::link::stream::wait_bounded;
use crate::sys::verbs::Completion;

/// Looks in a row that found nothing before failed sends are looked for.
const LOOKS_BEFORE_REAPING: u32 = 1 << 9;

impl VerbsLink {
    /// Looks once for a message.
    #[inline(always)]
    pub(super) fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let found = match self.operation {
            Operation::Write => self.look_at_memory(buffer)?,
            Operation::Read => self.look_one_sided(buffer)?,
            _ => self.look_at_completions(buffer)?,
        };
        match found {
            Some(_) => self.looks = 0,
            None => self.found_nothing()?,
        }
        Ok(found)
    }

    /// A message is there when the last byte of its place is.
    #[inline]
    fn look_at_memory(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let end = self.layout.incoming(self.consumed) + self.layout.slot_bytes;
        let last = self.queue.memory().byte(end - 1);
        if last == EMPTY {
            return Ok(None);
        }
        let length = buffer.len();
        if length > self.longest || !self.copy_out(end - length, buffer) {
            return Err(self.too_long(length));
        }
        let memory = self.queue.memory();
        memory.set_byte(end - 1, EMPTY);
        if last == !EMPTY
            && memory.number(ESCAPED_BY_PEER).to_le_bytes() == Self::escape(self.consumed)
            && let Some(changed) = buffer.last_mut()
        {
            *changed = EMPTY;
        }
        self.consume()?;
        Ok(Some(length))
    }

    #[inline(always)]
    fn look_at_completions(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let Some(arrived) = self.take_arrival()? else {
            return Ok(None);
        };
        let datagram = self.operation == Operation::Datagram;
        let head = if datagram { DATAGRAM_HEAD } else { 0 };
        let length = match self.operation {
            Operation::WriteImmediate => arrived.immediate as usize,
            _ => arrived.length.saturating_sub(head),
        };
        let place = self.layout.incoming(arrived.id);
        let room = buffer.len();
        let fits = match buffer.get_mut(..length) {
            // Anybody who learns the key may have sent it.
            _ if datagram && !arrived.from_peer => false,
            Some(target) => self.copy_out(place + head, target),
            None => false,
        };
        self.free_consumed()?;
        self.to_be_freed = Some(arrived.id);
        match (fits, datagram) {
            (true, true) => Ok(Some(length)),
            // As if nothing had come.
            (false, true) => Ok(None),
            (true, false) => {
                self.consume()?;
                Ok(Some(length))
            }
            (false, false) => Err(LinkError::NoRoom { peer: self.peer.clone(), length, room }),
        }
    }

    /// What has arrived, if anything; its place is not free yet.
    #[inline(always)]
    pub(super) fn take_arrival(&mut self) -> Result<Option<Completion>, LinkError> {
        let Self { queue, calls, .. } = self;
        let found = match calls {
            None => queue.poll_received(),
            Some(calls) => calls.poll(|| queue.poll_received()),
        };
        match found {
            Ok(Some(Completion { error: Some(error), .. })) => Err(self.receive_ended(error)),
            Ok(arrived) => Ok(arrived),
            Err(source) => Err(self.failed("polling for messages", source)),
        }
    }

    /// Posts the receive of the place that was consumed last, if that is to be
    /// done yet.
    #[inline(always)]
    pub(super) fn free_consumed(&mut self) -> Result<(), LinkError> {
        if let Some(index) = self.to_be_freed {
            self.post_receive(index)?;
            self.to_be_freed = None;
        }
        Ok(())
    }

    /// Lets another message arrive at place `index`.
    #[inline(always)]
    pub(super) fn post_receive(&mut self, index: u64) -> Result<(), LinkError> {
        let (place, bytes) =
            (self.layout.incoming(index), self.layout.receive_bytes(self.operation));
        self.queue
            .post_receive(index, place, bytes)
            .map_err(|source| self.failed("posting a receive", source))
    }

    /// Copies from a place what somebody looks at: see
    /// [`Link::begin_session`](loggap_core::measure::Link::begin_session). False
    /// where memory does not hold as much.
    #[inline(always)]
    fn copy_out(&self, place: usize, target: &mut [u8]) -> bool {
        let memory = self.queue.memory();
        match target.first_mut() {
            Some(first) if self.in_session => {
                *first = memory.byte(place);
                Some(&*first) != MAGIC.first() || memory.read(place, target)
            }
            _ => memory.read(place, target),
        }
    }

    /// A receive failed. Where it was flushed only, a send has failed before.
    #[cold]
    fn receive_ended(&mut self, error: (u32, u32)) -> LinkError {
        if error.0 == FLUSHED
            && let Err(cause) = self.reap()
        {
            return cause;
        }
        self.ended("a receive", error)
    }

    /// A place is free again. The peer is told here only in a burst without a pause,
    /// before it runs out of places: otherwise [`Self::prepare`] has told it.
    #[inline(always)]
    fn consume(&mut self) -> Result<(), LinkError> {
        self.consumed += 1;
        match self.consumed - self.returned >= self.layout.places_in_a_burst() {
            true => self.tell_consumed(),
            false => Ok(()),
        }
    }

    /// Does what is due for messages that were received: posts the receive of the
    /// last one's place, and tells the peer when half of the places are free.
    ///
    /// This is done when a look has found nothing, before a round, and before this
    /// end waits for room. So no two ends wait for each other: a peer that waits for
    /// room has sent as many messages as there are places since what it knows of.
    /// An end that looks finds them all, and tells it at the latest when it has;
    /// one that waits for room itself has told of every half that it consumed.
    #[inline(always)]
    pub(super) fn prepare(&mut self) -> Result<(), LinkError> {
        self.free_consumed()?;
        match self.consumed - self.returned >= self.layout.depth as u64 / 2 {
            true => self.tell_consumed(),
            false => Ok(()),
        }
    }

    #[inline(always)]
    fn found_nothing(&mut self) -> Result<(), LinkError> {
        self.looks += 1;
        self.prepare()?;
        if self.calls.is_some() {
            self.reap()?;
        } else if self.due.is_none() && self.expects_completion() {
            self.reap_one()?;
        }
        if self.looks.is_multiple_of(LOOKS_BEFORE_REAPING) {
            self.reap()?;
            if self.looks >= LOOKS_BEFORE_ASKING {
                self.looks = 0;
                self.ask_whether_the_peer_lives()?;
            }
        }
        Ok(())
    }

    /// Notes where the peer has closed the connection, and fails at the next row of
    /// looks: what it sent before may still be there to be received.
    #[cold]
    fn ask_whether_the_peer_lives(&mut self) -> Result<(), LinkError> {
        if self.closed {
            return Err(LinkError::Closed { peer: self.peer.clone() });
        }
        self.closed = self.peer_has_closed()?;
        if self.closed {
            self.looks = LOOKS_BEFORE_ASKING - LOOKS_BEFORE_REAPING;
        }
        Ok(())
    }

    /// Sleeps until a completion arrives, a bounded time, and looks again.
    pub(super) fn sleep_and_look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if self.queue.events().is_none() {
            thread::yield_now();
            return self.look(buffer);
        }
        self.queue.request_event().map_err(|source| self.failed("asking for an event", source))?;
        if let Some(length) = self.look(buffer)? {
            return Ok(Some(length));
        }
        if let Some(events) = self.queue.events() {
            wait_bounded(events, PollFlags::POLLIN)
                .map_err(|source| self.failed("waiting for an event", source))?;
        }
        let came = self.queue.take_event();
        if !came.map_err(|source| self.failed("taking an event", source))? {
            self.ask_whether_the_peer_lives()?;
        }
        self.reap()?;
        self.look(buffer)
    }
}
