//! Number N of consecutive pings without a smaller round trip after which a series ends: the slides
//! choose it by simulation (Hoefler, Schneider, Lumsdaine, 2008), as "modeling is not easily
//! possible".

use super::published::stop_after;
use super::simulated::{Path, VirtualClock, VirtualPinger};
use crate::random::Random;
use crate::stats::Sorted;
use crate::units::Picos;

/// Values of N that are simulated.
pub const PATIENCES: [u32; 8] = [1, 2, 5, 10, 20, 50, 100, 1_000];

/// Most pings of a series.
const MOST_PINGS: u32 = 1_000_000;

/// Cost and accuracy of one value of N.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PatienceRow {
    /// The N of this row.
    pub patience: u32,
    /// Number of series simulated.
    pub series: u32,
    /// Total number of pings.
    pub pings: u64,
    /// Mean magnitude of the error of the offset.
    pub mean: Picos,
    /// 99th percentile of the error's magnitude.
    pub p99: Picos,
    /// Largest magnitude of the error.
    pub max: Picos,
}

impl PatienceRow {
    /// Mean number of pings of a series.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a count of pings, far below 2^53")]
    pub fn mean_pings(&self) -> f64 {
        if self.series == 0 { 0.0 } else { self.pings as f64 / f64::from(self.series) }
    }
}

/// Simulates `errors.len()` series for each N of [`PATIENCES`], over `path` between two clocks that
/// agree. `errors` is working memory; `None` if it is empty.
pub fn study_patience(
    path: Path,
    seed: u64,
    errors: &mut [Picos],
) -> Option<[PatienceRow; PATIENCES.len()]> {
    let mut rows = [PatienceRow::default(); PATIENCES.len()];
    for (row, patience) in rows.iter_mut().zip(PATIENCES) {
        *row = PatienceRow { patience, ..PatienceRow::default() };
        let mut sum = 0_u64;
        for (error, stream) in errors.iter_mut().zip(0..) {
            let random = Random::stream(seed ^ u64::from(patience) << 32, stream);
            let mut clocks = [VirtualClock::exact(); 2];
            let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, random);
            let offset = stop_after(&mut pinger, patience, MOST_PINGS).ok()?;
            *error = Picos(offset.value.0.unsigned_abs());
            sum = sum.saturating_add(error.0);
            row.pings = row.pings.saturating_add(offset.pings.into());
            row.series = row.series.saturating_add(1);
        }
        row.mean = Picos(sum.checked_div(row.series.into())?);
        let sorted = Sorted::new(errors);
        (row.p99, row.max) = (sorted.quantile(99, 100)?, sorted.quantile(1, 1)?);
    }
    Some(rows)
}
