//! Numbers of a profile in SI units, with their intervals.

use loggap_core::measure::SizeRow;
use loggap_core::model::{Coefficient, Curve, Estimate, Mark};
use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};

use super::number::{self, Unit};
use crate::profile::RangeRecord;

/// A number with its intervals. An unbounded end is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) value: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Prediction interval of another run.
    pub(super) next: Option<[f64; 2]>,
    pub(super) mark: Mark,
}

impl Quantity {
    /// Value of `curve` at one size.
    pub(super) fn of_size(row: &SizeRow, curve: Curve) -> Option<Self> {
        let estimate = row.value(curve)?.map(|time| time.0);
        Some(Self::of(&estimate, |units| SignedPicos(units).seconds()))
    }

    /// Converts `estimate`, whose extreme integers mean unbounded, by `seconds`.
    fn of(estimate: &Estimate<i64>, seconds: impl Fn(i64) -> f64) -> Self {
        let end = |end: i64| (end > i64::MIN && end < i64::MAX).then(|| seconds(end));
        let (low, high) = (end(estimate.low), end(estimate.high));
        Self { value: seconds(estimate.value), low, high, next: None, mark: estimate.mark }
    }

    /// Length of the longer side of this run's interval.
    pub(super) fn this_half_width(&self) -> Option<f64> {
        Some((self.high? - self.value).max(self.value - self.low?))
    }

    /// Length of the longer side of the next run's interval.
    pub(super) fn next_half_width(&self) -> Option<f64> {
        self.next.map(|[low, high]| (high - self.value).max(self.value - low))
    }

    /// True if more samples would narrow the interval to the requested accuracy. For a value of 0
    /// no relative accuracy is reachable.
    pub(super) fn needs_more_samples(&self) -> bool {
        self.mark == Mark::BudgetSpent && self.value > 0.0
    }
}

impl RangeRecord {
    /// Value at size 1, or the slope.
    pub(super) fn at_one(&self, of: Coefficient) -> Option<Quantity> {
        let seconds = |units| match of {
            Coefficient::PerByte(_) => SignedPerByte(units).seconds(),
            Coefficient::Latency | Coefficient::AtOne(_) => SignedPicos(units).seconds(),
        };
        let quantity = Quantity::of(&self.range.estimate(of)?, seconds);
        Some(Quantity { next: self.next.get(&of).copied(), ..quantity })
    }

    /// Value at the first size of the range, or the slope. The next run's interval is only known at
    /// size 1; its ratio to this run's interval is assumed to be the same at the first size.
    pub(super) fn at_first(&self, of: Coefficient) -> Option<Quantity> {
        let at_one = self.at_one(of)?;
        let first = self.range.first;
        let line = match of {
            Coefficient::AtOne(curve) => self.range.line(curve),
            Coefficient::Latency | Coefficient::PerByte(_) => None,
        };
        let Some(line) = line.filter(|line| first > Bytes(1) && line.has_slope()) else {
            return Some(at_one);
        };
        let value = line.at(first).seconds();
        let half_width = line.half_width(first).seconds();
        let bounded = at_one.this_half_width().filter(|_| half_width < UNBOUNDED_S);
        let ends = |half: f64| [value - half, value + half];
        let this = bounded.map(|_| ends(half_width));
        let wider = at_one.next_half_width().zip(bounded).map(|(next, this)| next / this);
        let next = wider.map(|factor| ends(half_width * factor.max(1.0)));
        let (low, high) = (this.map(|[low, _]| low), this.map(|[_, high]| high));
        Some(Quantity { value, low, high, next, mark: at_one.mark })
    }
}

/// Name of `of` on the screen; slopes follow the values of their line.
pub(super) fn label(of: Coefficient) -> String {
    let symbol = of.symbol();
    match of {
        Coefficient::PerByte(Curve::Gap) => format!("gap per byte {symbol}"),
        Coefficient::PerByte(_) => format!("  per byte {symbol}"),
        Coefficient::Latency | Coefficient::AtOne(_) => {
            format!("{} {symbol}", of.parameter().name())
        }
    }
}

/// Unit for values of `of` of which `smallest` is the smallest.
pub(super) fn unit(of: Coefficient, smallest: f64) -> Unit {
    /// Slopes down to 0.01 of a unit keep it: 0.02 ns/B is more usual than 20 ps/B.
    const LEAST_SLOPE: f64 = 0.01;
    if of.is_per_byte() {
        Unit::fitting(number::TIME_PER_BYTE, smallest, LEAST_SLOPE)
    } else {
        Unit::fitting(number::TIME, smallest, 1.0)
    }
}

/// Half width that counts as unbounded, seconds: a run takes less than an hour.
const UNBOUNDED_S: f64 = 1e5;
