//! The five mistakes in measuring collective operations (Hoefler, Schneider,
//! Lumsdaine 2008), each beside the synchronised result.

use std::io::{self, Write};

use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

use super::report::SCHEMA_VERSION;
use super::taking::{estimate, exits_of};
use super::{Args, Bench, CliError, Console, Exit, LEADER, Session, plan};
use crate::collective::course::Measured;
use crate::collective::operation::{Cell, Collective, Operation};
use crate::collective::piece::Piece;
use crate::collective::run::CollectiveError;
use crate::collective::scheme::SchemeName;

/// A wrong result beside the right one.
#[derive(Debug, Serialize)]
struct Mistake {
    mistake: &'static str,
    op: String,
    size_bytes: u64,
    wrong_s: f64,
    right_s: f64,
    /// Ratio of wrong to right.
    factor: Option<f64>,
    why: String,
}

#[derive(Debug, Serialize)]
struct Document {
    schema_version: u32,
    loggap_version: &'static str,
    library: String,
    ranks: usize,
    oversubscribed: bool,
    mistakes: Vec<Mistake>,
}

/// A series by one scheme, and its time without that of the start.
struct Found {
    measured: Measured,
    time: Estimate<Picos>,
}

/// Measures by any scheme; all ranks call it together.
struct Laboratory<'a> {
    args: &'a Args,
    session: &'a Session<'a>,
}

impl Laboratory<'_> {
    /// `Some` at the leader, if any repetition counted.
    fn series(&self, scheme: SchemeName, cell: Cell) -> Result<Option<Found>, CollectiveError> {
        let plan = plan(self.args, self.session, scheme);
        let session = self.session;
        let mut bench = Bench::new((session.job, session.watch), session.interrupt, &plan);
        let nothing = bench.piece(Piece::Nothing, cell.bytes())?;
        let measured = bench.measure(cell)?;
        let found = nothing.zip(measured).and_then(|(nothing, measured)| {
            // A loop has one start for all its repetitions.
            let start = nothing.median.unwrap_or_default();
            let time = estimate(&measured, start)?;
            Some(Found { measured, time })
        });
        Ok(found)
    }
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    session.interrupt.listen();
    let found = mistakes(&Laboratory { args, session }, args).map_err(CliError::failed)?;
    if session.job.rank() != LEADER {
        return Ok(Exit::Done);
    }
    let Some(mistakes) = found else {
        return Err(CliError::failed(
            "a series has no repetition that counts; give more with --max-time",
        ));
    };
    let oversubscribed = session.job.sharing().is_shared();
    let document = Document {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION"),
        library: crate::library::version(),
        ranks: session.job.places().len(),
        oversubscribed,
        mistakes,
    };
    if args.json {
        console.json(&document)?
    } else {
        table(console.data(), &document)?
    }
    let interrupted = session.interrupt.is_requested();
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}

/// All five mistakes; `None` except at the leader.
fn mistakes(
    laboratory: &Laboratory<'_>,
    args: &Args,
) -> Result<Option<Vec<Mistake>>, CollectiveError> {
    let cell = |collective, elements| Cell {
        operation: Operation { collective, immediate: false },
        elements,
    };
    let small = cell(Collective::Bcast, args.sizes.first());
    let gather = cell(Collective::Gather, args.sizes.first());
    let large = cell(Collective::Alltoall, args.sizes.last());
    let right = laboratory.series(SchemeName::Roundtime, small)?;
    let looped = laboratory.series(SchemeName::Loop, small)?;
    let after_barrier = laboratory.series(SchemeName::Barrier, gather)?;
    let gather_right = laboratory.series(SchemeName::Roundtime, gather)?;
    let at_once = laboratory.series(SchemeName::Announced, small)?;
    let back_to_back = laboratory.series(SchemeName::Loop, large)?;
    let spaced = laboratory.series(SchemeName::Roundtime, large)?;
    let pairs = || {
        let right = right?;
        Some(vec![
            merging(small, &right)?,
            pipelining(small, (&looped?, &right)),
            skew(gather, (&after_barrier?, &gather_right?)),
            perturbation(small, (&at_once?, &right)),
            congestion(large, (&back_to_back?, &spaced?)),
        ])
    };
    Ok(pairs())
}

