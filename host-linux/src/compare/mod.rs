//! Comparison of profiles: is a link slower than before?
//!
//! Each side has one profile or several of the same link. A curve (half round trip, overheads, gap)
//! is compared at the sizes that all profiles have measured, in up to two groups for each range:
//! fixed costs dominate where a curve is below twice its first value, costs per byte elsewhere.
//!
//! A group's logarithmic ratio `d` is the median over its sizes of
//! `d(s) = mean ln(after) − mean ln(before)`. Its interval is `d ± t·√(σ²(1/A + 1/B) + e²)`:
//!
//! - `σ²` is the variance between runs, from the launches of all profiles (`variation.rs`) and from the
//!   scatter of the runs of a side. `A` and `B` are numbers of independent runs: the runs of one minute
//!   are little more than one. With other numbers of launches each side has its own `σ²`.
//! - `e²` is the sampling noise of the median, `(π/2)/n` times the variance of `d(s)` over the group's
//!   `n` sizes; with fewer than four sizes it follows from the intervals of their values.
//! - `t` is Student's quantile at 95%, corrected for the number of rows (Bonferroni).
//!
//! A hypervisor that moves two virtual processors apart, or together, between the sides makes a link of
//! this machine slower or faster by itself: what such a move explains has no verdict.
//!
//! A change counts from the threshold on; that of an overhead also has to be the same share of the
//! half round trip.

mod variation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loggap_core::model::Curve;
use loggap_core::stats::Confidence;
use serde::{Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::drive::next::Spread;
use crate::drive::peer_name;
use crate::machine::distance::differ;
use crate::output::number;
use crate::profile::{COLUMNS, ProfileDocument, ProfileError};
pub(crate) use variation::is_overhead;
use variation::{between_launches, by_minute, independent, logarithm, share_of_launches};

/// Fewest sizes whose scatter shows the sampling noise.
const SCATTER: usize = 4;
/// Largest number of runs per side that is advised.
const MOST_RUNS: f64 = 1_000.0;

/// A profile with its file.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Content.
    pub profile: ProfileDocument,
}

impl ProfileFile {
    /// Reads a profile.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        Ok(Self { path: path.to_owned(), profile: ProfileDocument::read(path)? })
    }
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
    /// Profiles whose values have no intervals, as files of other tools.
    #[error("no value has an interval in all profiles; compare runs of loggap measure")]
    NoIntervals,
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
    /// Name of the row that holds for all runs after the same one: the sizes of the group are those
    /// that the runs have in common.
    #[serde(skip)]
    pub name: String,
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
    /// Smallest threshold at which this row has a verdict, a fraction.
    #[serde(skip)]
    pub told_from: f64,
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
    /// Distances of the processors before and after, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_processors: Option<MovedProcessors>,
}

/// Distances of the two processors, which differ: times of a cache line from one to the other and back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MovedProcessors {
    /// Geometric mean before, seconds.
    pub before_s: f64,
    /// Geometric mean after, seconds.
    pub after_s: f64,
}

impl MovedProcessors {
    /// `None` if the distances are unknown or alike.
    #[must_use]
    pub fn between(before: &[ProfileFile], after: &[ProfileFile]) -> Option<Self> {
        let mean = |side: &[ProfileFile]| {
            let known: Option<Vec<f64>> =
                side.iter().map(|file| Some(file.profile.processor_distance_s?.ln())).collect();
            Some(Spread::of(known?.into_iter()).mean.exp())
        };
        let (before_s, after_s) = (mean(before)?, mean(after)?);
        differ(before_s, after_s).then_some(Self { before_s, after_s })
    }

    /// True if the distances explain `change`: a message takes a number of cache lines, so it becomes
    /// slower or faster by at most as much as one of them.
    fn explains(self, change: &CurveChange) -> bool {
        let most = self.after_s / self.before_s;
        match change.verdict {
            Outcome::Slower => change.ratio_lo <= most,
            Outcome::Faster => change.ratio_hi >= most,
            Outcome::Same | Outcome::Unknown => false,
        }
    }
}

