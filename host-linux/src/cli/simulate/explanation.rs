//! Critical path as text and JSON.

use std::io::{self, Write};

use loggap_core::units::Picos;
use serde::Serialize;

use crate::cli::digits::Digits;
use crate::simulation::{LevelSet, Outcome, ParameterSets};
use crate::terminal::CliError;
use crate::timeline::causes::{Causes, Quantity, Via};
use crate::timeline::explain::{self, LinkTerm, Step, Term, explain};

/// Most steps in the text; JSON lists all.
const SHOWN: usize = 40;
/// Most links in the text.
const SHOWN_LINKS: usize = 10;

/// Explanation of the makespan by its critical path.
#[derive(Serialize)]
pub(super) struct Explanation {
    last_rank: u32,
    terms: Terms,
    /// Terms of each parameter set.
    sets: Vec<SetDocument>,
    steps: Vec<StepDocument>,
    /// True if sender and receiver have separate overheads.
    #[serde(skip)]
    are_apart: bool,
    #[serde(skip)]
    has_levels: bool,
}

const LATENCIES: &str = "latencies (L)";
const GAPS: &str = "gaps (g)";
const GAP_BYTES: &str = "further bytes at the network's pace (G)";

#[derive(Serialize)]
struct Terms {
    /// Sum over all parameter sets; the overheads of both ends are one term.
    latency: TermDocument,
    overhead: TermDocument,
    overhead_bytes: TermDocument,
    gap: TermDocument,
    gap_bytes: TermDocument,
    calc: TermDocument,
    noise: TermDocument,
    /// Present if messages share links.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    network: Option<NetworkTerms>,
}

/// Time that messages lost to concurrent messages.
#[derive(Serialize)]
struct NetworkTerms {
    sharing: TermDocument,
    /// Waiting for earlier messages of the same ranks.
    order: TermDocument,
    /// Share of each link in `sharing`.
    sharing_by_link: Vec<LinkDocument>,
}

#[derive(Serialize)]
struct LinkDocument {
    link: String,
    #[serde(flatten)]
    term: TermDocument,
}

/// Terms of the parameters of one set.
#[derive(Serialize)]
struct SetDocument {
    /// Level of nearness of the ranks; the nearest is 0.
    level: usize,
    first_bytes: u64,
    latency: TermDocument,
    send_overhead: TermDocument,
    send_overhead_bytes: TermDocument,
    receive_overhead: TermDocument,
    receive_overhead_bytes: TermDocument,
    gap: TermDocument,
    gap_bytes: TermDocument,
}

#[derive(Clone, Copy, Serialize)]
struct TermDocument {
    count: i128,
    time_ps: i128,
}

impl From<Term> for TermDocument {
    fn from(term: Term) -> Self {
        Self { count: term.count.into(), time_ps: term.time.0.into() }
    }
}

