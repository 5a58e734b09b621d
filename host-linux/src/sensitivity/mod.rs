//! By how much the makespan of a simulation changes with each parameter, and
//! how far that holds.
//!
//! With the order of events as it was, every instant is the latest of its
//! causes: the greatest of sums of parameters, which is convex in each of them
//! and never falls. So the makespan is a convex, piecewise linear function of a
//! parameter; its slope is how often the parameter stands on the longest path.
//! `low` and `high` are two limits in one:
//!
//! - up to where another path is longer. The longest path at a value of the
//!   parameter is a line below the makespan; where it meets the line of the
//!   present path is the next value to look at, until none is longer (Newton's
//!   method, exact on convex functions).
//! - up to where the order of events may be another. Each comparison that
//!   decided it has to come out as it did (see `order`), between convex functions
//!   u > v. Over an interval v is below its chord, and u above its tangents at
//!   both ends: where one of these is always above that chord, the comparison
//!   holds all over the interval. So what is claimed is proved; the order may
//!   hold further than could be proved, and the slope further than the order.
//!
//! Between `low` and `high` the makespan is a line. At them the simulation may
//! do either.

mod differences;
mod function;
mod graph;
mod order;
mod parameter;
mod runs;
mod tolerance;

use loggap_core::units::Picos;

pub use self::differences::{Differences, differences, runs};
use self::function::{FRACTION_BITS, FunctionId, Moved, Side, Value};
use self::graph::Graph;
use self::order::Order;
use self::parameter::{APART, Stored, TOGETHER};
pub use self::parameter::{Parameter, Units};
pub use self::runs::Runs;
pub use self::tolerance::{Tolerance, found_by_runs as tolerances_found_by_runs};
use crate::simulation::{LevelSet, ParameterSets, SetsError};
use crate::timeline::causes::Causes;

/// How the makespan depends on one parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sensitivity {
    /// Which parameter.
    pub parameter: Parameter,
    /// First size of the range of messages whose parameter it is.
    pub first_bytes: u64,
    /// How near the ranks are whose parameter it is; 0 is the nearest level.
    pub level: usize,
    /// Its value.
    pub value: Units,
    /// d(makespan)/d(parameter): a count, or bytes. Where it is another below
    /// and above the value, that above; unless nothing is known above and
    /// something below.
    pub slope: u64,
    /// By how much the slope may be off, where instants are rounded.
    pub slope_error: u64,
    /// The makespan is linear from here on; the value itself where nothing is
    /// known below it.
    pub low: Units,
    /// Up to here; the value itself where nothing is known above it; `None`
    /// where there is no end.
    pub high: Option<Units>,
}

/// How the makespan of one run depends on its parameters.
#[derive(Debug)]
pub struct Analysis<'a> {
    graph: Graph<'a>,
    sets: &'a ParameterSets,
    order: Order,
    pairs: Vec<(FunctionId, FunctionId)>,
    end: FunctionId,
}

/// Times up to which limits are looked for: 20 hours.
const FARTHEST: i128 = 1 << (56 + FRACTION_BITS);
/// Times per byte up to which limits are looked for: 1 s.
const FARTHEST_PER_BYTE: i128 = 1 << (40 + FRACTION_BITS);
/// Halvings of the interval in which the proof begins to fail: at least, and at
/// most.
const REFINEMENTS: (u64, u64) = (8, 32);
/// Functions and comparisons that these halvings may look at together.
const LOOKS: u64 = 1 << 25;

impl<'a> Analysis<'a> {
    /// Of a run without noise and with these parameter sets.
    ///
    /// # Errors
    ///
    /// [`SetsError`] of sets that no run can have had.
    pub fn new(causes: &'a Causes, sets: &'a ParameterSets) -> Result<Self, SetsError> {
        let mut graph = Graph::new(causes, sets.parameters()?);
        let mut order = Order::of(&mut graph);
        debug_assert!(graph.agrees(), "each event begins at the latest of its causes");
        order.known &= graph.agrees();
        let mut pairs: Vec<_> = order.pairs.drain().collect();
        pairs.sort_unstable();
        let end = graph.end();
        Ok(Self { graph, sets, order, pairs, end })
    }