/// Checks that `file` has numbers.
///
/// # Errors
///
/// [`CompareError::Unusable`].
pub fn usable(ProfileFile { path, profile }: &ProfileFile) -> Result<(), CompareError> {
    if profile.is_usable() {
        return Ok(());
    }
    let reason = profile.reason.clone().unwrap_or_else(|| "nothing was measured".into());
    Err(CompareError::Unusable { path: path.clone(), reason })
}

impl Comparison {
    /// Counts changes that are `doubted` as not told.
    pub fn withdraw(&mut self, doubted: impl Fn(&CurveChange) -> bool) {
        let changes = self.parameters.iter_mut().chain(&mut self.sizes);
        for change in changes.filter(|change| doubted(change)) {
            change.verdict = Outcome::Unknown;
        }
        self.verdict = overall(&self.parameters);
    }

    /// Threshold below 100% from which on all parameters can be told, whole percents; `None` if that
    /// would not help.
    #[must_use]
    pub fn telling_percent(&self) -> Option<f64> {
        let open = self.parameters.iter().filter(|change| change.verdict == Outcome::Unknown);
        let percent = (open.map(|change| change.told_from).reduce(f64::max)? * 100.0).ceil();
        (percent < 100.0 && percent > self.threshold * 100.0).then_some(percent)
    }

    /// True if a parameter cannot be told.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.parameters.iter().any(|change| change.verdict == Outcome::Unknown)
    }
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
            let sizes: Vec<u64> = within.copied().collect();
            let single = |size: &u64| sides.log_ratio(curve, &[*size]);
            let ratios: Vec<LogRatio> = sizes.iter().filter_map(single).collect();
            let twice = ratios.first().map_or(f64::INFINITY, |first| first.log_before + 2_f64.ln());
            let known: Vec<u64> = ratios.iter().map(|ratio| ratio.at).collect();
            let is_by_byte = |ratio: &LogRatio| ratio.log_before >= twice;
            let split = ratios.iter().position(is_by_byte).unwrap_or(ratios.len());
            let of_range = |group: &str| {
                let (first, last) = (number::bytes(*range.start()), number::bytes(*range.end()));
                format!("{} of {first}:{last}, {group}", curve.parameter().key())
            };
            let (fixed, by_byte) = (known.get(..split), known.get(split..));
            for (group, name) in [(fixed, "fixed costs"), (by_byte, "costs per byte")] {
                let found = sides.log_ratio(curve, group.unwrap_or_default());
                of_groups.extend(found.map(|found| LogRatio { name: of_range(name), ..found }));
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
        let none = common.is_empty();
        return Err(if none { CompareError::NoCommonSize } else { CompareError::NoIntervals });
    }
    let mut found = Comparison {
        verdict: overall(&parameters),
        threshold,
        sizes_measured: measured.len(),
        sizes_compared: common.len(),
        parameters,
        sizes,
        environment: environment_changes(before, after),
        moved_processors: MovedProcessors::between(before, after),
    };
    if let Some(moved) = found.moved_processors {
        found.withdraw(|change| moved.explains(change));
    }
    Ok(found)
}

/// Verdict of all parameters.
fn overall(parameters: &[CurveChange]) -> Outcome {
    let any = |outcome| parameters.iter().any(|change| change.verdict == outcome);
    let order = [Outcome::Slower, Outcome::Faster, Outcome::Unknown];
    order.into_iter().find(|outcome| any(*outcome)).unwrap_or(Outcome::Same)
}

