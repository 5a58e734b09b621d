//! Comparison of profiles: is a link slower than before?
//!
//! Each side has one profile or several of the same link. For each measured curve (half round trip,
//! overheads, gap) and each size that all profiles have measured, the ratio is `exp d` with
//! `d = mean ln(after) − mean ln(before)`. Its interval is `d ± t·σ·√(1/K + 1/M)` for `K` and `M`
//! profiles. The variance `σ²` of the logarithm between runs combines two sources, as the intervals
//! of the next run do (see [`next`]):
//!
//! - each profile says where another run would fall, `value ± w`. That is an interval for a
//!   difference of two runs, so `σ₀ = ln(1 + w)/(1.96·√2)`, which weighs ten degrees of freedom;
//! - the profiles of a side differ among each other, with `K + M − 2` degrees of freedom.
//!
//! The parameters of a range are compared by the median of `d` over its sizes: what moves a whole
//! curve is not one size's noise.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loggap_core::model::{Coefficient, Curve};
use loggap_core::stats::{Confidence, Moments};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::drive::next;
use crate::profile::{COLUMNS, ProfileDocument, RangeRecord, SizeRecord, Verdict, to_si};

/// Weight of what profiles say about the next run, in degrees of freedom.
const PRIOR_DEGREES: u32 = 10;
/// Most profiles that are advised for each side.
const MOST_RUNS: f64 = 1_000.0;

/// A profile and the file that it was read from.
#[derive(Debug)]
pub struct Named {
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub profile: ProfileDocument,
}

/// Profiles that cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// No profile on one side.
    #[error("nothing to compare; name a profile from before and one from after")]
    Nothing,
    /// Nothing was measured.
    #[error("'{}' is unusable: {reason}; measure again", path.display())]
    Unusable {
        /// File of the profile.
        path: PathBuf,
        /// Why, in words.
        reason: String,
    },
    /// Profiles of different kinds.
    #[error("'{}' has {what} {first}, '{}' has {other}; compare what was measured alike", first_path.display(), path.display())]
    Different {
        /// What differs: transport or method.
        what: &'static str,
        /// Value in the first profile.
        first: String,
        /// Value in the other one.
        other: String,
        /// File of the first profile.
        first_path: PathBuf,
        /// File of the other one.
        path: PathBuf,
    },
    /// No size was measured by all.
    #[error("no size was measured in all profiles; measure with the same -s")]
    NoCommonSize,
}

/// Finding about a parameter or a size.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The interval of the ratio lies within the threshold.
    Same,
    /// The ratio is above the threshold, its interval above 1.
    Slower,
    /// The ratio is below the threshold, its interval below 1.
    Faster,
    /// The interval is too wide.
    Unknown,
}

/// Comparison of one curve, over the sizes of a range or at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// `half_rtt`, `gap`, `send_overhead` or `recv_overhead`.
    pub parameter: &'static str,
    /// Curve of the parameter.
    #[serde(skip)]
    pub curve: Curve,
    /// First size, bytes.
    pub first_bytes: u64,
    /// Last size, bytes.
    pub last_bytes: u64,
    /// Geometric mean of the values before, at the first size, seconds.
    pub before_s: f64,
    /// Geometric mean of the values after, at the first size, seconds.
    pub after_s: f64,
    /// Times as long after as before.
    pub ratio: f64,
    /// Lower end of its interval.
    pub ratio_lo: f64,
    /// Upper end of its interval.
    pub ratio_hi: f64,
    /// What follows.
    pub verdict: Finding,
    /// Profiles on each side that would tell, where these do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
}

/// A property of the machine or link that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the property, as in a profile, such as `host.link.mtu_bytes`.
    pub what: String,
    /// Values before.
    pub before: Vec<Value>,
    /// Values after.
    pub after: Vec<Value>,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Slower if any parameter is, else faster if any is, else same if all are.
    pub verdict: Finding,
    /// Relative change that matters, a fraction.
    pub threshold: f64,
    /// Parameters by range of sizes.
    pub parameters: Vec<Compared>,
    /// Parameters by size.
    pub sizes: Vec<Compared>,
    /// Properties of machine and link that differ.
    pub environment: Vec<Difference>,
}

