//! Flags that judge a measurement: assertions, and a baseline.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::slice;

use serde::Serialize;

use super::parse;
use crate::assertion::{Assertion, Holds, Judged};
use crate::compare::{self, CompareError, Comparison, MovedProcessors, Outcome, ProfileFile};
use crate::drive::Method;
use crate::output::junit::{self, Check};
use crate::output::{PendingFile, comparison, number, warnings};
use crate::profile::{ProfileDocument, Severity, WarningRecord};
use crate::terminal::{CliError, Console, NamedFiles};

/// Options that judge a measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct JudgeArgs {
    /// Compare with an earlier profile; exit with 3 if slower.
    ///
    /// Where it may be slower, the link is measured twice more.
    #[arg(long, value_name = "PROFILE.json")]
    baseline: Option<PathBuf>,
    /// Smallest change from the baseline that counts.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse::percent,
          requires = "baseline")]
    threshold: u32,
    /// Exit with 3 if it fails: 'half_rtt<20us@1K' (repeatable).
    ///
    /// half_rtt, gap, send_overhead or recv_overhead; < or >; a time; a measured size. It fails if
    /// the interval lies beyond the limit in three runs.
    #[arg(long = "assert", value_name = "LIMIT")]
    assertions: Vec<Assertion>,
    /// Write outcomes of --assert and --baseline as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
}

/// Outcomes of a run's assertions and of its comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Judgement {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assertions: Vec<Judged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Comparison>,
    /// Number of runs; of those compared with the baseline; and of those with processors as far apart
    /// as there.
    #[serde(skip)]
    runs: usize,
    #[serde(skip)]
    compared_runs: usize,
    #[serde(skip)]
    alike_runs: usize,
}

/// Options with their opened files.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    args: &'a JudgeArgs,
    baseline: Option<ProfileFile>,
    junit: Option<PendingFile>,
}

impl JudgeArgs {
    /// The first of these options that was given, for commands that cannot judge.
    pub(super) fn given(&self) -> Option<&'static str> {
        [
            ("--baseline", self.baseline.is_some()),
            ("--assert", !self.assertions.is_empty()),
            ("--junit", self.junit.is_some()),
        ]
        .into_iter()
        .find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Adds the files of these options.
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        files.read("--baseline", self.baseline.as_deref());
        files.written("--junit", self.junit.as_deref(), &["xml"]);
    }

    /// Reads the baseline and opens the report, so that errors come before the work; `sizes` are the
    /// smallest and the largest that will be measured.
    pub(super) fn prepare(
        &self,
        transport: &str,
        method: Method,
        sizes: RangeInclusive<u64>,
        console: &mut Console,
    ) -> Result<Judge<'_>, CliError> {
        if self.junit.is_some() && self.baseline.is_none() && self.assertions.is_empty() {
            return Err(CliError::usage("--junit needs --assert or --baseline"));
        }
        if let Some(outside) = self.assertions.iter().find(|one| !sizes.contains(&one.size())) {
            let (first, last) = (number::size(*sizes.start()), number::size(*sizes.end()));
            return Err(CliError::usage(format_args!(
                "--assert '{outside}': sizes from {first} to {last} are measured; others with -s"
            )));
        }
        let baseline = self.baseline.as_ref().map(|path| {
            let baseline = ProfileFile::read(path).map_err(CliError::usage)?;
            compare::usable(&baseline)?;
            let ProfileDocument { transport: theirs, method: their_method, .. } = &baseline.profile;
            for (option, theirs, ours) in
                [("transport", theirs, transport), ("method", their_method, method.name())]
            {
                if theirs != ours {
                    return Err(CliError::usage(format_args!(
                        "{} was measured with --{option} {theirs}, this run is with {ours}",
                        path.display()
                    )));
                }
            }
            warn_of(std::iter::once(&baseline), console);
            Ok::<_, CliError>(baseline)
        });
        let junit = self.junit.as_ref().map(PendingFile::create).transpose()?;
        Ok(Judge { args: self, baseline: baseline.transpose()?, junit })
    }
}

/// Runs that count before a limit is broken or the link slower.
pub(super) const RUNS: usize = 3;
/// Most runs: those whose processors were moved since the baseline do not count.
pub(super) const MOST_RUNS: usize = 5;

