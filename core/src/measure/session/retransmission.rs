//! Retransmission timeout: time limit for a reply.

use crate::wide::{scaled, times};

/// Retransmission timeout, estimated from completed exchanges.
///
/// On a reliable link the limit is always `longest`: a missing reply means that the peer is gone.
/// On a datagram link a lost message should cost little time. As in TCP (RFC 6298), the limit is
/// computed from the average duration of an exchange and the excess of exchanges over it: four
/// times their sum, doubled after each loss.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct RetransmissionTimeout {
    /// Upper limit, in ticks.
    pub(in crate::measure) longest: u64,
    /// Lower limit, in ticks.
    shortest: u64,
    /// Sums of the durations and of the weights of past exchanges, with decreasing influence of
    /// older ones.
    ticks: u64,
    weight: u64,
    /// Largest excess of an exchange over the average, in ticks; decays slowly.
    excess: u64,
    /// Losses since the last completed exchange.
    losses: u32,
    learns: bool,
}

/// Messages in both directions up to a reply.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Exchange {
    /// Duration without busy waits, in ticks.
    pub(in crate::measure) ticks: u64,
    /// Number of messages in both directions.
    pub(in crate::measure) messages: u64,
    /// Total number of bytes.
    pub(in crate::measure) bytes: u64,
}

/// Weight of a message in addition to its bytes, an estimate. If bytes cost more, the first limit
/// is too short; each loss then doubles it, and the next reply corrects the average.
const MESSAGE: u64 = 1_024;
/// Sum of weights above which the influence of past exchanges is halved.
const MEMORY: u64 = 1 << 24;
/// Decay of the excess: with every exchange it loses one part in this many.
const FORGOTTEN: u64 = 64;

impl RetransmissionTimeout {
    /// Constant timeout of a reliable link.
    pub(in crate::measure) const fn fixed(longest: u64) -> Self {
        Self { learns: false, ..Self::learning(longest, longest) }
    }

    /// Adaptive timeout of a datagram link.
    pub(in crate::measure) const fn learning(longest: u64, shortest: u64) -> Self {
        Self { longest, shortest, ticks: 0, weight: 0, excess: 0, losses: 0, learns: true }
    }

    /// Time limit for an exchange of this number of messages and bytes, in ticks.
    #[inline]
    pub(in crate::measure) fn limit(&self, messages: u64, bytes: u64) -> u64 {
        if !self.learns || self.weight == 0 {
            return self.longest;
        }
        let expected = self.expected(messages, bytes).saturating_add(self.excess);
        let limit = times(expected, 4 << self.losses.min(16));
        limit.max(self.shortest).min(self.longest)
    }

    /// Records a completed exchange.
    #[inline]
    pub(in crate::measure) fn on_success(&mut self, exchange: Exchange) {
        if self.learns {
            self.learn(exchange);
        }
    }

    fn learn(&mut self, exchange: Exchange) {
        let Exchange { ticks, messages, bytes } = exchange;
        self.losses = 0;
        let excess = ticks.saturating_sub(self.expected(messages, bytes));
        self.excess = excess.max(self.excess - self.excess.div_ceil(FORGOTTEN));
        self.ticks = self.ticks.saturating_add(ticks);
        self.weight = self.weight.saturating_add(weight(messages, bytes));
        if self.weight > MEMORY {
            (self.ticks, self.weight) = (self.ticks / 2, self.weight / 2);
        }
    }

    /// Average duration of such an exchange, in ticks; 0 before the first.
    fn expected(&self, messages: u64, bytes: u64) -> u64 {
        scaled(self.ticks, weight(messages, bytes), self.weight.max(1))
    }

    /// Records a lost exchange.
    pub(in crate::measure) fn on_loss(&mut self) {
        self.losses = self.losses.saturating_add(1);
    }
}

fn weight(messages: u64, bytes: u64) -> u64 {
    times(messages, MESSAGE).saturating_add(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reliable_link_always_gets_the_longest_limit() {
        let mut timeout = RetransmissionTimeout::fixed(1_000_000);
        timeout.on_success(Exchange { ticks: 5, messages: 2, bytes: 2 });
        assert_eq!(timeout.limit(2, 2), 1_000_000);
    }

    /// An empty message that takes `ticks`.
    const fn one(ticks: u64) -> Exchange {
        Exchange { ticks, messages: 1, bytes: 0 }
    }

    #[test]
    fn a_datagram_link_waits_four_times_the_average_scaled_up() {
        let mut timeout = RetransmissionTimeout::learning(10_000_000, 10);
        assert_eq!(timeout.limit(2, 2), 10_000_000);
        // The first exchange exceeds the average of zero; that decays.
        for _ in 0..400 {
            timeout.on_success(one(1_000));
        }
        assert_eq!(timeout.limit(1, 0), 4_000);
        assert_eq!(timeout.limit(10, 0), 40_000);
        assert_eq!(timeout.limit(1, 9 * MESSAGE), 40_000);
        assert_eq!(timeout.limit(u64::MAX, u64::MAX), 10_000_000);
    }

    #[test]
    fn a_hiccup_is_allowed_for_but_not_scaled_up() {
        let mut timeout = RetransmissionTimeout::learning(100_000_000, 10);
        for _ in 0..400 {
            timeout.on_success(one(1_000));
        }
        timeout.on_success(one(1_000_000));
        let limit = timeout.limit(100, 0);
        assert!((4_000_000..6_000_000).contains(&limit), "{limit}");
        for _ in 0..2_000 {
            timeout.on_success(one(1_000));
        }
        assert!(timeout.limit(1, 0) < 20_000, "{}", timeout.limit(1, 0));
    }

    #[test]
    fn each_loss_doubles_the_limit_and_a_success_ends_that() {
        let mut timeout = RetransmissionTimeout::learning(1_000_000, 10);
        timeout.on_success(one(100));
        assert_eq!(timeout.limit(1, 0), 800);
        timeout.on_loss();
        timeout.on_loss();
        assert_eq!(timeout.limit(1, 0), 3_200);
        for _ in 0..100 {
            timeout.on_loss();
        }
        assert_eq!(timeout.limit(1, 0), 1_000_000);
        timeout.on_success(one(100));
        assert!(timeout.limit(1, 0) <= 800);
    }

    #[test]
    fn absurd_exchanges_overflow_nothing() {
        let mut timeout = RetransmissionTimeout::learning(u64::MAX, 0);
        for _ in 0..3 {
            timeout.on_success(Exchange { ticks: u64::MAX, messages: u64::MAX, bytes: u64::MAX });
            timeout.on_loss();
        }
        assert_eq!(timeout.limit(u64::MAX, u64::MAX), u64::MAX);
    }
}
