//! Flags of perftest that mean nothing here: refused by name, each with what
//! does the same, instead of as unknown ones.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::link::Operation;

/// A flag of perftest's `ib_send_lat` or `ib_write_bw`.
struct Flag {
    /// One letter, without the dash.
    short: Option<&'static str>,
    /// Without the dashes; all spellings mean the same.
    long: &'static [&'static str],
    /// Why not, and what instead.
    instead: &'static str,
    /// Whether a value asks for what is done anyway.
    means_nothing_new: fn(&str, &ArgMatches) -> bool,
}

const fn flag(short: &'static str, long: &'static [&'static str], instead: &'static str) -> Flag {
    Flag { short: Some(short), ..self::long(long, instead) }
}

const fn long(long: &'static [&'static str], instead: &'static str) -> Flag {
    Flag { short: None, long, instead, means_nothing_new: never }
}

fn never(_: &str, _: &ArgMatches) -> bool {
    false
}

/// The kind of connection that --op says; where nothing says how messages travel, UD
/// stands for --op ud.
fn is_that_of_the_operation(value: &str, matches: &ArgMatches) -> bool {
    let operation = matches.get_one::<Operation>("op");
    let free = operation.is_none() && !matches.get_flag("write_with_imm");
    let datagrams = operation == Some(&Operation::Datagram);
    value.eq_ignore_ascii_case(if datagrams { "UD" } else { "RC" })
        || free && value.eq_ignore_ascii_case("UD")
}

fn is_one(value: &str, _: &ArgMatches) -> bool {
    value == "1"
}

/// What is refused by `lat` and by `bw`.
const BOTH: &[Flag] = &[
    Flag {
        means_nothing_new: is_that_of_the_operation,
        ..flag(
            "c",
            &["connection"],
            "--op says how messages travel: send, write, write-imm and read are RC, ud is UD",
        )
    },
    flag("C", &["report-cycles"], "times are printed in microseconds, and in seconds with -J"),
    flag(
        "f",
        &["margin"],
        "-D measures for as long as it says, and --warmup leaves the first rounds out",
    ),
    flag("g", &["mcg"], "there is no multicast"),
    flag("M", &["MGID"], "there is no multicast"),
    flag(
        "H",
        &["report-histogram", "report-histogrm"],
        "`loggap measure --samples FILE.csv` writes every value",
    ),
    flag("U", &["report-unsorted"], "`loggap measure --samples FILE.csv` writes every value"),
    flag("L", &["hop_limit"], "the hop limit is fixed"),
    flag("O", &["dualport"], "one port is measured; run a second test for the other"),
    flag("o", &["outs"], "up to 16 reads are under way, or what the device allows"),
    flag("r", &["rx-depth"], "--depth holds for both directions"),
    flag("R", &["rdma_cm"], "queue pairs are connected over a TCP connection"),
    flag("z", &["comm_rdma_cm"], "queue pairs are connected over a TCP connection"),
    flag("T", &["tos"], "use --traffic-class"),
    flag("u", &["qp-timeout"], "the timeout of acknowledgements is fixed"),
    flag("W", &["report-counters"], "`rdma statistic` shows the device's counters"),
    flag("X", &["vector"], "the completion vector is the device's first"),
    long(&["retry_count"], "the number of retries is fixed"),
    long(&["pkey_index"], "the first partition is used"),
    long(&["dlid"], "the peer tells its LID"),
    long(&["flow_label"], "the flow label is 0"),
    long(&["use-srq"], "each queue pair has receives of its own"),
    long(&["inline_recv"], "received data are never inline"),
    long(&["out_json", "out_json_file"], "-J prints one JSON document"),
    long(&["output"], "-J prints one JSON document, of which `jq` takes a part"),
    long(&["perform_warm_up"], "--warmup says how many rounds come first; 20 unless given"),
    long(&["run_infinitely"], "-D measures for as long as it says"),
    long(
        &["pin_cores", "numa_node"],
        "--cpu names processors, which otherwise are chosen near the device",
    ),
    long(
        &["mmap", "mmap-offset", "odp"],
        "memory is registered once; --huge-pages takes huge ones",
    ),
    long(
        &["use_cuda", "use_cuda_dmabuf", "use_cuda_bus_id", "use_rocm", "use_hl", "use_mlu"],
        "messages lie in the memory of the host",
    ),
    long(&["payload_file_path"], "the bytes of messages do not matter here"),
    long(&["dont_xchg_versions"], "both ends say their versions, and name a difference"),
    long(&["force-link"], "the link layer is the port's own"),
    long(
        &["bind_source_ip", "source_ip", "ipv6", "ipv6-addr"],
        "HOST is any address or name; `loggap serve --bind` takes an address",
    ),
    long(&["latency_gap"], "rounds follow one another; `loggap measure` finds what pauses change"),
    long(&["cpu_util"], "`loggap measure` says what disturbed the processor"),
    long(
        &[
            "wait_destroy",
            "disable_pcie_relaxed",
            "use_old_post_send",
            "log_dci_streams",
            "log_active_dci_streams",
            "aes_block_size",
            "aes_xts",
            "connectionless",
            "use-null-mr",
        ],
        "there is no such setting",
    ),
];

