//! Sensitivity of the makespan to each parameter, and the interval on which it holds.
//!
//! With a fixed order of events, the time of each event is that of the latest of its causes: a
//! maximum of sums of parameters, which is convex and non-decreasing in each of them. So the
//! makespan is a convex, piecewise linear function of a parameter, and its slope is the number of
//! times that the parameter occurs on the longest path. `low` and `high` combine two limits:
//!
//! - The value at which another path becomes the longest. The longest path at some value of the
//!   parameter is a line below the makespan; its intersection with the line of the present path is
//!   the next value to examine, until no path is longer (Newton's method, exact on convex piecewise
//!   linear functions).
//! - The value up to which the order of events is proved to stay. Each comparison that decided it
//!   (see `order`) is between two convex functions u > v. On an interval v is below its chord, and
//!   u is above its tangents at both ends; if one of these tangents is above the chord everywhere,
//!   the comparison holds on the whole interval. This is sufficient, not necessary: the order may
//!   stay beyond the proved limit, and the slope beyond the order.
//!
//! Between `low` and `high` the makespan is linear. At the limits themselves nothing is claimed.

mod differences;
mod function;
mod graph;
mod order;
mod parameter;
mod runs;
mod tolerance;

use std::sync::atomic::{AtomicBool, Ordering};

use loggap_core::units::Picos;

pub use self::differences::{Differences, differences, runs};
use self::function::{FRACTION_BITS, FunctionId, Moved, Side, Value};
use self::graph::Graph;
use self::order::Order;
use self::parameter::{APART, TOGETHER, index};
pub use self::parameter::{Parameter, Units};
pub use self::runs::Runs;
pub use self::tolerance::{Tolerance, found_by_runs as tolerances_found_by_runs};
use crate::simulation::{LevelSet, ParameterSets, SetsError};
use crate::timeline::causes::{Causes, Quantity};

/// Dependence of the makespan on one parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sensitivity {
    /// The parameter.
    pub parameter: Parameter,
    /// Smallest message size of the range to which the parameter belongs.
    pub first_bytes: u64,
    /// Placement level of the ranks to which the parameter belongs; 0 is the nearest.
    pub level: usize,
    /// Value of the parameter.
    pub value: Units,
    /// d(makespan)/d(parameter): a count, or bytes. At a breakpoint it is the slope above the
    /// value, unless nothing is proved above it and something is proved below.
    pub slope: u64,
    /// Error bound of the slope, where times are rounded.
    pub slope_error: u64,
    /// Lower end of the interval on which the makespan is linear; the value itself if nothing is
    /// proved below it.
    pub low: Units,
    /// Upper end of that interval; the value itself if nothing is proved above it; `None` if it is
    /// unbounded.
    pub high: Option<Units>,
}

/// Dependence of the makespan of one run on its parameters.
#[derive(Debug)]
pub struct Analysis<'a> {
    graph: Graph<'a>,
    sets: &'a ParameterSets,
    order: Order,
    pairs: Vec<(FunctionId, FunctionId)>,
    end: FunctionId,
    stop: &'a AtomicBool,
}

/// Largest change of a time that is examined: 20 hours.
const FARTHEST: i128 = 1 << (56 + FRACTION_BITS);
/// Largest change of a time per byte that is examined: 1 s.
const FARTHEST_PER_BYTE: i128 = 1 << (40 + FRACTION_BITS);
/// Bisection steps for the point at which the proof begins to fail: minimum and maximum.
const REFINEMENTS: (u64, u64) = (8, 32);
/// Budget of all bisection steps, in evaluated functions and comparisons.
const LOOKS: u64 = 1 << 25;

