//! Costs of messages of exact sizes, from a profile.
//!
//! Lines over sizes smooth out what a library does at each size, while an
//! algorithm's messages have only a few sizes, all of them measured. So each
//! size has its own parameter set, in which the one-way time is half a round
//! trip: `2o + L = RTT/2`, with `o` the mean of both overheads. If `2o` exceeds
//! that because the overheads overlap, `o` is a quarter of the round trip and
//! `L` is 0.

use loggap_core::measure::SizeRow;
use loggap_core::model::{Estimate, LogGops, Protocol, Range, SizeLine};
use loggap_core::units::{Bytes, PerByte, Picos, SignedPicos};

/// Point of the confidence intervals at which parameters are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Lower end.
    Low,
    /// Estimate.
    Value,
    /// Upper end.
    High,
}

impl End {
    /// `estimate` at this point of its interval.
    #[must_use]
    pub const fn of(self, estimate: &Estimate<Picos>) -> Picos {
        match self {
            Self::Low => estimate.low,
            Self::Value => estimate.value,
            Self::High => estimate.high,
        }
    }
}

/// Cost of a message of one size.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageCost {
    /// Message size, bytes.
    pub size: u64,
    /// One-way time: half the round trip.
    pub one_way: Estimate<Picos>,
    /// Sum of send and receive overhead.
    pub overheads: Estimate<Picos>,
    /// Gap between consecutive messages.
    pub gap: Estimate<Picos>,
}

impl MessageCost {
    /// Cost from a row of a profile's table; `None` without a round trip.
    #[must_use]
    pub fn of(row: &SizeRow) -> Option<Self> {
        let none = Estimate::exact(Picos::ZERO);
        let send = row.send_overhead.as_ref().map_or(none, unsigned);
        let receive = row.recv_overhead.as_ref().map_or(none, unsigned);
        Some(Self {
            size: row.size.0,
            one_way: unsigned(row.half_rtt.as_ref()?),
            overheads: Estimate {
                value: sum(send.value, receive.value),
                low: sum(send.low, receive.low),
                high: sum(send.high, receive.high),
                mark: send.mark,
            },
            gap: row.gap.as_ref().map_or(none, unsigned),
        })
    }

    /// Cost of a message of `size` bytes by the lines of its range; `None` without round trips.
    #[must_use]
    pub fn at(range: &Range, size: Bytes) -> Option<Self> {
        let estimate = |line: &SizeLine| {
            let (value, half) = (line.at(size), line.half_width(size));
            let half = i64::try_from(half.0).unwrap_or(i64::MAX);
            let [low, high] = [value.0.saturating_sub(half), value.0.saturating_add(half)];
            let [low, high] = [low, high].map(SignedPicos);
            Estimate { low, high, mark: line.mark(), ..Estimate::exact(value) }
        };
        Self::of(&SizeRow {
            size,
            half_rtt: Some(estimate(range.half_rtt.as_ref()?)),
            gap: Some(estimate(&range.gap)),
            send_overhead: range.send_overhead.as_ref().map(estimate),
            recv_overhead: range.recv_overhead.as_ref().map(estimate),
            ..SizeRow::default()
        })
    }

    /// Mean of two measurements, with intervals that cover both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let both = |one: &Estimate<Picos>, other: &Estimate<Picos>| Estimate {
            value: Picos(one.value.0.midpoint(other.value.0)),
            low: one.low.min(other.low),
            high: one.high.max(other.high),
            mark: one.mark,
        };
        Self {
            size: self.size,
            one_way: both(&self.one_way, &other.one_way),
            overheads: both(&self.overheads, &other.overheads),
            gap: both(&self.gap, &other.gap),
        }
    }

    /// Cost in one direction, whose one-way time is `share` (lower end, value,
    /// upper end) times the mean of both directions.
    #[must_use]
    pub fn of_one_way(&self, [low, value, high]: [f64; 3]) -> Self {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "to a picosecond in 2^52 of them; shares are not negative"
        )]
        let times = |time: Picos, share: f64| Picos((time.0 as f64 * share).round() as u64);
        let one_way = Estimate {
            low: times(self.one_way.low, low),
            value: times(self.one_way.value, value),
            high: times(self.one_way.high, high),
            mark: self.one_way.mark,
        };
        Self { one_way, ..*self }
    }

    /// Amount by which the overheads exceed the one-way time.
    #[must_use]
    pub const fn hidden(&self) -> Picos {
        self.overheads.value.since(self.one_way.value)
    }

    fn set(&self, end: End) -> LogGops {
        let one_way = end.of(&self.one_way);
        let overhead = Picos(end.of(&self.overheads).0.min(one_way.0) / 2);
        LogGops {
            latency: Picos(one_way.0 - 2 * overhead.0),
            overhead,
            gap: end.of(&self.gap),
            gap_per_byte: PerByte::ZERO,
            overhead_per_byte: PerByte::ZERO,
            // The measured round trip includes any rendezvous handshake.
            eager_limit: Bytes(u64::MAX),
        }
    }
}

/// Parameter sets for a simulation; `costs` ascend by size.
#[must_use]
pub fn protocols(costs: &[MessageCost], end: End) -> Vec<Protocol> {
    let protocol =
        |cost: &MessageCost| Protocol { first: Bytes(cost.size), parameters: cost.set(end) };
    costs.iter().map(protocol).collect()
}

const fn sum(one: Picos, other: Picos) -> Picos {
    Picos(one.0.saturating_add(other.0))
}

fn unsigned(estimate: &Estimate<SignedPicos>) -> Estimate<Picos> {
    let whole = |time: SignedPicos| time.picos().unwrap_or_default();
    Estimate {
        value: whole(estimate.value),
        low: whole(estimate.low),
        high: whole(estimate.high),
        mark: estimate.mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(one_way: u64, overheads: u64) -> MessageCost {
        let of = |value: u64| Estimate {
            value: Picos(value),
            low: Picos(value - 10),
            high: Picos(value + 10),
            ..Estimate::default()
        };
        MessageCost { size: 8, one_way: of(one_way), overheads: of(overheads), gap: of(100) }
    }

    #[test]
    fn a_mean_covers_both_and_overheads_may_be_hidden() {
        assert_eq!(cost(400, 900).hidden(), Picos(500));
        let both = cost(400, 900).with(&cost(500, 900));
        let of = |estimate: Estimate<Picos>| (estimate.low.0, estimate.value.0, estimate.high.0);
        assert_eq!((of(both.one_way), of(both.gap)), ((390, 450, 510), (90, 100, 110)));
        assert_eq!(cost(400, 100).hidden(), Picos::ZERO);
    }

    #[test]
    fn one_of_two_ways_takes_its_share() {
        let away = cost(400, 900).of_one_way([1.0, 1.25, 1.5]);
        let Estimate { low, value, high, .. } = away.one_way;
        assert_eq!((low, value, high), (Picos(390), Picos(500), Picos(615)));
        assert_eq!(away.overheads, cost(400, 900).overheads);
    }
}
