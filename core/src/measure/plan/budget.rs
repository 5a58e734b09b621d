//! What each size gets first, so that all of them fit into the budget.
//!
//! A round of 64 KiB at 10 Mb/s costs as much time as 10,000 small ones. The
//! base samples of all sizes together may take half of the time and of the
//! messages that are left. Where that is not enough, the dearest sizes give
//! way first: shorter bursts, then no overheads, then fewer samples. Where
//! every size is down to its least, sizes go: those between the powers of
//! two, then powers of two below [`LINEAR`], where the time hardly depends on
//! the size, and at last the largest ones.

use super::planner::{PlanOptions, Planner};
use crate::units::Picos;
use crate::wide::{scaled, times};

/// Samples that every cell gets where the budget allows: enough for an
/// interval, and to stand one or two outliers.
pub(in crate::measure) const BASE_SAMPLES: u8 = 8;

/// From this size on the sizes stay within a factor of two of each other.
const LINEAR: u32 = 1_024;

/// Parts of the budget that shares are counted in.
const WHOLE: u64 = 1 << 30;

/// Where a size gets fewer samples first, a link is slow for the time allowed.
const DECENT: u8 = 6;

/// What a size may take of the budget however slow the link is: a 256th.
const SMALL: u64 = WHOLE / 256;

/// From this size on bursts may be longer than asked for, in proportion to the
/// size: their length changes nowhere at once.
const LARGE: u32 = 2_048;

/// Messages in a paced burst, at most: more tell nothing new of the sender.
const PACED: u32 = 10;

/// What one size gets first.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// Samples a cell.
    samples: u8,
    /// Messages in a burst, at most.
    messages: u32,
    /// Whether bursts of large messages may be longer than others.
    long: bool,
    /// Whether overheads are measured, too.
    full: bool,
}

/// From the best to the least.
const OFFERS: [Offer; 11] = [
    Offer { long: true, ..Offer::of_all(BASE_SAMPLES, u32::MAX) },
    Offer::of_all(BASE_SAMPLES, u32::MAX),
    Offer::of_all(6, u32::MAX),
    Offer::of_all(4, u32::MAX),
    Offer::of_all(BASE_SAMPLES, 6),
    Offer::of_all(6, 4),
    Offer::of_gap(6, 6),
    Offer::of_all(4, 4),
    Offer::of_gap(4, 4),
    Offer::of_gap(3, 3),
    Offer::of_gap(3, 2),
];

/// How sizes are thinned out, step by step: every so many powers of two are
/// kept below [`LINEAR`], and from there on.
const THINNINGS: [(u32, u32); 5] = [(1, 1), (2, 1), (5, 1), (10, 2), (10, 4)];

/// The sizes that get their first samples before others do: about ten that
/// span the sweep, then all powers of two, then the rest.
pub(super) const TIERS: [(u32, u32); 3] = [(5, 1), (1, 1), (0, 0)];

/// True for a size of a tier: every n-th power of two below [`LINEAR`], every
/// m-th from there on; 0 takes all sizes.
pub(super) fn is_kept(size: u32, (small, large): (u32, u32)) -> bool {
    let every = if size < LINEAR { small } else { large };
    every == 0 || size.is_power_of_two() && size.trailing_zeros().is_multiple_of(every)
}

impl Offer {
    /// All quantities.
    const fn of_all(samples: u8, messages: u32) -> Self {
        Self { samples, messages, long: false, full: true }
    }

    /// Round trips and bursts alone.
    const fn of_gap(samples: u8, messages: u32) -> Self {
        Self { samples, messages, long: false, full: false }
    }

    /// Messages in a burst back to back and in a paced one at `size`.
    fn bursts(&self, size: u32, options: &PlanOptions) -> (u32, u32) {
        let usual = self.messages.min(options.messages);
        let within = options.burst_bytes / u64::from(size.max(1));
        let grown = u64::from(options.messages) * u64::from(size) / u64::from(LARGE);
        let most = within.min(grown).min(options.large_messages.into());
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let long = self.long && size >= LARGE;
        (if long { most.max(usual) } else { usual }, usual.min(PACED))
    }