impl Judge<'_> {
    /// Judges `runs`, the first one first; the comparison has its own error.
    pub(super) fn judge(&self, runs: &[ProfileFile]) -> (Judgement, Result<(), CompareError>) {
        let documents = || runs.iter().map(|run| &run.profile);
        let judged = self.args.assertions.iter().map(|assertion| assertion.judge(documents()));
        let assertions = judged.collect();
        let Some(baseline) = self.baseline.as_ref().filter(|_| !runs.is_empty()) else {
            let none = Judgement { assertions, runs: runs.len(), ..Judgement::default() };
            return (none, Ok(()));
        };
        let baseline = slice::from_ref(baseline);
        let is_moved = |run| MovedProcessors::between(baseline, slice::from_ref(run)).is_some();
        let alike: Vec<ProfileFile> = runs.iter().filter(|run| !is_moved(run)).cloned().collect();
        let counted = if alike.is_empty() { runs } else { &alike };
        let threshold = f64::from(self.args.threshold) / 1e6;
        let (baseline, outcome) = match compare::compare(baseline, counted, threshold) {
            Ok(found) => (Some(found), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let (runs, compared_runs, alike_runs) = (runs.len(), counted.len(), alike.len());
        (Judgement { assertions, baseline, runs, compared_runs, alike_runs }, outcome)
    }

    /// Reports `error`, which no measurement survived, so that no report of an earlier run stays.
    pub(super) fn failed(self, error: CliError) -> CliError {
        // The error says more than that its report cannot be written.
        let _unwritten = self.write(&Judgement::default(), Some(&error));
        error
    }

    /// Writes the report, with a failing case for the `failure` of a measurement.
    pub(super) fn write(
        self,
        judgement: &Judgement,
        failure: Option<&CliError>,
    ) -> Result<(), CliError> {
        let failed = failure.map(|error| Check {
            name: "measurement".to_owned(),
            verdict: Holds::Fails,
            line: error.to_string(),
        });
        let checks: Vec<Check> = judgement.checks().into_iter().chain(failed).collect();
        match self.junit {
            Some(file) => Ok(file.commit(|out| junit::write(out, "loggap measure", &checks))?),
            None => Ok(()),
        }
    }
}

impl Judgement {
    /// Withdraws failures and slow-downs for which fewer than [`RUNS`] were made; returns how many
    /// were, if any is withdrawn.
    pub(super) fn withdraw(&mut self) -> Option<usize> {
        let failing = self.assertions.iter_mut().filter(|judged| judged.verdict == Holds::Fails);
        let mut withdrawn = None;
        for judged in failing.filter(|_| self.runs < RUNS) {
            judged.verdict = Holds::Unknown;
            withdrawn = Some(self.runs);
        }
        let slower = self.baseline.as_mut().filter(|found| found.verdict == Outcome::Slower);
        if let Some(found) = slower.filter(|_| self.compared_runs < RUNS) {
            found.withdraw(|change| change.verdict == Outcome::Slower);
            withdrawn = Some(self.compared_runs);
        }
        withdrawn
    }

    /// Why another run is worth while; `None` if it is not.
    pub(super) fn doubt(&self) -> Option<String> {
        let failing = self.assertions.iter().find(|judged| judged.verdict == Holds::Fails);
        let failing = failing.filter(|_| self.runs < RUNS);
        let compared = self.baseline.as_ref().filter(|_| self.alike_runs < RUNS);
        let slower = compared.and_then(|found| {
            let may_be = |change: &&compare::CurveChange| {
                change.verdict == Outcome::Slower
                    || change.verdict == Outcome::Unknown
                        && change.ratio > 1.0 + found.threshold
                        && !compare::is_overhead(change.curve)
            };
            found.parameters.iter().find(may_be)
        });
        failing.map(Judged::to_string).or_else(|| slower.map(comparison::line))
    }

    fn checks(&self) -> Vec<Check> {
        Check::all(&self.assertions, self.baseline.as_ref())
    }

    /// True if a limit is broken, or the link is slower.
    pub(super) fn fails(&self) -> bool {
        self.assertions.iter().any(|judged| judged.verdict == Holds::Fails)
            || self.baseline.as_ref().is_some_and(|found| found.verdict == Outcome::Slower)
    }

    /// True if anything cannot be told.
    pub(super) fn is_open(&self) -> bool {
        self.assertions.iter().any(|judged| judged.verdict == Holds::Unknown)
            || self.baseline.as_ref().is_some_and(Comparison::is_open)
    }

    /// The outcomes as lines of text.
    pub(super) fn text(&self) -> String {
        let mut text: String =
            self.assertions.iter().map(|judged| format!("# {judged}\n")).collect();
        if let Some(found) = &self.baseline {
            let mut table = Vec::new();
            let _to_memory = comparison::write(&mut table, found, &[]);
            text += &String::from_utf8_lossy(&table);
            let (moved, all) = (self.runs - self.compared_runs, self.runs);
            if moved > 0 {
                text += &format!(
                    "# {moved} of {all} runs are not compared: processors were moved since\n"
                );
            }
        }
        text
    }

    /// Prints annotations where the job runs on GitHub.
    pub(super) fn annotate(&self, console: &mut Console) {
        annotate(&self.checks(), console);
    }
}

/// Prints `checks` that do not hold as annotations where the job runs on GitHub.
pub(crate) fn annotate(checks: &[Check], console: &mut Console) {
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        checks.iter().filter_map(Check::annotation).for_each(|line| console.note(line));
    }
}

