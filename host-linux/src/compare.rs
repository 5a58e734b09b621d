//! Comparison of profiles: is a link slower than before?
//!
//! Each side has one profile or several of the same link. A curve (half round trip, overheads, gap)
//! is compared at each size that all profiles have measured. The logarithm of the ratio is
//! `d = mean ln(after) − mean ln(before)`, with the interval `d ± t·σ·√(1/K + 1/M)` for `K` and `M`
//! profiles. The variance `σ²` of the logarithm between runs has two sources:
//!
//! - Each profile predicts the next run within `value ± w` (`*_next_lo`, `*_next_hi`; the run's own
//!   interval if that is wider). From launches this is an interval for the difference of two runs,
//!   so `σ₀ = ln(1 + w)/(z·√2)`, where `z` is the normal quantile of the profile's confidence; from
//!   `H` earlier runs, for the difference to their mean, `√(1 + 1/(H + 1))` in place of `√2`. It
//!   has the weight of ten degrees of freedom.
//! - The profiles of one side differ, with `K + M − 2` degrees of freedom.
//!
//! Runs that began in the same minute share the state of the machine: they count as one run, with
//! their mean.
//!
//! The sizes of a range form up to two groups: fixed costs dominate where a curve is below twice its
//! first value, costs per byte elsewhere. A group has the median ratio of its sizes. `t` is Student's
//! quantile at 95%, corrected for the number of rows (Bonferroni). A change counts from the threshold
//! on; that of an overhead also has to be the same share of the half round trip.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use loggap_core::model::{Coefficient, Curve};
use loggap_core::stats::Confidence;
use serde::{Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::drive::next::{self, Spread};
use crate::drive::peer_name;
use crate::profile::{
    COLUMNS, ProfileDocument, RangeRecord, SizeRecord, Verdict, confidence, to_si,
};

/// Weight of the predictions of next runs, in degrees of freedom.
const PREDICTION_DEGREES: u32 = 10;
/// Time after which another run is taken to be independent, seconds.
const APART_S: u64 = 60;
/// Largest number of runs per side that is advised.
const MOST_RUNS: f64 = 1_000.0;

/// A profile with its file.
#[derive(Debug)]
pub struct ProfileFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Content.
    pub profile: ProfileDocument,
}

/// Profiles that cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A side without profiles.
    #[error("nothing to compare; name a profile from before and one from after")]
    Nothing,
    /// A profile without numbers.
    #[error("'{}' is unusable: {reason}; measure again", path.display())]
    Unusable {
        /// File of the profile.
        path: PathBuf,
        /// Reason in words.
        reason: String,
    },
    /// Two files with the same run.
    #[error("'{}' and '{}' are the same run; name each run once", first.display(), second.display())]
    SameRun {
        /// File named first.
        first: PathBuf,
        /// File named later.
        second: PathBuf,
    },
    /// Profiles of different kinds.
    #[error("'{}' has {property} {value}, '{}' has {other_value}; compare what was measured alike", path.display(), other_path.display())]
    Kinds {
        /// Property that differs: transport, method or way of waiting.
        property: &'static str,
        /// Its value in the first profile.
        value: String,
        /// Its value in the other profile.
        other_value: String,
        /// File of the first profile.
        path: PathBuf,
        /// File of the other profile.
        other_path: PathBuf,
    },
    /// Profiles without a common size.
    #[error("no size was measured in all profiles; measure with the same -s")]
    NoCommonSize,
}

/// Outcome of a comparison at the threshold.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The interval of the ratio lies within the threshold.
    Same,
    /// The ratio exceeds the threshold, and its interval 1.
    Slower,
    /// The ratio is below the threshold, and its interval below 1.
    Faster,
    /// The interval is too wide.
    Unknown,
}

