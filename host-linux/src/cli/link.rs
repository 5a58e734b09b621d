//! Options about the link, shared by the verbs that use one.

use std::io::ErrorKind;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::CliError;
use crate::link::{DEFAULT_PORT, Endpoint, LinkError, LinkSettings, Transport, Waiting};
use crate::listen::ListenError;

/// What the link is and how it waits.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LinkArgs {
    /// What carries the messages: tcp, udp, unix (a Unix socket) or shm
    /// (memory shared by two processes of one machine).
    #[arg(long, value_name = "T", default_value = "tcp", value_parser = transport_parser())]
    pub(super) transport: Transport,
    /// Sleep while nothing has arrived instead of polling. For machines where
    /// both ends share a core; wake-ups become part of the latency.
    #[arg(long)]
    block: bool,
}

fn transport_parser() -> impl TypedValueParser<Value = Transport> {
    let names = Transport::ALL.map(Transport::name);
    PossibleValuesParser::new(names).try_map(|name| {
        Transport::from_name(&name).ok_or_else(|| format!("'{name}' is no transport"))
    })
}

impl LinkArgs {
    pub(super) fn settings(&self) -> LinkSettings {
        let waiting = if self.block { Waiting::Block } else { Waiting::Poll };
        LinkSettings { waiting, ..LinkSettings::default() }
    }

    /// The endpoint that `text` names, or the default one; `port` goes before
    /// the default port and before one in `text`.
    pub(super) fn endpoint(
        &self,
        text: Option<&str>,
        port: Option<u16>,
    ) -> Result<Endpoint, CliError> {
        let mut endpoint = match text {
            None => Endpoint::default_for(self.transport),
            Some(text) => {
                Endpoint::parse(self.transport, text, DEFAULT_PORT).map_err(CliError::usage)?
            }
        };
        match (&mut endpoint, port) {
            (Endpoint::Internet { port, .. }, Some(wanted)) => *port = wanted,
            (Endpoint::Path(_), Some(_)) => {
                let transport = self.transport;
                return Err(CliError::usage(format_args!(
                    "{transport} has no ports; leave -p out, and name another socket by its path"
                )));
            }
            (_, None) => {}
        }
        Ok(endpoint)
    }
}

impl From<LinkError> for CliError {
    fn from(error: LinkError) -> Self {
        match &error {
            LinkError::Connect { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Self::refused(error)
            }
            LinkError::TooLong { .. } => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

impl From<ListenError> for CliError {
    fn from(error: ListenError) -> Self {
        match &error {
            ListenError::Bind { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied => Self::refused(error),
                ErrorKind::AddrNotAvailable | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
                    Self::usage(error)
                }
                _ => Self::failed(error),
            },
            _ => Self::failed(error),
        }
    }
}
