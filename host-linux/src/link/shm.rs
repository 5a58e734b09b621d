//! Shared memory link between two processes of one machine.
//!
//! There are two rings, one for each direction, in memory that the listening side creates and
//! passes over a Unix socket. That control socket stays open, because only it reveals that the
//! peer's process has ended. A message costs one copy into the ring and one out of it, and no
//! system call.

use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use loggap_core::measure::{Link, LinkProperties};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::{
    HostLink, LONGEST_MESSAGE, LinkError, LinkFingerprint, LinkSettings, Queued, Transport, Waiting,
};
use crate::machine::clock::Deadline;
use crate::sys::mapping::SharedMemory;
use crate::sys::pass::{receive_file, send_file};
use crate::sys::ring::{Broken, Consumer, Part, Producer, Taken, footprint};

/// Data bytes of each ring: 15 messages of 64 KiB in flight. Rings that exceed a core's
/// second-level cache are slower and have a larger variance.
pub const RING_BYTES: u64 = 1 << 20;

/// Alignment of the rings: each starts on its own page.
const PAGE: u64 = 4_096;

/// Consecutive empty polls before the control socket is checked for the end of the peer's process:
/// some 100 µs, which is longer than the round trips to be measured.
const LOOKS_BEFORE_ASKING: u32 = 1 << 15;

/// Empty polls for which a yield counts: it takes some 400 ns, but milliseconds on a busy machine.
const YIELD_IN_LOOKS: u32 = LOOKS_BEFORE_ASKING / 64;

/// Link over shared memory.
#[derive(Debug)]
pub struct ShmLink {
    outgoing: Producer,
    incoming: Consumer,
    control: UnixStream,
    peer: String,
    settings: LinkSettings,
    /// Bytes of the current message already in the caller's buffer.
    received: usize,
    /// Consecutive empty polls.
    looks: u32,
}

/// End of the link, which determines the ring that it sends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Creator,
    Guest,
}

impl ShmLink {
    /// Connects to the control socket at `path` and maps the memory that its listener passes.
    ///
    /// # Errors
    ///
    /// [`LinkError::Connect`] if no process listens there or none answers within the limit,
    /// [`LinkError::Broken`] if the answer is not loggap's shared memory.
    pub fn connect(path: &Path, settings: LinkSettings) -> Result<Self, LinkError> {
        let peer = path.display().to_string();
        let control = UnixStream::connect(path).map_err(|source| LinkError::Connect {
            transport: Transport::Shm,
            peer: peer.clone(),
            source,
        })?;
        Self::join(control, peer, settings)
    }

    /// Creates the memory and passes it over `control`; `peer` is the other end's name in errors.
    ///
    /// # Errors
    ///
    /// [`LinkError::System`] if the memory cannot be created, [`LinkError::Closed`] if the peer has
    /// left.
    pub fn create(
        control: UnixStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let memory = memory_length()
            .and_then(SharedMemory::create)
            .map_err(|error| LinkError::from_io(&peer, "creating shared memory", error))?;
        let offer = Offer { ring_bytes: RING_BYTES };
        control
            .set_write_timeout(Some(settings.limit))
            .and_then(|()| send_file(&control, &offer.to_bytes(), memory.descriptor()))
            .map_err(|error| LinkError::from_io(&peer, "passing shared memory", error))?;
        Self::map(&memory, End::Creator, control, peer, settings)
    }

    /// Maps the memory that the other end of `control` creates.
    ///
    /// # Errors
    ///
    /// As for [`ShmLink::connect`].
    pub fn join(
        control: UnixStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let mut bytes = [0; Offer::LENGTH];
        let received = control
            .set_read_timeout(Some(settings.limit))
            .and_then(|()| receive_file(&control, &mut bytes))
            .map_err(|source| LinkError::Connect {
                transport: Transport::Shm,
                peer: peer.clone(),
                source,
            })?;
        let broken = |what| LinkError::Broken { peer: peer.clone(), what };
        let file = match received {
            (0, _) => return Err(LinkError::Closed { peer }),
            (Offer::LENGTH, Some(file)) => file,
            _ => return Err(broken("offered no shared memory")),
        };
        let offer =
            Offer::from_bytes(&bytes).ok_or_else(|| broken("is not loggap's shared memory"))?;
        if offer.ring_bytes != RING_BYTES {
            return Err(broken("offered rings of another size"));
        }
        let memory = memory_length()
            .and_then(|length| SharedMemory::adopt(file, length))
            .map_err(|error| LinkError::from_io(&peer, "taking shared memory", error))?;
        Self::map(&memory, End::Guest, control, peer, settings)
    }

    fn map(
        memory: &SharedMemory,
        end: End,
        control: UnixStream,
        peer: String,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let failed = |error| LinkError::from_io(&peer, "mapping shared memory", error);
        control.set_nonblocking(true).map_err(failed)?;
        let mapping = Arc::new(memory.map().map_err(failed)?);
        let second = ring_stride();
        let (out, into) = match end {
            End::Creator => (0, second),
            End::Guest => (second, 0),
        };
        let misfit = || failed(ErrorKind::InvalidData.into());
        let outgoing = Producer::new(&mapping, out, RING_BYTES).ok_or_else(misfit)?;
        let incoming = Consumer::new(&mapping, into, RING_BYTES).ok_or_else(misfit)?;
        Ok(Self { outgoing, incoming, control, peer, settings, received: 0, looks: 0 })
    }

    /// Appends one record, waiting for space within the time limit.
    #[inline]
    fn put(&mut self, payload: &[u8], part: Part) -> Result<(), LinkError> {
        match self.outgoing.try_put(payload, part) {
            Ok(true) => Ok(()),
            Ok(false) => self.put_later(payload, part),
            Err(Broken) => Err(self.broken()),
        }
    }

