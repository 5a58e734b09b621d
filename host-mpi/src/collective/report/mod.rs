//! Report of a run of `coll`: one document, and its tables, values and chart.

mod chart;
mod table;
mod values;

use loggap::machine::buffer::Alignment;
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::operation::Cell;
use super::overlap::Overlap;
use super::scheme::SchemeName;
use super::series::Measured;
use crate::job::Host;

pub use chart::{TimeAt, Times, chart, over_size};
pub use table::table;
pub use values::{CellSamples, SAMPLES_HEAD, csv, samples};

/// Result of one operation and size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResultRecord {
    /// Operation.
    pub op: String,
    /// Bytes per rank; 0 for a barrier.
    pub size_bytes: u64,
    /// Scheme by which repetitions started.
    pub scheme: String,
    /// Reason why the median is not the time of the operation, with a flawed scheme.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flaw: Option<String>,
    /// Arrival pattern of the ranks.
    pub arrival: String,
    /// Median from the common start to the last exit; `None` if no repetition counted.
    pub median_s: Option<f64>,
    /// Lower end of its interval: within this launch, or over several launches.
    pub median_s_lo: Option<f64>,
    /// Upper end of its interval.
    pub median_s_hi: Option<f64>,
    /// Mean over ranks of each rank's mean time to its own exit.
    pub avg_s: Option<f64>,
    /// Mean of the quickest rank.
    pub min_s: Option<f64>,
    /// Mean of the slowest rank.
    pub max_s: Option<f64>,
    /// Number of repetitions that counted.
    pub reps: u64,
    /// Effective sample size: independent repetitions that these are worth.
    #[serde(default)]
    pub reps_effective: u64,
    /// Number of repetitions that did not count.
    pub discarded: u64,
    /// Those that started late.
    pub discarded_late: u64,
    /// Those that ended after their window.
    pub discarded_too_long: u64,
    /// Those timed while a rank's clock was not synchronised.
    #[serde(default)]
    pub discarded_no_clock: u64,
    /// Number of intervals between two synchronisations with such repetitions.
    #[serde(default)]
    pub lost_segments: u64,
    /// Median skew of starts.
    pub skew_s: Option<f64>,
    /// Maximum skew of starts.
    pub skew_max_s: Option<f64>,
    /// Bound of the error of times that the clocks cause.
    pub clock_error_s: Option<f64>,
    /// Number of synchronisations of the clocks.
    #[serde(default)]
    pub synchronisations: u64,
    /// Condition that ended the series.
    pub stopped: String,
    /// Reason why most repetitions did not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diagnosis: Option<String>,
    /// Computation that an immediate operation hides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub overlap: Option<Overlap>,
    /// Median of each launch, if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub launch_medians_s: Vec<f64>,
    /// Range of the launches' medians relative to the median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spread: Option<f64>,
}

impl ResultRecord {
    /// Record of a cell.
    #[must_use]
    pub fn new(cell: Cell, scheme: SchemeName, arrival: &str, measured: &Measured) -> Self {
        // Divided, so that decimals stay exact: 1.5e-6, not 1.4999…e-6.
        #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is wanted")]
        let seconds = |time: Option<Picos>| time.map(|time| time.0 as f64 / 1e12);
        let Measured { ranks, counts, .. } = measured;
        Self {
            op: cell.operation.to_string(),
            size_bytes: cell.bytes(),
            scheme: scheme.name(),
            flaw: scheme.flaw().map(str::to_owned),
            arrival: arrival.to_owned(),
            median_s: seconds(measured.median),
            median_s_lo: seconds(measured.interval.map(|(low, _)| low)),
            median_s_hi: seconds(measured.interval.map(|(_, high)| high)),
            avg_s: seconds(ranks.map(|ranks| ranks.average)),
            min_s: seconds(ranks.map(|ranks| ranks.least)),
            max_s: seconds(ranks.map(|ranks| ranks.most)),
            reps: measured.valid,
            reps_effective: measured.effective,
            discarded: counts.discarded(),
            discarded_late: counts.late,
            discarded_too_long: counts.too_long,
            discarded_no_clock: counts.no_clock,
            lost_segments: counts.lost_segments,
            skew_s: seconds(measured.skew.map(|(median, _)| median)),
            skew_max_s: seconds(measured.skew.map(|(_, most)| most)),
            clock_error_s: seconds(Some(measured.clock_error).filter(|e| *e < Picos::MAX)),
            synchronisations: counts.synchronisations.into(),
            stopped: measured.stopped.name().to_owned(),
            diagnosis: measured.diagnosis.clone(),
            ..Self::default()
        }
    }
}

/// Results of a run, and the conditions that they depend on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Document {
    /// Version of loggap.
    pub loggap_version: String,
    /// Command line.
    pub command: String,
    /// Seed of the order of operations and sizes.
    pub seed: u64,
    /// The MPI library.
    pub library: String,
    /// Number of ranks of the job.
    pub ranks: usize,
    /// Machines on which they ran.
    pub hosts: Vec<Host>,
    /// True if ranks shared processors.
    pub oversubscribed: bool,
    /// Alignment of message buffers.
    #[serde(flatten)]
    pub alignment: Alignment,
    /// Name of the clock source.
    pub clock: String,
    /// Cost of a clock reading.
    pub clock_read_s: f64,
    /// Meaning of sizes in bytes of buffers.
    pub size_meaning: String,
    /// Root of the operations that have one.
    pub root: u32,
    /// Number of launches of the job.
    pub launches: u32,
    /// Time from the start of the command to its end.
    pub wall_s: f64,
    /// Reason why the document is not complete.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub incomplete: Option<String>,
    /// Warnings about the results.
    pub warnings: Vec<String>,
    /// Results, one for each operation and size.
    pub results: Vec<ResultRecord>,
}

/// Meaning of sizes in bytes of buffers.
pub const SIZE_MEANING: &str = "bytes per rank as OSU counts them: of the message of bcast, of each rank's vector of reduce, \
     allreduce, scan and exscan, of the block for one rank of all others; reductions are sums of \
     32-bit words, sizes rounded up to whole ones";

impl Document {
    /// True if any result has a median.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        self.results.iter().any(|result| result.median_s.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};

    pub(super) fn document() -> Document {
        let known = ResultRecord {
            op: "bcast".into(),
            size_bytes: 64,
            scheme: "roundtime".into(),
            arrival: "balanced".into(),
            median_s: Some(2.5e-6),
            reps: 40,
            discarded: 3,
            stopped: "time".into(),
            ..ResultRecord::default()
        };
        let unknown = ResultRecord { size_bytes: 128, median_s: None, reps: 0, ..known.clone() };
        Document { results: vec![known, unknown], ranks: 2, launches: 1, ..Document::default() }
    }

    pub(super) fn text(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_document_is_read_as_it_is_written() {
        let document = document();
        let json = serde_json::to_string(&document).unwrap();
        assert!(json.contains("\"median_s\":null") && !json.contains("NaN"));
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
    }
}