/// Of what perftest fails below.
const THRESHOLD: &str = "`loggap measure --assert` fails where a number is not what it should be";

/// What `bw` refuses beside them.
const BANDWIDTH: &[Flag] = &[
    flag("l", &["post_list", "recv_post_list"], "messages are posted one by one"),
    flag("N", &["noPeak"], "the peak costs no further reading of the clock; leave it out"),
    flag("w", &["limit_bw"], THRESHOLD),
    flag("y", &["limit_msgrate"], THRESHOLD),
    long(
        &["rate_limit", "rate_units", "rate_limit_type", "burst_size", "typical_pkt_size"],
        "there is no limit of rate",
    ),
    long(&["mr_per_qp"], "each connection has memory of its own"),
    long(
        &["report-both", "report-per-port"],
        "one port is measured, and -b prints the sum of both directions",
    ),
    long(&["reversed"], "messages go from this end; run the test on the other one"),
];

/// What `lat` refuses beside them.
const LATENCY: &[Flag] = &[
    Flag {
        means_nothing_new: is_one,
        ..flag(
            "q",
            &["qp"],
            "one message is under way in a test of latency; `loggap bw -q N` takes several queue pairs",
        )
    },
    flag(
        "b",
        &["bidirectional"],
        "one message is under way in a test of latency; `loggap bw -b` sends both ways",
    ),
];

const OF_THE_INITIATOR: &str =
    "the initiator's options hold for both ends; give it to `loggap lat` or `bw`";

/// What `serve` refuses beside them.
const RESPONDER: &[Flag] = &[
    flag("a", &["all"], OF_THE_INITIATOR),
    flag("s", &["size"], OF_THE_INITIATOR),
    flag("n", &["iters"], OF_THE_INITIATOR),
    flag("D", &["duration"], OF_THE_INITIATOR),
    flag("b", &["bidirectional"], OF_THE_INITIATOR),
    flag("F", &["CPU-freq"], "this program never refuses for the processor's clock rate"),
    flag("q", &["qp"], "`loggap serve --clients N` serves as many at the same time"),
    flag("l", &["post_list"], "messages are posted one by one"),
    flag("N", &["noPeak"], OF_THE_INITIATOR),
    long(&["report_gbits"], OF_THE_INITIATOR),
];

/// The flags that `loggap lat` refuses.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedByLatency;

/// The flags that `loggap bw` refuses.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedByBandwidth;

/// The flags that `loggap serve` refuses.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct RefusedByResponder;

