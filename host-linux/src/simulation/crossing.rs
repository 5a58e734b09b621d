//! Whether links between switches would decide how long a flat run takes.

use loggap_core::sim::Parameters;
use loggap_core::sim::network::{Crossing, Taper};
use loggap_core::units::Picos;

use super::{LoadError, Source};

/// The most operations that are looked at again after a run.
pub(super) const MOST_OPS: u64 = 1 << 20;

/// The least taper of leaves of contiguous ranks at which what crosses their
/// edges would alone take longer than `makespan`. `None` where nothing crosses,
/// and for schedules of more than a million operations, which would have to be
/// read again.
///
/// # Errors
///
/// [`LoadError`] where the schedule cannot be read a second time.
pub fn least_taper(
    source: &Source,
    parameters: Parameters<'_>,
    ranks: u32,
    ops: u64,
    makespan: Picos,
) -> Result<Option<Taper>, LoadError> {
    if ops > MOST_OPS {
        return Ok(None);
    }
    let mut carried = vec![[0; 2]; Crossing::requirement(ranks)];
    let Some(mut crossing) = Crossing::new(parameters, ranks, &mut carried) else {
        return Ok(None);
    };
    source.feed(&mut crossing)?;
    Ok(crossing.taper(makespan))
}
