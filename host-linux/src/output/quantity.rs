//! Numbers of a profile in SI units, with their intervals.

use loggap_core::model::{Estimate, Mark, Range, SizeLine};
use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};

use super::number::{self, Unit, Units};
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
    pub(super) fn time(estimate: &Estimate<SignedPicos>) -> Self {
        Self::of(estimate, |time| (time.0, time.seconds()))
    }

    fn slope(estimate: &Estimate<SignedPerByte>) -> Self {
        Self::of(estimate, |slope| (slope.0, slope.seconds()))
    }

    /// Converts `estimate`. `convert` returns the integer, whose extreme values mean unbounded, and
    /// the number in SI units.
    fn of<T: Copy>(estimate: &Estimate<T>, convert: impl Fn(T) -> (i64, f64)) -> Self {
        let end = |end| {
            let (units, seconds) = convert(end);
            (units > i64::MIN && units < i64::MAX).then_some(seconds)
        };
        let value = convert(estimate.value).1;
        let (low, high) = (end(estimate.low), end(estimate.high));
        Self { value, low, high, next: None, mark: estimate.mark }
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

/// A parameter of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    /// Key in the profile.
    pub(super) key: &'static str,
    /// Symbol in tables.
    pub(super) symbol: &'static str,
    /// Name on the screen.
    pub(super) label: &'static str,
    units: Units,
    source: Source,
}

type LineOf = fn(&Range) -> Option<&SizeLine>;

#[derive(Clone, Copy, Debug)]
enum Source {
    Latency,
    Value(LineOf),
    Slope(LineOf),
}

const HALF_RTT: LineOf = |range| range.half_rtt.as_ref();
const SEND: LineOf = |range| range.send_overhead.as_ref();
const RECV: LineOf = |range| range.recv_overhead.as_ref();
const GAP: LineOf = |range| Some(&range.gap);

const fn value(
    key: &'static str,
    symbol: &'static str,
    label: &'static str,
    line: LineOf,
) -> Parameter {
    Parameter { key, symbol, label, units: number::TIME, source: Source::Value(line) }
}

const fn slope(
    key: &'static str,
    symbol: &'static str,
    label: &'static str,
    line: LineOf,
) -> Parameter {
    Parameter { key, symbol, label, units: number::TIME_PER_BYTE, source: Source::Slope(line) }
}

const LATENCY: Parameter = Parameter {
    key: "latency_s",
    symbol: "L",
    label: "latency L",
    units: number::TIME,
    source: Source::Latency,
};

/// All parameters, in the order of printing.
pub(super) const PARAMETERS: [Parameter; 9] = [
    value("half_rtt_s", "RTT/2", "half round trip RTT/2", HALF_RTT),
    slope("half_rtt_per_byte_s", "RTT/2/B", "  per byte", HALF_RTT),
    LATENCY,
    value("send_overhead_s", "o_s", "send overhead o_s", SEND),
    slope("send_overhead_per_byte_s", "O_s", "  per byte O_s", SEND),
    value("recv_overhead_s", "o_r", "receive overhead o_r", RECV),
    slope("recv_overhead_per_byte_s", "O_r", "  per byte O_r", RECV),
    value("gap_s", "g", "gap g", GAP),
    slope("gap_per_byte_s", "G", "gap per byte G", GAP),
];

impl Parameter {
    /// Value at size 1, or the slope.
    pub(super) fn at_one(&self, record: &RangeRecord) -> Option<Quantity> {
        let range = &record.range;
        let quantity = match self.source {
            Source::Latency => Quantity::time(range.latency.as_ref()?),
            Source::Value(line) => Quantity::time(&line(range)?.at_one),
            Source::Slope(line) => {
                let line = line(range).filter(|line| line.has_slope())?;
                Quantity::slope(&line.per_byte)
            }
        };
        Some(Quantity { next: record.next.get(self.key).copied(), ..quantity })
    }

    /// Value at the first size of the range, or the slope. The next run's interval is only known at
    /// size 1; its ratio to this run's interval is assumed to be the same at the first size.
    pub(super) fn at_first(&self, record: &RangeRecord) -> Option<Quantity> {
        let at_one = self.at_one(record)?;
        let first = record.range.first;
        let Some(line) = self.line(record).filter(|line| first > Bytes(1) && line.has_slope())
        else {
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

    /// Line of the parameter, if its value depends on the size.
    fn line<'a>(&self, record: &'a RangeRecord) -> Option<&'a SizeLine> {
        match self.source {
            Source::Value(line) => line(&record.range),
            Source::Latency | Source::Slope(_) => None,
        }
    }

    /// Unit for values of which `smallest` is the smallest.
    pub(super) fn unit(&self, smallest: f64) -> Unit {
        /// Slopes down to 0.01 of a unit keep it: 0.02 ns/B is more usual than 20 ps/B.
        const LEAST_SLOPE: f64 = 0.01;
        Unit::fitting(self.units, smallest, if self.is_slope() { LEAST_SLOPE } else { 1.0 })
    }

    pub(super) const fn is_slope(&self) -> bool {
        matches!(self.source, Source::Slope(_))
    }
}

/// Half width that counts as unbounded, seconds: a run takes less than an hour.
const UNBOUNDED_S: f64 = 1e5;
