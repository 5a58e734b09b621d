//! Receiving messages, and freeing their slots.

use std::{io, thread};

use loggap_core::wire::MAGIC;
use nix::poll::PollFlags;

use super::calls::CallTimer;
use super::countdown::Countdown;
use super::error::FLUSHED;
use super::link::{LOOKS_BEFORE_ASKING, VerbsLink};
use super::settings::Operation;
use super::station::{EMPTY, ESCAPED_BY_PEER, GRH_BYTES};
use crate::link::stream::wait_bounded;
use crate::link::{LinkError, Waiting};
use crate::sys::verbs::{Completion, Failure, Queue, Region};

/// Consecutive empty polls before completions of sends are polled for errors.
const LOOKS_BEFORE_REAPING: u32 = 1 << 9;

impl VerbsLink {
    /// Polls once for a message, without housekeeping: see [`Self::count_fruitless_look`].
    #[inline(always)]
    pub(super) fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let found = match self.operation {
            Operation::Write => self.look_at_memory(buffer)?,
            Operation::Read => self.look_one_sided(buffer)?,
            _ => self.look_at_completions(buffer)?,
        };
        if found.is_some() {
            self.looks = 0;
            self.housekeep_soon();
        }
        Ok(found)
    }

    /// Counts an empty poll; true if [`Self::housekeep`] is due. Work that a message causes is done
    /// after the next empty poll, when an answer to it is already in flight; other work only after
    /// many.
    #[inline(always)]
    pub(super) const fn count_fruitless_look(&mut self) -> bool {
        self.housekeeping.tick()
    }

    /// Makes housekeeping due after the next empty poll.
    #[inline(always)]
    pub(super) const fn housekeep_soon(&mut self) {
        self.housekeeping = Countdown::new(1);
    }

    /// Does the pending work between two polls, and sleeps if the settings say so.
    #[inline(never)]
    pub(super) fn housekeep(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        self.do_what_is_due()?;
        match self.settings.waiting {
            Waiting::Block => self.sleep_and_look(buffer),
            _ => Ok(None),
        }
    }

    /// Polls memory: a message is complete when the last byte of its slot has been written.
    #[inline(always)]
    fn look_at_memory(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let at = self.awaited;
        let last = self.queue.memory().byte(at);
        if last == EMPTY {
            return Ok(None);
        }
        let length = buffer.len();
        if length > self.longest || !self.copy_out(at + 1 - length, buffer) {
            return Err(self.too_long(length));
        }
        self.queue.memory().set_byte(at, EMPTY);
        if last == !EMPTY {
            self.restore_last(buffer);
        }
        self.consume()?;
        self.awaited = self.layout.end_of_incoming(self.credits.consumed) - 1;
        Ok(Some(length))
    }

    /// Restores the last byte of the message just received, if the peer has escaped it.
    #[cold]
    fn restore_last(&self, buffer: &mut [u8]) {
        let number = self.queue.memory().number(ESCAPED_BY_PEER).to_le_bytes();
        if number == Self::escape(self.credits.consumed)
            && let Some(changed) = buffer.last_mut()
        {
            *changed = EMPTY;
        }
    }

    #[inline(always)]
    fn look_at_completions(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let Some(arrived) = self.take_arrival()? else {
            return Ok(None);
        };
        let length = match self.operation {
            Operation::Datagram => return self.take_datagram(arrived, buffer),
            Operation::WriteImmediate => arrived.immediate as usize,
            _ => arrived.length,
        };
        let room = buffer.len();
        let slot = self.layout.incoming(arrived.id);
        if !buffer.get_mut(..length).is_some_and(|target| self.copy_out(slot, target)) {
            return Err(self.no_room(length, room));
        }
        self.leave_to_be_freed(arrived.id)?;
        self.consume()?;
        Ok(Some(length))
    }

    /// Length of a datagram that has arrived. `None` if it does not fit or comes from another
    /// sender, as if it had not arrived.
    #[inline(never)]
    fn take_datagram(
        &mut self,
        arrived: Completion,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        let length = arrived.length.saturating_sub(GRH_BYTES);
        let slot = self.layout.incoming(arrived.id) + GRH_BYTES;
        // Any sender that knows the key could have sent it.
        let fits = arrived.from_peer
            && buffer.get_mut(..length).is_some_and(|target| self.copy_out(slot, target));
        self.leave_to_be_freed(arrived.id)?;
        Ok(fits.then_some(length))
    }

    #[cold]
    fn no_room(&self, length: usize, room: usize) -> LinkError {
        LinkError::NoRoom { peer: self.peer.clone(), length, room }
    }

    /// Completion of a message that has arrived, if any; its slot is still occupied.
    #[inline(always)]
    pub(super) fn take_arrival(&mut self) -> Result<Option<Completion>, LinkError> {
        let Self { queue, calls, .. } = self;
        let found = match calls {
            None => queue.poll_received(),
            Some(calls) => poll_timed(calls, queue),
        };
        match found {
            Ok(false) => Ok(None),
            Ok(true) => match self.queue.completion() {
                Completion { error: Some(error), .. } => Err(self.receive_ended(error)),
                arrived => Ok(Some(arrived)),
            },
            Err(source) => Err(self.failed("polling for messages", source)),
        }
    }

    /// Defers posting the receive of the slot just consumed, and posts that of the previous one if
    /// it was deferred.
    #[inline(always)]
    fn leave_to_be_freed(&mut self, index: u64) -> Result<(), LinkError> {
        if self.to_be_freed.is_some() {
            self.free_consumed()?;
        }
        self.to_be_freed = Some(index);
        Ok(())
    }

    /// Posts the deferred receive of the slot consumed last, if any.
    #[inline]
    pub(super) fn free_consumed(&mut self) -> Result<(), LinkError> {
        if let Some(index) = self.to_be_freed {
            self.post_receive(index)?;
            self.to_be_freed = None;
        }
        Ok(())
    }

    /// Posts a receive for slot `index`.
    #[inline(never)]
    pub(super) fn post_receive(&mut self, index: u64) -> Result<(), LinkError> {
        let (slot, bytes) =
            (self.layout.incoming(index), self.layout.receive_bytes(self.operation));
        self.queue
            .post_receive(index, slot, bytes)
            .map_err(|source| self.failed("posting a receive", source))
    }

    /// Copies the bytes that the session reads from a slot: see
    /// [`Link::begin_session`](loggap_core::measure::Link::begin_session). False if the memory does
    /// not have as many.
    #[inline(always)]
    fn copy_out(&self, slot: usize, target: &mut [u8]) -> bool {
        let memory = self.queue.memory();
        match target.first_mut() {
            Some(first) if self.in_session => {
                *first = memory.byte(slot);
                Some(&*first) != MAGIC.first() || copy_frame(memory, slot, target)
            }
            _ => memory.read(slot, target),
        }
    }

    /// Error of a failed receive. If it was only flushed, the cause is a send that failed before.
    #[cold]
    fn receive_ended(&mut self, error: Failure) -> LinkError {
        if error.status == FLUSHED
            && let Err(cause) = self.reap()
        {
            return cause;
        }
        self.ended("a receive", error)
    }

    /// Counts a consumed message. An announcement is sent here only in a burst without a pause,
    /// before the peer runs out of slots; otherwise [`Self::replenish`] sends it.
    #[inline(always)]
    fn consume(&mut self) -> Result<(), LinkError> {
        match self.credits.consume() {
            true => self.announce_consumed(),
            false => Ok(()),
        }
    }

    /// Does the pending work for received messages: posts the receive of the last one's slot, and
    /// sends an announcement if half of the slots are free.
    ///
    /// This is done after an empty poll, before a round, and before this end waits for a credit.
    /// Therefore two ends cannot wait for each other: a peer that waits for a credit has sent as
    /// many messages as there are slots since the last announcement it knows of. An end that polls
    /// receives them all, and sends an announcement at the latest then; an end that waits for a
    /// credit itself has announced every half of the slots that it consumed.
    #[inline]
    pub(super) fn replenish(&mut self) -> Result<(), LinkError> {
        self.free_consumed()?;
        match self.credits.announcement_is_due() {
            true => self.announce_consumed(),
            false => Ok(()),
        }
    }

    /// Does the pending work after empty polls, and schedules the next time.
    #[inline]
    fn do_what_is_due(&mut self) -> Result<(), LinkError> {
        let before = self.looks;
        self.looks += self.housekeeping.every();
        self.housekeep_soon();
        self.count_finished_round();
        self.replenish()?;
        if self.calls.is_some() {
            self.reap()?;
        } else if self.due.is_none() && self.expects_completion() {
            self.reap_one()?;
        }
        if self.looks / LOOKS_BEFORE_REAPING > before / LOOKS_BEFORE_REAPING {
            self.reap()?;
            if self.looks >= LOOKS_BEFORE_ASKING {
                self.looks = 0;
                self.ask_whether_the_peer_lives()?;
            }
        }
        let always = self.settings.waiting == Waiting::Block || self.calls.is_some();
        if !always && !self.expects_completion() {
            self.housekeeping = Countdown::new(LOOKS_BEFORE_REAPING);
        }
        Ok(())
    }

    /// Checks whether the peer has closed the connection. Fails only at the following check,
    /// because earlier messages may still have to be received.
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

    /// Sleeps until a completion arrives, for a bounded time, and polls again.
    pub(super) fn sleep_and_look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if self.queue.events().is_none() {
            thread::yield_now();
            return self.look_and_do_what_is_due(buffer);
        }
        self.queue.request_event().map_err(|source| self.failed("asking for an event", source))?;
        if let Some(length) = self.look_and_do_what_is_due(buffer)? {
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
        self.look_and_do_what_is_due(buffer)
    }

    fn look_and_do_what_is_due(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let found = self.look(buffer)?;
        if found.is_none() {
            self.do_what_is_due()?;
        }
        Ok(found)
    }
}

/// Copies a control frame, of which all bytes are read.
#[cold]
fn copy_frame(memory: &Region, slot: usize, target: &mut [u8]) -> bool {
    memory.read(slot, target)
}

/// Polls for a message, and times the poll.
#[cold]
fn poll_timed(calls: &mut CallTimer, queue: &mut Queue) -> io::Result<bool> {
    calls.poll(|| queue.poll_received())
}
