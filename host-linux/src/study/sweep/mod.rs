//! Parameter sweeps: the makespan over one parameter, or over a grid of several.

mod axis;
mod chart;
mod tangent;

pub use self::axis::{Axis, FACTOR_DIGITS, Form, Spacing, Span, SpanError};
pub use self::chart::{MOST_AXES, chart};
pub use self::tangent::{Stretch, Tangent};
use loggap_core::model::{Protocol, ReceiveOverhead};
use loggap_core::units::Picos;

use crate::sensitivity::Parameter;
use crate::simulation::ParameterSets;

/// Limit on the points of all axes together.
pub const MOST_POINTS: usize = 1_000_000;

/// Axes of a sweep, and the parameters around which it varies them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    axes: Vec<Axis>,
    /// Parameters as given, with separate receive overheads even if both ends are equal.
    given: ParameterSets,
    count: usize,
}

/// Why parameters cannot be swept.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// Two axes change the same parameter.
    #[error("the sweeps of {0} and {1} change the same parameter; leave one out")]
    Same(&'static str, &'static str),
    /// More points than [`MOST_POINTS`].
    #[error("the sweeps have more than {MOST_POINTS} points together; take fewer")]
    TooMany,
    /// A single value for message-size ranges that differ in this parameter.
    #[error(
        "{symbol} has a value for each of {ranges} ranges of message sizes; sweep factors of \
         them, such as {symbol}=0.5x:2x:20"
    )]
    Ranges {
        /// Symbol of the parameter.
        symbol: &'static str,
        /// Number of ranges.
        ranges: usize,
    },
    /// A single value for placement levels that differ in this parameter.
    #[error(
        "{symbol} has a value for each of {levels} levels of nearness, other pairs among them; sweep \
         factors of them, such as {symbol}=0.5x:2x:20"
    )]
    Levels {
        /// Symbol of the parameter.
        symbol: &'static str,
        /// Number of levels.
        levels: usize,
    },
    /// A single value for sender and receiver, which differ in this parameter.
    #[error(
        "sender and receiver have different {symbol}; sweep {symbol}_s or {symbol}_r, or factors \
         of both, such as {symbol}=0.5x:2x:20"
    )]
    Ends {
        /// Symbol of the parameter.
        symbol: &'static str,
    },
    /// A single eager limit for levels that differ in it.
    #[error(
        "S differs between levels; leave it out of --level, where it is that of -S, or sweep \
         factors of all, such as S=0.5x:2x:20"
    )]
    EagerLimits,
    /// Factors of a parameter that is 0.
    #[error("{symbol} is 0, which no factor changes; sweep values of it")]
    Zero {
        /// Symbol of the parameter.
        symbol: &'static str,
    },
    /// The largest factor exceeds 2⁶⁴ units of the parameter.
    #[error("the largest factor makes {symbol} longer than 213 days")]
    TooLarge {
        /// Symbol of the parameter.
        symbol: &'static str,
    },
}

impl Sweep {
    /// Grid of `axes` around `given`; the last axis varies fastest.
    ///
    /// # Errors
    ///
    /// [`SweepError`].
    pub fn new(axes: Vec<Axis>, given: &ParameterSets) -> Result<Self, SweepError> {
        let mut rest = &axes[..];
        while let Some((axis, others)) = rest.split_first() {
            if let Some(other) = others.iter().find(|other| axis.swept.shares(other.swept)) {
                return Err(SweepError::Same(axis.swept.symbol(), other.swept.symbol()));
            }
            rest = others;
        }
        let points = axes.iter().map(|axis| axis.span().points as usize);
        let count = points.into_iter().try_fold(1, usize::checked_mul);
        let count = count.filter(|&count| count <= MOST_POINTS).ok_or(SweepError::TooMany)?;
        let sweep = Self { axes, given: told_apart(given), count };
        for axis in &sweep.axes {
            sweep.check(axis)?;
        }
        Ok(sweep)
    }