/// Compares the profiles `after` with those from `before`. Changes up to `threshold`, a fraction,
/// count as none.
///
/// # Errors
///
/// [`CompareError`] names the profiles that were not measured alike.
pub fn compare(
    before: &[Named],
    after: &[Named],
    threshold: f64,
) -> Result<Comparison, CompareError> {
    check(before, after)?;
    let sides = Sides { before, after, threshold: threshold.ln_1p() };
    let common = sides.common_sizes();
    let first = before.first().ok_or(CompareError::Nothing)?;
    let at = |curve: Curve, size: u64| sides.at(curve, size);
    let mut sizes = Vec::new();
    let mut parameters = Vec::new();
    for curve in COLUMNS {
        for record in &first.profile.ranges {
            let within = record.range.first.0..=record.range.last.0;
            let of_range: Vec<Observed> = common
                .iter()
                .filter(|size| within.contains(size))
                .filter_map(|size| at(curve, *size))
                .collect();
            sizes.extend(of_range.iter().map(|observed| sides.judged(curve, observed)));
            parameters.extend(middle(&of_range).map(|observed| sides.judged(curve, &observed)));
        }
    }
    if parameters.is_empty() {
        return Err(CompareError::NoCommonSize);
    }
    let found = |finding| parameters.iter().any(|compared: &Compared| compared.verdict == finding);
    let order = [Finding::Slower, Finding::Faster, Finding::Unknown];
    let verdict = order.into_iter().find(|finding| found(*finding)).unwrap_or(Finding::Same);
    let environment = differences(before, after);
    Ok(Comparison { verdict, threshold, parameters, sizes, environment })
}

fn check(before: &[Named], after: &[Named]) -> Result<(), CompareError> {
    let first = before.first().filter(|_| !after.is_empty()).ok_or(CompareError::Nothing)?;
    for Named { path, profile } in before.iter().chain(after) {
        if profile.verdict == Verdict::Unusable {
            let reason = profile.reason.clone().unwrap_or_else(|| "nothing was measured".into());
            return Err(CompareError::Unusable { path: path.clone(), reason });
        }
        let of = |profile: &ProfileDocument| {
            [("transport", profile.transport.clone()), ("method", profile.method.clone())]
        };
        for ((what, theirs), (_, other)) in of(&first.profile).into_iter().zip(of(profile)) {
            if theirs != other {
                let (first_path, path) = (first.path.clone(), path.clone());
                return Err(CompareError::Different {
                    what,
                    first: theirs,
                    other,
                    first_path,
                    path,
                });
            }
        }
    }
    Ok(())
}

/// What was seen of one curve at one size, or over the sizes of a range.
#[derive(Clone, Copy, Debug)]
struct Observed {
    first: u64,
    last: u64,
    /// Means of the logarithms of seconds, at the first size.
    before: f64,
    after: f64,
    /// Difference of these means; over a range the median of its sizes.
    difference: f64,
    /// Half width of the interval of the difference.
    half: f64,
}

/// Observation of a range: the median of its sizes.
fn middle(of_range: &[Observed]) -> Option<Observed> {
    let (first, last) = (of_range.first()?, of_range.last()?);
    let median = |value: fn(&Observed) -> f64| {
        let mut values: Vec<f64> = of_range.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied();
        Some(f64::midpoint(at((values.len() - 1) / 2)?, at(values.len() / 2)?))
    };
    Some(Observed {
        last: last.last,
        difference: median(|observed| observed.difference)?,
        half: median(|observed| observed.half)?,
        ..*first
    })
}

struct Sides<'a> {
    before: &'a [Named],
    after: &'a [Named],
    /// Logarithm of the ratio that matters.
    threshold: f64,
}

