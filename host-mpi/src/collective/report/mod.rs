//! What a run of `coll` says: one document, and tables and pictures of it.

mod chart;
mod hosts;
mod table;
mod values;

use loggap::machine::buffer::Alignment;
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::course::Measured;
use super::operation::Cell;
use super::overlap::Overlap;
use super::scheme::SchemeName;

pub use chart::chart;
pub use hosts::{Host, hosts};
pub use table::table;
pub use values::{SAMPLES_HEAD, csv, samples};

/// Of the document's form.
pub const SCHEMA_VERSION: u32 = 1;

/// One operation and size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResultRecord {
    /// The operation.
    pub op: String,
    /// Bytes per rank; 0 for a barrier.
    pub size_bytes: u64,
    /// How repetitions were started.
    pub scheme: String,
    /// Why this is not the time of the operation, where it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flaw: Option<String>,
    /// When ranks arrived.
    pub arrival: String,
    /// Median from the common start to the last exit; `None` where nothing
    /// counted.
    pub median_s: Option<f64>,
    /// Lower end of its interval: within this launch, or over several.
    pub median_s_lo: Option<f64>,
    /// Upper end of its interval.
    pub median_s_hi: Option<f64>,
    /// Mean over ranks of each rank's mean time to its own exit.
    pub avg_s: Option<f64>,
    /// That of the quickest rank.
    pub min_s: Option<f64>,
    /// That of the slowest rank.
    pub max_s: Option<f64>,
    /// Repetitions that counted.
    pub reps: u64,
    /// Independent repetitions that these are worth.
    #[serde(default)]
    pub reps_effective: u64,
    /// Repetitions that did not.
    pub discarded: u64,
    /// Of these, started late.
    pub discarded_late: u64,
    /// Of these, ended after their window.
    pub discarded_too_long: u64,
    /// Of these, timed while a rank's clock was not on the common axis.
    #[serde(default)]
    pub discarded_no_clock: u64,
    /// Stretches between two synchronisations with such repetitions.
    #[serde(default)]
    pub lost_segments: u64,
    /// Median skew of starts.
    pub skew_s: Option<f64>,
    /// Greatest skew of starts.
    pub skew_max_s: Option<f64>,
    /// What times may be off by because clocks are.
    pub clock_error_s: Option<f64>,
    /// How often clocks were synchronised.
    #[serde(default)]
    pub synchronisations: u64,
    /// What ended the series.
    pub stopped: String,
    /// Why most repetitions did not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diagnosis: Option<String>,
    /// Computation that an immediate operation hides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub overlap: Option<Overlap>,
    /// The median of each launch, where there were several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub launch_medians_s: Vec<f64>,
    /// Greatest less smallest median of a launch, over the median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spread: Option<f64>,
}

impl ResultRecord {
    /// Of a cell.
    #[must_use]
    pub fn new(cell: Cell, (scheme, arrival): (SchemeName, &str), measured: &Measured) -> Self {
        // Divided, so that decimals stay what they are: 1.5e-6, not 1.4999…e-6.
        #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is wanted")]
        let seconds = |time: Option<Picos>| time.map(|time| time.0 as f64 / 1e12);
        let ranks = measured.ranks;
        Self {
            op: cell.operation.to_string(),
            size_bytes: cell.bytes(),
            scheme: scheme.name().to_owned(),
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
            discarded: measured.late + measured.too_long + measured.no_clock,
            discarded_late: measured.late,
            discarded_too_long: measured.too_long,
            discarded_no_clock: measured.no_clock,
            lost_segments: measured.lost_segments,
            skew_s: seconds(measured.skew.map(|(median, _)| median)),
            skew_max_s: seconds(measured.skew.map(|(_, most)| most)),
            clock_error_s: seconds(Some(measured.clock_error).filter(|e| *e < Picos::MAX)),
            synchronisations: measured.synchronisations.into(),
            stopped: measured.stopped.name().to_owned(),
            diagnosis: measured.diagnosis.clone(),
            ..Self::default()
        }
    }
}

/// All of a run, and what it depends on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Document {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Of this program.
    pub loggap_version: String,
    /// As it was called.
    pub command: String,
    /// Of orders and contents.
    pub seed: u64,
    /// The MPI library.
    pub library: String,
    /// Ranks of the job.
    pub ranks: usize,
    /// Where they ran.
    pub hosts: Vec<Host>,
    /// Whether ranks shared processors.
    pub oversubscribed: bool,
    /// Place of buffers in their pages.
    #[serde(flatten)]
    pub alignment: Alignment,
    /// What clocks were read.
    pub clock: String,
    /// What a reading cost.
    pub clock_read_s: f64,
    /// How many bytes the buffers of a size have.
    pub size_meaning: String,
    /// Root of operations that have one.
    pub root: u32,
    /// Starts of the job.
    pub launches: u32,
    /// From the start of the command to the end.
    pub wall_s: f64,
    /// Why it is not complete.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub incomplete: Option<String>,
    /// What deserves attention.
    pub warnings: Vec<String>,
    /// An entry an operation and size.
    pub results: Vec<ResultRecord>,
}

/// What a size means.
pub const SIZE_MEANING: &str = "bytes per rank as OSU counts them: of the message of bcast, of each rank's vector of reduce, \
     allreduce, scan and exscan, of the block for one rank of all others; reductions are sums of \
     32-bit words, sizes rounded up to whole ones";

impl Document {
    /// Whether there is a number at all.
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
