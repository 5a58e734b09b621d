//! Allreduce by recursive halving, then recursive doubling.

use super::script::{Place, Script};
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
    let lower = 1u32 << at.ranks.checked_ilog2().unwrap_or(0);
    if at.rank >= lower {
        return extra_rank(out, at, lower);
    }
    let extra = at.rank.checked_add(lower).filter(|&extra| extra < at.ranks);
    let mut ready = None;
    if let Some(extra) = extra {
        let receive = out.receive(extra, at.size)?;
        out.start(receive)?;
        ready = Some(receive);
    }
    let mut part = at.size;
    let mut mask = 1u32;
    while mask < lower {
        part /= 2;
        ready = Some(exchange(out, at.rank ^ mask, part, Step { ready, compute })?);
        mask <<= 1;
    }
    while mask > 1 {
        mask >>= 1;
        ready = Some(exchange(out, at.rank ^ mask, part, Step { ready, compute })?);
        part = part.saturating_mul(2);
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

/// Emits the part of a rank from Q on.
fn extra_rank<S: Sink>(out: &mut Script<'_, S>, at: &Place, lower: u32) -> Result<(), S::Error> {
    let partner = at.rank.wrapping_sub(lower);
    let send = out.send(partner, at.size)?;
    out.start(send)?;
    out.end(send)?;
    let receive = out.receive(partner, at.size)?;
    out.start(receive)?;
    out.end(receive)
}

/// Dependency of one exchange.
#[derive(Clone, Copy)]
struct Step {
    /// Receive of the preceding exchange.
    ready: Option<u32>,
    /// Duration of the calculation that replaces the dependency on it.
    compute: Option<Picos>,
}

/// Emits a send to and a receive from `peer`; returns the receive.
fn exchange<S: Sink>(
    out: &mut Script<'_, S>,
    peer: u32,
    size: u64,
    step: Step,
) -> Result<u32, S::Error> {
    let ready = match (step.ready, step.compute) {
        (Some(receive), Some(duration)) => {
            let calc = out.calc(duration)?;
            out.start(calc)?;
            out.end(receive)?;
            Some(calc)
        }
        (ready, _) => ready,
    };
    let send = out.send(peer, size)?;
    out.follows(send, ready)?;
    out.end(send)?;
    let receive = out.receive(peer, size)?;
    out.start(receive)?;
    Ok(receive)
}
