//! Steps and drift of a stream of values, found while it arrives.
//!
//! Values are logarithms of times, one an interval. A warm-up gives their mean and deviation, both
//! of which are then forgotten exponentially. Steps are found by a two-sided CUSUM (Page,
//! Biometrika 1954) of clipped standardised residuals: one outlier alone is never a step, two in a
//! row are, and more are needed while outliers are frequent. Drift is the distance of the mean from
//! its anchor, the mean that was settled or reported last.
//!
//! The thresholds keep stationary noise below one false alarm in a day of 5 s intervals, for two
//! streams together; the tests simulate that.

use super::Moments;

/// Values of the first warm-up.
const WARM_UP: usize = 24;
/// Values of the warm-up after a step.
const WARM_UP_AGAIN: usize = 12;
/// Weight of a new value in the settled mean is the reciprocal of this.
const MEMORY: f64 = 64.0;
/// Residuals are clipped to this many deviations for the sums.
const CLIP: f64 = 6.0;
/// Residuals are clipped to this many deviations for mean and deviation.
const INNER: f64 = 3.0;
/// Allowance of the sums, deviations.
const ALLOWANCE: f64 = 1.0;
/// Smallest deviation: relative changes below a few of these are none.
const LEAST_DEVIATION: f64 = 0.01;
/// Smallest drift.
const LEAST_DRIFT: f64 = 0.05;
/// Weight of a new value in the share of outliers is the reciprocal of this.
const OUTLIER_MEMORY: f64 = 500.0;
/// Probability of a false alarm that is accepted at an interval, of which a day has 17,280.
const FALSE_ALARM: f64 = 9e-6;
/// Values after an outlier within which another one adds to it.
const NEAR: f64 = 2.0;
/// Limits of the outliers in a row that are a step.
const FEWEST_IN_A_ROW: u32 = 2;
const MOST_IN_A_ROW: u32 = 8;

/// Kind of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ShiftKind {
    /// From one value to the next.
    Step,
    /// Little by little.
    Drift,
}

/// A change of the stream's level.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shift {
    /// Step or drift.
    pub kind: ShiftKind,
    /// Level before.
    pub before: f64,
    /// Level after; after a step an estimate from its first values.
    pub after: f64,
}

/// Sequential detector of steps and drift.
#[derive(Clone, Debug)]
pub struct SequentialDetector {
    /// Values of a warm-up that is under way.
    first: [f64; WARM_UP],
    count: usize,
    /// Number of values of this warm-up.
    needed: usize,
    level: Option<Level>,
    /// Level reported by the step that caused this warm-up.
    reported: Option<f64>,
    /// Share of outliers before this warm-up.
    outliers: f64,
}

impl Default for SequentialDetector {
    fn default() -> Self {
        let first = [0.0; WARM_UP];
        Self { first, count: 0, needed: WARM_UP, level: None, reported: None, outliers: 0.0 }
    }
}

impl SequentialDetector {
    /// Number of values before changes are looked for.
    pub const WARM_UP: usize = WARM_UP;

