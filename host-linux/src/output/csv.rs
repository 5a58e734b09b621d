//! CSV with a row per size, for spreadsheets and data frames.

use std::io::{self, Write};

use loggap_core::model::Coefficient;
use serde_json::Value;

use super::quantity::Quantity;
use crate::profile::{self, COLUMNS, PERCENTILES, ProfileDocument, SAMPLES, SizeRecord};

/// Writes `heads` and `records` as CSV, and why records are missing as a remark.
///
/// # Errors
///
/// Write errors of `out`.
pub fn table<H: AsRef<[u8]>, R: IntoIterator<Item = String>>(
    out: &mut dyn Write,
    heads: impl IntoIterator<Item = H>,
    records: impl IntoIterator<Item = R>,
    incomplete: Option<&str>,
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(heads)?;
    for record in records {
        writer.write_record(record)?;
    }
    let out = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    incomplete.map_or(Ok(()), |why| writeln!(out, "# incomplete: {why}"))
}

/// Cell of a value; empty if unknown.
pub fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Cell of a number in JSON, without an exponent; empty if null.
pub fn number(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        None if value.is_null() => String::new(),
        None => value.to_string(),
        Some(number) => number.to_string(),
    }
}

/// Writes the sizes of `document` as CSV, with keys and units of the profile; unknown values are
/// empty.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, document: &ProfileDocument) -> io::Result<()> {
    let keys = COLUMNS.map(|curve| profile::key(Coefficient::AtOne(curve)));
    let heads = keys.iter().flat_map(|key| ["", "_lo", "_hi"].map(|end| format!("{key}{end}")));
    let heads = ["size_bytes".to_owned()].into_iter().chain(heads);
    let heads = heads.chain(PERCENTILES.map(str::to_owned));
    let last = ["bytes_per_s".to_owned()].into_iter().chain(SAMPLES.map(str::to_owned));
    table(out, heads.chain(last), document.sizes.iter().map(record), None)
}

fn record(size: &SizeRecord) -> Vec<String> {
    let row = &size.row;
    let mut cells = vec![row.size.0.to_string()];
    for curve in COLUMNS {
        let quantity = Quantity::of_size(row, curve);
        cells.push(cell(quantity.map(|quantity| quantity.value)));
        cells.push(cell(quantity.and_then(|quantity| quantity.low)));
        cells.push(cell(quantity.and_then(|quantity| quantity.high)));
    }
    let percentiles = size.rounds.as_ref().map(|rounds| rounds.percentiles).unwrap_or_default();
    cells.extend(percentiles.map(cell));
    cells.push(cell(bytes_per_s(size)));
    cells.extend(row.samples.map(|count| count.to_string()));
    cells
}

/// Bandwidth for back-to-back messages of this size, bytes per second.
#[allow(clippy::cast_precision_loss, reason = "printed to a few digits")]
pub(super) fn bytes_per_s(size: &SizeRecord) -> Option<f64> {
    let gap = size.row.gap?.value.seconds();
    (gap > 0.0).then(|| size.row.size.0 as f64 / gap)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_size_is_a_row_with_its_intervals_and_percentiles() {
        let mut out = Vec::new();
        write(&mut out, &fixtures::gaps_alone()).unwrap();
        let heads = "size_bytes,half_rtt_s,half_rtt_s_lo,half_rtt_s_hi,gap_s,gap_s_lo,gap_s_hi,\
                     send_overhead_s,send_overhead_s_lo,send_overhead_s_hi,recv_overhead_s,\
                     recv_overhead_s_lo,recv_overhead_s_hi,half_rtt_p50_s,half_rtt_p90_s,\
                     half_rtt_p99_s,half_rtt_p999_s,half_rtt_max_s,bytes_per_s,\
                     round_trip_samples,gap_samples,paced_samples,receive_samples";
        let expected = format!(
            "{heads}\n1,,,,0.000002,0.000002,0.000002,,,,,,,,,,,,500000,0,0,0,0\n\
             65536,,,,0.00000855,0.00000855,0.00000855,,,,,,,,,,,,7665029239.766083,0,0,0,0\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_fixture_is_read_back_as_csv() {
        for (name, document) in fixtures::all() {
            let mut out = Vec::new();
            write(&mut out, &document).unwrap();
            let mut reader = csv::Reader::from_reader(&out[..]);
            let rows: Result<Vec<_>, _> = reader.records().collect();
            assert_eq!(rows.unwrap().len(), document.sizes.len(), "{name}");
        }
    }
}
