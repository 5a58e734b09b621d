//! Embedded responder: a second process of this program on this machine, started for one
//! measurement.
//!
//! The parent creates both ends of the link and passes one to the child as its standard input, so
//! no port has to be agreed on. The child ends when the link closes, and at the latest with its
//! parent. The parent detects a dead child by the closed link; all its waits are bounded.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, mem};

use loggap_core::measure::{Ending, ServeError, SessionError};
use loggap_core::wire::{Bounds, Refusal};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};
use thiserror::Error;

use crate::link::{
    AnyLink, HostLink, LinkError, LinkSettings, ShmLink, TcpLink, Transport, UdpLink, UnixLink,
    VerbsLink, VerbsSettings, Waiting,
};
use crate::machine::clock::{Deadline, HostClock};
use crate::machine::placement::{self, Cpu, PlacementError};
use crate::serve::description::describe;
use crate::serve::respond::respond;
use crate::study::contention::{End, Role};

/// First argument of an embedded responder's process. No subcommand has this name.
pub const COMMAND: &str = "respond-embedded";

/// Name of an embedded responder as a peer; its process number follows.
pub(crate) const OWN_RESPONDER: &str = "the responder on this machine";

/// Options of an embedded responder.
#[derive(Clone, Debug)]
pub struct Responder {
    /// Program whose `main` calls [`child_main`]; by default this one.
    pub program: PathBuf,
    /// Transport of the messages.
    pub transport: Transport,
    /// Settings of both ends.
    pub settings: LinkSettings,
    /// Processor that the child is pinned to; `None` for no pinning.
    pub cpu: Option<Cpu>,
    /// Longest message that it accepts, bytes.
    pub longest_message: u32,
}

/// Why an embedded responder could not be started, or failed.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    /// The path of this program's executable is unknown.
    #[error("this program does not find its own file ({0}); call it by its full path, {INSTEAD}")]
    Program(#[source] io::Error),
    /// The link between the two processes could not be created.
    #[error("no link to a responder on this machine: {0}")]
    Link(#[from] LinkError),
    /// The child could not be started.
    #[error(
        "cannot start {} as a responder ({source}); check its permissions, {INSTEAD}",
        program.display()
    )]
    Start {
        /// Executable.
        program: PathBuf,
        /// System error.
        source: io::Error,
    },
    /// The child failed.
    #[error("the responder on this machine failed ({status}); see what it printed")]
    Failed {
        /// Exit status.
        status: ExitStatus,
    },
    /// The child did not end in time and was killed.
    #[error("the responder on this machine did not end and was killed; repeat the run")]
    Killed,
}

const INSTEAD: &str = "or start `loggap serve` and name its host";

impl Responder {
    /// Creates options for a responder of this program over `transport`: polling, messages of up to
    /// 1 MiB.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError::Program`] if the path of this program's executable is unknown.
    pub fn new(transport: Transport) -> Result<Self, EmbeddedError> {
        Ok(Self {
            program: own_program().map_err(EmbeddedError::Program)?,
            transport,
            settings: LinkSettings::default(),
            cpu: None,
            longest_message: Bounds::default().message,
        })
    }

    /// Starts the process and returns the link to it.
    ///
    /// The child is killed when the calling thread ends, so the thread must outlive the
    /// measurement, as the main thread does.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError`] if the link or the process cannot be created.
    pub fn spawn(&self) -> Result<(AnyLink, Process), EmbeddedError> {
        self.spawn_as(None)
    }

    /// As [`Responder::spawn`], for a process that takes this part in `loggap study contention`,
    /// with messages of the longest size.
    pub(crate) fn spawn_as(&self, part: Option<Role>) -> Result<(AnyLink, Process), EmbeddedError> {
        let (ours, theirs) = endpoint_pair(self.transport, self.settings)?;
        let mut process = Process { child: self.start(theirs, part)?, pinned: Ok(()) };
        if let Some(cpu) = self.cpu {
            process.pinned = placement::pin_process(process.id(), cpu);
        }
        let name = format!("{OWN_RESPONDER} (process {})", process.id());
        let joins = Joins { shm: ShmLink::create, verbs: VerbsLink::connect_over };
        let link = link_of(self.transport, ours, name, self.settings, joins)?;
        Ok((link, process))
    }

