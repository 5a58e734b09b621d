//! Messages over a queue pair.
//!
//! A control frame is copied into registered memory and out of it. The messages
//! of rounds, at which nobody looks beyond the first byte, are sent from a slot
//! that was filled when the link was made, and stay where they arrive: nothing
//! but that byte is written or read by the processor. What is short enough
//! travels within its work request instead. The memory of an end holds as many
//! messages of each direction as may be under way. On a reliable queue pair the
//! receiver writes back how many it has consumed, after half of them and when it
//! has nothing else to do, so that a sender never overtakes: no message meets a
//! receiver without a slot for it.
//!
//! What a message passes from the kernels to the device is inlined as a whole:
//! half of a round trip is 12,500 instructions of soft-RoCE, and on a network
//! interface far fewer, so that calls show.
//! Messages of rounds take a straight way, for which everything that can be known
//! beforehand is: whether there is a credit, and the work request but for its number.
//! Everything else goes through functions of its own, apart from that way, and what
//! a message leaves to be done is done when a look has found nothing.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::MAGIC;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, recv};

use super::calls::CallTimer;
use super::countdown::Countdown;
use super::credits::SendCredits;
use super::error::{UNANSWERED, VerbsError};
use super::offer::AUTO_INLINE;
use super::one_sided::{Due, OneSided};
use super::record::{CallTimes, VerbsRecord};
use super::sending::{Timing, is_tag};
use super::settings::Operation;
use super::station::{EMPTY, GRH_BYTES, Layout, USUAL_INLINE};
use crate::link::stream::wait_bounded;
use crate::link::{LinkError, LinkSettings, Queued};
use crate::machine::clock::{Deadline, HostClock};
use crate::sys::verbs::{Failure, Queue, Source, Verb};

/// Looks in a row that found nothing before the control connection is asked
/// whether the peer still lives: a system call.
pub(super) const LOOKS_BEFORE_ASKING: u32 = 1 << 18;
/// How long the last messages may take when the link is dropped.
const PARTING: Duration = Duration::from_millis(500);

/// The peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteMemory {
    pub(super) address: u64,
    pub(super) key: u32,
}

/// Messages over RDMA verbs.
#[derive(Debug)]
pub struct VerbsLink {
    pub(super) queue: Queue,
    control: TcpStream,
    pub(super) peer: String,
    pub(super) settings: LinkSettings,
    pub(super) operation: Operation,
    pub(super) layout: Layout,
    /// Longest message in bytes.
    pub(super) longest: usize,
    pub(super) remote: RemoteMemory,
    /// Longest message that travels within its request.
    pub(super) inline: usize,
    /// Sends until the next one that gets a completion.
    pub(super) signal: Countdown,
    /// What was sent and received, and what may be.
    pub(super) credits: SendCredits,
    /// Where the last byte of the next message arrives, of writes.
    pub(super) awaited: usize,
    /// A session is under way.
    pub(super) in_session: bool,
    /// Messages of rounds take the straight way of [`Self::send`].
    pub(super) straight: bool,
    /// Length of the messages that the standing request is for; 0 before there is one.
    pub(super) standing_length: usize,
    /// The slot that was consumed last, if its receive is not posted again.
    pub(super) to_be_freed: Option<u64>,
    /// Looks in a row that found nothing, up to the last housekeeping.
    pub(super) looks: u32,
    /// Looks that find nothing until the next housekeeping.
    pub(super) housekeeping: Countdown,
    /// The control connection has closed.
    pub(super) closed: bool,
    pub(super) one_sided: Option<Box<OneSided>>,
    /// Of reads, the reply to be received.
    pub(super) due: Option<Due>,
    /// Times the parts of calls, in rounds of their own.
    pub(super) calls: Option<Box<CallTimer>>,
    record: VerbsRecord,
}

/// What a link is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) queue: Queue,
    pub(super) control: TcpStream,
    pub(super) peer: String,
    pub(super) settings: LinkSettings,
    pub(super) operation: Operation,
    pub(super) layout: Layout,
    pub(super) longest: u32,
    pub(super) remote: RemoteMemory,
    pub(super) signal_every: u16,
    pub(super) one_sided: Option<Box<OneSided>>,
    pub(super) record: VerbsRecord,
}