/// Change of a curve at a size, or over a group of sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveChange {
    /// Curve: `half_rtt`, `gap`, `send_overhead` or `recv_overhead`.
    #[serde(rename = "parameter", serialize_with = "key")]
    pub curve: Curve,
    /// First size, bytes.
    pub first_bytes: u64,
    /// Last size, bytes.
    pub last_bytes: u64,
    /// Size of the values, that of the median ratio, bytes.
    pub at_bytes: u64,
    /// Geometric mean of the values before, seconds.
    pub before_s: f64,
    /// Geometric mean of the values after, seconds.
    pub after_s: f64,
    /// Ratio of the value after to the value before.
    pub ratio: f64,
    /// Lower end of its interval.
    pub ratio_lo: f64,
    /// Upper end of its interval.
    pub ratio_hi: f64,
    /// Outcome at the threshold.
    pub verdict: Outcome,
    /// Runs per side, a minute apart, that would narrow the interval to the threshold; `None` if the
    /// outcome is known, or above 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn key<S: Serializer>(curve: &Curve, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(curve.parameter().key())
}

/// Property of machine, link or protocols that differs between the sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnvironmentChange {
    /// Name as in a profile, such as `host.link.mtu_bytes`.
    pub property: String,
    /// Values before, each once.
    pub before: Vec<Value>,
    /// Values after, each once.
    pub after: Vec<Value>,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `Slower` if any parameter is, else `Faster` if any is, else `Same` if all are.
    pub verdict: Outcome,
    /// Smallest relative change that counts, a fraction.
    pub threshold: f64,
    /// Number of sizes that any profile has measured.
    pub sizes_measured: usize,
    /// Number of sizes that all profiles have measured.
    pub sizes_compared: usize,
    /// Curves by range and group of sizes.
    pub parameters: Vec<CurveChange>,
    /// Curves by size.
    pub sizes: Vec<CurveChange>,
    /// Properties that differ, those that most often explain a slow-down first.
    pub environment: Vec<EnvironmentChange>,
}

/// Compares the profiles `after` with those from `before`. The ranges are those of the first
/// profile. Relative changes below `threshold` do not count.
///
/// # Errors
///
/// [`CompareError`] names the profiles that were not measured alike.
pub fn compare(
    before: &[ProfileFile],
    after: &[ProfileFile],
    threshold: f64,
) -> Result<Comparison, CompareError> {
    let first = checked(before, after)?;
    let sides = Sides { before, after };
    let [measured, common] = sides.sizes();
    let (mut at_sizes, mut of_groups) = (Vec::new(), Vec::new());
    for curve in COLUMNS {
        for record in &first.profile.ranges {
            let range = record.range.first.0..=record.range.last.0;
            let within = common.iter().filter(|size| range.contains(size));
            let ratios: Vec<LogRatio> =
                within.filter_map(|size| sides.log_ratio(curve, *size)).collect();
            let twice = ratios.first().map_or(f64::INFINITY, |first| first.log_before + 2_f64.ln());
            let split = ratios.partition_point(|ratio| ratio.log_before < twice);
            for group in [ratios.get(..split), ratios.get(split..)].into_iter().flatten() {
                of_groups.extend(LogRatio::of_group(group));
            }
            at_sizes.extend(ratios);
        }
    }
    let judged = |ratios: &[LogRatio]| -> Vec<CurveChange> {
        let judge = Judge { threshold, rows: ratios.len() };
        ratios.iter().map(|ratio| judge.change(ratio)).collect()
    };
    let (parameters, sizes) = (judged(&of_groups), judged(&at_sizes));
    if parameters.is_empty() {
        return Err(CompareError::NoCommonSize);
    }
    let any = |outcome| parameters.iter().any(|change| change.verdict == outcome);
    let order = [Outcome::Slower, Outcome::Faster, Outcome::Unknown];
    let verdict = order.into_iter().find(|outcome| any(*outcome)).unwrap_or(Outcome::Same);
    Ok(Comparison {
        verdict,
        threshold,
        sizes_measured: measured.len(),
        sizes_compared: common.len(),
        parameters,
        sizes,
        environment: environment_changes(before, after),
    })
}

