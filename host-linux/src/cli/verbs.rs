//! Options of RDMA verbs. Names and letters that perftest has are taken as well.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::CliError;
use crate::link::{DeviceName, Operation, Transport, VerbsSettings};

/// How RDMA verbs are used. The initiator's options hold for both ends, but for
/// device, port and address, which each end has of its own.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "RDMA verbs (--transport verbs)")]
pub(super) struct VerbsArgs {
    /// Device; the first with an active port unless given.
    #[arg(short = 'd', long, visible_alias = "ib-dev", value_name = "DEV", value_parser = device)]
    device: Option<DeviceName>,
    /// Port of the device, from 1 on.
    #[arg(long, short_alias = 'i', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    ib_port: u8,
    /// Index of this end's address; the first of RoCE v2 over IPv4 unless
    /// given, on InfiniBand the LID.
    #[arg(long, short_alias = 'x', value_name = "N")]
    gid_index: Option<u8>,
    /// How messages travel: send (RC send and receive), write (RC write, seen
    /// by polling its last byte), write-imm (RC write with immediate), read (RC
    /// read: the other end does nothing) or ud (datagrams). send unless given;
    /// of `serve`, the only one that is served.
    #[arg(long, value_name = "OP", value_parser = operation_parser())]
    op: Option<Operation>,
    /// Longest message, in bytes, that travels within its work request: auto
    /// for what the device grants up to 220, or a number.
    #[arg(long, short_alias = 'I', visible_alias = "inline_size", value_name = "auto|N", default_value = "auto", value_parser = inline)]
    inline: Inline,
    /// Sleep for completion events instead of polling, as --block.
    #[arg(long, short_alias = 'e')]
    events: bool,
    /// Payload of a packet: 256, 512, 1024, 2048 or 4096; that of the ports
    /// unless given.
    #[arg(long, short_alias = 'm', value_name = "BYTES", value_parser = PossibleValuesParser::new(["256", "512", "1024", "2048", "4096"]).map(|text| text.parse::<u16>().unwrap_or(256)))]
    mtu: Option<u16>,
    /// Service level.
    #[arg(long, short_alias = 'S', visible_alias = "sl", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    service_level: u8,
    /// Traffic class of RoCE: four times the DSCP.
    #[arg(long, visible_alias = "tclass", value_name = "N", default_value_t = 0)]
    traffic_class: u8,
    /// Messages under way at a time; fewer where they are long.
    #[arg(long, short_alias = 't', visible_alias = "tx-depth", value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(2..=4096))]
    depth: u16,
    /// A completion for each so many sends; a quarter of --depth unless given.
    #[arg(long, short_alias = 'Q', visible_alias = "cq-mod", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    signal_every: Option<u16>,
    /// Register huge pages, of which `sysctl vm.nr_hugepages` reserves some.
    #[arg(long, alias = "use_hugepages")]
    huge_pages: bool,
}

/// What `--inline` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Inline(Option<u32>);

fn inline(text: &str) -> Result<Inline, String> {
    match text {
        "auto" => Ok(Inline(None)),
        number => number
            .parse()
            .map(|bytes| Inline(Some(bytes)))
            .map_err(|_| "expected auto or a number of bytes".to_owned()),
    }
}

fn device(text: &str) -> Result<DeviceName, String> {
    DeviceName::new(text)
        .ok_or_else(|| format!("'{text}' is no name of a device, such as mlx5_0 or rxe0"))
}

fn operation_parser() -> impl TypedValueParser<Value = Operation> {
    PossibleValuesParser::new(Operation::ALL.map(Operation::name)).try_map(|name| {
        Operation::from_name(&name).ok_or_else(|| format!("'{name}' is no operation"))
    })
}

impl VerbsArgs {
    /// Whether to sleep for events.
    pub(super) const fn events(&self) -> bool {
        self.events
    }

    /// How messages travel, if that was said.
    pub(super) const fn operation(&self) -> Option<Operation> {
        self.op
    }

    /// Messages under way at a time.
    pub(super) const fn depth(&self) -> u32 {
        self.depth as u32
    }

    pub(super) const fn settings(&self, longest_message: u32) -> VerbsSettings {
        VerbsSettings {
            device: self.device,
            port: self.ib_port,
            gid_index: self.gid_index,
            operation: self.op,
            inline: self.inline.0,
            mtu: self.mtu,
            service_level: self.service_level,
            traffic_class: self.traffic_class,
            depth: self.depth,
            signal_every: self.signal_every,
            huge_pages: self.huge_pages,
            longest_message,
        }
    }

    /// Refuses options that mean nothing to `transport`.
    pub(super) fn check(&self, transport: Transport) -> Result<(), CliError> {
        if transport == Transport::Verbs {
            return Ok(());
        }
        let longest = VerbsSettings::DEFAULT.longest_message;
        if self.events || self.settings(longest) != VerbsSettings::DEFAULT {
            return Err(CliError::usage(format_args!(
                "options of RDMA verbs were given, and --transport is {transport}; add --transport verbs, or leave them out"
            )));
        }
        Ok(())
    }
}
