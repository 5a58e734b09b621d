//! What a run of `coll` says: one document, and tables and pictures of it.

use std::io::{self, Write};

use loggap::study::{Chart, Series};
use loggap_core::units::Picos;
use serde::{Deserialize, Serialize};

use super::course::{Measured, Sample};
use super::operation::{Cell, Operation};
use super::overlap::{Overlap, Point};
use super::scheme::SchemeName;
use crate::job::{MachineUse, Place, Sharing};

/// Of the document's form.
pub const SCHEMA_VERSION: u32 = 1;

/// A machine and its ranks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Ranks on it.
    pub ranks: usize,
    /// Processors that these may use.
    pub processors: usize,
    /// Ranks that are bound to one processor.
    pub bound: usize,
}

/// The machines of a job, in order of their names, and whether ranks share
/// processors on one of them.
#[must_use]
pub fn hosts(places: &[Place]) -> (Vec<Host>, bool) {
    let sharing = Sharing::of(places);
    let host = |machine: &MachineUse<'_>| Host {
        host: machine.host.to_owned(),
        ranks: machine.ranks,
        processors: machine.processors,
        bound: machine.bound,
    };
    (sharing.machines().iter().map(host).collect(), sharing.is_shared())
}

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
    /// Lower end of its interval.
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
    /// Repetitions that did not.
    pub discarded: u64,
    /// Of these, started late.
    pub discarded_late: u64,
    /// Of these, ended after their window.
    pub discarded_too_long: u64,
    /// Median skew of starts.
    pub skew_s: Option<f64>,
    /// Greatest skew of starts.
    pub skew_max_s: Option<f64>,
    /// What times may be off by because clocks are.
    pub clock_error_s: Option<f64>,
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
            discarded: measured.late.saturating_add(measured.too_long),
            discarded_late: measured.late,
            discarded_too_long: measured.too_long,
            skew_s: seconds(measured.skew.map(|(median, _)| median)),
            skew_max_s: seconds(measured.skew.map(|(_, most)| most)),
            clock_error_s: seconds(Some(measured.clock_error).filter(|e| *e < Picos::MAX)),
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

/// Width of a column of times.
const TIME: usize = 11;

/// Writes the tables, one an operation.
///
/// # Errors
///
/// Those of `out`.
pub fn table(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    head(out, document)?;
    let mut operation = "";
    for result in &document.results {
        if result.op != operation {
            operation = &result.op;
            columns(out, document, result)?;
        }
        row(out, document, result)?;
    }
    for result in &document.results {
        if let Some(overlap) = &result.overlap {
            overlapped(out, result, overlap)?;
        }
    }
    Ok(())
}

fn head(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { loggap_version, library, ranks, seed, launches, .. } = document;
    writeln!(out, "# loggap-mpi {loggap_version} coll, {library}, {ranks} ranks, seed {seed}")?;
    for Host { host, ranks, processors, bound } in &document.hosts {
        writeln!(out, "# {host}: {ranks} ranks, {processors} processors, {bound} ranks bound")?;
    }
    writeln!(out, "# command: {}", document.command)?;
    if *launches > 1 {
        writeln!(out, "# medians over the medians of {launches} launches")?;
    }
    writeln!(out, "# size: {}", document.size_meaning)
}

fn columns(out: &mut dyn Write, document: &Document, first: &ResultRecord) -> io::Result<()> {
    let ResultRecord { op, scheme, arrival, .. } = first;
    let root = root_of(document, op);
    writeln!(out, "\n# {op}, scheme {scheme}, arrival {arrival}{root}")?;
    match &first.flaw {
        Some(flaw) => writeln!(out, "# FLAWED: {flaw}")?,
        None => writeln!(
            out,
            "# from the common start: avg, min, max over ranks of each one's mean exit; median, \
             lo, hi of the last exit (95%)"
        )?,
    }
    write!(out, "{:>10}", "# size [B]")?;
    let times = ["avg [us]", "min [us]", "max [us]", "median [us]", "lo [us]", "hi [us]"];
    for name in times.iter().chain(&["skew [us]"]) {
        write!(out, " {name:>TIME$}")?;
    }
    write!(out, " {:>8} {:>9}  stopped by", "valid", "discarded")?;
    if document.launches > 1 { writeln!(out, "  spread") } else { writeln!(out) }
}

