//! File of `logp_test` of LogP/MPI 1.4: pLogP's parameters by size as text.
//!
//! ```text
//! # LogP network performance data: DESCRIPTION
//! # Latency = 0.0000012
//! # time      bytes os        os_min    os_cnfint or        or_min    or_cnfint g
//! 957366000       0 0.0000059 0.0000055 0.0000001 0.0000094 0.0000090 0.0000002 0.0000077
//! ```
//!
//! Times are seconds. The heads tell the order of the columns: LogP/MPI writes the minimum before
//! the interval, and reads them the other way round.

use std::io::{self, Write};

use loggap_core::measure::{PlogpRow, SizeRow};
use loggap_core::model::{Estimate, Range, SizeLine};
use loggap_core::units::{Bytes, SignedPerByte, SignedPicos};

use super::{PlogpSize, ProfileDocument, RangeRecord, SCHEMA_VERSION, SizeRecord};

/// Begin of the file.
pub(super) const MAGIC: &str = "# LogP network performance data:";
const LATENCY: &str = "# Latency =";
/// Columns in the order of LogP/MPI's writer.
const COLUMNS: [&str; 9] =
    ["time", "bytes", "os", "os_min", "os_cnfint", "or", "or_min", "or_cnfint", "g"];
/// Most sizes that are read.
const MOST_SIZES: usize = 8_192;
/// Longest time that is read, seconds.
const LONGEST_S: f64 = 100.0;
/// Largest gap per byte that is read, picoseconds: 10 ms.
const MOST_PER_BYTE: f64 = 1e10;

/// Writes pLogP's parameters of `document` as `logp_test` does, to the picosecond. The minimum is the
/// lower end of the interval.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, document: &ProfileDocument) -> io::Result<()> {
    let description = format!("{} {}", document.host.hostname, document.transport);
    writeln!(out, "{MAGIC} {}", description.trim())?;
    let latency = document.plogp.first().and_then(|zero| zero.latency);
    let latency = latency.map_or(0.0, |latency| latency.value.seconds());
    writeln!(out, "{LATENCY} {latency:.12}")?;
    writeln!(out, "# {}", COLUMNS.join(" "))?;
    for PlogpSize { row, .. } in &document.plogp {
        let overhead = |found: &Estimate<SignedPicos>| {
            let half = (found.high.0 - found.low.0) / 2;
            let times = [found.value, found.low, SignedPicos(half)];
            times.map(|time| format!("{:.12}", time.seconds().max(0.0))).join(" ")
        };
        writeln!(
            out,
            "{:>9} {:>7} {} {} {:.12}",
            document.started_unix_s,
            row.size,
            overhead(&row.send_overhead),
            overhead(&row.recv_overhead),
            row.gap.value.seconds().max(0.0),
        )?;
    }
    Ok(())
}

/// Profile with the parameters in `text`: of each size, and as one range by [`loggp`].
///
/// # Errors
///
/// Line and cause.
pub(super) fn parse(text: &str) -> Result<ProfileDocument, String> {
    let mut columns: Vec<&str> = COLUMNS.to_vec();
    let mut known_latency = None;
    let mut started_unix_s = 0;
    let mut rows: Vec<PlogpSize> = Vec::new();
    for (line, number) in text.lines().zip(1_usize..) {
        let wrong = |why: String| format!("line {number}: {why}");
        if let Some(value) = line.strip_prefix(LATENCY) {
            // RTT(0)/2 − g(0) may be negative.
            let (sign, value) = match value.trim().strip_prefix('-') {
                Some(value) => (-1.0, value),
                None => (1.0, value.trim()),
            };
            known_latency = Some(sign * seconds(value).map_err(wrong)?);
        } else if let Some(heads) = line.strip_prefix('#') {
            let heads: Vec<&str> = heads.split_whitespace().collect();
            if heads.contains(&"bytes") {
                columns = heads;
            }
        } else if !line.trim().is_empty() {
            let no_latency = || wrong(format!("no line '{LATENCY}' before the sizes"));
            let latency = known_latency.ok_or_else(no_latency)?;
            if rows.is_empty() {
                started_unix_s = started(&columns, line);
            }
            let mut row = row(&columns, line).map_err(wrong)?;
            if rows.is_empty() && row.size > 0 {
                return Err(wrong("the first size has to be 0".to_owned()));
            }
            // RTT(m) = RTT(0) + g(m) − g(0), and RTT(0) = 2·(L + g(0))
            let of_zero = rows.first().map_or(row.gap.value.0, |zero| zero.row.gap.value.0);
            let rest = 2 * exact(latency).value.0 + of_zero;
            row.round_trip = row.gap.map(|gap| SignedPicos(rest + gap.0));
            if rows.last().is_some_and(|last| last.row.size >= row.size) {
                return Err(wrong("sizes do not ascend".to_owned()));
            }
            if rows.len() >= MOST_SIZES {
                return Err(wrong(format!("more than {MOST_SIZES} sizes")));
            }
            let latency = rows.is_empty().then(|| exact(latency));
            rows.push(PlogpSize { row, latency, flood_messages: None, is_gap_stable: None });
        }
    }
    let latency = known_latency.unwrap_or_default();
    let range = loggp(&rows).ok_or("no size of at least one byte, or a gap above 10 ms a byte")?;
    Ok(ProfileDocument {
        schema_version: SCHEMA_VERSION,
        started_unix_s,
        method: "plogp".to_owned(),
        ranges: vec![RangeRecord::from(range)],
        sizes: rows
            .iter()
            .filter(|size| size.row.size > 0)
            .map(|size| record(size, latency))
            .collect(),
        plogp: rows,
        ..ProfileDocument::default()
    })
}