/// First profile of all, which are usable, measured alike, and each another run.
fn checked<'a>(
    before: &'a [ProfileFile],
    after: &[ProfileFile],
) -> Result<&'a ProfileFile, CompareError> {
    let first = before.first().filter(|_| !after.is_empty()).ok_or(CompareError::Nothing)?;
    let all: Vec<&ProfileFile> = before.iter().chain(after).collect();
    for (at, file) in all.iter().enumerate() {
        usable(file)?;
        let ProfileFile { path, profile } = file;
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

/// Logarithm of a ratio over a group of sizes.
#[derive(Clone, Debug)]
struct LogRatio {
    curve: Curve,
    name: String,
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

/// Mean logarithms of both sides at a size.
#[derive(Clone, Copy, Debug)]
struct AtSize {
    size: u64,
    before: f64,
    difference: f64,
    /// Variance of the sampling noise of the difference.
    noise: f64,
}

struct Sides<'a> {
    before: &'a [ProfileFile],
    after: &'a [ProfileFile],
}

impl Sides<'_> {
    fn all(&self) -> impl Iterator<Item = &ProfileDocument> {
        self.before.iter().chain(self.after).map(|file| &file.profile)
    }

    /// Sizes that any profile has measured, and those that all have.
    fn sizes(&self) -> [Vec<u64>; 2] {
        let mut counts = BTreeMap::<u64, usize>::new();
        for profile in self.all() {
            for record in &profile.sizes {
                *counts.entry(record.row.size.0).or_default() += 1;
            }
        }
        let all = self.before.len() + self.after.len();
        let common = counts.iter().filter(|(_, count)| **count == all);
        [counts.keys().copied().collect(), common.map(|(size, _)| *size).collect()]
    }

    /// `None` if a profile lacks the value.
    fn at_size(&self, curve: Curve, size: u64) -> Option<AtSize> {
        let mean = |side: &[ProfileFile]| {
            let of = |file: &ProfileFile| logarithm(&file.profile, curve, size);
            let found = side.iter().map(of).collect::<Option<Vec<_>>>()?;
            let noise = Spread::of(found.iter().map(|(_, deviation)| deviation.powi(2))).mean;
            #[allow(clippy::cast_precision_loss, reason = "few profiles")]
            let count = side.len() as f64;
            let values = found.into_iter().map(|(value, _)| value);
            Some((mean_of_minutes(side, values).mean, noise / count))
        };
        let ((before, noise_before), (after, noise_after)) =
            (mean(self.before)?, mean(self.after)?);
        let (difference, noise) = (after - before, noise_before + noise_after);
        Some(AtSize { size, before, difference, noise })
    }

    /// Ratio over the group `sizes`, in ascending order; `None` if a profile lacks all of them.
    fn log_ratio(&self, curve: Curve, sizes: &[u64]) -> Option<LogRatio> {
        let mut all: Vec<AtSize> =
            sizes.iter().filter_map(|size| self.at_size(curve, *size)).collect();
        let (first, last) = (all.first()?.size, all.last()?.size);
        let noise = sampling_noise(&all);
        all.sort_by(|one, other| one.difference.total_cmp(&other.difference));
        let (low, high) = (all.get((all.len() - 1) / 2)?, all.get(all.len() / 2)?);
        let AtSize { size: at, before: log_before, .. } = *low;
        let value = f64::midpoint(low.difference, high.difference);
        let (launches, degrees) = between_launches(self.all(), curve, sizes)?;
        let share = |side: &[ProfileFile]| {
            Spread::of(side.iter().map(|file| share_of_launches(&file.profile))).mean
        };
        let (share_before, share_after) = (share(self.before), share(self.after));
        let mean_share = f64::midpoint(share_before, share_after);
        let (variance, degrees) = [self.before, self.after]
            .iter()
            .fold((launches * mean_share, degrees), |(variance, degrees), side| {
                levels(side, curve, sizes).combined_with(variance, degrees)
            });
        let (before, after) = (independent_runs(self.before), independent_runs(self.after));
        let shares = share_before / mean_share / before + share_after / mean_share / after;
        let half_rtt = is_overhead(curve).then(|| self.at_size(Curve::HalfRtt, at)).flatten();
        let share = half_rtt.map_or(1.0, |half_rtt| (half_rtt.before - log_before).exp());
        Some(LogRatio {
            curve,
            name: format!("{} of {}", curve.parameter().key(), number::bytes(at)),
            first,
            last,
            at,
            log_before,
            value,
            error: (variance * shares + noise).sqrt(),
            degrees,
            runs: 2.0 / shares,
            share: share.max(1.0),
        })
    }
}

