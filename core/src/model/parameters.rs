//! Parameter sets of `LogGOPS`.

use crate::units::{Bytes, Overflow, PerByte, Picos};
use crate::wide::divide;

/// Parameters of `LogGOPS` (Hoefler, Schneider, Lumsdaine, HPDC '10) in the form used by its
/// simulators: one overhead for both ends, which grows with the size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogGops {
    /// Wire latency, `L`.
    pub latency: Picos,
    /// Time that an end is engaged with a message of one byte, `o`.
    pub overhead: Picos,
    /// Least time between two messages of one byte, `g`.
    pub gap: Picos,
    /// Time of each further byte on the wire, `G`.
    pub gap_per_byte: PerByte,
    /// Time of each further byte at an end, `O`.
    pub overhead_per_byte: PerByte,
    /// Largest eager message, `S`: senders of more bytes wait for their receiver.
    pub eager_limit: Bytes,
}

/// Overhead of the receiver, if it differs from the sender's: `o_r` and `O_r`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReceiveOverhead {
    /// Time of the first byte, `o_r`.
    pub overhead: Picos,
    /// Time of each further byte, `O_r`.
    pub overhead_per_byte: PerByte,
}

impl LogGops {
    /// End-to-end time of a message of one byte, `o + L + o_r`; saturates at 2⁶⁴ ps.
    #[must_use]
    pub const fn one_byte(&self, receive: &ReceiveOverhead) -> Picos {
        let sent = self.overhead.0.saturating_add(self.latency.0);
        Picos(sent.saturating_add(receive.overhead.0))
    }

    /// Takes `time` from [`LogGops::one_byte`]: from L, and what L does not have from both
    /// overheads, in proportion.
    pub fn shorten(&mut self, receive: &mut ReceiveOverhead, time: Picos) {
        let rest = time.since(self.latency);
        self.latency = self.latency.since(time);
        let sum = self.overhead.0.saturating_add(receive.overhead.0);
        let kept = sum.saturating_sub(rest.0);
        for overhead in [&mut self.overhead, &mut receive.overhead] {
            overhead.0 = divide(overhead.0, kept, sum).map_or(0, |(part, _)| part);
        }
    }

    /// Overhead of the receiver if both ends have the same.
    #[must_use]
    pub const fn receive_overhead(&self) -> ReceiveOverhead {
        let Self { overhead, overhead_per_byte, .. } = *self;
        ReceiveOverhead { overhead, overhead_per_byte }
    }

    /// Time that an end is engaged with `size` bytes, `o + (s − 1)·O`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn overhead_at(&self, size: Bytes) -> Result<Picos, Overflow> {
        self.overhead.plus(self.overhead_per_byte.times(size.after_first())?)
    }

    /// `g + (s − 1)·G`: least time between two messages of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn gap_at(&self, size: Bytes) -> Result<Picos, Overflow> {
        self.gap.plus(self.gap_per_byte.times(size.after_first())?)
    }

    /// End-to-end time of one eager message,
    /// `2·(o + (s − 1)·O) + L + (s − 1)·G`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn one_way(&self, size: Bytes) -> Result<Picos, Overflow> {
        let ends = self.overhead_at(size)?.times(2)?;
        let wire = self.gap_per_byte.times(size.after_first())?;
        ends.plus(self.latency)?.plus(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Open MPI over `InfiniBand` SDR above 12,288 B, Table 2 of the paper:
    /// L 5.96 µs, o 4.72 µs, g 21.39 µs, G 0.00103 µs/B.
    fn infiniband() -> LogGops {
        LogGops {
            latency: Picos(5_960_000),
            overhead: Picos(4_720_000),
            gap: Picos(21_390_000),
            gap_per_byte: PerByte(1_030 << 16),
            overhead_per_byte: PerByte::ZERO,
            eager_limit: Bytes(12_288),
        }
    }

    #[test]
    fn the_papers_infiniband_gives_the_papers_equations() -> Result<(), Overflow> {
        let wire = 20_000 * 1_030;
        let one_way = 5_960_000 + 2 * 4_720_000 + wire;
        assert_eq!(infiniband().one_way(Bytes(20_001))?, Picos(one_way));
        assert_eq!(infiniband().gap_at(Bytes(20_001))?, Picos(21_390_000 + wire));
        Ok(())
    }

    #[test]
    fn a_shorter_message_has_less_latency_then_less_overhead() {
        let shorter = |time| {
            let mut set = LogGops { overhead: Picos(10), latency: Picos(100), ..infiniband() };
            let mut receive = ReceiveOverhead { overhead: Picos(30), ..ReceiveOverhead::default() };
            set.shorten(&mut receive, Picos(time));
            [set.overhead, set.latency, receive.overhead].map(|time| time.0)
        };
        assert_eq!(shorter(0), [10, 100, 30]);
        assert_eq!(shorter(60), [10, 40, 30]);
        assert_eq!(shorter(120), [5, 0, 15]);
        assert_eq!(shorter(1_000), [0, 0, 0]);
    }

    #[test]
    fn an_empty_message_costs_what_one_byte_costs() {
        assert_eq!(infiniband().one_way(Bytes(0)), infiniband().one_way(Bytes(1)));
        assert_eq!(infiniband().gap_at(Bytes(0)), Ok(Picos(21_390_000)));
    }

    #[test]
    fn sizes_that_take_longer_than_time_lasts_are_refused() {
        assert_eq!(infiniband().one_way(Bytes(u64::MAX)), Err(Overflow));
    }

    #[test]
    fn both_ends_pay_for_every_byte_in_loggops() -> Result<(), Overflow> {
        let set = LogGops {
            latency: Picos(100),
            overhead: Picos(10),
            gap: Picos(20),
            gap_per_byte: PerByte(3 << 16),
            overhead_per_byte: PerByte(2 << 16),
            eager_limit: Bytes(65_535),
        };
        assert_eq!(set.one_way(Bytes(11))?, Picos(2 * 30 + 100 + 30));
        Ok(())
    }
}
