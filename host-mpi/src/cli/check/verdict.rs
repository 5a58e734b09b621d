//! Whether a prediction and a measurement agree, as far as both are known.

use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

/// What the two intervals say.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// They overlap.
    Agree,
    /// They do not.
    Differ,
    /// One of them is so wide that overlapping says nothing, or is missing.
    CannotTell,
}

impl Verdict {
    /// In words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::CannotTell => "cannot tell",
        }
    }

    pub(super) fn of(measured: &Estimate<Picos>, predicted: &Estimate<Picos>) -> Self {
        /// Half an interval, as a share of its value, up to which it says something.
        const KNOWN: f64 = 0.25;
        if measured.low > predicted.high || predicted.low > measured.high {
            Self::Differ
        } else if [measured, predicted].into_iter().all(|one| half_width(one) <= KNOWN) {
            Self::Agree
        } else {
            Self::CannotTell
        }
    }
}

/// What an assertion of at most `allowed` (0.25 for 25%) between a measurement
/// and a prediction comes to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Asserted {
    /// It holds.
    Holds,
    /// The values hold it, but one of them is known less well than that.
    Unknown,
    /// The values break it, or one is missing.
    Broken,
}

impl Asserted {
    pub(super) fn of(
        measured: &Estimate<Picos>,
        predicted: &Estimate<Picos>,
        allowed: f64,
    ) -> Self {
        let ratio = measured.value.seconds() / predicted.value.seconds();
        if !ratio.is_finite() || (ratio - 1.0).abs() > allowed {
            Self::Broken
        } else if [measured, predicted].into_iter().all(|one| half_width(one) <= allowed) {
            Self::Holds
        } else {
            Self::Unknown
        }
    }
}

/// Of the interval, as a share of the value.
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
        // Even a wide one may lie beside the other.
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
        assert_eq!(of(130, 5, 0.25), Asserted::Broken);
        assert_eq!(of(70, 5, 0.25), Asserted::Broken);
        assert_eq!(of(120, 60, 0.25), Asserted::Unknown);
        assert_eq!(of(101, 1, 0.02), Asserted::Unknown);
        let nothing = about(0, 0, 0);
        assert_eq!(Asserted::of(&about(1, 1, 1), &nothing, 0.5), Asserted::Broken);
    }
}