/// LogGP by the pLogP paper: L = L' + g(1) − o_s(1) − o_r(1), g = g(1), and G = g(m)/m at the largest
/// m, where L' is pLogP's latency; overheads as lines through the first and the largest size. `None` without a size of at least one byte.
fn loggp(rows: &[PlogpSize]) -> Option<Range> {
    let latency = rows.first()?.latency?.value.0;
    let one = &rows.iter().find(|size| size.row.size > 0)?.row;
    let largest = &rows.last()?.row;
    #[allow(clippy::cast_precision_loss, reason = "a time of at most 1,000 s")]
    let per_byte = largest.gap.value.0 as f64 / f64::from(largest.size);
    let slope = SignedPerByte::from_f64(Some(per_byte).filter(|found| *found <= MOST_PER_BYTE)?);
    let line = |at_one: i64, slope| SizeLine::exact(SignedPicos(at_one), slope);
    let [send, receive, gap] =
        [&one.send_overhead, &one.recv_overhead, &one.gap].map(|found| found.value.0);
    // The rest of the bytes of the largest size.
    let rest = f64::from(largest.size.saturating_sub(one.size).max(1));
    let overhead = |one: i64, largest: i64| {
        #[allow(clippy::cast_precision_loss, reason = "a time of at most 100 s")]
        let per_byte = (largest - one).max(0) as f64 / rest;
        SignedPerByte::from_f64(per_byte.min(MOST_PER_BYTE))
    };
    let o_s = overhead(send, largest.send_overhead.value.0);
    let o_r = overhead(receive, largest.recv_overhead.value.0);
    Some(Range {
        first: Bytes(1),
        last: Bytes(largest.size.into()),
        gap: line(gap, slope),
        half_rtt: Some(line(latency + gap, slope)),
        send_overhead: Some(line(send, o_s)),
        recv_overhead: Some(line(receive, o_r)),
        latency: Some(Estimate::exact(SignedPicos((latency + gap - send - receive).max(0)))),
    })
}

/// Row of the table by size; half a round trip is L + g(m).
fn record(size: &PlogpSize, latency: f64) -> SizeRecord {
    let PlogpRow { size, send_overhead, recv_overhead, gap, .. } = size.row;
    let half_rtt = exact(latency + gap.value.seconds());
    SizeRecord::from(SizeRow {
        size: Bytes(size.into()),
        half_rtt: Some(half_rtt),
        gap: Some(gap),
        send_overhead: Some(send_overhead),
        recv_overhead: Some(recv_overhead),
        delay: None,
        samples: [0; 4],
    })
}

/// Time of a row, in seconds since 1970; 0 if unknown.
fn started(columns: &[&str], line: &str) -> u64 {
    let column = columns.iter().position(|column| *column == "time");
    let field = column.and_then(|column| line.split_whitespace().nth(column));
    field.and_then(|field| field.parse().ok()).unwrap_or_default()
}

fn row(columns: &[&str], line: &str) -> Result<PlogpRow, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if fields.len() != columns.len() {
        return Err(format!("{} fields where the heads are {}", fields.len(), columns.len()));
    }
    let field = |name: &str| {
        let found = columns.iter().zip(&fields).find(|(column, _)| **column == name);
        found.map(|(_, field)| *field).ok_or_else(|| format!("no column '{name}'"))
    };
    let overhead = |name: &str| -> Result<Estimate<SignedPicos>, String> {
        let value = exact(seconds(field(name)?)?).value;
        let half = exact(seconds(field(&format!("{name}_cnfint"))?)?).value;
        let (low, high) = (SignedPicos(value.0 - half.0), SignedPicos(value.0 + half.0));
        Ok(Estimate { low, high, ..Estimate::exact(value) })
    };
    let size = field("bytes")?;
    let gap = exact(seconds(field("g")?)?);
    Ok(PlogpRow {
        size: size.parse().map_err(|_| format!("'{}' is no size", size.escape_debug()))?,
        send_overhead: overhead("os")?,
        recv_overhead: overhead("or")?,
        gap,
        round_trip: gap,
    })
}

