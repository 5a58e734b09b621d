//! JSON documents that `measure` and `fit` write.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use loggap_core::measure::{AssessOptions, Conclusion};
use loggap_core::model::{Change, LogGops, Profile, Range};
use loggap_core::units::{Bytes, PerByte, Picos};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::error::{ProfileError, ProfileErrorKind};
use super::logp_test;
use super::{
    ChangeRecord, Literal, MethodRecord, PlogpSize, RangeRecord, SignatureRecord, SizeRecord,
    WarningRecord,
};
use crate::drive::Analysis;
use crate::machine::environment::Fingerprint;
use crate::samples::netgauge;

/// Version of the format. It grows when a reader of the old version would misunderstand the new
/// one; a new key alone does not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Largest profile that is read, bytes; 10,000 sizes take about 5 MB.
const LONGEST: u64 = 64 << 20;

/// Document of `measure -o` and `measure -J`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ProfileDocument {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the program.
    pub loggap_version: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// When the run began, in seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// The machine and the link.
    pub host: Fingerprint,
    /// Transport, such as `tcp`, `udp`, `unix`, `shm`.
    pub transport: String,
    /// `prtt`, `signature`, `plogp` or `all`.
    pub method: String,
    /// Requested accuracy.
    pub requested: Requested,
    /// One set of parameters per protocol.
    pub ranges: Vec<RangeRecord>,
    /// Abrupt changes of a parameter, including those that separate no ranges.
    pub changes: Vec<ChangeRecord>,
    /// Table of measurements by message size.
    pub sizes: Vec<SizeRecord>,
    /// Values of the methods at the smallest size, each compared with PRTT's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<MethodRecord>,
    /// Points and parameters of the LogP signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureRecord>,
    /// Parameters of pLogP by size, from 0 on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plogp: Vec<PlogpSize>,
    /// Usability of the measurement.
    pub verdict: Verdict,
    /// Why the verdict is `unusable`, and a remedy, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of rounds completed.
    pub rounds: u64,
    /// Number of rounds discarded because their process was preempted meanwhile.
    pub rounds_left_out: u64,
    /// Messages sent in both directions, control frames included.
    pub messages_sent: u64,
    /// Messages lost in both directions.
    pub messages_lost: u64,
    /// Duration of the run, seconds.
    pub wall_s: f64,
    /// Share of the duration with a message under way, from 0 to 1.
    pub link_busy_share: f64,
    /// Why the run ended.
    pub stopped: Stopped,
    /// True if every number reached the requested accuracy.
    pub converged: bool,
    /// Warnings about the numbers, in words.
    pub warnings: Vec<String>,
    /// Parts of these warnings, the most severe first.
    pub warning_details: Vec<WarningRecord>,
    /// Number of connections that the rounds were spread over.
    pub launches: u32,
    /// Number of earlier runs that the intervals of the next run are based on.
    pub history_runs: u32,
    /// The failure that ended the run early, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// The other end's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<Fingerprint>,
    /// Costs of fixed tasks before, during and after the run.
    pub canaries: Vec<CanaryRecord>,
    /// Time of a cache line to the responder's processor and back in the launches that count, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_distance_s: Option<f64>,
}

/// Cost of a fixed task before, during and after a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CanaryRecord {
    /// Name of the task.
    pub name: String,
    /// Cost before the run, seconds.
    pub before_s: f64,
    /// Cost between launches, seconds.
    pub during_s: f64,
    /// Cost after the run, seconds.
    pub after_s: f64,
    /// Largest relative change from `before_s`, a fraction.
    pub moved: f64,
}

/// Requested accuracy.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Requested {
    /// Half width of an interval over its value, from 0 to 1.
    pub relative_error: f64,
    /// Confidence level of the intervals, percent.
    pub confidence_percent: f64,
}

/// Default eager limit S, as LogGOPSim's.
pub const USUAL_EAGER_LIMIT: Bytes = Bytes(65_535);

