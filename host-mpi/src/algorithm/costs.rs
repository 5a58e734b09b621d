//! What messages of exactly these sizes cost, from a profile's table by size.
//!
//! Lines over sizes smooth what a library does at each; messages of an
//! algorithm have a few sizes only, each of which was measured. Each is a set
//! of its own, in which one way takes half a round trip: `2o + L = RTT/2`, with
//! `o` the mean of both overheads. Where overheads are longer than that, as
//! they hide each other, `o` is a quarter of the round trip and `L` 0.

use loggap_core::measure::SizeRow;
use loggap_core::model::{Estimate, LogGops, Protocol};
use loggap_core::units::{Bytes, PerByte, Picos, SignedPicos};

/// Which end of their intervals parameters are taken at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The lower one.
    Low,
    /// The best values.
    Value,
    /// The upper one.
    High,
}

impl End {
    /// This end of an interval.
    #[must_use]
    pub const fn of(self, estimate: &Estimate<Picos>) -> Picos {
        match self {
            Self::Low => estimate.low,
            Self::Value => estimate.value,
            Self::High => estimate.high,
        }
    }
}

/// What a message of one size costs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageCost {
    /// Its size.
    pub size: u64,
    /// One way.
    pub one_way: Estimate<Picos>,
    /// Of both ends together.
    pub overheads: Estimate<Picos>,
    /// Between one message and the next.
    pub gap: Estimate<Picos>,
}

impl MessageCost {
    /// As a profile's table has it; `None` without a round trip.
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

    /// As two measurements of it have it: the means, and intervals that hold
    /// both.
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

    /// By how much overheads are longer than the message under way.
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
            // A handshake is part of the round trip that was measured.
            eager_limit: Bytes(u64::MAX),
        }
    }
}

/// The costs as a simulation takes them; sizes ascend.
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
    use super::super::{Program, Shape, makespan};
    use super::*;
    use loggap_core::sim::Parameters;

    fn cost(size: u64, one_way: u64, overheads: u64) -> MessageCost {
        let of = |value: u64| Estimate {
            value: Picos(value),
            low: Picos(value - 10),
            high: Picos(value + 10),
            ..Estimate::default()
        };
        MessageCost { size, one_way: of(one_way), overheads: of(overheads), gap: of(100) }
    }

    #[test]
    fn a_message_takes_half_a_round_trip_whatever_overheads_are() {
        let program = Program {
            shape: Shape::BroadcastNearFirst,
            ranks: 2,
            size: 8,
            local: Picos::ZERO,
            combine: Picos::ZERO,
        };
        for overheads in [100, 400, 900] {
            for (end, time) in [(End::Low, 390), (End::Value, 400), (End::High, 410)] {
                let costs = [cost(0, 300, 50), cost(8, 400, overheads)];
                let sets = protocols(&costs, end);
                let parameters = Parameters::per_protocol(&sets).unwrap();
                assert_eq!(makespan(&program, parameters).unwrap(), Picos(time), "{overheads}");
            }
        }
        assert_eq!(cost(8, 400, 900).hidden(), Picos(500));
        let both = cost(8, 400, 900).with(&cost(8, 500, 900));
        let of = |estimate: Estimate<Picos>| (estimate.low.0, estimate.value.0, estimate.high.0);
        assert_eq!((of(both.one_way), of(both.gap)), ((390, 450, 510), (90, 100, 110)));
        assert_eq!(cost(8, 400, 100).hidden(), Picos::ZERO);
    }
}