/// First profile of all, which are usable, measured alike, and each another run.
fn checked<'a>(
    before: &'a [ProfileFile],
    after: &[ProfileFile],
) -> Result<&'a ProfileFile, CompareError> {
    let first = before.first().filter(|_| !after.is_empty()).ok_or(CompareError::Nothing)?;
    let all: Vec<&ProfileFile> = before.iter().chain(after).collect();
    for (at, ProfileFile { path, profile }) in all.iter().enumerate() {
        if profile.verdict == Verdict::Unusable {
            let reason = profile.reason.clone().unwrap_or_else(|| "nothing was measured".into());
            return Err(CompareError::Unusable { path: path.clone(), reason });
        }
        if let Some(same) = all.iter().take(at).find(|earlier| earlier.profile == *profile) {
            let (first, second) = (same.path.clone(), path.clone());
            return Err(CompareError::SameRun { first, second });
        }
        let kind = |profile: &ProfileDocument| {
            [
                ("transport", profile.transport.clone()),
                ("method", profile.method.clone()),
                ("waiting", profile.host.link.waiting.clone()),
            ]
        };
        for ((property, value), (_, other_value)) in
            kind(&first.profile).into_iter().zip(kind(profile))
        {
            // Profiles of older versions lack the way of waiting.
            if value != other_value && !value.is_empty() && !other_value.is_empty() {
                let (path, other_path) = (first.path.clone(), path.clone());
                return Err(CompareError::Kinds { property, value, other_value, path, other_path });
            }
        }
    }
    Ok(first)
}

/// Logarithm of a ratio, at one size or over a group of sizes.
#[derive(Clone, Copy, Debug)]
struct LogRatio {
    curve: Curve,
    first: u64,
    last: u64,
    at: u64,
    /// Mean logarithm of the values before, in seconds.
    log_before: f64,
    /// Difference of the mean logarithms.
    value: f64,
    /// Standard error of the difference.
    error: f64,
    /// Degrees of freedom of the standard error.
    degrees: u32,
    /// Independent runs per side, the harmonic mean of both sides.
    runs: f64,
    /// Half round trip before over this curve's value before; 1 for other curves than overheads.
    share: f64,
}

impl LogRatio {
    /// Median ratio of a group, in ascending order of sizes.
    fn of_group(group: &[Self]) -> Option<Self> {
        let (first, last) = (group.first()?.first, group.last()?.last);
        let mut sorted = group.to_vec();
        sorted.sort_by(|one, other| one.value.total_cmp(&other.value));
        let median = *sorted.get(sorted.len() / 2)?;
        Some(Self { first, last, ..median })
    }
}

struct Sides<'a> {
    before: &'a [ProfileFile],
    after: &'a [ProfileFile],
}

impl Sides<'_> {
    /// Sizes that any profile has measured, and those that all have.
    fn sizes(&self) -> [Vec<u64>; 2] {
        let mut counts = BTreeMap::<u64, usize>::new();
        for file in self.before.iter().chain(self.after) {
            for record in &file.profile.sizes {
                *counts.entry(record.row.size.0).or_default() += 1;
            }
        }
        let all = self.before.len() + self.after.len();
        let common = counts.iter().filter(|(_, count)| **count == all);
        [counts.keys().copied().collect(), common.map(|(size, _)| *size).collect()]
    }

    /// `None` if a profile lacks the value.
    fn log_ratio(&self, curve: Curve, size: u64) -> Option<LogRatio> {
        let (before, after) = (values(self.before, curve, size)?, values(self.after, curve, size)?);
        let spread = |side: &[RunValue]| Spread::of(side.iter().map(|value| value.logarithm));
        let (spread_before, spread_after) = (spread(&before), spread(&after));
        let variances = before.iter().chain(&after).map(|value| value.deviation.powi(2));
        let predicted = Spread::of(variances).mean;
        let (variance, degrees) = spread_before.combined_with(predicted, PREDICTION_DEGREES);
        let (variance, degrees) = spread_after.combined_with(variance, degrees);
        #[allow(clippy::cast_precision_loss, reason = "few profiles")]
        let shares = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
        let is_overhead = matches!(curve, Curve::SendOverhead | Curve::RecvOverhead);
        let half_rtt = is_overhead.then(|| values(self.before, Curve::HalfRtt, size)).flatten();
        let share =
            half_rtt.map_or(1.0, |half_rtt| (spread(&half_rtt).mean - spread_before.mean).exp());
        Some(LogRatio {
            curve,
            first: size,
            last: size,
            at: size,
            log_before: spread_before.mean,
            value: spread_after.mean - spread_before.mean,
            error: (variance * shares).sqrt(),
            degrees,
            runs: 2.0 / shares,
            share: share.max(1.0),
        })
    }
}

