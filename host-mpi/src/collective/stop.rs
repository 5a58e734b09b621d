//! Rule that ends the repetitions of an operation and size.

use loggap_core::units::Picos;

use super::interval::{self, SeriesInterval};

/// Condition that ended a series.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stopped {
    /// The interval of the median is narrow enough.
    Precision,
    /// The time limit is reached.
    Time,
    /// The maximum number of repetitions is reached.
    Repetitions,
    /// None of many repetitions counted.
    Hopeless,
    /// The run was interrupted.
    Interrupted,
}

impl Stopped {
    /// Name in tables and files.
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

/// Rule that ends a series.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StopRule {
    /// Time limit of a series, including all its overheads.
    pub max_time: Picos,
    /// Goal of half the interval relative to the median, in millionths.
    pub rel_err_ppm: u32,
    /// Minimum number of repetitions before an interval can be narrow enough.
    pub least: usize,
    /// Maximum number of repetitions that are kept.
    pub most: usize,
}

impl StopRule {
    /// Number of discarded repetitions after which a series is hopeless if none counted.
    const HOPELESS: u64 = 1_000;
    /// Divisor of the time limit, which gives the minimum time of a series:
    /// disturbances last, and a short series may lie between two of them.
    const LEAST_PART: u64 = 8;

    const fn least_time(self) -> Picos {
        Picos(self.max_time.0 / Self::LEAST_PART)
    }
}

/// Times of the repetitions that counted, and the rule applied to them.
#[derive(Debug)]
pub struct Series {
    rule: StopRule,
    times: Vec<Picos>,
    discarded: u64,
    /// Number of times at which the interval is computed next.
    next_look: usize,
    narrow: bool,
    /// Scratch memory for sorting.
    sorted: Vec<Picos>,
}

impl Series {
    /// An empty series.
    #[must_use]
    pub const fn new(rule: StopRule) -> Self {
        let next_look = rule.least;
        Self { rule, times: Vec::new(), discarded: 0, next_look, narrow: false, sorted: Vec::new() }
    }

    /// Adds the time of a repetition; `None` if it does not count.
    pub fn push(&mut self, time: Option<Picos>) {
        let Some(time) = time else {
            self.discarded += 1;
            return;
        };
        self.times.push(time);
        if self.times.len() >= self.next_look {
            self.next_look = interval::next_look(self.times.len());
            self.narrow = self.interval().is_some_and(|interval| self.is_narrow(&interval));
        }
    }

    fn is_narrow(&self, interval: &SeriesInterval) -> bool {
        let allowed = u128::from(interval.median.0) * u128::from(self.rule.rel_err_ppm) / 1_000_000;
        let half = interval.ends.map(|(low, high)| high.since(low).0 / 2);
        half.is_some_and(|half| u128::from(half) <= allowed)
    }

    /// Reason to stop after `elapsed`; `None` to continue.
    #[must_use]
    pub fn verdict(&self, elapsed: Picos) -> Option<Stopped> {
        if self.narrow && elapsed >= self.rule.least_time() {
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

    /// Median with its interval; `None` if no repetition counted.
    pub fn interval(&mut self) -> Option<SeriesInterval> {
        interval::of(&self.times, &mut self.sorted)
    }

    /// Times of the repetitions that counted.
    #[must_use]
    pub fn times(&self) -> &[Picos] {
        &self.times
    }

    /// Number of repetitions that did not count.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StopRule =
        StopRule { max_time: Picos(1_000), rel_err_ppm: 50_000, least: 16, most: 200 };
    const ENOUGH: Picos = RULE.least_time();

    #[test]
    fn a_narrow_interval_ends_a_series() {
        let mut series = Series::new(RULE);
        for n in 0..RULE.least as u64 {
            assert_eq!(series.verdict(ENOUGH), None, "{n}");
            series.push(Some(Picos(1_000 + n)));
        }
        assert_eq!(series.verdict(ENOUGH), Some(Stopped::Precision));
    }

    #[test]
    fn not_before_some_time_has_passed() {
        let mut series = Series::new(RULE);
        (0..RULE.least).for_each(|_| series.push(Some(Picos(1_000))));
        assert_eq!(series.verdict(Picos(ENOUGH.0 - 1)), None);
    }

    #[test]
    fn an_interval_that_a_drift_only_made_look_narrow_ends_nothing() {
        let rule = StopRule { least: 64, rel_err_ppm: 40_000, ..RULE };
        let push = |value: fn(u64) -> u64| {
            let mut series = Series::new(rule);
            (0..64).for_each(|n| series.push(Some(Picos(value(n)))));
            series.verdict(ENOUGH)
        };
        // Equal values in two orders: mixed, and the small ones first.
        assert_eq!(push(|n| if n * 7 % 64 < 12 { 900 } else { 1_000 }), Some(Stopped::Precision));
        assert_eq!(push(|n| if n < 12 { 900 } else { 1_000 }), None);
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
