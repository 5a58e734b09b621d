//! Random pairs: the traffic of an effective-bisection-bandwidth test.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::random::Random;

/// Fills `order` with a random permutation of 0..len, which depends only on the seed.
pub(super) fn shuffle(order: &mut [u32], seed: u64) {
    for (slot, value) in order.iter_mut().zip(0u32..) {
        *slot = value;
    }
    Random::new(seed).shuffle(order);
}

/// A permutation and its inverse.
#[derive(Clone, Copy)]
pub(super) struct Maps<'a> {
    /// Place of each rank.
    pub place_of: &'a [u32],
    /// Rank at each place.
    pub rank_at: &'a [u32],
}

/// Messages that a pair exchanges.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Traffic {
    /// One message.
    OneWay,
    /// One message in each direction.
    BothWays,
}

/// Emits a rank's messages with its partner, at half the permutation's length from its place. The
/// lower half sends and the upper half receives; with [`Traffic::BothWays`] the upper half also
/// answers.
pub(super) fn pairs<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    maps: Maps<'_>,
    traffic: Traffic,
) -> Result<(), S::Error> {
    let half = at.ranks / 2;
    let entry = |map: &[u32], index: u32| {
        usize::try_from(index).ok().and_then(|index| map.get(index)).copied()
    };
    let Some(place) = entry(maps.place_of, at.rank) else { return Ok(()) };
    let lower = place < half;
    let across = if lower { place.wrapping_add(half) } else { place.wrapping_sub(half) };
    let Some(peer) = entry(maps.rank_at, across) else { return Ok(()) };
    let both = [lower, !lower];
    let messages = if traffic == Traffic::BothWays { &both[..] } else { &both[..1] };
    for &sends in messages {
        if sends { out.send_alone(peer, at.size)? } else { out.receive_alone(peer, at.size)? }
    }
    Ok(())
}
