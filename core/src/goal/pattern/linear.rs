//! Linear collectives: between one rank and all others, or between all.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Gather: the root receives from every other rank.
pub(super) fn gather<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.virtual_rank() != 0 {
        return out.send_alone(at.root, at.size);
    }
    (1..at.ranks).try_for_each(|other| out.receive_alone(at.swapped(other), at.size))
}

/// Scatter: the root sends to every other rank.
pub(super) fn scatter<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.virtual_rank() != 0 {
        return out.receive_alone(at.root, at.size);
    }
    (1..at.ranks).try_for_each(|other| out.send_alone(at.swapped(other), at.size))
}

/// Linear barrier: rank 0 receives one byte from every other rank, then sends one byte to each.
pub(super) fn linear_barrier<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    if at.rank != 0 {
        out.send_alone(0, 1)?;
        return out.receive_alone(0, 1);
    }
    for other in 1..at.ranks {
        let receive = out.receive(other, 1)?;
        out.start(receive)?;
    }
    let turn = out.calc(Picos::ZERO)?;
    // The receives are the operations before it.
    for receive in turn - at.ranks.saturating_sub(1)..turn {
        out.requires(turn, receive)?;
    }
    if at.ranks < 2 {
        out.start(turn)?;
        out.end(turn)?;
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
    for step in 1..u64::from(at.ranks) {
        let (to, from) = (at.above(step), at.below(step));
        out.send_alone(to, size(at.rank, to))?;
        out.receive_alone(from, size(from, at.rank))?;
    }
    Ok(())
}