    fn start(&self, link: OwnedFd, part: Option<Role>) -> Result<Child, EmbeddedError> {
        // `command` holds the child's end open until it is dropped here: a copy that stayed open in
        // this process would hide the child's death.
        let mut command = Command::new(&self.program);
        command
            .arg(COMMAND)
            .arg(self.transport.name())
            .arg(self.settings.waiting.name())
            .arg(self.longest_message.to_string())
            .arg(Pid::this().to_string())
            .arg(self.settings.verbs.place())
            .arg(serde_json::to_string(&part).unwrap_or_default())
            .stdin(Stdio::from(link))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command
            .spawn()
            .map_err(|source| EmbeddedError::Start { program: self.program.clone(), source })
    }
}

/// Path of this program's executable, valid also if an upgrade has replaced the file since.
fn own_program() -> io::Result<PathBuf> {
    let path = env::current_exe()?;
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}

/// A responder's process; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pinned: Result<(), PlacementError>,
}

impl Process {
    /// Time limit for the process to end once its link is closed.
    const EXIT_LIMIT: Duration = Duration::from_secs(2);

    /// Process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Outcome of pinning the process.
    pub fn pinned(&self) -> &Result<(), PlacementError> {
        &self.pinned
    }

    /// Takes the outcome of pinning, which is `Ok` afterwards.
    ///
    /// # Errors
    ///
    /// The error of [`Process::pinned`].
    pub(crate) fn take_pinned(&mut self) -> Result<(), PlacementError> {
        mem::replace(&mut self.pinned, Ok(()))
    }

    /// Waits for the process to end, for a limited time. To be called after the link to it has been
    /// closed and dropped.
    ///
    /// # Errors
    ///
    /// [`EmbeddedError::Failed`] if it failed, [`EmbeddedError::Killed`] if it had to be killed.
    pub fn finish(mut self) -> Result<(), EmbeddedError> {
        let deadline = Deadline::after(Self::EXIT_LIMIT);
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
        // Both fail only if the process has been reaped already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Both ends of a link to a child: the parent's and the child's.
fn endpoint_pair(
    transport: Transport,
    settings: LinkSettings,
) -> Result<(OwnedFd, OwnedFd), LinkError> {
    match transport {
        Transport::Tcp | Transport::Verbs => on_loopback(|loopback| tcp_pair(loopback, settings))
            .map(|(ours, theirs)| (ours.into(), theirs.into())),
        Transport::Udp => on_loopback(udp_pair).map(|(ours, theirs)| (ours.into(), theirs.into())),
        Transport::Unix | Transport::Shm => {
            UnixStream::pair().map(|(ours, theirs)| (ours.into(), theirs.into()))
        }
        Transport::Eth => Err(not_within_one_machine()),
    }
    .map_err(|source| LinkError::Connect {
        transport,
        peer: format!("{transport} on loopback"),
        source,
    })
}

/// Functions that create a link over a socket that only prepares it. Shared memory is created by
/// the parent and joined by the child; a queue pair is offered by one and answered by the other.
struct Joins {
    shm: fn(UnixStream, String, LinkSettings) -> Result<ShmLink, LinkError>,
    verbs: fn(TcpStream, String, LinkSettings) -> Result<VerbsLink, LinkError>,
}

/// Creates the link over one end of a pair; errors call the peer `name`.
fn link_of(
    transport: Transport,
    end: OwnedFd,
    name: String,
    settings: LinkSettings,
    joins: Joins,
) -> Result<AnyLink, LinkError> {
    Ok(match transport {
        Transport::Tcp => AnyLink::Tcp(TcpLink::from_stream(end.into(), settings)?.named(name)),
        Transport::Udp => {
            AnyLink::Udp(UdpLink::from_socket(end.into(), None, settings)?.named(name))
        }
        Transport::Unix => AnyLink::Unix(UnixLink::from_stream(end.into(), name, settings)?),
        Transport::Shm => AnyLink::Shm((joins.shm)(end.into(), name, settings)?),
        Transport::Verbs => {
            let control = TcpStream::from(end);
            AnyLink::Verbs(Box::new((joins.verbs)(control, name, settings)?))
        }
        Transport::Eth => {
            let source = not_within_one_machine();
            return Err(LinkError::Connect { transport, peer: name, source });
        }
    })
}

/// Calls `make` with the IPv4 loopback, or with the IPv6 one if that fails.
fn on_loopback<T>(make: impl Fn(IpAddr) -> io::Result<T>) -> io::Result<T> {
    make(Ipv4Addr::LOCALHOST.into())
        .or_else(|first| make(Ipv6Addr::LOCALHOST.into()).map_err(|_| first))
}

fn tcp_pair(loopback: IpAddr, settings: LinkSettings) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((loopback, 0))?;
    let ours = TcpStream::connect_timeout(&listener.local_addr()?, settings.limit)?;
    let own_address = ours.local_addr()?;
    // Any process of this machine may connect to the port while it is open.
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

/// Raw Ethernet addresses stations, and all processes of a machine share one.
fn not_within_one_machine() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "raw Ethernet needs two stations")
}