fn root_of(document: &Document, op: &str) -> String {
    let has_root = Operation::all().any(|known| known.has_root() && known.to_string() == op);
    if has_root { format!(", root {}", document.root) } else { String::new() }
}

fn row(out: &mut dyn Write, document: &Document, result: &ResultRecord) -> io::Result<()> {
    let r = result;
    write!(out, "{:>10}", r.size_bytes)?;
    for time in [r.avg_s, r.min_s, r.max_s, r.median_s, r.median_s_lo, r.median_s_hi, r.skew_s] {
        write!(out, " {:>TIME$}", micros(time))?;
    }
    write!(out, " {:>8} {:>9}  {}", r.reps, r.discarded, r.stopped)?;
    if document.launches > 1 {
        let spread = r.spread.map_or_else(|| "-".to_owned(), |s| format!("{:.1}%", s * 100.0));
        write!(out, "  {spread}")?;
    }
    writeln!(out)
}

/// In microseconds, as OSU's tables; `-` where there is none.
fn micros(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.2}", seconds * 1e6))
}

fn overlapped(out: &mut dyn Write, result: &ResultRecord, overlap: &Overlap) -> io::Result<()> {
    let Overlap { blocking_s, injectable_s, injectable_tests, share, points } = overlap;
    writeln!(
        out,
        "\n# {} of {} bytes hides {} us of computation ({:.0}% of its {} us) with {} tests",
        result.op,
        result.size_bytes,
        micros(Some(*injectable_s)),
        share * 100.0,
        micros(Some(*blocking_s)),
        injectable_tests
    )?;
    writeln!(
        out,
        "{:>13} {:>6} {:>TIME$} {:>13} {:>8}",
        "# compute [us]", "tests", "time [us]", "overhead [us]", "valid"
    )?;
    for point in points {
        let [compute, time, overhead] =
            [Some(point.compute_s), point.time_s, point.overhead_s].map(micros);
        let Point { tests, reps, .. } = point;
        writeln!(out, "{compute:>14} {tests:>6} {time:>TIME$} {overhead:>13} {reps:>8}")?;
    }
    Ok(())
}

/// Writes results as comma-separated values; what is not known is empty.
///
/// # Errors
///
/// Those of `out`.
pub fn csv(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(
        out,
        "op,size_bytes,scheme,arrival,median_s,median_s_lo,median_s_hi,avg_s,min_s,max_s,reps,\
         discarded,skew_s,skew_max_s,clock_error_s,stopped,spread"
    )?;
    let text = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
    for r in &document.results {
        // Only a path of arrivals can hold what has to be quoted.
        let arrival = if r.arrival.contains([',', '"', '\n']) {
            format!("\"{}\"", r.arrival.replace('"', "\"\""))
        } else {
            r.arrival.clone()
        };
        let times = [r.median_s, r.median_s_lo, r.median_s_hi, r.avg_s, r.min_s, r.max_s].map(text);
        let rest = [r.skew_s, r.skew_max_s, r.clock_error_s].map(text).join(",");
        writeln!(
            out,
            "{},{},{},{arrival},{},{},{},{rest},{},{}",
            r.op,
            r.size_bytes,
            r.scheme,
            times.join(","),
            r.reps,
            r.discarded,
            r.stopped,
            text(r.spread)
        )?;
    }
    Ok(())
}

/// The head of a file of samples.
pub const SAMPLES_HEAD: &str = "op,size_bytes,scheme,repetition,valid,rank,start_s,exit_s";

