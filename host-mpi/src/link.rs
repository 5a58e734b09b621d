//! Link between two ranks.

use std::fmt;

use loggap::link::LinkError;
use loggap::machine::buffer::{Alignment, Buffer, BufferRole};
use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::{FRAME_LEN, MAGIC};
use mpi::point_to_point::{Destination, Source};
use mpi::request;
use mpi::topology::Process;

use crate::sys::receive::{self, OpenReceive};
use crate::sys::send::OpenSends;
use crate::watch::Watch;

/// Call that sends; its duration is the send overhead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum SendCall {
    /// `MPI_Send`.
    #[default]
    Send,
    /// `MPI_Ssend`, which returns when the receiver has begun to receive.
    Ssend,
    /// `MPI_Isend`, with `MPI_Wait` after the reply has arrived.
    Isend,
}

/// Call that receives; its duration once the message has arrived is the receive overhead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum ReceiveCall {
    /// `MPI_Recv`.
    #[default]
    Recv,
    /// `MPI_Irecv` before the message is requested, if possible, and `MPI_Test`
    /// until it has arrived.
    Irecv,
}

/// MPI calls that a link uses at both ends, and the alignment of its buffers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Calls {
    /// Call that sends.
    pub send: SendCall,
    /// Call that receives.
    pub receive: ReceiveCall,
    /// Alignment of the buffers.
    pub alignment: Alignment,
    /// Bytes of memory through which messages rotate at each end, for `Send`, `Ssend` and `Recv`;
    /// `None` for one buffer.
    pub rotated_bytes: Option<u64>,
}

/// Memory for messages that the caches do not hold: each has the place behind the one before.
#[derive(Debug)]
struct Rotation {
    memory: Buffer<u8>,
    next: usize,
}

impl Rotation {
    /// `None` if there is no memory.
    fn new(bytes: usize, calls: Calls, role: BufferRole) -> Option<Self> {
        Some(Self { memory: Buffer::new(bytes, calls.alignment, role, 1)?, next: 0 })
    }

    /// Place of a message; `None` if it is longer than the memory.
    fn place(&mut self, length: usize) -> Option<&mut [u8]> {
        const LINE: usize = 64;
        let end = |begin: usize| begin.checked_add(length).filter(|end| *end <= self.memory.len());
        let begin = if end(self.next).is_some() { self.next } else { 0 };
        let end = end(begin)?;
        self.next = end.next_multiple_of(LINE);
        self.memory.get_mut(begin..end)
    }
}

/// Memory of both directions of a link.
#[derive(Debug)]
pub struct Rotations {
    sent: Rotation,
    received: Rotation,
}

impl Rotations {
    /// `Ok(None)` where `calls` have one buffer.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(calls: Calls) -> Result<Option<Self>, NoMemory> {
        let Some(bytes) = calls.rotated_bytes else { return Ok(None) };
        let bytes = usize::try_from(bytes).map_err(|_| NoMemory)?;
        let memory = |role| Rotation::new(bytes, calls, role).ok_or(NoMemory);
        let (sent, received) = (memory(BufferRole::Send)?, memory(BufferRole::Receive)?);
        Ok(Some(Self { sent, received }))
    }
}

/// There is no memory for the buffers of messages.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("there is no memory for rotating buffers")]
pub struct NoMemory;

/// Byte messages between this rank and another one, all with the same tag.
///
/// MPI's own error handler is in place, which ends the job at any error, so no
/// call here fails.
pub struct MpiLink<'a> {
    peer: Process<'a>,
    calls: Calls,
    watch: &'a Watch,
    /// True if the watchdog has been told about the current wait.
    is_waiting: bool,
    open: OpenSends,
    answers: OpenReceive,
    replies: Option<&'a mut [u8]>,
    rotations: Option<Rotations>,
}