    /// Time of the samples, in halves of a round trip: two of these a sample,
    /// a burst of one for each message and its reply, the same with delays of
    /// a round trip, and a receive after two round trips.
    fn half_trips(&self, (messages, paced): (u32, u32)) -> u64 {
        let overheads = if self.full { 2 * u64::from(paced) + 6 } else { 0 };
        u64::from(self.samples) * (2 + u64::from(messages) + 1 + overheads)
    }

    /// Messages of the samples, replies included.
    fn messages(&self, (messages, paced): (u32, u32)) -> u64 {
        let overheads = if self.full { u64::from(paced) + 3 } else { 0 };
        u64::from(self.samples) * (2 + u64::from(messages) + 1 + overheads)
    }
}

/// What is left of the budget.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Left {
    pub(in crate::measure) time: Picos,
    pub(in crate::measure) messages: u64,
}

impl Left {
    /// The share of `time` and `messages`, whichever is more, of 2³⁰.
    pub(super) fn share(&self, time: u64, messages: u64) -> u64 {
        let of = |part, whole: u64| scaled(part, WHOLE, whole.max(1));
        of(time, self.time.0).max(of(messages, self.messages))
    }
}

impl<const N: usize> Planner<'_, N> {
    /// Decides what each size gets first. Sizes are left out only where they
    /// may be adapted. False where more time would give a size more.
    pub(super) fn allot(&mut self, left: Left) -> bool {
        for header in self.store.rows_mut() {
            header.plan.parked = false;
        }
        if self.offer(left) {
            return self.store.rows().iter().all(|header| header.plan.base >= DECENT);
        }
        if !self.options.adapt_sizes {
            return false;
        }
        for &(small, large) in &THINNINGS {
            self.thin((small, large));
            if self.offer(left) {
                return false;
            }
        }
        // The largest go, but never the smallest two.
        for row in (2..self.store.len()).rev() {
            if let Some(header) = self.store.header_mut(row) {
                header.plan.parked = true;
            }
            if self.offer(left) {
                break;
            }
        }
        false
    }

    /// Parks all but the first and last size and every so many powers of two.
    fn thin(&mut self, tier: (u32, u32)) {
        let last = self.store.len().saturating_sub(1);
        for (row, header) in self.store.rows_mut().iter_mut().enumerate() {
            header.plan.parked = !(is_kept(header.size, tier) || row == 0 || row == last);
        }
    }

    /// Gives every size the best offer whose share of the budget no size
    /// exceeds; false where all together take more than half even though only
    /// sizes that take less than [`SMALL`] get more than the least.
    fn offer(&mut self, left: Left) -> bool {
        let (mut low, mut high) = (SMALL, WHOLE);
        while low + 1 < high {
            let most = low.midpoint(high);
            if self.offer_up_to(left, most) <= WHOLE / 2 {
                low = most;
            } else {
                high = most;
            }
        }
        self.offer_up_to(left, low) <= WHOLE / 2
    }

    /// Gives every size the best offer that takes no more than `most`, or the
    /// least one; the share of all.
    fn offer_up_to(&mut self, left: Left, most: u64) -> u64 {
        let mut total = 0_u64;
        // A long burst seldom falls between two times without a processor.
        let offers = if self.is_busy() { OFFERS.get(1..).unwrap_or(&OFFERS) } else { &OFFERS };
        for header in self.store.rows_mut() {
            if header.plan.parked {
                continue;
            }
            let trip = self.warmup.expected(header.size).0;
            for offer in offers {
                let bursts = offer.bursts(header.size, &self.options);
                let time = times(trip, offer.half_trips(bursts)) / 2;
                let share = left.share(time, offer.messages(bursts));
                header.plan.full = offer.full;
                header.plan.base = offer.samples;
                (header.plan.messages, header.plan.paced_messages) = bursts;
                if share <= most || offer.messages == 2 {
                    total = total.saturating_add(share);
                    break;
                }
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_takes_the_time_and_the_messages_of_its_rounds() {
        // A sample: two of a round trip, of one message and one reply each way.
        // Beside it a burst of 8; paced bursts of 4, one a round trip; a
        // receive after two round trips.
        let gap = Offer::of_gap(2, 8);
        assert_eq!([gap.half_trips((8, 4)), gap.messages((8, 4))], [2 * 11, 2 * 11]);
        let all = Offer::of_all(2, 8);
        assert_eq!([all.half_trips((8, 4)), all.messages((8, 4))], [2 * 25, 2 * 18]);
    }
}
