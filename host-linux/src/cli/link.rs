//! Options of a link, shared by the subcommands that use one.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::verbs::VerbsArgs;
use crate::link::{DEFAULT_PORT, Endpoint, LinkSettings, Operation, Transport, Waiting};
use crate::terminal::CliError;

/// Transport and way of waiting.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LinkArgs {
    /// Transport.
    ///
    /// unix: Unix domain sockets; shm: memory shared by two processes of one
    /// machine; eth: raw Ethernet frames on --interface; verbs: RDMA over
    /// InfiniBand or RoCE.
    #[arg(long, value_name = "TRANSPORT", default_value = "tcp", value_parser = transport_parser())]
    pub(super) transport: Transport,
    /// Sleep while waiting instead of polling.
    ///
    /// For machines where both ends share a core or compete with other
    /// processes; latency then includes the wake-ups.
    #[arg(long)]
    block: bool,
    /// Network interface of this machine, for eth.
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    #[command(flatten)]
    pub(super) verbs: VerbsArgs,
}

fn transport_parser() -> impl TypedValueParser<Value = Transport> {
    let names = Transport::ALL.map(Transport::name);
    PossibleValuesParser::new(names).try_map(|name| {
        Transport::from_name(&name).ok_or_else(|| format!("'{name}' is no transport"))
    })
}

impl LinkArgs {
    /// Settings for messages of up to `longest_message` bytes.
    pub(super) fn settings(&self, longest_message: u32) -> LinkSettings {
        let sleeps = self.block || self.verbs.events;
        let waiting = if sleeps { Waiting::Block } else { Waiting::Poll };
        let verbs = self.verbs.settings(longest_message);
        LinkSettings { waiting, verbs, ..LinkSettings::default() }
    }

    /// True for RDMA reads, whose messages have no reply.
    pub(super) fn is_read(&self) -> bool {
        self.transport == Transport::Verbs && self.verbs.operation() == Some(Operation::Read)
    }

    /// True if the peer may be a second process of this machine.
    pub(super) fn is_local(&self) -> bool {
        let local = Transport::LOCAL.contains(&self.transport);
        self.interface.is_none() && (local || self.transport == Transport::Verbs)
    }

    /// Endpoint named by `text`, or the default one. `port` replaces the default port and conflicts
    /// with a port in `text`.
    pub(super) fn endpoint(
        &self,
        text: Option<&str>,
        port: Option<u16>,
    ) -> Result<Endpoint, CliError> {
        let transport = self.transport;
        let parsed = |text| Endpoint::parse(transport, text, DEFAULT_PORT).map_err(CliError::usage);
        let mut endpoint = match (&self.interface, text) {
            (Some(_), _) if transport != Transport::Eth => {
                return Err(CliError::usage(format_args!(
                    "--interface is for --transport eth; {transport} finds its interface itself"
                )));
            }
            (Some(interface), None) => parsed(interface)?,
            (Some(_), Some(text)) => {
                return Err(CliError::usage(format_args!(
                    "--transport eth takes no '{text}'; stations are found by --interface"
                )));
            }
            (None, Some(text)) => parsed(text)?,
            (None, None) => Endpoint::default_for(transport).ok_or_else(|| {
                CliError::usage(format_args!(
                    "--transport {transport} needs --interface; `ip link` lists them"
                ))
            })?,
        };
        match (&mut endpoint, port) {
            (Endpoint::Internet { .. }, Some(_)) if text.is_some_and(Endpoint::names_port) => {
                return Err(CliError::usage(format_args!(
                    "'{}' names a port already; leave -p out",
                    text.unwrap_or_default()
                )));
            }
            (Endpoint::Internet { port, .. }, Some(wanted)) => *port = wanted,
            (Endpoint::Path(_) | Endpoint::Station { .. }, Some(_)) => {
                return Err(CliError::usage(format_args!(
                    "{transport} has no ports; leave -p out"
                )));
            }
            (_, None) => {}
        }
        Ok(endpoint)
    }
}
