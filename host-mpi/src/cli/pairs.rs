//! `loggap-mpi measure --pairs`: a matrix of parameters from one job.

use std::path::PathBuf;
use std::time::Duration;

use loggap::flags::measuring::MeasureArgs;
use loggap::machine::clock::HostClock;
use loggap::output::{PendingFile, Versioned, number};
use loggap::terminal::{CliError, Console, Exit, command_line};
use loggap_core::measure::Clock;

use super::measure::{Args, DONE, MpiEnds, respond};
use super::{Session, create};
use crate::job::{CONTROLLER, Sharing};
use crate::library;
use crate::matrix::{self, MatrixDocument, PairRecord, Quantity, SessionValues};
use crate::pairs::{self, Pair, Pairs, Round};
use crate::slower::LEAST_ENDS;

/// Options of a job with more than one pair.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PairsArgs {
    /// Pairs of ranks to measure, disjoint ones at the same time: all, random:K
    /// (K random partners of each rank), ring, to-first:K (the first K others
    /// to rank 0, one pair after the other), from-first:K. Unless given, all
    /// with more than two ranks, and random:8 with more than 32.
    #[arg(long, value_name = "WHICH")]
    pairs: Option<Pairs>,
    /// Sessions of each pair, in rounds of random order; medians count. 3 unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: Option<u32>,
    /// Measure one link, of rank 0 to the first rank on another machine, or else to
    /// rank 1, as a job of two ranks does; the others sleep.
    #[arg(long, conflicts_with_all = ["pairs", "times", "heat_map"])]
    pub(super) one_link: bool,
    /// Probability of calling a machine, rank or pair slow when none is.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = loggap::flags::parse::percent)]
    error: u32,
    /// Draw the half round trips of all pairs as a heat map, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    heat_map: Option<PathBuf>,
}

impl PairsArgs {
    /// True if there is more than one pair to measure.
    pub(super) fn are_many(&self, ranks: i32) -> bool {
        !self.one_link && (ranks > 2 || self.pairs.is_some())
    }

    /// Given option that a single pair cannot use.
    pub(super) const fn useless_for_one(&self) -> Option<&'static str> {
        match (&self.heat_map, self.times) {
            (Some(_), _) => Some("--heat-map"),
            (_, Some(_)) => Some("--times"),
            _ => None,
        }
    }

    fn pairs(&self, ranks: i32) -> Pairs {
        let usual = if ranks <= 32 { Pairs::All } else { Pairs::Random(8) };
        self.pairs.unwrap_or(usual)
    }
}

/// Report of an initiator to the controller: values, or the reason why there are none.
type Report = Result<SessionValues, String>;

/// Default number of sessions of each pair.
const TIMES: u32 = 3;
/// Announces a round to all ranks.
const ROUND: &[u8] = b"round";

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let Args { pairs: asked, measure, .. } = args;
    let job = session.job;
    let rounds =
        asked.pairs(job.size()).rounds(job.size(), asked.times.unwrap_or(TIMES), measure.seed());
    let rounds = pairs::within_processors(rounds, job.places());
    let files = job.leads().then(|| Files::open(args)).transpose();
    let Some(files) = session.agreed(files)? else {
        return follow(args, &rounds, session, console);
    };
    let clock = HostClock::monotonic_raw();
    let started = clock.now();
    let mut progress = Progress::begin(&rounds, measure, console);
    let mut sessions = Vec::new();
    let mut warnings = job.sharing().warnings();
    let mut incomplete = None;
    for (number, round) in rounds.iter().enumerate() {
        let elapsed_s = clock.duration(clock.now().saturating_sub(started)).seconds();
        progress.say(number, elapsed_s, console);
        job.others().for_each(|rank| job.tell(rank, ROUND));
        let own = take_part(args, round, session, console)?;
        let reports = round.iter().map(|pair| match &own {
            Some(own) if pair.initiator == CONTROLLER => own.clone(),
            _ => heard(session, measure, pair.initiator),
        });
        let reports: Vec<Report> = reports.collect();
        let is_interrupted = session.interrupt.is_requested();
        for (Pair { initiator, responder }, report) in round.iter().zip(reports) {
            match report {
                Ok(values) => sessions.push(values),
                // An interruption is reported once.
                Err(_) if is_interrupted => {}
                Err(error) => {
                    warnings.push(format!("ranks {initiator} and {responder}: {error}"));
                }
            }
        }
        if is_interrupted {
            let all = rounds.len();
            incomplete = Some(format!("interrupted in round {} of {all}", number + 1));
            break;
        }
    }
    job.others().for_each(|rank| job.tell(rank, DONE));
    let wall_s = clock.duration(clock.now().saturating_sub(started)).seconds();
    let outcome = Outcome { sessions, warnings, incomplete, wall_s };
    let document = document(args, session, outcome);
    print(args, &document, console)?;
    files.write(&document)?;
    Ok(if document.incomplete.is_some() { Exit::Interrupted } else { Exit::Done })
}

