//! Clients wait here while one of them is served.
//!
//! A responder serves one client at a time: two would measure each other.
//! A thread owns the listener, takes whoever comes, tells everybody their
//! position when they come, when it changes, and from time to time as a sign
//! of life, and hands the next one out when asked. It sleeps in `poll`
//! otherwise, so that it does not disturb a measurement.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loggap_core::measure::Link;
use loggap_core::wire::{FRAME_LEN, Message, Refusal};
use nix::errno::Errno;
use nix::libc::POLLRDHUP;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock::Deadline;
use crate::link::AnyLink;
use crate::listen::{ListenError, Listener};

/// Clients that may wait at a time unless said otherwise.
pub const DEFAULT_CAPACITY: usize = 16;

/// The peer has closed or at least stopped sending.
const HUNG_UP: PollFlags = PollFlags::from_bits_retain(POLLRDHUP);

/// The serving side's handle on the clients that wait.
#[derive(Debug)]
pub struct Lobby {
    next: Receiver<Result<AnyLink, ListenError>>,
    /// A byte asks for the next client; shutting it down ends the thread.
    asking: UnixStream,
    asked: bool,
    thread: Option<JoinHandle<()>>,
}

impl Lobby {
    /// Takes clients from `listener` on a thread of its own from now on. Up
    /// to `capacity` wait, further ones are refused.
    ///
    /// The thread inherits the processors that the caller may use: call this
    /// before the serving thread is pinned.
    ///
    /// # Errors
    ///
    /// The system has no more threads or descriptors.
    pub fn open(listener: Listener, capacity: usize) -> io::Result<Self> {
        let (asking, questions) = UnixStream::pair()?;
        questions.set_nonblocking(true)?;
        let (out, next) = mpsc::channel();
        let room = Room {
            listener,
            questions,
            out,
            capacity,
            waiting: VecDeque::new(),
            leaving: VecDeque::new(),
            wanted: false,
            serving: false,
        };
        let thread = thread::Builder::new().name("lobby".into()).spawn(move || room.run())?;
        Ok(Self { next, asking, asked: false, thread: Some(thread) })
    }

    /// Waits up to `limit` for the next client; `None` when none came.
    /// Asking says that the client before has been served.
    ///
    /// # Errors
    ///
    /// What the listener said; no further client will come.
    pub fn next(&mut self, limit: Duration) -> Result<Option<AnyLink>, ListenError> {
        if !self.asked {
            // When the thread has ended, its last word is in the channel.
            self.asked = (&self.asking).write_all(&[1]).is_ok();
        }
        match self.next.recv_timeout(limit) {
            Ok(outcome) => {
                self.asked = false;
                outcome.map(Some)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }
}

impl Drop for Lobby {
    /// Waits until the listener is closed, so that a socket in the file
    /// system does not outlive the process.
    fn drop(&mut self) {
        let _closed_already = self.asking.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _what_it_said_is_in_the_channel = thread.join();
        }
    }
}

/// What the thread works on.
struct Room {
    listener: Listener,
    questions: UnixStream,
    out: Sender<Result<AnyLink, ListenError>>,
    capacity: usize,
    waiting: VecDeque<AnyLink>,
    /// Refused, and kept open until they have read why.
    leaving: VecDeque<(AnyLink, Deadline)>,
    /// Whether the serving side waits for a client.
    wanted: bool,
    /// Whether a client that was handed out is being served.
    serving: bool,
}

/// What woke the thread.
struct Woken {
    questions: bool,
    newcomers: bool,
    /// Indices of clients that hung up, ascending.
    gone: Vec<usize>,
    nothing: bool,
}

impl Room {
    /// Between two signs of life to those who wait; they give up after a
    /// minute without any.
    const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
    /// How long a refused client may take to read why.
    const PARTING: Duration = Duration::from_secs(1);

    fn run(mut self) {
        if let Err(error) = self.serve_until_closed() {
            let _nobody_asks_any_more = self.out.send(Err(error));
        }
    }

    fn serve_until_closed(&mut self) -> Result<(), ListenError> {
        loop {
            let woken = self.sleep();
            let before = self.waiting.len();
            for index in woken.gone.iter().rev() {
                self.waiting.remove(*index);
            }
            let mut changed = self.waiting.len() < before || woken.nothing;
            if woken.questions && !self.hear() {
                return Ok(());
            }
            if woken.newcomers {
                changed |= self.let_in()?;
            }
            if self.wanted
                && let Some(link) = self.waiting.pop_front()
            {
                if self.out.send(Ok(link)).is_err() {
                    return Ok(());
                }
                (self.wanted, self.serving, changed) = (false, true, true);
            }
            if changed {
                self.announce();
            }
            self.leaving.retain(|(_, until)| !until.expired());
        }
    }

    /// Sleeps until something happens.
    fn sleep(&self) -> Woken {
        let timeout = match (self.leaving.is_empty(), self.waiting.is_empty()) {
            (false, _) => PollTimeout::try_from(Self::PARTING).unwrap_or(PollTimeout::MAX),
            (true, false) => PollTimeout::try_from(Self::SIGN_OF_LIFE).unwrap_or(PollTimeout::MAX),
            (true, true) => PollTimeout::NONE,
        };
        // Those who wait have sent their greeting, which nobody reads yet:
        // only their hanging up is of interest.
        let mut sockets = vec![
            PollFd::new(self.questions.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        sockets.extend(self.waiting.iter().map(|link| PollFd::new(link.as_fd(), HUNG_UP)));
        let woken = poll(&mut sockets, timeout);
        // `None` are events that `PollFlags` has no name for: a hang-up.
        let ready = |socket: &PollFd<'_>| socket.revents().is_none_or(|events| !events.is_empty());
        let mut each = sockets.iter().map(ready);
        Woken {
            nothing: matches!(woken, Ok(0) | Err(Errno::EINTR)),
            questions: each.next().unwrap_or(false),
            newcomers: each.next().unwrap_or(false),
            gone: each.enumerate().filter_map(|(index, gone)| gone.then_some(index)).collect(),
        }
    }

    /// Reads what the serving side asks; false when it has closed.
    fn hear(&mut self) -> bool {
        let mut bytes = [0; 16];
        match self.questions.read(&mut bytes) {
            Ok(0) => false,
            Ok(_) => {
                (self.wanted, self.serving) = (true, false);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Takes everybody who has come; whether anybody has.
    fn let_in(&mut self) -> Result<bool, ListenError> {
        let mut came = false;
        while let Some(mut link) = self.listener.try_accept()? {
            if self.waiting.len() < self.capacity {
                self.waiting.push_back(link);
                came = true;
                continue;
            }
            let waiting = self.waiting.len() as u64;
            if tell(&mut link, &Message::Refuse(Refusal::Busy { waiting })) {
                self.leaving.push_back((link, Deadline::after(Self::PARTING)));
            }
            if self.leaving.len() > self.capacity {
                self.leaving.pop_front();
            }
        }
        Ok(came)
    }

    /// Tells everybody how many are before them; drops those who are gone.
    fn announce(&mut self) {
        let mut ahead = u32::from(self.serving);
        self.waiting.retain_mut(|link| {
            let here = ahead == 0 || tell(link, &Message::Queue { position: ahead });
            ahead += u32::from(here);
            here
        });
    }
}

/// Whether the peer could be told. A frame is small against what an idle
/// link takes without waiting.
fn tell(link: &mut AnyLink, message: &Message) -> bool {
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    link.send(&frame).is_ok()
}
