//! Holds what was found against the truth.

use std::fmt;

use loggap_tests::document::{Boundary, Number, holds};
use loggap_tests::plain::Reference;

use crate::catalogue::{Changes, Entry, Value};
use crate::keeper::{Found, Outcome};

/// What is to be said about a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Held,
    Missed(Vec<String>),
    Skipped(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("held"),
            Self::Missed(misses) => write!(f, "missed: {}", misses.join("; ")),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

/// A true value, or what plain loops found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standard {
    pub(crate) value: f64,
    /// How far a measured value may lie from it, as a fraction.
    pub(crate) tolerance: f64,
    /// Whether it comes from plain loops.
    pub(crate) reference: bool,
}

impl Standard {
    /// Known values as they are; of references the middle, and half of what
    /// lies between them as a further tolerance.
    pub(crate) fn new(
        value: Value,
        tolerance: f64,
        references: impl Iterator<Item = f64>,
    ) -> Result<Self, &'static str> {
        match value {
            Value::Known(value) => Ok(Self { value, tolerance, reference: false }),
            Value::Unjudged(reason) => Err(reason),
            Value::Reference => {
                let found: Vec<f64> = references.collect();
                let low = found.iter().copied().reduce(f64::min);
                let high = found.iter().copied().reduce(f64::max);
                let (Some(low), Some(high)) = (low, high) else { return Err("no reference") };
                let value = low.midpoint(high);
                let apart = (high - low) / (2.0 * value);
                Ok(Self { value, tolerance: tolerance + apart.abs(), reference: true })
            }
        }
    }

    /// How far a number lies from it, as a fraction.
    pub(crate) fn error(&self, number: &Number) -> f64 {
        number.value / self.value - 1.0
    }

    /// Whether the interval of a number holds it.
    pub(crate) fn is_held(&self, number: &Number) -> Option<bool> {
        number.interval.map(|interval| holds(interval, self.value))
    }
}

/// The standards of `G` and of half a round trip.
pub(crate) fn standards(
    entry: &Entry,
    references: &[Reference],
) -> [Result<Standard, &'static str>; 2] {
    let truth = &entry.truth;
    let slopes = references.iter().filter_map(|one| one.gap_per_byte).flatten();
    let trips = references.iter().flat_map(|one| one.half_rtt);
    [
        Standard::new(truth.gap_per_byte, truth.tolerance, slopes),
        Standard::new(truth.half_rtt, truth.tolerance, trips),
    ]
}

pub(crate) fn judge(entry: &Entry, outcome: &Outcome) -> Verdict {
    let found = match outcome {
        Err(reason) => return Verdict::Skipped(reason.clone()),
        Ok(found) => found,
    };
    if found.exit != 0 || found.ranges == 0 {
        return Verdict::Missed(vec![format!("refused: {}", found.said)]);
    }
    let [gap, trip] = standards(entry, &found.references);
    let mut misses: Vec<String> = [("G", gap, found.gap_per_byte), ("RTT/2", trip, found.half_rtt)]
        .into_iter()
        .filter_map(|(name, standard, number)| apart(name, standard.ok()?, number))
        .collect();
    misses.extend(about_changes(entry.truth.changes, &found.changes));
    misses.extend(about_time(entry, found));
    if misses.is_empty() { Verdict::Held } else { Verdict::Missed(misses) }
}

fn apart(name: &str, standard: Standard, number: Option<Number>) -> Option<String> {
    let Some(number) = number else { return Some(format!("no {name}")) };
    let error = standard.error(&number);
    // Not a number is apart, too.
    let close = error.abs() <= standard.tolerance;
    (!close).then(|| format!("{name} {:+.1}%", 100.0 * error))
}

fn about_changes(expected: Changes, found: &[Boundary]) -> Vec<String> {
    let told = |change: &Boundary| format!("false change at {} B", change.at);
    match expected {
        Changes::Unjudged => vec![],
        Changes::None => found.iter().map(told).collect(),
        Changes::Within { low, high, two_packets } => {
            let allowed = |change: &&Boundary| {
                holds([low as f64, high as f64], change.at)
                    || holds(change.interval, two_packets as f64)
            };
            found.iter().filter(|change| !allowed(change)).map(told).collect()
        }
        Changes::At(size) => {
            let at = size as f64;
            let right = |change: &&Boundary| {
                (change.at / at - 1.0).abs() <= 0.05 && holds(change.interval, at)
            };
            let mut misses: Vec<String> =
                found.iter().filter(|change| !right(change)).map(told).collect();
            if !found.iter().any(|change| right(&change)) {
                misses.push(format!("no change at {size} B"));
            }
            misses
        }
    }
}

fn about_time(entry: &Entry, found: &Found) -> Option<String> {
    let late = found.seconds > entry.most_seconds;
    late.then(|| format!("{:.1} s of {:.1}", found.seconds, entry.most_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at: f64, low: f64, high: f64) -> Boundary {
        Boundary { at, interval: [low, high] }
    }

    #[test]
    fn a_change_is_right_at_its_size_and_within_its_interval() {
        assert!(about_changes(Changes::At(4_096), &[change(4_100.0, 4_000.0, 4_200.0)]).is_empty());
        let wrong = [change(4_100.0, 4_098.0, 4_200.0)];
        assert_eq!(about_changes(Changes::At(4_096), &wrong).len(), 2);
        assert_eq!(about_changes(Changes::At(4_096), &[]), ["no change at 4096 B"]);
        assert_eq!(about_changes(Changes::None, &wrong), ["false change at 4100 B"]);
        let within = |low, high, two_packets| Changes::Within { low, high, two_packets };
        assert!(about_changes(within(4_000, 5_000, 1_449), &wrong).is_empty());
        assert_eq!(about_changes(within(5_000, 6_000, 1_449), &wrong).len(), 1);
        assert!(about_changes(within(5_000, 6_000, 4_099), &wrong).is_empty());
    }

    #[test]
    fn references_that_differ_allow_for_it() {
        let standard = Standard::new(Value::Reference, 0.05, [90.0, 110.0].into_iter()).unwrap();
        assert!((standard.value - 100.0).abs() < 1e-9 && (standard.tolerance - 0.15).abs() < 1e-9);
        let number = |value| Some(Number { value, interval: None, next: None });
        assert_eq!(apart("G", standard, number(114.0)), None);
        assert_eq!(apart("G", standard, number(120.0)).unwrap(), "G +20.0%");
        assert!(apart("G", standard, number(f64::NAN)).is_some());
        assert!(Standard::new(Value::Reference, 0.05, [].into_iter()).is_err());
    }
}
