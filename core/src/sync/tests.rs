//! Synchronisation of clocks with known offset and drift.

use super::*;
use crate::random::Random;
use crate::stats::Confidence;
use crate::units::{Picos, SignedPicos};
use quickcheck::{TestResult, quickcheck};
use std::vec::Vec;

const MICROSECOND: u64 = 1_000_000;

/// Two clocks on one true time: the own one is ahead by `ahead` ps at its reading zero and gains
/// `drift` ps a second.
#[derive(Clone, Copy)]
struct Clocks {
    ahead: i64,
    drift: i64,
}

impl Clocks {
    fn peer_at(&self, own: u64) -> Picos {
        let d =
            i128::from(self.ahead) + i128::from(own) * i128::from(self.drift) / 1_000_000_000_000;
        Picos(u64::try_from(i128::from(own) - d).unwrap())
    }

    fn offset_at(&self, own: u64) -> i64 {
        Picos(own).signed_difference(self.peer_at(own))
    }

    /// A ping with the delays `there` and `back`.
    fn ping(&self, sent: u64, there: u64, back: u64) -> Ping {
        Ping {
            sent: Picos(sent),
            stamped: self.peer_at(sent + there),
            received: Picos(sent + there + back),
        }
    }

    /// Offset from a few pings of about a microsecond, starting at `at`, with delays drawn from
    /// `random`.
    fn measured(&self, at: u64, random: &mut Random) -> Offset {
        let mut estimator = OffsetEstimator::new(OffsetOptions::default(), &mut []);
        let mut now = at;
        while !estimator.is_done() {
            let delay = |random: &mut Random| MICROSECOND / 2 + random.draw() % MICROSECOND;
            let ping = self.ping(now, delay(random), delay(random));
            estimator.handle(&ping).unwrap();
            now = ping.received.0 + MICROSECOND;
        }
        estimator.offset().unwrap()
    }
}

quickcheck! {
    /// For arbitrary delays in both directions.
    fn the_bounds_contain_the_offset(ahead: i32, drift: i32, delays: Vec<(u32, u32, u16)>) -> TestResult {
        if delays.is_empty() {
            return TestResult::discard();
        }
        let clocks = Clocks { ahead: i64::from(ahead), drift: i64::from(drift % 100_000_000) };
        let mut estimator = OffsetEstimator::new(OffsetOptions::default(), &mut []);
        let mut now = 1 << 40;
        for (there, back, pause) in delays {
            let ping = clocks.ping(now, there.into(), back.into());
            estimator.handle(&ping).unwrap();
            let offset = estimator.offset().unwrap();
            let truth = clocks.offset_at(offset.at.0);
            assert!(offset.value.0.abs_diff(truth) <= offset.half_width.0 + 1, "{offset:?} {truth}");
            assert_eq!(offset.contradictions, 0);
            now = ping.received.0 + u64::from(pause) * MICROSECOND;
        }
        TestResult::passed()
    }

    /// Readings are rounded down to the granularity.
    fn the_bounds_contain_the_offset_of_coarse_clocks(ahead: i32, begin: u32, delays: Vec<(u8, u8)>, granularity: u8) -> bool {
        let granularity = u64::from(granularity) + 1;
        let clocks = Clocks { ahead: ahead.into(), drift: 0 };
        let resolution = Picos(granularity);
        let options = OffsetOptions { drift_ppm: 0, resolution, ..OffsetOptions::default() };
        let mut estimator = OffsetEstimator::new(options, &mut []);
        let coarse = |time: Picos| Picos(time.0 - time.0 % granularity);
        let mut now = (1 << 40) + u64::from(begin);
        for (there, back) in delays {
            let Ping { sent, stamped, received } = clocks.ping(now, there.into(), back.into());
            let ping = Ping { sent: coarse(sent), stamped: coarse(stamped), received: coarse(received) };
            estimator.handle(&ping).unwrap();
            now = received.0 + 1;
        }
        estimator.offset().is_none_or(|offset| {
            // The midpoint is rounded, and coarse readings may be almost a granularity further apart.
            let off = offset.value.0.abs_diff(clocks.ahead);
            let widest = 255 + granularity + granularity.div_ceil(2);
            offset.contradictions == 0 && off <= offset.half_width.0 && offset.half_width.0 <= widest
        })
    }

    fn there_and_back_is_where_it_began(offset: i32, drift: i32, at: u32, later: i32) -> bool {
        let at = (1 << 50) + u64::from(at) * 1_000;
        let model = ClockModel {
            at: Picos(at),
            offset: SignedPicos(i64::from(offset) * 1_000),
            drift: i64::from(drift % 200_000_000),
            ..ClockModel::default()
        };
        let local = Picos(at.saturating_add_signed(i64::from(later) * 1_000));
        model.local_at(model.reference_at(local)).0.abs_diff(local.0) <= 2
    }

    fn a_model_after_another_is_both(drifts: (i32, i32), offsets: (i32, i32), later: u32) -> bool {
        let model = |drift: i32, offset: i32, at| ClockModel {
            at: Picos(at),
            offset: SignedPicos(offset.into()),
            drift: i64::from(drift % 200_000_000),
            ..ClockModel::default()
        };
        let (child, parent) =
            (model(drifts.0, offsets.0, 1 << 50), model(drifts.1, offsets.1, 1 << 50));
        let local = Picos((1 << 50) + u64::from(later) * 1_000);
        let both = parent.reference_at(child.reference_at(local));
        // Four roundings, and less than 1 ps of drift error in each of 4 s.
        parent.after(&child).reference_at(local).0.abs_diff(both.0) <= 8
    }
}