    /// Whether the order of events can be proved to stay at all: where ranks have one
    /// processor and one interface, and the comparisons are not too many. Otherwise nothing is
    /// known but the slope with the present order.
    #[must_use]
    pub const fn proves(&self) -> bool {
        self.order.known
    }

    /// Number of comparisons that have to come out as they did.
    #[must_use]
    pub fn comparisons(&self) -> usize {
        self.pairs.len()
    }

    /// The dependence on each parameter of each range, level by level.
    #[must_use]
    pub fn sensitivities(&self) -> Vec<Sensitivity> {
        let all = self.sets.by_level().flat_map(|of| {
            let parameters = if self.sets.receive.is_empty() { TOGETHER } else { APART };
            parameters.iter().map(move |&parameter| self.sensitivity(of, parameter))
        });
        all.collect()
    }

    fn sensitivity(&self, of: LevelSet<'_>, parameter: Parameter) -> Sensitivity {
        let LevelSet { level, number, protocol } = of;
        let set = &protocol.parameters;
        let stored = parameter.stored().iter();
        let parameters: Vec<_> = stored.map(|stored| stored.of_set(number)).collect();
        let receive = self.sets.receive.get(number).copied().unwrap_or(set.receive_overhead());
        let value = parameter.of(set, receive);
        let farthest = if parameter.is_per_byte() { FARTHEST_PER_BYTE } else { FARTHEST };
        let below = i128::try_from(value).unwrap_or(farthest).min(farthest);
        let up = self.line(&Moved { parameters: parameters.clone(), direction: 1 }, farthest);
        let down = self.line(&Moved { parameters, direction: -1 }, below);
        let apart = up.slope != -down.slope;
        let (slope, low, high) = match (apart, up.length, down.length) {
            (true, 0, 1..) => (-down.slope, down.length, 0),
            (true, ..) => (up.slope, 0, up.length),
            (false, ..) => (up.slope, down.length, up.length),
        };
        let wide = |length: i128| u128::try_from(length).unwrap_or_default();
        Sensitivity {
            parameter,
            first_bytes: protocol.first.0,
            level,
            value: Units(value),
            slope: u64::try_from(slope).unwrap_or(u64::MAX),
            slope_error: 0,
            low: Units(value.saturating_sub(wide(low))),
            high: (high < farthest).then_some(Units(value.saturating_add(wide(high)))),
        }
    }

    /// How much all latencies may grow together until the makespan has grown
    /// by 1, 5 and 10%, in the present order of events: proved, or an estimate.
    #[must_use]
    pub fn tolerances(&self) -> Vec<Tolerance> {
        let latencies = (0..self.sets.protocols.len()).map(|set| Stored::Latency.of_set(set));
        let moved = Moved { parameters: latencies.collect(), direction: 1 };
        let tolerance = |percent| {
            let grown = self.grown(&moved, percent);
            let at = grown.unwrap_or(FARTHEST);
            let picos = u64::try_from(at >> FRACTION_BITS).unwrap_or(u64::MAX);
            let proved = self.order.known && self.holds(&moved, &self.start(&moved), at);
            let latency = grown.map(|_| Picos(picos));
            Tolerance { percent, latency, exceeded: None, proved }
        };
        Tolerance::PERCENT.map(tolerance).to_vec()
    }

    /// The change at which the makespan has grown by so much.
    fn grown(&self, moved: &Moved, percent: u32) -> Option<i128> {
        let now = i128::from(self.graph.functions.now(self.end)) << FRACTION_BITS;
        let most = now + now * i128::from(percent) / 100;
        let mut change = FARTHEST;
        loop {
            let there = self.end_at(moved, change);
            if there.time <= most {
                return (change < FARTHEST).then_some(change);
            }
            // The line of the longest path there is below the makespan.
            change -= (there.time - most + there.growth - 1) / there.growth.max(1);
        }
    }