/// Variance of the sampling noise of the median difference.
fn sampling_noise(group: &[AtSize]) -> f64 {
    if group.len() < SCATTER {
        return Spread::of(group.iter().map(|at| at.noise)).mean;
    }
    #[allow(clippy::cast_precision_loss, reason = "few sizes")]
    let count = group.len() as f64;
    let scatter = Spread::of(group.iter().map(|at| at.difference)).variance;
    std::f64::consts::FRAC_PI_2 * scatter / count
}

/// Scatter of the runs' mean logarithms over `sizes`.
fn levels(side: &[ProfileFile], curve: Curve, sizes: &[u64]) -> Spread {
    let level = |file: &ProfileFile| {
        let value = |size: &u64| Some(logarithm(&file.profile, curve, *size)?.0);
        Spread::of(sizes.iter().filter_map(value)).mean
    };
    let means = mean_of_minutes(side, side.iter().map(level));
    // A mean of several runs scatters less than one.
    let runs_a_minute = independent_runs(side) / f64::from(means.degrees + 1);
    Spread { variance: means.variance * runs_a_minute, ..means }
}

fn started(side: &[ProfileFile]) -> impl Iterator<Item = u64> + Clone {
    side.iter().map(|file| file.profile.started_unix_s)
}

/// Mean and scatter of the means of each minute of `values`, one of each run.
fn mean_of_minutes(side: &[ProfileFile], values: impl Iterator<Item = f64>) -> Spread {
    let mean = |minute: Vec<f64>| Spread::of(minute.into_iter()).mean;
    Spread::of(by_minute(started(side), values).map(mean))
}

/// Effective number of independent runs in a mean of the means of each minute.
fn independent_runs(side: &[ProfileFile]) -> f64 {
    let minutes = by_minute(started(side), side.iter());
    let shares: Vec<f64> = minutes.map(|minute| 1.0 / independent(minute.len())).collect();
    #[allow(clippy::cast_precision_loss, reason = "few minutes")]
    let minutes = shares.len() as f64;
    minutes.powi(2) / shares.iter().sum::<f64>()
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
        let change = self.threshold * ratio.share;
        let (slower, faster) = (change.ln_1p(), (-change.min(1.0)).ln_1p());
        let (low, high) = (ratio.value - half, ratio.value + half);
        let verdict = if low > 0.0 && ratio.value > slower {
            Outcome::Slower
        } else if high < 0.0 && ratio.value < faster {
            Outcome::Faster
        } else if faster <= low && high <= slower {
            Outcome::Same
        } else {
            Outcome::Unknown
        };
        // Half width at which this value would be told.
        let telling = if (faster..=slower).contains(&ratio.value) {
            (slower - ratio.value).min(ratio.value - faster)
        } else {
            ratio.value.abs()
        };
        let needed = (ratio.runs * (half / telling).powi(2)).ceil().max(ratio.runs + 1.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 2 to MOST_RUNS"
        )]
        let runs_needed =
            (verdict == Outcome::Unknown && needed <= MOST_RUNS).then_some(needed as u32);
        CurveChange {
            curve: ratio.curve,
            name: ratio.name.clone(),
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
            told_from: high.exp_m1().max(-low.exp_m1()) / ratio.share,
        }
    }
}