impl<'a> Analysis<'a> {
    /// Analyses a run without noise and with these parameter sets. Once `stop` is set, nothing more is
    /// proved.
    ///
    /// # Errors
    ///
    /// [`SetsError`] of sets with which no run is possible.
    pub fn new(
        causes: &'a Causes,
        sets: &'a ParameterSets,
        stop: &'a AtomicBool,
    ) -> Result<Self, SetsError> {
        let mut graph = Graph::new(causes, sets.parameters()?);
        let mut order = Order::of(&mut graph);
        debug_assert!(graph.agrees(), "each event begins at the latest of its causes");
        order.known &= graph.agrees();
        let mut pairs: Vec<_> = order.pairs.drain().collect();
        pairs.sort_unstable();
        let end = graph.end();
        Ok(Self { graph, sets, order, pairs, end, stop })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// True if the order of events can be proved to stay at all: ranks have one processor and one
    /// interface, and there are not too many comparisons. Otherwise only the slope under the
    /// present order is known.
    #[must_use]
    pub const fn proves(&self) -> bool {
        self.order.known
    }

    /// Sensitivities to each parameter of each range, level by level.
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
        let stored = parameter.stored().iter();
        let parameters: Vec<_> = stored.filter_map(|stored| index(*stored, number)).collect();
        let value = parameter.of(&protocol.parameters, self.sets.receive_overhead(number));
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

    /// Increase of all latencies together at which the makespan has grown by 1, 5 and 10% under the
    /// present order of events: proved, or an estimate.
    #[must_use]
    pub fn tolerances(&self) -> Vec<Tolerance> {
        let sets = 0..self.sets.protocols.len();
        let latencies = sets.filter_map(|set| index(Quantity::Latency, set));
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

    /// Change at which the makespan has grown by `percent`.
    fn grown(&self, moved: &Moved, percent: u32) -> Option<i128> {
        let now = i128::from(self.graph.functions.now(self.end)) << FRACTION_BITS;
        let most = now + now * i128::from(percent) / 100;
        let mut change = FARTHEST;
        while !self.is_stopped() {
            let there = self.end_at(moved, change);
            if there.time <= most {
                return (change < FARTHEST).then_some(change);
            }
            // Newton step: the line of the longest path at `change` is below the makespan.
            change -= (there.time - most + there.growth - 1) / there.growth.max(1);
        }
        None
    }

    fn end_at(&self, moved: &Moved, change: i128) -> Value {
        Value::of(self.end, &self.graph.functions.at(moved, change, Side::Before))
    }

    fn start(&self, moved: &Moved) -> Vec<Value> {
        self.graph.functions.at(moved, 0, Side::Beyond)
    }

    /// Slope of the makespan at its present value, and the length on which it is linear and the
    /// order of events is proved to stay.
    fn line(&self, moved: &Moved, farthest: i128) -> Line {
        let start = self.start(moved);
        let first = Value::of(self.end, &start);
        let mut length = farthest;
        while length > 0 {
            let there = self.end_at(moved, length);
            let excess = there.time - first.time - first.growth * length;
            if excess <= 0 {
                break;
            }
            let turning = (there.growth - first.growth).max(1);
            length -= (excess + turning - 1) / turning;
            if self.is_stopped() {
                length = 0;
            }
        }
        Line { slope: first.growth, length: self.kept(moved, &start, length.max(0)) }
    }

    /// Largest change, up to `length`, for which the order of events is proved to stay.
    fn kept(&self, moved: &Moved, start: &[Value], length: i128) -> i128 {
        if !self.order.known {
            return 0;
        }
        if length == 0 || self.holds(moved, start, length) {
            return length;
        }
        // Find the number of halvings of the length at which the proof succeeds.
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

    /// True if the order of events is proved to stay up to this change.
    fn holds(&self, moved: &Moved, start: &[Value], change: i128) -> bool {
        if self.is_stopped() {
            return false;
        }
        let end = self.graph.functions.at(moved, change, Side::Before);
        let ends = |id| [Value::of(id, start), Value::of(id, &end)];
        self.pairs.iter().all(|&(later, than)| stays_above(ends(later), ends(than), change))
    }
}

/// True if the convex function u is proved to be above v on an interval at whose ends both are
/// known: one of the tangents of u is above the chord of v everywhere. If both are equal at the
/// start, u need only be not below v.
#[allow(clippy::cast_precision_loss, reason = "the margin is wider than what is lost")]
fn stays_above([u0, u1]: [Value; 2], [v0, v1]: [Value; 2], length: i128) -> bool {
    const MARGIN: f64 = 1.0 + 1e-9;
    let (first, last) = (u0.time - v0.time, u1.time - v1.time);
    if first < 0 || last < 0 {
        return false;
    }
    // Gain of the chord on each tangent over the whole interval.
    let rise = v1.time - v0.time;
    let (on_first, on_last) = (rise - u0.growth * length, u1.growth * length - rise);
    // If both are equal everywhere, a strict comparison does not hold.
    if on_first <= 0 || on_last < 0 || (on_last == 0 && (last > 0 || first == 0)) {
        return true;
    }
    first as f64 / on_first as f64 + last as f64 / on_last as f64 > MARGIN
}

struct Line {
    slope: i128,
    length: i128,
}