/// Default parameters, as LogGOPSim's.
pub const USUAL: LogGops = LogGops {
    latency: Picos(2_500_000),
    overhead: Picos(1_500_000),
    gap: Picos(1_000_000),
    gap_per_byte: PerByte(6_000 << PerByte::FRACTION_BITS),
    overhead_per_byte: PerByte::ZERO,
    eager_limit: USUAL_EAGER_LIMIT,
};

/// Usability of a measurement.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers are usable, each with its own mark.
    #[default]
    Usable,
    /// No numbers: see `reason`.
    Unusable,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// Further measuring would not have narrowed any interval that is still too wide.
    #[default]
    Finished,
    /// The time budget was spent.
    TimeSpent,
    /// The message budget was spent.
    MessagesSpent,
    /// The memory for samples was full.
    MemorySpent,
    /// Samples are missing because all of their rounds were lost.
    RoundsLost,
    /// The user interrupted it.
    Interrupted,
    /// A failure ended it: see `incomplete`.
    Failed,
}

impl From<Conclusion> for Stopped {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Converged => Self::Finished,
            Conclusion::TimeSpent => Self::TimeSpent,
            Conclusion::MessagesSpent => Self::MessagesSpent,
            Conclusion::MemorySpent => Self::MemorySpent,
            Conclusion::RoundsLost => Self::RoundsLost,
            Conclusion::Stopped => Self::Interrupted,
        }
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Finished => "more time would not narrow it",
            Self::TimeSpent => "time limit reached",
            Self::MessagesSpent => "message limit reached",
            Self::MemorySpent => "no memory for more samples",
            Self::RoundsLost => "all rounds were lost at some sizes",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        })
    }
}

/// Document of `fit -J`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FitDocument {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the program.
    pub loggap_version: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Detector of protocol changes.
    pub detector: String,
    /// Requested accuracy.
    pub requested: Requested,
    /// One set of parameters per protocol.
    pub ranges: Vec<FittedRange>,
    /// Changes between the ranges: one fewer than ranges.
    pub changes: Vec<ChangeRecord>,
    /// Ranges of the look-ahead detector as printed, for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literal: Option<Literal>,
    /// Table of samples by message size.
    pub sizes: Vec<SizeRecord>,
    /// True if every number reached the requested accuracy.
    pub converged: bool,
    /// Warnings about the numbers, in words.
    pub warnings: Vec<String>,
}

/// A range of `fit -J`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FittedRange {
    /// Parameters.
    #[serde(flatten)]
    pub record: RangeRecord,
    /// Mean square deviation of the gap from its line (Eq. 6), s²; `None` for fewer than three
    /// sizes.
    pub gap_lsq_s2: Option<f64>,
}

