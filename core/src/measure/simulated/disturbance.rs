//! Disturbances of a simulated link that preserve the median.
//!
//! [`RoundNoise`] acts on whole rounds: all durations from the first send of a round to the next
//! round are multiplied by a factor. Its median over rounds is 1, and every time of a round (Eq. 1
//! to 4) is proportional to it, so the median of any experiment, and every parameter, is exactly
//! the truth's.
//!
//! - [`RoundNoise::skew`], [`RoundNoise::drift`] and [`RoundNoise::correlation`] are symmetric
//!   about 1 in the logarithm, alone and together, if drift covers whole periods.
//! - [`RoundNoise::two_speeds`] is exact alone and with `skew`: slow rounds are taken from those
//!   above the median. With drift or correlation the median is larger by up to `share` of their
//!   deviation.
//! - [`RoundNoise::bursts`] take a share `q` of the time; the median of all rounds is then the
//!   quantile `1/(2 − 2q)` of the undisturbed ones: larger by `1.25·q` of their deviation.

use crate::random::Random;
use crate::units::Picos;

/// Disturbances of single calls and messages; those set to 0 are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Disturbance {
    /// Seed of every random choice.
    pub seed: u64,
    /// Standard deviation of each send, travel and receive, as a fraction of
    /// its duration.
    pub noise: f64,
    /// Probability that a round is an outlier.
    pub outliers: f64,
    /// Probability that a message of either direction is lost.
    pub losses: f64,
}

/// Disturbances of whole rounds; see the module's documentation. Those set to 0 are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RoundNoise {
    /// Lognormal rounds: standard deviation of the factor's logarithm.
    pub skew: f64,
    /// Rounds of two speeds.
    pub two_speeds: TwoSpeeds,
    /// A machine that becomes slower and faster over time.
    pub drift: Drift,
    /// Correlation of a round with those shortly before.
    pub correlation: Correlation,
    /// Periods in which everything is slow.
    pub bursts: Bursts,
}

/// Some rounds, independently of each other, are slower than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TwoSpeeds {
    /// Share of the slow rounds, below one half.
    pub share: f64,
    /// Ratio of their duration to that of others.
    pub factor: f64,
}

/// Sinusoidal drift with a phase drawn from the seed: `exp(amplitude·sin(2π(t/period + phase)))`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Drift {
    /// Largest logarithm of the factor.
    pub amplitude: f64,
    /// Time from one maximum to the next.
    pub period: Picos,
}

/// The logarithm of the factor is a stationary normal process with correlation
/// `exp(−distance/time_constant)` over time (Ornstein and Uhlenbeck; AR(1) for equidistant rounds).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Correlation {
    /// Standard deviation of the factor's logarithm.
    pub deviation: f64,
    /// Distance in time at which the correlation has fallen to 1/e.
    pub time_constant: Picos,
}

/// Bursts of a fixed length in which everything takes `factor` times as long, with exponentially
/// distributed times between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bursts {
    /// Mean time from the end of a burst to the beginning of the next.
    pub interval: Picos,
    /// Length of a burst; 0: there are none.
    pub length: Picos,
    /// Ratio of durations within a burst to others.
    pub factor: f64,
}

/// Times in which an end is preempted, with exponentially distributed times between them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Preemptions {
    /// Mean time from the end of one to the beginning of the next.
    pub interval: Picos,
    /// Length of each; 0: there are none.
    pub length: Picos,
    /// True if [`Clock::interruptions`](crate::measure::Clock::interruptions) counts them.
    pub told: bool,
}

/// State of a disturbance over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) disturbance: Disturbance,
    pub(super) rounds: RoundNoise,
    random: Random,
    /// Initial phase of the drift, 0 to 1 periods.
    phase: f64,
    /// Time and value, in standard deviations, of the correlated process at its latest step.
    correlated: Option<(u64, f64)>,
    /// Start of the latest burst; `None` before it was drawn.
    burst: Option<u64>,
}

impl Process {
    pub(super) fn new(disturbance: Disturbance) -> Self {
        // A stream of its own, so that drift does not change other draws.
        let phase = Random::stream(disturbance.seed, 1).unit();
        let random = Random::new(disturbance.seed);
        let rounds = RoundNoise::default();
        Self { disturbance, rounds, random, phase, correlated: None, burst: None }
    }

    /// Factor of a round that begins at `now`, which never decreases.
    pub(super) fn round_factor(&mut self, now: u64) -> f64 {
        self.own_factor() * self.drift_factor(now) * self.correlated_factor(now) * self.burst(now)
    }