/// Writes what each rank timed in a cell, relative to the common start.
///
/// # Errors
///
/// Those of `out`.
pub fn samples(
    out: &mut dyn Write,
    cell: Cell,
    (scheme, samples): (SchemeName, &[Sample]),
) -> io::Result<()> {
    let (operation, bytes, scheme) = (cell.operation, cell.bytes(), scheme.name());
    for Sample { repetition, valid, starts, exits } in samples {
        for (rank, (start, exit)) in starts.iter().zip(exits).enumerate() {
            let (start, exit) = (start.seconds(), exit.seconds());
            writeln!(
                out,
                "{operation},{bytes},{scheme},{repetition},{},{rank},{start:.12},{exit:.12}",
                u8::from(*valid)
            )?;
        }
    }
    Ok(())
}

/// Medians over size with the ends of their intervals.
#[must_use]
pub fn chart(document: &Document) -> Chart {
    let mut operations: Vec<&str> = Vec::new();
    for result in &document.results {
        if !operations.contains(&result.op.as_str()) {
            operations.push(&result.op);
        }
    }
    let line = |op: &str, of: fn(&ResultRecord) -> Option<f64>| {
        let results = document.results.iter().filter(|result| result.op == op);
        #[allow(clippy::cast_precision_loss, reason = "a pixel is coarser")]
        let points = results.filter_map(|r| Some((r.size_bytes.max(1) as f64, of(r)? * 1e6)));
        points.collect::<Vec<_>>()
    };
    let series = operations.iter().flat_map(|op| {
        [
            Series::new((*op).to_owned(), line(op, |r| r.median_s)),
            Series::new(format!("{op}: low end, 95%"), line(op, |r| r.median_s_lo)),
            Series::new(format!("{op}: high end, 95%"), line(op, |r| r.median_s_hi)),
        ]
    });
    let scheme = document.results.first().map_or("", |result| &result.scheme);
    Chart {
        title: format!("Collectives, {} ranks, {}, {scheme}", document.ranks, document.library),
        x_label: "size [bytes]".to_owned(),
        y_label: "median of the last exit [us]".to_owned(),
        series: series.collect(),
    }
}

/// Lines of a chart that share a colour.
pub const LINES_OF_ONE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
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

    fn text(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let document = document();
        let table = text(|out| table(out, &document));
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0][..5], ["64", "-", "-", "-", "2.50"]);
        assert_eq!(rows[1][..5], ["128", "-", "-", "-", "-"]);
        let json = serde_json::to_string(&document).unwrap();
        assert!(json.contains("\"median_s\":null") && !json.contains("NaN"));
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
        let csv = text(|out| csv(out, &document));
        assert!(csv.lines().nth(2).unwrap().starts_with("bcast,128,roundtime,balanced,,,,"));
        let fields = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| fields(line) == 17), "{csv}");
    }

    #[test]
    fn a_flawed_scheme_says_so() {
        let mut document = document();
        document.results[0].flaw = SchemeName::Loop.flaw().map(str::to_owned);
        assert!(text(|out| table(out, &document)).contains("# FLAWED: repetitions overlap"));
    }

    #[test]
    fn ranks_that_share_processors_are_noticed() {
        let place = |host: &str, cpu, processors| Place {
            host: host.into(),
            cpu,
            processors,
            ..Place::default()
        };
        let (found, shared) =
            hosts(&[place("b", None, 2), place("a", None, 2), place("b", None, 2)]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].host.as_str(), found[1].ranks, shared), ("a", 2, false));
        assert!(hosts(&[place("a", Some(3), 1), place("a", Some(3), 1)]).1);
        assert!(!hosts(&[place("a", Some(3), 1), place("a", Some(4), 1)]).1);
        assert!(hosts(&[place("a", None, 1), place("a", None, 1)]).1);
    }

    #[test]
    fn the_picture_has_medians_and_ends() {
        assert_eq!(chart(&document()).series.len(), LINES_OF_ONE);
    }
}
