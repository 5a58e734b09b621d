//! Assertions about a profile, such as `half_rtt<20us@1K`.

use std::fmt;
use std::str::FromStr;

use loggap_core::model::{Coefficient, Curve, Estimate, Range};
use loggap_core::units::{Bytes, Picos, SignedPicos};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::flags::parse;
use crate::output::number;
use crate::profile::{COLUMNS, ProfileDocument, to_si};

/// A coefficient whose unit is the second.
const OF_TIME: Coefficient = Coefficient::Latency;

/// A limit of a curve at a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// The assertion as it was given.
    text: String,
    curve: Curve,
    bound: Bound,
    limit: Picos,
    size: u64,
}

/// Side of the limit on which values hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bound {
    Below,
    Above,
}

/// Why a text is no assertion.
#[derive(Debug, Error)]
pub enum AssertionError {
    /// A time without a unit.
    #[error("'{0}' needs a unit: ns, us, ms or s")]
    Unit(String),
    /// Not of the form quantity, comparison, time, size.
    #[error("expected a quantity, < or >, a time, @ and a size, such as half_rtt<20us@1K")]
    Form,
    /// Unknown quantity.
    #[error("'{0}' is no quantity; half_rtt, gap, send_overhead or recv_overhead")]
    Quantity(String),
    /// Not a time.
    #[error(transparent)]
    Time(#[from] parse::NumberError),
    /// Not a size.
    #[error(transparent)]
    Size(#[from] parse::SizeError),
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let (quantity, rest) = text.split_at(text.find(['<', '>']).ok_or(AssertionError::Form)?);
        let (bound, rest) = match rest.strip_prefix('<') {
            Some(rest) => (Bound::Below, rest),
            None => (Bound::Above, rest.strip_prefix('>').unwrap_or(rest)),
        };
        let rest = rest.strip_prefix('=').unwrap_or(rest);
        let (time, size) = rest.split_once('@').ok_or(AssertionError::Form)?;
        let quantity = quantity.trim();
        let is_named = |curve: &Curve| {
            [curve.parameter().key(), Coefficient::AtOne(*curve).symbol()].contains(&quantity)
        };
        let curve = COLUMNS.into_iter().find(is_named);
        let time = time.trim();
        if time.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(AssertionError::Unit(time.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            curve: curve.ok_or_else(|| AssertionError::Quantity(quantity.to_owned()))?,
            bound,
            limit: parse::time(time)?,
            size: parse::size(size.trim())?,
        })
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Outcome of an assertion.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// The interval lies on the right side of the limit.
    Holds,
    /// The interval lies on the wrong side of the limit, in all runs.
    Fails,
    /// The interval contains the limit, or nothing is known at this size.
    Unknown,
}

/// An assertion with the value that decided it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The assertion.
    #[serde(serialize_with = "text")]
    pub assertion: Assertion,
    /// Value of the first run, seconds.
    pub value_s: Option<f64>,
    /// Lower end of its interval.
    pub value_s_lo: Option<f64>,
    /// Upper end of its interval.
    pub value_s_hi: Option<f64>,
    /// Outcome over all runs.
    pub verdict: Holds,
}

fn text<S: Serializer>(assertion: &Assertion, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(assertion)
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Holds::Holds => "holds",
            Holds::Fails => "fails",
            Holds::Unknown => "cannot tell",
        };
        write!(f, "{verdict}: {}", self.assertion)?;
        let time = |seconds| number::in_units(seconds, number::TIME);
        match (self.value_s, self.value_s_lo, self.value_s_hi) {
            (Some(value), Some(low), Some(high)) => {
                write!(f, ", is {} ({} to {})", time(value), time(low), time(high))
            }
            (Some(value), ..) => write!(f, ", is {}", time(value)),
            _ => f.write_str(", unknown there"),
        }
    }
}

impl Assertion {
    /// Size at which the limit applies, bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Quantity that is limited.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// True if a value without an interval keeps the limit.
    #[must_use]
    pub fn is_kept(&self, value: SignedPicos) -> bool {
        self.holds(&Estimate { value, low: value, high: value, ..Estimate::default() })
            == Holds::Holds
    }

