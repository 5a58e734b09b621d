//! Document of an assessed run: verdict, ranges with predictions of another run, and warnings.

use std::time::{SystemTime, UNIX_EPOCH};

use loggap_core::measure::{
    AssessError, Conclusion, Experiment, Quantity, SizeRow, Warning as LinkWarning,
};
use loggap_core::model::{Change, Coefficient, Curve, Estimate};
use loggap_core::units::{Bytes, Picos, SignedPicos};

use super::analysis::{is_converged, requested};
use super::next::{self, LaunchValues};
use super::{
    AnalysisError, History, MeasureError, Measured, Method, MethodSeries, ProtocolLimit,
    RunOptions, Series, agreement, found,
};
use crate::link::{VerbsRecord, Waiting};
use crate::machine::environment::Fingerprint;
use crate::machine::warning::{self, Warning};
use crate::output::{methods, warnings};
use crate::profile::{
    CanaryRecord, ChangeRecord, MethodRecord, PlogpSize, ProfileDocument, RangeRecord, RoundRecord,
    SCHEMA_VERSION, SignatureRecord, SizeRecord, Stopped, Verdict, WarningRecord, to_si,
};
use crate::samples::TimedSample;
use crate::terminal::{CliError, command_line};

/// Result of a measurement with its circumstances.
#[derive(Debug)]
pub struct Assessed {
    pub(super) measured: Measured,
    /// Error that ended the run early.
    pub(super) failure: Option<CliError>,
    pub(super) history: History,
    pub(super) host: Fingerprint,
    pub(super) warnings: Vec<Warning>,
    pub(super) canaries: Vec<CanaryRecord>,
    pub(super) processor_distance_s: Option<f64>,
    /// Time from the preparation to the end of the last session.
    pub(super) wall: Picos,
    pub(super) options: RunOptions,
    /// Settings that may explain changes of protocol.
    pub(super) limits: Vec<ProtocolLimit>,
}

/// Results of a measurement.
#[derive(Debug)]
pub struct Finished {
    /// The profile.
    pub document: ProfileDocument,
    /// Rounds that were timed.
    pub samples: Vec<TimedSample>,
    /// Probes that were timed.
    pub series: Vec<Series>,
    /// Error that ended the run early, or why there are no parameters.
    pub failure: Option<CliError>,
}

