//! Report of a comparison: one document, and its table, CSV and chart.

use std::io::{self, Write};

use loggap::machine::buffer::Alignment;
use loggap::output::number::{self, micros};
use loggap::output::{Fields, csv};
use loggap::profile::ProfileDocument;
use loggap::study::Chart;
use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

use super::noise::NoiseReport;
use super::predict::UnderNoise;
use super::taking::{Level, Taken};
use super::{Algorithms, Subject};
use crate::algorithm::InForce;
use crate::collective::report::{TimeAt, Times, over_size};
use crate::job::Host;
use loggap::check::{Asserted, Verdict};

/// Document of a comparison.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) loggap_version: &'static str,
    pub(super) command: Vec<String>,
    pub(super) library: String,
    pub(super) ranks: usize,
    /// Numbers of ranks that were compared.
    pub(super) processes: Vec<u32>,
    pub(super) hosts: Vec<Host>,
    pub(super) oversubscribed: bool,
    #[serde(flatten)]
    pub(super) alignment: Alignment,
    pub(super) algorithms: Algorithms,
    pub(super) eager_limit_bytes: Option<u64>,
    /// Noise of all ranks, if it was measured.
    pub(super) noise: Option<NoiseReport>,
    /// Levels measured; predictions use the last one.
    pub(super) levels: Vec<LevelRecord>,
    pub(super) results: Vec<ResultRecord>,
    pub(super) warnings: Vec<String>,
    pub(super) incomplete: Option<String>,
}

/// Profiles of the pair of ranks that represents a level.
#[derive(Debug, Serialize)]
pub(super) struct LevelRecord {
    pub(super) level: Level,
    pub(super) ranks: [i32; 2],
    /// Profiles from before and from after the operations.
    pub(super) profile: ProfileDocument,
    pub(super) profile_after: Option<ProfileDocument>,
}

/// A prediction, and the likely cause of its error.
#[derive(Debug)]
pub(super) struct Predicted {
    pub(super) estimate: Estimate<Picos>,
    pub(super) under_noise: Option<UnderNoise>,
    pub(super) cause: Option<String>,
    pub(super) one_way: Picos,
}

/// Result of one operation and size.
#[derive(Debug, Serialize)]
pub(super) struct ResultRecord {
    op: String,
    size_bytes: u64,
    pub(super) ranks: u32,
    algorithm: String,
    /// Variable that selects the algorithm.
    variable: Option<String>,
    /// `None` if no repetition counted.
    #[serde(flatten)]
    measured: Option<Fields>,
    #[serde(skip)]
    pub(super) taken: Option<Taken>,
    predicted_s: Option<f64>,
    predicted_s_lo: Option<f64>,
    predicted_s_hi: Option<f64>,
    /// Prediction without noise, if noise was measured.
    predicted_quiet_s: Option<f64>,
    predicted_slow_share: Option<f64>,
    /// Share of repetitions that do not count, because noise delays the start of a rank.
    predicted_late_share: Option<f64>,
    /// Ratio of measured to predicted time.
    ratio: Option<f64>,
    verdict: Verdict,
    cause: Option<String>,
    /// Half a round trip of a message of this size, as the prediction uses it.
    one_way_s: Option<f64>,
    #[serde(skip)]
    estimates: Option<[Estimate<Picos>; 2]>,
}

/// Measured values of one operation and size. `start_s`, of the start and of reading the clock, is
/// part of none of them; `message_s` is from rank 0, `message_back_s` to it, after a common start;
/// page faults are those of rank 0 in a repetition.
fn fields(taken: &Taken) -> Fields {
    Fields(vec![
        ("measured_s", taken.operation.value.seconds().into()),
        ("measured_s_lo", taken.operation.low.seconds().into()),
        ("measured_s_hi", taken.operation.high.seconds().into()),
        ("measured_slow_share", taken.slow.value().into()),
        ("start_s", taken.start.seconds().into()),
        ("message_s", taken.message.value.seconds().into()),
        ("message_back_s", taken.back.value.seconds().into()),
        ("exchange_s", taken.exchange.value.seconds().into()),
        ("post_s", taken.post.value.seconds().into()),
        ("local_s", taken.local.value.seconds().into()),
        ("combine_s", taken.combine.value.seconds().into()),
        ("page_faults", taken.page_faults.into()),
        ("skew_s", taken.skew.seconds().into()),
        ("reps", taken.valid.into()),
        ("discarded", taken.discarded.into()),
    ])
}

