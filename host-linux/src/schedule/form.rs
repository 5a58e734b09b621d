//! The three forms of a schedule file, and how large a schedule is.

use std::fmt;
use std::path::Path;

use loggap_core::goal::binary::{Native, Reference};
use loggap_core::goal::stats::Stats;
use loggap_core::goal::text::Survey;

/// How a file holds a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// GOAL text, `.goal`.
    Text,
    /// LogGOPSim's binary format, `.bin`.
    Reference,
    /// Our binary format, `.lgs`.
    Native,
}

impl Form {
    /// The form that the ending of a file name asks for, if it is one of
    /// ours.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "goal" | "txt" => Some(Self::Text),
            "bin" => Some(Self::Reference),
            "lgs" => Some(Self::Native),
            _ => None,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Reference => "bin",
            Self::Native => "lgs",
        })
    }
}

/// How large a schedule is: what sinks need to know before it comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: usize,
    /// Dependencies of all ranks.
    pub edges: usize,
    /// Operations of the rank that has the most.
    pub ops_most: usize,
    /// Dependencies of the rank that has the most.
    pub edges_most: usize,
}

impl Extent {
    /// Of a binary form: operations and dependencies of all ranks, and the
    /// most of a rank.
    fn of_binary(ranks: u32, [ops, edges]: [u64; 2], [ops_most, edges_most]: [u32; 2]) -> Self {
        Self {
            ranks,
            ops: size(ops),
            edges: size(edges),
            ops_most: size(ops_most.into()),
            edges_most: size(edges_most.into()),
        }
    }
}

/// Sizes that a 64-bit host can address, as its files are addressed.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl From<&Survey> for Extent {
    fn from(survey: &Survey) -> Self {
        Self {
            ranks: survey.ranks(),
            ops: survey.ops(),
            edges: survey.edges(),
            ops_most: survey.ops_most(),
            edges_most: survey.edges_most(),
        }
    }
}

impl From<&Reference<'_>> for Extent {
    fn from(view: &Reference<'_>) -> Self {
        let most = [view.ops_most(), view.edges_most()];
        Self::of_binary(view.ranks(), [view.ops(), view.edges()], most)
    }
}

impl From<&Native<'_>> for Extent {
    fn from(view: &Native<'_>) -> Self {
        let most = [view.ops_most(), view.edges_most()];
        Self::of_binary(view.ranks(), [view.ops(), view.edges()], most)
    }
}

impl From<&Stats> for Extent {
    fn from(stats: &Stats) -> Self {
        Self {
            ranks: stats.ranks,
            ops: size(stats.ops()),
            edges: size(stats.edges()),
            ops_most: size(stats.ops_most),
            edges_most: size(stats.edges_most),
        }
    }
}