impl Assessed {
    /// Results, also of a run that failed or was stopped.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let failure = self.failure.take().or_else(|| self.refusal().map(CliError::from));
        let is_stopped = self.measured.conclusion == Conclusion::Stopped;
        let interrupted = is_stopped.then(|| "interrupted".to_owned());
        let document = self.document(failure.as_ref().map(ToString::to_string).or(interrupted));
        let mut samples = self.measured.samples;
        samples.retain(|timed| self.options.method.times(timed.sample.experiment.quantity));
        let MethodSeries { signature, plogp } = self.measured.series;
        let mut series = [signature, plogp].concat();
        // The signature's trains are among the samples, unless these are PRTT's.
        let is_prtt = self.options.method == Method::All;
        series.retain(|one| is_prtt || one.probe.experiment().is_none());
        Finished { document, samples, series, failure }
    }

    /// Profile of a run that did not fail.
    ///
    /// # Errors
    ///
    /// The error that ended the run.
    pub fn profile(mut self) -> Result<ProfileDocument, CliError> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.document(None)),
        }
    }

    /// Why the link cannot be assessed, as its ends had too little of a processor: there is no
    /// range, or the round trip is unknown to within 50%.
    fn unusable(&self) -> Option<String> {
        let ranges = self.measured.assessment.as_ref().map(|found| &found.profile.ranges[..]);
        let first = ranges.ok().and_then(<[_]>::first);
        let one_sided = self.options.plan.assess.one_sided;
        let line = first.and_then(|range| if one_sided { Some(range.gap) } else { range.half_rtt });
        let is_known = line.is_some_and(|line| is_known(&line.at_one));
        if is_known { None } else { too_little_processor(&self.warnings) }
    }

    /// Error of the analysis, if it counts as a failure: in a stopped run too few samples are none.
    fn refusal(&self) -> Option<MeasureError> {
        if self.unusable().is_some() {
            return None;
        }
        let error = *self.measured.assessment.as_ref().err()?;
        let is_stopped = self.measured.conclusion == Conclusion::Stopped;
        let is_refusal = !(is_stopped && error == AssessError::NoSamples);
        is_refusal.then_some(MeasureError::Analysis(AnalysisError::Assess(error)))
    }

    fn document(&self, incomplete: Option<String>) -> ProfileDocument {
        let Self { measured, host, canaries, wall, options, .. } = self;
        let assessment = measured.assessment.as_ref().ok();
        let warning_details = self.ranked_warnings();
        let results = self.results();
        let methods = self.compared(&results);
        let Results { signature, plogp } = results;
        let changes = assessment.map_or(&[][..], |found| &found.profile.changes);
        let limits: Vec<_> = self
            .limits
            .iter()
            .cloned()
            .chain(host.link.verbs.as_ref().and_then(inline_limit))
            .collect();
        let wall_s = wall.seconds();
        let mut document = ProfileDocument {
            schema_version: SCHEMA_VERSION,
            loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line(),
            started_unix_s: unix_seconds().saturating_sub(wall.0 / 1_000_000_000_000),
            seed: options.plan.seed,
            host: host.clone(),
            transport: host.link.transport.clone(),
            method: options.method.name().to_owned(),
            requested: requested(&measured.exact),
            changes: changes.iter().map(|change| named(*change, &limits)).collect(),
            sizes: self.sizes(),
            methods,
            signature,
            plogp,
            messages_sent: measured.traffic.messages(),
            messages_lost: measured.traffic.messages_lost,
            wall_s,
            link_busy_share: (measured.traffic.in_rounds.seconds() / wall_s).clamp(0.0, 1.0),
            stopped: match measured.conclusion {
                conclusion if conclusion == Conclusion::Stopped || incomplete.is_none() => {
                    Stopped::from(conclusion)
                }
                _ => Stopped::Failed,
            },
            converged: assessment.is_some_and(|found| is_converged(&found.profile)),
            warnings: warning_details.iter().map(warnings::text).collect(),
            warning_details,
            launches: measured.launches,
            rounds: measured.traffic.rounds,
            rounds_left_out: measured.left_out,
            incomplete,
            responder: measured.responder.clone(),
            canaries: canaries.clone(),
            processor_distance_s: self.processor_distance_s,
            ..ProfileDocument::default()
        };
        if let Some(verbs) = &mut document.host.link.verbs {
            verbs.calls.clone_from(&measured.calls);
        }
        document.reason = self.unusable();
        if document.reason.is_some() {
            document.verdict = Verdict::Unusable;
        }
        self.add_ranges(&mut document);
        document
    }

    /// Results of the methods of probes.
    fn results(&self) -> Results {
        let (series, options) = (&self.measured.series, &self.options);
        let sizes = self.measured.rows.iter().map(|row| row.size.0);
        let first = sizes.min().and_then(|size| u32::try_from(size).ok()).unwrap_or(1);
        let signature = found::signature(&series.signature, &options.signature);
        Results { signature, plogp: found::plogp(first, &series.plogp, &options.plogp) }
    }

    /// Values of all methods at the smallest size.
    fn compared(&self, results: &Results) -> Vec<MethodRecord> {
        let row = self.measured.rows.first().filter(|_| self.options.method == Method::All);
        let signature = results.signature.as_ref().and_then(|found| found.sizes.first());
        let signature = signature.map(|size| &size.found);
        row.map(|row| agreement::compared(row, signature, &results.plogp)).unwrap_or_default()
    }

    /// Warnings with their severity, the worst first.
    fn ranked_warnings(&self) -> Vec<WarningRecord> {
        let (host, about_link) = (&self.host, self.link_warnings());
        let choice =
            if host.link.mpi.is_some() { "mpirun's options" } else { warnings::BY_OPTIONS };
        let mut warnings = self.warnings.clone();
        if warnings.iter().any(|warning| matches!(warning, Warning::OneProcessor { .. })) {
            // Each end is the other's other process.
            warnings.retain(|warning| {
                !matches!(warning, Warning::Preempted { .. } | Warning::Busy { .. })
            });
        }
        let mut ranked = warnings::ranked(&warnings, &about_link, choice);
        let places = host.link.verbs.as_ref().and_then(|verbs| {
            warnings::few_places(&verbs.operation, verbs.depth, self.options.plan.messages)
        });
        ranked.extend(places);
        let Results { signature, plogp } = self.results();
        ranked.extend(methods::warnings(signature.as_ref(), &plogp));
        let left_out = self.measured.series.signature.iter().filter(|one| one.is_too_long);
        ranked.extend(left_out.map(|one| one.probe.delay).min().map(methods::delays_left_out));
        ranked.sort_by_key(|record| record.severity);
        ranked
    }

    /// Warnings of the analysis, without those about omitted sizes if the path carries none of them.
    fn link_warnings(&self) -> Vec<LinkWarning> {
        let all = self.measured.assessment.as_ref().map_or(&[][..], |found| &found.warnings);
        let is_path = self.measured.reached.is_some();
        let applies =
            |warning: &&LinkWarning| !(is_path && matches!(warning, LinkWarning::SizesLeftOut(..)));
        all.iter().filter(applies).copied().collect()
    }

    /// Adds the ranges, with predictions of another run.
    fn add_ranges(&self, document: &mut ProfileDocument) {
        let Self { measured, history, options, .. } = self;
        let Ok(assessment) = &measured.assessment else { return };
        let (profile, exact) = (&assessment.profile, &options.plan.assess);
        let earlier = history.of_same_link(document);
        let launches = if self.has_launches() {
            LaunchValues::of(&measured.samples, profile, exact)
        } else {
            vec![LaunchValues::default(); profile.ranges.len()]
        };
        let records = profile.ranges.iter().zip(&launches).map(|(range, launches)| RangeRecord {
            next: next::intervals(range, launches, &earlier, exact.confidence),
            ..RangeRecord::from(*range)
        });
        document.ranges = records.collect();
        document.history_runs = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
    }

    /// Table by size, with the distribution of single rounds and the values of the launches.
    fn sizes(&self) -> Vec<SizeRecord> {
        let launches = if self.has_launches() {
            next::rows_by_launch(&self.measured.samples, &self.options.plan.assess)
        } else {
            vec![]
        };
        let one_sided = self.options.plan.assess.one_sided;
        let record = |row: &SizeRow| {
            let samples = self.measured.samples.iter().map(|timed| &timed.sample);
            let rounds = samples.filter(|sample| {
                let Experiment { quantity, size, .. } = sample.experiment;
                quantity == Quantity::RoundTrip && u64::from(size) == row.size.0 && !one_sided
            });
            let rounds = RoundRecord::of(rounds.map(|sample| Picos(sample.elapsed.0 / 2)));
            let of = |curve| Some((curve, launch_values(&launches, row.size, curve)?));
            let launches = Curve::ALL.into_iter().filter_map(of).collect();
            SizeRecord { rounds, launches, ..SizeRecord::from(*row) }
        };
        self.measured.rows.iter().map(record).collect()
    }

    /// True if launches vary as runs do: over MPI they are sessions of the same processes.
    fn has_launches(&self) -> bool {
        self.host.link.mpi.is_none() && self.measured.launches > 1
    }
}

