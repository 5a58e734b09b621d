//! The five mistakes in measuring collective operations (Hoefler, Schneider,
//! Lumsdaine 2008), each beside the synchronised result.

use std::io::{self, Write};

use loggap::output::number;
use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

use super::taking::{estimate, root_exit};
use super::{Args, Bench, CliError, Console, Exit, Session, plan};
use crate::collective::operation::{Cell, Collective, Operation};
use crate::collective::piece::Piece;
use crate::collective::run::CollectiveError;
use crate::collective::scheme::SchemeName;
use crate::collective::series::Measured;

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
    loggap_version: &'static str,
    library: String,
    ranks: usize,
    oversubscribed: bool,
    mistakes: Vec<Mistake>,
}

/// A series by one scheme, and its time without that of the start.
struct Found {
    cell: Cell,
    measured: Measured,
    time: Estimate<Picos>,
}

/// Measures by any scheme; all ranks call it together. `Some` at the leader, if
/// any repetition counted.
fn series(
    args: &Args,
    session: &Session<'_>,
    scheme: SchemeName,
    cell: Cell,
) -> Result<Option<Found>, CollectiveError> {
    let plan = plan(args, session, scheme);
    let mut bench = Bench::new(session.job, session.interrupt, &plan);
    let nothing = bench.piece(Piece::Nothing, cell.bytes())?;
    let measured = bench.measure(cell)?;
    Ok(nothing.zip(measured).and_then(|(nothing, measured)| {
        // A loop has one start for all its repetitions.
        let time = estimate(&measured, nothing.median.unwrap_or_default())?;
        Some(Found { cell, measured, time })
    }))
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    session.interrupt.listen();
    let found = mistakes(args, session).map_err(CliError::failed)?;
    if !session.job.leads() {
        return Ok(Exit::Done);
    }
    let Some(mistakes) = found else {
        return Err(CliError::failed(
            "a series has no repetition that counts; give more with --max-time",
        ));
    };
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        library: crate::library::version(),
        ranks: session.job.places().len(),
        oversubscribed: session.job.sharing().is_shared(),
        mistakes,
    };
    console.report(args.json, &document, |out| table(out, &document))?;
    let interrupted = session.interrupt.is_requested();
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}

/// All five mistakes; `None` except at the leader.
fn mistakes(args: &Args, session: &Session<'_>) -> Result<Option<Vec<Mistake>>, CollectiveError> {
    let cell = |collective, elements| Cell {
        operation: Operation { collective, immediate: false },
        elements,
    };
    let series = |scheme, cell| series(args, session, scheme, cell);
    let small = cell(Collective::Bcast, args.sizes.first());
    let gather = cell(Collective::Gather, args.sizes.first());
    let large = cell(Collective::Alltoall, args.sizes.last());
    let right = series(SchemeName::Roundtime, small)?;
    let looped = series(SchemeName::Loop, small)?;
    let after_barrier = series(SchemeName::Barrier, gather)?;
    let gather_right = series(SchemeName::Roundtime, gather)?;
    let at_once = series(SchemeName::Announced, small)?;
    let back_to_back = series(SchemeName::Loop, large)?;
    let spaced = series(SchemeName::Roundtime, large)?;
    let pairs = || {
        let right = right?;
        Some(vec![
            merging(&right)?,
            pipelining(&looped?, &right),
            skew(&after_barrier?, &gather_right?),
            perturbation(&at_once?, &right),
            congestion(&back_to_back?, &spaced?),
        ])
    };
    Ok(pairs())
}

impl Mistake {
    fn new(mistake: &'static str, wrong: Picos, right: &Found, why: String) -> Self {
        let (wrong_s, right_s) = (wrong.seconds(), right.time.value.seconds());
        Self {
            mistake,
            op: right.cell.operation.to_string(),
            size_bytes: right.cell.bytes(),
            wrong_s,
            right_s,
            factor: (right_s > 0.0).then(|| wrong_s / right_s),
            why,
        }
    }
}

fn micros(time: Picos) -> String {
    format!("{:.3} us", time.seconds() * 1e6)
}

/// The root's own exit instead of the last one.
fn merging(right: &Found) -> Option<Mistake> {
    // The exit of every rank includes the duration of the start.
    let start = right.measured.median?.since(right.time.value);
    let root = root_exit(&right.measured)?.since(start);
    let mean = right.measured.ranks.map(|ranks| ranks.average.since(start));
    let mean =
        mean.map_or_else(String::new, |mean| format!("; the mean over ranks is {}", micros(mean)));
    let why = format!("the root leaves when its messages have, not when they are there{mean}");
    Some(Mistake::new("merging results of ranks", root, right, why))
}

fn pipelining(wrong: &Found, right: &Found) -> Mistake {
    let why = "a loop divided by its count: the root sends the next before the last has arrived; \
               this is a rate"
        .to_owned();
    Mistake::new("pipelining", wrong.time.value, right, why)
}

/// Median skew of the starts.
fn apart(found: &Found) -> String {
    micros(found.measured.skew.map_or(Picos::ZERO, |(median, _)| median))
}

fn skew(wrong: &Found, right: &Found) -> Mistake {
    let why = format!(
        "after a barrier ranks start {} apart and each is timed from its own start; by the clock \
         {} apart",
        apart(wrong),
        apart(right)
    );
    Mistake::new("process skew", wrong.time.value, right, why)
}

fn perturbation(wrong: &Found, right: &Found) -> Mistake {
    let why = format!(
        "started right after the announcement, whose messages are still under way: ranks start {} \
         apart; with a lead the network is quiet",
        apart(wrong)
    );
    Mistake::new("synchronisation perturbation", wrong.time.value, right, why)
}

fn congestion(wrong: &Found, right: &Found) -> Mistake {
    /// Least relative difference between times that differ.
    const CLEAR: f64 = 0.05;
    let (wrong_s, right_s) = (wrong.time.value.seconds(), right.time.value.seconds());
    let why = if wrong_s > right_s * (1.0 + CLEAR) {
        "back to back, the messages of one repetition meet those of the next; spaced, each finds \
         an idle network"
    } else if wrong_s < right_s * (1.0 - CLEAR) {
        "back to back, repetitions overlap, which hides what their messages do to each other"
    } else {
        "back to back as quick as spaced: these few ranks do not congest this network"
    };
    Mistake::new("congestion", wrong.time.value, right, why.to_owned())
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
        "#mistake                      op          size[B]  wrong[us]  right[us]  factor  why"
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
            number::decimal(row.factor, 2),
            row.why
        )?;
    }
    Ok(())
}
