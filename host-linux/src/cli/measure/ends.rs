//! Both ends of the link: where they run and how they meet.

use super::Args;
use crate::cli::CliError;
use crate::clock::HostClock;
use crate::embedded::{EmbeddedError, Process, Responder};
use crate::link::{self, AnyLink, Endpoint};
use crate::measurement::Settings;
use crate::placement::{self, Placement, PlacementError, Topology};
use crate::warning::{self, Warning};

/// The open link, its other end where this command started it, and what is
/// to be said about both.
pub(super) struct Ends {
    pub(super) link: AnyLink,
    pub(super) responder: Option<Process>,
    /// With one processor for both where only this end runs here.
    pub(super) placement: Option<Placement>,
    pub(super) warnings: Vec<Warning>,
}

impl Ends {
    pub(super) fn open(
        args: &Args,
        settings: &Settings,
        clock: &HostClock,
    ) -> Result<Self, CliError> {
        let allowed = placement::allowed();
        let topology = Topology::of(&allowed);
        let asked = args.cpu.as_deref().map(Placement::parse).transpose()?;
        let placement = asked.or_else(|| Placement::choose(&allowed, &topology));
        match remote(args)? {
            None => Self::embedded(args, settings, (placement, &topology), clock),
            Some(endpoint) => {
                let settings = args.link.settings();
                let link = link::connect(args.link.transport, &endpoint, settings)?;
                let here = placement.map(|both| both.initiator);
                let placement = here.map(|cpu| Placement { initiator: cpu, responder: cpu });
                let mut warnings = Vec::new();
                if let Some(cpu) = here {
                    let pinned = pin(cpu, asked)?;
                    warnings = warning::before_run_alone(cpu, clock, &pinned);
                }
                Ok(Self { link, responder: None, placement, warnings })
            }
        }
    }

    fn embedded(
        args: &Args,
        settings: &Settings,
        (placement, topology): (Option<Placement>, &Topology),
        clock: &HostClock,
    ) -> Result<Self, CliError> {
        let asked = placement.filter(|_| args.cpu.is_some());
        let start = Responder {
            settings: args.link.settings(),
            cpu: placement.map(|both| both.responder),
            longest_message: settings.sizes.largest(),
            ..Responder::new(args.link.transport)?
        };
        let (link, mut process) = start.spawn()?;
        let mut warnings = Vec::new();
        if let Some(both) = placement {
            let theirs = process.take_pinned();
            let theirs = if asked.is_some() { Ok(theirs?) } else { theirs };
            let ours = pin(both.initiator, asked)?;
            warnings = warning::before_run(both, topology, clock, &[&ours, &theirs]);
        }
        Ok(Self { link, responder: Some(process), placement, warnings })
    }
}

/// The responder's place, `None` where this command starts one.
fn remote(args: &Args) -> Result<Option<Endpoint>, CliError> {
    let mut endpoint = match &args.host {
        None if args.link.is_local() => return Ok(None),
        host => args.link.endpoint(host.as_deref(), args.port)?,
    };
    if let (Endpoint::Station { peer, .. }, Some(address)) = (&mut endpoint, args.peer) {
        *peer = Some(address);
    }
    Ok(Some(endpoint))
}

/// Pins this thread. What was asked for explicitly must be had; what this
/// program chose may fail, with a warning.
fn pin(
    cpu: placement::Cpu,
    asked: Option<Placement>,
) -> Result<Result<(), PlacementError>, CliError> {
    let pinned = placement::pin(cpu);
    if asked.is_some() { Ok(Ok(pinned?)) } else { Ok(pinned) }
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