/// Values of `curve` at `size` in all launches, seconds; `None` if a launch lacks it.
fn launch_values(launches: &[Vec<SizeRow>], size: Bytes, curve: Curve) -> Option<Vec<f64>> {
    let value = |rows: &Vec<SizeRow>| {
        let row = rows.iter().find(|row| row.size == size)?;
        to_si(row.value(curve)?.value.0, Coefficient::AtOne(curve))
    };
    launches.iter().map(value).collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())
}

/// Results of a method of probes.
#[derive(Default)]
struct Results {
    signature: Option<SignatureRecord>,
    plogp: Vec<PlogpSize>,
}

/// True if a time is known to within half of its value.
fn is_known(time: &Estimate<SignedPicos>) -> bool {
    const SHARE: f64 = 0.5;
    let [value, low, high] = [time.value, time.low, time.high].map(SignedPicos::seconds);
    value > 0.0 && (high - value).max(value - low) <= SHARE * value
}

/// Reason for which the ends had too little of a processor, with a remedy, if the warnings tell one.
fn too_little_processor(warnings: &[Warning]) -> Option<String> {
    let shared = warnings.iter().find_map(|warning| match warning {
        Warning::OneProcessor { cpu, waiting: Waiting::Poll } => {
            Some(format!("both ends share processor {cpu}; --cpu A,B, or --block"))
        }
        _ => None,
    });
    let busy = warnings.iter().find_map(|warning| match warning {
        Warning::Busy { load, cpus, waiting, .. } => {
            let (busy, remedy) = (warning::busy(*load, *cpus), warning::busy_remedy(*waiting));
            Some(format!("{busy}; {remedy}"))
        }
        _ => None,
    });
    shared.or(busy)
}