impl Sides<'_> {
    /// Sizes that all profiles have measured, in ascending order.
    fn common_sizes(&self) -> Vec<u64> {
        let mut counts = BTreeMap::<u64, usize>::new();
        for named in self.before.iter().chain(self.after) {
            for record in &named.profile.sizes {
                *counts.entry(record.row.size.0).or_default() += 1;
            }
        }
        let all = self.before.len() + self.after.len();
        counts.into_iter().filter(|(_, count)| *count == all).map(|(size, _)| size).collect()
    }

    /// `None` where a profile has no value of the curve.
    fn at(&self, curve: Curve, size: u64) -> Option<Observed> {
        let side = |side: &[Named]| -> Option<Vec<Point>> {
            side.iter().map(|named| Point::of(&named.profile, curve, size)).collect()
        };
        let (before, after) = (side(self.before)?, side(self.after)?);
        let spread = |side: &[Point]| {
            let mut moments = Moments::default();
            for point in side {
                moments.add(point.logarithm);
            }
            let degrees = u32::try_from(side.len() - 1).unwrap_or(u32::MAX);
            Some((moments.mean()?, moments.variance().unwrap_or(0.0) * f64::from(degrees), degrees))
        };
        let ((before_mean, before_squares, some), (after_mean, after_squares, more)) =
            (spread(&before)?, spread(&after)?);
        let confidence = Confidence::P95;
        let per_width = confidence.normal() * 2.0_f64.sqrt();
        let widths = || before.iter().chain(&after).map(|point| (point.width / per_width).powi(2));
        #[allow(clippy::cast_precision_loss, reason = "few profiles")]
        let (told, shares) = (
            widths().sum::<f64>() / widths().count() as f64,
            1.0 / before.len() as f64 + 1.0 / after.len() as f64,
        );
        let degrees = PRIOR_DEGREES.saturating_add(some).saturating_add(more);
        let squares = f64::from(PRIOR_DEGREES) * told + before_squares + after_squares;
        let variance = squares / f64::from(degrees);
        Some(Observed {
            first: size,
            last: size,
            before: before_mean,
            after: after_mean,
            difference: after_mean - before_mean,
            half: confidence.student(degrees) * (variance * shares).sqrt(),
        })
    }

    fn judged(&self, curve: Curve, observed: &Observed) -> Compared {
        let &Observed { first, last, before, after, difference, half } = observed;
        let (low, high) = (difference - half, difference + half);
        let verdict = if low > 0.0 && difference > self.threshold {
            Finding::Slower
        } else if high < 0.0 && difference < -self.threshold {
            Finding::Faster
        } else if -self.threshold <= low && high <= self.threshold {
            Finding::Same
        } else {
            Finding::Unknown
        };
        // Either the difference or its absence beyond the threshold has to show.
        let enough = if difference.abs() > self.threshold {
            difference.abs()
        } else {
            self.threshold - difference.abs()
        };
        #[allow(clippy::cast_precision_loss, reason = "few profiles")]
        let runs = self.before.len().min(self.after.len()) as f64;
        let needed = (runs * (half / enough).powi(2)).ceil().clamp(runs + 1.0, MOST_RUNS);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 2 and MOST_RUNS"
        )]
        let runs_needed = (verdict == Finding::Unknown).then_some(needed as u32);
        Compared {
            parameter: curve.parameter().key(),
            curve,
            first_bytes: first,
            last_bytes: last,
            before_s: before.exp(),
            after_s: after.exp(),
            ratio: difference.exp(),
            ratio_lo: low.exp(),
            ratio_hi: high.exp(),
            verdict,
            runs_needed,
        }
    }
}

/// A value of a profile.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Logarithm of seconds.
    logarithm: f64,
    /// Half width of the interval of another run's logarithm.
    width: f64,
}

impl Point {
    fn of(profile: &ProfileDocument, curve: Curve, size: u64) -> Option<Self> {
        let of = Coefficient::AtOne(curve);
        let has_size = |record: &&SizeRecord| record.row.size.0 == size;
        let estimate = profile.sizes.iter().find(has_size)?.row.value(curve)?;
        let estimate = estimate.map(|time| to_si(time.0, of));
        let value = estimate.value.filter(|value| *value > 0.0)?;
        let own = (estimate.high? - value).max(value - estimate.low?) / value;
        let holds =
            |record: &&RangeRecord| (record.range.first.0..=record.range.last.0).contains(&size);
        let next = profile.ranges.iter().find(holds).and_then(|record| {
            let at_one = record.range.estimate(of)?.map(|time| to_si(time, of)).value?;
            let [low, high] = record.next.get(&of)?;
            (at_one > 0.0).then(|| (high - at_one).max(at_one - low) / at_one)
        });
        let next = next.unwrap_or_else(|| next::without_evidence(of, Confidence::P95));
        Some(Self { logarithm: value.ln(), width: own.max(next).ln_1p() })
    }
}

