//! Ends of the link of each launch: their processors, and the responder.

use super::EndArgs;
use loggap_core::measure::SessionError;

use crate::drive::{Ends, Observer, Run};
use crate::link::{
    self, AnyLink, DEFAULT_PORT, Endpoint, LinkError, Transport, VerbsLink, Waiting,
};
use crate::machine::clock::HostClock;
use crate::machine::environment::LinkFingerprint;
use crate::machine::near::{near_node, node_of};
use crate::machine::placement::{self, Cpu, Placement, PlacementError, Topology};
use crate::machine::warning::{self, Warning};
use crate::serve::local::{EmbeddedError, Process, Responder};
use crate::terminal::CliError;

/// Opens the links of a run, and starts responders if they run on this machine.
#[derive(Debug)]
pub(in crate::cli) struct Endpoints<'a> {
    args: &'a EndArgs,
    /// Longest message, bytes: for a responder started here, and for RDMA verbs.
    longest_message: u32,
    /// Address of a remote responder: the one that answered, once one has. `None` if this command
    /// starts the responder.
    remote: Option<Endpoint>,
    /// Processors from `--cpu`.
    asked: Option<Placement>,
    /// True if processors are chosen automatically without `--cpu`.
    placed: bool,
    allowed: Vec<Cpu>,
    topology: Topology,
    /// Current processors of the ends; both fields are equal if only this end runs here.
    placement: Option<Placement>,
    /// Number of links opened.
    opened: usize,
    responder: Option<Process>,
    warnings: Vec<Warning>,
}

impl<'a> Endpoints<'a> {
    /// Creates the ends. `allowed` are this thread's processors before any pinning.
    pub(in crate::cli) fn new(
        args: &'a EndArgs,
        longest_message: u32,
        allowed: Vec<Cpu>,
    ) -> Result<Self, CliError> {
        args.link.verbs.check(args.link.transport)?;
        let remote = remote(args)?;
        Ok(Self {
            args,
            longest_message,
            asked: args.cpu.as_deref().map(|text| asked(text, remote.as_ref())).transpose()?,
            placed: true,
            remote,
            topology: Topology::of(&allowed),
            allowed,
            placement: None,
            opened: 0,
            responder: None,
            warnings: Vec::new(),
        })
    }

    /// Disables automatic pinning, for several connections with threads of their own.
    pub(in crate::cli) fn anywhere(self) -> Self {
        Self { placed: false, ..self }
    }

    /// Sets the address that `answered` before, if any.
    pub(in crate::cli) fn at(self, answered: Option<Endpoint>) -> Self {
        Self { remote: answered.or(self.remote), ..self }
    }

    /// Endpoint of the responder; `None` if this command starts it.
    pub(in crate::cli) fn remote(&self) -> Option<Endpoint> {
        self.remote.clone()
    }

    /// Pins this end near the link's device, or as `--cpu` says.
    fn place_this_end(&mut self, link: &AnyLink, clock: &HostClock) -> Result<(), CliError> {
        let chosen = || {
            let near = near_node(node_of(&LinkFingerprint::take(link)), &self.allowed);
            Placement::choose(&near, &self.topology)
        };
        let chosen = || if self.placed { chosen() } else { None };
        let Some(Placement { initiator, .. }) = self.asked.or_else(chosen) else { return Ok(()) };
        self.placement = Some(Placement { initiator, responder: initiator });
        let pinned = self.pin(initiator)?;
        self.warnings.extend(warning::before_run_alone(initiator, clock, &pinned));
        Ok(())
    }

    /// Processors of the next launch: equally good ones, or the same in the other direction, so
    /// that a run does not depend on one choice.
    fn next_good(&self) -> Option<Placement> {
        let pairs = Placement::equally_good(&self.allowed, &self.topology);
        let next = self.opened.checked_rem(pairs.len()).filter(|_| self.placed)?;
        pairs.get(next).copied()
    }

    fn open_local(&mut self, clock: &HostClock) -> Result<AnyLink, CliError> {
        let settings = self.args.link.settings(self.longest_message);
        if self.placed && self.opened == 0 && self.args.link.transport == Transport::Verbs {
            let port = VerbsLink::look_at_port(settings)?;
            self.allowed = near_node(port.numa_node, &self.allowed);
        }
        self.placement = self.asked.or_else(|| self.next_good());
        let start = Responder {
            settings,
            cpu: self.placement.map(|both| both.responder),
            longest_message: self.longest_message,
            ..Responder::new(self.args.link.transport)?
        };
        let (link, mut process) = start.spawn()?;
        if let Some(both) = self.placement {
            let theirs = process.take_pinned();
            let theirs = if self.asked.is_some() { Ok(theirs?) } else { theirs };
            let ours = self.pin(both.initiator)?;
            if self.opened == 0 {
                let pinned = [&ours, &theirs];
                self.warnings.extend(warning::before_run(both, &self.topology, clock, &pinned));
            }
        }
        self.responder = Some(process);
        Ok(link)
    }

