//! Requests and replies between several processes at the same time (Culler, Liu, Martin, Yoshikawa,
//! "LogP Performance Assessment of Fast Network Interfaces", section 3.5): K requesters of one replier (Table 4), one
//! requester of K repliers, and K pairs, each beside a single pair.

mod end;
mod local;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::Picos;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

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

/// A shape with K processes, beside a single pair: medians of the turns, with 95% intervals. `None`
/// for what fewer than six turns tell.
#[derive(Clone, Debug)]
pub struct Row {
    shape: Shape,
    /// K.
    processes: u32,
    /// True if processes share processors, so that the numbers say nothing about the link.
    is_shared: bool,
    /// Gap of a single pair and that of each of K, s, and their ratio in a turn: median and ends.
    single: [Option<f64>; 3],
    gap: [Option<f64>; 3],
    ratio: [Option<f64>; 3],
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("shape", &self.shape)?;
        map.serialize_entry("processes", &self.processes)?;
        map.serialize_entry("is_shared", &self.is_shared)?;
        for (key, three) in [
            ("single_request_reply_gap_s", self.single),
            ("request_reply_gap_s", self.gap),
            ("ratio", self.ratio),
        ] {
            for (end, value) in ["", "_lo", "_hi"].into_iter().zip(three) {
                map.serialize_entry(&format!("{key}{end}"), &value)?;
            }
        }
        map.serialize_entry("ratio_per_process", &self.ratio_per_process())?;
        map.end()
    }
}

impl Row {
    /// True if there is a ratio, of processes with a processor each.
    const fn is_usable(&self) -> bool {
        self.ratio[0].is_some() && !self.is_shared
    }

    fn ratio_per_process(&self) -> Option<f64> {
        self.ratio[0].map(|ratio| ratio / f64::from(self.processes))
    }

    fn of(shape: Shape, k: u32, gaps: &Gaps) -> Self {
        const MILLION: u64 = 1_000_000;
        let of = |k| gaps.get(&(shape, k)).map(Vec::as_slice).unwrap_or_default();
        let ratio = |(single, gap): (&Option<Picos>, &Option<Picos>)| {
            Some(gap.as_ref()?.0.saturating_mul(MILLION) / single.as_ref()?.0.max(1))
        };
        let gap = |k| median(of(k).iter().flatten().map(|gap| gap.0).collect(), 1e12);
        let ratios = of(1).iter().zip(of(k)).filter_map(ratio).collect();
        Self {
            shape,
            processes: k,
            is_shared: false,
            single: gap(1),
            gap: gap(k),
            ratio: median(ratios, MILLION as f64),
        }
    }
}

/// Gaps of all turns, by shape and number of processes.
type Gaps = BTreeMap<(Shape, u32), Vec<Option<Picos>>>;

/// Median of `values` and the ends of its interval, in `units`.
fn median(mut values: Vec<u64>, units: f64) -> [Option<f64>; 3] {
    let enough = values.len() >= FEWEST_TURNS;
    let found = Sorted::new(&mut values).median_interval(Confidence::P95).filter(|_| enough);
    found.map_or([None; 3], |found| {
        [found.median, found.low, found.high].map(|value| Some(value as f64 / units))
    })
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
    /// then the rest is left out. `is_shared` tells if that number of processes share processors.
    ///
    /// # Errors
    ///
    /// Errors of `run`.
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
        let row = |&(shape, k): &(Shape, u32)| Row {
            is_shared: is_shared(shape.processes(k)),
            ..Row::of(shape, k, &gaps)
        };
        Ok(self.runs.iter().map(row).collect())
    }
}
