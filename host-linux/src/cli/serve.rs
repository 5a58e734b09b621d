//! `loggap serve`: answers measurements.

use std::io;
use std::mem;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use loggap_core::measure::Ending;
use loggap_core::wire::{Bounds, FRAME_LEN};

use super::link::LinkArgs;
use super::verbs::hidden_at_a_responder;
use crate::flags::parse;
use crate::link::AnyLink;
use crate::machine::clock::{Deadline, HostClock};
use crate::machine::near::{near_node, node_of, run_on_node};
use crate::machine::placement::{self, Cpu, Placement, PlacementError, Topology};
use crate::machine::warning;
use crate::serve::description::describe;
use crate::serve::listener::{AllowedAddresses, Listener, TurnedAway};
use crate::serve::queue::{ClientQueue, DEFAULT_CAPACITY, Event};
use crate::serve::respond::{Session, respond};
use crate::terminal::{CliError, Console, Exit, Interrupt};

/// Answer measurements from other processes or machines.
///
/// Clients are served one at a time: concurrent clients disturb each other's results. Further
/// clients wait in a queue and learn their position. Requests are limited in size and time.
/// Standard output has a line for the address and one per connection with its outcome (`loggap
/// measure` opens one per launch, five by default). Where a host connects more than ten times in a
/// row, as `loggap watch` does, further ones are counted, and told once it is silent for five
/// minutes. Refusals are logged at most once per second. On
/// udp and eth a client has to prove that it receives at its address before anything is echoed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  loggap serve                       TCP, port 5647, until Ctrl-C
  loggap serve -p 0 --once           a free port, one connection: measure with --launches 1
  loggap serve --allow 10.0.0.0/8 --allow fd00::/8   no clients from elsewhere
  loggap serve --transport eth --interface eth1   raw Ethernet frames
  loggap serve --transport verbs -d mlx5_0   RDMA, on that device
  loggap serve --clients 4           for `loggap bw -q 4`
  loggap serve --transport shm       shared memory, for other processes of this machine",
    mut_args(hidden_at_a_responder)
)]
pub(super) struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// Address to listen on; a socket's path for unix, shm [default: all].
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// Port for tcp, udp and verbs; 0 for any free one [default: 5647].
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Serve one connection and exit, with 1 if its session failed.
    ///
    /// Measure with --launches 1; `watch` connects anew at each interval and needs a
    /// responder without --once. Over RDMA verbs `lat` and `bw` open one
    /// connection for each size above 16 KiB.
    #[arg(long)]
    once: bool,
    /// Clients served at the same time, for `loggap bw -q`.
    ///
    /// Each has a thread of its own. Concurrent clients disturb each other's
    /// results.
    #[arg(long, value_name = "CLIENTS", conflicts_with = "once", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: u16,
    /// Serve only this network or address, as 10.0.0.0/8; repeatable.
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,
    /// Processor to serve on [default: near the interface or RDMA device].
    #[arg(long, value_name = "A")]
    cpu: Option<Cpu>,
    /// Longest message accepted (K, M, G are powers of 1024).
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = parse::size)]
    max_message: u64,
    /// A line for every connection.
    #[arg(short, long)]
    verbose: bool,
    /// Clients that may wait; further ones are refused.
    #[arg(long, value_name = "CLIENTS", default_value_t = DEFAULT_CAPACITY)]
    queue: usize,
}

/// Polling interval for Ctrl-C while no client is served.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Parses a network; a single address is a network of one.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse::<IpNet>()
        .or_else(|_| address())
        .map_err(|_| "expected a network such as 10.0.0.0/8, or an IP address".to_owned())
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    if !args.allow.is_empty() && !args.link.transport.is_internet() {
        let transport = args.link.transport;
        return Err(CliError::usage(format_args!(
            "--allow is for tcp, udp and verbs; {transport} has no IP addresses"
        )));
    }
    let endpoint = args.link.endpoint(args.bind.as_deref(), args.port)?;
    args.link.verbs.check_responder()?;
    args.link.verbs.check(args.link.transport)?;
    let bounds = bounds(args.max_message)?;
    let settings = args.link.settings(bounds.message);
    let mut processor = Processor::choose(args.cpu)?;
    let system = |error: io::Error| CliError::failed(format_args!("cannot start: {error}"));
    let interrupt = Interrupt::catch().map_err(system)?;
    let listener = Listener::bind(args.link.transport, &endpoint, settings)?;
    let listener = listener.allowing(AllowedAddresses::new(args.allow.clone()));
    console.log(format_args!("listening {} {}", listener.transport(), listener.endpoint()));
    // Started before the pinning, so that the queue's thread may run on any processor.
    let mut queue = ClientQueue::open(listener, args.queue).map_err(system)?;
    let clock = HostClock::calibrated();
    let mut log = ServedLog { verbose: args.verbose, ..ServedLog::default() };
    if args.clients > 1 {
        let served = Several::new(args.clients, clock, bounds, log);
        return served.serve(queue, processor, &interrupt, console);
    }
    processor.pin(&clock, console)?;
    interrupt.listen();
    loop {
        log.tell_if_silent(console);
        if interrupt.is_requested() {
            log.tell(console);
            return Ok(Exit::Interrupted);
        }
        let Some(link) = next_client(&mut queue, console)? else { continue };
        let peer = link.peer().to_owned();
        processor.go_near(&link, &clock, console)?;
        let description = describe(&clock, link.fingerprint(), processor.current);
        let session = interrupt.ending_at_once(|| respond(&clock, link, bounds, &description));
        let failed = log.report(&peer, &session, console);
        match (args.once, failed) {
            (false, _) => {}
            (true, None) => return Ok(Exit::Done),
            (true, Some(reason)) => return Err(CliError::failed(reason)),
        }
    }
}