/// Warns of incomplete and of spoilt profiles, and of another machine.
pub(crate) fn warn_of<'a>(
    files: impl Iterator<Item = &'a ProfileFile> + Clone,
    console: &mut Console,
) {
    for ProfileFile { path, profile } in files.clone() {
        if let Some(why) = &profile.incomplete {
            console.warn(format_args!("'{}' is incomplete: {why}", path.display()));
        }
        let spoils = |warning: &&WarningRecord| warning.severity == Severity::Spoils;
        for warning in profile.warning_details.iter().filter(spoils) {
            console.warn(format_args!("'{}': {}", path.display(), warnings::text(warning)));
        }
    }
    let host = |file: &ProfileFile| file.profile.host.hostname.clone();
    let Some(first) = files.clone().next() else { return };
    let is_other = |file: &&ProfileFile| host(file) != host(first) && !host(file).is_empty();
    if let Some(other) = files.clone().find(is_other).filter(|_| !host(first).is_empty()) {
        console.warn(format_args!(
            "'{}' was measured on {}, '{}' on {}",
            first.path.display(),
            host(first),
            other.path.display(),
            host(other)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{RangeRecord, SizeRecord};
    use loggap_core::measure::SizeRow;
    use loggap_core::model::{Estimate, Range};
    use loggap_core::units::{Bytes, SignedPicos};

    /// A run with this half round trip in microseconds, and the distance of its processors in
    /// nanoseconds.
    fn run(number: u64, half_rtt_us: i64, distance_ns: f64) -> ProfileFile {
        let [value, low, high] =
            [1_000, 999, 1_001].map(|share| SignedPicos(half_rtt_us * share * 1_000));
        let half_rtt = Some(Estimate { value, low, high, ..Estimate::default() });
        let row = SizeRow { size: Bytes(1), half_rtt, ..SizeRow::default() };
        let range = Range { first: Bytes(1), last: Bytes(1), ..Range::default() };
        let profile = ProfileDocument {
            method: "prtt".to_owned(),
            started_unix_s: 60 * number,
            sizes: vec![SizeRecord::from(row)],
            ranges: vec![RangeRecord::from(range)],
            launches: 5,
            processor_distance_s: Some(distance_ns * 1e-9),
            ..ProfileDocument::default()
        };
        ProfileFile { path: format!("{number}.json").into(), profile }
    }

    /// Of runs with these half round trips and distances, beside a baseline of 10 us and 60 ns, and
    /// a limit of 50 us: whether there is a doubt, how many runs withdraw what, if any is, and
    /// whether anything fails.
    fn judged(runs: &[(i64, f64)]) -> (bool, Option<usize>, bool) {
        let args = JudgeArgs {
            baseline: None,
            threshold: 50_000,
            assertions: vec!["half_rtt<50us@1".parse().unwrap()],
            junit: None,
        };
        let judge = Judge { args: &args, baseline: Some(run(0, 10, 60.0)), junit: None };
        let runs = runs.iter().zip(1..);
        let runs: Vec<_> = runs.map(|(&(time, distance), at)| run(at, time, distance)).collect();
        let (mut judgement, compared) = judge.judge(&runs);
        compared.unwrap();
        let doubt = judgement.doubt().is_some();
        (doubt, judgement.withdraw(), judgement.fails())
    }

    #[test]
    fn three_runs_that_count_have_to_fail() {
        let (same, slower) = ((10, 60.0), (18, 60.0));
        assert_eq!(judged(&[same]), (false, None, false));
        assert_eq!(judged(&[slower]), (true, Some(1), false));
        assert_eq!(judged(&[slower; 2]), (true, Some(2), false));
        assert_eq!(judged(&[slower; 3]), (false, None, true));
    }

    #[test]
    fn runs_of_moved_processors_do_not_count_beside_others() {
        let (slower, moved) = ((18, 60.0), (18, 300.0));
        assert_eq!(judged(&[moved, slower, moved, slower]), (true, Some(2), false));
        assert_eq!(judged(&[moved, slower, slower, moved, slower]), (false, None, true));
        // All were moved: what that explains is not told, and what it does not is.
        let (doubt, withdrawn, fails) = judged(&[moved; 5]);
        assert_eq!((doubt, withdrawn, fails), (true, None, false));
        assert_eq!(judged(&[(80, 300.0); 3]), (true, None, true));
    }

    #[test]
    fn a_limit_needs_no_runs_like_the_baseline() {
        let (once, thrice) = (judged(&[(60, 300.0)]), judged(&[(60, 900.0); 3]));
        assert_eq!((once.1, once.2), (Some(1), false));
        assert!(thrice.2);
    }
}