/// Progress of the rounds, and an estimate of the time left.
struct Progress {
    rounds: usize,
    /// Planned duration of a round in seconds, until the first one has been measured.
    planned_s: f64,
    /// Time of the last message, in seconds from the start.
    said_s: f64,
}

impl Progress {
    fn begin(rounds: &[Round], measure: &MeasureArgs, console: &mut Console) -> Self {
        /// Time of a round besides measuring, in seconds.
        const AROUND_S: f64 = 0.1;
        let planned_s = measure.time_of_one_of_many().as_secs_f64() + AROUND_S;
        let progress = Self { rounds: rounds.len(), planned_s, said_s: 0.0 };
        let sessions: usize = rounds.iter().map(Vec::len).sum();
        console.note(format_args!(
            "{sessions} sessions of pairs in {} rounds, about {}; --times 2 takes less",
            rounds.len(),
            progress.left(0, 0.0)
        ));
        progress
    }

    /// Prints the progress before a round; once a minute if standard error is
    /// no terminal.
    fn say(&mut self, done: usize, elapsed_s: f64, console: &mut Console) {
        const SELDOM_S: f64 = 60.0;
        if console.is_watched() || elapsed_s - self.said_s >= SELDOM_S {
            self.said_s = elapsed_s;
            let left = self.left(done, elapsed_s);
            console.note(format_args!("round {} of {}, about {left} left", done + 1, self.rounds));
        }
    }

    /// Estimated time for the rounds after the first `done`, which took `elapsed_s`.
    fn left(&self, done: usize, elapsed_s: f64) -> String {
        const MINUTE_S: f64 = 60.0;
        let round_s = if done > 0 { elapsed_s / done as f64 } else { self.planned_s };
        let left_s = round_s * (self.rounds - done.min(self.rounds)) as f64;
        if left_s < 2.0 * MINUTE_S {
            format!("{left_s:.0} s")
        } else {
            format!("{:.0} min", left_s / MINUTE_S)
        }
    }
}

/// Results of all rounds.
struct Outcome {
    sessions: Vec<SessionValues>,
    warnings: Vec<String>,
    incomplete: Option<String>,
    wall_s: f64,
}

/// Time limit of a round, beyond waits for other ranks: twice the time to
/// measure, and what a session needs before and after that.
fn longest_round(measure: &MeasureArgs) -> Duration {
    const AROUND: Duration = Duration::from_secs(1);
    2 * measure.time_of_one_of_many() + AROUND
}

fn heard(session: &Session<'_>, measure: &MeasureArgs, rank: i32) -> Report {
    let message = session.job.hear_after(longest_round(measure), rank);
    serde_json::from_slice(&message)
        .unwrap_or_else(|error| Err(format!("rank {rank} sent no report: {error}")))
}

/// Takes part in the rounds until the controller ends them.
fn follow(
    args: &Args,
    rounds: &[Round],
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let next = || session.job.hear_after(longest_round(&args.measure), CONTROLLER);
    for round in rounds {
        if next() != ROUND {
            return Ok(Exit::Done);
        }
        if let Some(report) = take_part(args, round, session, console)? {
            let report = serde_json::to_vec(&report).unwrap_or_default();
            session.job.tell(CONTROLLER, &report);
        }
    }
    let _done = next();
    Ok(Exit::Done)
}

