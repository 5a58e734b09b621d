//! Messages over a queue pair.
//!
//! Every message is copied into and out of registered memory, as an eager
//! protocol does; one that is short enough travels within its work request
//! instead. The memory of an end holds as many messages of each direction as
//! may be under way. On a reliable queue pair the receiver writes back how many
//! it has consumed, after half of them, so that a sender never overtakes: no
//! message meets a receiver without a place for it.

use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{io, thread};

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, recv};

use super::error::VerbsError;
use super::one_sided::OneSided;
use super::record::VerbsRecord;
use super::settings::Operation;
use super::station::{
    CONSUMED_BY_PEER, CONSUMED_HERE, DATAGRAM_HEAD, EMPTY, ESCAPED_BY_PEER, ESCAPED_HERE, Layout,
};
use crate::link::stream::wait_bounded;
use crate::link::{LinkError, LinkSettings, Queued, Waiting};
use crate::machine::clock::Deadline;
use crate::sys::verbs::{Completion, Queue, Source, Verb, Work};

/// Looks in a row that found nothing before failed sends are looked for.
const LOOKS_BEFORE_REAPING: u32 = 1 << 9;
/// Looks in a row that found nothing before the control connection is asked
/// whether the peer still lives: a system call.
const LOOKS_BEFORE_ASKING: u32 = 1 << 14;
/// How long the last messages may take when the link is dropped.
const PARTING: Duration = Duration::from_millis(500);

/// Messages over RDMA verbs.
#[derive(Debug)]
pub struct VerbsLink {
    pub(super) queue: Queue,
    control: TcpStream,
    peer: String,
    settings: LinkSettings,
    pub(super) operation: Operation,
    pub(super) layout: Layout,
    /// Longest message in bytes.
    longest: usize,
    /// The peer's memory, and its key.
    pub(super) remote: (u64, u32),
    /// Longest message that travels within its request.
    inline: usize,
    /// A completion for each so many sends, and sends until the next.
    signal: (u32, u32),
    /// Entries of the send queue.
    capacity: u64,
    /// Messages sent.
    sent: u64,
    /// Work requests posted, and how many of them are known to be over.
    posted: u64,
    completed: u64,
    /// Messages received, and how many of them the peer knows of.
    consumed: u64,
    returned: u64,
    /// Looks in a row that found nothing.
    looks: u32,
    /// The control connection has closed.
    closed: bool,
    one_sided: Option<Box<OneSided>>,
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
    pub(super) remote: (u64, u32),
    pub(super) signal_every: u16,
    pub(super) one_sided: Option<Box<OneSided>>,
    pub(super) record: VerbsRecord,
}

impl VerbsLink {
    pub(super) fn of(parts: Parts) -> Self {
        let Parts { queue, control, peer, settings, operation, layout, .. } = parts;
        let signal = u32::from(parts.signal_every);
        let mut record = parts.record;
        // No more than was asked for, whatever the device grants.
        let granted = record.inline_bytes.min(queue.inline());
        record.inline_bytes = granted;
        record.registered_bytes = layout.bytes() as u64;
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
            signal: (signal, signal),
            capacity: layout.sends() as u64,
            sent: 0,
            posted: 0,
            completed: 0,
            consumed: 0,
            returned: 0,
            looks: 0,
            closed: false,
            one_sided: parts.one_sided,
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

    /// The connection that says whether the peer lives.
    #[must_use]
    pub const fn control(&self) -> &TcpStream {
        &self.control
    }

    /// For the profile.
    #[must_use]
    pub const fn record(&self) -> &VerbsRecord {
        &self.record
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
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Sends `message` without waiting. Whether there was room.
    pub(crate) fn send_at_once(&mut self, message: &[u8]) -> bool {
        self.reap().is_ok() && self.has_room() && self.send_now(message).is_ok()
    }

    /// A connected queue pair holds the hello; the control connection says
    /// whether the peer is still there.
    pub(crate) fn look_while_queued(&self) -> Queued {
        match self.peer_has_closed() {
            Ok(false) => Queued::Ready,
            Ok(true) | Err(_) => Queued::Gone,
        }
    }

    /// Whether one more message finds a place at both ends.
    #[inline]
    fn has_room(&self) -> bool {
        if self.posted - self.completed >= self.capacity {
            return false;
        }
        let under_way = match self.operation {
            Operation::Read => return true,
            // Its place is free when the device has sent it.
            Operation::Datagram => self.posted - self.completed,
            _ => {
                let consumed = self.queue.memory().number(CONSUMED_BY_PEER);
                // Counts modulo 2³².
                #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
                let sent = self.sent as u32;
                u64::from(sent.wrapping_sub(consumed))
            }
        };
        under_way < self.layout.slots as u64
    }

    #[cold]
    fn wait_for_room(&mut self) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.settings.limit);
        let mut looks = 0_u32;
        loop {
            self.reap()?;
            if self.has_room() {
                return Ok(());
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_BEFORE_ASKING) {
                if self.peer_has_closed()? {
                    return Err(LinkError::Closed { peer: self.peer.clone() });
                }
                if deadline.expired() {
                    let limit = self.settings.limit;
                    return Err(LinkError::Stuck { peer: self.peer.clone(), limit });
                }
            }
            if self.settings.waiting == Waiting::Block {
                thread::yield_now();
            }
        }
    }

