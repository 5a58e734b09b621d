//! Variation between runs, from the launches of a run.
//!
//! The values of another run differ for two reasons. Launches differ, and a run has a few of them;
//! and the machine changes its speed for longer than a run. For a group of sizes:
//!
//! 1. The level of launch `k` is `ℓₖ = median over s of ln(vₖ(s)/mean v(s))`, which averages the
//!    noise of single sizes out.
//! 2. The variance of the levels is Winsorised, since one slow launch hardly moves the run's
//!    medians: the outermost levels count as their neighbours, and
//!    `s² = s_w²/(1 − 2/K)²` with `K − 3` degrees of freedom (Tukey and McLaughlin, "Less
//!    Vulnerable Confidence and Significance Procedures", Sankhyā A 25, 1963).
//! 3. It is drawn towards a prior of 4 to 6 degrees of freedom: standard deviations of 11% of the part
//!    of the time that the machines take, at most `4(o_s + o_r) + 20 µs`, or of 7% where the distance
//!    of the processors is known; of 2% of the rest; of 15% of overheads.
//! 4. The variance of a run is `s²·(1/K + SLOW)`. `s²` counts at most as 10 degrees of freedom, so that
//!    the scatter of many runs decides over it.
//!
//! Measured on a shared virtual machine over unix and tcp, 12 default runs each: launches vary by 5
//! to 12% (o_r of tcp 22%), runs by 0.36 of that variance on average, from 0.10 (gap of tcp) to 0.97
//! (half round trip of tcp from 1 KiB on).

use std::collections::BTreeMap;

use loggap_core::measure::SizeRow;
use loggap_core::model::Curve;

use crate::drive::next::Spread;
use crate::profile::{ProfileDocument, SizeRecord, confidence};

/// Weight of the prior in degrees of freedom, where the wire and where the machines take all of the
/// time.
const WIRE_DEGREES: f64 = 4.0;
const MACHINE_DEGREES: f64 = 6.0;
/// Most degrees of freedom that launches and prior have.
const MOST_DEGREES: u32 = 10;
/// Prior: relative standard deviations between launches of overheads, of the machines' part of other
/// times, and of the rest.
const OVERHEAD: f64 = 0.15;
const MACHINE: f64 = 0.11;
/// The machines' part where the distance of the processors is known: moves are distinguished then.
const PLACED_MACHINE: f64 = 0.07;
const WIRE: f64 = 0.02;
/// Variance of states that outlast a run, as a part of the variance between launches.
const SLOW: f64 = 1.0 / 6.0;
/// Time after which another run is taken to be independent, seconds.
pub(super) const APART_S: u64 = 60;

/// Variances of the logarithm of a group's values between launches, of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Launches {
    prior: f64,
    prior_degrees: f64,
    observed: f64,
    /// Degrees of freedom of the observed variance.
    degrees: f64,
}

impl Launches {
    /// Variances of `curve` over the `sizes` of a run, in ascending order.
    fn of(profile: &ProfileDocument, curve: Curve, sizes: &[u64]) -> Option<Self> {
        let records: Vec<&SizeRecord> =
            sizes.iter().filter_map(|size| record(profile, *size)).collect();
        let machine = machine_part(&records.get(records.len() / 2)?.row, curve)?;
        let mut levels = levels(&records, curve);
        #[allow(clippy::cast_precision_loss, reason = "few launches")]
        let degrees = levels.len().saturating_sub(3) as f64;
        Some(Self {
            prior: if is_overhead(curve) {
                OVERHEAD.powi(2)
            } else {
                (machine_deviation(profile) * machine).powi(2) + (WIRE * (1.0 - machine)).powi(2)
            },
            prior_degrees: WIRE_DEGREES + (MACHINE_DEGREES - WIRE_DEGREES) * machine,
            observed: if degrees > 0.0 { winsorised(&mut levels) } else { 0.0 },
            degrees,
        })
    }
}

/// Prior of the machines' part for a run.
const fn machine_deviation(profile: &ProfileDocument) -> f64 {
    if profile.processor_distance_s.is_some() { PLACED_MACHINE } else { MACHINE }
}

/// Variance of the logarithm of a group's values between launches, with its degrees of freedom, from
/// all `profiles`. `None` if one lacks the group.
pub(super) fn between_launches<'a>(
    profiles: impl Iterator<Item = &'a ProfileDocument>,
    curve: Curve,
    sizes: &[u64],
) -> Option<(f64, u32)> {
    let all: Vec<Launches> =
        profiles.map(|profile| Launches::of(profile, curve, sizes)).collect::<Option<_>>()?;
    let mean = |of: fn(&Launches) -> f64| Spread::of(all.iter().map(of)).mean;
    let (prior, weight) = (mean(|run| run.prior), mean(|run| run.prior_degrees));
    let observed: f64 = all.iter().map(|run| run.degrees * run.observed).sum();
    let degrees = weight + all.iter().map(|run| run.degrees).sum::<f64>();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, above 0")]
    let whole = degrees.round().min(f64::from(MOST_DEGREES)) as u32;
    Some(((weight * prior + observed) / degrees, whole))
}

