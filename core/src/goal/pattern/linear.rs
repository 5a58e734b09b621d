//! Linear collectives: between one rank and all others, or between all.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Gather: the root receives from every other rank.
pub(super) fn gather<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.virtual_rank() != 0 {
        let send = out.send(at.root, at.size)?;
        out.start(send)?;
        return out.end(send);
    }
    for other in 1..at.ranks {
        let receive = out.receive(at.swapped(other), at.size)?;
        out.start(receive)?;
        out.end(receive)?;
    }
    Ok(())
}

/// Scatter: the root sends to every other rank.
pub(super) fn scatter<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.virtual_rank() != 0 {
        let receive = out.receive(at.root, at.size)?;
        out.start(receive)?;
        return out.end(receive);
    }
    for other in 1..at.ranks {
        let send = out.send(at.swapped(other), at.size)?;
        out.start(send)?;
        out.end(send)?;
    }
    Ok(())
}

/// Linear barrier: rank 0 receives one byte from every other rank, then sends one byte to each.
pub(super) fn linear_barrier<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.rank != 0 {
        let send = out.send(0, 1)?;
        out.start(send)?;
        out.end(send)?;
        let receive = out.receive(0, 1)?;
        out.start(receive)?;
        return out.end(receive);
    }
    let mut first = None;
    for other in 1..at.ranks {
        let receive = out.receive(other, 1)?;
        out.start(receive)?;
        first = first.or(Some(receive));
    }
    let turn = out.calc(Picos::ZERO)?;
    match first {
        Some(first) => {
            for nth in 0..at.ranks.saturating_sub(1) {
                out.requires(turn, first.wrapping_add(nth))?;
            }
        }
        None => {
            out.start(turn)?;
            out.end(turn)?;
        }
    }
    for other in 1..at.ranks {
        let send = out.send(other, 1)?;
        out.requires(send, turn)?;
        out.end(send)?;
    }
    Ok(())
}

/// All-to-all: in step k a rank sends to the rank k above and receives from the rank k below,
/// without dependencies. `size(from, to)` is the size of each message in bytes.
pub(super) fn all_to_all<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    size: impl Fn(u32, u32) -> u64,
) -> Result<(), S::Error> {
    for step in 1..at.ranks {
        let to = at.above(u64::from(step));
        let send = out.send(to, size(at.rank, to))?;
        out.start(send)?;
        out.end(send)?;
        let from = at.below(u64::from(step));
        let receive = out.receive(from, size(from, at.rank))?;
        out.start(receive)?;
        out.end(receive)?;
    }
    Ok(())
}