impl TermDocument {
    /// Bytes at the network's pace, without those that were handled early.
    fn gap_bytes(terms: &explain::Terms) -> Self {
        let of = |quantity| Self::from(terms.of(&[quantity]));
        let (all, early) = (of(Quantity::GapPerByte), of(Quantity::EarlyBytes));
        Self { count: all.count - early.count, time_ps: all.time_ps - early.time_ps }
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
    /// Time that concurrent messages cost a transfer, and the link that cost most of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_ps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

const fn name(via: Via) -> &'static str {
    match via {
        Via::Calc => "calc",
        Via::Send => "send",
        Via::Flight => "flight",
        Via::Transfer => "transfer",
        Via::Receive | Via::FirstByte | Via::LastByte => "receive",
        Via::Delivery => "delivery",
        Via::SendGap => "send gap",
        Via::ReceiveGap => "receive gap",
        Via::Instant => "instant",
    }
}

impl StepDocument {
    fn new(step: &Step, causes: &Causes) -> Self {
        let mut document = Self {
            kind: name(step.via),
            rank: step.rank,
            start_ps: step.start.0,
            end_ps: step.end.0,
            to_rank: None,
            from_rank: None,
            size_bytes: Some(step.size),
            op: step.op,
            lost_ps: (step.via == Via::Transfer).then_some(step.lost.0),
            link: step.link.map(|link| causes.link_name(link).to_owned()),
        };
        match step.via {
            Via::Calc => document.size_bytes = None,
            Via::Send | Via::Flight | Via::Transfer | Via::SendGap => {
                document.to_rank = Some(step.peer);
            }
            _ => document.from_rank = Some(step.peer),
        }
        document
    }
}

impl Terms {
    fn new(found: &explain::Terms, network: Option<NetworkTerms>) -> Self {
        use Quantity::{
            ReceiveOverhead, ReceiveOverheadPerByte, SendOverhead, SendOverheadPerByte,
        };
        Self {
            latency: found.of(&[Quantity::Latency]).into(),
            overhead: found.of(&[SendOverhead, ReceiveOverhead]).into(),
            overhead_bytes: found.of(&[SendOverheadPerByte, ReceiveOverheadPerByte]).into(),
            gap: found.of(&[Quantity::Gap]).into(),
            gap_bytes: TermDocument::gap_bytes(found),
            calc: found.of(&[Quantity::Calc]).into(),
            noise: found.of(&[Quantity::Noise]).into(),
            network,
        }
    }
}

impl NetworkTerms {
    fn new(causes: &Causes, found: &explain::Explanation) -> Self {
        let link = |of: &LinkTerm| LinkDocument {
            link: causes.link_name(of.link).to_owned(),
            term: of.term.into(),
        };
        Self {
            sharing: found.terms.of(&[Quantity::Sharing]).into(),
            order: found.terms.of(&[Quantity::Order]).into(),
            sharing_by_link: found.links.iter().map(link).collect(),
        }
    }

    const fn rows(&self) -> [(TermDocument, &'static str); 2] {
        [
            (self.sharing, "messages that shared links"),
            (self.order, "messages that waited for earlier ones of their pair"),
        ]
    }

    /// Writes the links that cost most.
    fn write_links(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        let links = &self.sharing_by_link;
        if links.is_empty() {
            return Ok(());
        }
        writeln!(out, "# sharing, by link\n#{:>15} {:>12}", digits.head("time"), "messages")?;
        for LinkDocument { link, term } in links.iter().take(SHOWN_LINKS) {
            let time = digits.signed_cell(term.time_ps);
            writeln!(out, "{time:>16} {:>12}  {link}", term.count)?;
        }
        if links.len() > SHOWN_LINKS {
            writeln!(out, "# and {} more links: -J lists all", links.len() - SHOWN_LINKS)?;
        }
        Ok(())
    }
}

impl SetDocument {
    fn new(level_set: &LevelSet<'_>, found: &explain::Explanation) -> Self {
        let terms = found.sets.get(level_set.number).copied().unwrap_or_default();
        let of = |quantity| TermDocument::from(terms.of(&[quantity]));
        Self {
            level: level_set.level,
            first_bytes: level_set.protocol.first.0,
            latency: of(Quantity::Latency),
            send_overhead: of(Quantity::SendOverhead),
            send_overhead_bytes: of(Quantity::SendOverheadPerByte),
            receive_overhead: of(Quantity::ReceiveOverhead),
            receive_overhead_bytes: of(Quantity::ReceiveOverheadPerByte),
            gap: of(Quantity::Gap),
            gap_bytes: TermDocument::gap_bytes(&terms),
        }
    }