    /// True once changes are looked for.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.level.is_some()
    }

    /// Mean of the values; `None` during a warm-up.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.level.as_ref().map(|level| level.mean)
    }

    /// Standard deviation of the values; `None` during a warm-up.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.level.as_ref().map(|level| libm::sqrt(level.variance))
    }

    /// Number of values after which a step by `change` is reported; `None` during a warm-up, and
    /// for steps that the noise hides.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive quotient; the cast saturates"
    )]
    pub fn values_to_tell(&self, change: f64) -> Option<u32> {
        let level = self.level.as_ref()?;
        let each = (libm::fabs(change) / libm::sqrt(level.variance)).min(CLIP) - ALLOWANCE;
        (each > 0.0).then(|| (level.threshold() / each) as u32 + 1)
    }

    /// Adds a value and returns the change that it reveals. Ignores values that are not finite.
    pub fn add(&mut self, value: f64) -> Option<Shift> {
        if !value.is_finite() {
            return None;
        }
        let Some(level) = &mut self.level else { return self.learn(value) };
        if let Some(after) = level.step(value) {
            let Level { mean: before, outliers, .. } = *level;
            let reported = Some(after);
            *self = Self { needed: WARM_UP_AGAIN, reported, outliers, ..Self::default() };
            return Some(Shift { kind: ShiftKind::Step, before, after });
        }
        level.update(value);
        level.drift()
    }

    /// Adds a value of the warm-up. Its end reveals a further step, if the level is not the one
    /// that was reported.
    fn learn(&mut self, value: f64) -> Option<Shift> {
        *self.first.get_mut(self.count)? = value;
        self.count += 1;
        if self.count < self.needed {
            return None;
        }
        let outliers = self.outliers;
        let level = Level { outliers, ..Level::of(self.first.get_mut(..self.count)?)? };
        let before = self.reported.take();
        let least = LEAST_DRIFT.max(4.0 * libm::sqrt(level.variance));
        let after = level.mean;
        self.level = Some(level);
        let before = before.filter(|before| libm::fabs(after - before) > least)?;
        Some(Shift { kind: ShiftKind::Step, before, after })
    }
}

/// Sum of the residuals on one side since it was 0.
#[derive(Clone, Copy, Debug, Default)]
struct Excursion {
    sum: f64,
    outliers: u32,
}

impl Excursion {
    /// Adds a residual, and returns the number of outliers of an excursion that it ended.
    fn add(&mut self, residual: f64) -> u32 {
        self.sum += residual.min(CLIP) - ALLOWANCE;
        self.outliers += u32::from(residual >= CLIP);
        if self.sum > 0.0 {
            return 0;
        }
        core::mem::take(self).outliers
    }
}

/// Level of a stream after its warm-up.
#[derive(Clone, Debug)]
struct Level {
    mean: f64,
    variance: f64,
    /// Number of values that the mean stands for, up to [`MEMORY`].
    values: f64,
    /// Mean that was settled or reported last.
    anchor: Option<f64>,
    above: Excursion,
    below: Excursion,
    /// Value before the latest.
    previous: f64,
    /// Share of values that were outliers.
    outliers: f64,
}

