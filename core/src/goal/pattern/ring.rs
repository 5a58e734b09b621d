//! Rings: pipelined broadcast, double ring, ring allreduce.

use super::script::{Place, Round, Script};
use crate::goal::Sink;

/// Number of segments of a message of `size` bytes; the last may be shorter.
pub(super) const fn segments(size: u64, segment: u64) -> u64 {
    if segment == 0 { 0 } else { size.div_ceil(segment) }
}

/// Time at which a rank posts the receive of the next segment of a pipelined ring.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Passing {
    /// Immediately.
    Free,
    /// After it has forwarded the last segment.
    Blocking,
}

/// Pipelined ring broadcast: the message travels along the ring of virtual ranks in segments, each
/// forwarded on receipt.
pub(super) fn pipelined_ring<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    segment: u64,
    passing: Passing,
) -> Result<(), S::Error> {
    let blocking = passing == Passing::Blocking;
    let own = at.virtual_rank();
    let above = own.checked_add(1).filter(|&v| v < at.ranks);
    let mut left = at.size;
    let mut sent = None;
    for _ in 0..segments(at.size, segment) {
        let part = left.min(segment);
        left -= part;
        let mut received = None;
        if let Some(below) = own.checked_sub(1) {
            let receive = out.receive(at.swapped(below), part)?;
            out.follows(receive, sent.filter(|_| blocking))?;
            received = Some(receive);
        }
        let Some(above) = above else {
            if let Some(receive) = received {
                out.end(receive)?;
            }
            continue;
        };
        let send = out.send(at.swapped(above), part)?;
        out.follows(send, received)?;
        if !(blocking && received.is_some() && left > 0) {
            out.end(send)?;
        }
        sent = Some(send);
    }
    Ok(())
}

/// Double ring: one message up the ring and one down, both from rank 0, whose sends have no
/// dependencies.
pub(super) fn double_ring<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    for up in [true, false] {
        let (to, from) = if up { (at.above(1), at.below(1)) } else { (at.below(1), at.above(1)) };
        let send = out.send(to, at.size)?;
        let receive = out.receive(from, at.size)?;
        out.start(receive)?;
        if at.rank > 0 {
            out.requires(send, receive)?;
        } else {
            out.start(send)?;
            out.end(receive)?;
        }
        out.end(send)?;
    }
    Ok(())
}

/// Ring allreduce: 2(P − 1) steps of ⌊size/P⌋ bytes to the next rank, each except the first after
/// the receive of the preceding step.
pub(super) fn allreduce_ring<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    let size = at.size.checked_div(u64::from(at.ranks)).unwrap_or(0);
    let step = Round { to: at.above(1), from: at.below(1), size };
    out.exchanges((0..2 * u64::from(at.ranks.saturating_sub(1))).map(|_| step))
}
