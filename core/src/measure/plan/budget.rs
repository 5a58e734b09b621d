//! First allotment of samples to all sizes, such that it fits into the budget.
//!
//! A round of 64 KiB at 10 Mb/s takes as much time as 10,000 small ones. The base samples of all
//! sizes together may use half of the remaining time and messages. If they would use more, the most
//! expensive sizes are reduced first: shorter bursts, then no overheads, then fewer samples. Once
//! every size is at its minimum, sizes are dropped: those between powers of two, then powers of two
//! below [`LINEAR`], where the time hardly depends on the size, and finally the largest ones.

use super::memory::RowPlan;
use super::planner::{PlanOptions, Planner};
use crate::units::Picos;
use crate::wide::{scaled, times};

/// Samples of each cell (size and quantity) if the budget allows: enough for an interval and to
/// tolerate one or two outliers.
pub(in crate::measure) const BASE_SAMPLES: u8 = 8;

/// From this size on, consecutive sizes differ by at most a factor of two.
const LINEAR: u32 = 1_024;

/// The whole budget in the fixed-point unit of shares.
const WHOLE: u64 = 1 << 30;

/// Samples of a size below which the link counts as slow for the time allowed.
const DECENT: u8 = 6;

/// Share of the budget that a size may always use, however slow the link is: 1/256.
const SMALL: u64 = WHOLE / 256;

/// From this size on, bursts may be longer than requested, in proportion to the size, so that their
/// length has no jump.
const LARGE: u32 = 2_048;

/// Most messages of a paced burst; more would not improve the overhead.
const PACED: u32 = 10;

/// First allotment of one size.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// Samples of each cell.
    samples: u8,
    /// Most messages of a burst.
    messages: u32,
    /// True if bursts of large messages may be longer than others.
    long: bool,
    /// True if overheads are measured.
    full: bool,
}

/// Allotments, from best to least.
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

/// Thinning of sizes, step by step: intervals between kept powers of two, below [`LINEAR`] and from
/// there on.
const THINNINGS: [Tier; 5] =
    [Tier::new(1, 1), Tier::new(2, 1), Tier::new(5, 1), Tier::new(10, 2), Tier::new(10, 4)];

/// Groups of sizes in the order of their first samples: about ten that span the sweep, then all
/// powers of two, then the rest.
pub(super) const TIERS: [Tier; 3] = [Tier::new(5, 1), Tier::new(1, 1), Tier::new(0, 0)];

/// Selection of sizes: every n-th power of two; 0 means all sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tier {
    /// Interval of powers of two below [`LINEAR`].
    small: u32,
    /// Interval of powers of two from [`LINEAR`] on.
    large: u32,
}

impl Tier {
    const fn new(small: u32, large: u32) -> Self {
        Self { small, large }
    }

    pub(super) fn has(self, size: u32) -> bool {
        let every = if size < LINEAR { self.small } else { self.large };
        every == 0 || size.is_power_of_two() && size.trailing_zeros().is_multiple_of(every)
    }
}

impl Offer {
    /// Allotment with overheads.
    const fn of_all(samples: u8, messages: u32) -> Self {
        Self { samples, messages, long: false, full: true }
    }

    /// Allotment of round trips and bursts only.
    const fn of_gap(samples: u8, messages: u32) -> Self {
        Self { samples, messages, long: false, full: false }
    }

    /// Writes this allotment of `size` into its plan.
    fn allot(&self, size: u32, options: &PlanOptions, plan: &mut RowPlan) {
        let usual = self.messages.min(options.messages);
        let within = options.burst_bytes / u64::from(size.max(1));
        let grown = u64::from(options.messages) * u64::from(size) / u64::from(LARGE);
        let most = within.min(grown).min(options.large_messages.into());
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let long = self.long && size >= LARGE;
        plan.messages = if long { most.max(usual) } else { usual };
        plan.paced_messages = usual.min(PACED);
        plan.full = self.full;
        plan.base = self.samples;
    }
}

impl RowPlan {
    /// Duration of the base samples, in halves of a round trip. A sample consists of a round trip;
    /// a burst with one half for each message and for the reply; a paced burst, with a delay of a
    /// round trip for each message; and a receive after two round trips.
    fn base_half_trips(&self) -> u64 {
        let overheads = if self.full { 2 * u64::from(self.paced_messages) + 6 } else { 0 };
        u64::from(self.base) * (2 + u64::from(self.messages) + 1 + overheads)
    }

    /// Number of messages of the base samples, including replies.
    fn base_messages(&self) -> u64 {
        let overheads = if self.full { u64::from(self.paced_messages) + 3 } else { 0 };
        u64::from(self.base) * (2 + u64::from(self.messages) + 1 + overheads)
    }
}

/// Remaining budget.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Left {
    pub(in crate::measure) time: Picos,
    pub(in crate::measure) messages: u64,
}

impl Left {
    /// Share that `time` or `messages` takes of this budget, whichever is more, in units of 2⁻³⁰.
    pub(super) fn share(&self, time: u64, messages: u64) -> u64 {
        let of = |part, whole: u64| scaled(part, WHOLE, whole.max(1));
        of(time, self.time.0).max(of(messages, self.messages))
    }
}

impl<const N: usize> Planner<'_, N> {
    /// Allots the first samples to all sizes; drops sizes only if [`PlanOptions::adapt_sizes`] is
    /// set. False if more time would give some size more samples.
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
        for &tier in &THINNINGS {
            self.thin(tier);
            if self.offer(left) {
                return false;
            }
        }
        // Drops the largest sizes, but not the smallest two.
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

    /// Parks all sizes but the first, the last and those of `tier`.
    fn thin(&mut self, tier: Tier) {
        let last = self.store.len().saturating_sub(1);
        for (row, header) in self.store.rows_mut().iter_mut().enumerate() {
            header.plan.parked = !(tier.has(header.size) || row == 0 || row == last);
        }
    }

    /// Gives every size the best allotment within a common limit, the highest one for which all
    /// together take at most half of the budget. False if they exceed it even though only sizes
    /// below [`SMALL`] get more than the least.
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

    /// Gives every size the best allotment whose share is at most `most`, or the least one; returns
    /// the total share.
    fn offer_up_to(&mut self, left: Left, most: u64) -> u64 {
        let mut total = 0_u64;
        // On a busy machine a long burst seldom fits between two preemptions.
        let offers = if self.is_busy() { OFFERS.get(1..).unwrap_or(&OFFERS) } else { &OFFERS };
        for header in self.store.rows_mut() {
            if header.plan.parked {
                continue;
            }
            let trip = self.warmup.expected(header.size).0;
            for offer in offers {
                let plan = &mut header.plan;
                offer.allot(header.size, &self.options, plan);
                let time = times(trip, plan.base_half_trips()) / 2;
                let share = left.share(time, plan.base_messages());
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
        // A sample: two halves, one message and one reply of a round trip; a burst of 8; a paced
        // burst of 4, each message with a delay of a round trip; a receive after two round trips.
        let mut plan = RowPlan::default();
        (plan.base, plan.messages, plan.paced_messages) = (2, 8, 4);
        assert_eq!([plan.base_half_trips(), plan.base_messages()], [2 * 11, 2 * 11]);
        plan.full = true;
        assert_eq!([plan.base_half_trips(), plan.base_messages()], [2 * 25, 2 * 18]);
    }
}