impl fmt::Debug for MpiLink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpiLink")
            .field("peer", &self.peer.destination_rank())
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl<'a> MpiLink<'a> {
    /// A link to `peer`, with no message under way.
    #[must_use]
    pub fn new(peer: Process<'a>, calls: Calls, watch: &'a Watch) -> Self {
        let (open, answers) = Default::default();
        let (replies, rotations) = (None, None);
        Self { peer, calls, watch, is_waiting: false, open, answers, replies, rotations }
    }

    /// Sends from `rotations` and receives into them, if there are any.
    #[must_use]
    pub fn rotating(mut self, rotations: Option<Rotations>) -> Self {
        self.rotations = rotations;
        self
    }

    /// As [`MpiLink::new`], for the end that replies. It replies from
    /// `replies`, and not from the buffer that has just received: another
    /// processor reads memory that this one wrote last much more slowly, and
    /// the initiator never writes what it sends.
    #[must_use]
    pub fn replying(
        peer: Process<'a>,
        calls: Calls,
        watch: &'a Watch,
        replies: &'a mut [u8],
    ) -> Self {
        let mut link = Self::new(peer, calls, watch);
        link.replies = Some(replies);
        link
    }

    /// Sends a message by the chosen call. Any call may wait, for buffer space
    /// or for the receiver.
    #[inline]
    fn pass_on(&self, message: &[u8]) {
        match self.calls.send {
            SendCall::Send => self.watch.during(|| self.peer.send(message)),
            SendCall::Ssend => self.watch.during(|| self.peer.synchronous_send(message)),
            SendCall::Isend => {
                if !self.open.begin(&self.peer, message, self.watch) {
                    self.watch.during(|| {
                        request::scope(|scope| {
                            self.peer.immediate_send(scope, message).wait_without_status();
                        });
                    });
                }
            }
        }
    }

    /// Sends a data message from another place: only its first byte has contents. A control frame is
    /// sent from where it is.
    #[inline]
    fn pass_on_from(&self, place: Option<&mut [u8]>, message: &[u8]) {
        match (message.first(), place) {
            (Some(tag), Some(place)) if *tag != MAGIC[0] => {
                if let Some(first) = place.first_mut() {
                    *first = *tag;
                }
                self.pass_on(place);
            }
            _ => self.pass_on(message),
        }
    }

    /// Receives by `receive` into the next place, if messages rotate, and copies what has contents.
    #[inline]
    fn receive_by(
        &mut self,
        buffer: &mut [u8],
        receive: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        let rotated = self.rotations.as_mut().and_then(|all| all.received.place(buffer.len()));
        let Some(place) = rotated else { return receive(buffer) };
        let length = receive(place)?;
        let is_control = place.first() == MAGIC.first();
        let contents = if is_control { length.min(FRAME_LEN) } else { length.min(1) };
        buffer.iter_mut().zip(&*place).take(contents).for_each(|(to, from)| *to = *from);
        Some(length)
    }

    /// Notes a poll without a message. A wait begins with the first such poll,
    /// and lasts until something else happens.
    #[inline]
    fn polled_in_vain(&mut self) {
        if !self.is_waiting {
            self.is_waiting = true;
            self.watch.begin_wait();
        }
    }

    /// Ends the current wait, if there is one.
    #[inline]
    fn end_wait(&mut self) {
        if self.is_waiting {
            self.is_waiting = false;
            self.watch.end_wait();
        }
    }

    /// Notes a receive that ended with or without a message.
    #[inline]
    fn note_receive(&mut self, length: Option<usize>) {
        if length.is_some() { self.end_wait() } else { self.polled_in_vain() }
    }
}

impl Drop for MpiLink<'_> {
    fn drop(&mut self) {
        self.end_wait();
    }
}

impl Link for MpiLink<'_> {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        // Counts of MPI are C integers.
        LinkProperties::reliable(Bytes(i32::MAX as u64))
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.end_wait();
        if let Some(mut rotations) = self.rotations.take() {
            self.pass_on_from(rotations.sent.place(message.len()), message);
            self.rotations = Some(rotations);
        } else if let Some(replies) = self.replies.take() {
            self.pass_on_from(replies.get_mut(..message.len()), message);
            self.replies = Some(replies);
        } else {
            self.pass_on(message);
        }
        Ok(())
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if self.answers.is_open() {
            let arrived = self.answers.test(&self.peer);
            self.note_receive(arrived);
            return Ok(arrived);
        }
        let Some((message, _)) = self.peer.immediate_matched_probe() else {
            self.polled_in_vain();
            return Ok(None);
        };
        self.end_wait();
        Ok(self.receive_by(buffer, |place| receive::length(&message.matched_receive_into(place))))
    }

    #[inline]
    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.calls.receive {
            _ if self.answers.is_open() => self.poll_receive(buffer),
            ReceiveCall::Recv => {
                self.end_wait();
                let (peer, watch) = (self.peer, self.watch);
                Ok(self.receive_by(buffer, |place| {
                    receive::length(&watch.during(|| peer.receive_into(place)))
                }))
            }
            ReceiveCall::Irecv => {
                let arrived = receive::around(&self.peer, buffer, || Ok::<(), LinkError>(()))?.1;
                self.note_receive(arrived);
                Ok(arrived)
            }
        }
    }

    fn train<R>(&mut self, message: &[u8], body: impl FnOnce(&mut Self) -> R) -> R {
        if self.calls.send != SendCall::Isend {
            return body(self);
        }
        self.end_wait();
        let open = self.open.clone();
        let outcome = open.while_open(message, self.watch, || body(self));
        // Completing the sends was a wait of its own.
        self.end_wait();
        outcome
    }

    fn exchange<R>(
        &mut self,
        message: &[u8],
        answer: &mut [u8],
        body: impl FnOnce(&mut Self, &mut [u8]) -> R,
    ) -> R {
        let (peer, answers) = (self.peer, self.answers.clone());
        self.train(message, |link| answers.while_open(&peer, answer, || body(link, &mut [])))
    }

    #[inline]
    fn receive_after<R>(
        &mut self,
        buffer: &mut [u8],
        before: impl FnOnce(&mut Self) -> Result<R, LinkError>,
    ) -> Result<(R, Option<usize>), LinkError> {
        match self.calls.receive {
            ReceiveCall::Recv => {
                let before = before(self)?;
                Ok((before, self.wait_receive(buffer)?))
            }
            ReceiveCall::Irecv => {
                let peer = self.peer;
                let received = receive::around(&peer, buffer, || before(self))?;
                self.note_receive(received.1);
                Ok(received)
            }
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other_and_begin_again_where_one_does_not_fit() {
        let mut rotation = Rotation::new(300, Calls::default(), BufferRole::Send).unwrap();
        let begin = rotation.memory.as_ptr().addr();
        let mut place = |length| rotation.place(length).map(|place| place.as_ptr().addr() - begin);
        let lengths = [1, 100, 64, 44, 300, 0, 301, 1];
        let places = [Some(0), Some(64), Some(192), Some(256), Some(0), Some(0), None, Some(0)];
        assert_eq!(lengths.map(&mut place), places);
    }
}
