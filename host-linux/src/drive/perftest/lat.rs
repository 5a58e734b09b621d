//! Latency of messages: statistics of round trips that follow one another without a pause.

use loggap_core::measure::{SessionError, floor};
use loggap_core::stats::{Moments, Sorted};
use loggap_core::units::Picos;
use serde::Serialize;

use super::connections::Connections;
use super::rounds::{Budget, MOST_VALUES, Values};
use super::{Missing, SizeResult, SizeTest, round_trip};
use crate::link::LinkError;

/// Latency at one size. Unknown values are `None`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) size_bytes: u32,
    /// Most messages in flight, over RDMA verbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u16>,
    pub(crate) iterations: u64,
    pub(crate) lost: u64,
    pub(crate) min_s: Option<f64>,
    pub(crate) max_s: Option<f64>,
    pub(crate) median_s: Option<f64>,
    pub(crate) mean_s: Option<f64>,
    /// `None` also for a single value.
    pub(crate) stdev_s: Option<f64>,
    /// `None` for fewer values than [`floor::P99`] and [`floor::P999`].
    pub(crate) p99_s: Option<f64>,
    pub(crate) p999_s: Option<f64>,
}

/// Number of message slots for `size` bytes when one message is in flight: few enough to stay in a
/// core's private cache, as in perftest.
pub(crate) fn places_in_cache(size: u32) -> u16 {
    /// Bytes used for each direction: a part of the cache.
    const IN_CACHE: u32 = 256 << 10;
    const FEWEST: u16 = 4;
    u16::try_from(IN_CACHE / size.max(1)).unwrap_or(u16::MAX).max(FEWEST)
}

/// A test of latency at each size.
pub(crate) struct LatencyTest {
    /// Factor from the duration of a round to a value: 1/2 for halves of round trips.
    pub(crate) share: f64,
    /// Rounds before those that count.
    pub(crate) warmup: u32,
    /// Number or duration of the round trips.
    pub(crate) budget: Budget,
}

impl SizeTest for LatencyTest {
    type Row = Latency;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<SizeResult<Latency>, SessionError<LinkError>> {
        let depth = connections.depth();
        let Some(session) = connections.first() else {
            return Ok(SizeResult { row: None, failure: None });
        };
        session.warm_up(round_trip(size), self.warmup)?;
        let values = session.repeat(round_trip(size), self.budget)?;
        Ok(values.result(|values| Latency { depth, ..Latency::of(size, values, self.share) }))
    }

    fn missing(latency: &Latency) -> Option<Missing> {
        (latency.iterations == 0).then_some(Missing::Messages)
    }
}

impl Latency {
    /// Statistics of `values`, each multiplied by `share`.
    fn of(size_bytes: u32, mut values: Values, share: f64) -> Self {
        let mut moments = Moments::default();
        for value in &values.elapsed {
            moments.add(value.seconds() * share);
        }
        let sorted = Sorted::new(&mut values.elapsed);
        let seconds = |value: Option<Picos>| value.map(|value| value.seconds() * share);
        let count = sorted.as_slice().len();
        let tail = |permille: u32, least: usize| {
            seconds(sorted.quantile(permille, 1_000).filter(|_| count >= least))
        };
        Self {
            size_bytes,
            depth: None,
            iterations: moments.count(),
            lost: values.lost,
            min_s: seconds(sorted.quantile(0, 1)),
            max_s: seconds(sorted.quantile(1, 1)),
            median_s: seconds(sorted.median()),
            mean_s: moments.mean(),
            stdev_s: moments.variance().map(f64::sqrt),
            p99_s: tail(990, floor::P99),
            p999_s: tail(999, floor::P999),
        }
    }

    /// True if more values were measured than are kept.
    pub(crate) const fn is_cut_short(&self) -> bool {
        self.iterations >= MOST_VALUES as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_of_all_values() {
        let elapsed = (1..=2_000).map(|us| Picos(us * 2_000_000)).collect();
        let latency = Latency::of(2, Values { elapsed, ..Values::default() }, 0.5);
        let micros = |seconds: Option<f64>| (seconds.unwrap() * 1e9).round() / 1e3;
        assert_eq!((latency.iterations, micros(latency.min_s)), (2_000, 1.0));
        assert_eq!((micros(latency.max_s), micros(latency.median_s)), (2_000.0, 1_000.5));
        assert_eq!((micros(latency.p99_s), micros(latency.p999_s)), (1_980.0, 1_998.0));
        assert!((latency.mean_s.unwrap() - 1_000.5e-6).abs() < 1e-9, "{latency:?}");
        assert!((latency.stdev_s.unwrap() - 577.495e-6).abs() < 1e-8, "{latency:?}");
    }

    #[test]
    fn a_percentile_has_two_values_beyond_it() {
        let known = |count| {
            let elapsed = vec![Picos(8); count];
            let latency = Latency::of(2, Values { elapsed, ..Values::default() }, 0.5);
            [latency.median_s, latency.p99_s, latency.p999_s].map(|value| value.is_some())
        };
        assert_eq!([known(12), known(199)], [[true, false, false]; 2]);
        assert_eq!([known(200), known(1_999)], [[true, true, false]; 2]);
        assert_eq!(known(2_000), [true; 3]);
    }

    #[test]
    fn messages_one_at_a_time_stay_in_the_cache() {
        let sizes = [1, 2 << 10, 16 << 10, 64 << 10, 8 << 20];
        assert_eq!(sizes.map(places_in_cache), [u16::MAX, 128, 16, 4, 4]);
    }

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let none = Latency::of(2, Values { lost: 5, ..Values::default() }, 0.5);
        let text = serde_json::to_value(none).unwrap();
        for key in ["min_s", "max_s", "median_s", "mean_s", "stdev_s", "p99_s", "p999_s"] {
            assert!(text[key].is_null(), "{key}: {text}");
        }
        assert_eq!((&text["iterations"], &text["lost"]), (&0.into(), &5.into()));
        let one = Latency::of(2, Values { elapsed: vec![Picos(8)], ..Values::default() }, 0.5);
        assert!(one.mean_s.is_some() && one.stdev_s.is_none(), "{one:?}");
    }
}