impl ResultRecord {
    pub(super) fn new(
        Subject { cell, algorithm, ranks }: &Subject,
        taken: Option<&Taken>,
        predicted: Result<Predicted, String>,
    ) -> Self {
        let variable = match algorithm {
            InForce::Known(known) => Some(known.variable()),
            InForce::Other(_) => None,
        };
        let known = predicted.as_ref().ok();
        let of =
            |end: fn(&Estimate<Picos>) -> Picos| known.map(|found| end(&found.estimate).seconds());
        let noise = known.and_then(|found| found.under_noise);
        let predicted_s = of(|estimate| estimate.value);
        let estimates = taken.zip(known).map(|(taken, found)| [taken.operation, found.estimate]);
        let ratio = estimates
            .map(|[measured, estimate]| measured.value.seconds() / estimate.value.seconds());
        Self {
            op: cell.operation.to_string(),
            size_bytes: cell.bytes(),
            ranks: *ranks,
            algorithm: algorithm.name(),
            variable,
            measured: taken.map(fields),
            taken: taken.cloned(),
            predicted_s,
            predicted_s_lo: of(|estimate| estimate.low),
            predicted_s_hi: of(|estimate| estimate.high),
            predicted_quiet_s: noise.map(|noise| noise.quiet.seconds()),
            predicted_slow_share: noise.map(|noise| noise.repeated.slow_share),
            predicted_late_share: noise.map(|noise| noise.repeated.late_share),
            ratio: ratio.filter(|ratio| ratio.is_finite()),
            verdict: estimates
                .map_or(Verdict::CannotTell, |[one, other]| Verdict::of(&one, &other)),
            one_way_s: known.map(|found| found.one_way.seconds()),
            cause: predicted.map_or_else(Some, |found| found.cause),
            estimates,
        }
    }

    fn measured_s(&self) -> Times {
        self.taken.as_ref().map_or([None; 3], |Taken { operation, .. }| {
            [operation.value, operation.low, operation.high].map(|time| Some(time.seconds()))
        })
    }

    const fn predicted_s(&self) -> Times {
        [self.predicted_s, self.predicted_s_lo, self.predicted_s_hi]
    }

    /// Outcome of the assertion that the two differ by at most `allowed`.
    pub(super) fn asserted(&self, allowed: f64) -> Asserted {
        self.estimates.map_or(Asserted::Broken, |[one, other]| Asserted::of(&one, &other, allowed))
    }
}

/// Prints the document as a table.
pub(super) fn table(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { library, ranks, loggap_version, .. } = document;
    let alignment = document.alignment;
    writeln!(out, "# loggap-mpi {loggap_version} check, {library}, {ranks} ranks, {alignment}")?;
    if let Some(level) = document.levels.last() {
        let [one, other] = level.ranks;
        writeln!(out, "# predicted with the profile of ranks {one} and {other}, at all pairs")?;
    }
    writeln!(
        out,
        "# measured: from the common start to the last exit, less the start itself: median, 95% \
         interval of this launch; other launches differ by more"
    )?;
    if let Some(why) = &document.incomplete {
        writeln!(out, "# INCOMPLETE: {why}")?;
    }
    if let Some(noise) = &document.noise {
        noise_lines(out, noise)?;
    }
    let noise = if document.noise.is_some() { " quiet[us] slow[%] pred.slow[%]" } else { "" };
    writeln!(
        out,
        "#op          size[B] ranks measured[us]   lo[us]   hi[us] predicted[us]   lo[us]   hi[us]\
         {noise}\x20 ratio  verdict     algorithm            cause"
    )?;
    document.results.iter().try_for_each(|result| row(out, result, document))
}