/// Variance of a run over that between its launches. Launches over MPI are sessions of the same
/// processes and count as one.
pub(super) fn share_of_launches(profile: &ProfileDocument) -> f64 {
    let launches = if profile.host.link.mpi.is_some() { 1 } else { profile.launches.max(1) };
    1.0 / f64::from(launches) + SLOW
}

/// Row of `size`.
pub(super) fn record(profile: &ProfileDocument, size: u64) -> Option<&SizeRecord> {
    profile.sizes.iter().find(|record| record.row.size.0 == size)
}

/// Logarithm of the value of `curve` in seconds, and the standard deviation of its sampling noise;
/// `None` if the value may be 0.
pub(super) fn logarithm(profile: &ProfileDocument, curve: Curve, size: u64) -> Option<(f64, f64)> {
    let estimate = record(profile, size)?.row.value(curve)?;
    let [value, low, high] =
        [estimate.value, estimate.low, estimate.high].map(|time| time.seconds());
    let half = (high / value).ln().max((value / low).ln());
    (low > 0.0).then(|| (value.ln(), half / confidence(profile).normal()))
}

/// Groups `values`, one of each run, by the minute in which their runs began, from the first on;
/// `started` in seconds.
pub(super) fn by_minute<T>(
    started: impl Iterator<Item = u64> + Clone,
    values: impl Iterator<Item = T>,
) -> impl Iterator<Item = Vec<T>> {
    let begin = started.clone().min().unwrap_or(0);
    let mut minutes = BTreeMap::<u64, Vec<T>>::new();
    for (at, value) in started.zip(values) {
        minutes.entry((at - begin) / APART_S).or_default().push(value);
    }
    minutes.into_values()
}

/// Effective number of independent runs in a minute that has `count`: half of the variance of a run
/// is taken to last for a minute.
#[allow(clippy::cast_precision_loss, reason = "few runs")]
pub(super) fn independent(count: usize) -> f64 {
    2.0 * count as f64 / (count + 1) as f64
}

/// True for the curves of a processor's time.
pub(crate) const fn is_overhead(curve: Curve) -> bool {
    matches!(curve, Curve::SendOverhead | Curve::RecvOverhead)
}

/// Largest part of a time on the link that machines take, up to 1.
fn machine_part(row: &SizeRow, curve: Curve) -> Option<f64> {
    const WAKE_UPS_S: f64 = 20e-6;
    /// Overhead that was not measured.
    const UNKNOWN_S: f64 = 5e-6;
    let seconds = |curve| Some(row.value(curve)?.value.seconds());
    let value = seconds(curve)?;
    let overhead = |curve| seconds(curve).unwrap_or(UNKNOWN_S).max(0.0);
    let both = overhead(Curve::SendOverhead) + overhead(Curve::RecvOverhead);
    Some(((4.0 * both + WAKE_UPS_S) / value).min(1.0))
}

/// Level of each launch; empty if none is known.
fn levels(records: &[&SizeRecord], curve: Curve) -> Vec<f64> {
    let mut by_launch: Vec<Vec<f64>> = Vec::new();
    for values in records.iter().filter_map(|record| record.launches.get(&curve)) {
        if values.iter().any(|value| *value <= 0.0) {
            continue;
        }
        let mean = Spread::of(values.iter().map(|value| value.ln())).mean;
        by_launch.resize(by_launch.len().max(values.len()), vec![]);
        for (launch, value) in by_launch.iter_mut().zip(values) {
            launch.push(value.ln() - mean);
        }
    }
    by_launch.iter_mut().filter_map(|values| median(values)).collect()
}

/// Variance of at least four values, without the influence of the outermost ones.
fn winsorised(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    if let [first, second, .., last_but_one, last] = values {
        (*first, *last) = (*second, *last_but_one);
    }
    #[allow(clippy::cast_precision_loss, reason = "few launches")]
    let inner = 1.0 - 2.0 / values.len() as f64;
    Spread::of(values.iter().copied()).variance / inner.powi(2)
}

