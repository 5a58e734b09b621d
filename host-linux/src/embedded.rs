//! A responder of our own: a second process of this program on this machine,
//! started for one measurement.
//!
//! The parent makes both ends of the link and gives one to the child as its
//! standard input, so that there is no port to agree on and nothing to wait
//! for. The child ends when the link closes, and in any case when the parent
//! does. The parent notices a dead child by the closed link and never waits
//! for it without a limit.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, error, fmt, mem};

use loggap_core::measure::{Ending, ServeError};
use loggap_core::wire::{Bounds, Refusal};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};

use crate::clock::{Deadline, HostClock};
use crate::link::{
    AnyLink, LinkError, LinkSettings, ShmLink, TcpLink, Transport, UdpLink, UnixLink, Waiting,
};
use crate::placement::{self, Cpu, PlacementError};
use crate::responder::respond;

/// The first argument of a process that is such a responder. No subcommand
/// of the command line has this name.
pub const COMMAND: &str = "respond-embedded";

/// How the responder is started.
#[derive(Clone, Debug)]
pub struct Responder {
    /// The program whose `main` calls [`child_main`]; by default this one.
    pub program: PathBuf,
    /// What carries the messages.
    pub transport: Transport,
    /// Settings of both ends.
    pub settings: LinkSettings,
    /// Where the child runs; `None` leaves it where this process may run.
    pub cpu: Option<Cpu>,
    /// The longest message that it accepts, in bytes.
    pub longest_message: u32,
}

/// Why there is no responder, or how it ended.
#[derive(Debug)]
pub enum EmbeddedError {
    /// The program's own file is not known.
    Program(io::Error),
    /// The link between the two processes could not be made.
    Link(LinkError),
    /// The child could not be started.
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The child failed.
    Failed {
        /// How it ended.
        status: ExitStatus,
    },
    /// The child did not end in time and was killed.
    Killed,
}

impl fmt::Display for EmbeddedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instead = "or start `loggap serve` and name its host";
        match self {
            Self::Program(source) => write!(
                f,
                "this program does not find its own file ({source}); call it by its full path, {instead}"
            ),
            Self::Link(error) => write!(f, "no link to a responder on this machine: {error}"),
            Self::Start { program, source } => {
                write!(
                    f,
                    "cannot start {} as a responder ({source}); check its permissions, {instead}",
                    program.display()
                )
            }
            Self::Failed { status } => {
                write!(f, "the responder on this machine failed ({status}); see what it printed")
            }
            Self::Killed => f.write_str(
                "the responder on this machine did not end and was killed; repeat the run",
            ),
        }
    }
}

impl error::Error for EmbeddedError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Program(source) | Self::Start { source, .. } => Some(source),
            Self::Link(error) => Some(error),
            Self::Failed { .. } | Self::Killed => None,
        }
    }
}

impl From<LinkError> for EmbeddedError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

impl Responder {
    /// A responder of this program over `transport`, polling, for messages
    /// of up to 1 MiB.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError::Program`] when this program's file is not known.
    pub fn new(transport: Transport) -> Result<Self, EmbeddedError> {
        Ok(Self {
            program: env::current_exe().map_err(EmbeddedError::Program)?,
            transport,
            settings: LinkSettings::default(),
            cpu: None,
            longest_message: Bounds::default().message,
        })
    }

    /// Starts the process and returns the link to it.
    ///
    /// The child is killed when the calling thread ends, so this must be a
    /// thread that outlives the measurement, such as the main one.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError`] when the link or the process cannot be had.
    pub fn spawn(&self) -> Result<(AnyLink, Process), EmbeddedError> {
        let ends = Ends::of(self.transport, self.settings)?;
        let mut process = Process { child: self.start(ends.theirs)?, pinned: Ok(()) };
        if let Some(cpu) = self.cpu {
            process.pinned = placement::pin_process(process.id(), cpu);
        }
        let name = format!("the responder on this machine (process {})", process.id());
        Ok((ends.ours.finish(name, self.settings)?, process))
    }

    fn start(&self, link: OwnedFd) -> Result<Child, EmbeddedError> {
        // `command` holds the child's end open until it is dropped here:
        // a copy that lived on in this process would hide the child's death.
        let mut command = Command::new(&self.program);
        command
            .arg(COMMAND)
            .arg(self.transport.name())
            .arg(waiting_name(self.settings.waiting))
            .arg(self.longest_message.to_string())
            .arg(Pid::this().to_string())
            .stdin(Stdio::from(link))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command
            .spawn()
            .map_err(|source| EmbeddedError::Start { program: self.program.clone(), source })
    }
}

