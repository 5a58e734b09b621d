//! Critical path as text and JSON.

use std::io::{self, Write};

use loggap_core::units::Picos;
use serde::{Serialize, Serializer};

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
    terms: AllTerms,
    /// Terms of each parameter set.
    sets: Vec<SetDocument>,
    steps: Vec<StepDocument>,
    /// True if sender and receiver have separate overheads.
    #[serde(skip)]
    are_apart: bool,
    #[serde(skip)]
    has_levels: bool,
}

/// Key in JSON, name in the text, and quantities of a term.
type Kind = (&'static str, &'static str, &'static [Quantity]);

const LATENCY: Kind = ("latency", "latencies (L)", &[Quantity::Latency]);
const GAP: Kind = ("gap", "gaps (g)", &[Quantity::Gap]);
const GAP_BYTES: Kind =
    ("gap_bytes", "further bytes at the network's pace (G)", &[Quantity::GapPerByte]);

/// Terms of all parameter sets; the overheads of both ends are one term.
const TOGETHER: [Kind; 7] = [
    LATENCY,
    ("overhead", "overheads (o)", &[Quantity::SendOverhead, Quantity::ReceiveOverhead]),
    (
        "overhead_bytes",
        "further bytes at the processor's pace (O)",
        &[Quantity::SendOverheadPerByte, Quantity::ReceiveOverheadPerByte],
    ),
    GAP,
    GAP_BYTES,
    ("calc", "calculations", &[Quantity::Calc]),
    ("noise", "operations with noise", &[Quantity::Noise]),
];

/// Terms of one parameter set.
const APART: [Kind; 7] = [
    LATENCY,
    ("send_overhead", "overheads of senders (o_s)", &[Quantity::SendOverhead]),
    (
        "send_overhead_bytes",
        "further bytes at the sending processor's pace (O_s)",
        &[Quantity::SendOverheadPerByte],
    ),
    ("receive_overhead", "overheads of receivers (o_r)", &[Quantity::ReceiveOverhead]),
    (
        "receive_overhead_bytes",
        "further bytes at the receiving processor's pace (O_r)",
        &[Quantity::ReceiveOverheadPerByte],
    ),
    GAP,
    GAP_BYTES,
];

/// Terms by key, with their names.
struct Terms(Vec<(&'static str, &'static str, TermDocument)>);

impl Terms {
    fn of(kinds: &[Kind], found: &explain::Terms) -> Self {
        let term = |&(key, name, quantities): &Kind| {
            let mut term = TermDocument::from(found.of(quantities));
            if key == GAP_BYTES.0 {
                // Without those that were handled early.
                let early = TermDocument::from(found.of(&[Quantity::EarlyBytes]));
                term.count -= early.count;
                term.time_ps -= early.time_ps;
            }
            (key, name, term)
        };
        Self(kinds.iter().map(term).collect())
    }
}

impl Serialize for Terms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, _, term)| (key, term)))
    }
}

#[derive(Serialize)]
struct AllTerms {
    #[serde(flatten)]
    terms: Terms,
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
    #[serde(flatten)]
    terms: Terms,
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

impl Explanation {
    /// Explains why the last rank finished last, from recorded causes of events.
    pub(super) fn of(
        causes: &Causes,
        sets: &ParameterSets,
        outcome: &Outcome,
    ) -> Result<Self, CliError> {
        let found = explain(causes, &sets.parameters()?).map_err(CliError::failed)?;
        let network = outcome.network.as_ref().map(|_| NetworkTerms::new(causes, &found));
        let set = |set: LevelSet<'_>| SetDocument {
            level: set.level,
            first_bytes: set.protocol.first.0,
            terms: Terms::of(&APART, &found.sets.get(set.number).copied().unwrap_or_default()),
        };
        Ok(Self {
            last_rank: outcome.finished.last_rank,
            terms: AllTerms { terms: Terms::of(&TOGETHER, &found.terms), network },
            sets: sets.by_level().map(set).collect(),
            steps: found.steps.iter().map(|step| StepDocument::new(step, causes)).collect(),
            are_apart: !sets.receive.is_empty(),
            has_levels: !sets.levels.is_empty(),
        })
    }

    /// Writes a row per non-zero term, for each set if there are several.
    fn write_terms(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        let sets = &self.sets;
        let AllTerms { terms: Terms(terms), network } = &self.terms;
        let (messages, others) = terms.split_at(terms.len() - 2);
        let mut row = |term: TermDocument, what: &str, of: &str| match (term.count, term.time_ps) {
            (0, 0) => Ok(()),
            (count, _) => {
                let time = digits.signed_cell(term.time_ps);
                writeln!(out, "{time:>16} {count:>12}  {what}{of}")
            }
        };
        if let ([_], false) = (&sets[..], self.are_apart) {
            for (_, what, term) in messages {
                row(*term, what, "")?;
            }
        } else {
            for set in sets {
                let of = match (sets.len(), self.has_levels) {
                    (1, _) => String::new(),
                    (_, false) => format!(" of messages from {} B on", set.first_bytes),
                    (_, true) => format!(" of level {}, from {} B on", set.level, set.first_bytes),
                };
                // In the text, the overheads of both ends precede their bytes.
                let mut rows = set.terms.0.clone();
                rows.swap(2, 3);
                for (_, what, term) in rows {
                    row(term, what, &of)?;
                }
            }
        }
        for (_, what, term) in others {
            row(*term, what, "")?;
        }
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