/// Middle value, the lower one of two; `None` if there are none.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MpiLibrary;
    use loggap_core::model::Estimate;
    use loggap_core::random::Random;
    use loggap_core::units::{Bytes, SignedPicos};

    const SIZES: [u64; 3] = [1, 2, 4];

    /// A run with half round trips of `half_rtt_us` microseconds, overheads of 1 µs, and launches
    /// at these levels.
    fn run(half_rtt_us: i64, levels: &[f64]) -> ProfileDocument {
        let micros = |count: i64| Some(Estimate::exact(SignedPicos(count * 1_000_000)));
        let sizes = SIZES.map(|size| {
            let values = levels.iter().map(|level| half_rtt_us as f64 * 1e-6 * level.exp());
            SizeRecord {
                launches: BTreeMap::from([(Curve::HalfRtt, values.collect())]),
                ..SizeRecord::from(SizeRow {
                    size: Bytes(size),
                    half_rtt: micros(half_rtt_us),
                    send_overhead: micros(1),
                    recv_overhead: micros(1),
                    ..SizeRow::default()
                })
            }
        });
        let launches = u32::try_from(levels.len()).unwrap();
        ProfileDocument { sizes: sizes.to_vec(), launches, ..ProfileDocument::default() }
    }

    fn variance(half_rtt_us: i64, levels: &[&[f64]]) -> (f64, u32) {
        let runs: Vec<_> = levels.iter().map(|levels| run(half_rtt_us, levels)).collect();
        between_launches(runs.iter(), Curve::HalfRtt, &SIZES).unwrap()
    }

    #[test]
    fn the_variance_is_that_of_the_formulas() {
        // Winsorised to −0.1, −0.1, 0, 0.1, 0.1: variance 0.01.
        let varying = [-0.9, -0.1, 0.0, 0.1, 0.5];
        let (found, degrees) = variance(20, &[&varying, &[0.0; 5]]);
        assert!((found - (6.0 * 0.0121 + 2.0 * 0.01 / 0.36) / 10.0).abs() < 1e-12, "{found}");
        assert_eq!((degrees, variance(20, &[&[0.0; 5][..]; 9]).1), (10, 10));
        // Less where the distance of the processors is known.
        let mut placed = run(20, &[0.0; 3]);
        placed.processor_distance_s = Some(6e-8);
        let (found, _) =
            between_launches(std::iter::once(&placed), Curve::HalfRtt, &SIZES).unwrap();
        assert!((found - 0.07_f64.powi(2)).abs() < 1e-12, "{found}");
        // Of 280 µs the machines take at most 28.
        let (found, degrees) = variance(280, &[&[0.0; 3]]);
        assert!((found - (0.011_f64.powi(2) + 0.018_f64.powi(2))).abs() < 1e-12, "{found}");
        assert_eq!(degrees, 4);
        let (found, _) = variance(280, &[&[0.0; 5]]);
        let prior = 0.011_f64.powi(2) + 0.018_f64.powi(2);
        assert!((found - 4.2 * prior / 6.2).abs() < 1e-12, "{found}");
        assert_eq!(between_launches([run(20, &[])].iter(), Curve::Gap, &SIZES), None);
    }

    #[test]
    fn overheads_that_were_not_measured_count_as_a_few_microseconds() {
        let mut profile = run(280, &[]);
        for record in &mut profile.sizes {
            (record.row.send_overhead, record.row.recv_overhead) = (None, None);
        }
        let (found, _) = between_launches([profile].iter(), Curve::HalfRtt, &SIZES).unwrap();
        let machine: f64 = 60.0 / 280.0;
        let expected = (0.11 * machine).powi(2) + (0.02 * (1.0 - machine)).powi(2);
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    #[test]
    fn sessions_of_the_same_processes_are_one_launch() {
        let mut profile = run(20, &[0.0; 5]);
        assert!((share_of_launches(&profile) - (0.2 + 1.0 / 6.0)).abs() < 1e-12);
        profile.host.link.mpi = Some(MpiLibrary::default());
        assert!((share_of_launches(&profile) - (1.0 + 1.0 / 6.0)).abs() < 1e-12);
    }

    #[test]
    fn the_winsorised_variance_is_that_of_normal_values_and_one_outlier_hardly_moves_it() {
        let mut random = Random::new(3);
        for (count, tolerance) in [(5, 0.06), (8, 0.12), (16, 0.1)] {
            let mut mean = 0.0;
            for _ in 0..4_000 {
                let mut values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                mean += winsorised(&mut values) / 4_000.0;
            }
            assert!((mean - 1.0_f64).abs() < tolerance, "{count}: {mean}");
        }
        let with = |last| winsorised(&mut [-1.0, -0.5, 0.1, 0.6, last]);
        assert!((with(1e3) - with(1.0)).abs() < 1e-12);
    }

    #[test]
    fn runs_of_one_minute_are_little_more_than_one() {
        let of = |started: &[u64]| {
            by_minute(started.iter().copied(), started.iter().copied()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[64, 5, 65, 200, 124]), [vec![64, 5], vec![65, 124], vec![200]]);
        assert!(of(&[]).is_empty());
        for (count, expected) in [(1, 1.0), (2, 4.0 / 3.0), (3, 1.5)] {
            assert!((independent(count) - expected).abs() < 1e-12);
        }
    }
}