#[test]
fn an_estimate_says_when_to_stop() {
    let clocks = Clocks { ahead: -70 * 1_000_000_000_000, drift: 0 };
    let options = OffsetOptions {
        target: Picos(2 * MICROSECOND),
        widest: Picos(10 * MICROSECOND),
        most: 60,
        ..OffsetOptions::default()
    };
    let mut slow = OffsetEstimator::new(options, &mut []);
    for ping in 0..60 {
        assert!(!slow.is_done(), "beyond the widest after {ping}");
        slow.handle(&clocks.ping(1 << 40, 20 * MICROSECOND, 20 * MICROSECOND)).unwrap();
    }
    assert!(slow.is_done() && slow.offset().unwrap().half_width > options.widest);
    let mut middling = OffsetEstimator::new(options, &mut []);
    for _ in 0..=options.patience {
        assert!(!middling.is_done());
        middling.handle(&clocks.ping(1 << 40, 5 * MICROSECOND, 5 * MICROSECOND)).unwrap();
    }
    assert!(middling.is_done());
    let mut quick = OffsetEstimator::new(options, &mut []);
    quick.handle(&clocks.ping(1 << 40, MICROSECOND, MICROSECOND)).unwrap();
    assert!(quick.is_done());
    assert_eq!(quick.offset().unwrap().value, SignedPicos(clocks.ahead));
}

#[test]
fn different_ways_there_and_back_are_within_the_bounds_of_several_pings() {
    let clocks = Clocks { ahead: 123_456, drift: 0 };
    let options = OffsetOptions { drift_ppm: 0, ..OffsetOptions::default() };
    let mut middles = [SignedPicos(0); 8];
    let mut estimator = OffsetEstimator::new(options, &mut middles);
    // One ping is fast there, the other fast back; only both together are precise.
    estimator.handle(&clocks.ping(1 << 40, 10, 4_000)).unwrap();
    estimator.handle(&clocks.ping(1 << 41, 4_000, 10)).unwrap();
    let offset = estimator.offset().unwrap();
    assert_eq!((offset.value.0, offset.half_width.0), (clocks.ahead, 10));
    assert_eq!((offset.round_trip.0, offset.pings), (4_010, 2));
    let median = estimator.median(Confidence::P95).unwrap();
    assert_eq!(median.median.0, clocks.ahead);
    assert!(OffsetEstimator::new(options, &mut []).median(Confidence::P95).is_none());
}

#[test]
fn a_clock_that_was_set_is_noticed() {
    let before = Clocks { ahead: 0, drift: 0 };
    let after = Clocks { ahead: 1_000_000_000, drift: 0 };
    let mut estimator = OffsetEstimator::new(OffsetOptions::default(), &mut []);
    estimator.handle(&before.ping(1 << 40, 1_000, 1_000)).unwrap();
    estimator.handle(&after.ping(1 << 40, 1_000, 1_000)).unwrap();
    let offset = estimator.offset().unwrap();
    assert_eq!((offset.contradictions, offset.value.0), (1, 1_000_000_000));
}

