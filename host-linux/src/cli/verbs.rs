//! Options of RDMA verbs. perftest's names and letters of options are aliases.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, FromArgMatches};

use crate::link::{DeviceName, Operation, Transport, VerbsSettings};
use crate::terminal::CliError;

/// Options of RDMA verbs. The initiator's options apply to both ends, except device, port, address,
/// events and pages, which each end has of its own.
// Each option repeats the heading: a common one would also apply to later options.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct VerbsArgs {
    // First, as it inspects the arguments of all others.
    #[command(flatten)]
    given: Given,
    /// RDMA device [default: the first with an active port].
    #[arg(help_heading = HEADING, short = 'd', long, visible_alias = "ib-dev", value_name = "DEV", value_parser = device)]
    device: Option<DeviceName>,
    /// Port of the device, from 1 on.
    #[arg(help_heading = HEADING, long, visible_short_alias = 'i', value_name = "PORT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    ib_port: u8,
    /// GID index of this end [default: the first of RoCE v2 over IPv4; the LID
    /// on InfiniBand].
    #[arg(help_heading = HEADING, long, visible_short_alias = 'x', value_name = "INDEX")]
    gid_index: Option<u8>,
    /// Operation: send (RC send and receive), write (RC write, detected by
    /// polling its last byte), write-imm (RC write with immediate), read (RC
    /// read; the other end is passive) or ud (datagrams) [default: send; serve:
    /// whichever the client asks for].
    #[arg(help_heading = HEADING, long, value_name = "OP", value_parser = operation_parser())]
    op: Option<Operation>,
    /// Alias of --op write-imm, as in perftest.
    #[arg(help_heading = HEADING, long = "write_with_imm", hide = true, conflicts_with = "op")]
    write_with_imm: bool,
    /// Longest message sent inline: auto (what the device grants, up to 220 B)
    /// or bytes.
    #[arg(help_heading = HEADING, long, visible_short_alias = 'I', visible_alias = "inline_size", value_name = "auto|BYTES", default_value = "auto", value_parser = inline)]
    inline: Inline,
    /// Sleep for completion events instead of polling, like --block.
    #[arg(help_heading = HEADING, long, visible_short_alias = 'e')]
    pub(super) events: bool,
    /// Path MTU [default: that of the ports].
    #[arg(help_heading = HEADING, long, visible_short_alias = 'm', value_name = "BYTES", value_parser = PossibleValuesParser::new(["256", "512", "1024", "2048", "4096"]).map(|text| text.parse::<u16>().unwrap_or(256)))]
    mtu: Option<u16>,
    /// Service level.
    #[arg(help_heading = HEADING, long, visible_short_alias = 'S', visible_alias = "sl", value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    service_level: u8,
    /// Traffic class of RoCE: four times the DSCP.
    #[arg(help_heading = HEADING, long, visible_alias = "tclass", value_name = "CLASS", default_value_t = 0)]
    traffic_class: u8,
    /// Messages in flight at most; fewer for long messages, and in `lat`, so that
    /// they stay in the cache.
    #[arg(help_heading = HEADING, long, visible_short_alias = 't', visible_alias = "tx-depth", value_name = "MESSAGES", default_value_t = 128, value_parser = depth)]
    depth: u16,
    /// Sends per signaled completion [default: a quarter of --depth].
    #[arg(help_heading = HEADING, long, visible_short_alias = 'Q', visible_alias = "cq-mod", value_name = "SENDS", value_parser = clap::value_parser!(u16).range(1..))]
    signal_every: Option<u16>,
    /// Use huge pages for buffers; reserve some with `sysctl vm.nr_hugepages`.
    #[arg(help_heading = HEADING, long, alias = "use_hugepages")]
    huge_pages: bool,
}

const HEADING: &str = "RDMA verbs (--transport verbs)";

/// Names of the options of RDMA verbs that were given.
#[derive(Clone, Debug)]
struct Given {
    options: Vec<&'static str>,
}

/// All options: name in the parser, and name as typed.
const OPTIONS: [(&str, &str); 13] = [
    ("device", "--device"),
    ("ib_port", "--ib-port"),
    ("gid_index", "--gid-index"),
    ("op", "--op"),
    ("write_with_imm", "--write_with_imm"),
    ("inline", "--inline"),
    ("events", "--events"),
    ("mtu", "--mtu"),
    ("service_level", "--service-level"),
    ("traffic_class", "--traffic-class"),
    ("depth", "--depth"),
    ("signal_every", "--signal-every"),
    ("huge_pages", "--huge-pages"),
];

/// Options that the initiator imposes on both ends.
const OF_THE_INITIATOR: [&str; 6] =
    ["--inline", "--mtu", "--service-level", "--traffic-class", "--depth", "--signal-every"];