/// Measures or responds if this rank is in a pair of `round`; a report if it
/// has measured.
fn take_part(
    args: &Args,
    round: &[Pair],
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Option<Report>, CliError> {
    let (measure, calls) = (&args.measure, args.calls());
    let rank = session.job.rank();
    let mine = round.iter().find(|pair| pair.initiator == rank || pair.responder == rank);
    let Some(pair) = mine else { return Ok(None) };
    if pair.responder == rank {
        respond(calls, measure.longest_message(), session, pair.initiator)?;
        return Ok(None);
    }
    let ends = MpiEnds { session, calls, peer: pair.responder };
    let options = measure.options();
    let profile = options.and_then(|options| options.profile(ends, session.interrupt, console));
    session.job.tell(pair.responder, DONE);
    let report = profile.map(|profile| SessionValues::of(*pair, &profile));
    Ok(Some(report.map_err(|error| error.to_string())))
}

/// Output files besides standard output.
struct Files {
    document: Option<PendingFile>,
    heat_map: Option<PendingFile>,
}

impl Files {
    fn open(args: &Args) -> Result<Self, CliError> {
        let document = args.measure.output().map(PendingFile::create).transpose()?;
        Ok(Self { document, heat_map: create(args.pairs.heat_map.as_ref())? })
    }

    fn write(self, document: &MatrixDocument) -> Result<(), CliError> {
        if let Some(file) = self.document {
            file.commit_json(&Versioned::new(document))?;
        }
        if let Some(file) = self.heat_map {
            let picture = document.heat_map().svg().map_err(CliError::failed)?;
            file.commit(|out| out.write_all(picture.as_bytes()))?;
        }
        Ok(())
    }
}

fn document(args: &Args, session: &Session<'_>, outcome: Outcome) -> MatrixDocument {
    let pairs = &args.pairs;
    let Outcome { sessions, warnings, incomplete, wall_s } = outcome;
    let job = session.job;
    let error = f64::from(pairs.error) / 1e6;
    let records = matrix::records(&sessions);
    let [smallest_bytes, largest_bytes] =
        sessions.first().map(|values| values.sizes).unwrap_or_default();
    MatrixDocument {
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        seed: args.measure.seed(),
        transport: "mpi",
        mpi: library::fingerprint(args.calls(), library::route(job, 1)),
        pairs_asked: pairs.pairs(job.size()).to_string(),
        smallest_bytes,
        largest_bytes,
        ranks: job.places().to_vec(),
        slow: matrix::slow(&sessions, job.places(), error),
        pairs: records,
        error,
        wall_s,
        incomplete,
        warnings,
    }
}

/// Prints warnings, and the document in the requested format.
fn print(args: &Args, document: &MatrixDocument, console: &mut Console) -> Result<(), CliError> {
    document.warnings.iter().for_each(|warning| console.warn(warning));
    Ok(console
        .report(args.measure.json(), document, |out| out.write_all(text(document).as_bytes()))?)
}

/// Columns of the document, and a summary.
fn text(document: &MatrixDocument) -> String {
    let alignment = document.mpi.alignment.unwrap_or_default();
    let mut text = format!(
        "# {}, {} ranks, pairs: {}, {alignment}\n\
         # RTT/2 of {}, g of {}; medians of the sessions of a pair\n",
        document.mpi.version,
        document.ranks.len(),
        document.pairs_asked,
        number::size(document.smallest_bytes),
        number::size(document.largest_bytes),
    );
    if let Some(why) = &document.incomplete {
        text += &format!("# INCOMPLETE: {why}\n");
    }
    text += "#low_rank high_rank sessions RTT/2[us] o_s[us] o_r[us] g[us] hosts\n";
    for record in &document.pairs {
        text += &row(record, document);
    }
    text + &summary(document)
}

fn row(record: &PairRecord, document: &MatrixDocument) -> String {
    let host = |rank: i32| {
        let place = usize::try_from(rank).ok().and_then(|rank| document.ranks.get(rank));
        place.map_or("?", |place| &place.host)
    };
    let PairRecord { low_rank, high_rank, sessions, values } = record;
    let [half, sends, receives, gap] =
        [values.half_rtt_s, values.send_overhead_s, values.recv_overhead_s, values.gap_s]
            .map(number::micros);
    let hosts = format!("{},{}", host(*low_rank), host(*high_rank));
    format!(
        "{low_rank:>9} {high_rank:>9} {sessions:>8} {half:>9} {sends:>7} {receives:>7} {gap:>5} {hosts}\n"
    )
}

/// Range over all pairs, and the slow machines, ranks and pairs.
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
        text += &format!("# {}\n", nobody(document));
    }
    text
}

/// Reason why no machine, rank or pair is called slow.
fn nobody(document: &MatrixDocument) -> String {
    let percent = document.error * 100.0;
    if document.ranks.len() < LEAST_ENDS {
        format!("who is slow cannot be told of fewer than {LEAST_ENDS} ranks")
    } else if Sharing::of(&document.ranks).is_shared() {
        "nobody stands out, which says little: ranks share processors".to_owned()
    } else if document.pairs.iter().all(|record| record.sessions < 2) {
        "who is slow shows in two sessions of each pair at least: --times 2".to_owned()
    } else {
        format!("no machine, rank or pair stands out by 10% or more (false alarms: {percent}%)")
    }
}