#[test]
fn pings_that_cannot_be_are_refused() {
    let mut estimator = OffsetEstimator::new(OffsetOptions::default(), &mut []);
    let ping = |sent, stamped, received| Ping {
        sent: Picos(sent),
        stamped: Picos(stamped),
        received: Picos(received),
    };
    assert_eq!(estimator.handle(&ping(9, 5, 4)), Err(PingError::Backwards(Picos(5))));
    assert_eq!(estimator.handle(&ping(9, u64::MAX, 10)), Err(PingError::TooFarApart));
    assert_eq!(estimator.handle(&ping(u64::MAX - 1, 0, u64::MAX)), Err(PingError::TooFarApart));
    assert!(estimator.offset().is_none() && !estimator.is_done());
}

#[test]
fn a_drift_is_found_and_lies_in_its_error() {
    let mut random = Random::new(7);
    for drift in [-150_000_000, -20_000_000, 20_000_000, 150_000_000] {
        let clocks = Clocks { ahead: 5_000_000, drift };
        let mut estimator = DriftEstimator::default();
        let mut at = 1 << 43;
        for _ in 0..20 {
            estimator.push(&clocks.measured(at, &mut random)).unwrap();
            at += 50_000_000_000; // 50 ms
        }
        let model = estimator.model().unwrap();
        let off = model.drift.abs_diff(drift);
        assert!(off <= 4 * model.drift_error && model.drift_error < 1_000_000, "{model:?}");
        // Ten seconds later.
        let later = at + 10 * SECOND;
        let error = model.offset_at(Picos(later)).0.abs_diff(clocks.offset_at(later));
        assert!(error <= 4 * model.error_at(Picos(later)).0, "{error} {model:?}");
    }
}

#[test]
fn a_slope_is_used_only_where_it_means_something() {
    let mut random = Random::new(3);
    let clocks = Clocks { ahead: 5_000_000, drift: 0 };
    let (mut short, mut none) = (DriftEstimator::default(), DriftEstimator::default());
    for step in 0..20 {
        short.push(&clocks.measured((1 << 43) + step * 1_000_000_000, &mut random)).unwrap();
        none.push(&clocks.measured((1 << 43) + step * 100_000_000_000, &mut random)).unwrap();
    }
    let model = short.model().unwrap();
    assert_eq!((model.drift, model.drift_error), (0, 500_000_000));
    let model = none.model().unwrap();
    assert_eq!(model.drift, 0);
    assert!(model.drift_error < 1_000_000, "{model:?}");
    assert_eq!(DriftEstimator::default().model(), Err(DriftError::NoOffsets));
}

#[test]
fn between_two_offsets_is_better_than_beyond() {
    let mut random = Random::new(5);
    let clocks = Clocks { ahead: -3_000, drift: 31_000_000 };
    let (begin, end) = (1 << 43, (1 << 43) + 20 * SECOND);
    let first = clocks.measured(begin, &mut random);
    let model = ClockModel::between(&first, &clocks.measured(end, &mut random)).unwrap();
    for quarter in 0..=4 {
        let at = begin + 5 * SECOND * quarter;
        let error = model.offset_at(Picos(at)).0.abs_diff(clocks.offset_at(at));
        assert!(error <= model.error.0 && model.error_at(Picos(at)).0 < 2 * MICROSECOND, "{error}");
    }
    let alone = ClockModel::of_offset(&first, 50);
    assert!(alone.error_at(Picos(end)).0 > 900 * MICROSECOND);
    let wrong = ClockModel::between(&first, &first);
    assert_eq!(wrong, Err(DriftError::Order { first: first.at, second: first.at }));
    let set = Offset { at: Picos(first.at.0 + SECOND), value: SignedPicos(1_000_000_000), ..first };
    assert!(matches!(ClockModel::between(&first, &set), Err(DriftError::Implausible(_))));
}

/// Offset of a descheduled rank: 4 ms to either side.
fn wide_offset(at: u64, value: i64) -> Offset {
    Offset {
        at: Picos(at),
        value: SignedPicos(value),
        half_width: Picos(4_000 * MICROSECOND),
        round_trip: Picos(8_000 * MICROSECOND),
        pings: 20,
        contradictions: 0,
    }
}

