//! Ranges of several profiles, one below the other.

use std::io::{self, Write};

use loggap_core::model::{Coefficient, Curve};

use super::number;
use super::plot::profiles::NamedProfile;
use super::table::not_converged;
use super::text::{self, Block, Line};
use crate::profile::RangeRecord;

/// Columns besides the name and the range.
const COLUMNS: [Coefficient; 6] = [
    Coefficient::AtOne(Curve::HalfRtt),
    Coefficient::Latency,
    Coefficient::AtOne(Curve::SendOverhead),
    Coefficient::AtOne(Curve::RecvOverhead),
    Coefficient::AtOne(Curve::Gap),
    Coefficient::PerByte(Curve::Gap),
];

/// Writes a row for each range of `profiles`: values at size 1, G, and the names of values that did
/// not converge.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, profiles: &[NamedProfile<'_>]) -> io::Result<()> {
    let mut rows = vec![["#profile", "method", "first[B]", "last[B]"].map(str::to_owned).to_vec()];
    if let Some(head) = rows.first_mut() {
        let unit = |of: Coefficient| if of.is_per_byte() { "ns/B" } else { "us" };
        head.extend(COLUMNS.map(|of| format!("{}[{}]", of.symbol(), unit(of))));
        head.push("not_converged".to_owned());
    }
    for NamedProfile { name, document } in profiles {
        rows.extend(document.ranges.iter().map(|record| row(name, &document.method, record)));
    }
    let column = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        Block::right(cells.map(Line::plain).collect())
    };
    let width = rows.first().map_or(0, Vec::len);
    text::write(out, &Block::beside((0..width).map(column).collect(), 2))
}

fn row(name: &str, method: &str, record: &RangeRecord) -> Vec<String> {
    let mut cells = vec![name.replace(char::is_whitespace, "_"), method.to_owned()];
    cells.extend([record.range.first, record.range.last].map(|size| size.0.to_string()));
    cells.extend(COLUMNS.map(|of| {
        let size = if of.is_per_byte() { 1e-9 } else { 1e-6 };
        let value = record.at_one(of).map(|found| found.value / size);
        number::decimal(value, 4)
    }));
    cells.push(not_converged(record, &COLUMNS));
    cells
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn every_range_is_a_row_with_the_name_of_its_profile() {
        let (first, second) = (fixtures::shm(), fixtures::tcp());
        let named = [
            NamedProfile { name: "shm", document: &first },
            NamedProfile { name: "a b", document: &second },
        ];
        let mut out = Vec::new();
        write(&mut out, &named).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 1 + first.ranges.len() + second.ranges.len(), "{text}");
        assert!(rows.iter().all(|row| row.len() == 11), "{text}");
        assert_eq!(&rows[1][..5], ["shm", "prtt", "1", "248", "0.1120"], "{text}");
        assert_eq!(rows.last().unwrap()[0], "a_b");
    }
}