fn mistake(
    (mistake, cell): (&'static str, Cell),
    (wrong, right): (Picos, Picos),
    why: String,
) -> Mistake {
    let (wrong_s, right_s) = (wrong.seconds(), right.seconds());
    Mistake {
        mistake,
        op: cell.operation.to_string(),
        size_bytes: cell.bytes(),
        wrong_s,
        right_s,
        factor: (right_s > 0.0).then(|| wrong_s / right_s),
        why,
    }
}

fn micros(time: Picos) -> String {
    format!("{:.3} us", time.seconds() * 1e6)
}

/// The root's own exit instead of the last one.
fn merging(cell: Cell, right: &Found) -> Option<Mistake> {
    // The exit of every rank includes the duration of the start.
    let start = right.measured.median?.since(right.time.value);
    let root = exits_of(&right.measured, LEADER).median()?.since(start);
    let mean = right.measured.ranks.map(|ranks| ranks.average.since(start));
    let mean =
        mean.map_or_else(String::new, |mean| format!("; the mean over ranks is {}", micros(mean)));
    let why = format!("the root leaves when its messages have, not when they are there{mean}");
    Some(mistake(("merging results of ranks", cell), (root, right.time.value), why))
}

fn pipelining(cell: Cell, (wrong, right): (&Found, &Found)) -> Mistake {
    let why = "a loop divided by its count: the root sends the next before the last has arrived; \
               this is a rate"
        .to_owned();
    mistake(("pipelining", cell), (wrong.time.value, right.time.value), why)
}

fn skew(cell: Cell, (wrong, right): (&Found, &Found)) -> Mistake {
    let apart = |found: &Found| found.measured.skew.map_or(Picos::ZERO, |(median, _)| median);
    let why = format!(
        "after a barrier ranks start {} apart and each is timed from its own start; by the clock \
         {} apart",
        micros(apart(wrong)),
        micros(apart(right))
    );
    mistake(("process skew", cell), (wrong.time.value, right.time.value), why)
}

fn perturbation(cell: Cell, (wrong, right): (&Found, &Found)) -> Mistake {
    let apart = wrong.measured.skew.map_or(Picos::ZERO, |(median, _)| median);
    let why = format!(
        "started right after the announcement, whose messages are still under way: ranks start {} \
         apart; with a lead the network is quiet",
        micros(apart)
    );
    mistake(("synchronisation perturbation", cell), (wrong.time.value, right.time.value), why)
}

/// Least relative difference between times that differ.
const CLEAR: f64 = 0.05;

fn congestion(cell: Cell, (wrong, right): (&Found, &Found)) -> Mistake {
    let (wrong_s, right_s) = (wrong.time.value.seconds(), right.time.value.seconds());
    let why = if wrong_s > right_s * (1.0 + CLEAR) {
        "back to back, the messages of one repetition meet those of the next; spaced, each finds \
         an idle network"
    } else if wrong_s < right_s * (1.0 - CLEAR) {
        "back to back, repetitions overlap, which hides what their messages do to each other"
    } else {
        "back to back as quick as spaced: these few ranks do not congest this network"
    };
    let why = why.to_owned();
    mistake(("congestion", cell), (wrong.time.value, right.time.value), why)
}

fn table(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { library, ranks, loggap_version, .. } = document;
    writeln!(out, "# loggap-mpi {loggap_version} check --demonstrate, {library}, {ranks} ranks")?;
    if document.oversubscribed {
        writeln!(out, "# ranks share processors: factors are those of the scheduler")?;
    }
    writeln!(
        out,
        "# right: median from a common start by the clock to the last exit, less the start itself"
    )?;
    writeln!(
        out,
        "#{:<28} {:<10} {:>8} {:>10} {:>10} {:>7}  why",
        "mistake", "op", "size[B]", "wrong[us]", "right[us]", "factor"
    )?;
    for row in &document.mistakes {
        writeln!(
            out,
            "{:<29} {:<10} {:>8} {:>10.3} {:>10.3} {:>7}  {}",
            row.mistake,
            row.op,
            row.size_bytes,
            row.wrong_s * 1e6,
            row.right_s * 1e6,
            row.factor.map_or("-".to_owned(), |factor| format!("{factor:.2}")),
            row.why
        )?;
    }
    Ok(())
}