#[test]
fn wide_offsets_that_lie_far_apart_are_no_clock_that_was_set() {
    let mut estimator = DriftEstimator::default();
    // The true offset is 0, within the bounds of each of the three offsets.
    for (step, value) in [3, -1, -3].into_iter().enumerate() {
        let at = SECOND * (1 + step as u64);
        estimator.push(&wide_offset(at, value * 1_000 * MICROSECOND as i64)).unwrap();
    }
    let model = estimator.bounded(&Assumptions::default()).unwrap();
    let error = model.offset_at(Picos(4 * SECOND)).0.unsigned_abs();
    assert!(error <= model.error_at(Picos(4 * SECOND)).0, "{model:?}");
}

#[test]
fn wide_offsets_close_to_each_other_give_no_slope_that_no_clock_has() {
    let (begin, end) = (SECOND, SECOND + 2_000 * MICROSECOND);
    // The midpoints are off by half the width in opposite directions and suggest a drift of three
    // seconds per second; the true offset is 0.
    let value = 3_000 * MICROSECOND as i64;
    let model = ClockModel::between(&wide_offset(begin, value), &wide_offset(end, -value)).unwrap();
    let most = u64::from(MOST_DRIFT_PPM) * SECOND / 1_000_000;
    assert_eq!(model.drift.unsigned_abs(), most, "{model:?}");
    for local in [begin, begin + 1_000 * MICROSECOND, end, end + 5_000 * MICROSECOND] {
        let off = model.offset_at(Picos(local)).0.unsigned_abs();
        assert!(off <= model.error_at(Picos(local)).0, "{off} at {local}: {model:?}");
        assert!(model.local_at(model.reference_at(Picos(local))).0.abs_diff(local) <= 3);
    }
}

#[test]
fn errors_add_along_a_tree() {
    let offset = |value, half_width| Offset {
        at: Picos(1 << 43),
        value: SignedPicos(value),
        half_width: Picos(half_width),
        round_trip: Picos(0),
        pings: 1,
        contradictions: 0,
    };
    let parent = ClockModel::of_offset(&offset(-400, 30), 0);
    let child = ClockModel::of_offset(&offset(1_000, 20), 0);
    let both = parent.after(&child);
    assert_eq!((both.offset.0, both.error.0), (600, 50));
    assert_eq!(ClockModel::reference().after(&child).offset.0, 1_000);
    assert_eq!(ClockModel::reference().after(&child).error.0, 20);
}

#[test]
fn the_ends_of_the_range_saturate() {
    let model = ClockModel { drift: i64::MIN, drift_error: u64::MAX, ..ClockModel::default() };
    for time in [0, 1, u64::MAX / 2, u64::MAX] {
        let _ = (model.reference_at(Picos(time)), model.local_at(Picos(time)));
        let _ = (model.error_at(Picos(time)), model.after(&model));
    }
    let extreme = |value, half_width| Offset {
        at: Picos(if value < 0 { 0 } else { u64::MAX }),
        value: SignedPicos(value),
        half_width,
        round_trip: Picos::MAX,
        pings: u32::MAX,
        contradictions: 0,
    };
    let between = |width| ClockModel::between(&extreme(i64::MIN, width), &extreme(i64::MAX, width));
    assert!(matches!(between(Picos::ZERO), Err(DriftError::Implausible(_))));
    // Unlimited bounds contradict nothing.
    assert_eq!(between(Picos::MAX).unwrap().error, Picos::MAX);
}

#[test]
fn the_assumed_drift_is_that_of_both_series() {
    let assumptions = Assumptions { drift_ppm: 321, ..Assumptions::default() };
    let (between, within, resolution) = (Picos(50_000_000), Picos(2_000_000), Picos(1_000));
    let options = SyncOptions::expecting(between, within, resolution, assumptions);
    let usual = SyncOptions::default();
    assert_eq!(options.assumptions, assumptions);
    for (series, round_trip, patience) in [
        (options.series, between, OffsetOptions::expecting(between, resolution).patience),
        (options.check, within, usual.check.offset.patience),
    ] {
        let expected = OffsetOptions::expecting(round_trip, resolution);
        assert_eq!(series.offset, OffsetOptions { drift_ppm: 321, patience, ..expected });
    }
}