/// Hides an option of the initiator from the help of `serve`, which refuses it.
pub(super) fn hidden_at_a_responder(argument: Arg) -> Arg {
    let named = |known: &&(&str, &str)| known.0 == argument.get_id();
    let of_the_initiator =
        OPTIONS.iter().find(named).is_some_and(|option| OF_THE_INITIATOR.contains(&option.1));
    if of_the_initiator { argument.hide(true) } else { argument }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        let options = OPTIONS.iter().filter(|(name, _)| given(name)).map(|(_, typed)| *typed);
        Ok(Self { options: options.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// Value of `--inline`; `None` for auto.
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

fn depth(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(depth @ 2..=4096) => Ok(depth),
        Ok(0 | 1) => Err("a link has places for two messages at least, one of which is read while the next arrives; 2 to 4096 (`lat` sends one message at a time with any)".to_owned()),
        _ => Err("expected a number from 2 to 4096".to_owned()),
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
    /// Operation, if one was given.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self.op {
            None if self.write_with_imm => Some(Operation::WriteImmediate),
            op => op,
        }
    }

    /// True if --depth is given.
    pub(super) fn has_depth(&self) -> bool {
        self.given.options.contains(&"--depth")
    }

    pub(super) fn settings(&self, longest_message: u32) -> VerbsSettings {
        VerbsSettings {
            device: self.device,
            port: self.ib_port,
            gid_index: self.gid_index,
            operation: self.operation(),
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

    /// Refuses options without meaning for `transport`.
    pub(super) fn check(&self, transport: Transport) -> Result<(), CliError> {
        if transport == Transport::Verbs {
            return Ok(());
        }
        match &*self.given.options {
            [] => Ok(()),
            given => Err(CliError::usage(format_args!(
                "{} {} for RDMA verbs, and --transport is {transport}; add --transport verbs",
                given.join(", "),
                if given.len() == 1 { "is" } else { "are" },
            ))),
        }
    }

    /// Refuses options without effect at a responder.
    pub(super) fn check_responder(&self) -> Result<(), CliError> {
        match self.given.options.iter().find(|given| OF_THE_INITIATOR.contains(given)) {
            None => Ok(()),
            Some(given) => Err(CliError::usage(format_args!(
                "{given} of a responder has no effect: that of `loggap measure`, `lat` or `bw` holds for both ends; give it there"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Test {
        #[command(flatten)]
        verbs: VerbsArgs,
        /// An option after the flattened ones.
        #[arg(long)]
        later: bool,
    }

    fn parsed(words: &str) -> VerbsArgs {
        Test::parse_from(["test"].into_iter().chain(words.split_whitespace())).verbs
    }

    /// A value for each option that takes one.
    const VALUES: &str = "--device rxe0 --ib-port 1 --gid-index 0 --op send --inline auto \
        --events --mtu 1024 --service-level 0 --traffic-class 0 --depth 128 --signal-every 1 \
        --huge-pages";

    #[test]
    fn options_are_seen_with_any_value_and_by_any_name() {
        assert!(parsed("").check(Transport::Tcp).is_ok());
        let all: Vec<&str> = OPTIONS
            .iter()
            .map(|option| option.1)
            .filter(|typed| *typed != "--write_with_imm")
            .collect();
        assert_eq!(parsed(VALUES).given.options, all);
        // Options count as given also with their default values.
        for words in ["--depth 128", "-t 128", "--op send", "-i 1", "--sl 0", "--write_with_imm"] {
            let error = parsed(words).check(Transport::Tcp).unwrap_err().to_string();
            assert!(error.contains("add --transport verbs"), "{words}: {error}");
            assert!(parsed(words).check(Transport::Verbs).is_ok(), "{words}");
        }
        let command = Test::command();
        let known: Vec<_> =
            command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        for (name, _) in OPTIONS {
            assert!(known.contains(&name), "{name}");
        }
        // Only --later is not in OPTIONS.
        assert_eq!(known.len(), OPTIONS.len() + 1, "{known:?}");
    }

    #[test]
    fn a_depth_is_seen_with_any_value_and_within_limits() {
        assert!(parsed("-t 128").has_depth() && !parsed("").has_depth());
        assert_eq!((parsed("-t 2").settings(64).depth, parsed("").settings(64).depth), (2, 128));
        let refused = |words| Test::try_parse_from(["test", "-t", words]).unwrap_err().to_string();
        assert!(refused("1").contains("two messages at least"), "{}", refused("1"));
        assert!(refused("4097").contains("from 2 to 4096"), "{}", refused("4097"));
    }

    #[test]
    fn what_the_initiator_says_is_refused_at_a_responder() {
        for words in ["--mtu 1024", "--inline auto", "--depth 128", "--tclass 0", "-Q 1", "-S 0"] {
            let error = parsed(words).check_responder().unwrap_err().to_string();
            assert!(error.contains("of a responder has no effect"), "{words}: {error}");
        }
        assert!(parsed("-d rxe0 -i 1 -x 0 --op ud -e --huge-pages").check_responder().is_ok());
    }

    #[test]
    fn the_heading_ends_with_the_options_of_verbs() {
        let command = Test::command();
        for argument in command.get_arguments() {
            let heading = argument.get_help_heading();
            assert_eq!(heading == Some(HEADING), argument.get_id() != "later", "{argument}");
        }
    }

    #[test]
    fn write_with_imm_is_an_operation() {
        assert_eq!(parsed("--write_with_imm").operation(), Operation::from_name("write-imm"));
    }
}