    /// Factor of a round due to skew and two speeds.
    fn own_factor(&mut self) -> f64 {
        let RoundNoise { skew, two_speeds: TwoSpeeds { share, factor }, .. } = self.rounds;
        let slow = chance(&mut self.random, share);
        if skew <= 0.0 {
            return if slow { factor } else { 1.0 };
        }
        let deviation = self.random.normal();
        if share <= 0.0 {
            return libm::exp(skew * deviation);
        }
        // Half of all rounds are above 1: every slow one, and a share of the others.
        let above = slow || chance(&mut self.random, (0.5 - share) / (1.0 - share));
        let deviation = if above { deviation.abs() } else { -deviation.abs() };
        libm::exp(skew * deviation) * if slow { factor } else { 1.0 }
    }

    /// Factor of the drift at `now`.
    pub(super) fn drift_factor(&self, now: u64) -> f64 {
        let Drift { amplitude, period } = self.rounds.drift;
        if amplitude <= 0.0 || period.0 == 0 {
            return 1.0;
        }
        let turns = (now % period.0) as f64 / period.0 as f64 + self.phase;
        libm::exp(amplitude * libm::sin(2.0 * core::f64::consts::PI * turns))
    }

    fn correlated_factor(&mut self, now: u64) -> f64 {
        let Correlation { deviation, time_constant } = self.rounds.correlation;
        if deviation <= 0.0 {
            return 1.0;
        }
        let fresh = self.random.normal();
        let value = self.correlated.map_or(fresh, |(then, value)| {
            let distance = now.saturating_sub(then) as f64;
            let kept = libm::exp(-distance / time_constant.0.max(1) as f64);
            kept * value + libm::sqrt(1.0 - kept * kept) * fresh
        });
        self.correlated = Some((now, value));
        libm::exp(deviation * value)
    }

    fn burst(&mut self, now: u64) -> f64 {
        let Bursts { interval, length, factor } = self.rounds.bursts;
        if length.0 == 0 {
            return 1.0;
        }
        let mut begins = match self.burst {
            Some(begins) => begins,
            None => pause(&mut self.random, interval),
        };
        // Bursts between rounds are drawn, too.
        while begins.saturating_add(length.0) <= now {
            begins = begins
                .saturating_add(length.0)
                .saturating_add(pause(&mut self.random, interval).max(1));
        }
        self.burst = Some(begins);
        if begins <= now { factor } else { 1.0 }
    }

    /// `exact` with relative normal noise, at least a tenth of it.
    pub(super) fn around(&mut self, exact: u64) -> u64 {
        let noise = self.disturbance.noise;
        if noise <= 0.0 {
            return exact;
        }
        let factor = (1.0 + noise * self.random.normal()).max(0.1);
        times(exact, factor)
    }

    /// Exponentially distributed time with this mean, in ps.
    pub(super) fn pause(&mut self, mean: Picos) -> u64 {
        pause(&mut self.random, mean)
    }

    /// True if a message is lost.
    pub(super) fn loses(&mut self) -> bool {
        chance(&mut self.random, self.disturbance.losses)
    }

    /// Factor of an outlier's travel and receive; 1 for other rounds.
    pub(super) fn outlier(&mut self) -> f64 {
        let hit = chance(&mut self.random, self.disturbance.outliers);
        if hit { 10.0 + 90.0 * self.random.unit() } else { 1.0 }
    }
}

/// True with the given probability; draws no number if that is 0.
fn chance(random: &mut Random, probability: f64) -> bool {
    probability > 0.0 && random.unit() < probability
}

/// Exponentially distributed time with this mean, in ps.
fn pause(random: &mut Random, mean: Picos) -> u64 {
    times(mean.0, random.exponential())
}