    /// Checks that `axis` has a unique meaning for the given parameters.
    fn check(&self, axis: &Axis) -> Result<(), SweepError> {
        let symbol = axis.swept.symbol();
        let (ranges, values) = (self.given.protocols.len(), self.values(axis.swept));
        let differ = values.iter().any(|value| Some(value) != values.first());
        match (axis.form, axis.swept) {
            (Form::Value, Parameter::EagerLimit) if differ => Err(SweepError::EagerLimits),
            (Form::Value, Parameter::EagerLimit) => Ok(()),
            (Form::Value, _) if !self.given.levels.is_empty() => {
                Err(SweepError::Levels { symbol, levels: self.given.levels.len() + 1 })
            }
            (Form::Value, _) if ranges > 1 => Err(SweepError::Ranges { symbol, ranges }),
            (Form::Value, _) if differ => Err(SweepError::Ends { symbol }),
            (Form::Value, _) => Ok(()),
            (Form::Factor, _) => {
                let hidden = hidden(&self.given, axis);
                let values = || values.iter().copied().chain(hidden.iter().map(|time| time.0));
                if values().all(|value| value == 0) {
                    return Err(SweepError::Zero { symbol });
                }
                let fits = values().all(|value| axis.applied(axis.span().to, value).is_some());
                if fits { Ok(()) } else { Err(SweepError::TooLarge { symbol }) }
            }
        }
    }

    /// Given values of a parameter: one for each size range, and for each end that it comprises.
    fn values(&self, swept: Parameter) -> Vec<u64> {
        let mut sets = self.given.clone();
        numbers(&mut sets, swept).map(|number| *number).collect()
    }

    /// True if factors of L count for half the round trip, where overheads hide L.
    #[must_use]
    pub fn has_hidden_latency(&self) -> bool {
        self.axes
            .iter()
            .any(|axis| hidden(&self.given, axis).iter().any(|time| *time > Picos::ZERO))
    }

    /// Axes of the grid.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Number of points of the grid.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Value of each axis at a point.
    pub fn at(&self, point: usize) -> impl Iterator<Item = u64> {
        let mut stride = self.count;
        self.axes.iter().map(move |axis| {
            let points = axis.span().points as usize;
            stride /= points.max(1);
            let index = point / stride.max(1) % points.max(1);
            axis.raw(u32::try_from(index).unwrap_or(u32::MAX))
        })
    }

    /// Parameters at a point.
    #[must_use]
    pub fn sets(&self, point: usize) -> ParameterSets {
        self.sets_around(&self.given, point)
    }

    /// Parameters at a point, around others than the given ones.
    #[must_use]
    pub fn sets_around(&self, others: &ParameterSets, point: usize) -> ParameterSets {
        let mut sets = told_apart(others);
        for (axis, raw) in self.axes.iter().zip(self.at(point)) {
            let hidden = hidden(&sets, axis);
            for number in numbers(&mut sets, axis.swept) {
                *number = axis.applied(raw, *number).unwrap_or(u64::MAX);
            }
            let ends = sets.protocols.iter_mut().zip(&mut sets.receive);
            for ((protocol, receive), one_way) in ends.zip(hidden).filter(|one| one.1 > Picos::ZERO)
            {
                let scaled = Picos(axis.applied(raw, one_way.0).unwrap_or(u64::MAX));
                protocol.parameters.latency = scaled.since(one_way);
                protocol.parameters.shorten(receive, one_way.since(scaled));
            }
        }
        sets.simplified()
    }

    /// The given parameters, in the form that sensitivities of the swept ones need: with separate
    /// receive overheads if a parameter of one end is swept.
    #[must_use]
    pub fn given(&self) -> ParameterSets {
        if self.axes.iter().any(|axis| axis.swept.is_of_one_end()) {
            return self.given.clone();
        }
        self.given.clone().simplified()
    }
}

/// One-way time of one byte with each set whose L is 0, if `axis` has factors of L; else 0. Where
/// overheads hide L, factors apply to this time.
fn hidden(sets: &ParameterSets, axis: &Axis) -> Vec<Picos> {
    let is_latency = (axis.form, axis.swept) == (Form::Factor, Parameter::Latency);
    let one_way = |(protocol, receive): (&Protocol, &ReceiveOverhead)| {
        let set = &protocol.parameters;
        let is_hidden = is_latency && set.latency == Picos::ZERO;
        if is_hidden { set.one_byte(receive) } else { Picos::ZERO }
    };
    sets.protocols.iter().zip(&sets.receive).map(one_way).collect()
}

/// The values that a parameter changes, in all sets.
fn numbers(sets: &mut ParameterSets, swept: Parameter) -> impl Iterator<Item = &mut u64> {
    let ends = sets.protocols.iter_mut().zip(&mut sets.receive);
    ends.flat_map(move |(protocol, receive)| swept.numbers(&mut protocol.parameters, receive))
}

/// `sets` with an explicit receive overhead for each range.
fn told_apart(sets: &ParameterSets) -> ParameterSets {
    let mut sets = sets.clone();
    if sets.receive.is_empty() {
        let ends = sets.protocols.iter().map(|protocol| protocol.parameters.receive_overhead());
        sets.receive = ends.collect();
    }
    sets
}

#[cfg(test)]
mod tests;
