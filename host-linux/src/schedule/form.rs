//! The three formats of a schedule file, and the size of a schedule.

use std::fmt;
use std::path::Path;

use loggap_core::goal::binary::{Native, Reference};
use loggap_core::goal::stats::Stats;
use loggap_core::goal::text::Survey;

/// Format of a schedule file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// GOAL text, `.goal`.
    Text,
    /// LogGOPSim's binary format, `.bin`.
    Reference,
    /// Native binary format, `.lgs`.
    Native,
}

impl Form {
    /// Format for the extension of a file name; `None` if it is unknown.
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

/// Size of a schedule, which sinks need to know in advance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: usize,
    /// Dependencies of all ranks.
    pub edges: usize,
    /// Largest number of operations of a rank.
    pub ops_most: usize,
    /// Largest number of dependencies of a rank.
    pub edges_most: usize,
}

impl Extent {
    /// Extent of a binary file: totals over all ranks, and maxima of a rank.
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

/// Saturating conversion; sizes of files fit on a 64-bit host.
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
