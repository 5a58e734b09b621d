//! Trees: binomial broadcast and reduction, binary broadcast.

use super::script::{Place, Script};
use crate::goal::Sink;

/// Binomial broadcast: in round k the virtual ranks below 2ᵏ send to the virtual rank 2ᵏ above
/// them.
pub(super) fn binomial_broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    broadcast(out, at, binomial_parent(at), binomial_children(at))
}

/// Binary broadcast: virtual rank v sends to 2v + 1 and 2v + 2. With a root other than 0 Schedgen
/// takes roles from real ranks but peers from virtual ranks, and deadlocks; here both are virtual.
pub(super) fn binary_broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let own = at.virtual_rank();
    let first = 2 * u64::from(own) + 1;
    broadcast(out, at, own.checked_sub(1).map(|above| above / 2), existing(at, [first, first + 1]))
}

/// Broadcast along a tree of virtual ranks.
fn broadcast<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    parent: Option<u32>,
    children: impl Iterator<Item = u32>,
) -> Result<(), S::Error> {
    let received = parent.map(|parent| out.receive(at.swapped(parent), at.size)).transpose()?;
    received.map_or(Ok(()), |receive| out.start(receive))?;
    let mut last = received;
    for child in children {
        let send = out.send(at.swapped(child), at.size)?;
        out.follows(send, received)?;
        out.end(send)?;
        last = None;
    }
    last.map_or(Ok(()), |receive| out.end(receive))
}

/// Binomial reduction: the reversed broadcast. The send to the parent is emitted first and waits
/// for every receive.
pub(super) fn binomial_reduce<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
) -> Result<(), S::Error> {
    let parent = binomial_parent(at);
    let sent = parent.map(|parent| out.send(at.swapped(parent), at.size)).transpose()?;
    let mut first = sent;
    for child in binomial_children(at) {
        let receive = out.receive(at.swapped(child), at.size)?;
        out.start(receive)?;
        match sent {
            Some(send) => out.requires(send, receive)?,
            None => out.end(receive)?,
        }
        first = None;
    }
    first.map_or(Ok(()), |send| out.start(send))?;
    sent.map_or(Ok(()), |send| out.end(send))
}

/// Virtual rank without the highest bit of this one; `None` for the root.
fn binomial_parent(at: &Place) -> Option<u32> {
    let own = at.virtual_rank();
    own.checked_ilog2().map(|highest| own ^ 1 << highest)
}

/// Virtual ranks with one bit more, above the highest of this one.
fn binomial_children(at: &Place) -> impl Iterator<Item = u32> + use<> {
    let own = at.virtual_rank();
    let first = own.checked_ilog2().map_or(0, |highest| highest + 1);
    existing(at, (first..u32::BITS).map(move |bit| u64::from(own) + (1 << bit)))
}

/// The `ranks` up to the first that is not in the group.
fn existing<R: IntoIterator<Item = u64>>(
    at: &Place,
    ranks: R,
) -> impl Iterator<Item = u32> + use<R> {
    let count = at.ranks;
    ranks.into_iter().map_while(move |rank| u32::try_from(rank).ok().filter(|&rank| rank < count))
}
