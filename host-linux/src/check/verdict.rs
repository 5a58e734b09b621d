//! Agreement of a prediction and a measurement, given the intervals of both.

use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

/// Relation of the two intervals.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The intervals overlap.
    Agree,
    /// The intervals are disjoint.
    Differ,
    /// One interval is missing, or so wide that an overlap proves nothing.
    CannotTell,
}

impl Verdict {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::CannotTell => "cannot tell",
        }
    }

    /// Largest half-width of an interval relative to its value for an overlap to count.
    pub const KNOWN: f64 = 0.25;

    /// Relation of a measurement to its prediction.
    #[must_use]
    pub fn of(measured: &Estimate<Picos>, predicted: &Estimate<Picos>) -> Self {
        if measured.low > predicted.high || predicted.low > measured.high {
            Self::Differ
        } else if [measured, predicted].into_iter().all(|one| half_width(one) <= Self::KNOWN) {
            Self::Agree
        } else {
            Self::CannotTell
        }
    }
}

/// Outcome of the assertion that a measurement and a prediction differ by at
/// most `allowed` (0.25 for 25%).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Asserted {
    /// The assertion holds.
    Holds,
    /// The intervals allow both.
    Unknown,
    /// All values within the intervals violate the assertion.
    Broken,
}

impl Asserted {
    /// Outcome for a measurement and its prediction.
    #[must_use]
    pub fn of(measured: &Estimate<Picos>, predicted: &Estimate<Picos>, allowed: f64) -> Self {
        let ratio = |measured: Picos, predicted: Picos| measured.seconds() / predicted.seconds();
        let value = ratio(measured.value, predicted.value);
        let (low, high) =
            (ratio(measured.low, predicted.high), ratio(measured.high, predicted.low));
        let are_known = || [measured, predicted].into_iter().all(|one| half_width(one) <= allowed);
        if !value.is_finite() || low > 1.0 + allowed || high < 1.0 - allowed {
            Self::Broken
        } else if (value - 1.0).abs() <= allowed && are_known() {
            Self::Holds
        } else {
            Self::Unknown
        }
    }
}

/// Half-width of the interval relative to the value.
fn half_width(estimate: &Estimate<Picos>) -> f64 {
    let value = estimate.value.seconds();
    let width = estimate.high.since(estimate.low).seconds();
    if value > 0.0 { width / 2.0 / value } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(value: u64, low: u64, high: u64) -> Estimate<Picos> {
        let (value, low, high) = (Picos(value), Picos(low), Picos(high));
        Estimate { value, low, high, ..Estimate::default() }
    }

    #[test]
    fn intervals_that_are_wide_tell_nothing() {
        let measured = about(100, 95, 105);
        assert_eq!(Verdict::of(&measured, &about(110, 104, 116)), Verdict::Agree);
        assert_eq!(Verdict::of(&measured, &about(110, 106, 116)), Verdict::Differ);
        assert_eq!(Verdict::of(&about(110, 106, 116), &measured), Verdict::Differ);
        assert_eq!(Verdict::of(&measured, &about(100, 0, 9_000)), Verdict::CannotTell);
        assert_eq!(Verdict::of(&about(100, 0, 9_000), &measured), Verdict::CannotTell);
        // Even a wide interval may be disjoint from the other.
        assert_eq!(Verdict::of(&measured, &about(400, 106, 9_000)), Verdict::Differ);
    }

    #[test]
    fn an_assertion_is_about_the_ratio_and_needs_intervals_as_narrow() {
        let of = |measured: u64, half: u64, allowed| {
            let measured = about(measured, measured - half, measured + half);
            Asserted::of(&measured, &about(100, 95, 105), allowed)
        };
        assert_eq!(of(120, 5, 0.25), Asserted::Holds);
        assert_eq!(of(80, 5, 0.25), Asserted::Holds);
        assert_eq!(of(140, 5, 0.25), Asserted::Broken);
        assert_eq!(of(60, 5, 0.25), Asserted::Broken);
        // Intervals reach what is allowed.
        assert_eq!(of(130, 5, 0.25), Asserted::Unknown);
        assert_eq!(of(70, 5, 0.25), Asserted::Unknown);
        assert_eq!(of(120, 60, 0.25), Asserted::Unknown);
        assert_eq!(of(101, 1, 0.02), Asserted::Unknown);
        let nothing = about(0, 0, 0);
        assert_eq!(Asserted::of(&about(1, 1, 1), &nothing, 0.5), Asserted::Broken);
    }
}
