//! Virtual clock with known errors.

use loggap_core::random::Random;
use loggap_core::units::{Picos, SignedPicos};

use super::SECOND;

/// Time for which the drift stays constant, in ps.
const STEP: u64 = SECOND;
/// Reading of a clock without offset at the true time 0, in ps. Keeps readings of slow clocks
/// positive.
const BEGIN: u64 = 1_000 * SECOND;

/// Distribution of the errors of a machine's clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClockTruth {
    /// Initial offsets are uniform within plus and minus this; at most 1,000 s.
    pub(super) offset: Picos,
    /// Initial drifts are uniform within plus and minus this, 10⁻⁶.
    pub(super) drift_ppm: f64,
    /// Standard deviation of the change of the drift within a second, 10⁻⁹: a random walk that
    /// models temperature.
    pub(super) wander_ppb: f64,
    /// Distance from the initial drift at which the walk is reflected, 10⁻⁹.
    pub(super) widest_wander_ppb: f64,
    /// Readings are rounded down to multiples of this; 0 and 1 do not round.
    pub(super) granularity: Picos,
    /// Readings scatter uniformly within plus and minus this before they are rounded.
    pub(super) jitter: Picos,
}

impl ClockTruth {
    /// Clocks that all show the true time.
    pub(super) const EXACT: Self = Self {
        offset: Picos::ZERO,
        drift_ppm: 0.0,
        wander_ppb: 0.0,
        widest_wander_ppb: 0.0,
        granularity: Picos::ZERO,
        jitter: Picos::ZERO,
    };
    /// Offsets of up to 100 s, drifts of up to 20 ppm, no wander, a granularity of 1 ns.
    pub(super) const USUAL: Self = Self {
        offset: Picos(100 * SECOND),
        drift_ppm: 20.0,
        granularity: Picos(1_000),
        ..Self::EXACT
    };

    /// Error bound of the difference of two such clocks' readings, for
    /// [`OffsetOptions::resolution`](loggap_core::sync::OffsetOptions::resolution).
    pub(super) const fn resolution(&self) -> Picos {
        Picos(self.granularity.0 + 2 * self.jitter.0)
    }
}

/// Interval of constant drift.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// True time of its beginning, in ps.
    begin: u64,
    /// Reading at its beginning, in ps.
    reading: u64,
    /// Gain on true time, ps per second.
    drift: i64,
}

impl Stretch {
    fn reading_at(&self, now: u64) -> u64 {
        let passed = i128::from(now) - i128::from(self.begin);
        let gained = passed * i128::from(self.drift) / i128::from(SECOND);
        u64::try_from(i128::from(self.reading) + passed + gained).unwrap_or(u64::MAX)
    }
}

/// A clock whose reading is a function of the true time.
///
/// The drift is computed up to the latest true time requested. Times up to a second earlier are
/// still available, so that concurrent exchanges can be simulated one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    truth: ClockTruth,
    before: Stretch,
    now: Stretch,
    /// Initial drift, ps per second.
    centre: i64,
    /// Generator of the drift, which does not depend on the readings.
    walk: Random,
    /// Generator of the readings' jitter.
    readings: Random,
}

impl VirtualClock {
    /// Clock number `stream` of `seed`, with a random offset and drift.
    pub(super) fn new(truth: ClockTruth, seed: u64, stream: u64) -> Self {
        let mut walk = Random::stream(seed, stream);
        let mut uniform = |most: f64| nearest((2.0 * walk.unit() - 1.0) * most);
        let offset = uniform(truth.offset.seconds() * SECOND as f64);
        let drift = uniform(truth.drift_ppm * 1e6);
        let now = Stretch { begin: 0, reading: BEGIN.saturating_add_signed(offset), drift };
        let readings = Random::new(walk.draw());
        Self { truth, before: now, now, centre: drift, walk, readings }
    }

    /// Clock at the true time `now`, without granularity and jitter.
    pub(super) fn exact_at(&mut self, now: Picos) -> Picos {
        while now.0 >= self.now.begin.saturating_add(STEP) {
            self.step();
        }
        let stretch = if now.0 < self.now.begin { self.before } else { self.now };
        Picos(stretch.reading_at(now.0))
    }

