//! Number N of consecutive pings without a smaller round trip after which a series ends: the slides
//! choose it by simulation, as "modeling is not easily possible".

use std::convert::Infallible;

use loggap_core::random::Random;
use loggap_core::sync::{SeriesError, stop_after};
use loggap_core::units::Picos;
use serde::Serialize;

use super::clock::{ClockTruth, VirtualClock};
use super::errors::Errors;
use super::path::Path;
use super::pinger::VirtualPinger;

/// Values of N that are simulated.
const PATIENCES: [u32; 8] = [1, 2, 5, 10, 20, 50, 100, 1_000];

/// Most pings of a series.
const MOST_PINGS: u32 = 1_000_000;

/// Cost and accuracy of one value of N.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PatienceRow {
    /// The N of this row.
    pub patience: u32,
    /// Mean number of pings of a series.
    pub mean_pings: f64,
    /// Errors of the offsets.
    #[serde(flatten)]
    pub errors: Errors,
}

/// Choice of N: a thousand series for each.
///
/// # Errors
///
/// [`SeriesError`].
pub fn patience(seed: u64) -> Result<Vec<PatienceRow>, SeriesError<Infallible>> {
    let row = |patience| of(patience, 1_000, Path::jittery(), seed);
    PATIENCES.into_iter().map(row).collect()
}

/// Simulates `series` series that end after `patience` pings, over `path` between two clocks that
/// agree.
fn of(
    patience: u32,
    series: u32,
    path: Path,
    seed: u64,
) -> Result<PatienceRow, SeriesError<Infallible>> {
    let mut errors = Vec::new();
    let mut pings = 0_u64;
    for stream in 0..series {
        let random = Random::stream(seed ^ u64::from(patience) << 32, stream.into());
        let mut clocks = [VirtualClock::new(ClockTruth::EXACT, 0, 0); 2];
        let mut pinger = VirtualPinger::new(&mut clocks, path, Picos::ZERO, random);
        let offset = stop_after(&mut pinger, patience, MOST_PINGS)?;
        errors.push(Picos(offset.value.0.unsigned_abs()));
        pings += u64::from(offset.pings);
    }
    let mean_pings = pings as f64 / f64::from(series);
    Ok(PatienceRow { patience, mean_pings, errors: Errors::of(&mut errors) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_n_costs_pings_and_lowers_the_error() {
        let path = Path { jitter: Picos(1_000_000), ..Path::of(Picos(10_000_000)) };
        let rows = PATIENCES.map(|patience| of(patience, 400, path, 5).unwrap());
        for (row, next) in rows.iter().zip(&rows[1..]) {
            assert!(row.mean_pings < next.mean_pings, "{row:?} {next:?}");
            assert!(row.errors.mean.0 * 11 > next.errors.mean.0 * 10, "{row:?} {next:?}");
        }
        let (first, last) = (rows[0].errors, rows[7].errors);
        assert!(first.mean.0 > 4 * last.mean.0 && first.p99.0 > 4 * last.p99.0);
        // As measured on shared memory and TCP: 1.9 N pings.
        for row in rows.iter().skip(3) {
            let per_n = row.mean_pings / f64::from(row.patience);
            assert!((1.5..2.5).contains(&per_n), "{row:?}");
        }
    }
}