impl Level {
    /// Level of the values of a warm-up, which are sorted: mean and deviation of those within a few
    /// deviations of the median.
    fn of(values: &mut [f64]) -> Option<Self> {
        let middle = |values: &mut [f64]| {
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let previous = *values.last()?;
        let median = middle(values)?;
        let mut distances = [0.0; WARM_UP];
        let distances = distances.get_mut(..values.len())?;
        for (distance, value) in distances.iter_mut().zip(&*values) {
            *distance = libm::fabs(value - median);
        }
        // Of the normal distribution, 1.4826 median distances are one deviation.
        let far = INNER * (1.4826 * middle(distances)?).max(LEAST_DEVIATION);
        let mut moments = Moments::default();
        for value in values.iter().filter(|value| libm::fabs(**value - median) <= far) {
            moments.add(*value);
        }
        let variance = moments.variance().unwrap_or(0.0).max(LEAST_DEVIATION * LEAST_DEVIATION);
        Some(Self {
            mean: moments.mean()?,
            variance,
            values: values.len() as f64,
            anchor: None,
            above: Excursion::default(),
            below: Excursion::default(),
            previous,
            outliers: 0.0,
        })
    }

    /// Sum that is a step: more than outliers reach together at their frequency.
    fn threshold(&self) -> f64 {
        let share = NEAR * self.outliers;
        let (mut probability, mut in_a_row) = (1.0 / NEAR, 0);
        while in_a_row < FEWEST_IN_A_ROW || probability > FALSE_ALARM && in_a_row < MOST_IN_A_ROW {
            probability *= share;
            in_a_row += 1;
        }
        (f64::from(in_a_row) - 0.25) * (CLIP - ALLOWANCE)
    }

    /// Level after a step, if `value` completes one.
    fn step(&mut self, value: f64) -> Option<f64> {
        let residual = (value - self.mean) / libm::sqrt(self.variance);
        let ended = self.above.add(residual) + self.below.add(-residual);
        let threshold = self.threshold();
        if self.above.sum > threshold || self.below.sum > threshold {
            return Some(self.after(value));
        }
        self.outliers += (f64::from(ended) - self.outliers) / OUTLIER_MEMORY;
        self.previous = value;
        None
    }

    /// Level after a step that `value` completes: the mean of the last two values, or the value alone
    /// where the one before is nearer to the level before.
    const fn after(&self, value: f64) -> f64 {
        let previous = self.previous;
        let is_new = (value - previous).abs() < (previous - self.mean).abs();
        if is_new { f64::midpoint(previous, value) } else { value }
    }

    /// Forgets older values for this one.
    fn update(&mut self, value: f64) {
        let deviation = libm::sqrt(self.variance);
        let residual = (value - self.mean).clamp(-INNER * deviation, INNER * deviation);
        self.values = (self.values + 1.0).min(MEMORY);
        self.mean += residual / self.values;
        self.variance += (residual * residual - self.variance) / self.values;
        self.variance = self.variance.max(LEAST_DEVIATION * LEAST_DEVIATION);
    }

    /// Drift of the mean since it was settled or reported.
    fn drift(&mut self) -> Option<Shift> {
        if self.values < MEMORY {
            return None;
        }
        let before = *self.anchor.get_or_insert(self.mean);
        let least = LEAST_DRIFT.max(libm::sqrt(self.variance));
        if libm::fabs(self.mean - before) <= least {
            return None;
        }
        self.anchor = Some(self.mean);
        Some(Shift { kind: ShiftKind::Drift, before, after: self.mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::vec::Vec;

    /// Intervals of 5 s in a day.
    const DAY: usize = 17_280;

    /// Days to simulate: 25 times as many with `tests/run-all --long`.
    fn days() -> u64 {
        if std::env::var_os("LOGGAP_LONG").is_some() { 500 } else { 20 }
    }

    /// Noise of an interval's value.
    #[derive(Clone, Copy, Debug)]
    enum Noise {
        Normal,
        /// Median of five rounds, of which 4% take up to several times as long.
        Rounds,
        /// 2% of the intervals themselves take up to several times as long.
        Intervals,
    }

    const NOISES: [Noise; 3] = [Noise::Normal, Noise::Rounds, Noise::Intervals];

    impl Noise {
        fn draw(self, random: &mut Random) -> f64 {
            let tailed = |share, random: &mut Random| {
                let late = if random.chance(share) { random.exponential() } else { 0.0 };
                0.03 * random.normal() + late
            };
            match self {
                Self::Normal => 0.03 * random.normal(),
                Self::Intervals => tailed(0.02, random),
                Self::Rounds => {
                    let mut rounds: [f64; 5] = core::array::from_fn(|_| tailed(0.04, random));
                    rounds.sort_by(f64::total_cmp);
                    rounds[2]
                }
            }
        }
    }

    #[test]
    fn stationary_noise_raises_at_most_one_alarm_a_day_in_two_streams() {
        for noise in NOISES {
            let alarms = |day| {
                let (mut random, mut detector) =
                    (Random::stream(1, day), SequentialDetector::default());
                (0..DAY).filter_map(|_| detector.add(noise.draw(&mut random))).count()
            };
            let count: usize = (0..2 * days()).map(alarms).sum();
            std::println!("{noise:?}: {count} alarms of two streams in {} days", days());
            assert!(count as u64 <= days(), "{noise:?}: {count}");
        }
    }

    /// Number of values until a step by a factor of two is reported.
    fn told_after(noise: Noise, seed: u64, sign: f64) -> Option<usize> {
        let (mut random, mut detector) = (Random::stream(2, seed), SequentialDetector::default());
        for _ in 0..300 {
            detector.add(noise.draw(&mut random));
        }
        (1..100).find(|_| {
            let value = sign * core::f64::consts::LN_2 + noise.draw(&mut random);
            let shift = detector.add(value);
            shift.is_some_and(|shift| sign * (shift.after - shift.before) > 0.4)
        })
    }

    #[test]
    fn a_halved_bandwidth_is_told_by_the_second_interval() {
        for (noise, enough) in [(Noise::Normal, 398), (Noise::Rounds, 388)] {
            for sign in [1.0, -1.0] {
                let told =
                    (0..400).filter(|&seed| matches!(told_after(noise, seed, sign), Some(1..=2)));
                let told = told.count();
                assert!(told >= enough, "{noise:?} {sign}: {told} of 400");
            }
        }
        // Outliers of intervals make steps wait for further ones.
        let latest = (0..400).filter_map(|seed| told_after(Noise::Intervals, seed, 1.0)).max();
        assert!(latest.is_some_and(|latest| latest <= 8), "{latest:?}");
    }

    /// Shifts of a stream whose level is `level` of the interval.
    fn shifts(count: usize, level: impl Fn(usize) -> f64) -> Vec<(usize, Shift)> {
        let (mut random, mut detector) = (Random::new(3), SequentialDetector::default());
        let mut add = |at| {
            let shift = detector.add(level(at) + Noise::Normal.draw(&mut random))?;
            Some((at, shift))
        };
        (0..count).filter_map(&mut add).collect()
    }

    #[test]
    fn a_step_is_told_once_and_one_back_again() {
        let found = shifts(900, |at| if (300..600).contains(&at) { 0.3 } else { 0.0 });
        let steps: Vec<_> = found.iter().map(|(at, shift)| (*at, shift.kind)).collect();
        assert_eq!(steps, [(301, ShiftKind::Step), (601, ShiftKind::Step)], "{found:?}");
        assert!((found[0].1.after - 0.3).abs() < 0.1 && (found[1].1.before - 0.3).abs() < 0.03);
        // A step back during the warm-up is reported at its end.
        let short = shifts(600, |at| if (300..305).contains(&at) { 0.7 } else { 0.0 });
        assert_eq!(short.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [301, 313], "{short:?}");
    }

    /// Here the cut of a link falls at the end of an interval, whose value is nearly that of before.
    #[test]
    fn a_value_of_the_level_before_is_no_part_of_the_level_after() {
        let mut detector = SequentialDetector::default();
        let shifts: [_; 103] = core::array::from_fn(|at| {
            detector.add(match at {
                ..100 => 0.0,
                100 => 0.055,
                _ => 0.7,
            })
        });
        let step = shifts.iter().flatten().next().expect("a step");
        assert!(step.before < 0.01 && (step.after - 0.7).abs() < 0.01, "{shifts:?}");
    }

    #[test]
    fn slow_drift_is_told_with_its_extent() {
        let found = shifts(2 * DAY, |at| 0.3 * at as f64 / (2 * DAY) as f64);
        assert!((2..=6).contains(&found.len()), "{found:?}");
        assert!(found.iter().all(|(_, shift)| shift.kind == ShiftKind::Drift), "{found:?}");
        assert!(found.iter().all(|(_, shift)| shift.after > shift.before + 0.05), "{found:?}");
    }

    #[test]
    fn the_time_to_tell_follows_the_noise() {
        let settled = |deviation: f64| {
            let (mut random, mut detector) = (Random::new(4), SequentialDetector::default());
            assert_eq!((detector.deviation(), detector.values_to_tell(1.0)), (None, None));
            for _ in 0..400 {
                assert_eq!(detector.add(deviation * random.normal()), None);
            }
            assert_eq!(detector.add(f64::NAN), None);
            detector
        };
        let to_tell = |deviation| settled(deviation).values_to_tell(core::f64::consts::LN_2);
        assert_eq!([to_tell(0.0), to_tell(0.1)], [Some(2); 2]);
        assert!(to_tell(0.25).is_some_and(|values| (4..8).contains(&values)));
        assert_eq!(to_tell(1.0), None);
        assert!((settled(0.1).deviation().unwrap() - 0.1).abs() < 0.02);
    }
}
