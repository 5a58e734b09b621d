//! Tests with the columns and options of perftest, on any transport.

pub(super) mod bw;
pub(super) mod lat;

use std::io::{self, Write};

use serde::Serialize;

use super::measure::EndArgs;
use crate::drive::EndOptions;
use crate::drive::perftest::{self, SizeTest, TestSizes, Tested};
use crate::flags::parse::{self, Sizes};
use crate::link::{LinkFingerprint, VerbsRecord};
use crate::output::Versioned;
use crate::terminal::{CliError, Console};

/// Options shared by both tests.
#[derive(Clone, Debug, clap::Args)]
struct TestArgs {
    #[command(flatten)]
    ends: EndArgs,
    /// Message sizes: 8, 1,64,4K, 1:64K or @FILE.
    #[arg(short, long = "size", value_name = "BYTES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// All powers of two from 2 B to 8 MiB.
    ///
    /// With --op ud up to the MTU, with -b up to what fits both ways.
    #[arg(short, long, conflicts_with = "sizes")]
    all: bool,
    /// Accepted for compatibility, ignored.
    #[arg(short = 'F', long = "CPU-freq")]
    force: bool,
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Exponents of the sizes of `-a`.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

impl TestArgs {
    /// Sizes to measure: `usual` unless given.
    fn sizes(&self, usual: u32) -> TestSizes {
        match &self.sizes {
            _ if self.all => TestSizes::All(ALL.map(|power| 1 << power).collect()),
            None => TestSizes::Usual(usual),
            // At most 1 GiB by the parser.
            Some(sizes) => TestSizes::Listed(
                sizes.list().into_iter().filter_map(|size| u32::try_from(size).ok()).collect(),
            ),
        }
    }
}

/// Presentation of a test.
trait Columns<R> {
    const COMMAND: &'static str;

    /// Meaning of the values.
    fn quantity(&self) -> &str;

    /// Writes the text before the first row.
    fn head(&self, out: &mut dyn Write) -> io::Result<()>;

    fn row(&self, out: &mut dyn Write, row: &R) -> io::Result<()>;
}

/// Measures each size. Prints each result at once, or all as one document, also if the test fails
/// after some of them.
fn run_test<T: SizeTest<Row: Serialize>, C: Columns<T::Row>>(
    test: &T,
    columns: &C,
    args: &TestArgs,
    ends: Result<EndOptions, CliError>,
    sizes: &TestSizes,
    console: &mut Console,
) -> Result<Tested<T::Row>, CliError> {
    let mut before = None;
    let mut show = |link: &LinkFingerprint, row: &T::Row, console: &mut Console| {
        if args.json {
            return Ok(());
        }
        let places = link.verbs.as_ref().map(places);
        let out = console.data();
        match (&before, &places) {
            (None, _) => {
                remarks(out, link)?;
                columns.head(out)?;
            }
            (Some(before), Some(new)) if *before != places => {
                writeln!(out, "# {new} from here on")?;
            }
            _ => {}
        }
        before = Some(places);
        columns.row(out, row)?;
        Ok(console.flush()?)
    };
    let tested = match ends {
        Ok(ends) => perftest::run(test, ends, sizes, console, &mut show)?,
        Err(error) => Tested::failed(error),
    };
    if args.json {
        console.json(&Versioned::new(&Document {
            loggap_version: env!("CARGO_PKG_VERSION"),
            command: C::COMMAND,
            quantity: columns.quantity(),
            connections: test.connections(),
            link: tested.link.as_ref(),
            complete: tested.outcome.is_ok() && !tested.is_stopped,
            error: tested.outcome.as_ref().err().map(ToString::to_string),
            results: &tested.results,
        }))?;
        console.flush()?;
    } else if tested.is_stopped {
        writeln!(console.data(), "# stopped")?;
    }
    Ok(tested)
}

/// JSON document of a test.
#[derive(Serialize)]
struct Document<'t, R> {
    loggap_version: &'static str,
    command: &'static str,
    /// Meaning of the times.
    quantity: &'t str,
    /// Number of concurrent connections.
    connections: u32,
    /// `None` if no link could be opened.
    link: Option<&'t LinkFingerprint>,
    /// True if all sizes were measured completely.
    complete: bool,
    /// Error, if one ended the test.
    error: Option<String>,
    results: &'t [R],
}

/// Writes the properties of the link as comments above the columns.
fn remarks(out: &mut dyn Write, link: &LinkFingerprint) -> io::Result<()> {
    writeln!(out, "# {} to {}, {}", link.transport, link.peer, link.waiting)?;
    if let Some(verbs) = &link.verbs {
        let (here, there) = (&verbs.here, &verbs.there);
        writeln!(
            out,
            "# {} from {} port {} to {} port {}, {}, MTU {}, inline {} B, {}",
            verbs.operation,
            here.device,
            here.port,
            there.device,
            there.port,
            here.link_layer,
            verbs.mtu_bytes,
            verbs.inline_bytes,
            places(verbs)
        )?;
    }
    Ok(())
}

/// Numbers of messages in flight and of signalled completions, in words.
fn places(verbs: &VerbsRecord) -> String {
    format!("signal every {}, depth {}", verbs.signal_every, verbs.depth)
}

#[cfg(test)]
mod tests {
    use super::{bw, lat};
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

    #[test]
    fn flags_of_perftest_with_a_meaning_are_taken() {
        let common = "-a, --all, -s 8, --size 8, -n 10, --iters 10, -D 2, --duration 2, -F, \
            --CPU-freq, -J, node7 -p 18515, node7 --port 18515";
        // Device options with perftest's names.
        let device = "-d rxe0, --ib-dev rxe0, -i 1, --ib-port 1, -x 1, --gid-index 1, -I 64, \
            --inline_size 64, -m 1024, --mtu 1024, -S 1, --sl 1, --tclass 104, -t 64, \
            --tx-depth 64, -Q 8, --cq-mod 8, -e, --events, --use_hugepages, \
            --write_with_imm";
        for words in common.split(", ") {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in device.split(", ") {
            let words = format!("--transport verbs {words}");
            assert_eq!(answer::<Latency>(&words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(&words), "taken", "bw {words}");
        }
        for words in ["-q 4", "--qp 4", "-b", "--bidirectional", "--report_gbits", "-q 2 -b"] {
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in ["-w 5", "--warmup 5"] {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
        }
    }
}
