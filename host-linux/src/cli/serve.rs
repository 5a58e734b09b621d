//! `loggap serve`: answers measurements.

use std::io;
use std::time::Duration;

use loggap_core::measure::Ending;
use loggap_core::wire::{Bounds, FRAME_LEN};

use super::link::LinkArgs;
use super::{CliError, Console, Exit, Interrupt, parse};
use crate::clock::HostClock;
use crate::listen::Listener;
use crate::lobby::{DEFAULT_CAPACITY, Lobby};
use crate::placement::{self, Cpu, Placement, PlacementError, Topology};
use crate::responder::{Session, respond};
use crate::warning;

/// Answer measurements from other processes or machines.
///
/// Clients are served one at a time, as two would measure each other; those
/// who come meanwhile wait and are told their position. Everything a client
/// may ask for is bounded. A line on standard output says where it listens,
/// and one per client what came of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap serve                       TCP, port 5647, until Ctrl-C
  loggap serve -p 0 --once           a free port, one client
  loggap serve --transport eth --interface eth1   raw Ethernet frames
  loggap serve --transport shm       shared memory, for other processes of this machine")]
pub(super) struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// Address to listen on, or the path of the socket for unix and shm;
    /// every address unless given.
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// Port for tcp and udp; 0 lets the system choose one. 5647 unless given.
    #[arg(short, long)]
    port: Option<u16>,
    /// Serve one client and exit, with 1 when its session failed.
    #[arg(long)]
    once: bool,
    /// Processor to serve on; the best one unless given.
    #[arg(long, value_name = "A")]
    cpu: Option<Cpu>,
    /// Longest message accepted, in bytes (K, M, G are powers of 1024).
    #[arg(long, value_name = "BYTES", default_value = "4M", value_parser = parse::size)]
    max_message: u64,
    /// Clients that may wait at a time; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CAPACITY)]
    queue: usize,
}

/// How often Ctrl-C is looked for while nobody is served.
const LOOK_UP: Duration = Duration::from_millis(100);

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let endpoint = args.link.endpoint(args.bind.as_deref(), args.port)?;
    let bounds = bounds(args.max_message)?;
    let cpu = processor(args.cpu)?;
    let system = |error: io::Error| CliError::failed(format_args!("cannot start: {error}"));
    let interrupt = Interrupt::catch().map_err(system)?;
    let listener = Listener::bind(args.link.transport, &endpoint, args.link.settings())?;
    console.announce(format_args!("listening {} {}", listener.transport(), listener.endpoint()))?;
    // The lobby's thread is to run anywhere, so it starts before the pinning.
    let mut lobby = Lobby::open(listener, args.queue).map_err(system)?;
    let clock = HostClock::calibrated();
    if let Some(cpu) = cpu {
        let mut pinned = placement::pin(cpu);
        if args.cpu.is_some() {
            // What was asked for must be had; what is chosen here may fail.
            pinned = Ok(pinned?);
        }
        for warning in warning::before_run_alone(cpu, &clock, &pinned) {
            console.warn(warning);
        }
    }
    interrupt.listen();
    loop {
        if interrupt.is_requested() {
            return Ok(Exit::Interrupted);
        }
        let Some(mut link) = lobby.next(LOOK_UP)? else { continue };
        let peer = link.peer().to_owned();
        let session = interrupt.ending_at_once(|| respond(&clock, &mut link, bounds));
        let failed = report(&peer, &session, console)?;
        drop(link);
        match (args.once, failed) {
            (false, _) => {}
            (true, None) => return Ok(Exit::Done),
            (true, Some(reason)) => return Err(CliError::failed(reason)),
        }
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

/// The processor to serve on: the one asked for, or the best.
fn processor(asked: Option<Cpu>) -> Result<Option<Cpu>, PlacementError> {
    let allowed = placement::allowed();
    match asked {
        Some(cpu) if !allowed.is_empty() && !allowed.contains(&cpu) => {
            Err(PlacementError::NotAllowed { cpu, allowed })
        }
        Some(cpu) => Ok(Some(cpu)),
        None => {
            let topology = Topology::of(&allowed);
            Ok(Placement::choose(&allowed, &topology).map(|best| best.responder))
        }
    }
}

/// Says what came of a session; why it failed, if it did.
fn report(
    peer: &str,
    session: &Session,
    console: &mut Console,
) -> Result<Option<String>, CliError> {
    let (line, failed) = match session {
        Ok((served, Ending::Goodbye)) => {
            let counts = (served.rounds, served.received, served.replied);
            let (rounds, received, replied) = counts;
            (format!("served {peer} rounds {rounds} received {received} replied {replied}"), None)
        }
        Ok((_, Ending::Refused(refusal))) => {
            let why = format!("{peer}: {refusal}");
            (format!("refused {why}"), Some(why))
        }
        Err(error) => {
            let why = format!("{peer}: {error}");
            (format!("failed {why}"), Some(why))
        }
    };
    console.announce(line)?;
    Ok(failed)
}
