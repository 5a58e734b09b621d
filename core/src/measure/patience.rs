//! How long a reply is waited for.

/// Limits for replies, learnt from the exchanges that came to their end.
///
/// On a reliable link the limit is always the longest: a reply that does not
/// come means that the peer is gone. On a datagram link it is four times what
/// the slowest exchange so far suggests, scaled up by messages and bytes and
/// doubled after each loss, so that a lost message costs little time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Never wait longer, in ticks.
    pub(super) longest: u64,
    /// Never give up earlier, in ticks.
    pub(super) shortest: u64,
    /// The slowest exchange so far.
    slowest: Option<Exchange>,
    /// Losses since the last success.
    losses: u32,
    learns: bool,
}

/// Messages there and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// Ticks, busy waits left out.
    pub(super) ticks: u64,
    /// Messages of both directions.
    pub(super) messages: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

impl Patience {
    /// For a reliable link.
    pub(super) const fn fixed(longest: u64) -> Self {
        Self { longest, shortest: longest, slowest: None, losses: 0, learns: false }
    }

    /// For a datagram link.
    pub(super) const fn learning(longest: u64, shortest: u64) -> Self {
        Self { longest, shortest, slowest: None, losses: 0, learns: true }
    }

    /// Ticks to wait for an exchange of that many messages and bytes.
    pub(super) fn limit(&self, messages: u64, bytes: u64) -> u64 {
        let Some(slowest) = self.slowest.filter(|_| self.learns) else {
            return self.longest;
        };
        let more = |now: u64, then: u64| u128::from(now.div_ceil(then.max(1)).max(1));
        let expected = u128::from(slowest.ticks)
            .saturating_mul(more(messages, slowest.messages))
            .saturating_mul(more(bytes, slowest.bytes));
        let limit = expected.saturating_mul(4 << self.losses.min(16));
        u64::try_from(limit).unwrap_or(u64::MAX).max(self.shortest).min(self.longest)
    }

    /// An exchange came to its end.
    pub(super) fn on_success(&mut self, exchange: Exchange) {
        self.losses = 0;
        if self.slowest.is_none_or(|slowest| exchange.ticks >= slowest.ticks) {
            self.slowest = Some(exchange);
        }
    }

    /// An exchange was given up.
    pub(super) fn on_loss(&mut self) {
        self.losses = self.losses.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reliable_link_always_gets_the_longest_limit() {
        let mut patience = Patience::fixed(1_000_000);
        patience.on_success(Exchange { ticks: 5, messages: 2, bytes: 2 });
        assert_eq!(patience.limit(2, 2), 1_000_000);
    }

    #[test]
    fn a_datagram_link_waits_four_times_the_slowest_scaled_up() {
        let mut patience = Patience::learning(1_000_000, 10);
        assert_eq!(patience.limit(2, 2), 1_000_000);
        patience.on_success(Exchange { ticks: 100, messages: 2, bytes: 100 });
        patience.on_success(Exchange { ticks: 50, messages: 2, bytes: 100 });
        assert_eq!(patience.limit(1, 1), 400);
        assert_eq!(patience.limit(4, 100), 800);
        assert_eq!(patience.limit(4, 1_000), 8_000);
        assert_eq!(patience.limit(u64::MAX, u64::MAX), 1_000_000);
    }

    #[test]
    fn each_loss_doubles_the_limit_and_a_success_ends_that() {
        let mut patience = Patience::learning(1_000_000, 10);
        patience.on_success(Exchange { ticks: 100, messages: 1, bytes: 1 });
        patience.on_loss();
        patience.on_loss();
        assert_eq!(patience.limit(1, 1), 1_600);
        for _ in 0..100 {
            patience.on_loss();
        }
        assert_eq!(patience.limit(1, 1), 1_000_000);
        patience.on_success(Exchange { ticks: 1, messages: 1, bytes: 1 });
        assert_eq!(patience.limit(1, 1), 400);
    }
}