/// `factor` times `picos`, rounded to the nearest.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "disturbed times are inexact anyway, and the cast saturates"
)]
pub(super) fn times(picos: u64, factor: f64) -> u64 {
    libm::round(picos as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const MILLI: u64 = 1_000_000_000;

    fn process(seed: u64, rounds: RoundNoise) -> Process {
        Process { rounds, ..Process::new(Disturbance { seed, ..Disturbance::default() }) }
    }

    /// Factors of rounds that are 0.1 ms apart, ascending.
    fn factors(noise: RoundNoise, rounds: u64) -> Vec<f64> {
        let mut process = process(11, noise);
        let mut factors: Vec<f64> =
            (0..rounds).map(|round| process.round_factor(round * MILLI / 10)).collect();
        factors.sort_by(f64::total_cmp);
        factors
    }

    /// Quantile of `factors`, with the share in units of 1/100,000.
    fn quantile(factors: &[f64], share: usize) -> f64 {
        factors[factors.len() * share / 100_000]
    }

    fn count(factors: &[f64], value: f64) -> usize {
        factors.iter().filter(|factor| (**factor - value).abs() < 1e-12).count()
    }

    #[test]
    fn without_a_disturbance_the_factor_is_one() {
        assert_eq!(count(&factors(RoundNoise::default(), 100), 1.0), 100);
    }

    #[test]
    fn every_kind_of_noise_has_a_median_of_one() {
        let skew = RoundNoise { skew: 0.2, ..RoundNoise::default() };
        let two = TwoSpeeds { share: 0.3, factor: 1.25 };
        let drift = Drift { amplitude: 0.2, period: Picos(700 * MILLI) };
        let correlation = Correlation { deviation: 0.2, time_constant: Picos(MILLI) };
        let kinds = [
            skew,
            RoundNoise { two_speeds: two, ..skew },
            RoundNoise { drift, ..skew },
            RoundNoise { correlation, ..skew },
            RoundNoise { drift, correlation, ..skew },
        ];
        for kind in kinds {
            let median = quantile(&factors(kind, 350_000), 50_000);
            assert!((median - 1.0).abs() < 0.01, "{median} of {kind:?}");
        }
    }

    #[test]
    fn lognormal_rounds_have_the_quantiles_of_a_lognormal_distribution() {
        let factors = factors(RoundNoise { skew: 0.5, ..RoundNoise::default() }, 100_000);
        // exp(±0.5) encloses one standard deviation on either side, 68.27%.
        for (share, expected) in [(15_866, 0.606_5), (84_134, 1.648_7)] {
            let found = quantile(&factors, share);
            assert!((found / expected - 1.0).abs() < 0.02, "{found}, truly {expected}");
        }
    }

    #[test]
    fn a_share_of_the_rounds_is_slow() {
        let two_speeds = TwoSpeeds { share: 0.3, factor: 2.0 };
        let plain = factors(RoundNoise { two_speeds, ..RoundNoise::default() }, 10_000);
        let slow = count(&plain, 2.0);
        assert!((2_800..3_200).contains(&slow), "{slow}");
        assert_eq!(count(&plain, 1.0), 10_000 - slow);
    }

    #[test]
    fn a_drift_without_a_period_is_none() {
        let drift = Drift { amplitude: 0.1, period: Picos::ZERO };
        let process = process(5, RoundNoise { drift, ..RoundNoise::default() });
        assert!((process.drift_factor(7) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn drift_returns_after_its_period() {
        let drift = Drift { amplitude: 0.1, period: Picos(2_000 * MILLI) };
        let process = process(5, RoundNoise { drift, ..RoundNoise::default() });
        let at = |millis: u64| process.drift_factor(millis * MILLI);
        for millis in [0, 123, 900, 1_999] {
            assert!((at(millis) - at(millis + 2_000)).abs() < 1e-9);
            // After half a period the factor is the reciprocal.
            assert!((at(millis) * at(millis + 1_000) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn correlation_falls_to_one_over_e_within_the_time_constant() {
        let correlation = Correlation { deviation: 0.1, time_constant: Picos(10 * MILLI) };
        let mut process = process(9, RoundNoise { correlation, ..RoundNoise::default() });
        let logs: Vec<f64> =
            (0..200_000).map(|round| process.round_factor(round * MILLI).ln() / 0.1).collect();
        let lagged = |lag: usize| {
            let pairs = logs.len() - lag;
            (0..pairs).map(|at| logs[at] * logs[at + lag]).sum::<f64>() / pairs as f64
        };
        assert!((lagged(0) - 1.0).abs() < 0.05, "{}", lagged(0));
        assert!((lagged(10) - (-1.0_f64).exp()).abs() < 0.05, "{}", lagged(10));
        assert!(lagged(100).abs() < 0.05, "{}", lagged(100));
    }

    #[test]
    fn bursts_take_their_share_of_the_time() {
        let bursts =
            Bursts { interval: Picos(190 * MILLI), length: Picos(10 * MILLI), factor: 5.0 };
        let factors = factors(RoundNoise { bursts, ..RoundNoise::default() }, 1_000_000);
        let slow = count(&factors, 5.0);
        assert!((43_000..57_000).contains(&slow), "{slow} of a million, 5% expected");
        assert_eq!(count(&factors, 1.0), 1_000_000 - slow);
    }
}
