//! Ends of the link of each launch: their processors, and the responder.

use loggap_core::measure::{LinkProperties, SessionError};

use super::{Ends, Observer, Run};
use crate::link::{
    self, AnyLink, DEFAULT_PORT, Endpoint, LinkError, LinkFingerprint, LinkSettings, Transport,
    VerbsLink, VerbsSettings, Waiting,
};
use crate::machine::clock::HostClock;
use crate::machine::near::{near_node, node_of};
use crate::machine::placement::{self, Cpu, Placement, PlacementError, Topology};
use crate::machine::warning::{self, Warning};
use crate::serve::local::{Process, Responder};
use crate::terminal::CliError;

/// Options of both ends of a link.
#[derive(Clone, Debug)]
pub struct EndOptions {
    /// Transport.
    pub transport: Transport,
    /// Settings of this end, and of a responder that is started here.
    pub settings: LinkSettings,
    /// Limit of the messages in flight over RDMA verbs, by the longest message in bytes.
    pub depth_of: Option<fn(u32) -> u16>,
    /// Address of the responder; `None` to start one on this machine.
    pub remote: Option<Endpoint>,
    /// Processors of the ends; `None` to choose good ones.
    pub cpus: Option<Placement>,
}

impl EndOptions {
    /// Settings for messages of up to `longest_message` bytes.
    #[must_use]
    pub fn settings(&self, longest_message: u32) -> LinkSettings {
        let verbs = self.settings.verbs;
        let depth = self.depth_of.map_or(verbs.depth, |of| verbs.depth.min(of(longest_message)));
        let verbs = VerbsSettings { depth, longest_message, ..verbs };
        LinkSettings { verbs, ..self.settings }
    }
}

/// Opens the links of a run, and starts responders if they run on this machine.
#[derive(Debug)]
pub struct Endpoints {
    /// With the address that answered, once one has.
    pub(super) options: EndOptions,
    settings: LinkSettings,
    /// True if processors are chosen unless they are given.
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

impl Endpoints {
    /// Creates the ends for messages of up to `longest_message` bytes. `allowed` are this thread's
    /// processors before any pinning.
    #[must_use]
    pub fn new(options: EndOptions, longest_message: u32, allowed: Vec<Cpu>) -> Self {
        Self {
            settings: options.settings(longest_message),
            options,
            placed: true,
            topology: Topology::of(&allowed),
            allowed,
            placement: None,
            opened: 0,
            responder: None,
            warnings: Vec::new(),
        }
    }

    /// Disables automatic pinning, for several connections with threads of their own.
    pub(super) fn anywhere(self) -> Self {
        Self { placed: false, ..self }
    }

    /// Pins this end near the link's device, or to the given processor.
    fn place_this_end(&mut self, link: &AnyLink, clock: &HostClock) -> Result<(), CliError> {
        let chosen = || {
            let near = near_node(node_of(&link.fingerprint()), &self.allowed);
            Placement::choose(&near, &self.topology)
        };
        let chosen = || if self.placed { chosen() } else { None };
        let Some(Placement { initiator, .. }) = self.options.cpus.or_else(chosen) else {
            return Ok(());
        };
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
        let settings = self.settings;
        if self.placed && self.opened == 0 && self.options.transport == Transport::Verbs {
            let port = VerbsLink::look_at_port(settings)?;
            self.allowed = near_node(port.numa_node, &self.allowed);
        }
        self.placement = self.options.cpus.or_else(|| self.next_good());
        let start = Responder {
            settings,
            cpu: self.placement.map(|both| both.responder),
            longest_message: settings.verbs.longest_message,
            ..Responder::new(self.options.transport)?
        };
        let (link, mut process) = start.spawn()?;
        if let Some(both) = self.placement {
            let theirs = process.take_pinned();
            let theirs = if self.options.cpus.is_some() { Ok(theirs?) } else { theirs };
            let ours = self.pin(both.initiator)?;
            if self.opened == 0 {
                let pinned = [&ours, &theirs];
                let (waiting, topology) = (settings.waiting, &self.topology);
                let about = warning::before_run(both, waiting, topology, clock, &pinned);
                self.warnings.extend(about);
            }
        }
        self.responder = Some(process);
        Ok(link)
    }

    /// Pins this thread. Failure is an error for a given processor, and a warning otherwise.
    fn pin(&self, cpu: Cpu) -> Result<Result<(), PlacementError>, CliError> {
        let pinned = placement::pin(cpu);
        if self.options.cpus.is_some() { Ok(Ok(pinned?)) } else { Ok(pinned) }
    }
}

impl Ends for Endpoints {
    type Link = AnyLink;

    /// Opens a new link, and starts a new responder if it runs on this machine.
    fn open(&mut self, clock: &HostClock) -> Result<AnyLink, CliError> {
        let link = match self.options.remote.clone() {
            None => self.open_local(clock)?,
            Some(endpoint) => {
                let transport = self.options.transport;
                let link = link::connect(transport, &endpoint, self.settings)?;
                // Keeps the address: the other addresses of a name would be tried again at each
                // launch.
                if transport.is_internet()
                    && let Ok(answered) = Endpoint::parse(transport, link.peer(), DEFAULT_PORT)
                {
                    self.options.remote = Some(answered);
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
        self.options.remote.is_some()
    }

    fn responder(&self) -> Option<u32> {
        self.responder.as_ref().map(Process::id)
    }

    fn placement(&self) -> Option<Placement> {
        self.placement
    }

    fn properties(&self, link: &AnyLink) -> LinkProperties {
        link.properties()
    }

    fn fingerprint(&self, link: &AnyLink) -> LinkFingerprint {
        link.fingerprint()
    }

    fn waiting(&self) -> Waiting {
        self.settings.waiting
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(remote: Option<Endpoint>) -> EndOptions {
        let settings = LinkSettings::default();
        EndOptions { transport: Transport::Tcp, settings, depth_of: None, remote, cpus: None }
    }

    #[test]
    fn the_address_that_answered_is_kept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let host = format!("localhost:{}", address.port());
        let remote = Endpoint::parse(Transport::Tcp, &host, DEFAULT_PORT).unwrap();
        let mut ends = Endpoints::new(options(Some(remote)), 64, placement::allowed()).anywhere();
        assert_eq!(ends.options.remote.as_ref().unwrap().to_string(), host);
        ends.open(&HostClock::monotonic_raw()).unwrap();
        assert_eq!(ends.options.remote.as_ref().unwrap().to_string(), address.to_string());
    }

    #[test]
    fn ends_that_are_opened_after_a_pinning_keep_apart() {
        std::thread::spawn(move || {
            let allowed = placement::allowed();
            placement::pin(allowed[0]).unwrap();
            let ends = Endpoints::new(options(None), 64, allowed.clone());
            let Placement { initiator, responder } = ends.next_good().unwrap();
            assert_eq!(initiator == responder, allowed.len() == 1);
            assert_eq!(ends.anywhere().next_good(), None);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_depth_by_size_is_a_limit() {
        let few = |size| u16::try_from(256 / size).unwrap_or(1);
        let limited = EndOptions { depth_of: Some(few), ..options(None) };
        let deepest = options(None).settings.verbs.depth;
        assert_eq!([1, 64].map(|size| limited.settings(size).verbs.depth), [deepest.min(256), 4]);
        assert_eq!(options(None).settings(64).verbs.depth, deepest);
    }
}