    /// Sends a message for which there is room.
    #[inline]
    fn send_now(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let index = self.sent;
        let place = self.layout.incoming(index);
        let length = message.len();
        let (verb, offset) = match self.operation {
            // The last byte is the last of its place, which the peer polls.
            Operation::Write if message.last() == Some(&EMPTY) => {
                return self.send_escaped(message);
            }
            Operation::Write => (Verb::Write, place + self.layout.slot - length),
            Operation::WriteImmediate => {
                (Verb::WriteImmediate(u32::try_from(length).unwrap_or(u32::MAX)), place)
            }
            _ => (Verb::Send, place),
        };
        let source = if length <= self.inline {
            Source::Inline(message, &[])
        } else {
            let offset = self.layout.outgoing(index);
            if !self.queue.memory().write(offset, message) {
                return Err(self.too_long(length));
            }
            Source::Memory { offset, length }
        };
        self.post("send", verb, offset, source)?;
        self.sent += 1;
        Ok(())
    }

    /// Writes a message whose last byte is what an empty place ends with: with
    /// another one, and with a word about that before it, which arrives first.
    #[cold]
    fn send_escaped(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let number = Self::escape(self.sent);
        let (from, length) = (ESCAPED_HERE, number.len());
        self.queue.memory().write(from, &number);
        self.signal_next();
        let word = Source::Memory { offset: from, length };
        self.post("send", Verb::Write, ESCAPED_BY_PEER, word)?;
        let offset = self.layout.outgoing(self.sent);
        let place = self.layout.incoming(self.sent) + self.layout.slot - message.len();
        let memory = self.queue.memory();
        if !memory.write(offset, message) {
            return Err(self.too_long(message.len()));
        }
        memory.set_byte(offset + message.len() - 1, !EMPTY);
        self.signal_next();
        let source = Source::Memory { offset, length: message.len() };
        self.post("send", Verb::Write, place, source)?;
        self.sent += 1;
        // The word's place is free for the next one then.
        let deadline = Deadline::after(self.settings.limit);
        while self.completed < self.posted && !deadline.expired() {
            self.reap()?;
        }
        Ok(())
    }

    /// The word about message `index`; 0 is about none.
    const fn escape(index: u64) -> [u8; 4] {
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let number = (index as u32).wrapping_add(1);
        number.to_le_bytes()
    }

    /// Posts a work request that acts on the peer's memory at `offset`.
    #[inline]
    pub(super) fn post(
        &mut self,
        action: &'static str,
        verb: Verb,
        offset: usize,
        source: Source<'_>,
    ) -> Result<(), LinkError> {
        self.signal.1 -= 1;
        let signalled = self.signal.1 == 0;
        if signalled {
            self.signal.1 = self.signal.0;
        }
        let work = Work {
            verb,
            remote_address: self.remote.0.wrapping_add(offset as u64),
            remote_key: self.remote.1,
            id: self.posted + 1,
            signalled,
        };
        match self.queue.post(&work, source) {
            Ok(()) => {
                self.posted += 1;
                Ok(())
            }
            Err(source) => Err(self.failed(action, source)),
        }
    }

    /// The next request gets a completion.
    pub(super) fn signal_next(&mut self) {
        self.signal.1 = 1;
    }

    /// Looks at all sends that are over.
    #[inline]
    pub(super) fn reap(&mut self) -> Result<(), LinkError> {
        loop {
            match self.queue.poll_sent() {
                Ok(None) => return Ok(()),
                Ok(Some(Completion { id, error: None, .. })) => self.completed = id,
                Ok(Some(Completion { error: Some(error), .. })) => {
                    return Err(self.ended("a message to it", error));
                }
                Err(source) => return Err(self.failed("polling for completions", source)),
            }
        }
    }

    /// Work requests that are known to be over.
    pub(super) const fn completed(&self) -> u64 {
        self.completed
    }

    pub(super) const fn posted(&self) -> u64 {
        self.posted
    }