impl VerbsLink {
    pub(super) fn of(parts: Parts) -> Self {
        let Parts { queue, control, peer, settings, operation, layout, .. } = parts;
        let capacity = queue.sends();
        // A completion at the latest when half of the entries wait for one.
        let signal = u32::from(parts.signal_every).min(capacity / 2).max(1);
        let mut record = parts.record;
        // No more than was asked for, whatever the device grants.
        let asked = match record.inline_bytes {
            AUTO_INLINE => USUAL_INLINE,
            asked => asked,
        };
        let granted = asked.min(queue.inline());
        record.inline_bytes = granted;
        record.signal_every = u16::try_from(signal).unwrap_or(u16::MAX);
        record.registered_bytes = queue.memory().length() as u64;
        Self {
            queue,
            control,
            peer,
            settings,
            operation,
            layout,
            longest: parts.longest as usize,
            remote: parts.remote,
            inline: granted as usize,
            signal: Countdown::new(signal),
            credits: SendCredits::new(operation, layout.depth as u64, capacity.into()),
            awaited: layout.end_of_incoming(0) - 1,
            in_session: false,
            straight: false,
            standing_length: 0,
            to_be_freed: None,
            looks: 0,
            housekeeping: Countdown::new(1),
            closed: false,
            one_sided: parts.one_sided,
            due: None,
            calls: None,
            record,
        }
    }

    /// The peer's address or process.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The same link with another name for its peer in errors.
    #[must_use]
    pub fn named(mut self, peer: String) -> Self {
        self.peer = peer;
        self
    }

    /// For the profile.
    #[must_use]
    pub const fn record(&self) -> &VerbsRecord {
        &self.record
    }

    /// Work requests posted so far: messages, and what the link itself has to say.
    #[must_use]
    pub const fn posted(&self) -> u64 {
        self.credits.posted
    }

    /// Times the parts of posting and reaping from now on. What else is measured
    /// meanwhile is longer by the readings of the clock.
    pub(crate) fn time_calls(&mut self, clock: HostClock) {
        self.calls = Some(Box::new(CallTimer::new(clock)));
        self.housekeep_soon();
        self.choose_way();
    }

    /// What was found since, for messages of `size_bytes`; ends it.
    pub(crate) fn take_call_times(&mut self, size_bytes: u32) -> Option<CallTimes> {
        let calls = self.calls.take()?;
        self.choose_way();
        Some(calls.into_times(size_bytes))
    }

    /// The straight way of a session's messages has no way to time calls.
    fn choose_way(&mut self) {
        self.straight = self.in_session && self.calls.is_none();
    }

    /// Whether this end, a responder, has nothing to do but stay: the
    /// initiator reads its memory.
    #[must_use]
    pub fn is_read_from(&self) -> bool {
        self.operation == Operation::Read && self.one_sided.is_none()
    }

    /// Waits until the peer has left, for at most `limit`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Stuck`] when it stays longer.
    pub fn wait_until_closed(&mut self, limit: Duration) -> Result<(), LinkError> {
        let deadline = Deadline::after(limit);
        while !self.peer_has_closed()? {
            if deadline.expired() {
                return Err(LinkError::Stuck { peer: self.peer.clone(), limit });
            }
            wait_bounded(self.control.as_fd(), PollFlags::POLLIN)
                .map_err(|source| LinkError::from_io(&self.peer, "poll", source))?;
        }
        Ok(())
    }

    /// Sends `message` without waiting. Whether there was a credit for it.
    pub(crate) fn send_at_once(&mut self, message: &[u8]) -> bool {
        self.reap().is_ok() && self.has_credit() && self.send_now(message).is_ok()
    }

    /// Looks at what a peer does that waits to be served, without receiving its
    /// hello: at the byte of its slot that arrives last or first.
    pub(crate) fn look_while_queued(&self) -> Queued {
        let at = |offset| self.queue.memory().byte(offset);
        let has_come = match self.operation {
            // Who reads says nothing.
            Operation::Read => true,
            Operation::Write => at(self.awaited) != EMPTY,
            Operation::Datagram => at(self.layout.incoming(0) + GRH_BYTES) == MAGIC[0],
            Operation::Send | Operation::WriteImmediate => at(self.layout.incoming(0)) == MAGIC[0],
        };
        match self.peer_has_closed() {
            Ok(false) if has_come => Queued::Ready,
            Ok(false) => Queued::Incomplete,
            Err(LinkError::Verbs(VerbsError::Talks { .. })) => Queued::Flooding,
            Ok(true) | Err(_) => Queued::Gone,
        }
    }

