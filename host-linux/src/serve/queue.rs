//! Queue of clients that wait while one is served.
//!
//! A responder serves one client at a time, as two would disturb each other. A thread owns the
//! listener and accepts clients. It sends all waiting clients their position on arrival, on change,
//! and periodically as a keep-alive, and hands out the next client on request. In between it sleeps
//! in `poll`, to disturb no measurement.
//!
//! No client delays another: sends never block, a client is handed out only once its hello is
//! complete, and one that sends more than a hello while it waits is disconnected.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loggap_core::wire::{Message, Refusal};
use nix::libc::POLLRDHUP;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::link::{AnyLink, Queued};
use crate::machine::clock::Deadline;
use crate::serve::hello::frame;
use crate::serve::listener::{Arrival, ListenError, Listener, TurnedAway};

/// Default capacity of the queue.
pub const DEFAULT_CAPACITY: usize = 16;

/// The peer has closed its end, or shut down its sending side.
const HUNG_UP: PollFlags = PollFlags::from_bits_retain(POLLRDHUP);

/// Event of the queue.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one at a time, once a connection")]
pub enum Event {
    /// The next client.
    Client(AnyLink),
    /// Number of clients turned away since the last such event, and the last of them.
    TurnedAway(u64, TurnedAway),
    /// Connections cannot be accepted for now. Reported at most once a minute.
    Trouble(ListenError),
}

/// Handle of the serving side on the queue.
#[derive(Debug)]
pub struct ClientQueue {
    events: Receiver<Result<Event, ListenError>>,
    /// Writing a byte requests the next client; shutting it down ends the thread.
    requests: UnixStream,
    requested: bool,
    thread: Option<JoinHandle<()>>,
}

impl ClientQueue {
    /// Starts a thread that accepts clients from `listener`. Up to `capacity` clients wait; further
    /// ones are refused.
    ///
    /// The thread inherits the caller's affinity: call this before the serving thread is pinned.
    ///
    /// # Errors
    ///
    /// System error: no thread or descriptor available.
    pub fn open(listener: Listener, capacity: usize) -> io::Result<Self> {
        let (requests, received) = UnixStream::pair()?;
        received.set_nonblocking(true)?;
        let (out, events) = mpsc::channel();
        let worker = Worker {
            listener,
            requests: received,
            out,
            capacity,
            waiting: VecDeque::new(),
            refused: VecDeque::new(),
            turned_away: TurnedAwayCount::default(),
            requested: false,
            serving: false,
            sign_of_life_due: Deadline::after(Worker::SIGN_OF_LIFE),
            pause: None,
            trouble_reported: None,
        };
        let thread = thread::Builder::new().name("queue".into()).spawn(move || worker.run())?;
        Ok(Self { events, requests, requested: false, thread: Some(thread) })
    }

    /// Waits up to `limit` for the next client or event; `None` on timeout. The call also states
    /// that the previous client has been served.
    ///
    /// # Errors
    ///
    /// [`ListenError`]: the listener is closed, and no client will follow.
    pub fn next(&mut self, limit: Duration) -> Result<Option<Event>, ListenError> {
        if !self.requested {
            // If the thread has ended, its last event is in the channel.
            self.requested = (&self.requests).write_all(&[1]).is_ok();
        }
        match self.events.recv_timeout(limit) {
            Ok(outcome) => {
                self.requested &= !matches!(outcome, Ok(Event::Client(_)));
                outcome.map(Some)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }
}

impl Drop for ClientQueue {
    /// Waits until the listener is closed, so that its socket file does not outlive the process.
    fn drop(&mut self) {
        let _closed_already = self.requests.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _what_it_said_is_in_the_channel = thread.join();
        }
    }
}

/// State of the queue's thread.
struct Worker {
    listener: Listener,
    requests: UnixStream,
    out: Sender<Result<Event, ListenError>>,
    capacity: usize,
    waiting: VecDeque<Client>,
    /// Refused clients, kept open until they have read the reason.
    refused: VecDeque<(AnyLink, Deadline)>,
    turned_away: TurnedAwayCount,
    /// True if the serving side waits for a client.
    requested: bool,
    /// True while a client that was handed out is being served.
    serving: bool,
    /// Due time of the next keep-alive to waiting clients.
    sign_of_life_due: Deadline,
    /// After an error of the listener: the time of the next attempt, and the length of the pause.
    pause: Option<(Deadline, Duration)>,
    /// End of the period in which further errors of the listener are not reported.
    trouble_reported: Option<Deadline>,
}

/// A waiting client.
struct Client {
    link: AnyLink,
    state: Queued,
    /// End of the grace period in which its hello may still be on the way.
    came: Deadline,
    /// Deadline of its hello.
    hello_due: Deadline,
}

/// Clients turned away but not yet reported.
#[derive(Default)]
struct TurnedAwayCount {
    count: u64,
    last: Option<TurnedAway>,
    next_report: Option<Deadline>,
}

/// Cause of the thread's wake-up.
struct Woken {
    requests: bool,
    arrivals: bool,
    /// True for each client that has hung up.
    gone: Vec<bool>,
}

/// The serving side has closed its handle.
struct Closed;

impl Worker {
    /// Interval of keep-alives to waiting clients, which give up after a minute of silence.
    const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
    /// Time for a refused client to read the reason.
    const PARTING: Duration = Duration::from_secs(1);
    /// Grace period for a hello after its client has connected.
    const COMING: Duration = Duration::from_secs(1);
    /// Most refused clients that are kept open.
    const MOST_REFUSED: usize = 64;
    /// Time limit for a client's hello.
    const HELLO: Duration = Duration::from_secs(5);
    /// Polling interval for a client whose hello has arrived in part.
    const NEXT_LOOK: Duration = Duration::from_millis(20);
    /// Shortest interval of reports about clients turned away.
    const REPORT: Duration = Duration::from_secs(1);
    /// Shortest interval of reports about failed accepts.
    const TROUBLE: Duration = Duration::from_secs(60);
    /// First and longest pause after an error of the listener.
    const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