    /// Terms for separate overheads of the two ends.
    const fn apart(&self) -> [(TermDocument, &'static str); 7] {
        [
            (self.latency, LATENCIES),
            (self.send_overhead, "overheads of senders (o_s)"),
            (self.receive_overhead, "overheads of receivers (o_r)"),
            (self.send_overhead_bytes, "further bytes at the sending processor's pace (O_s)"),
            (self.receive_overhead_bytes, "further bytes at the receiving processor's pace (O_r)"),
            (self.gap, GAPS),
            (self.gap_bytes, GAP_BYTES),
        ]
    }
}

impl Explanation {
    /// Explains why the last rank finished last, from recorded causes of events.
    pub(super) fn of(
        causes: &Causes,
        sets: &ParameterSets,
        outcome: &Outcome,
    ) -> Result<Self, CliError> {
        let found = explain(causes, &sets.parameters()?).map_err(CliError::failed)?;
        let network = outcome.network.as_ref().map(|_| NetworkTerms::new(causes, &found));
        Ok(Self {
            last_rank: outcome.finished.last_rank,
            terms: Terms::new(&found.terms, network),
            sets: sets.by_level().map(|of| SetDocument::new(&of, &found)).collect(),
            steps: found.steps.iter().map(|step| StepDocument::new(step, causes)).collect(),
            are_apart: !sets.receive.is_empty(),
            has_levels: !sets.levels.is_empty(),
        })
    }

    /// Writes a row per non-zero term, for each set if there are several.
    fn write_terms(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        let Terms { latency, overhead, overhead_bytes, gap, gap_bytes, calc, noise, network } =
            &self.terms;
        let sets = &self.sets;
        let mut row = |term: TermDocument, what: &str, of: &str| match (term.count, term.time_ps) {
            (0, 0) => Ok(()),
            (count, _) => {
                let time = digits.signed_cell(term.time_ps);
                writeln!(out, "{time:>16} {count:>12}  {what}{of}")
            }
        };
        if let ([_], false) = (&sets[..], self.are_apart) {
            row(*latency, LATENCIES, "")?;
            row(*overhead, "overheads (o)", "")?;
            row(*overhead_bytes, "further bytes at the processor's pace (O)", "")?;
            row(*gap, GAPS, "")?;
            row(*gap_bytes, GAP_BYTES, "")?;
        } else {
            for set in sets {
                let of = match (sets.len(), self.has_levels) {
                    (1, _) => String::new(),
                    (_, false) => format!(" of messages from {} B on", set.first_bytes),
                    (_, true) => format!(" of level {}, from {} B on", set.level, set.first_bytes),
                };
                for (term, what) in set.apart() {
                    row(term, what, &of)?;
                }
            }
        }
        row(*calc, "calculations", "")?;
        row(*noise, "operations with noise", "")?;
        for (term, what) in network.iter().flat_map(NetworkTerms::rows) {
            row(term, what, "")?;
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        let time = digits.head("time");
        writeln!(out, "# the makespan is the sum of\n#{time:>15} {:>12}", "count")?;
        self.write_terms(out, digits)?;
        if let Some(network) = &self.terms.network {
            network.write_links(out, digits)?;
        }
        let count = self.steps.len();
        let (from, to) = (digits.head("from"), digits.head("to"));
        writeln!(out, "# along {count} steps\n#{from:>15} {to:>16}  step")?;
        for step in self.steps.iter().take(SHOWN) {
            let (start, end) = (digits.cell(step.start_ps), digits.cell(step.end_ps));
            write!(out, "{start:>16} {end:>16}  rank {}: {}", step.rank, step.kind)?;
            if let Some(size) = step.size_bytes {
                write!(out, " of {size} B")?;
            }
            match (step.to_rank, step.from_rank) {
                (Some(rank), _) => write!(out, " to rank {rank}")?,
                (_, Some(rank)) => write!(out, " from rank {rank}")?,
                _ => {}
            }
            if let Some(lost) = step.lost_ps.filter(|&lost| lost > 0) {
                write!(out, ", {} lost", digits.time(lost))?;
            }
            match &step.link {
                Some(link) => writeln!(out, ", most on {link}")?,
                None => writeln!(out)?,
            }
        }
        if count > SHOWN {
            writeln!(out, "# and {} more steps: -J lists all", count - SHOWN)?;
        }
        Ok(())
    }
}

/// Formats picoseconds as decimal nanoseconds.
pub(super) fn nanos(picos: u64) -> String {
    crate::decimal::fixed(Picos(picos).0.into(), 3)
}
