//! Dissemination: after ⌈log P⌉ rounds every rank has data of every other.

use core::iter;

use super::script::{Place, Round, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Dissemination: in round k a rank sends to the rank 2ᵏ above on the ring and receives from the
/// rank 2ᵏ below; a send waits for the receive of the round before.
pub(super) fn dissemination<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    let distances = iter::successors(Some(1u64), |distance| Some(2 * distance));
    let round = |distance| {
        let (to, from) = (at.above(distance), at.below(distance));
        Round { to, from, size: at.size }
    };
    out.exchanges(distances.take_while(|&distance| distance < at.ranks.into()).map(round))
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
    let rounded_up = ROUNDED_UP.contains(&(100 * u64::from(ways) + u64::from(rounds)));
    if exact && rounded_up { rounds + 1 } else { rounds }
}

/// Cases 100·n + k in which Schedgen adds a round. It computes ⌈ln P / ln(n + 1)⌉ in double precision;
/// for some P = (n + 1)ᵏ the quotient is just above k, and in the last round every rank sends to
/// itself. Complete up to n = 63 and P < 2³², with the logarithm of the GNU C library.
const ROUNDED_UP: [u64; 32] = [
    129, 131, 403, 406, 412, 413, 503, 506, 511, 512, 605, 610, 707, 709, 1307, 1703, 1706, 1707,
    1805, 1807, 1905, 2403, 2406, 3503, 3506, 3803, 3806, 4405, 4603, 4805, 4905, 5705,
];

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
    // Receives of the round before.
    let mut received = 0..0;
    let mut distance = 1u64;
    for _ in 0..nway_rounds(at.ranks, ways) {
        let (mut chain, mut ready) = (None, None);
        if let Some(first) = received.next() {
            for receive in received {
                let calc = out.calc(fold)?;
                out.requires(calc, receive)?;
                out.requires(calc, chain.unwrap_or(first))?;
                chain = Some(calc);
            }
            let calc = out.calc(fold)?;
            out.requires(calc, first)?;
            ready = Some(calc);
        }
        for way in 1..=ways {
            let send = out.send(at.above(u64::from(way) * distance), at.size)?;
            out.follows(send, ready)?;
            if let Some(chain) = chain.filter(|_| way == ways) {
                out.requires(send, chain)?;
            }
            out.end(send)?;
        }
        received = 0..0;
        for way in 1..=ways {
            let receive = out.receive(at.below(u64::from(way) * distance), at.size)?;
            out.start(receive)?;
            received = receive + 1 - way..receive + 1;
        }
        // Only the distance modulo P matters; reducing it avoids overflow.
        distance = u64::from(at.on_ring(distance * (u64::from(ways) + 1)));
    }
    received.try_for_each(|receive| out.end(receive))
}