    /// Looks once for a message.
    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let found = match self.operation {
            Operation::Write => self.look_at_memory(buffer)?,
            Operation::Read => return self.look_one_sided(buffer),
            _ => self.look_at_completions(buffer)?,
        };
        if found.is_none() { self.found_nothing() } else { Ok(found) }
    }

    /// A message is there when the last byte of its place is.
    #[inline]
    fn look_at_memory(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let end = self.layout.incoming(self.consumed) + self.layout.slot;
        let memory = self.queue.memory();
        let last = memory.byte(end - 1);
        if last == EMPTY {
            return Ok(None);
        }
        let length = buffer.len();
        if length > self.longest || !memory.read(end - length, buffer) {
            return Err(self.too_long(length));
        }
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

    #[inline]
    fn look_at_completions(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let arrived = match self.queue.poll_received() {
            Ok(None) => return Ok(None),
            Ok(Some(arrived)) => arrived,
            Err(source) => return Err(self.failed("polling for messages", source)),
        };
        if let Some(error) = arrived.error {
            // Receives are flushed after something else has failed.
            self.reap()?;
            return Err(self.ended("a receive", error));
        }
        let datagram = self.operation == Operation::Datagram;
        let head = if datagram { DATAGRAM_HEAD } else { 0 };
        let length = match self.operation {
            Operation::WriteImmediate => arrived.immediate as usize,
            _ => arrived.length.saturating_sub(head),
        };
        let place = self.layout.incoming(arrived.id);
        let room = buffer.len();
        let fits = match buffer.get_mut(..length) {
            Some(target) => self.queue.memory().read(place + head, target),
            None => false,
        };
        let bytes = self.layout.receive_bytes(self.operation);
        if let Err(source) = self.queue.post_receive(arrived.id, place, bytes) {
            return Err(self.failed("posting a receive", source));
        }
        match (fits, datagram) {
            (true, true) => Ok(Some(length)),
            // Anybody may have sent it.
            (false, true) => Ok(None),
            (true, false) => {
                self.consume()?;
                Ok(Some(length))
            }
            (false, false) => Err(LinkError::NoRoom { peer: self.peer.clone(), length, room }),
        }
    }

    /// A place is free again; tells the peer when half of them are.
    #[inline]
    fn consume(&mut self) -> Result<(), LinkError> {
        self.looks = 0;
        self.consumed += 1;
        if self.consumed - self.returned >= self.layout.slots as u64 / 2 {
            self.tell_consumed()?;
        }
        Ok(())
    }

    #[cold]
    fn tell_consumed(&mut self) -> Result<(), LinkError> {
        while self.posted - self.completed >= self.capacity {
            self.reap()?;
        }
        #[allow(clippy::cast_possible_truncation, reason = "counts modulo 2³²")]
        let bytes = (self.consumed as u32).to_le_bytes();
        let source = if bytes.len() <= self.inline {
            Source::Inline(&bytes, &[])
        } else {
            // What the device has not fetched yet is overwritten by what is true, too.
            self.queue.memory().write(CONSUMED_HERE, &bytes);
            Source::Memory { offset: CONSUMED_HERE, length: bytes.len() }
        };
        self.post("telling what was consumed", Verb::Write, CONSUMED_BY_PEER, source)?;
        self.returned = self.consumed;
        Ok(())
    }

    fn look_one_sided(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let Some(mut one_sided) = self.one_sided.take() else { return self.found_nothing() };
        let found = one_sided.look(self, buffer);
        self.one_sided = Some(one_sided);
        match found {
            Ok(None) => self.found_nothing(),
            other => other,
        }
    }

    #[inline]
    fn found_nothing(&mut self) -> Result<Option<usize>, LinkError> {
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_BEFORE_REAPING) {
            self.reap()?;
            if self.looks >= LOOKS_BEFORE_ASKING {
                self.looks = 0;
                self.ask_whether_the_peer_lives()?;
            }
        }
        Ok(None)
    }

    /// What it sent before it left has arrived by the next look.
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

    /// The control connection carries nothing any more; all it can say is that
    /// the peer has closed it.
    fn peer_has_closed(&self) -> Result<bool, LinkError> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.control.as_raw_fd(), &mut [0], flags) {
            Ok(0) | Err(Errno::ECONNRESET | Errno::ETIMEDOUT) => Ok(true),
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(error) => Err(LinkError::from_io(&self.peer, "recv", error.into())),
        }
    }

    /// Sleeps until a completion arrives, a bounded time, and looks again.
    fn sleep_and_look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
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
        came.map_err(|source| self.failed("taking an event", source))?;
        self.reap()?;
        self.look(buffer)
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

    #[cold]
    fn ended(&self, action: &'static str, (status, vendor): (u32, u32)) -> LinkError {
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

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        if message.len() > self.longest {
            return Err(self.too_long(message.len()));
        }
        // Nobody could see it arrive.
        debug_assert!(!message.is_empty());
        if !self.has_room() {
            self.wait_for_room()?;
        }
        if self.operation != Operation::Read {
            return self.send_now(message);
        }
        let Some(mut one_sided) = self.one_sided.take() else { return Ok(()) };
        let sent = one_sided.send(self, message);
        self.one_sided = Some(one_sided);
        sent
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.look(buffer)? {
            None if self.settings.waiting == Waiting::Block => self.sleep_and_look(buffer),
            looked => Ok(looked),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        if self.operation != Operation::Datagram {
            return Ok(());
        }
        // What has arrived of a round that is over.
        while self.look_at_completions(&mut [])?.is_some() {}
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
        if self.posted == self.completed {
            return;
        }
        if self.signal.1 != self.signal.0 && self.posted - self.completed < self.capacity {
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
        while self.completed < self.posted && !deadline.expired() && self.reap().is_ok() {}
    }
}
