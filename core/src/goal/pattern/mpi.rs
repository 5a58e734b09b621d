//! Collectives of Schedgen 2, with its algorithms, automatic choice and tags. A written tag is
//! 1000·tag + group, with tags from 42 and groups from 1.

use core::ops::RangeInclusive;

use super::script::{Place, Round, Script};
use super::{Algorithm, Collective, OptionError, TreeKind, tree};
use crate::goal::Sink;
use crate::units::Picos;

/// First tag of a rank's first collective.
const FIRST_TAG: u32 = 42;
/// Multiplier of the tag in a written tag, to which the number of the group is added.
const TAG_FACTOR: u32 = 1_000;
/// Largest size in bytes for which the automatic choice prefers the algorithm with few rounds.
const SHORT: u64 = 4_096;

/// Settings of a collective of Schedgen 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Kind of the collective.
    pub collective: Collective,
    /// Algorithm; never [`Algorithm::Auto`].
    pub algorithm: Algorithm,
    /// Largest number of sends of a linear algorithm in flight.
    pub window: Option<u32>,
    /// Duration of a calculation between a receive and the operation that waits for it.
    pub compute: Option<Picos>,
    /// Number of this group, from 1.
    pub group: u32,
    /// Number of groups.
    pub groups: u32,
}

/// Resolves [`Algorithm::Auto`]; refuses an algorithm that the collective does not have.
pub(super) fn settle(
    collective: Collective,
    algorithm: Algorithm,
    size: u64,
    ranks: u32,
) -> Result<Algorithm, OptionError> {
    use Algorithm::{Auto, BinomialTree, Linear, RecursiveDoubling, Ring};
    let power = ranks.is_power_of_two();
    let short = size <= SHORT;
    let (own, chosen): (&[Algorithm], _) = match collective {
        Collective::Broadcast if short && power => (&[BinomialTree, Linear], BinomialTree),
        Collective::Reduce if !short && power => (&[BinomialTree, Linear], BinomialTree),
        Collective::Broadcast | Collective::Reduce => (&[BinomialTree, Linear], Linear),
        Collective::Allreduce | Collective::ReduceScatter | Collective::Allgather => {
            let few_rounds = short && power;
            (&[RecursiveDoubling, Ring], if few_rounds { RecursiveDoubling } else { Ring })
        }
        Collective::AllToAll | Collective::Incast | Collective::Outcast => (&[Linear], Linear),
    };
    match algorithm {
        Auto => Ok(chosen),
        _ if !own.contains(&algorithm) => Err(OptionError::Algorithm { collective, algorithm }),
        RecursiveDoubling if !power => Err(OptionError::PowerOfTwo { ranks }),
        _ => Ok(algorithm),
    }
}

/// Emits one rank's part of a collective.
pub(super) fn collective<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    with: &Settings,
) -> Result<(), S::Error> {
    tag(out, with, 0);
    if with.groups == 1 {
        return within_group(out, at, with);
    }
    let first = out.calc(Picos::ZERO)?;
    out.start(first)?;
    out.behind(first, |out| within_group(out, at, with))
}

fn within_group<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    with: &Settings,
) -> Result<(), S::Error> {
    match (with.collective, with.algorithm) {
        (Collective::Broadcast, Algorithm::BinomialTree) => {
            tree::broadcast(out, at, TreeKind::Binomial)
        }
        (Collective::Reduce, Algorithm::BinomialTree) => tree::binomial_reduce(out, at),
        (Collective::Broadcast | Collective::Outcast, _) => {
            linear(out, at, with.window, at.root..=at.root)
        }
        (Collective::AllToAll, _) => linear(out, at, with.window, 0..=at.ranks.saturating_sub(1)),
        (Collective::Reduce | Collective::Incast, _) if at.rank == at.root => {
            let mut peers = (0..at.ranks).filter(|&peer| peer != at.rank);
            peers.try_for_each(|peer| out.receive_alone(peer, at.size))
        }
        (Collective::Reduce | Collective::Incast, _) => out.send_alone(at.root, at.size),
        (Collective::ReduceScatter, _) => half(out, at, with, Half::Scatter),
        (Collective::Allgather, _) => half(out, at, with, Half::Gather { first_round: 0 }),
        (Collective::Allreduce, _) => allreduce(out, at, with),
    }
}

/// Sets the tag of a round.
const fn tag<S: Sink>(out: &mut Script<'_, S>, with: &Settings, round: u32) {
    let tag = FIRST_TAG.wrapping_add(round);
    out.set_tag(tag.wrapping_mul(TAG_FACTOR).wrapping_add(with.group));
}

/// Linear collective: each of `senders` in turn sends to every other rank.
fn linear<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    window: Option<u32>,
    mut senders: RangeInclusive<u32>,
) -> Result<(), S::Error> {
    senders.try_for_each(|sender| {
        if sender == at.rank {
            return send_to_all(out, at, window);
        }
        out.receive_alone(sender, at.size)
    })
}

/// Emits sends to every other rank; with a window of w, send i waits for send i − w.
fn send_to_all<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    window: Option<u32>,
) -> Result<(), S::Error> {
    let peers = (0..at.ranks).filter(|&peer| peer != at.rank);
    for (index, peer) in (1u32..).zip(peers) {
        let send = out.send(peer, at.size)?;
        // The sends of a rank are consecutive operations.
        match window.filter(|&window| window < index) {
            Some(window) => out.requires(send, send.wrapping_sub(window))?,
            None => out.start(send)?,
        }
        if window.is_none_or(|window| index.saturating_add(window) >= at.ranks) {
            out.end(send)?;
        }
    }
    Ok(())
}

/// Half of an allreduce.
#[derive(Clone, Copy)]
enum Half {
    /// Reduce-scatter.
    Scatter,
    /// Allgather, whose first message has this round's tag.
    Gather { first_round: u32 },
}

/// Emits a reduce-scatter, a join of all its last operations, and an allgather.
fn allreduce<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    with: &Settings,
) -> Result<(), S::Error> {
    let join = out.joined(|out| half(out, at, with, Half::Scatter))?;
    out.behind(join, |out| half(out, at, with, Half::Gather { first_round: at.ranks }))
}

/// Emits one half by ring or recursive doubling.
fn half<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    with: &Settings,
    half: Half,
) -> Result<(), S::Error> {
    let rounds = match with.algorithm {
        Algorithm::Ring => at.ranks.saturating_sub(1),
        _ => at.ranks.checked_ilog2().unwrap_or(0),
    };
    let mut ready = None;
    for round in 0..rounds {
        let (bit, before) = match half {
            Half::Scatter => (round, 0),
            Half::Gather { first_round } => (rounds - 1 - round, first_round),
        };
        tag(out, with, before.wrapping_add(round));
        let receive = out.exchange(step(at, with.algorithm, bit), ready)?;
        ready = Some(match with.compute {
            Some(duration) => {
                let calc = out.calc(duration)?;
                out.requires(calc, receive)?;
                calc
            }
            None => receive,
        });
    }
    ready.map_or(Ok(()), |last| out.end(last))
}

/// Messages of a round: along the ring, or with the rank whose number differs in a bit.
fn step(at: &Place, algorithm: Algorithm, bit: u32) -> Round {
    if algorithm == Algorithm::Ring {
        let size = at.size.checked_div(u64::from(at.ranks)).unwrap_or(0);
        return Round { to: at.above(1), from: at.below(1), size };
    }
    let peer = at.rank ^ 1u32.checked_shl(bit).unwrap_or(0);
    Round { to: peer, from: peer, size: at.size.checked_shr(bit + 1).unwrap_or(0) }
}
