//! Link over a queue pair.
//!
//! Control frames are copied into and out of registered memory. The other messages of a session are
//! those of its timed rounds. Only their first byte matters, so they are sent from a slot that was
//! filled when the link was created, and stay where they arrive: the processor writes and reads
//! only that byte. Short messages are sent inline, within the work request. The memory of an end
//! has slots for as many messages in each direction as may be in flight. On a reliable queue pair
//! the receiver announces how many messages it has consumed, after half of the slots and when it is
//! idle, so that a message always finds a free slot.
//!
//! The path of a message from the timed kernels to the device is inlined completely: half a round
//! trip takes 12,500 instructions on soft-RoCE and far fewer on a network interface, so calls would
//! show. Messages of rounds take a fast path, for which everything is prepared beforehand: the
//! credit, and the work request except for its number. Everything else is in separate functions,
//! and work that a message causes is deferred to the next poll that finds nothing.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::MAGIC;
use nix::errno::Errno;
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
use crate::link::{HostLink, LinkError, LinkFingerprint, LinkSettings, Queued, Transport};
use crate::machine::clock::{Deadline, HostClock};
use crate::sys::verbs::{Failure, Queue, Source, Verb};

/// Consecutive empty polls before a system call checks the control connection for the peer's end.
pub(super) const LOOKS_BEFORE_ASKING: u32 = 1 << 18;
/// Time limit for outstanding messages when the link is dropped.
const PARTING: Duration = Duration::from_millis(500);

/// Address and key of the peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteMemory {
    pub(super) address: u64,
    pub(super) key: u32,
}

/// Link over RDMA verbs.
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
    /// Longest message sent inline, bytes.
    pub(super) inline: usize,
    /// Countdown to the next send that is signalled, that is, generates a completion.
    pub(super) signal: Countdown,
    /// Counters of messages, and flow control.
    pub(super) credits: SendCredits,
    /// For writes: offset of the last byte of the next message's slot, which is polled.
    pub(super) awaited: usize,
    /// True during a session.
    pub(super) in_session: bool,
    /// True if messages of rounds take the fast path of [`Self::send`].
    pub(super) straight: bool,
    /// Message length of the prebuilt request; 0 before there is one.
    pub(super) standing_length: usize,
    /// The slot consumed last, while its receive has not been posted again.
    pub(super) to_be_freed: Option<u64>,
    /// Consecutive empty polls, up to the last housekeeping.
    pub(super) looks: u32,
    /// Empty polls until the next housekeeping.
    pub(super) housekeeping: Countdown,
    /// True if the control connection has closed.
    pub(super) closed: bool,
    pub(super) one_sided: Option<Box<OneSided>>,
    /// For reads: the pending reply.
    pub(super) due: Option<Due>,
    /// Timer for the parts of calls, in separate rounds.
    pub(super) calls: Option<Box<CallTimer>>,
    record: VerbsRecord,
}

/// Parts of which [`VerbsLink::of`] creates a link.
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
        // A completion is due at the latest when half of the queue's entries wait for one.
        let signal = u32::from(parts.signal_every).min(capacity / 2).max(1);
        let mut record = parts.record;
        // Not more than requested, even if the device grants more.
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

    /// This link with another name for its peer in errors.
    #[must_use]
    pub fn named(mut self, peer: String) -> Self {
        self.peer = peer;
        self
    }

    /// The link's entry in a profile.
    #[must_use]
    pub const fn record(&self) -> &VerbsRecord {
        &self.record
    }

    /// Work requests posted so far: messages, and those of the link itself.
    #[must_use]
    pub const fn posted(&self) -> u64 {
        self.credits.posted
    }

    /// Selects the fast path for messages of a session, unless calls are timed.
    fn choose_way(&mut self) {
        self.straight = self.in_session && self.calls.is_none();
    }

    /// True if the peer has closed the control connection or is gone. The connection carries no
    /// data any more.
    pub(super) fn peer_has_closed(&self) -> Result<bool, LinkError> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.control.as_raw_fd(), &mut [0], flags) {
            Ok(0) | Err(Errno::ECONNRESET | Errno::ETIMEDOUT | Errno::EHOSTUNREACH) => Ok(true),
            // Unread data would hide the end of the connection.
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

    /// Error of a work request; also the way in which a vanished peer shows.
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
            one_sided: self.operation == Operation::Read,
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
                _ => self.send_of_a_round(tag, message.len(), Timing::Off),
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
        // Does not wait and polls no completions, because an error could be found there.
        if self.credits.has_entries(1) {
            // An error here is reported again by the next send.
            let _shows_again = self.replenish();
        }
        self.prebuild_request(message.len());
        body(self)
    }

    #[inline]
    fn expect_send(&mut self, length: usize) {
        self.prebuild_request(length);
    }

    /// Does the work due for the previous message before `before`, so that it is not timed as part
    /// of this one.
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
        // Discards messages of a finished round.
        while let Some(arrived) = self.take_arrival()? {
            self.post_receive(arrived.id)?;
        }
        self.reap()
    }
}

impl HostLink for VerbsLink {
    fn transport(&self) -> Transport {
        Transport::Verbs
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn fingerprint(&self) -> LinkFingerprint {
        let (record, basic) = (&self.record, LinkFingerprint::basic(self));
        let on_interface = match record.here.interface.clone() {
            Some(name) => basic.on_interface(name),
            None => basic,
        };
        LinkFingerprint {
            mtu_bytes: Some(record.mtu_bytes.into()),
            speed_bits_per_s: record.here.rate_bits_per_s,
            verbs: Some(record.clone()),
            ..on_interface
        }
    }

    /// False if there was no credit or the send failed.
    fn send_at_once(&mut self, frame: &[u8]) -> bool {
        self.reap().is_ok() && self.has_credit() && self.send_now(frame).is_ok()
    }

    /// The peer's hello is not received; only the byte of its slot that arrives last, or first, is
    /// checked.
    fn look_while_queued(&mut self) -> Queued {
        let at = |offset| self.queue.memory().byte(offset);
        let has_come = match self.operation {
            // A peer that reads sends no hello.
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

    fn time_calls(&mut self, clock: HostClock) -> bool {
        self.calls = Some(Box::new(CallTimer::new(clock)));
        self.housekeep_soon();
        self.choose_way();
        true
    }

    fn take_call_times(&mut self, size_bytes: u32) -> Option<CallTimes> {
        let calls = self.calls.take()?;
        self.choose_way();
        Some(calls.into_times(size_bytes))
    }
}

impl AsFd for VerbsLink {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for VerbsLink {
    /// Waits until the last messages are acknowledged: destroying a queue pair drops them.
    fn drop(&mut self) {
        // A peer that has left does not acknowledge.
        if self.credits.under_way() == 0 || !matches!(self.peer_has_closed(), Ok(false)) {
            return;
        }
        if !self.signal.has_just_restarted() && self.credits.has_entries(1) {
            self.signal_next();
            // An empty write needs no key and no memory.
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