/// Rule of decision for a number of rows.
#[derive(Clone, Copy, Debug)]
struct Judge {
    threshold: f64,
    rows: usize,
}

impl Judge {
    fn change(&self, ratio: &LogRatio) -> CurveChange {
        #[allow(clippy::cast_precision_loss, reason = "few sizes and curves")]
        let rows = self.rows as f64;
        let level = Confidence::from_percent(100.0 - 5.0 / rows).unwrap_or_default();
        let half = level.student(ratio.degrees) * ratio.error;
        let threshold = (self.threshold * ratio.share).ln_1p();
        let (low, high) = (ratio.value - half, ratio.value + half);
        let verdict = if low > 0.0 && ratio.value > threshold {
            Outcome::Slower
        } else if high < 0.0 && ratio.value < -threshold {
            Outcome::Faster
        } else if -threshold <= low && high <= threshold {
            Outcome::Same
        } else {
            Outcome::Unknown
        };
        let needed = (ratio.runs * (half / threshold).powi(2)).ceil().max(ratio.runs + 1.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 2 to MOST_RUNS"
        )]
        let runs_needed =
            (verdict == Outcome::Unknown && needed <= MOST_RUNS).then_some(needed as u32);
        CurveChange {
            curve: ratio.curve,
            first_bytes: ratio.first,
            last_bytes: ratio.last,
            at_bytes: ratio.at,
            before_s: ratio.log_before.exp(),
            after_s: (ratio.log_before + ratio.value).exp(),
            ratio: ratio.value.exp(),
            ratio_lo: low.exp(),
            ratio_hi: high.exp(),
            verdict,
            runs_needed,
        }
    }
}

/// Values of the independent runs of a side; `None` if a profile lacks the value.
fn values(side: &[ProfileFile], curve: Curve, size: u64) -> Option<Vec<RunValue>> {
    let of = |file: &ProfileFile| {
        Some((file.profile.started_unix_s, RunValue::of(&file.profile, curve, size)?))
    };
    let mut runs: Vec<(u64, RunValue)> = side.iter().map(of).collect::<Option<_>>()?;
    runs.sort_by_key(|(started, _)| *started);
    let begin = runs.first()?.0;
    let minute = |started: u64| (started - begin) / APART_S;
    let mean = |runs: &[(u64, RunValue)]| {
        let of =
            |value: fn(&RunValue) -> f64| Spread::of(runs.iter().map(|run| value(&run.1))).mean;
        RunValue { logarithm: of(|value| value.logarithm), deviation: of(|value| value.deviation) }
    };
    Some(runs.chunk_by(|one, next| minute(one.0) == minute(next.0)).map(mean).collect())
}

/// Value of one run.
#[derive(Clone, Copy, Debug)]
struct RunValue {
    /// Logarithm of seconds.
    logarithm: f64,
    /// Predicted standard deviation of the logarithm between runs.
    deviation: f64,
}

impl RunValue {
    fn of(profile: &ProfileDocument, curve: Curve, size: u64) -> Option<Self> {
        let of = Coefficient::AtOne(curve);
        let has_size = |record: &&SizeRecord| record.row.size.0 == size;
        let estimate = profile.sizes.iter().find(has_size)?.row.value(curve)?;
        let estimate = estimate.map(|time| to_si(time.0, of));
        let value = estimate.value.filter(|value| *value > 0.0)?;
        // A value that may be 0 has no logarithm.
        let low = estimate.low.filter(|low| *low > 0.0)?;
        let own = (estimate.high? / value).ln().max((value / low).ln());
        let holds =
            |record: &&RangeRecord| (record.range.first.0..=record.range.last.0).contains(&size);
        let predicted = profile.ranges.iter().find(holds).and_then(|record| {
            let at_one = record.range.estimate(of)?.map(|time| to_si(time, of)).value?;
            let [low, high] = record.next.get(&of)?;
            (at_one > 0.0).then(|| (high - at_one).max(at_one - low) / at_one)
        });
        let confidence = confidence(profile);
        let predicted = predicted.unwrap_or_else(|| next::without_evidence(of, confidence));
        let runs = f64::from(profile.history_runs);
        let differences = if profile.history_runs == 0 { 2.0 } else { 1.0 + 1.0 / (runs + 1.0) };
        let per_width = confidence.normal() * f64::sqrt(differences);
        Some(Self { logarithm: value.ln(), deviation: own.max(predicted.ln_1p()) / per_width })
    }
}