    fn run(mut self) {
        if let Err(error) = self.run_until_closed() {
            let _nobody_listens_any_more = self.out.send(Err(error));
        }
    }

    fn run_until_closed(&mut self) -> Result<(), ListenError> {
        loop {
            let woken = self.sleep();
            if woken.requests && !self.read_requests() {
                return Ok(());
            }
            let mut changed = self.look_at_clients(&woken.gone);
            if woken.arrivals {
                changed |= self.take_arrivals()?;
            }
            match self.hand_out() {
                Ok(handed_out) => changed |= handed_out,
                Err(Closed) => return Ok(()),
            }
            if changed || self.sign_of_life_due.expired() {
                self.announce();
            }
            self.refused.retain(|(_, until)| !until.expired());
            if let Some(event) = self.turned_away.report() {
                let _nobody_listens_any_more = self.out.send(Ok(event));
            }
        }
    }

    /// Sleeps until a socket is ready or a deadline is due.
    fn sleep(&self) -> Woken {
        let waits = [
            (!self.waiting.is_empty(), Self::SIGN_OF_LIFE),
            (self.waiting.iter().any(|client| client.state == Queued::Silent), Self::PARTING),
            (!self.refused.is_empty(), Self::PARTING),
            (self.turned_away.count > 0, Self::REPORT),
            (self.pause.is_some(), self.pause.map_or(Duration::ZERO, |(_, pause)| pause)),
            (self.is_next_incomplete(), Self::NEXT_LOOK),
        ];
        let shortest = waits.iter().filter(|(due, _)| *due).map(|(_, wait)| *wait).min();
        let timeout = shortest.map_or(PollTimeout::NONE, |wait| {
            PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
        });
        let listening = if self.pause.is_some() { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut sockets = vec![
            PollFd::new(self.requests.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), listening),
        ];
        // Unread data would wake this thread again and again, so only clients whose data are read
        // are polled.
        let readable = |client: &Client| match client.state {
            Queued::Silent => HUNG_UP | PollFlags::POLLIN,
            _ if !client.link.properties().reliable => HUNG_UP | PollFlags::POLLIN,
            _ => HUNG_UP,
        };
        let clients = self.waiting.iter();
        sockets.extend(clients.map(|client| PollFd::new(client.link.as_fd(), readable(client))));
        // Errors such as EINTR are ignored: deadlines are checked in any case.
        let _events = poll(&mut sockets, timeout);
        // `None` stands for events unknown to `PollFlags`, which count as a hang-up.
        let ready = |socket: &PollFd<'_>| socket.revents().is_none_or(|events| !events.is_empty());
        let hung_up = |socket: &PollFd<'_>| {
            socket.revents().is_none_or(|events| events.intersects(PollFlags::POLLHUP))
        };
        Woken {
            requests: sockets.first().is_some_and(ready),
            arrivals: match &self.pause {
                None => sockets.get(1).is_some_and(ready),
                Some((until, _)) => until.expired(),
            },
            gone: sockets.iter().skip(2).map(hung_up).collect(),
        }
    }

    /// True if the serving side waits while a hello has arrived in part.
    fn is_next_incomplete(&self) -> bool {
        self.requested && self.waiting.iter().any(|client| client.state == Queued::Incomplete)
    }