    /// The control connection carries nothing any more; all it can say is that
    /// the peer has closed it, or is gone.
    pub(super) fn peer_has_closed(&self) -> Result<bool, LinkError> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.control.as_raw_fd(), &mut [0], flags) {
            Ok(0) | Err(Errno::ECONNRESET | Errno::ETIMEDOUT | Errno::EHOSTUNREACH) => Ok(true),
            // Its end would not be seen behind that.
            Ok(_) => Err(VerbsError::Talks { peer: self.peer.clone() }.into()),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(error) => Err(LinkError::from_io(&self.peer, "recv", error.into())),
        }
    }

    #[cold]
    pub(super) fn too_long(&self, length: usize) -> LinkError {
        LinkError::TooLong { length, longest: self.longest as u64 }
    }

    #[cold]
    pub(super) fn failed(&self, action: &'static str, source: io::Error) -> LinkError {
        LinkError::Verbs(VerbsError::Device {
            device: self.record.here.device.clone(),
            action,
            source,
            hint: "see the kernel's log",
        })
    }

    /// A work request ended with an error, which is how a peer that is gone looks
    /// as well.
    #[cold]
    pub(super) fn ended(&self, action: &'static str, failure: Failure) -> LinkError {
        let Failure { status, vendor } = failure;
        if status == UNANSWERED && matches!(self.peer_has_closed(), Ok(true)) {
            return LinkError::Closed { peer: self.peer.clone() };
        }
        LinkError::Verbs(VerbsError::Completion { peer: self.peer.clone(), action, status, vendor })
    }
}

impl Link for VerbsLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties {
            max_message: Bytes(self.longest as u64),
            reliable: self.operation != Operation::Datagram,
        }
    }

    fn begin_session(&mut self) {
        self.in_session = true;
        self.choose_way();
    }

    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        match message.first() {
            Some(&tag) if self.straight && is_tag(tag) => match self.operation {
                Operation::Read => self.send_one_sided(message),
                _ => self.send_of_a_round((tag, message.len()), Timing::Off),
            },
            _ => self.send_otherwise(message),
        }
    }

    #[inline(always)]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.look(buffer)? {
            None if self.count_fruitless_look() => self.housekeep(buffer),
            looked => Ok(looked),
        }
    }

    #[inline(always)]
    fn train<R>(&mut self, message: &[u8], body: impl FnOnce(&mut Self) -> R) -> R {
        self.count_finished_round();
        // Without a wait, in which a request that ended with an error could be found.
        if self.credits.has_entries(1) {
            // An error here comes again at the next send.
            let _shows_again = self.replenish();
        }
        self.prebuild_request(message.len());
        body(self)
    }

    #[inline]
    fn expect_send(&mut self, length: usize) {
        self.prebuild_request(length);
    }

    /// What is due for the message before this one does not fall into the time that
    /// this one takes.
    #[inline]
    fn receive_after<R>(
        &mut self,
        buffer: &mut [u8],
        before: impl FnOnce(&mut Self) -> Result<R, LinkError>,
    ) -> Result<(R, Option<usize>), LinkError> {
        self.replenish()?;
        let before = before(self)?;
        Ok((before, self.wait_receive(buffer)?))
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        if self.operation != Operation::Datagram {
            return Ok(());
        }
        // What has arrived of a round that is over.
        while let Some(arrived) = self.take_arrival()? {
            self.post_receive(arrived.id)?;
        }
        self.reap()
    }
}

impl AsFd for VerbsLink {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for VerbsLink {
    /// Waits until the last messages are acknowledged: a queue pair that is
    /// destroyed drops them.
    fn drop(&mut self) {
        // Who has left acknowledges nothing.
        if self.credits.under_way() == 0 || !matches!(self.peer_has_closed(), Ok(false)) {
            return;
        }
        if !self.signal.has_just_restarted() && self.credits.has_entries(1) {
            self.signal_next();
            // A write of nothing needs no key and no memory.
            let nothing = Source::Memory { offset: 0, length: 0 };
            if self.operation == Operation::Datagram
                || self.post("closing", Verb::Write, 0, nothing).is_err()
            {
                return;
            }
        }
        let deadline = Deadline::after(PARTING);
        while self.credits.under_way() > 0 && !deadline.expired() && self.reap().is_ok() {}
    }
}