/// Largest size that is sent inline, as the cause of a change of protocol.
fn inline_limit(verbs: &VerbsRecord) -> Option<ProtocolLimit> {
    let last = u64::from(verbs.inline_bytes);
    (last > 0 && verbs.operation != "read").then(|| ProtocolLimit {
        setting: format!("--inline {last}: the last size within the work request"),
        first_bytes: last + 1..=last + 1,
    })
}

/// Converts a change, with the setting that causes it.
fn named(change: Change, limits: &[ProtocolLimit]) -> ChangeRecord {
    let record = ChangeRecord::from(change);
    let explains = |limit: &&ProtocolLimit| {
        record.lo_bytes <= *limit.first_bytes.end() && *limit.first_bytes.start() <= record.hi_bytes
    };
    let limit = limits.iter().find(explains);
    ChangeRecord { setting: limit.map(|limit| limit.setting.clone()), ..record }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use loggap_core::model::Parameter;
    use loggap_core::units::Bytes;

    use super::*;

    #[test]
    fn a_time_is_known_to_within_half_of_it() {
        let time = |value, low, high| {
            let [value, low, high] = [value, low, high].map(SignedPicos);
            is_known(&Estimate { value, low, high, ..Estimate::default() })
        };
        assert!(time(10_000, 5_000, 15_000) && time(10_000, 10_000, 10_000));
        assert!(!time(10_000, 4_999, 12_000) && !time(10_000, 8_000, 15_001));
        assert!(!time(0, 0, 0) && !time(-10, -10, -10));
    }

    #[test]
    fn a_shared_processor_goes_before_a_busy_one() {
        let (cpu, waiting) = (3, Waiting::Poll);
        let busy = Warning::Busy { load: 6, cpus: 2, percent: 40, waiting };
        let told = |warnings: &[Warning]| too_little_processor(warnings).unwrap_or_default();
        let shared = told(&[busy.clone(), Warning::OneProcessor { cpu, waiting }]);
        assert_eq!(shared, "both ends share processor 3; --cpu A,B, or --block");
        let sleeping = Warning::OneProcessor { cpu, waiting: Waiting::Block };
        let reason = "processors are busy (load 6 on 2); try --block, or wait";
        assert_eq!(told(&[sleeping.clone(), busy]), reason);
        let over = Warning::Busy { load: 1, cpus: 2, percent: 40, waiting };
        assert_eq!(told(&[over]), "processors are busy; try --block, or wait");
        assert_eq!(told(&[sleeping, Warning::OneLaunch]), "");
    }

    #[test]
    fn a_change_where_inline_data_end_is_named() {
        let verbs = VerbsRecord { inline_bytes: 220, ..VerbsRecord::default() };
        let limits: Vec<_> = inline_limit(&verbs).into_iter().collect();
        let change_at = |first: u64| Change {
            at: Bytes(first),
            low: Bytes(first),
            high: Bytes(first),
            parameter: Parameter::HalfRtt,
            jump_ppm: 100_000,
            splits: true,
        };
        let setting = named(change_at(221), &limits).setting;
        assert!(setting.as_ref().is_some_and(|setting| setting.contains("220")), "{setting:?}");
        assert_eq!(named(change_at(220), &limits).setting, None);
        assert_eq!(inline_limit(&VerbsRecord::default()), None);
        let read = VerbsRecord { operation: "read".into(), ..verbs };
        assert_eq!(inline_limit(&read), None);
    }
}