/// Prints the results as comma-separated values; unknown values are empty.
pub(super) fn csv(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(
        out,
        "op,size_bytes,algorithm,measured_s,measured_s_lo,measured_s_hi,predicted_s,predicted_s_lo,predicted_s_hi,ratio,verdict,cause,ranks"
    )?;
    for r in &document.results {
        let numbers = [r.measured_s(), r.predicted_s()].concat().into_iter().chain([r.ratio]);
        let numbers = numbers.map(csv::cell).collect::<Vec<_>>().join(",");
        let [algorithm, cause] = [&r.algorithm, r.cause.as_deref().unwrap_or_default()]
            .map(|words| format!("\"{}\"", words.replace('"', "\"\"")));
        let verdict = r.verdict.name();
        let ResultRecord { op, size_bytes, ranks, .. } = r;
        writeln!(out, "{op},{size_bytes},{algorithm},{numbers},{verdict},{cause},{ranks}")?;
    }
    Ok(())
}

/// Chart of measured and predicted times over size, or over ranks if there are several numbers of
/// them, with their intervals: two lines next to each other.
pub(super) fn chart(document: &Document) -> Chart {
    let over_ranks = document.processes.len() > 1;
    let name = |r: &ResultRecord| match over_ranks {
        true => format!("{}, {} B", r.op, r.size_bytes),
        false => r.op.clone(),
    };
    let at = |r: &ResultRecord| if over_ranks { r.ranks.into() } else { r.size_bytes };
    let line = |label: String, results: &[&ResultRecord], times: fn(&ResultRecord) -> Times| {
        let time = |r: &&ResultRecord| TimeAt::new(at(r), times(r));
        TimeAt::line(label, &results.iter().filter_map(time).collect::<Vec<_>>())
    };
    let lines = |name: &str, results: &[&ResultRecord]| {
        vec![
            line(format!("{name}, measured"), results, ResultRecord::measured_s),
            line(format!("{name}, predicted"), results, ResultRecord::predicted_s),
        ]
    };
    let chart = Chart {
        title: format!("Measured and predicted, {} ranks, {}", document.ranks, document.library),
        y_label: "common start to last exit, 95% interval [us]".to_owned(),
        ..over_size(&document.results, name, lines)
    };
    let x_label = if over_ranks { "ranks".to_owned() } else { chart.x_label };
    Chart { x_label, ..chart }
}

/// Prints the noise of the ranks, and explains the columns about it.
fn noise_lines(out: &mut dyn Write, noise: &NoiseReport) -> io::Result<()> {
    let time = |seconds: f64| number::in_units(seconds, number::TIME);
    let longest = noise.longest_s.zip(noise.longest_rank).map_or_else(
        || "none".to_owned(),
        |(longest, rank)| format!("longest {} (rank {rank})", time(longest)),
    );
    writeln!(
        out,
        "# noise, all ranks at once for {}, detours longer than {}: lost {:.4}% of the median rank, \
         {:.4}% of the worst (rank {}); {:.1}/s of the median rank, {:.1}/s at most; {longest}",
        time(noise.duration_s),
        time(noise.threshold_s),
        noise.lost_share_median * 1e2,
        noise.lost_share_worst * 1e2,
        noise.worst_rank,
        noise.rate_per_s_median,
        noise.rate_per_s_worst
    )?;
    writeln!(
        out,
        "# predicted under this noise: the median of simulated repetitions; quiet: without it; slow: \
         repetitions that take {} more than the median",
        time(noise.threshold_s)
    )
}

/// Prints a row of `document`'s table.
fn row(out: &mut dyn Write, result: &ResultRecord, document: &Document) -> io::Result<()> {
    let percent = |share: Option<f64>| number::decimal(share.map(|share| share * 1e2), 3);
    let ratio = number::decimal(result.ratio, 3);
    let known = result.variable.as_ref().map_or("-", |_| &result.algorithm);
    let noise = if document.noise.is_some() {
        format!(
            " {:>9} {:>7} {:>12}",
            micros(result.predicted_quiet_s),
            percent(result.taken.as_ref().map(|taken| taken.slow.value())),
            percent(result.predicted_slow_share)
        )
    } else {
        String::new()
    };
    let [measured, low, high] = result.measured_s().map(micros);
    let [predicted, predicted_low, predicted_high] = result.predicted_s().map(micros);
    writeln!(
        out,
        "{:<10} {:>9} {:>5} {measured:>12} {low:>8} {high:>8} {predicted:>13} {predicted_low:>8} \
         {predicted_high:>8}{noise} {ratio:>6}  {:<11} {known:<20} {}",
        result.op,
        result.size_bytes,
        result.ranks,
        result.verdict.name(),
        result.cause.as_deref().unwrap_or("-"),
    )
}
