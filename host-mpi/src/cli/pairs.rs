//! `loggap-mpi measure --pairs`: a matrix of parameters in one job.

use std::path::PathBuf;

use loggap::cli::measuring::{self, MeasureArgs};
use loggap::cli::{CliError, Console, Exit};
use loggap::machine::clock::HostClock;
use loggap::output::{PendingFile, number};
use loggap::profile::SCHEMA_VERSION;
use loggap_core::measure::Clock;
use serde::{Deserialize, Serialize};

use super::Session;
use super::measure::{DONE, MpiEnds, respond};
use crate::library;
use crate::link::Calls;
use crate::matrix::{self, MatrixDocument, PairRecord, Quantity, SessionValues};
use crate::pairs::{self, Pair, Pairs};

/// Options of a job with more than one pair.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PairsArgs {
    /// Which pairs of ranks to measure, disjoint ones at the same time: all,
    /// random:K (K random partners of each rank), ring, K-to-1 (the first K
    /// others to rank 0, one after the other), 1-to-K. all unless given, with
    /// more than two ranks; random:8 with more than 32.
    #[arg(long, value_name = "WHICH")]
    pairs: Option<Pairs>,
    /// Sessions of each pair, in rounds of random order; medians count.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// Probability to call a node, rank or pair slow where none is.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = loggap::cli::parse::percent)]
    error: u32,
    /// Draw the half round trips of all pairs as a heat map, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    heat_map: Option<PathBuf>,
}

impl PairsArgs {
    /// Whether there is more than one pair to measure.
    pub(super) fn are_many(&self, ranks: i32) -> bool {
        ranks > 2 || self.pairs.is_some()
    }

    fn pairs(&self, ranks: i32) -> Pairs {
        let usual = if ranks <= 32 { Pairs::All } else { Pairs::Random(8) };
        self.pairs.unwrap_or(usual)
    }
}

/// What an initiator reports to rank 0.
#[derive(Debug, Deserialize, Serialize)]
struct Report {
    values: SessionValues,
    error: Option<String>,
}

/// The rank that leads.
const LEADER: i32 = 0;
/// Says to all that a round begins.
const ROUND: &[u8] = b"round";

pub(super) fn run(
    args: (&PairsArgs, &MeasureArgs),
    calls: Calls,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let (asked, measure) = args;
    let job = session.job;
    let rounds = asked.pairs(job.size()).rounds(job.size(), asked.times, measure.seed());
    let rounds = pairs::within_processors(rounds, job.places());
    if job.rank() != LEADER {
        return follow(&rounds, (measure, calls), session, console);
    }
    let files = Files::open(asked, measure)?;
    let clock = HostClock::monotonic_raw();
    let started = clock.now();
    let mut sessions = Vec::new();
    let mut warnings = crowded(session);
    for (number, round) in rounds.iter().enumerate() {
        if session.interrupt.is_requested() {
            warnings.push("interrupted: some pairs are missing".to_owned());
            break;
        }
        if console.is_watched() {
            let (count, all) = (round.len(), rounds.len());
            console.note(format_args!("round {} of {all}: {count} pairs", number + 1));
        }
        others(session).for_each(|rank| job.tell(rank, ROUND));
        let own = take_part(round, (measure, calls), session, console)?;
        for pair in round {
            let report = if pair.initiator == LEADER {
                own.as_ref().map(copied)
            } else {
                heard(session, pair.initiator)
            };
            match report {
                Some(Report { values, error: None }) => sessions.push((*pair, values)),
                Some(Report { error: Some(error), .. }) => {
                    let Pair { initiator, responder } = pair;
                    warnings.push(format!("ranks {initiator} and {responder}: {error}"));
                }
                None => warnings.push(format!("rank {} sent no report", pair.initiator)),
            }
        }
    }
    others(session).for_each(|rank| job.tell(rank, DONE));
    let wall_s = clock.duration(clock.now().saturating_sub(started)).seconds();
    let document = document(asked, measure, (calls, session), (sessions, warnings, wall_s));
    files.write(&document)?;
    print(&document, measure, console)?;
    Ok(if session.interrupt.is_requested() { Exit::Interrupted } else { Exit::Done })
}

/// A warning where ranks share processors.
pub(super) fn crowded(session: &Session<'_>) -> Vec<String> {
    let warn = |host: &str| {
        format!(
            "{host} has more ranks than processors: idle ranks still take time; use fewer ranks"
        )
    };
    session.job.crowded_hosts().into_iter().map(warn).collect()
}

fn copied(report: &Report) -> Report {
    Report { values: report.values, error: report.error.clone() }
}

/// All ranks but the leader.
fn others(session: &Session<'_>) -> impl Iterator<Item = i32> {
    (0..session.job.size()).filter(|rank| *rank != LEADER)
}

fn heard(session: &Session<'_>, rank: i32) -> Option<Report> {
    serde_json::from_slice(&session.job.hear(rank)).ok()
}

/// Takes part in each round that the leader begins.
fn follow(
    rounds: &[Vec<Pair>],
    how: (&MeasureArgs, Calls),
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    for round in rounds {
        if session.job.hear(LEADER) != ROUND {
            return Ok(Exit::Done);
        }
        if let Some(report) = take_part(round, how, session, console)? {
            let report = serde_json::to_vec(&report).unwrap_or_default();
            session.job.tell(LEADER, &report);
        }
    }
    let _done = session.job.hear(LEADER);
    Ok(Exit::Done)
}