/// A responder's process; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pinned: Result<(), PlacementError>,
}

impl Process {
    /// How long a responder may take to end after its link has closed.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it could be pinned to the processor asked for.
    pub fn pinned(&self) -> &Result<(), PlacementError> {
        &self.pinned
    }

    /// Hands over why it could not be pinned.
    ///
    /// # Errors
    ///
    /// What [`Process::pinned`] holds, which is `Ok` from now on.
    pub fn take_pinned(&mut self) -> Result<(), PlacementError> {
        mem::replace(&mut self.pinned, Ok(()))
    }

    /// Waits a bounded time until the process has ended. Call it after the
    /// link to it has been closed and dropped.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError::Failed`] when it failed, [`EmbeddedError::Killed`]
    /// when it had to be killed.
    pub fn finish(mut self) -> Result<(), EmbeddedError> {
        let deadline = Deadline::after(Self::PATIENCE);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(EmbeddedError::Failed { status }),
                Ok(None) if !deadline.expired() => thread::sleep(Duration::from_millis(1)),
                Ok(None) | Err(_) => return Err(EmbeddedError::Killed),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has been waited for already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Both ends of a link between this process and a child.
struct Ends {
    ours: OurEnd,
    theirs: OwnedFd,
}

enum OurEnd {
    Tcp(TcpStream),
    Udp(UdpSocket),
    Unix(UnixStream),
    Shm(UnixStream),
}

impl Ends {
    fn of(transport: Transport, settings: LinkSettings) -> Result<Self, LinkError> {
        let failed =
            |source| LinkError::Connect { peer: format!("{transport} on loopback"), source };
        match transport {
            Transport::Tcp => on_loopback(|loopback| tcp_pair(loopback, settings))
                .map(|(ours, theirs)| Self { ours: OurEnd::Tcp(ours), theirs: theirs.into() }),
            Transport::Udp => on_loopback(udp_pair)
                .map(|(ours, theirs)| Self { ours: OurEnd::Udp(ours), theirs: theirs.into() }),
            Transport::Unix => UnixStream::pair()
                .map(|(ours, theirs)| Self { ours: OurEnd::Unix(ours), theirs: theirs.into() }),
            Transport::Shm => UnixStream::pair()
                .map(|(ours, theirs)| Self { ours: OurEnd::Shm(ours), theirs: theirs.into() }),
            Transport::Eth => Err(not_within_one_machine()),
        }
        .map_err(failed)
    }
}

impl OurEnd {
    fn finish(self, name: String, settings: LinkSettings) -> Result<AnyLink, LinkError> {
        Ok(match self {
            Self::Tcp(stream) => AnyLink::Tcp(TcpLink::from_stream(stream, settings)?.named(name)),
            Self::Udp(socket) => {
                AnyLink::Udp(UdpLink::from_socket(socket, None, settings)?.named(name))
            }
            Self::Unix(stream) => AnyLink::Unix(UnixLink::from_stream(stream, name, settings)?),
            Self::Shm(control) => AnyLink::Shm(ShmLink::create(control, name, settings)?),
        })
    }
}

/// IPv4, or IPv6 on a machine that has only that.
fn on_loopback<T>(make: impl Fn(IpAddr) -> io::Result<T>) -> io::Result<T> {
    make(Ipv4Addr::LOCALHOST.into())
        .or_else(|first| make(Ipv6Addr::LOCALHOST.into()).map_err(|_| first))
}

fn tcp_pair(loopback: IpAddr, settings: LinkSettings) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((loopback, 0))?;
    let ours = TcpStream::connect_timeout(&listener.local_addr()?, settings.limit)?;
    let own_address = ours.local_addr()?;
    // Anybody on this machine can connect to the port while it is open.
    loop {
        let (theirs, peer) = listener.accept()?;
        if peer == own_address {
            return Ok((ours, theirs));
        }
    }
}

fn udp_pair(loopback: IpAddr) -> io::Result<(UdpSocket, UdpSocket)> {
    let ours = UdpSocket::bind((loopback, 0))?;
    let theirs = UdpSocket::bind((loopback, 0))?;
    ours.connect(theirs.local_addr()?)?;
    theirs.connect(ours.local_addr()?)?;
    Ok((ours, theirs))
}

/// Two processes of one machine are the same station.
fn not_within_one_machine() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "raw Ethernet needs two stations")
}

const fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Poll => "poll",
        Waiting::Block => "block",
    }
}

/// Runs the responder if `arguments`, the program's own name included, say
/// that this process is one, and returns what `main` should exit with. To be
/// called before anything else.
pub fn child_main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return None;
    }
    let order = Order::from_arguments(arguments);
    let outcome = match order {
        Some(order) => order.carry_out(),
        None => Err(ChildError::Order),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The parent has gone or given up, or has been told.
        Err(
            ChildError::Session(ServeError::Link(LinkError::Closed { .. }))
            | ChildError::Orphaned
            | ChildError::Refused(_),
        ) => ExitCode::FAILURE,
        Err(error) => {
            let _nowhere_left_to_say_so =
                writeln!(io::stderr(), "loggap: responder on this machine: {error}");
            ExitCode::FAILURE
        }
    })
}

/// What the parent asks the child to do, as its arguments say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Order {
    transport: Transport,
    waiting: Waiting,
    longest_message: u32,
    parent: i32,
}

/// Why the child did not serve its parent to the end.
#[derive(Debug)]
enum ChildError {
    Order,
    Orphaned,
    Setup(io::Error),
    Link(LinkError),
    Session(ServeError<LinkError>),
    Refused(Refusal),
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order => {
                write!(f, "'{COMMAND}' is for the program's own use; see `loggap serve --help`")
            }
            Self::Orphaned => f.write_str("the parent is gone"),
            Self::Setup(error) => write!(f, "set-up failed: {error}"),
            Self::Link(error) => error.fmt(f),
            Self::Session(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl Order {
    fn from_arguments(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Option<Vec<String>> = arguments.map(|word| word.into_string().ok()).collect();
        let [transport, waiting, longest_message, parent] = words?.try_into().ok()?;
        Some(Self {
            transport: Transport::from_name(&transport)?,
            waiting: [Waiting::Poll, Waiting::Block]
                .into_iter()
                .find(|known| waiting_name(*known) == waiting)?,
            longest_message: longest_message.parse().ok()?,
            parent: parent.parse().ok()?,
        })
    }

    fn carry_out(self) -> Result<(), ChildError> {
        die_with(self.parent)?;
        let mut link = self.link()?;
        let clock = HostClock::calibrated();
        let bounds = Bounds { message: self.longest_message, ..Bounds::default() };
        let (_served, ending) = respond(&clock, &mut link, bounds).map_err(ChildError::Session)?;
        match ending {
            Ending::Goodbye => Ok(()),
            Ending::Refused(refusal) => Err(ChildError::Refused(refusal)),
        }
    }

    /// The link that is this process's standard input.
    fn link(self) -> Result<AnyLink, ChildError> {
        let settings = LinkSettings { waiting: self.waiting, ..LinkSettings::default() };
        let input = io::stdin().as_fd().try_clone_to_owned().map_err(ChildError::Setup)?;
        let name = format!("process {}", self.parent);
        match self.transport {
            Transport::Tcp => TcpLink::from_stream(input.into(), settings)
                .map(|link| AnyLink::Tcp(link.named(name))),
            Transport::Udp => UdpLink::from_socket(input.into(), None, settings)
                .map(|link| AnyLink::Udp(link.named(name))),
            Transport::Unix => {
                UnixLink::from_stream(input.into(), name, settings).map(AnyLink::Unix)
            }
            Transport::Shm => ShmLink::join(input.into(), name, settings).map(AnyLink::Shm),
            Transport::Eth => {
                let source = not_within_one_machine();
                Err(LinkError::Connect { peer: name, source })
            }
        }
        .map_err(ChildError::Link)
    }
}

/// The kernel kills this process when its parent ends. Ctrl-C, which the
/// terminal sends to both, is the parent's business: it still needs its peer
/// to end the round.
fn die_with(parent: i32) -> Result<(), ChildError> {
    let setup = |error: nix::Error| ChildError::Setup(error.into());
    set_pdeathsig(Signal::SIGKILL).map_err(setup)?;
    SigSet::from_iter([Signal::SIGINT]).thread_block().map_err(setup)?;
    // It may have ended before the kernel was told.
    if getppid().as_raw() == parent { Ok(()) } else { Err(ChildError::Orphaned) }
}