/// Next client, if one arrives soon. Logs other events of the queue.
fn next_client(
    queue: &mut ClientQueue,
    console: &mut Console,
) -> Result<Option<AnyLink>, CliError> {
    match queue.next(LOOK_UP)? {
        None => return Ok(None),
        Some(Event::Client(link)) => return Ok(Some(link)),
        Some(Event::TurnedAway(count, last)) => console.log(turned_away(count, &last)),
        Some(Event::Trouble(error)) => {
            console.warn(format_args!("{error}; trying again until it does"));
        }
    }
    Ok(None)
}

/// Log line about clients that were turned away: the last one, and the number of others.
fn turned_away(count: u64, last: &TurnedAway) -> String {
    let TurnedAway { peer, reason } = last;
    match count {
        0 | 1 => format!("refused {peer}: {reason}"),
        _ => format!("refused {peer}: {reason}; and {} before", count - 1),
    }
}

fn bounds(max_message: u64) -> Result<Bounds, CliError> {
    let most = crate::link::LONGEST_MESSAGE.0;
    let least = FRAME_LEN as u64;
    match u32::try_from(max_message) {
        Ok(message) if (least..=most).contains(&max_message) => {
            Ok(Bounds { message, ..Bounds::default() })
        }
        _ => Err(CliError::usage(format_args!(
            "--max-message takes from {least} to {most} bytes, not {max_message}"
        ))),
    }
}

/// Address of a peer, and the result of its session.
type Done = (String, Session);

/// State of a responder that serves several clients at the same time.
struct Several {
    most: usize,
    /// Number of clients being served.
    served: usize,
    clock: HostClock,
    bounds: Bounds,
    log: ServedLog,
    done: (Sender<Done>, Receiver<Done>),
}

impl Several {
    fn new(most: u16, clock: HostClock, bounds: Bounds, log: ServedLog) -> Self {
        Self { most: usize::from(most), served: 0, clock, bounds, log, done: mpsc::channel() }
    }

    /// Serves clients until Ctrl-C, which also ends running sessions.
    fn serve(
        mut self,
        mut queue: ClientQueue,
        processor: Processor,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Exit, CliError> {
        // Without --cpu the system distributes the threads over all processors near the client's
        // device.
        if processor.asked {
            processor.pin(&self.clock, console)?;
        }
        let cpu = processor.current.filter(|_| processor.asked);
        interrupt.listen();
        while !interrupt.is_requested() {
            if self.served < self.most
                && let Some(link) = next_client(&mut queue, console)?
            {
                self.start(link, cpu, console);
            }
            self.report(console)?;
            self.log.tell_if_silent(console);
        }
        self.log.tell(console);
        Ok(Exit::Interrupted)
    }

    /// Serves a client on a thread of its own. Without one the client is let go, and others are served
    /// on.
    fn start(&mut self, link: AnyLink, cpu: Option<Cpu>, console: &mut Console) {
        let (clock, bounds, done) = (self.clock, self.bounds, self.done.0.clone());
        let session = move || {
            let peer = link.peer().to_owned();
            let fingerprint = link.fingerprint();
            let node = node_of(&fingerprint);
            let description = describe(&clock, fingerprint, cpu);
            let session = run_on_node(node, || respond(&clock, link, bounds, &description));
            let _nobody_asks_any_more = done.send((peer, session));
        };
        match thread::Builder::new().name("session".into()).spawn(session) {
            Ok(_detached) => self.served += 1,
            Err(error) => {
                console.warn(format_args!("a client is let go, as no thread starts: {error}"))
            }
        }
    }

    /// Reports finished sessions; if no further client can be served, waits briefly for one to
    /// finish.
    fn report(&mut self, console: &mut Console) -> Result<(), CliError> {
        let wait = if self.served < self.most { Duration::ZERO } else { LOOK_UP };
        let first = self.done.1.recv_timeout(wait).ok();
        for (peer, session) in first.into_iter().chain(self.done.1.try_iter()) {
            self.served -= 1;
            self.log.report(&peer, &session, console);
        }
        Ok(())
    }
}

/// Processor that serves.
struct Processor {
    /// Processors that this process may use, before pinning.
    allowed: Vec<Cpu>,
    asked: bool,
    current: Option<Cpu>,
}

impl Processor {
    /// Processor `asked`, or the best one.
    fn choose(asked: Option<Cpu>) -> Result<Self, PlacementError> {
        let allowed = placement::allowed();
        let current = match asked {
            Some(cpu) if !allowed.is_empty() && !allowed.contains(&cpu) => {
                return Err(PlacementError::NotAllowed { cpu, allowed });
            }
            Some(cpu) => Some(cpu),
            None => best_of(&allowed),
        };
        Ok(Self { allowed, asked: asked.is_some(), current })
    }

