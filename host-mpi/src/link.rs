//! Two ranks as a link.

use std::fmt;

use loggap::link::LinkError;
use loggap::machine::buffer::Alignment;
use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::MAGIC;
use mpi::point_to_point::{Destination, Source};
use mpi::request;
use mpi::topology::Process;

use crate::sys::receive::{self, OpenReceive};
use crate::sys::send::OpenSends;
use crate::watch::Watch;

/// Which call sends: what it takes is the send overhead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum SendCall {
    /// `MPI_Send`.
    #[default]
    Send,
    /// `MPI_Ssend`, which returns when the receiver has begun to receive.
    Ssend,
    /// `MPI_Isend`; `MPI_Wait` follows when the reply is there.
    Isend,
}

/// Which call receives: what it takes once the message is there is the
/// receive overhead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum ReceiveCall {
    /// `MPI_Recv`.
    #[default]
    Recv,
    /// `MPI_Irecv` before the message is asked for where that can be, and
    /// `MPI_Test` until it is there.
    Irecv,
}

impl SendCall {
    /// The name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Ssend => "ssend",
            Self::Isend => "isend",
        }
    }
}

impl ReceiveCall {
    /// The name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recv => "recv",
            Self::Irecv => "irecv",
        }
    }
}

/// Calls of MPI that a link uses at both ends, and the place of its buffers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Calls {
    /// To send.
    pub send: SendCall,
    /// To receive.
    pub receive: ReceiveCall,
    /// Of buffers in their pages.
    pub alignment: Alignment,
}

/// Messages of bytes between this rank and another one, all of one tag.
///
/// MPI's own error handler is in place: what MPI finds to be wrong ends the
/// job, so that no call here fails.
pub struct MpiLink<'a> {
    peer: Process<'a>,
    calls: Calls,
    watch: &'a Watch,
    /// Whether the watch knows that a message is waited for.
    is_waiting: bool,
    open: OpenSends,
    answers: OpenReceive,
    replies: Option<&'a mut [u8]>,
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
        Self { peer, calls, watch, is_waiting: false, open, answers, replies: None }
    }

    /// As [`MpiLink::new`], at the end that replies: from `replies`, and not from
    /// where a message has just come. What this processor has written last another
    /// one reads much more slowly, and the initiator sends what it never writes.
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

    /// A message by the call that was chosen. Any may wait: for room, or for the
    /// receiver.
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

    /// This rank polls for a message in vain: a wait begins with the first such
    /// poll, and goes on until something else happens.
    #[inline]
    fn polled_in_vain(&mut self) {
        if !self.is_waiting {
            self.is_waiting = true;
            self.watch.begin_wait();
        }
    }

    /// Something else happens.
    #[inline]
    fn end_wait(&mut self) {
        if self.is_waiting {
            self.is_waiting = false;
            self.watch.end_wait();
        }
    }

    /// A receive ended with a message, or without.
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
        LinkProperties { max_message: Bytes(i32::MAX as u64), reliable: true }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.end_wait();
        let Some(replies) = self.replies.take() else {
            self.pass_on(message);
            return Ok(());
        };
        match (message.first(), replies.get_mut(..message.len())) {
            // A control frame has contents, a message its first byte only.
            (Some(tag), Some(reply)) if *tag != MAGIC[0] => {
                if let Some(first) = reply.first_mut() {
                    *first = *tag;
                }
                self.pass_on(reply);
            }
            _ => self.pass_on(message),
        }
        self.replies = Some(replies);
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
        Ok(receive::length(&message.matched_receive_into(buffer)))
    }

    #[inline]
    fn wait_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.calls.receive {
            _ if self.answers.is_open() => self.poll_receive(buffer),
            ReceiveCall::Recv => {
                self.end_wait();
                Ok(receive::length(&self.watch.during(|| self.peer.receive_into(buffer))))
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
        // The sends were completed, which was a wait of its own.
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
