//! Output of netgauge's `loggp` pattern: medians by size as text.
//!
//! ```text
//! # size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)
//! 1 10 15.400000 33.400000 164.800000 7.700000 1.200000 1.500000 2.000000 0.000800 0.100000
//! ```
//!
//! Times are microseconds. The first PRTTs of a size and o_r are measured; the other columns follow
//! from them and are not read, since G has six digits after the point only. Where netgauge sees a
//! change of protocol it writes a size twice.

use loggap_core::measure::{Experiment, Quantity, Sample};
use loggap_core::units::{Picos, SignedPicos};

use super::Row;
use super::read::MOST_BYTES;
use crate::decimal;

/// Begin of the file.
pub const MAGIC: &str = "# size n PRTT(1,0,s) PRTT(n,0,s)";
/// Longest file that is read, bytes.
pub const LONGEST: u64 = 16 << 20;
/// Number of columns.
const COLUMNS: usize = 11;

/// PRTT(1, 0, s), PRTT(n, 0, s), PRTT(n, PRTT(1, 0, s), s) and o_r of each size in `text`. Some
/// o_r come out negative; these are left out.
///
/// # Errors
///
/// Line and cause.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut last = 0;
    for (line, number) in text.lines().zip(1_usize..) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: String| format!("line {number}: {why}");
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.len() != COLUMNS {
            return Err(wrong(format!("{} fields where the head has {COLUMNS}", fields.len())));
        }
        let [size, messages, one, burst, paced, _, _, receive, ..] = fields[..] else { continue };
        let size = whole(size, 1, MOST_BYTES).map_err(wrong)?;
        if size < last {
            return Err(wrong("sizes do not ascend".to_owned()));
        }
        if size > last {
            let messages = whole(messages, 2, u32::MAX).map_err(wrong)?;
            add(&mut rows, [size, messages], [one, burst, paced, receive]).map_err(wrong)?;
        }
        last = size;
    }
    if rows.is_empty() {
        return Err("no size".to_owned());
    }
    Ok(rows)
}

fn add(rows: &mut Vec<Row>, [size, messages]: [u32; 2], times: [&str; 4]) -> Result<(), String> {
    let [one, burst, paced, receive] = times;
    let delay = positive(one)?;
    let mut push = |quantity, messages, delay, elapsed| {
        let experiment = Experiment { quantity, messages, delay, size };
        rows.push(Row::Round(Sample { experiment, delay, elapsed }));
    };
    push(Quantity::RoundTrip, 1, Picos::ZERO, delay);
    push(Quantity::Gap, messages, Picos::ZERO, positive(burst)?);
    push(Quantity::Paced, messages, delay, positive(paced)?);
    if let Ok(receive) = u64::try_from(micros(receive)?.0) {
        push(Quantity::Receive, 1, delay, Picos(receive));
    }
    Ok(())
}

/// Time in microseconds, to the picosecond.
fn micros(text: &str) -> Result<SignedPicos, String> {
    let millionfold = decimal::signed_picos(text);
    let millionfold = millionfold.map_err(|error| format!("'{}': {error}", text.escape_debug()))?;
    Ok(SignedPicos(millionfold.0 / 1_000_000))
}

fn positive(text: &str) -> Result<Picos, String> {
    let time = u64::try_from(micros(text)?.0).ok().filter(|time| *time > 0);
    time.map(Picos).ok_or_else(|| format!("'{}' is no time above 0", text.escape_debug()))
}

fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number
        .ok_or_else(|| format!("'{}' is no whole number of {least} to {most}", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G \
        lsqu(g,G)\n\
        1 10 15.400000 33.400000 164.800000 7.7 1.2 1.500000 -nan -nan -nan\n\
        1025 10 17.000000 42.000000 181.000000 7.7 1.2 -0.250000 2.0 0.0008 0.1\n\
        1025 10 17.000000 42.000000 181.000000 7.7 1.2 -0.250000 2.0 0.0008 0.1\n";

    #[test]
    fn each_size_has_its_round_trip_its_bursts_and_o_r() {
        let found = rows(FILE).unwrap().into_iter().map(|row| match row {
            Row::Round(Sample { experiment, elapsed, .. }) => {
                let Experiment { quantity, messages, delay, size } = experiment;
                (quantity, messages, delay.0, size, elapsed.0)
            }
            Row::Gap { .. } => panic!("{row:?}"),
        });
        let expected = [
            (Quantity::RoundTrip, 1, 0, 1, 15_400_000),
            (Quantity::Gap, 10, 0, 1, 33_400_000),
            (Quantity::Paced, 10, 15_400_000, 1, 164_800_000),
            (Quantity::Receive, 1, 15_400_000, 1, 1_500_000),
            (Quantity::RoundTrip, 1, 0, 1_025, 17_000_000),
            (Quantity::Gap, 10, 0, 1_025, 42_000_000),
            (Quantity::Paced, 10, 17_000_000, 1_025, 181_000_000),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, told) in [
            ("15.400000", "x", "line 2: 'x': not a number"),
            ("15.400000", "-1", "line 2: '-1' is no time above 0"),
            (" -nan\n", "\n", "line 2: 10 fields where the head has 11"),
            ("1025 10", "0 10", "line 3: '0' is no whole number of 1 to 1073741824"),
            ("1 10", "1 1", "line 2: '1' is no whole number of 2 to 4294967295"),
            ("\n1 10", "\n2000 10", "line 3: sizes do not ascend"),
        ] {
            let error = rows(&FILE.replacen(from, to, 1)).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
        assert_eq!(rows(MAGIC).unwrap_err(), "no size");
    }
}