    fn end_at(&self, moved: &Moved, change: i128) -> Value {
        let values = self.graph.functions.at(moved, change, Side::Before);
        values.get(self.end as usize).copied().unwrap_or_default()
    }

    fn start(&self, moved: &Moved) -> Vec<Value> {
        self.graph.functions.at(moved, 0, Side::Beyond)
    }

    /// The line on which the makespan leaves its present value.
    fn line(&self, moved: &Moved, farthest: i128) -> Line {
        let start = self.start(moved);
        let first = start.get(self.end as usize).copied().unwrap_or_default();
        let mut length = farthest;
        while length > 0 {
            let there = self.end_at(moved, length);
            let excess = there.time - first.time - first.growth * length;
            if excess <= 0 {
                break;
            }
            let turning = (there.growth - first.growth).max(1);
            length -= (excess + turning - 1) / turning;
        }
        Line { slope: first.growth, length: self.kept(moved, &start, length.max(0)) }
    }

    /// How far, up to a `length`, the order of events is proved to stay.
    fn kept(&self, moved: &Moved, start: &[Value], length: i128) -> i128 {
        if !self.order.known {
            return 0;
        }
        if length == 0 || self.holds(moved, start, length) {
            return length;
        }
        // How often to halve the length until it holds.
        let (mut fails, mut holds) = (0, i128::BITS - length.leading_zeros());
        while holds - fails > 1 {
            let middle = u32::midpoint(fails, holds);
            if self.holds(moved, start, length >> middle) { holds = middle } else { fails = middle }
        }
        let (mut low, mut high) = (length >> holds, length >> fails);
        let looks = (self.pairs.len() + self.graph.functions.len()) as u64;
        for _ in 0..(LOOKS / looks).clamp(REFINEMENTS.0, REFINEMENTS.1) {
            let middle = i128::midpoint(low, high);
            if self.holds(moved, start, middle) { low = middle } else { high = middle }
        }
        low
    }

    /// Whether the order of events is proved to stay up to this change.
    fn holds(&self, moved: &Moved, start: &[Value], change: i128) -> bool {
        let end = self.graph.functions.at(moved, change, Side::Before);
        let at =
            |values: &[Value], id: FunctionId| values.get(id as usize).copied().unwrap_or_default();
        self.pairs.iter().all(|&(later, than)| {
            let (u, v) = ([at(start, later), at(&end, later)], [at(start, than), at(&end, than)]);
            stays_above(u, v, change)
        })
    }
}

/// Whether a convex function, known at both ends of an interval, is above
/// another inside of it: whether one of its tangents is above the other's chord
/// everywhere. Not below it is enough where both are equal to begin with.
#[allow(clippy::cast_precision_loss, reason = "the margin is wider than what is lost")]
fn stays_above([u0, u1]: [Value; 2], [v0, v1]: [Value; 2], length: i128) -> bool {
    const MARGIN: f64 = 1.0 + 1e-9;
    let (first, last) = (u0.time - v0.time, u1.time - v1.time);
    if first < 0 || last < 0 {
        return false;
    }
    // By how much the chord gains on each tangent, over the whole interval.
    let rise = v1.time - v0.time;
    let (on_first, on_last) = (rise - u0.growth * length, u1.growth * length - rise);
    // Where the two are equal all over, a strict comparison does not hold.
    if on_first <= 0 || on_last < 0 || (on_last == 0 && (last > 0 || first == 0)) {
        return true;
    }
    first as f64 / on_first as f64 + last as f64 / on_last as f64 > MARGIN
}

struct Line {
    slope: i128,
    length: i128,
}
