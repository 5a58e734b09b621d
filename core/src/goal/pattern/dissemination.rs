//! Dissemination: after ⌈log P⌉ rounds every rank has data of every other.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Dissemination: in round k a rank sends to the rank 2ᵏ above on the ring and receives from the
/// rank 2ᵏ below; a send waits for the receive of the round before.
pub(super) fn dissemination<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    let mut received = None;
    let mut distance = 1u64;
    while distance < u64::from(at.ranks) {
        let send = out.send(at.above(distance), at.size)?;
        out.follows(send, received)?;
        out.end(send)?;
        let receive = out.receive(at.below(distance), at.size)?;
        out.start(receive)?;
        received = Some(receive);
        distance *= 2;
    }
    received.map_or(Ok(()), |receive| out.end(receive))
}

/// Number of rounds of the n-way dissemination: ⌈log P⌉ to the base n + 1, and one more in the
/// cases of [`ROUNDED_UP`].
pub(super) fn nway_rounds(ranks: u32, ways: u32) -> u32 {
    let base = u64::from(ways) + 1;
    let mut reached = 1;
    let mut rounds = 0u32;
    while reached < u64::from(ranks) {
        reached *= base;
        rounds += 1;
    }
    let exact = reached == u64::from(ranks);
    let rounded_up = ROUNDED_UP.contains(&(ways, rounds));
    if exact && rounded_up { rounds + 1 } else { rounds }
}

/// Cases (n, k) in which Schedgen adds a round. It computes ⌈ln P / ln(n + 1)⌉ in double precision;
/// for some P = (n + 1)ᵏ the quotient is just above k, and in the last round every rank sends to
/// itself. Complete up to n = 63 and P < 2³², with the logarithm of the GNU C library.
const ROUNDED_UP: [(u32, u32); 32] = [
    (1, 29),
    (1, 31),
    (4, 3),
    (4, 6),
    (4, 12),
    (4, 13),
    (5, 3),
    (5, 6),
    (5, 11),
    (5, 12),
    (6, 5),
    (6, 10),
    (7, 7),
    (7, 9),
    (13, 7),
    (17, 3),
    (17, 6),
    (17, 7),
    (18, 5),
    (18, 7),
    (19, 5),
    (24, 3),
    (24, 6),
    (35, 3),
    (35, 6),
    (38, 3),
    (38, 6),
    (44, 5),
    (46, 3),
    (48, 5),
    (49, 5),
    (57, 5),
];

/// Receives of one round of the n-way dissemination.
#[derive(Clone, Copy)]
struct Received {
    /// Index of the first; the others follow it.
    first: u32,
    count: u32,
}

/// n-way dissemination: in round k a rank sends to the n ranks that are w(n + 1)ᵏ above on the
/// ring. Between two rounds one calculation folds in the data of the first receive, and every send
/// waits for it; a chain of calculations folds in the data of the others, and only the last send
/// waits for that. Each calculation takes one nanosecond for each byte.
pub(super) fn nway_dissemination<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    ways: u32,
) -> Result<(), S::Error> {
    let fold = Picos(at.size.saturating_mul(1_000));
    let mut before: Option<Received> = None;
    let mut distance = 1u64;
    for _ in 0..nway_rounds(at.ranks, ways) {
        let mut chain = None;
        let mut ready = None;
        if let Some(received) = before {
            chain = fold_chain(out, received, fold)?;
            let first = out.calc(fold)?;
            out.requires(first, received.first)?;
            ready = Some(first);
        }
        for way in 1..=ways {
            let send = out.send(at.above(u64::from(way) * distance), at.size)?;
            out.follows(send, ready)?;
            if let Some(chain) = chain.filter(|_| way == ways) {
                out.requires(send, chain)?;
            }
            out.end(send)?;
        }
        before = Some(receive_round(out, at, ways, distance)?);
        // Only the distance modulo P matters; reducing it avoids overflow.
        distance = u64::from(at.on_ring(distance * (u64::from(ways) + 1)));
    }
    match before {
        Some(received) => {
            (0..received.count).try_for_each(|nth| out.end(received.first.wrapping_add(nth)))
        }
        None => Ok(()),
    }
}

/// Emits the n − 1 chained calculations for the receives after the first; returns the last.
fn fold_chain<S: Sink>(
    out: &mut Script<'_, S>,
    received: Received,
    fold: Picos,
) -> Result<Option<u32>, S::Error> {
    let mut last = None;
    for nth in 1..received.count {
        let calc = out.calc(fold)?;
        out.requires(calc, received.first.wrapping_add(nth))?;
        out.requires(calc, last.unwrap_or(received.first))?;
        last = Some(calc);
    }
    Ok(last)
}

/// Emits the receives of one round, which have no dependencies.
fn receive_round<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    ways: u32,
    distance: u64,
) -> Result<Received, S::Error> {
    let mut first = None;
    for way in 1..=ways {
        let receive = out.receive(at.below(u64::from(way) * distance), at.size)?;
        out.start(receive)?;
        first = first.or(Some(receive));
    }
    Ok(Received { first: first.unwrap_or_default(), count: ways })
}