/// Runs the responder if `arguments` (with the program's name first) mark this process as an
/// embedded one; returns its exit code, `None` otherwise. To be called first in `main`.
pub fn child_main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(COMMAND)) {
        return None;
    }
    let parsed = ChildArguments::parse(arguments);
    let outcome = match parsed {
        Some(arguments) => arguments.serve(),
        None => Err(ChildError::Arguments),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The parent has ended, or already knows.
        Err(
            ChildError::Session(ServeError::Link(LinkError::Closed { .. }))
            | ChildError::Contention(SessionError::Link(LinkError::Closed { .. }))
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

/// Arguments of the child process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ChildArguments {
    transport: Transport,
    waiting: Waiting,
    longest_message: u32,
    parent: i32,
    /// Device and port of this end.
    verbs: VerbsSettings,
    part: Option<Role>,
}

/// Why the child did not serve the session to its end.
#[derive(Debug, Error)]
enum ChildError {
    #[error("'{COMMAND}' is for the program's own use; see `loggap serve --help`")]
    Arguments,
    #[error("the parent is gone")]
    Orphaned,
    #[error("set-up failed: {0}")]
    Setup(io::Error),
    #[error(transparent)]
    Link(LinkError),
    #[error(transparent)]
    Session(ServeError<LinkError>),
    #[error(transparent)]
    Contention(SessionError<LinkError>),
    #[error(transparent)]
    Refused(Refusal),
}

impl ChildArguments {
    fn parse(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Option<Vec<String>> = arguments.map(|word| word.into_string().ok()).collect();
        let [transport, waiting, longest_message, parent, verbs, part] = words?.try_into().ok()?;
        Some(Self {
            transport: Transport::from_name(&transport)?,
            waiting: [Waiting::Poll, Waiting::Block]
                .into_iter()
                .find(|known| known.name() == waiting)?,
            longest_message: longest_message.parse().ok()?,
            parent: parent.parse().ok()?,
            verbs: VerbsSettings::at(&verbs)?,
            part: serde_json::from_str(&part).ok()?,
        })
    }

    fn serve(self) -> Result<(), ChildError> {
        die_with(self.parent)?;
        let mut link = self.link()?;
        if let Some(role) = self.part {
            let links: Vec<&mut dyn HostLink> = vec![&mut *link];
            let end = End::new(HostClock::monotonic_raw(), links, role, self.longest_message, 0);
            return end.run().map(drop).map_err(ChildError::Contention);
        }
        let clock = HostClock::calibrated();
        let bounds = Bounds { message: self.longest_message, ..Bounds::default() };
        // If the parent pins this process, it does so before its hello.
        let cpu = placement::allowed();
        let description =
            describe(&clock, link.fingerprint(), cpu.first().copied().filter(|_| cpu.len() == 1));
        let (_served, ending) =
            respond(&clock, link, bounds, &description).map_err(ChildError::Session)?;
        match ending {
            Ending::Goodbye => Ok(()),
            Ending::Refused(refusal) => Err(ChildError::Refused(refusal)),
        }
    }

    /// Link over this process's standard input.
    fn link(self) -> Result<AnyLink, ChildError> {
        let verbs = VerbsSettings { longest_message: self.longest_message, ..self.verbs };
        let settings = LinkSettings { waiting: self.waiting, verbs, ..LinkSettings::default() };
        let input = io::stdin().as_fd().try_clone_to_owned().map_err(ChildError::Setup)?;
        let name = format!("process {}", self.parent);
        let joins = Joins { shm: ShmLink::join, verbs: VerbsLink::answer_over };
        link_of(self.transport, input, name, settings, joins).map_err(ChildError::Link)
    }
}

/// Makes the kernel kill this process when its parent ends. Ctrl-C, which the terminal sends to
/// both, is left to the parent: it needs its peer to complete the round.
fn die_with(parent: i32) -> Result<(), ChildError> {
    let setup = |error: nix::Error| ChildError::Setup(error.into());
    set_pdeathsig(Signal::SIGKILL).map_err(setup)?;
    SigSet::from_iter([Signal::SIGINT]).thread_block().map_err(setup)?;
    // The parent may have ended before the call.
    if getppid().as_raw() == parent { Ok(()) } else { Err(ChildError::Orphaned) }
}
