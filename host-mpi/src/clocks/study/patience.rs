//! Number N of consecutive pings without a smaller round trip after which a series ends: the slides
//! choose it by simulation, as "modeling is not easily possible".

use std::convert::Infallible;

use loggap_core::random::Random;
use loggap_core::sync::{Offset, Ping, Pinger, SeriesError, stop_after};
use loggap_core::units::Picos;
use serde::Serialize;

use super::clock::{ClockTruth, VirtualClock};
use super::errors::Errors;
use super::path::Path;
use super::pinger::VirtualPinger;
use crate::clocks::record::RankRecording;

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

/// Series of each N.
const SERIES: u32 = 1_000;

/// Choice of N on virtual clocks.
///
/// # Errors
///
/// [`SeriesError`].
pub fn patience(seed: u64) -> Result<Vec<PatienceRow>, SeriesError<Infallible>> {
    PATIENCES.map(|patience| of(patience, SERIES, Path::jittery(), seed)).into_iter().collect()
}

/// Choice of N for recorded pings, from which the pings of simulated series are drawn, each of one
/// rank. The error of an offset is half of the kept round trip less the rank's smallest: that of
/// a delay in one direction only.
///
/// # Errors
///
/// [`SeriesError`].
pub fn resampled(
    ranks: &[&RankRecording],
    seed: u64,
) -> Result<Vec<PatienceRow>, SeriesError<Infallible>> {
    let ranks: Vec<&RankRecording> =
        ranks.iter().filter(|rank| !rank.round_trips.is_empty()).copied().collect();
    let row = |patience| {
        row(patience, SERIES, |series| {
            let rank = ranks.iter().cycle().nth(series as usize).ok_or(SeriesError::NoPing)?;
            let random = Random::stream(seed ^ u64::from(patience) << 32, series.into());
            stop_after(&mut Resampled { rank, random }, patience, MOST_PINGS)
        })
    };
    PATIENCES.map(row).into_iter().collect()
}

/// Pings with recorded round trips between clocks that agree; all of the delay is on the way back.
struct Resampled<'r> {
    rank: &'r RankRecording,
    random: Random,
}

impl Pinger for Resampled<'_> {
    type Error = Infallible;

    fn now(&mut self) -> Picos {
        Picos::ZERO
    }

    fn ping(&mut self) -> Result<Ping, Infallible> {
        let RankRecording { round_trips, least, .. } = self.rank;
        let place = self.random.below(round_trips.len() as u64);
        let drawn = usize::try_from(place).ok().and_then(|place| round_trips.get(place));
        let received = drawn.copied().unwrap_or(*least);
        Ok(Ping { sent: Picos::ZERO, stamped: Picos(least.0 / 2), received })
    }
}

/// The N at the knee of `rows`, in their order: its error lies farthest below the straight line
/// from the first to the last row, over the logarithm of the pings.
#[must_use]
pub fn knee(rows: &[PatienceRow]) -> Option<u32> {
    let point = |row: &PatienceRow| (row.mean_pings.ln(), row.errors.mean.seconds());
    let ((left, top), (right, bottom)) = (point(rows.first()?), point(rows.last()?));
    let below = |row: &PatienceRow| {
        let (x, y) = point(row);
        top + (bottom - top) * (x - left) / (right - left).max(f64::MIN_POSITIVE) - y
    };
    let knee = rows.iter().rev().max_by(|one, other| below(one).total_cmp(&below(other)));
    knee.map(|row| row.patience)
}

/// Simulates `series` series over `path` between two virtual clocks that agree.
fn of(
    patience: u32,
    series: u32,
    path: Path,
    seed: u64,
) -> Result<PatienceRow, SeriesError<Infallible>> {
    row(patience, series, |stream| {
        let random = Random::stream(seed ^ u64::from(patience) << 32, stream.into());
        let mut clocks = [VirtualClock::new(ClockTruth::EXACT, 0, 0); 2];
        let mut pinger = VirtualPinger::new(&mut clocks, path, Picos::ZERO, random);
        stop_after(&mut pinger, patience, MOST_PINGS)
    })
}

/// Row of `series` series between clocks that agree; `offset` is the result of one.
fn row(
    patience: u32,
    series: u32,
    offset: impl Fn(u32) -> Result<Offset, SeriesError<Infallible>>,
) -> Result<PatienceRow, SeriesError<Infallible>> {
    let offsets: Vec<Offset> = (0..series).map(offset).collect::<Result<_, _>>()?;
    let mut errors: Vec<Picos> =
        offsets.iter().map(|offset| Picos(offset.value.0.unsigned_abs())).collect();
    let pings: f64 = offsets.iter().map(|offset| f64::from(offset.pings)).sum();
    let mean_pings = pings / f64::from(series);
    Ok(PatienceRow { patience, mean_pings, errors: Errors::of(&mut errors) })
}

#[cfg(test)]
mod tests {
    use loggap_core::units::SignedPicos;

    use super::*;
    use crate::clocks::record::{Recording, Row};

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

    #[test]
    fn recorded_pings_have_the_errors_that_their_round_trips_allow() {
        let mut recording = Recording::default();
        // One of ten round trips is the smallest, the others are longer by 2 us.
        let mut round_trips = vec![Picos(12_000_000); 9];
        round_trips.push(Picos(10_000_000));
        let offset = Offset {
            at: Picos(1),
            value: SignedPicos(0),
            half_width: Picos(5_000_000),
            round_trip: Picos(10_000_000),
            pings: 10,
            contradictions: 0,
        };
        recording.push(&Row { rank: 3, offset, round_trips }).unwrap();
        let rows = resampled(&recording.ranks.values().collect::<Vec<_>>(), 1).unwrap();
        // A series of N misses the smallest with probability 0.9^(N + 1), and is then off by 1 us.
        for row in &rows {
            let missed = 0.9_f64.powf(f64::from(row.patience) + 1.0) * 1e-6;
            let error = row.errors.mean.seconds();
            assert!((error - missed).abs() < 0.06e-6, "{row:?} {missed}");
            assert_eq!(row.errors.max.0 % 1_000_000, 0);
        }
        assert!(matches!(knee(&rows), Some(20 | 50)), "{rows:?}");
        assert!(resampled(&[], 1).is_err() && knee(&[]).is_none());
    }
}