impl Flag {
    /// Every spelling, as an argument of its own and as it is typed, so that a
    /// refusal has the one that was given.
    fn spellings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let short = self.short.map(|name| (name, format!("-{name}")));
        short.into_iter().chain(self.long.iter().map(|name| (*name, format!("--{name}"))))
    }
}

/// `command` with hidden flags that are refused as soon as they are given.
fn augment(command: Command, flags: &[&'static [Flag]]) -> Command {
    let arguments = flags.iter().copied().flatten().flat_map(|flag| {
        flag.spellings().map(|(name, _)| {
            let argument = Arg::new(name)
                .num_args(0..=1)
                .action(ArgAction::Append)
                .help(flag.instead)
                .hide(true);
            match (flag.short == Some(name), name.chars().next()) {
                (true, Some(letter)) => argument.short(letter),
                _ => argument.long(name),
            }
        })
    });
    command.args(arguments)
}

fn refuse(
    matches: &ArgMatches,
    usage: &'static str,
    flags: &[&'static [Flag]],
) -> Result<(), clap::Error> {
    for flag in flags.iter().copied().flatten() {
        for (name, given) in flag.spellings() {
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let mut values = matches.get_many::<String>(name).unwrap_or_default().peekable();
            if values.peek().is_some()
                && values.all(|value| (flag.means_nothing_new)(value, matches))
            {
                continue;
            }
            let text = format!("{given} of perftest is not taken: {}", flag.instead);
            // The parser would print the usage of the program without a subcommand.
            let mut command = Command::new("loggap").override_usage(usage);
            return Err(clap::Error::raw(ErrorKind::InvalidValue, text).format(&mut command));
        }
    }
    Ok(())
}

macro_rules! refusing {
    ($name:ident of $usage:literal: $flags:expr) => {
        impl clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                refuse(matches, $usage, $flags).map(|()| Self)
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                refuse(matches, $usage, $flags)
            }
        }

        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                augment(command, $flags)
            }

            fn augment_args_for_update(command: Command) -> Command {
                augment(command, $flags)
            }
        }
    };
}

refusing!(RefusedByLatency of "loggap lat [OPTIONS] [HOST[:PORT]]": &[BOTH, LATENCY]);
refusing!(RefusedByBandwidth of "loggap bw [OPTIONS] [HOST[:PORT]]": &[BOTH, BANDWIDTH]);
refusing!(RefusedByResponder of "loggap serve [OPTIONS]": &[BOTH, RESPONDER]);

#[cfg(test)]
mod tests {
    use super::super::{bw, lat};
    use crate::cli::serve;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Latency {
        #[command(flatten)]
        _args: lat::Args,
    }

    #[derive(Debug, Parser)]
    struct Bandwidth {
        #[command(flatten)]
        _args: bw::Args,
    }

