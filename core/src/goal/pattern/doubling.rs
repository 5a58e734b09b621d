//! Allreduce by recursive halving, then recursive doubling.

use super::script::{Place, Round, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Allreduce by recursive halving (reduce-scatter) and recursive doubling (allgather).
///
/// If P is no power of two, Schedgen sends to ranks that do not exist. Here, with Q the largest
/// power of two not above P, each rank from Q on sends its data to the rank Q below first, and
/// receives the result at the end; the lower Q ranks do the same as for P = Q.
///
/// `compute` replaces the dependency on the last receive by a calculation of this duration without
/// dependencies (`--rpl-dep-cmp`).
pub(super) fn allreduce<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    compute: Option<Picos>,
) -> Result<(), S::Error> {
    let rounds = at.ranks.checked_ilog2().unwrap_or(0);
    let lower = 1u32 << rounds;
    if at.rank >= lower {
        out.send_alone(at.rank - lower, at.size)?;
        return out.receive_alone(at.rank - lower, at.size);
    }
    let extra = at.rank.checked_add(lower).filter(|&extra| extra < at.ranks);
    let mut ready = None;
    if let Some(extra) = extra {
        let receive = out.receive(extra, at.size)?;
        out.start(receive)?;
        ready = Some(receive);
    }
    let halves = (0..rounds).map(|bit| (bit, at.size >> (bit + 1)));
    let least = at.size >> rounds;
    let doubles = (0..rounds).rev().map(|bit| (bit, least << (rounds - 1 - bit)));
    for (bit, size) in halves.chain(doubles) {
        if let (Some(receive), Some(duration)) = (ready, compute) {
            let calc = out.calc(duration)?;
            out.start(calc)?;
            out.end(receive)?;
            ready = Some(calc);
        }
        let peer = at.rank ^ 1 << bit;
        ready = Some(out.exchange(Round { to: peer, from: peer, size }, ready)?);
    }
    match (extra, ready) {
        (Some(extra), ready) => {
            let send = out.send(extra, at.size)?;
            out.follows(send, ready)?;
            out.end(send)
        }
        (None, Some(receive)) => out.end(receive),
        (None, None) => Ok(()),
    }
}