impl ProfileDocument {
    /// True if there are ranges, and the verdict is that they can be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.verdict == Verdict::Usable && !self.ranges.is_empty()
    }

    /// Reads and checks the profile at `path`.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] names the file and the cause, with line and column where the JSON itself is
    /// invalid.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let failed = |kind| ProfileError { path: path.to_owned(), kind };
        let file = File::open(path).map_err(|error| failed(ProfileErrorKind::Io(error)))?;
        let mut text = Vec::new();
        file.take(LONGEST + 1)
            .read_to_end(&mut text)
            .map_err(|error| failed(ProfileErrorKind::Io(error)))?;
        if text.len() as u64 > LONGEST {
            return Err(failed(ProfileErrorKind::TooLong(LONGEST)));
        }
        Self::parse(&text).map_err(failed)
    }

    /// Reads and checks the profile in `text`, or the file of `logp_test` or netgauge.
    ///
    /// # Errors
    ///
    /// [`ProfileErrorKind`].
    pub fn parse(text: &[u8]) -> Result<Self, ProfileErrorKind> {
        /// Parsed first, so that another version is reported as such.
        #[derive(Deserialize)]
        struct Versioned {
            schema_version: u32,
        }
        /// The part that every profile has.
        #[derive(Deserialize)]
        struct Required {
            #[serde(rename = "ranges")]
            _ranges: IgnoredAny,
        }
        if text.starts_with(logp_test::MAGIC.as_bytes()) {
            let read = logp_test::parse(&String::from_utf8_lossy(text));
            return read.map_err(ProfileErrorKind::Inconsistent);
        }
        if text.starts_with(netgauge::MAGIC.as_bytes()) {
            let read = of_netgauge(&String::from_utf8_lossy(text));
            return read.map_err(ProfileErrorKind::Inconsistent);
        }
        let versioned: Versioned = serde_json::from_slice(text).map_err(ProfileErrorKind::Json)?;
        if versioned.schema_version != SCHEMA_VERSION {
            return Err(ProfileErrorKind::Version(versioned.schema_version));
        }
        let _: Required = serde_json::from_slice(text).map_err(ProfileErrorKind::Json)?;
        let document: Self = serde_json::from_slice(text).map_err(ProfileErrorKind::Json)?;
        check(&document.ranges, &document.changes).map_err(ProfileErrorKind::Inconsistent)?;
        Ok(document)
    }

    /// True for a profile that `loggap fit` made from samples, without a link.
    #[must_use]
    pub const fn is_fit(&self) -> bool {
        self.transport.is_empty()
    }

    /// Eager limit S found in the sizes: the last size before the change of protocol that a setting of
    /// the library calls its eager limit, else before the first. Only
    /// MPI and fitted samples have one; on other links a change (segments, inline data) does not
    /// make the sender wait for its receiver. `None` without such a change.
    #[must_use]
    pub fn eager_limit(&self) -> Option<Bytes> {
        let is_named = |change: &&ChangeRecord| {
            change.setting.as_deref().is_some_and(|setting| setting.starts_with("eager limit"))
        };
        let splitting = || self.changes.iter().filter(|change| change.splits);
        let change = splitting().find(is_named).or_else(|| splitting().next())?;
        let has_rendezvous = matches!(self.transport.as_str(), "" | "mpi");
        has_rendezvous.then(|| Bytes(change.at_bytes.saturating_sub(1)))
    }

    /// Model parameters of the profile.
    ///
    /// # Errors
    ///
    /// [`ProfileErrorKind::Inconsistent`] for more ranges or changes than a [`Profile`] holds;
    /// impossible for a document from [`ProfileDocument::read`].
    pub fn model(&self) -> Result<Profile, ProfileErrorKind> {
        let mut profile = Profile::default();
        let full = || ProfileErrorKind::Inconsistent(too_many());
        for record in &self.ranges {
            profile.ranges.push(record.range).map_err(|_| full())?;
        }
        for change in &self.changes {
            profile.changes.push(Change::from(change)).map_err(|_| full())?;
        }
        Ok(profile)
    }
}

/// Profile fitted to the medians in netgauge's output.
fn of_netgauge(text: &str) -> Result<ProfileDocument, String> {
    let rows = netgauge::rows(text)?;
    let analysis = Analysis::of_results(&rows, &AssessOptions::default());
    Ok(analysis.map_err(|error| error.to_string())?.document())
}

fn too_many() -> String {
    format!("more than {} ranges", Profile::<16>::default().ranges.capacity())
}