fn exact(seconds: f64) -> Estimate<SignedPicos> {
    Estimate::exact(SignedPicos::from_f64(seconds * 1e12))
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|value| (0.0..=LONGEST_S).contains(value));
    number.ok_or_else(|| format!("'{}' is no time in seconds", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::plogp_rows;
    use super::*;

    const FILE: &str = "# LogP network performance data: two nodes\n\
        # Latency = 0.0000012\n\
        # time      bytes os        os_min    os_cnfint or        or_min    or_cnfint g\n\
        957366000       0 0.0000059 0.0000055 0.0000001 0.0000094 0.0000090 0.0000002 0.0000077\n\
        957366000       1 0.0000062 0.0000055 0.0000001 0.0000111 0.0000090 0.0000002 0.0000183\n\
        957366001  262144 0.0062772 0.0062000 0.0001000 0.0066766 0.0066000 0.0001000 0.0069494\n";

    #[test]
    fn a_file_of_logp_test_is_a_profile() {
        let document = ProfileDocument::parse(FILE.as_bytes()).unwrap();
        let sizes: Vec<u32> = document.plogp.iter().map(|size| size.row.size).collect();
        assert_eq!(sizes, [0, 1, 262_144]);
        assert_eq!(document.started_unix_s, 957_366_000);
        assert_eq!(document.plogp[1].row.recv_overhead.value, SignedPicos(11_100_000));
        let range = &document.ranges[0].range;
        // 1.2 + 18.3 − 6.2 − 11.1 us, and 6949.4 us over 262,144 B
        assert_eq!(range.latency.unwrap().value, SignedPicos(2_200_000));
        assert_eq!(range.gap.at_one.value, SignedPicos(18_300_000));
        let slope = range.gap.per_byte.value.seconds();
        assert!((slope - 6_949.4e-6 / 262_144.0).abs() < 1e-15, "{slope}");
        let o_s = range.send_overhead.unwrap();
        assert_eq!(o_s.at_one.value, SignedPicos(6_200_000));
        let per_byte = o_s.per_byte.value.seconds();
        assert!((per_byte - 6_271e-6 / 262_143.0).abs() < 1e-14, "{per_byte}");
        assert_eq!(document.sizes.len(), 2);
    }

    #[test]
    fn a_latency_may_be_negative() {
        let latency = |text: &str| {
            let text = FILE.replace("0.0000012\n", &format!("{text}\n"));
            parse(&text).map(|document| document.plogp[0].latency.unwrap().value.0)
        };
        assert_eq!(latency("-0.0000193"), Ok(-19_300_000));
        assert_eq!(latency("--1"), Err("line 2: '-1' is no time in seconds".to_owned()));
        let mut document = parse(&FILE.replace("0.0000012", "-0.0000193")).unwrap();
        document.host.hostname = "node7".to_owned();
        let mut text = Vec::new();
        write(&mut text, &document).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("# Latency = -0.000019300000\n"));
    }

    #[test]
    fn the_heads_tell_the_order_of_the_columns() {
        let swapped = FILE
            .replace("os_min    os_cnfint", "os_cnfint os_min")
            .replace("0.0000055 0.0000001", "0.0000001 0.0000055");
        let [one, other] = [FILE, &swapped].map(|text| parse(text).unwrap().plogp[0].row);
        assert_eq!(one, other);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let document = ProfileDocument { plogp: plogp_rows(), ..ProfileDocument::default() };
        let mut text = Vec::new();
        write(&mut text, &document).unwrap();
        let read = ProfileDocument::parse(&text).unwrap();
        let values = |document: &ProfileDocument| -> Vec<_> {
            let row = |size: &PlogpSize| {
                (size.row.size, size.row.send_overhead.value, size.row.gap.value)
            };
            document.plogp.iter().map(row).collect()
        };
        assert_eq!(values(&read), values(&document));
        let mut again = Vec::new();
        write(&mut again, &read).unwrap();
        let reread = ProfileDocument::parse(&again).unwrap();
        assert_eq!(values(&reread), values(&read));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, told) in [
            ("0.0000077", "x", "line 4: 'x' is no time in seconds"),
            (" g\n", "\n", "line 4: 9 fields where the heads are 8"),
            ("957366001  262144", "957366001  1", "line 6: sizes do not ascend"),
            ("= 0.0000012", "= -x", "line 2: 'x' is no time in seconds"),
        ] {
            let error = parse(&FILE.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error, told);
        }
        assert!(parse(MAGIC).is_err());
    }
}