    fn answer<P: Parser>(words: &str) -> String {
        match P::try_parse_from(["test"].into_iter().chain(words.split_whitespace())) {
            Ok(_) => "taken".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[derive(Debug, Parser)]
    struct Responder {
        #[command(flatten)]
        _args: serve::Args,
    }

    /// As perftest 4.5 to 25.01 spell them, but for those with a meaning.
    const OF_BOTH: &str = "-C -f -g -M -H -U -L -O -o -r -R -z -T -u -W -X \
        --report-cycles --margin --mcg --MGID --report-histogram --report-histogrm \
        --report-unsorted --hop_limit --dualport --outs --rx-depth --rdma_cm --comm_rdma_cm \
        --tos --qp-timeout --report-counters --vector --retry_count --pkey_index --dlid \
        --flow_label --use-srq --inline_recv --out_json --out_json_file --output \
        --perform_warm_up --run_infinitely --mmap --mmap-offset --odp --use_cuda \
        --use_cuda_dmabuf --use_cuda_bus_id --use_rocm --use_hl --use_mlu --payload_file_path \
        --dont_xchg_versions --force-link --bind_source_ip --source_ip --ipv6 --ipv6-addr \
        --latency_gap --cpu_util --wait_destroy --disable_pcie_relaxed --use_old_post_send \
        --log_dci_streams --log_active_dci_streams --aes_block_size --aes_xts --connectionless";
    const OF_BANDWIDTH: &str = "-l --post_list --recv_post_list -N --noPeak -w --limit_bw \
        -y --limit_msgrate --rate_limit --rate_units --rate_limit_type --burst_size \
        --typical_pkt_size --mr_per_qp --report-both --report-per-port --reversed";
    const OF_A_RESPONDER: &str = "-a --all -s --size -n --iters -D --duration -b --bidirectional \
        -F --CPU-freq -q --qp -l --post_list -N --noPeak --report_gbits";

    fn each_is_refused<P: Parser>(flags: &[&str], usage: &str) {
        P::command().debug_assert();
        for given in flags.iter().flat_map(|flags| flags.split_whitespace()) {
            for words in [given.to_owned(), format!("{given} 3")] {
                let said = answer::<P>(&words);
                let named = format!("error: {given} of perftest is not taken: ");
                assert!(said.starts_with(&named), "{words}: {said}");
                assert!(said.contains(&format!("Usage: {usage}")), "{words}: {said}");
            }
        }
    }

    #[test]
    fn each_flag_of_perftest_without_a_meaning_is_refused_by_name() {
        each_is_refused::<Latency>(&[OF_BOTH, "-q -b --bidirectional"], "loggap lat [");
        each_is_refused::<Bandwidth>(&[OF_BOTH, OF_BANDWIDTH], "loggap bw [");
        each_is_refused::<Responder>(&[OF_BOTH, OF_A_RESPONDER], "loggap serve [");
        assert!(answer::<Responder>("-s 64").contains("initiator's options hold for both ends"));
        assert!(answer::<Responder>("-q 4").contains("--clients N"));
    }

    #[test]
    fn flags_of_perftest_with_a_meaning_are_taken() {
        let common = [
            "-a",
            "--all",
            "-s 8",
            "--size 8",
            "-n 10",
            "--iters 10",
            "-D 2",
            "--duration 2",
            "-F",
            "--CPU-freq",
            "-J",
            "node7 -p 18515",
            "node7 --port 18515",
        ];
        // Those of the device, as perftest has them.
        let device = [
            "-d rxe0",
            "--ib-dev rxe0",
            "-i 1",
            "--ib-port 1",
            "-x 1",
            "--gid-index 1",
            "-I 64",
            "--inline_size 64",
            "-m 1024",
            "--mtu 1024",
            "-S 1",
            "--sl 1",
            "--tclass 104",
            "-t 64",
            "--tx-depth 64",
            "-Q 8",
            "--cq-mod 8",
            "-e",
            "--events",
            "--use_hugepages",
            "--write_with_imm",
            "-c RC",
            "--connection RC --op write",
            "-c UD --op ud",
            "-c UD",
            "-c ud",
        ];
        for words in common {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in device {
            let words = format!("--transport verbs {words}");
            assert_eq!(answer::<Latency>(&words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(&words), "taken", "bw {words}");
        }
        for words in ["-q 4", "--qp 4", "-b", "--bidirectional", "--report_gbits", "-q 2 -b"] {
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in ["-q 1", "--qp 1", "-w 5", "--warmup 5"] {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
        }
    }

    #[test]
    fn values_that_ask_for_something_else_are_refused() {
        for words in [
            "-c UC",
            "-c UD --op send",
            "-c UD --write_with_imm",
            "-c RC --op ud",
            "-c RC -c UC",
            "-c",
        ] {
            let words = format!("--transport verbs {words}");
            assert!(answer::<Latency>(&words).contains("-c of perftest"), "{words}");
            assert!(answer::<Bandwidth>(&words).contains("-c of perftest"), "{words}");
        }
        assert!(answer::<Bandwidth>("-w 5").contains("-w of perftest"));
    }
}
