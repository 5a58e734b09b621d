//! Estimate whether links between switches would determine the makespan of a run on a flat network.

use loggap_core::sim::Parameters;
use loggap_core::sim::network::{Crossing, Taper};
use loggap_core::units::Picos;

use super::{LoadError, Source};

/// Limit on the operations of a schedule that is read again after its run.
pub(super) const MOST_OPS: u64 = 1 << 20;

/// Smallest taper at which the traffic between leaves of contiguous ranks would by itself take
/// longer than `makespan`. `None` if there is no such traffic, and for schedules of more than
/// 2²⁰ operations, because they would have to be read again.
///
/// # Errors
///
/// [`LoadError`] if the schedule cannot be read a second time.
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