/// Checks that ranges ascend without gaps and that each splitting change is at the begin of a
/// range.
fn check(ranges: &[RangeRecord], changes: &[ChangeRecord]) -> Result<(), String> {
    if ranges.len() > Profile::<16>::default().ranges.capacity() {
        return Err(too_many());
    }
    if changes.len() > Profile::<16>::default().changes.capacity() {
        return Err(format!("{} changes are more than a profile holds", changes.len()));
    }
    for (index, record) in ranges.iter().enumerate() {
        let Range { first, last, .. } = &record.range;
        if first.0 == 0 || first > last {
            return Err(format!("ranges[{index}] goes from {first} to {last}"));
        }
    }
    for (index, (before, after)) in ranges.iter().zip(ranges.iter().skip(1)).enumerate() {
        let (ends, begins) = (before.range.last, after.range.first);
        if ends.0.checked_add(1) != Some(begins.0) {
            let next = index.saturating_add(1);
            return Err(format!(
                "ranges[{index}] ends at {ends}, ranges[{next}] begins at {begins}"
            ));
        }
    }
    for (index, change) in changes.iter().enumerate() {
        let ChangeRecord { at_bytes, lo_bytes, hi_bytes, splits, .. } = change;
        // The first range counts, too, where the sizes below it are unknown.
        let begins = ranges.iter().any(|record| record.range.first.0 == *at_bytes);
        if !(lo_bytes <= at_bytes && at_bytes <= hi_bytes) || *splits && !begins {
            return Err(format!(
                "changes[{index}] is at {at_bytes} B, from {lo_bytes} to {hi_bytes} B, and no range begins there"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn document(ranges: &str, changes: &str) -> String {
        format!(r#"{{"schema_version":1,"ranges":[{ranges}],"changes":[{changes}]}}"#)
    }

    fn range(first: u64, last: u64) -> String {
        format!(r#"{{"first_bytes":{first},"last_bytes":{last},"gap_s":1e-6}}"#)
    }

    fn refusal(text: &str) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        ProfileDocument::read(file.path()).unwrap_err().to_string()
    }

    const CHANGE: &str = r#"{"at_bytes":100,"lo_bytes":90,"hi_bytes":101}"#;

    #[test]
    fn a_document_is_read_back() {
        let text = document(&format!("{},{}", range(1, 99), range(100, 200)), CHANGE);
        let document = ProfileDocument::parse(text.as_bytes()).unwrap();
        let written = serde_json::to_vec_pretty(&document).unwrap();
        assert_eq!(ProfileDocument::parse(&written).unwrap(), document);
        assert_eq!(document.model().unwrap().changes.len(), 1);
    }

    #[test]
    fn syntax_is_refused_with_line_and_column() {
        let error = refusal("{\n  \"schema_version\": 1,\n  \"ranges\": [}\n");
        assert!(error.contains("line 3, column 14"), "{error}");
        let error = refusal(&document(r#"{"first_bytes":"x"}"#, ""));
        assert!(error.contains("first_bytes") && error.contains("line 1"), "{error}");
        assert!(refusal("").contains("it is empty"));
        assert!(refusal(&"[".repeat(100_000)).contains("line 1"));
    }

    #[test]
    fn another_version_is_named_whatever_else_it_holds() {
        let error = refusal(r#"{"schema_version":7,"ranges":"elsewhere"}"#);
        assert!(error.contains('7') && error.contains("reads 1"), "{error}");
    }

    #[test]
    fn parts_that_do_not_fit_together_are_named() {
        let hole = document(&format!("{},{}", range(1, 98), range(100, 200)), CHANGE);
        let elsewhere = CHANGE.replace("\"at_bytes\":100", "\"at_bytes\":98");
        let elsewhere = document(&format!("{},{}", range(1, 99), range(100, 200)), &elsewhere);
        let many = (0..17).map(|i| range(i + 1, i + 1)).collect::<Vec<_>>().join(",");
        for (text, expected) in [
            (hole, "ranges[0] ends at 98 B, ranges[1] begins at 100 B"),
            (elsewhere, "changes[0] is at 98 B"),
            (document(&range(9, 1), ""), "ranges[0] goes from 9 B to 1 B"),
            (document(&range(0, 1), ""), "ranges[0] goes from 0 B"),
            (document(&many, ""), "more than 16 ranges"),
        ] {
            let error = refusal(&text);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = ProfileDocument::read(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("'/nonexistent'"), "{error}");
    }
}
