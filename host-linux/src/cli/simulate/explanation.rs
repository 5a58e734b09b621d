//! The critical path as text and JSON.

use std::io::{self, Write};

use loggap_core::units::Picos;
use serde::Serialize;

use crate::cli::CliError;
use crate::timeline::causes::Causes;
use crate::timeline::explain::{Step, StepKind, Term, explain};

/// Steps that the text lists; JSON lists all.
const SHOWN: usize = 40;

/// Why the makespan is what it is.
#[derive(Serialize)]
pub(super) struct Explanation {
    last_rank: u32,
    terms: Terms,
    steps: Vec<StepDocument>,
}

#[derive(Serialize)]
struct Terms {
    latency: TermDocument,
    overhead: TermDocument,
    overhead_bytes: TermDocument,
    gap: TermDocument,
    gap_bytes: TermDocument,
    calc: TermDocument,
    noise: TermDocument,
}

#[derive(Serialize)]
struct TermDocument {
    count: u64,
    time_ps: u64,
}

impl From<Term> for TermDocument {
    fn from(term: Term) -> Self {
        Self { count: term.count, time_ps: term.time.0 }
    }
}

#[derive(Serialize)]
struct StepDocument {
    kind: &'static str,
    rank: u32,
    start_ps: u64,
    end_ps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<u32>,
}

const fn name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Calc => "calc",
        StepKind::Send => "send",
        StepKind::Flight => "flight",
        StepKind::Receive => "receive",
        StepKind::Delivery => "delivery",
        StepKind::SendGap => "send gap",
        StepKind::ReceiveGap => "receive gap",
    }
}

impl StepDocument {
    fn new(step: &Step) -> Self {
        let mut document = Self {
            kind: name(step.kind),
            rank: step.rank,
            start_ps: step.start.0,
            end_ps: step.end.0,
            to_rank: None,
            from_rank: None,
            size_bytes: Some(step.size),
            op: step.op,
        };
        match step.kind {
            StepKind::Calc => document.size_bytes = None,
            StepKind::Send | StepKind::Flight | StepKind::SendGap => {
                document.to_rank = Some(step.peer);
            }
            StepKind::Receive | StepKind::Delivery | StepKind::ReceiveGap => {
                document.from_rank = Some(step.peer);
            }
        }
        document
    }
}

impl Explanation {
    /// Of the events that made `last_rank` the last.
    pub(super) fn of(causes: &Causes, last_rank: u32) -> Result<Self, CliError> {
        let found = explain(causes).map_err(CliError::failed)?;
        let terms = found.terms;
        let steps = found.steps.iter().map(StepDocument::new);
        Ok(Self {
            last_rank,
            terms: Terms {
                latency: terms.latency.into(),
                overhead: terms.overhead.into(),
                overhead_bytes: terms.overhead_bytes.into(),
                gap: terms.gap.into(),
                gap_bytes: terms.gap_bytes.into(),
                calc: terms.calc.into(),
                noise: terms.noise.into(),
            },
            steps: steps.collect(),
        })
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Terms { latency, overhead, overhead_bytes, gap, gap_bytes, calc, noise } = &self.terms;
        let terms = [
            (latency, "latencies (L)"),
            (overhead, "overheads (o)"),
            (overhead_bytes, "further bytes at the processor's pace (O)"),
            (gap, "gaps (g)"),
            (gap_bytes, "further bytes at the network's pace (G)"),
            (calc, "calculations"),
            (noise, "operations with noise"),
        ];
        writeln!(out, "# the makespan is the sum of\n#{:>15} {:>12}", "time[ns]", "count")?;
        for (term, what) in terms.into_iter().filter(|(term, _)| term.count > 0) {
            writeln!(out, "{:>16} {:>12}  {what}", nanos(term.time_ps), term.count)?;
        }
        let count = self.steps.len();
        writeln!(out, "# along {count} steps\n#{:>15} {:>16}  step", "from[ns]", "to[ns]")?;
        for step in self.steps.iter().take(SHOWN) {
            let (start, end) = (nanos(step.start_ps), nanos(step.end_ps));
            write!(out, "{start:>16} {end:>16}  rank {}: {}", step.rank, step.kind)?;
            if let Some(size) = step.size_bytes {
                write!(out, " of {size} B")?;
            }
            match (step.to_rank, step.from_rank) {
                (Some(rank), _) => writeln!(out, " to rank {rank}")?,
                (_, Some(rank)) => writeln!(out, " from rank {rank}")?,
                _ => writeln!(out)?,
            }
        }
        if count > SHOWN {
            writeln!(out, "# and {} more steps: -J lists all", count - SHOWN)?;
        }
        Ok(())
    }
}

/// Picoseconds as decimal nanoseconds.
pub(super) fn nanos(picos: u64) -> String {
    crate::decimal::fixed(Picos(picos).0.into(), 3)
}