/// Properties of machines and links that differ between the sides; those that explain a slow-down
/// come first.
fn differences(before: &[Named], after: &[Named]) -> Vec<Difference> {
    /// Beginnings of names, the most telling first.
    const TELLING: [&str; 6] =
        ["host.governor", "host.link", "responder.governor", "responder.link", "host.cpu", "host"];
    let side = |side: &[Named]| {
        let mut all = BTreeMap::<String, Vec<Value>>::new();
        for Named { profile, .. } in side {
            let mut found = BTreeMap::new();
            for (end, print) in
                [("host", Some(&profile.host)), ("responder", profile.responder.as_ref())]
            {
                leaves(end, serde_json::to_value(print).unwrap_or_default(), &mut found);
            }
            found.insert("changes".into(), changes(profile));
            for (name, value) in found {
                let values = all.entry(name).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        all
    };
    let (before, after) = (side(before), side(after));
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let mut found: Vec<Difference> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| Difference {
            what: name.clone(),
            before: before.get(name).cloned().unwrap_or_default(),
            after: after.get(name).cloned().unwrap_or_default(),
        })
        .collect();
    let rank = |difference: &Difference| {
        TELLING.iter().position(|name| difference.what.starts_with(name)).unwrap_or(TELLING.len())
    };
    found.sort_by_key(rank);
    found
}

/// First sizes of the protocols.
fn changes(profile: &ProfileDocument) -> Value {
    profile.changes.iter().filter(|change| change.splits).map(|change| change.at_bytes).collect()
}

/// Adds the properties in `value` by their names. What another run has otherwise on the same link
/// is left out.
fn leaves(name: &str, value: Value, found: &mut BTreeMap<String, Value>) {
    /// Last parts of names: calibrated anew in each run, or numbered by the system.
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

    /// A run on a link of 10 µs and 1 ns/B, `factor` times as slow, that says how far off the next
    /// one may be.
    fn run(factor: f64, next: f64) -> Named {
        #[allow(clippy::cast_possible_truncation, reason = "a few microseconds")]
        let picos = |size: u64| ((10e6 + size as f64 * 1e3) * factor) as i64;
        let rows = [1_u64, 64, 1_024].map(|size| {
            let value = picos(size);
            let estimate = Estimate {
                value: SignedPicos(value),
                low: SignedPicos(value - value / 100),
                high: SignedPicos(value + value / 100),
                ..Estimate::default()
            };
            let row = SizeRow { size: Bytes(size), half_rtt: Some(estimate), ..SizeRow::default() };
            SizeRecord::from(row)
        });
        let line = SizeLine::exact(SignedPicos(picos(1)), SignedPerByte(0));
        let range =
            Range { first: Bytes(1), last: Bytes(1_024), half_rtt: Some(line), ..Range::default() };
        let at_one = picos(1) as f64 / 1e12;
        let of = Coefficient::AtOne(Curve::HalfRtt);
        let next = [(of, [at_one * (1.0 - next), at_one * (1.0 + next)])].into();
        let profile = ProfileDocument {
            transport: "tcp".into(),
            method: "prtt".into(),
            sizes: rows.to_vec(),
            ranges: vec![RangeRecord { range, next }],
            ..ProfileDocument::default()
        };
        Named { path: format!("{factor}.json").into(), profile }
    }

    #[test]
    fn a_ratio_beyond_what_runs_vary_is_told() {
        for (factor, finding) in [
            (1.3, Finding::Slower),
            (1.0 / 1.3, Finding::Faster),
            (1.08, Finding::Unknown),
            (1.0, Finding::Unknown),
        ] {
            let found = compare(&[run(1.0, 0.2)], &[run(factor, 0.2)], 0.05).unwrap();
            assert_eq!(found.verdict, finding, "{factor}: {found:?}");
            let [parameter] = &found.parameters[..] else { panic!("{found:?}") };
            assert!((parameter.ratio - factor).abs() < 1e-6, "{parameter:?}");
            // ln 1.2, by Student's quantile of 10 degrees of freedom over the normal one.
            let half = 1.2_f64.ln() * 2.2281 / 1.96;
            assert!(
                ((parameter.ratio_hi / parameter.ratio).ln() - half).abs() < 1e-4,
                "{parameter:?}"
            );
            assert_eq!((parameter.first_bytes, parameter.last_bytes), (1, 1_024));
            assert_eq!(found.sizes.len(), 3);
            assert_eq!(parameter.runs_needed.is_some(), finding == Finding::Unknown);
        }
        let found = compare(&[run(1.0, 0.02)], &[run(1.0, 0.02)], 0.05).unwrap();
        assert_eq!(found.verdict, Finding::Same, "{found:?}");
    }

    #[test]
    fn as_many_runs_as_are_advised_tell() {
        let found = compare(&[run(1.0, 0.2)], &[run(1.08, 0.2)], 0.05).unwrap();
        let needed = found.parameters[0].runs_needed.unwrap();
        let side = |factor| (0..needed).map(|_| run(factor, 0.2)).collect::<Vec<_>>();
        let found = compare(&side(1.0), &side(1.08), 0.05).unwrap();
        assert_eq!(found.verdict, Finding::Slower, "{needed}: {found:?}");
    }

    #[test]
    fn equal_links_are_seldom_told_apart_and_runs_that_vary_widen_the_interval() {
        let mut random = Random::new(7);
        let mut alarms = 0;
        for _ in 0..1_000 {
            // Runs vary by 10%, of which each profile says 28% for a difference.
            let mut side = |count| -> Vec<Named> {
                (0..count).map(|_| run((0.1 * random.normal()).exp(), 0.32)).collect()
            };
            let (before, after) = (side(3), side(3));
            let found = compare(&before, &after, 0.05).unwrap().verdict;
            alarms += u32::from(found == Finding::Slower || found == Finding::Faster);
        }
        assert!(alarms <= 50, "{alarms} of 1,000");
        let narrow = compare(&[run(1.0, 0.1), run(1.0, 0.1)], &[run(1.0, 0.1)], 0.05).unwrap();
        let wide = compare(&[run(0.7, 0.1), run(1.4, 0.1)], &[run(1.0, 0.1)], 0.05).unwrap();
        let width =
            |found: &Comparison| (found.parameters[0].ratio_hi / found.parameters[0].ratio).ln();
        assert!(width(&wide) > 3.0 * width(&narrow), "{wide:?}");
    }

    #[test]
    fn what_was_not_measured_alike_is_named() {
        let mut udp = run(1.0, 0.1);
        udp.profile.transport = "udp".into();
        let error = compare(&[run(1.0, 0.1)], &[udp], 0.05).unwrap_err().to_string();
        assert!(error.contains("transport tcp") && error.contains("has udp"), "{error}");
        let mut unusable = run(1.0, 0.1);
        unusable.profile.verdict = Verdict::Unusable;
        unusable.profile.reason = Some("processors are busy".into());
        let error = compare(&[unusable], &[run(1.0, 0.1)], 0.05).unwrap_err().to_string();
        assert!(error.contains("1.json") && error.contains("processors are busy"), "{error}");
        let mut elsewhere = run(1.0, 0.1);
        elsewhere.profile.sizes.iter_mut().for_each(|record| record.row.size.0 += 1);
        let error = compare(&[elsewhere], &[run(1.0, 0.1)], 0.05).unwrap_err();
        assert!(matches!(error, CompareError::NoCommonSize), "{error}");
        assert!(matches!(compare(&[], &[run(1.0, 0.1)], 0.05), Err(CompareError::Nothing)));
    }

    #[test]
    fn differences_of_the_environment_are_listed_the_telling_ones_first() {
        let (before, mut after) = (run(1.0, 0.1), run(1.0, 0.1));
        after.profile.host.kernel = "Linux 7.0".into();
        after.profile.host.clock_hz = 17;
        after.profile.host.governor = Some("powersave".into());
        after.profile.host.link.mtu_bytes = Some(9_000);
        let found = compare(&[before], &[after], 0.05).unwrap().environment;
        let names: Vec<&str> = found.iter().map(|difference| &*difference.what).collect();
        assert_eq!(names, ["host.governor", "host.link.mtu_bytes", "host.kernel"]);
        assert_eq!((found[1].before.len(), &found[1].after[..]), (0, &[Value::from(9_000)][..]));
    }
}