    /// Judges the assertion by all `runs`, in the order of measuring: it fails if it fails in each,
    /// and holds if it holds in one and fails in none.
    #[must_use]
    pub fn judge<'a>(&self, runs: impl IntoIterator<Item = &'a ProfileDocument>) -> Judged {
        let found: Vec<_> = runs.into_iter().map(|profile| self.value(profile)).collect();
        let holds = |value: &Option<Estimate<SignedPicos>>| {
            value.map_or(Holds::Unknown, |value| self.holds(&value))
        };
        let verdicts: Vec<Holds> = found.iter().map(holds).collect();
        let first = found.first().copied().flatten();
        let first = first.map(|value| value.map(|time| to_si(time.0, OF_TIME)));
        let mut judged = Judged {
            assertion: self.clone(),
            value_s: first.and_then(|value| value.value),
            value_s_lo: first.and_then(|value| value.low),
            value_s_hi: first.and_then(|value| value.high),
            verdict: Holds::Unknown,
        };
        let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
        if !verdicts.is_empty() && count(Holds::Fails) == verdicts.len() {
            judged.verdict = Holds::Fails;
        } else if count(Holds::Holds) > 0 && count(Holds::Fails) == 0 {
            judged.verdict = Holds::Holds;
        }
        judged
    }

    fn holds(&self, value: &Estimate<SignedPicos>) -> Holds {
        let limit = SignedPicos(i64::try_from(self.limit.0).unwrap_or(i64::MAX));
        let (below, above) = match self.bound {
            Bound::Below => (Holds::Holds, Holds::Fails),
            Bound::Above => (Holds::Fails, Holds::Holds),
        };
        if value.high < limit {
            below
        } else if value.low >= limit {
            above
        } else {
            Holds::Unknown
        }
    }

    /// Value at the size: measured there, or that of the range's line.
    fn value(&self, profile: &ProfileDocument) -> Option<Estimate<SignedPicos>> {
        let size = Bytes(self.size);
        let at_size = profile.sizes.iter().find(|record| record.row.size == size);
        let measured = at_size.and_then(|record| record.row.value(self.curve)).copied();
        measured.or_else(|| {
            let ranges = profile.ranges.iter().map(|record| &record.range);
            let holds = |range: &&Range| (range.first..=range.last).contains(&size);
            let line = ranges.clone().find(holds)?.line(self.curve)?;
            let (value, half) = (line.at(size), line.point_half_width(size));
            let half = i64::try_from(half.0).unwrap_or(i64::MAX);
            Some(Estimate {
                value,
                low: SignedPicos(value.0.saturating_sub(half)),
                high: SignedPicos(value.0.saturating_add(half)),
                mark: line.mark(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{RangeRecord, SizeRecord};
    use loggap_core::measure::SizeRow;
    use loggap_core::model::SizeLine;
    use loggap_core::units::SignedPerByte;
    use std::collections::BTreeMap;

    /// A run whose round trip at 64 B takes twice `half_us` ± 1 microseconds, with gaps of 3 µs.
    fn run(half_us: i64) -> ProfileDocument {
        let micros = |count: i64| SignedPicos(count * 1_000_000);
        let half_rtt = Estimate {
            value: micros(half_us),
            low: micros(half_us - 1),
            high: micros(half_us + 1),
            ..Estimate::default()
        };
        let row = SizeRow { size: Bytes(64), half_rtt: Some(half_rtt), ..SizeRow::default() };
        let range = Range {
            first: Bytes(1),
            last: Bytes(1024),
            gap: SizeLine::exact(micros(3), SignedPerByte(0)),
            ..Range::default()
        };
        ProfileDocument {
            sizes: vec![SizeRecord::from(row)],
            ranges: vec![RangeRecord { range, next: BTreeMap::new() }],
            ..ProfileDocument::default()
        }
    }

    #[test]
    fn the_interval_has_to_lie_on_one_side() {
        for (text, verdict) in [
            ("half_rtt<20us@64", Holds::Holds),
            (" half_rtt <= 11100 ns @ 64", Holds::Holds),
            ("half_rtt<11us@64", Holds::Unknown),
            ("half_rtt<9us@64", Holds::Fails),
            ("half_rtt>8.9us@64", Holds::Holds),
            ("half_rtt>20us@64", Holds::Fails),
            ("gap<3.1us@1K", Holds::Holds),
            ("gap<2.9us@100", Holds::Fails),
            ("g<3.1us@1K", Holds::Holds),
            ("gap<3.1us@2K", Holds::Unknown),
            ("send_overhead<3us@64", Holds::Unknown),
        ] {
            let judged = text.parse::<Assertion>().unwrap().judge([&run(10)]);
            assert_eq!(judged.verdict, verdict, "{text}: {judged}");
        }
        let assertion: Assertion = "half_rtt<20us@64".parse().unwrap();
        let kept = [19, 20, 21].map(|us| assertion.is_kept(SignedPicos(us * 1_000_000)));
        assert_eq!((kept, assertion.curve()), ([true, false, false], Curve::HalfRtt));
        let judged = assertion.judge([&run(10)]);
        assert_eq!(judged.to_string(), "holds: half_rtt<20us@64, is 10.0 us (9.00 us to 11.0 us)");
        assert_eq!(serde_json::to_value(&judged).unwrap()["value_s_hi"], 11e-6);
    }

    #[test]
    fn what_fails_fails_in_every_run() {
        let assertion: Assertion = "half_rtt<20us@64".parse().unwrap();
        let of = |runs: &[i64]| {
            let runs: Vec<_> = runs.iter().map(|half_us| run(*half_us)).collect();
            assertion.judge(&runs).verdict
        };
        assert_eq!(
            [of(&[30, 30, 30]), of(&[30, 30, 10]), of(&[30, 20])],
            [Holds::Fails, Holds::Unknown, Holds::Unknown]
        );
        assert_eq!([of(&[20, 10]), of(&[])], [Holds::Holds, Holds::Unknown]);
    }

    #[test]
    fn a_malformed_assertion_is_named() {
        for (text, part) in [
            ("half_rtt", "such as half_rtt<20us@1K"),
            ("half_rtt<20us", "such as half_rtt<20us@1K"),
            ("rtt<20us@1K", "'rtt' is no quantity"),
            ("gap<20m@1K", "unknown unit 'm'"),
            ("gap<20us@1Z", "1Z"),
            ("gap<20@1K", "'20' needs a unit"),
        ] {
            let error = text.parse::<Assertion>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