/// Properties of machines, links and protocols that differ between the sides.
fn environment_changes(before: &[ProfileFile], after: &[ProfileFile]) -> Vec<EnvironmentChange> {
    /// Beginnings of names, those that most often explain a slow-down first.
    const EXPLAINING: [&str; 6] =
        ["host.governor", "host.link", "responder.governor", "responder.link", "host.cpu", "host"];
    // Files of other tools know nothing of their machine.
    let is_unknown = |file: &ProfileFile| file.profile.host.hostname.is_empty();
    if before.iter().chain(after).any(is_unknown) {
        return Vec::new();
    }
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
    use super::variation::APART_S;
    use super::*;
    use crate::profile::{RangeRecord, SizeRecord, Verdict};
    use loggap_core::measure::SizeRow;
    use loggap_core::model::{Estimate, Range};
    use loggap_core::random::Random;
    use loggap_core::units::{Bytes, SignedPicos};
    use std::sync::atomic::{AtomicU64, Ordering};

    const SIZES: [u64; 6] = [1, 16, 256, 16_384, 32_768, 65_536];

    /// A run of its own minute on a link with half round trips of 10 ms and 1 µs/B, overheads of
    /// 0.1 µs, and gaps of 4 ms and 0.5 µs/B, whose five launches have this standard deviation.
    fn run(deviation: f64) -> ProfileFile {
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
            let row = SizeRow {
                size: Bytes(size),
                half_rtt: Some(estimate(10e3 + bytes)),
                send_overhead: Some(estimate(0.1)),
                gap: Some(estimate(4e3 + bytes * 0.5)),
                ..SizeRow::default()
            };
            // Winsorised, the variance of five of which the outermost count as their neighbours.
            let levels = [-1.0, -1.0, 0.0, 1.0, 1.0].map(|level| (level * 0.6 * deviation).exp());
            let launches = Curve::ALL.into_iter().map(|curve| (curve, levels.to_vec()));
            SizeRecord { launches: launches.collect(), ..SizeRecord::from(row) }
        });
        let range = Range { first: Bytes(1), last: Bytes(65_536), ..Range::default() };
        let started_unix_s = STARTED.fetch_add(APART_S, Ordering::Relaxed);
        let mut profile = ProfileDocument {
            transport: "tcp".into(),
            method: "prtt".into(),
            started_unix_s,
            sizes: rows.to_vec(),
            ranges: vec![RangeRecord { range, next: BTreeMap::new() }],
            launches: 5,
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
            (1.6, 0.2, 0.05, Outcome::Slower),
            (1.0 / 1.6, 0.2, 0.05, Outcome::Faster),
            (1.08, 0.2, 0.05, Outcome::Unknown),
            (1.0, 0.2, 0.05, Outcome::Unknown),
            (1.0, 0.001, 0.10, Outcome::Same),
            (1.03, 0.001, 0.05, Outcome::Unknown),
            (1.09, 0.001, 0.05, Outcome::Slower),
            (1.04, 0.001, 0.15, Outcome::Same),
            (1.0 / 1.09, 0.001, 0.05, Outcome::Faster),
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

    /// Logarithmic half width of the first row's interval.
    fn width(before: &[ProfileFile], after: &[ProfileFile]) -> f64 {
        let change = &found(before, after, 0.05).parameters[0];
        (change.ratio_hi / change.ratio).ln()
    }

    #[test]
    fn the_interval_is_the_students_of_both_sources_over_all_rows() {
        let found = found(&[run(0.2)], &[whole(1.3, 0.2)], 0.05);
        // Five groups: round trips and gaps below and from twice their first value, overheads.
        assert_eq!(found.parameters.len(), 5, "{found:?}");
        let student = |degrees| Confidence::from_percent(99.0).unwrap().student(degrees);
        for change in &found.parameters {
            // The sizes of the overhead's only group do not scatter, and all of it is the machine's.
            let is_overhead = change.curve == Curve::SendOverhead;
            let prior: f64 = if is_overhead { 0.15 } else { 0.02 };
            let weight: u32 = if is_overhead { 6 } else { 4 };
            let launches =
                (f64::from(weight) * prior.powi(2) + 4.0 * 0.2_f64.powi(2)) / f64::from(weight + 4);
            let between = launches * (0.2 + 1.0 / 6.0);
            let noise = if is_overhead { 0.0 } else { (0.001 / 1.959_964_f64).powi(2) };
            let half = student(weight + 4) * (2.0 * (between + noise)).sqrt();
            assert!(((change.ratio_hi / change.ratio).ln() - half).abs() < 1e-3, "{change:?}");
        }
    }

    #[test]
    fn several_runs_narrow_the_interval_and_their_scatter_widens_it() {
        let student = |degrees| Confidence::from_percent(99.0).unwrap().student(degrees);
        let one = width(&[run(0.02)], &[run(0.02)]);
        let four = width(&[0, 1, 2, 3].map(|_| run(0.02)), &[run(0.02)]);
        // No scatter over 3 degrees of freedom, and √(1 + 1/4) for √2.
        let wanted = student(13) / student(8) * (10.0_f64 / 13.0).sqrt() * 0.625_f64.sqrt();
        assert!((four / one - wanted).abs() < 1e-3, "{}", four / one);
        let scattered = [0.7, 1.4].map(|factor| whole(factor, 0.02));
        assert!(width(&scattered, &[run(0.02)]) > 1.3 * one);
        let mut single = run(0.0);
        single.profile.sizes.iter_mut().for_each(|record| record.launches.clear());
        single.profile.launches = 1;
        assert!(width(&[single], &[run(0.0)]) > 1.4 * width(&[run(0.0)], &[run(0.0)]));
    }

    #[test]
    fn a_group_has_the_median_of_its_sizes_and_the_noise_of_their_scatter() {
        // All sizes of the overhead are one group: +0%, 0%, 0%, 10%, 10%, 10%.
        let after = slowed(run(0.0), Curve::SendOverhead, 16_384, 1.1);
        let found = found(&[run(0.0)], &[after], 0.05);
        let change = found.parameters.iter().find(|row| row.curve == Curve::SendOverhead).unwrap();
        assert!((change.ratio.ln() - 1.1_f64.ln() / 2.0).abs() < 1e-6, "{change:?}");
        let student = Confidence::from_percent(99.0).unwrap().student(10);
        let scatter = 1.1_f64.ln().powi(2) * 0.3; // of six values, three each
        let noise = std::f64::consts::FRAC_PI_2 * scatter / 6.0;
        let between = 6.0 * 0.15_f64.powi(2) / 10.0 * (0.2 + 1.0 / 6.0);
        let half = student * (2.0 * between + noise).sqrt();
        assert!(((change.ratio_hi / change.ratio).ln() - half).abs() < 1e-4, "{change:?}, {half}");
    }

    #[test]
    fn runs_of_one_minute_count_little_more_than_one() {
        let mut minute: Vec<ProfileFile> = (0..5).map(|_| run(0.02)).collect();
        for (at, file) in (0..).zip(&mut minute) {
            file.profile.started_unix_s = 7_000_000 + at;
        }
        let [within, apart] =
            [minute, (0..5).map(|_| run(0.02)).collect()].map(|side| width(&side, &[run(0.02)]));
        assert!(apart < 0.9 * within && within < width(&[run(0.02)], &[run(0.02)]));
    }

    #[test]
    fn rows_have_the_same_names_whichever_sizes_a_run_has() {
        let names = |after: ProfileFile| -> Vec<String> {
            let found = found(&[run(0.01)], &[after], 0.15);
            found.parameters.into_iter().map(|change| change.name).collect()
        };
        let mut fewer = run(0.01);
        fewer.profile.sizes.remove(0);
        let whole = names(run(0.01));
        assert!(whole[0].starts_with("half_rtt of 1:") && whole[0].ends_with(", fixed costs"));
        assert_eq!(names(fewer), whole);
    }

    #[test]
    fn curves_and_groups_of_sizes_are_told_apart() {
        let of = |curve, from, factor| {
            found(&[run(0.01)], &[slowed(run(0.01), curve, from, factor)], 0.15)
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
        assert_eq!(found(&[run(0.01)], &[both], 0.15).verdict, Outcome::Slower);
    }

    #[test]
    fn an_overhead_counts_by_its_share_of_the_round_trip() {
        // 0.1 µs more of half a round trip of 10 to 75 ms.
        let twice = || slowed(run(0.01), Curve::SendOverhead, 0, 2.0);
        assert_eq!(found(&[run(0.01)], &[twice()], 0.15).verdict, Outcome::Same);
        assert_eq!(found(&[run(0.01)], &[twice()], 1e-6).verdict, Outcome::Slower);
    }

    #[test]
    fn as_many_runs_as_are_advised_tell() {
        let advised = found(&[run(0.2)], &[whole(1.12, 0.2)], 0.05);
        let needed = advised.parameters[0].runs_needed.unwrap();
        assert!((10..60).contains(&needed), "{needed}");
        let side = |factor| (0..needed).map(|_| whole(factor, 0.2)).collect::<Vec<_>>();
        assert_eq!(found(&side(1.0), &side(1.12), 0.05).verdict, Outcome::Slower);
        assert_eq!(found(&[run(0.9)], &[run(0.9)], 0.001).parameters[0].runs_needed, None);
        let percent = advised.telling_percent().unwrap();
        let at = |percent: f64| found(&[run(0.2)], &[whole(1.12, 0.2)], percent / 100.0);
        assert_eq!([at(percent), at(percent - 1.0)].map(|found| found.is_open()), [false, true]);
        assert_eq!(at(percent).telling_percent(), None);
        assert_eq!(found(&[run(0.9)], &[run(0.9)], 0.05).telling_percent(), None);
    }

    #[test]
    fn equal_links_are_seldom_told_apart() {
        let mut random = Random::new(7);
        let mut alarms = 0;
        for _ in 0..400 {
            // Runs vary by 6%, of which launches that vary by 10% tell.
            let mut side = || [0; 3].map(|_| whole((0.06 * random.normal()).exp(), 0.1));
            let (before, after) = (side(), side());
            let verdict = found(&before, &after, 0.05).verdict;
            alarms += u32::from(verdict == Outcome::Slower || verdict == Outcome::Faster);
        }
        assert!(alarms <= 12, "{alarms} of 400");
    }

    #[test]
    fn what_moved_processors_explain_is_not_told() {
        let at = |distance_s, factor| {
            let mut file = slowed(run(0.02), Curve::HalfRtt, 1, factor);
            file.profile.processor_distance_s = distance_s;
            file
        };
        let verdict = |before: Option<f64>, after: Option<f64>, factor| {
            let found = compare(&[at(before, 1.0)], &[at(after, factor)], 0.05).unwrap();
            assert_eq!(found.sizes[0].verdict, found.verdict, "{factor}");
            (found.verdict, found.moved_processors.is_some())
        };
        let (near, far) = (Some(6e-8), Some(3e-7));
        assert_eq!(verdict(near, far, 1.5), (Outcome::Unknown, true));
        assert_eq!(verdict(far, near, 1.0 / 1.5), (Outcome::Unknown, true));
        // By 5.1, or by less.
        assert_eq!(verdict(near, far, 5.1), (Outcome::Unknown, true));
        // Processors nearer to each other do not explain what is slower, nor five times what is seven.
        for (before, after, factor, outcome) in [
            (far, near, 1.5, Outcome::Slower),
            (near, far, 7.0, Outcome::Slower),
            (near, far, 1.0 / 1.5, Outcome::Faster),
            (far, near, 1.0 / 7.0, Outcome::Faster),
        ] {
            assert_eq!(verdict(before, after, factor), (outcome, true), "{factor}");
        }
        // Equally far, or unknown.
        assert_eq!(verdict(near, Some(8e-8), 1.5), (Outcome::Slower, false));
        assert_eq!(verdict(near, None, 1.5), (Outcome::Slower, false));
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
            file.profile.host.hostname = "node7".into();
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
        let mut unknown = after.clone();
        unknown.profile.host.hostname = String::new();
        assert_eq!(found(&before, &[unknown], 0.05).environment, []);
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