    #[cold]
    fn put_later(&mut self, payload: &[u8], part: Part) -> Result<(), LinkError> {
        let deadline = Deadline::after(self.settings.limit);
        while !self.outgoing.try_put(payload, part).map_err(|Broken| self.broken())? {
            if self.look_again()? && deadline.expired() {
                return Err(LinkError::Stuck {
                    peer: self.peer.clone(),
                    limit: self.settings.limit,
                });
            }
        }
        self.looks = 0;
        Ok(())
    }

    #[cold]
    fn send_in_pieces(&mut self, message: &[u8]) -> Result<(), LinkError> {
        if message.len() as u64 > LONGEST_MESSAGE.0 {
            return Err(LinkError::TooLong { length: message.len(), longest: LONGEST_MESSAGE.0 });
        }
        let mut pieces = message.chunks(self.outgoing.longest()).peekable();
        while let Some(piece) = pieces.next() {
            let part = if pieces.peek().is_some() { Part::More } else { Part::Last };
            self.put(piece, part)?;
        }
        Ok(())
    }

    /// Takes one record into the rest of `buffer`.
    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        let rest = buffer.get_mut(self.received..).unwrap_or_default();
        match self.incoming.try_take(rest) {
            Ok(Taken::Nothing) => Ok(None),
            Ok(Taken::Bytes { length, part }) => {
                self.looks = 0;
                self.received += length;
                Ok(match part {
                    Part::More => None,
                    Part::Last => Some(std::mem::take(&mut self.received)),
                })
            }
            Ok(Taken::NoRoom { length }) => Err(LinkError::NoRoom {
                peer: self.peer.clone(),
                length: self.received.saturating_add(length),
                room: buffer.len(),
            }),
            Err(Broken) => Err(self.broken()),
        }
    }

    /// Counts an empty poll, and yields if the settings say so. True if the peer was due to be
    /// checked, and is alive.
    #[inline]
    fn look_again(&mut self) -> Result<bool, LinkError> {
        self.looks += match self.settings.waiting {
            Waiting::Poll => 1,
            Waiting::Block => {
                thread::yield_now();
                YIELD_IN_LOOKS
            }
        };
        let is_long = self.looks >= LOOKS_BEFORE_ASKING;
        if is_long {
            self.looks = 0;
            self.ask_whether_the_peer_lives()?;
        }
        Ok(is_long)
    }

    /// Checks whether the peer has closed the control socket, which carries nothing else after the
    /// memory.
    #[cold]
    fn ask_whether_the_peer_lives(&mut self) -> Result<(), LinkError> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.control.as_raw_fd(), &mut [0], flags) {
            // Messages sent before it left can still be read.
            Ok(0) if !self.incoming.is_empty() => Ok(()),
            Ok(0) | Err(Errno::ECONNRESET) => Err(LinkError::Closed { peer: self.peer.clone() }),
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(error) => Err(LinkError::from_io(&self.peer, "recv", error.into())),
        }
    }

    fn broken(&self) -> LinkError {
        LinkError::Broken {
            peer: self.peer.clone(),
            what: "wrote impossible positions into the shared memory",
        }
    }
}

impl Link for ShmLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties::reliable(LONGEST_MESSAGE)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        if message.len() <= self.outgoing.longest() {
            self.put(message, Part::Last)
        } else {
            self.send_in_pieces(message)
        }
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if let Some(length) = self.look(buffer)? {
            return Ok(Some(length));
        }
        self.look_again()?;
        match self.settings.waiting {
            Waiting::Poll => Ok(None),
            Waiting::Block => self.look(buffer),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

impl HostLink for ShmLink {
    fn transport(&self) -> Transport {
        Transport::Shm
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn fingerprint(&self) -> LinkFingerprint {
        LinkFingerprint::basic(self)
    }

    /// False if the ring is full. The frame must be short.
    fn send_at_once(&mut self, frame: &[u8]) -> bool {
        matches!(self.outgoing.try_put(frame, Part::Last), Ok(true))
    }

    fn look_while_queued(&mut self) -> Queued {
        // Its hello stays in the ring, and a flood only fills the ring.
        match self.ask_whether_the_peer_lives() {
            Ok(()) if self.incoming.is_empty() => Queued::Incomplete,
            Ok(()) => Queued::Ready,
            Err(_) => Queued::Gone,
        }
    }
}

impl AsFd for ShmLink {
    /// The control socket, which closes when the peer's process ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

/// Message that the creator sends with the memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Offer {
    ring_bytes: u64,
}

impl Offer {
    const LENGTH: usize = 16;
    /// Name and version of the layout.
    const MAGIC: [u8; 8] = *b"lgshm\0\0\x01";

    fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let (magic, ring_bytes) = bytes.split_at_mut(Self::MAGIC.len());
        magic.copy_from_slice(&Self::MAGIC);
        ring_bytes.copy_from_slice(&self.ring_bytes.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let (magic, ring_bytes) = bytes.split_first_chunk()?;
        let ring_bytes = u64::from_le_bytes(ring_bytes.try_into().ok()?);
        (*magic == Self::MAGIC).then_some(Self { ring_bytes })
    }
}

/// Distance between the starts of the two rings, bytes.
const fn ring_stride() -> u64 {
    footprint(RING_BYTES).next_multiple_of(PAGE)
}

fn memory_length() -> io::Result<NonZeroUsize> {
    usize::try_from(2 * ring_stride())
        .ok()
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| ErrorKind::OutOfMemory.into())
}