/// Measures or answers, where this rank is in a pair of `round`. A report where
/// it has measured.
fn take_part(
    round: &[Pair],
    (measure, calls): (&MeasureArgs, Calls),
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Option<Report>, CliError> {
    let rank = session.job.rank();
    let mine = round.iter().find(|pair| pair.initiator == rank || pair.responder == rank);
    let Some(pair) = mine else { return Ok(None) };
    if pair.responder == rank {
        respond(calls, session, pair.initiator)?;
        return Ok(None);
    }
    let ends = |_| Ok(MpiEnds { session, calls, peer: pair.responder });
    let profile = measuring::profile(measure, ends, session.interrupt, console);
    session.job.tell(pair.responder, DONE);
    Ok(Some(match profile {
        Ok(profile) => Report { values: SessionValues::of(&profile), error: None },
        Err(error) => Report { values: SessionValues::default(), error: Some(error.to_string()) },
    }))
}

/// What was asked for besides standard output.
struct Files {
    document: Option<PendingFile>,
    heat_map: Option<PendingFile>,
}

impl Files {
    fn open(pairs: &PairsArgs, measure: &MeasureArgs) -> Result<Self, CliError> {
        Ok(Self {
            document: measure.output().map(PendingFile::create).transpose()?,
            heat_map: pairs.heat_map.as_ref().map(PendingFile::create).transpose()?,
        })
    }

    fn write(self, document: &MatrixDocument) -> Result<(), CliError> {
        if let Some(file) = self.document {
            file.commit(|out| {
                serde_json::to_writer_pretty(&mut *out, document)?;
                out.write_all(b"\n")
            })?;
        }
        if let Some(file) = self.heat_map {
            let picture = document.heat_map().svg().map_err(CliError::failed)?;
            file.commit(|out| out.write_all(picture.as_bytes()))?;
        }
        Ok(())
    }
}

fn document(
    pairs: &PairsArgs,
    measure: &MeasureArgs,
    (calls, session): (Calls, &Session<'_>),
    (sessions, warnings, wall_s): (Vec<(Pair, SessionValues)>, Vec<String>, f64),
) -> MatrixDocument {
    let job = session.job;
    let error = f64::from(pairs.error) / 1e6;
    let records = matrix::records(&sessions);
    let [smallest_bytes, largest_bytes] =
        sessions.first().map(|(_, values)| values.sizes).unwrap_or_default();
    MatrixDocument {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        seed: measure.seed(),
        transport: "mpi",
        mpi: library::fingerprint(calls, library::route(job, 1)),
        pairs_asked: pairs.pairs(job.size()).to_string(),
        smallest_bytes,
        largest_bytes,
        ranks: job.places().to_vec(),
        slow: matrix::slow(&records, job.places(), error),
        pairs: records,
        error,
        wall_s,
        warnings,
    }
}

/// Prints the document, as JSON or as columns with a summary.
fn print(
    document: &MatrixDocument,
    measure: &MeasureArgs,
    console: &mut Console,
) -> Result<(), CliError> {
    document.warnings.iter().for_each(|warning| console.warn(warning));
    if measure.json() {
        return Ok(console.json(document)?);
    }
    let mut text = format!(
        "# {}, {} ranks, pairs: {}\n# RTT/2 of {}, g of {}; medians of the sessions of a pair\n",
        document.mpi.version,
        document.ranks.len(),
        document.pairs_asked,
        number::size(document.smallest_bytes),
        number::size(document.largest_bytes),
    );
    text += "#low_rank high_rank sessions RTT/2[us] o_s[us] o_r[us] g[us] hosts\n";
    for record in &document.pairs {
        text += &row(record, document);
    }
    text += &summary(document);
    Ok(console.data().write_all(text.as_bytes())?)
}

fn row(record: &PairRecord, document: &MatrixDocument) -> String {
    let micros = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.3}", seconds * 1e6))
    };
    let host = |rank: i32| {
        let place = usize::try_from(rank).ok().and_then(|rank| document.ranks.get(rank));
        place.map_or("?", |place| &place.host)
    };
    let PairRecord { low_rank, high_rank, sessions, .. } = record;
    let [half, sends, receives, gap] =
        [record.half_rtt_s, record.send_overhead_s, record.recv_overhead_s, record.gap_s]
            .map(micros);
    let hosts = format!("{},{}", host(*low_rank), host(*high_rank));
    format!(
        "{low_rank:>9} {high_rank:>9} {sessions:>8} {half:>9} {sends:>7} {receives:>7} {gap:>5} {hosts}\n"
    )
}

/// The spread of all pairs, and who is slow.
fn summary(document: &MatrixDocument) -> String {
    let mut text = String::new();
    for quantity in Quantity::ALL {
        let values = || document.pairs.iter().filter_map(|record| quantity.of(record));
        let (least, most) = (values().reduce(f64::min), values().reduce(f64::max));
        if let (Some(least), Some(most)) = (least, most) {
            let [least, most] = [least, most].map(|value| number::in_units(value, number::TIME));
            text += &format!("# {}: {least} to {most}\n", quantity.name());
        }
    }
    for slow in &document.slow {
        text += &format!(
            "# slow: {} {}, {} times as long ({}), at least {} times\n",
            slow.kind,
            slow.name,
            number::significant(slow.factor),
            slow.quantity,
            number::significant(slow.factor_lo),
        );
    }
    if document.slow.is_empty() {
        let percent = document.error * 100.0;
        text += &format!("# nobody is slow (wrong in {percent}% where somebody would be named)\n");
    }
    text
}
