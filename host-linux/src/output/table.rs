//! The text table: a row per protocol range.

use std::io::{self, Write};

use loggap_core::model::{Change, Estimate, Mark, Profile, Range, SizeLine};
use loggap_core::units::{SignedPerByte, SignedPicos};

use super::number;

/// Heads of the parameters' columns, in the order of [`cells`].
const HEADS: [&str; 8] =
    ["RTT/2[us]", "L[us]", "o_s[us]", "O_s[ns/B]", "o_r[us]", "O_r[ns/B]", "g[us]", "G[ns/B]"];

/// What the columns mean, for lines that begin with `#`.
#[must_use]
pub fn legend(confidence_percent: f64) -> [String; 3] {
    [
        format!(
            "value ±half width of its {confidence_percent}% interval; \
             '?' not converged (budget spent), '~' the points do not lie on a line"
        ),
        "RTT/2, o_s, o_r, g at size 1 (extrapolated to it where a range begins later); \
         RTT/2 includes the overheads, L = RTT/2 - o_s - o_r"
            .to_owned(),
        "gap of a message of s bytes: g + (s-1)*G; overheads: o_s + (s-1)*O_s, o_r + (s-1)*O_r"
            .to_owned(),
    ]
}

/// Writes a row per range and the changes between ranges.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    let heads = ["#first[B]", "last[B]"].into_iter().chain(HEADS);
    let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    lines.extend(profile.ranges.iter().map(row));
    write_aligned(out, &lines)?;
    write_changes(out, &profile.changes)
}

/// Which parameters did not converge and why, a sentence per range.
#[must_use]
pub fn not_converged(profile: &Profile) -> Vec<String> {
    let doubtful = |range: &Range| {
        let cells = cells(range);
        let marked = HEADS.iter().zip(&cells).filter_map(|(head, cell)| {
            let mark = cell.as_ref()?.mark;
            let name = head.split('[').next().unwrap_or_default();
            match mark {
                Mark::Converged => None,
                Mark::BudgetSpent => Some(format!("{name} (budget spent)")),
                Mark::Misfit => Some(format!("{name} (points off the line)")),
            }
        });
        let list = marked.collect::<Vec<_>>().join(", ");
        let sizes = format!("{} to {}", range.first, range.last);
        (!list.is_empty()).then(|| format!("{sizes}: {list}"))
    };
    profile.ranges.iter().filter_map(doubtful).collect()
}

/// A number in the unit of its column.
struct Cell {
    value: f64,
    low: f64,
    high: f64,
    mark: Mark,
}

impl Cell {
    fn micros(estimate: &Estimate<SignedPicos>) -> Self {
        let micros = |time: SignedPicos| time.seconds() * 1e6;
        Self::of(estimate, micros)
    }

    fn nanos_per_byte(estimate: &Estimate<SignedPerByte>) -> Self {
        let nanos = |slope: SignedPerByte| slope.seconds() * 1e9;
        Self::of(estimate, nanos)
    }

    fn of<T: Copy>(estimate: &Estimate<T>, convert: impl Fn(T) -> f64) -> Self {
        Self {
            value: convert(estimate.value),
            low: convert(estimate.low),
            high: convert(estimate.high),
            mark: estimate.mark,
        }
    }
}

fn cells(range: &Range) -> [Option<Cell>; 8] {
    let at_one = |line: Option<&SizeLine>| line.map(|line| Cell::micros(&line.at_one));
    let slope = |line: Option<&SizeLine>| {
        line.filter(|line| line.has_slope()).map(|line| Cell::nanos_per_byte(&line.per_byte))
    };
    let (send, recv) = (range.send_overhead.as_ref(), range.recv_overhead.as_ref());
    [
        at_one(range.half_rtt.as_ref()),
        range.latency.as_ref().map(Cell::micros),
        at_one(send),
        slope(send),
        at_one(recv),
        slope(recv),
        at_one(Some(&range.gap)),
        slope(Some(&range.gap)),
    ]
}

fn row(range: &Range) -> Vec<String> {
    let sizes = [range.first.0.to_string(), range.last.0.to_string()];
    let cells = cells(range).map(|cell| match cell {
        None => "-".to_owned(),
        Some(cell) => {
            let (value, width) = number::with_interval(cell.value, cell.low, cell.high);
            format!("{value}{} {width}", cell.mark.symbol())
        }
    });
    sizes.into_iter().chain(cells).collect()
}

fn write_changes(out: &mut dyn Write, changes: &[Change]) -> io::Result<()> {
    if changes.is_empty() {
        return writeln!(out, "# no change of protocol found");
    }
    let heads = ["#change_at[B]", "earliest[B]", "latest[B]"];
    let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_owned).to_vec()];
    lines.extend(changes.iter().map(|change| {
        [change.at, change.low, change.high].map(|size| size.0.to_string()).to_vec()
    }));
    write_aligned(out, &lines)
}

/// Writes columns flush right, two spaces apart.
fn write_aligned(out: &mut dyn Write, lines: &[Vec<String>]) -> io::Result<()> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::units::{Bytes, Picos};

    fn line(at_one: i64, per_byte: i64, mark: Mark) -> SizeLine {
        let around = |value: i64, by: i64| (value, value - by, value + by);
        let (value, low, high) = around(at_one, 50_000);
        let (slope, slope_low, slope_high) = around(per_byte << 16, 3 << 16);
        SizeLine {
            at_one: Estimate {
                value: SignedPicos(value),
                low: SignedPicos(low),
                high: SignedPicos(high),
                mark,
            },
            per_byte: Estimate {
                value: SignedPerByte(slope),
                low: SignedPerByte(slope_low),
                high: SignedPerByte(slope_high),
                mark: Mark::Converged,
            },
            centre: Bytes(1),
            centre_half_width: Picos(1),
            scatter_ppm: 0,
        }
    }

    fn profile() -> Profile {
        let range = |first, last, mark| Range {
            first: Bytes(first),
            last: Bytes(last),
            gap: line(1_234_567, 81, mark),
            half_rtt: Some(line(9_876_543, 170, Mark::Converged)),
            send_overhead: Some(line(900_000, 12, Mark::Misfit)),
            recv_overhead: None,
            latency: None,
        };
        let mut profile = Profile::default();
        let ranges = [range(1, 4_095, Mark::Converged), range(4_096, 65_536, Mark::BudgetSpent)];
        profile.ranges.extend(ranges);
        let change = Change { at: Bytes(4_096), low: Bytes(4_090), high: Bytes(4_097) };
        profile.changes.push(change).unwrap();
        profile
    }

    #[test]
    fn a_range_is_a_row_with_units_in_the_heads() {
        let mut out = Vec::new();
        write(&mut out, &profile()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].starts_with("#first[B]  last[B]") && lines[0].ends_with("G[ns/B]"));
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        let expected = "4096 65536 9.877 ±0.050 - 0.900~ ±0.050 0.0120 ±0.0030 - - \
                        1.235? ±0.050 0.0810 ±0.0030";
        assert_eq!(words.join(" "), expected);
        assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["4096", "4090", "4097"]);
    }

    #[test]
    fn what_did_not_converge_is_listed_with_its_range() {
        let list = not_converged(&profile());
        assert_eq!(list.len(), 2);
        assert_eq!(list[0], "1 B to 4095 B: o_s (points off the line)");
        assert_eq!(list[1], "4096 B to 65536 B: o_s (points off the line), g (budget spent)");
    }
}
