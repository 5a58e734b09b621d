//! Requests and replies between several processes at the same time (Culler, Liu, Martin, Yoshikawa,
//! "Assessing Fast Network Interfaces", section 3.5): K requesters of one replier (Table 4), one
//! requester of K repliers, and K pairs, each beside a single pair.

mod end;
mod local;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use loggap_core::model::Estimate;
use loggap_core::stats::{Confidence, Measure, Sorted};
use loggap_core::units::Picos;
use serde::Serialize;

pub use end::{Activity, End, Role, common_gap};
pub(crate) use local::{Local, processors};
pub use report::Report;

/// Times that each shape and number of processes has its turn.
const TURNS: u32 = 9;
/// Fewest turns with a value for a median with an interval.
const FEWEST_TURNS: usize = 6;
/// Most unanswered requests of a link.
const WINDOW: u32 = 64;
/// Longest message, bytes: a window of them fits into the buffers of sockets, and MPI sends each
/// without waiting for the receiver.
pub const LONGEST: u64 = 1_024;

/// Parts of the processes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Shape {
    /// K requesters of one replier.
    #[serde(rename = "K-to-1")]
    ManyToOne,
    /// One requester of K repliers.
    #[serde(rename = "1-to-K")]
    OneToMany,
    /// K requesters of a replier each.
    #[serde(rename = "pairs")]
    Pairs,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 3] = [Self::ManyToOne, Self::OneToMany, Self::Pairs];

    /// Name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ManyToOne => "K-to-1",
            Self::OneToMany => "1-to-K",
            Self::Pairs => "pairs",
        }
    }

    /// Number of processes that are busy at the same time.
    #[must_use]
    pub const fn processes(self, k: u32) -> u32 {
        match self {
            Self::Pairs => 2 * k,
            Self::ManyToOne | Self::OneToMany => k + 1,
        }
    }

    /// Number of requesters.
    #[must_use]
    pub const fn requesters(self, k: u32) -> u32 {
        match self {
            Self::OneToMany => 1,
            Self::ManyToOne | Self::Pairs => k,
        }
    }
}

/// Runs of a study.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Message size, bytes.
    pub size: u32,
    /// Computation of the replier before each reply.
    pub handler: Picos,
    /// Shapes and numbers of processes, above 1.
    pub runs: Vec<(Shape, u32)>,
    /// Time of all runs.
    pub max_time: Duration,
}

/// A shape with K processes, beside a single pair. Unknown values are `None`.
#[derive(Clone, Debug)]
pub struct Row {
    shape: Shape,
    k: u32,
    /// True if processes share processors, so that the numbers say nothing about the link.
    is_shared: bool,
    single: Option<Estimate<Picos>>,
    gap: Option<Estimate<Picos>>,
    /// Median of the ratios of all turns, in millionths.
    ratio: Option<Estimate<u64>>,
}

impl Row {
    /// True if there is a ratio, of processes with a processor each.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.ratio.is_some() && !self.is_shared
    }

    fn of((shape, k): (Shape, u32), is_shared: bool, gaps: &Gaps) -> Self {
        let of = |k| gaps.get(&(shape, k)).map(Vec::as_slice).unwrap_or_default();
        let ratio = |(single, gap): (&Option<Picos>, &Option<Picos>)| {
            Some(gap.as_ref()?.0.saturating_mul(1_000_000) / single.as_ref()?.0.max(1))
        };
        let ratios = of(1).iter().zip(of(k)).filter_map(ratio).collect();
        let gap = |k| median(of(k).iter().flatten().copied().collect());
        Self { shape, k, is_shared, single: gap(1), gap: gap(k), ratio: median(ratios) }
    }
}

/// Gaps of all turns, by shape and number of processes.
type Gaps = BTreeMap<(Shape, u32), Vec<Option<Picos>>>;

fn median<T: Measure>(mut values: Vec<T>) -> Option<Estimate<T>> {
    let found = Sorted::new(&mut values).median_interval(Confidence::P95)?;
    let estimate = Estimate { low: found.low, high: found.high, ..Estimate::exact(found.median) };
    (values.len() >= FEWEST_TURNS).then_some(estimate)
}

impl Plan {
    /// Part of a requester.
    #[must_use]
    pub fn requester(&self) -> Role {
        const SHORTEST: Duration = Duration::from_millis(20);
        const LONGEST: Duration = Duration::from_secs(1);
        let duration =
            self.max_time / (TURNS * u32::try_from(self.each().len()).unwrap_or(1).max(1));
        let duration = Picos::from_duration(duration.clamp(SHORTEST, LONGEST));
        Role::Requester { window: WINDOW, duration_ps: duration.0 }
    }

    /// Part of a replier.
    #[must_use]
    pub const fn replier(&self) -> Role {
        Role::Replier { handler_ps: self.handler.0 }
    }

    /// Runs of a turn: of each shape a single pair first.
    fn each(&self) -> Vec<(Shape, u32)> {
        let mut each: Vec<(Shape, u32)> = self.runs.clone();
        each.extend(self.runs.iter().map(|(shape, _)| (*shape, 1)));
        each.sort_unstable();
        each.dedup();
        each
    }

    /// Makes all runs in turn by `run`, which returns the gap of a run, until it returns `None`:
    /// then the rest is left out. `is_shared` tells if so many processes share processors.
    ///
    /// # Errors
    ///
    /// Those of `run`.
    pub fn rows<E>(
        &self,
        is_shared: impl Fn(u32) -> bool,
        mut run: impl FnMut(Shape, u32) -> Result<Option<Option<Picos>>, E>,
    ) -> Result<Vec<Row>, E> {
        let (mut gaps, each) = (Gaps::new(), self.each());
        'turns: for _ in 0..TURNS {
            for &(shape, k) in &each {
                let Some(gap) = run(shape, k)? else { break 'turns };
                gaps.entry((shape, k)).or_default().push(gap);
            }
        }
        let row =
            |&(shape, k): &(Shape, u32)| Row::of((shape, k), is_shared(shape.processes(k)), &gaps);
        Ok(self.runs.iter().map(row).collect())
    }
}