    /// Pins this thread. Failure is an error for a processor from --cpu, and a warning otherwise.
    fn pin(&self, clock: &HostClock, console: &mut Console) -> Result<(), PlacementError> {
        let Some(cpu) = self.current else { return Ok(()) };
        let mut pinned = placement::pin(cpu);
        if self.asked {
            pinned = Ok(pinned?);
        }
        for warning in warning::before_run_alone(cpu, clock, &pinned) {
            console.warn(warning);
        }
        Ok(())
    }

    /// Moves to the best processor near the device that the client is connected through, unless
    /// --cpu chose one.
    fn go_near(
        &mut self,
        link: &AnyLink,
        clock: &HostClock,
        console: &mut Console,
    ) -> Result<(), PlacementError> {
        if self.asked {
            return Ok(());
        }
        let best = best_of(&near_node(node_of(&link.fingerprint()), &self.allowed));
        if best == self.current {
            return Ok(());
        }
        self.current = best;
        self.pin(clock, console)
    }
}

fn best_of(allowed: &[Cpu]) -> Option<Cpu> {
    Placement::choose(allowed, &Topology::of(allowed)).map(|best| best.responder)
}

/// Log of sessions. Of one host's in a row it counts those beyond the first few.
#[derive(Default)]
struct ServedLog {
    verbose: bool,
    host: String,
    /// Lines about this host, and sessions since then.
    lines: u32,
    counted: u64,
    silent: Option<Deadline>,
}

impl ServedLog {
    /// Most lines about sessions of one host in a row.
    const LINES: u32 = 10;
    /// Silence of a host after which the number of its sessions is logged.
    const SILENCE: Duration = Duration::from_secs(300);

    /// Logs the result of a session; returns the error, if it failed.
    fn report(&mut self, peer: &str, session: &Session, console: &mut Console) -> Option<String> {
        let why = match session {
            Ok((served, Ending::Goodbye)) => {
                let counts = (served.rounds, served.received, served.replied);
                let (rounds, received, replied) = counts;
                let line =
                    format!("served {peer} rounds {rounds} received {received} replied {replied}");
                self.lines_of(peer, line).into_iter().for_each(|line| console.log(line));
                return None;
            }
            Ok((_, Ending::Refused(refusal))) => {
                let why = format!("{peer}: {refusal}");
                console.log(format_args!("refused {why}"));
                why
            }
            Err(error) => {
                let why = format!("{peer}: {error}");
                console.log(format_args!("failed {why}"));
                why
            }
        };
        Some(why)
    }

    /// Lines about a session with `peer`, of which `line` tells the outcome.
    fn lines_of(&mut self, peer: &str, line: String) -> Vec<String> {
        let mut lines = Vec::new();
        let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
        if host != self.host {
            lines.extend(self.counted());
            (self.host, self.lines) = (host.to_owned(), 0);
        }
        self.silent = Some(Deadline::after(Self::SILENCE));
        if self.verbose || self.lines < Self::LINES {
            self.lines = self.lines.saturating_add(1);
            lines.push(line);
        } else {
            self.counted += 1;
        }
        lines
    }

    /// Line with the number of counted sessions.
    fn counted(&mut self) -> Option<String> {
        let count = mem::take(&mut self.counted);
        (count > 0).then(|| format!("served {} {count} times more", self.host))
    }

    fn tell(&mut self, console: &mut Console) {
        self.counted().into_iter().for_each(|line| console.log(line));
    }

    fn tell_if_silent(&mut self, console: &mut Console) {
        if self.silent.is_some_and(Deadline::expired) {
            self.tell(console);
            (self.silent, self.lines) = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sessions_of_one_host_are_ten_lines_and_a_count() {
        let mut log = ServedLog::default();
        let lines_of = |log: &mut ServedLog, host: &str, port| {
            let peer = format!("{host}:{port}");
            log.lines_of(&peer, format!("served {peer}"))
        };
        let lines: Vec<_> = (0..25).flat_map(|port| lines_of(&mut log, "node7", port)).collect();
        assert_eq!((lines.len(), lines[9].as_str()), (10, "served node7:9"));
        let other = lines_of(&mut log, "node8", 1);
        assert_eq!(other, ["served node7 15 times more", "served node8:1"]);
        assert_eq!(log.counted(), None);
        log.verbose = true;
        let lines = (0..25).flat_map(|port| lines_of(&mut log, "node7", port));
        assert_eq!(lines.count(), 25);
    }

    #[test]
    fn an_address_is_a_network_of_one() {
        for (text, read) in [
            ("10.0.0.1", "10.0.0.1/32"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("::1", "::1/128"),
            ("fd00::/8", "fd00::/8"),
        ] {
            assert_eq!(network(text).map(|network| network.to_string()), Ok(read.to_owned()));
        }
        for text in ["", "node7", "10.0.0.0/33", "10.0.0"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