    /// Reads requests of the serving side; false once it has closed.
    fn read_requests(&mut self) -> bool {
        let mut bytes = [0; 16];
        match self.requests.read(&mut bytes) {
            Ok(0) => false,
            Ok(_) => {
                (self.requested, self.serving) = (true, false);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Drops clients that have left or misbehave; true if there were any.
    fn look_at_clients(&mut self, gone: &[bool]) -> bool {
        let before = self.waiting.len();
        for (mut client, &gone) in mem::take(&mut self.waiting).into_iter().zip(gone) {
            // Data sent before a hang-up can still be read.
            client.state = if gone { Queued::Gone } else { client.link.look_while_queued() };
            let reason = match client.state {
                Queued::Ready => None,
                Queued::Silent | Queued::Incomplete if !client.hello_due.expired() => None,
                Queued::Silent | Queued::Incomplete => Some("said no hello in time"),
                Queued::Gone => continue,
                Queued::Flooding => Some("sent more than a hello while it waited"),
                Queued::Foreign => {
                    self.refuse(client.link, Refusal::Malformed { at: 0 });
                    continue;
                }
            };
            match reason {
                None => self.waiting.push_back(client),
                Some(reason) => self.turned_away.add(client.turned_away(reason)),
            }
        }
        self.waiting.len() < before
    }

    /// Accepts pending clients; true if any was queued.
    fn take_arrivals(&mut self) -> Result<bool, ListenError> {
        /// Most clients accepted before the queue is served again.
        const MOST_AT_ONCE: usize = 1_024;
        let mut came = false;
        for _ in 0..MOST_AT_ONCE {
            match self.listener.try_accept() {
                Ok(None) => break,
                Ok(Some(Arrival::TurnedAway(peer))) => {
                    self.turned_away.add(peer);
                    continue;
                }
                Ok(Some(Arrival::Client(link))) if self.has_room() => {
                    self.admit(link);
                    came = true;
                }
                Ok(Some(Arrival::Client(link))) => {
                    let waiting = self.waiting.len() as u64;
                    self.refuse(link, Refusal::Busy { waiting });
                }
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    self.pause_after(error);
                    return Ok(came);
                }
            }
        }
        self.pause = None;
        Ok(came)
    }

    fn admit(&mut self, mut link: AnyLink) {
        let (came, hello_due) = (Deadline::after(Self::COMING), Deadline::after(Self::HELLO));
        let state = link.look_while_queued();
        self.waiting.push_back(Client { link, state, came, hello_due });
    }

    /// True if another client may wait or be served next. If the queue is full, a client that has
    /// been silent for a while is dropped.
    fn has_room(&mut self) -> bool {
        if self.waiting.len() < self.capacity + usize::from(self.requested) {
            return true;
        }
        let idle = self.waiting.iter_mut().position(|client| {
            client.state = client.link.look_while_queued();
            client.state != Queued::Ready && client.came.expired()
        });
        let Some(client) = idle.and_then(|index| self.waiting.remove(index)) else { return false };
        self.turned_away.add(client.turned_away("said no hello while others came"));
        true
    }

    /// Pauses accepting, for longer after each consecutive error.
    fn pause_after(&mut self, error: ListenError) {
        if self.trouble_reported.is_none_or(Deadline::expired) {
            self.trouble_reported = Some(Deadline::after(Self::TROUBLE));
            let _nobody_listens_any_more = self.out.send(Ok(Event::Trouble(error)));
        }
        let [first, longest] = Self::PAUSES;
        let pause = self.pause.map_or(first, |(_, pause)| (pause * 2).min(longest));
        self.pause = Some((Deadline::after(pause), pause));
    }

    /// Sends a client the reason of its refusal.
    fn refuse(&mut self, mut link: AnyLink, refusal: Refusal) {
        self.turned_away.add(TurnedAway::refused(link.peer().to_owned(), refusal));
        if link.send_at_once(&frame(&Message::Refuse(refusal))) {
            self.refused.push_back((link, Deadline::after(Self::PARTING)));
        }
        if self.refused.len() > Self::MOST_REFUSED {
            self.refused.pop_front();
        }
    }

    /// Hands out the first ready client if one is requested; true if it did.
    fn hand_out(&mut self) -> Result<bool, Closed> {
        let next = self.waiting.iter().position(|client| client.state == Queued::Ready);
        let next = next.filter(|_| self.requested).and_then(|index| self.waiting.remove(index));
        let Some(client) = next else { return Ok(false) };
        self.out.send(Ok(Event::Client(client.link))).map_err(|_| Closed)?;
        (self.requested, self.serving) = (false, true);
        Ok(true)
    }

    /// Sends each waiting client its position; drops those that do not read.
    fn announce(&mut self) {
        self.sign_of_life_due = Deadline::after(Self::SIGN_OF_LIFE);
        let mut ahead = u32::from(self.serving);
        let Self { waiting, turned_away, .. } = self;
        waiting.retain_mut(|client| {
            let position = frame(&Message::Queue { position: ahead });
            let here = ahead == 0 || client.link.send_at_once(&position);
            ahead += u32::from(here);
            if !here {
                turned_away.add(client.turned_away("did not take the word about its position"));
            }
            here
        });
    }
}

impl Client {
    fn turned_away(&self, reason: &str) -> TurnedAway {
        TurnedAway { peer: self.link.peer().to_owned(), reason: reason.to_owned() }
    }
}

impl TurnedAwayCount {
    fn add(&mut self, peer: TurnedAway) {
        self.count += 1;
        self.last = Some(peer);
    }

    /// Report of the clients turned away, if one is due.
    fn report(&mut self) -> Option<Event> {
        if self.next_report.as_ref().is_some_and(|due| !due.expired()) {
            return None;
        }
        let last = self.last.take()?;
        self.next_report = Some(Deadline::after(Worker::REPORT));
        Some(Event::TurnedAway(mem::take(&mut self.count), last))
    }
}
