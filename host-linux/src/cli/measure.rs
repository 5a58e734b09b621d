//! `loggap measure`: measures the parameters of a link.

use loggap_core::wire::ethernet::Address;

use super::link::LinkArgs;
use crate::drive::{EndOptions, Endpoints};
use crate::flags::measuring::{self, MeasureArgs};
use crate::link::{Endpoint, LinkError, VerbsError, parse_address};
use crate::machine::placement::{self, Placement};
use crate::terminal::{CliError, Console, Exit, end_on_request};

/// Measure a link: latency L, overheads o, gap g, gap per byte G, and where
/// the protocol changes.
///
/// Without HOST, a second process of this program is started and the link to
/// it on this machine is measured. With HOST, `loggap serve` has to run
/// there. All numbers carry intervals; what did not converge is marked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap measure                             TCP on this machine, 1 B to 64 KiB, at most 3 s
  loggap measure node7 -o node7.json         to node7, where `loggap serve` runs
  loggap measure --transport shm --plot shm.svg --samples shm.csv
  loggap measure --transport eth --interface eth1
  loggap measure node7 --transport verbs --op write -d mlx5_0
  loggap measure -s 1:1M --max-time 20 --rel-err 2%
  loggap measure node7 --baseline node7.json --assert 'half_rtt<20us@1K'
  loggap measure -o link.json && loggap simulate FILE.goal --profile link.json")]
pub(super) struct Args {
    #[command(flatten)]
    ends: EndArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Places of both ends, shared by the subcommands that open a link.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EndArgs {
    /// Host of `loggap serve`; without it both ends run on this machine.
    ///
    /// HOST or HOST:PORT for tcp, udp and verbs; the path of its socket for unix
    /// and shm; INTERFACE or INTERFACE/ADDRESS for eth.
    #[arg(value_name = "HOST[:PORT]")]
    host: Option<String>,
    /// Port of the responder [default: 5647].
    #[arg(short, long, value_name = "PORT", requires = "host")]
    port: Option<u16>,
    #[command(flatten)]
    pub(super) link: LinkArgs,
    /// MAC address of the responder, for eth [default: the first to answer].
    #[arg(long, value_name = "aa:bb:cc:dd:ee:ff", requires = "interface", value_parser = station)]
    peer: Option<Address>,
    /// Processors to pin to: A,B for both ends, A beside HOST [default: best].
    #[arg(long, value_name = "A,B")]
    cpu: Option<String>,
}

impl EndArgs {
    /// Options of both ends.
    pub(super) fn options(&self) -> Result<EndOptions, CliError> {
        self.link.verbs.check(self.link.transport)?;
        let remote = self.remote()?;
        Ok(EndOptions {
            transport: self.link.transport,
            settings: self.link.settings(0),
            depth_of: None,
            cpus: self.cpu.as_deref().map(|text| asked(text, remote.as_ref())).transpose()?,
            remote,
        })
    }

    /// Responder as it was named.
    pub(super) fn peer_name(&self) -> String {
        self.host.clone().unwrap_or_else(|| "this machine".to_owned())
    }

    /// Address of the responder; `None` if this command starts it.
    fn remote(&self) -> Result<Option<Endpoint>, CliError> {
        let mut endpoint = match &self.host {
            None if self.link.is_local() => return Ok(None),
            host => self.link.endpoint(host.as_deref(), self.port)?,
        };
        if let (Endpoint::Station { peer, .. }, Some(address)) = (&mut endpoint, self.peer) {
            *peer = Some(address);
        }
        Ok(Some(endpoint))
    }
}

fn station(text: &str) -> Result<Address, String> {
    parse_address(text)
        .ok_or_else(|| format!("'{text}' is no address of one station, such as 02:00:00:00:00:07"))
}

/// Processors from `--cpu`: one for each end on this machine.
fn asked(text: &str, remote: Option<&Endpoint>) -> Result<Placement, CliError> {
    let placement = Placement::parse(text)?;
    let Placement { initiator, responder } = placement;
    match (remote, text.contains(',')) {
        (None, false) => Err(CliError::usage(format_args!(
            "--cpu {initiator} names one processor, and two ends run here: --cpu A,B"
        ))),
        (Some(_), true) => Err(CliError::usage(format_args!(
            "--cpu {initiator},{responder} names two processors, and one end runs here: \
             --cpu {initiator}; the other end takes its own: loggap serve --cpu {responder}"
        ))),
        _ => Ok(placement),
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let interrupt = end_on_request()?;
    if args.ends.link.is_read() && args.measure.needs_answers() {
        return Err(LinkError::from(VerbsError::Answers).into());
    }
    // Measuring pins this thread, so the processors are looked up before.
    let allowed = placement::allowed();
    let ends = |largest| Ok(Endpoints::new(args.ends.options()?, largest, allowed.clone()));
    let transport = args.ends.link.transport.name();
    measuring::run(&args.measure, transport, ends, &interrupt, console)
}