    /// Pins this thread. Failure is an error for a processor from `--cpu`, and a warning otherwise.
    fn pin(&self, cpu: Cpu) -> Result<Result<(), PlacementError>, CliError> {
        let pinned = placement::pin(cpu);
        if self.asked.is_some() { Ok(Ok(pinned?)) } else { Ok(pinned) }
    }
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

/// Address of the responder; `None` if this command starts it.
fn remote(args: &EndArgs) -> Result<Option<Endpoint>, CliError> {
    let mut endpoint = match &args.host {
        None if args.link.is_local() => return Ok(None),
        host => args.link.endpoint(host.as_deref(), args.port)?,
    };
    if let (Endpoint::Station { peer, .. }, Some(address)) = (&mut endpoint, args.peer) {
        *peer = Some(address);
    }
    Ok(Some(endpoint))
}

impl From<PlacementError> for CliError {
    fn from(error: PlacementError) -> Self {
        match &error {
            PlacementError::Text { .. } | PlacementError::NotAllowed { .. } => Self::usage(error),
            PlacementError::Refused { .. } => Self::refused(error),
        }
    }
}

impl From<EmbeddedError> for CliError {
    fn from(error: EmbeddedError) -> Self {
        match error {
            EmbeddedError::Link(error) => error.into(),
            other => Self::failed(other),
        }
    }
}

impl Ends for Endpoints<'_> {
    type Link = AnyLink;

    /// Opens a new link, and starts a new responder if it runs on this machine.
    fn open(&mut self, clock: &HostClock) -> Result<AnyLink, CliError> {
        let link = match self.remote.clone() {
            None => self.open_local(clock)?,
            Some(endpoint) => {
                let settings = self.args.link.settings(self.longest_message);
                let transport = self.args.link.transport;
                let link = link::connect(transport, &endpoint, settings)?;
                // Keeps the address: the other addresses of a name would be tried again at each
                // launch.
                if transport.is_internet()
                    && let Ok(answered) = Endpoint::parse(transport, link.peer(), DEFAULT_PORT)
                {
                    self.remote = Some(answered);
                }
                if self.opened == 0 {
                    self.place_this_end(&link, clock)?;
                }
                link
            }
        };
        self.opened += 1;
        Ok(link)
    }

    fn launch(
        &mut self,
        run: &mut Run<'_, HostClock>,
        link: AnyLink,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<LinkError>> {
        run.launch_any(link, observer)
    }

    /// Waits for the responder's process, if there is one.
    fn close(&mut self) -> Option<CliError> {
        Some(self.responder.take()?.finish().err()?.into())
    }

    fn may_refuse(&self) -> bool {
        self.remote.is_some()
    }

    fn responder(&self) -> Option<u32> {
        self.responder.as_ref().map(Process::id)
    }

    fn placement(&self) -> Option<Placement> {
        self.placement
    }

    fn fingerprint(&self, link: &AnyLink) -> LinkFingerprint {
        LinkFingerprint::take(link)
    }

    fn waiting(&self) -> Waiting {
        self.args.link.settings(self.longest_message).waiting
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        ends: EndArgs,
    }

    #[test]
    fn the_address_that_answered_is_kept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let host = format!("localhost:{}", address.port());
        let args = <Command as clap::Parser>::parse_from(["test", &host]).ends;
        let mut ends = Endpoints::new(&args, 64, placement::allowed()).unwrap().anywhere();
        assert_eq!(ends.remote().unwrap().to_string(), host);
        ends.open(&HostClock::monotonic_raw()).unwrap();
        assert_eq!(ends.remote().unwrap().to_string(), address.to_string());
    }

    #[test]
    fn ends_that_are_opened_after_a_pinning_keep_apart() {
        let args = <Command as clap::Parser>::parse_from(["test"]).ends;
        std::thread::spawn(move || {
            let allowed = placement::allowed();
            placement::pin(allowed[0]).unwrap();
            let ends = Endpoints::new(&args, 64, allowed.clone()).unwrap();
            let Placement { initiator, responder } = ends.next_good().unwrap();
            assert_eq!(initiator == responder, allowed.len() == 1);
            assert_eq!(ends.anywhere().next_good(), None);
        })
        .join()
        .unwrap();
    }
}
