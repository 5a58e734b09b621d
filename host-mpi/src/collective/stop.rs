//! When an operation and size has been repeated often enough.

use loggap_core::stats::{Confidence, MedianInterval, Sorted};
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

/// What ended a series.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// The interval of the median is narrow enough.
    Precision,
    /// The time is spent.
    Time,
    /// As many repetitions as there may be.
    Repetitions,
    /// Nothing counted in many repetitions.
    Hopeless,
    /// Somebody asked for it.
    Interrupted,
}

impl Stopped {
    /// As in tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Time => "time",
            Self::Repetitions => "repetitions",
            Self::Hopeless => "hopeless",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StopRule {
    /// Time for a series, with all that belongs to it.
    pub max_time: Picos,
    /// Half the interval over the median, in millionths.
    pub rel_err_ppm: u32,
    /// Repetitions below which no interval is narrow enough.
    pub least: usize,
    /// Most repetitions that are kept.
    pub most: usize,
}

impl StopRule {
    /// Discarded repetitions after which there is no hope if none counted.
    const HOPELESS: u64 = 1_000;
}

/// Repetitions that counted, and the rule applied to them.
#[derive(Debug)]
pub struct Series {
    rule: StopRule,
    times: Vec<Picos>,
    discarded: u64,
    /// Number of times at which to look at the interval again.
    next_look: usize,
    narrow: bool,
    /// Memory for sorting.
    sorted: Vec<Picos>,
}

impl Series {
    /// Nothing yet.
    #[must_use]
    pub const fn new(rule: StopRule) -> Self {
        let next_look = rule.least;
        Self { rule, times: Vec::new(), discarded: 0, next_look, narrow: false, sorted: Vec::new() }
    }

    /// Takes a repetition; `None` where it does not count.
    pub fn push(&mut self, time: Option<Picos>) {
        let Some(time) = time else {
            self.discarded += 1;
            return;
        };
        self.times.push(time);
        if self.times.len() >= self.next_look {
            self.next_look = self.times.len() + self.times.len().div_ceil(4);
            self.narrow = self.interval().is_some_and(|interval| self.is_narrow(&interval));
        }
    }

    fn is_narrow(&self, interval: &MedianInterval<Picos>) -> bool {
        let half = interval.high.since(interval.low).0 / 2;
        let allowed = u128::from(interval.median.0) * u128::from(self.rule.rel_err_ppm) / 1_000_000;
        interval.reached && u128::from(half) <= allowed
    }

    /// Whether to stop after `elapsed`, and why.
    #[must_use]
    pub fn verdict(&self, elapsed: Picos) -> Option<Stopped> {
        if self.narrow {
            Some(Stopped::Precision)
        } else if elapsed >= self.rule.max_time {
            Some(Stopped::Time)
        } else if self.times.len() >= self.rule.most {
            Some(Stopped::Repetitions)
        } else if self.times.is_empty() && self.discarded >= StopRule::HOPELESS {
            Some(Stopped::Hopeless)
        } else {
            None
        }
    }

    /// The median with its interval; `None` where nothing counted.
    pub fn interval(&mut self) -> Option<MedianInterval<Picos>> {
        self.sorted.clone_from(&self.times);
        Sorted::new(&mut self.sorted).median_interval(Confidence::P95)
    }

    /// Repetitions that counted.
    #[must_use]
    pub fn times(&self) -> &[Picos] {
        &self.times
    }

    /// How many did not.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StopRule =
        StopRule { max_time: Picos(1_000), rel_err_ppm: 50_000, least: 10, most: 200 };

    #[test]
    fn a_narrow_interval_ends_a_series() {
        let mut series = Series::new(RULE);
        for n in 0..10 {
            assert_eq!(series.verdict(Picos(0)), None, "{n}");
            series.push(Some(Picos(1_000 + n)));
        }
        assert_eq!(series.verdict(Picos(0)), Some(Stopped::Precision));
    }

    #[test]
    fn a_wide_one_goes_on_until_the_time_is_spent_or_memory_is() {
        let mut series = Series::new(RULE);
        (0..100).for_each(|n| series.push(Some(Picos(if n % 2 == 0 { 100 } else { 900 }))));
        assert_eq!(series.verdict(Picos(999)), None);
        assert_eq!(series.verdict(Picos(1_000)), Some(Stopped::Time));
        (0..100).for_each(|n| series.push(Some(Picos(if n % 2 == 0 { 100 } else { 900 }))));
        assert_eq!(series.verdict(Picos(999)), Some(Stopped::Repetitions));
    }

    #[test]
    fn nothing_that_counts_is_no_number() {
        let mut series = Series::new(RULE);
        for _ in 0..StopRule::HOPELESS {
            assert_eq!(series.verdict(Picos(0)), None);
            series.push(None);
        }
        assert_eq!(series.verdict(Picos(0)), Some(Stopped::Hopeless));
        assert_eq!(series.interval(), None);
        assert_eq!(series.discarded(), StopRule::HOPELESS);
    }
}
