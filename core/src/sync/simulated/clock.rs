//! Virtual clock with known errors.

use super::super::SECOND;
use super::super::model::PER_MILLION;
use crate::number::nearest;
use crate::random::Random;
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// Time for which the drift stays constant, in ps.
const STEP: u64 = SECOND;
/// Reading of a clock without offset at the true time 0, in ps. Keeps readings of slow clocks
/// positive.
const BEGIN: u64 = 1_000 * SECOND;

/// Distribution of the errors of a machine's clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClockTruth {
    /// Initial offsets are uniform within plus and minus this; at most 1,000 s.
    pub offset: Picos,
    /// Initial drifts are uniform within plus and minus this, 10⁻⁶.
    pub drift_ppm: f64,
    /// Standard deviation of the change of the drift within a second, 10⁻⁹: a random walk that
    /// models temperature.
    pub wander_ppb: f64,
    /// Distance from the initial drift at which the walk is reflected, 10⁻⁹.
    pub widest_wander_ppb: f64,
    /// Readings are rounded down to multiples of this; 0 and 1 do not round.
    pub granularity: Picos,
    /// Readings scatter uniformly within plus and minus this before they are rounded.
    pub jitter: Picos,
}

impl Default for ClockTruth {
    /// Offsets of up to 100 s, drifts of up to 20 ppm, no wander, a
    /// granularity of 1 ns.
    fn default() -> Self {
        Self {
            offset: Picos(100 * SECOND),
            drift_ppm: 20.0,
            wander_ppb: 0.0,
            widest_wander_ppb: 0.0,
            granularity: Picos(1_000),
            jitter: Picos::ZERO,
        }
    }
}

impl ClockTruth {
    /// Error bound of the difference of two such clocks' readings, for
    /// [`OffsetOptions::resolution`](crate::sync::OffsetOptions::resolution).
    #[must_use]
    pub const fn resolution(&self) -> Picos {
        Picos(self.granularity.0.saturating_add(self.jitter.0.saturating_mul(2)))
    }
}

/// Interval of constant drift.
#[derive(Clone, Copy, Debug, Default)]
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
        let gained = |time: u64| {
            let gained = scaled(time, self.drift.unsigned_abs(), SECOND);
            let gained = i64::try_from(gained).unwrap_or(i64::MAX);
            if self.drift < 0 { -gained } else { gained }
        };
        if now >= self.begin {
            let passed = now - self.begin;
            self.reading.saturating_add(passed).saturating_add_signed(gained(passed))
        } else {
            let before = self.begin - now;
            self.reading.saturating_sub(before).saturating_sub_signed(gained(before))
        }
    }
}

/// A clock whose reading is a function of the true time.
///
/// The drift is computed up to the latest true time requested. Times up to a second earlier are
/// still available, so that concurrent exchanges can be simulated one after the other.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
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
    #[must_use]
    pub fn new(truth: ClockTruth, seed: u64, stream: u64) -> Self {
        let mut walk = Random::stream(seed, stream);
        let uniform = |random: &mut Random, most: f64| nearest((2.0 * random.unit() - 1.0) * most);
        let most = truth.offset.0.min(BEGIN);
        let offset = uniform(&mut walk, Picos(most).seconds() * SECOND as f64);
        let drift = uniform(&mut walk, truth.drift_ppm * PER_MILLION as f64);
        let now = Stretch { begin: 0, reading: BEGIN.saturating_add_signed(offset), drift };
        let readings = Random::new(walk.draw());
        Self { truth, before: now, now, centre: drift, walk, readings }
    }

    /// Clock without errors.
    #[must_use]
    pub fn exact() -> Self {
        let now = Stretch { begin: 0, reading: BEGIN, drift: 0 };
        let truth = ClockTruth {
            offset: Picos::ZERO,
            drift_ppm: 0.0,
            granularity: Picos::ZERO,
            ..ClockTruth::default()
        };
        let (walk, readings) = (Random::new(0), Random::new(1));
        Self { truth, before: now, now, centre: 0, walk, readings }
    }

    /// Clock at the true time `now`, without granularity and jitter.
    pub fn exact_at(&mut self, now: Picos) -> Picos {
        while now.0 >= self.now.begin.saturating_add(STEP) {
            self.step();
        }
        let stretch = if now.0 < self.now.begin { self.before } else { self.now };
        Picos(stretch.reading_at(now.0))
    }

    /// Reading at the true time `now`, with granularity and jitter.
    pub fn read(&mut self, now: Picos) -> Picos {
        let exact = self.exact_at(now).0;
        let jitter = self.truth.jitter.0;
        let scattered = if jitter == 0 {
            exact
        } else {
            let up = self.readings.below(jitter.saturating_mul(2).saturating_add(1));
            exact.saturating_add(up).saturating_sub(jitter)
        };
        let rest = scattered.checked_rem(self.truth.granularity.0).unwrap_or(0);
        Picos(scattered - rest)
    }

    /// Changes the clock by `by` from the true time `now` on, as an administrator might.
    pub fn set(&mut self, now: Picos, by: SignedPicos) {
        let reading = self.exact_at(now).0;
        self.before = self.now;
        let reading = reading.saturating_add_signed(by.0);
        self.now = Stretch { begin: now.0, reading, drift: self.now.drift };
    }

    /// Begins the next interval of constant drift.
    fn step(&mut self) {
        let begin = self.now.begin.saturating_add(STEP);
        let reading = self.now.reading_at(begin);
        let walked = nearest(self.walk.normal() * self.truth.wander_ppb * 1_000.0);
        let widest = nearest(self.truth.widest_wander_ppb * 1_000.0).max(0);
        let off = self.now.drift.saturating_sub(self.centre).saturating_add(walked);
        let drift = self.centre.saturating_add(reflected(off, widest));
        self.before = self.now;
        self.now = Stretch { begin, reading, drift };
    }
}

/// `off`, reflected into plus and minus `widest`.
fn reflected(off: i64, widest: i64) -> i64 {
    let back = if off > widest {
        widest.saturating_mul(2).saturating_sub(off)
    } else if off < -widest {
        widest.saturating_mul(-2).saturating_sub(off)
    } else {
        off
    };
    back.clamp(-widest, widest)
}