/// Properties of machines, links and protocols that differ between the sides.
fn environment_changes(before: &[ProfileFile], after: &[ProfileFile]) -> Vec<EnvironmentChange> {
    /// Beginnings of names, those that most often explain a slow-down first.
    const EXPLAINING: [&str; 6] =
        ["host.governor", "host.link", "responder.governor", "responder.link", "host.cpu", "host"];
    let (before, after) = (properties(before), properties(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let values = |side: &BTreeMap<String, BTreeMap<String, Value>>, name| -> Vec<Value> {
        side.get(name).map(|values| values.values().cloned().collect()).unwrap_or_default()
    };
    let mut changes: Vec<EnvironmentChange> = names
        .into_iter()
        .map(|name| EnvironmentChange {
            property: name.clone(),
            before: values(&before, name),
            after: values(&after, name),
        })
        .filter(|change| change.before != change.after)
        .collect();
    changes.sort_by_key(|change| {
        let explaining = EXPLAINING.iter().position(|name| change.property.starts_with(*name));
        explaining.unwrap_or(EXPLAINING.len())
    });
    changes
}

/// Values of the properties of one side by name, each once, by their text.
fn properties(side: &[ProfileFile]) -> BTreeMap<String, BTreeMap<String, Value>> {
    let mut all = BTreeMap::<String, BTreeMap<String, Value>>::new();
    for ProfileFile { profile, .. } in side {
        let mut found = BTreeMap::new();
        let ends = [("host", Some(&profile.host)), ("responder", profile.responder.as_ref())];
        for (end, fingerprint) in ends {
            leaves(end, serde_json::to_value(fingerprint).unwrap_or_default(), &mut found);
        }
        found.insert("host.link.peer".into(), peer_name(profile).into());
        let splits = profile.changes.iter().filter(|change| change.splits);
        found.insert("changes.at_bytes".into(), splits.map(|change| change.at_bytes).collect());
        for (name, value) in found {
            all.entry(name).or_default().insert(value.to_string(), value);
        }
    }
    all
}

/// Adds the properties in `value` by their names, except those that vary between runs.
fn leaves(name: &str, value: Value, found: &mut BTreeMap<String, Value>) {
    /// Last parts of names: calibrated in each run, or chosen by the system.
    const VARYING: [&str; 5] = ["clock_hz", "clock_uncertainty_ppb", "clock_read_s", "peer", "cpu"];
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                if !VARYING.contains(&key.as_str()) {
                    leaves(&format!("{name}.{key}"), value, found);
                }
            }
        }
        Value::Null => {}
        value => {
            found.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::measure::SizeRow;
    use loggap_core::model::{Estimate, Range, SizeLine};
    use loggap_core::random::Random;
    use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};
    use std::sync::atomic::{AtomicU64, Ordering};

    const SIZES: [u64; 6] = [1, 16, 256, 16_384, 32_768, 65_536];

    /// A run of its own minute on a link with half round trips of 10 µs and 1 ns/B, send overheads
    /// of 0.1 µs, and gaps of 4 µs and 0.5 ns/B, that predicts the next run within `next`.
    fn run(next: f64) -> ProfileFile {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let estimate = |micros: f64| {
            #[allow(clippy::cast_possible_truncation, reason = "less than a second")]
            let value = (micros * 1e6) as i64;
            Estimate {
                value: SignedPicos(value),
                low: SignedPicos(value - value / 1_000),
                high: SignedPicos(value + value / 1_000),
                ..Estimate::default()
            }
        };
        let rows = SIZES.map(|size| {
            let bytes = size as f64;
            SizeRecord::from(SizeRow {
                size: Bytes(size),
                half_rtt: Some(estimate(10.0 + bytes * 1e-3)),
                send_overhead: Some(estimate(0.1)),
                gap: Some(estimate(4.0 + bytes * 0.5e-3)),
                ..SizeRow::default()
            })
        });
        let line = |micros: f64| SizeLine::exact(estimate(micros).value, SignedPerByte(0));
        let range = Range {
            first: Bytes(1),
            last: Bytes(65_536),
            half_rtt: Some(line(10.0)),
            send_overhead: Some(line(0.1)),
            gap: line(4.0),
            ..Range::default()
        };
        let predicted = |curve, seconds: f64| {
            (Coefficient::AtOne(curve), [seconds * (1.0 - next), seconds * (1.0 + next)])
        };
        let next = [
            predicted(Curve::HalfRtt, 10e-6),
            predicted(Curve::SendOverhead, 0.1e-6),
            predicted(Curve::Gap, 4e-6),
        ];
        let started_unix_s = STARTED.fetch_add(APART_S, Ordering::Relaxed);
        let mut profile = ProfileDocument {
            transport: "tcp".into(),
            method: "prtt".into(),
            started_unix_s,
            sizes: rows.to_vec(),
            ranges: vec![RangeRecord { range, next: next.into() }],
            ..ProfileDocument::default()
        };
        profile.requested.confidence_percent = 95.0;
        ProfileFile { path: format!("{started_unix_s}.json").into(), profile }
    }

    /// The run with a curve `factor` times as slow from a size on.
    fn slowed(mut file: ProfileFile, curve: Curve, from: u64, factor: f64) -> ProfileFile {
        for row in file.profile.sizes.iter_mut().map(|record| &mut record.row) {
            let estimate = match curve {
                Curve::HalfRtt => &mut row.half_rtt,
                Curve::SendOverhead => &mut row.send_overhead,
                Curve::RecvOverhead => &mut row.recv_overhead,
                Curve::Gap => &mut row.gap,
            };
            if let Some(estimate) = estimate.as_mut().filter(|_| row.size.0 >= from) {
                #[allow(clippy::cast_possible_truncation, reason = "less than a second")]
                let slower = |time: SignedPicos| SignedPicos((time.0 as f64 * factor) as i64);
                let Estimate { value, low, high, .. } = *estimate;
                (estimate.value, estimate.low, estimate.high) =
                    (slower(value), slower(low), slower(high));
            }
        }
        file
    }

    /// A run whose round trips and gaps are `factor` times as slow.
    fn whole(factor: f64, next: f64) -> ProfileFile {
        let all = slowed(run(next), Curve::HalfRtt, 0, factor);
        slowed(slowed(all, Curve::Gap, 0, factor), Curve::SendOverhead, 0, factor)
    }

    fn found(before: &[ProfileFile], after: &[ProfileFile], threshold: f64) -> Comparison {
        compare(before, after, threshold).unwrap()
    }

    fn rows(found: &Comparison, outcome: Outcome) -> Vec<(Curve, u64)> {
        let of = found.parameters.iter().filter(|change| change.verdict == outcome);
        of.map(|change| (change.curve, change.first_bytes)).collect()
    }

    #[test]
    fn the_threshold_and_the_interval_decide() {
        for (factor, next, threshold, outcome) in [
            (1.5, 0.2, 0.05, Outcome::Slower),
            (1.0 / 1.5, 0.2, 0.05, Outcome::Faster),
            (1.08, 0.2, 0.05, Outcome::Unknown),
            (1.0, 0.2, 0.05, Outcome::Unknown),
            (1.0, 0.02, 0.05, Outcome::Same),
            (1.03, 0.001, 0.05, Outcome::Same),
            (1.06, 0.001, 0.05, Outcome::Slower),
            (1.06, 0.001, 0.10, Outcome::Same),
            (1.0 / 1.06, 0.001, 0.05, Outcome::Faster),
        ] {
            let found = found(&[run(next)], &[whole(factor, next)], threshold);
            assert_eq!(found.verdict, outcome, "{factor}, {next}, {threshold}: {found:?}");
            assert_eq!((found.sizes_measured, found.sizes_compared), (6, 6));
            for change in found.parameters.iter().chain(&found.sizes) {
                assert!((change.ratio / factor - 1.0).abs() < 1e-4, "{change:?}");
                assert!((change.after_s / change.before_s - change.ratio).abs() < 1e-9);
                assert!(change.ratio_lo < change.ratio && change.ratio < change.ratio_hi);
            }
        }
    }

    #[test]
    fn the_interval_is_the_students_of_both_sources_over_all_rows() {
        let found = found(&[run(0.2)], &[whole(1.3, 0.2)], 0.05);
        // Five groups: round trips and gaps below and from twice their first value, overheads.
        assert_eq!(found.parameters.len(), 5, "{found:?}");
        let half = Confidence::from_percent(99.0).unwrap().student(10) * 1.2_f64.ln() / 1.959_964;
        for change in &found.parameters {
            assert!(((change.ratio_hi / change.ratio).ln() - half).abs() < 1e-4, "{change:?}");
        }
        let width = |before: &[ProfileFile]| {
            let change = compare(before, &[run(0.2)], 0.05).unwrap().parameters[0].clone();
            (change.ratio_hi / change.ratio).ln()
        };
        let (one, four) = (width(&[run(0.2)]), width(&[0, 1, 2, 3].map(|_| run(0.2))));
        // Less scatter than predicted over 13 degrees of freedom, and √(1 + 1/4) for √2.
        let student = |degrees| Confidence::from_percent(99.0).unwrap().student(degrees);
        let wanted = student(13) / student(10) * (10.0_f64 / 13.0).sqrt() * (1.25_f64 / 2.0).sqrt();
        assert!((four / one - wanted).abs() < 1e-3, "{}", four / one);
        let scattered = [0.7, 1.4].map(|factor| whole(factor, 0.2));
        assert!(width(&scattered) > 1.3 * one);
        let mut confident = run(0.2);
        confident.profile.requested.confidence_percent = 50.0;
        assert!(width(&[confident]) > 1.5 * one);
        let mut with_history = run(0.2);
        with_history.profile.history_runs = 9;
        assert!(width(&[with_history]) > 1.1 * one);
        let mut without = run(0.2);
        without.profile.ranges[0].next.clear();
        assert!(width(&[without]) > 1.2 * one);
    }

    #[test]
    fn runs_of_one_minute_count_as_one() {
        let mut minute: Vec<ProfileFile> = (0..5).map(|_| run(0.2)).collect();
        for (at, file) in (0..).zip(&mut minute) {
            file.profile.started_unix_s = 7_000_000 + at;
        }
        let width = |found: &Comparison| found.parameters[0].ratio_hi / found.parameters[0].ratio;
        let alone = width(&found(&[run(0.2)], &[run(0.2)], 0.05));
        assert!((width(&found(&minute, &[run(0.2)], 0.05)) - alone).abs() < 1e-9);
    }

    #[test]
    fn curves_and_groups_of_sizes_are_told_apart() {
        let of = |curve, from, factor| {
            found(&[run(0.01)], &[slowed(run(0.01), curve, from, factor)], 0.05)
        };
        for (curve, from, expected) in [
            (Curve::HalfRtt, 16_384, vec![(Curve::HalfRtt, 16_384)]),
            (Curve::HalfRtt, 0, vec![(Curve::HalfRtt, 1), (Curve::HalfRtt, 16_384)]),
            (Curve::Gap, 16_384, vec![(Curve::Gap, 16_384)]),
        ] {
            let found = of(curve, from, 1.3);
            assert_eq!((found.verdict, rows(&found, Outcome::Slower)), (Outcome::Slower, expected));
            assert_eq!(rows(&found, Outcome::Same).len() + rows(&found, Outcome::Slower).len(), 5);
        }
        // Of one size: in the table of sizes only.
        let one = of(Curve::HalfRtt, 65_536, 1.3);
        assert_eq!(one.verdict, Outcome::Same);
        let slower: Vec<_> =
            one.sizes.iter().filter(|change| change.verdict == Outcome::Slower).collect();
        assert_eq!(slower.iter().map(|change| change.at_bytes).collect::<Vec<_>>(), [65_536]);
        // Slower before faster.
        let both = slowed(slowed(run(0.01), Curve::HalfRtt, 0, 0.5), Curve::Gap, 0, 1.3);
        assert_eq!(found(&[run(0.01)], &[both], 0.05).verdict, Outcome::Slower);
    }

    #[test]
    fn an_overhead_counts_by_its_share_of_the_round_trip() {
        // 0.1 µs more of half a round trip of 10 µs.
        let twice = || slowed(run(0.01), Curve::SendOverhead, 0, 2.0);
        assert_eq!(found(&[run(0.01)], &[twice()], 0.05).verdict, Outcome::Same);
        assert_eq!(found(&[run(0.01)], &[twice()], 0.003).verdict, Outcome::Slower);
    }

    #[test]
    fn as_many_runs_as_are_advised_tell() {
        let advised = found(&[run(0.2)], &[whole(1.12, 0.2)], 0.05);
        let needed = advised.parameters[0].runs_needed.unwrap();
        assert!((10..60).contains(&needed), "{needed}");
        let side = |factor| (0..needed).map(|_| whole(factor, 0.2)).collect::<Vec<_>>();
        assert_eq!(found(&side(1.0), &side(1.12), 0.05).verdict, Outcome::Slower);
        assert_eq!(found(&[run(0.9)], &[run(0.9)], 0.001).parameters[0].runs_needed, None);
    }

    #[test]
    fn equal_links_are_seldom_told_apart() {
        let mut random = Random::new(7);
        let mut alarms = 0;
        for _ in 0..400 {
            // Runs vary by 10%, of which each profile says 28% for a difference.
            let mut side = || [0; 3].map(|_| whole((0.1 * random.normal()).exp(), 0.32));
            let (before, after) = (side(), side());
            let verdict = found(&before, &after, 0.05).verdict;
            alarms += u32::from(verdict == Outcome::Slower || verdict == Outcome::Faster);
        }
        assert!(alarms <= 12, "{alarms} of 400");
    }

    #[test]
    fn what_was_not_measured_alike_is_named() {
        let refused = |change: fn(&mut ProfileDocument)| {
            let mut other = run(0.1);
            change(&mut other.profile);
            compare(&[run(0.1)], &[other], 0.05).unwrap_err().to_string()
        };
        let error = refused(|profile| profile.transport = "udp".into());
        assert!(error.contains("transport tcp") && error.contains("has udp"), "{error}");
        assert!(refused(|profile| profile.method = "plogp".into()).contains("method prtt"));
        let (mut polling, mut blocking) = (run(0.1), run(0.1));
        polling.profile.host.link.waiting = "poll".into();
        blocking.profile.host.link.waiting = "block".into();
        let error = compare(&[polling], &[blocking], 0.05).unwrap_err().to_string();
        assert!(error.contains("waiting poll"), "{error}");
        let error = refused(|profile| {
            profile.verdict = Verdict::Unusable;
            profile.reason = Some("processors are busy".into());
        });
        assert!(error.contains("processors are busy"), "{error}");
        let error = refused(|profile| {
            profile.sizes.iter_mut().for_each(|record| record.row.size.0 += 1);
        });
        assert!(error.contains("no size"), "{error}");
        let one = run(0.1);
        let copy = ProfileFile { path: "copy.json".into(), profile: one.profile.clone() };
        let error = compare(&[one], &[copy], 0.05).unwrap_err().to_string();
        assert!(error.contains("copy.json") && error.contains("same run"), "{error}");
        assert!(matches!(compare(&[], &[run(0.1)], 0.05), Err(CompareError::Nothing)));
    }

    #[test]
    fn properties_that_differ_are_listed_those_that_explain_first() {
        let with = |kernel: &str, peer: &str| {
            let mut file = run(0.1);
            file.profile.host.kernel = kernel.into();
            file.profile.host.link.peer = peer.into();
            file.profile.host.clock_hz = file.profile.started_unix_s;
            file
        };
        let before = [with("A", "a (process 1)"), with("B", "a (process 2)")];
        let after = [with("B", "a (process 3)"), with("A", "a (process 4)")];
        assert_eq!(found(&before, &after, 0.05).environment, []);
        let mut after = with("C", "node8");
        after.profile.host.governor = Some("powersave".into());
        after.profile.responder = Some(after.profile.host.clone());
        let changes = found(&before, &[after], 0.05).environment;
        let names: Vec<&str> = changes.iter().map(|change| &*change.property).collect();
        assert_eq!(names[..3], ["host.governor", "host.link.peer", "responder.governor"]);
        assert!(names.contains(&"host.kernel"), "{names:?}");
        assert_eq!(
            (changes[0].before.len(), &changes[0].after[..]),
            (0, &["powersave".into()][..])
        );
    }
}