    /// Reading at the true time `now`, with granularity and jitter.
    pub(super) fn read(&mut self, now: Picos) -> Picos {
        let mut reading = self.exact_at(now).0;
        let jitter = self.truth.jitter.0;
        if jitter > 0 {
            reading = reading + self.readings.below(2 * jitter + 1) - jitter;
        }
        let rest = reading.checked_rem(self.truth.granularity.0).unwrap_or(0);
        Picos(reading - rest)
    }

    /// Begins the next interval of constant drift.
    fn step(&mut self) {
        let begin = self.now.begin.saturating_add(STEP);
        let reading = self.now.reading_at(begin);
        let walked = nearest(self.walk.normal() * self.truth.wander_ppb * 1_000.0);
        let widest = nearest(self.truth.widest_wander_ppb * 1_000.0);
        let drift = self.centre + reflected(self.now.drift - self.centre + walked, widest);
        self.before = self.now;
        self.now = Stretch { begin, reading, drift };
    }
}

fn nearest(picos: f64) -> i64 {
    SignedPicos::from_f64(picos).0
}

/// `off`, reflected into plus and minus `widest`.
fn reflected(off: i64, widest: i64) -> i64 {
    let beyond = off - off.clamp(-widest, widest);
    (off - 2 * beyond).clamp(-widest, widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1_000_000;

    #[test]
    fn readings_scatter_by_the_jitter_and_are_rounded_down() {
        for (jitter, low, high) in [(0, -100, 0), (5_000, -5_100, 5_000)] {
            let (jitter, granularity) = (Picos(jitter), Picos(100));
            let truth = ClockTruth { jitter, granularity, ..ClockTruth::USUAL };
            let mut clock = VirtualClock::new(truth, 10, 1);
            let off = (0..1_000).map(|n| {
                let now = Picos(SECOND + n * MICROSECOND);
                clock.read(now).signed_difference(clock.exact_at(now))
            });
            let (least, most) = off.fold((0, 0), |(a, b), off| (a.min(off), b.max(off)));
            assert!(low < least && most <= high, "{jitter}: {least} {most}");
            // And take all of the room.
            assert!(least < low + 200 && most > high - 200, "{jitter}: {least} {most}");
        }
    }

    #[test]
    fn a_virtual_clock_has_the_errors_that_it_was_given() {
        let truth = ClockTruth {
            jitter: Picos(300),
            granularity: Picos(500),
            wander_ppb: 30.0,
            widest_wander_ppb: 40.0,
            ..ClockTruth::USUAL
        };
        for stream in 0..50 {
            let mut clock = VirtualClock::new(truth, 1, stream);
            let mut same = clock;
            let begin = clock.exact_at(Picos::ZERO).signed_difference(Picos(BEGIN));
            assert!(begin.unsigned_abs() <= truth.offset.0, "{begin}");
            let mut rates = vec![];
            for second in 0..200 {
                let (a, b) = (Picos(second * SECOND), Picos((second + 1) * SECOND - 1));
                let passed = clock.exact_at(b).since(clock.exact_at(a));
                rates.push(Picos(b.0 - a.0).signed_difference(passed));
                let read = clock.read(b);
                assert_eq!(read.0 % 500, 0);
                assert!(read.0.abs_diff(clock.exact_at(b).0) <= 800);
            }
            let (least, most) = (rates.iter().min().unwrap(), rates.iter().max().unwrap());
            assert!(most - least <= 80_002 && most - least > 20_000, "{least} {most}");
            assert!(rates[0].abs() <= 20_000_001);
            // Asked at other times, it is the same clock.
            let late = Picos(200 * SECOND + 5);
            assert_eq!(same.exact_at(late), clock.exact_at(late));
            let earlier = Picos(199 * SECOND + SECOND / 2);
            assert_eq!(same.exact_at(earlier), clock.exact_at(earlier));
            assert!(clock.exact_at(earlier) < clock.exact_at(late));
        }
    }
}
