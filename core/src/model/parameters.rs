//! Parameter sets of `LogGP` and of `LogGOPS`.

use super::Prtt;
use crate::units::{Bytes, Overflow, PerByte, Picos};

/// Parameters of `LogGP` (Alexandrov et al., SPAA '95), with separate overheads for sending and
/// receiving.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogGp {
    /// Wire latency, `L`.
    pub latency: Picos,
    /// Time the sender is engaged with a message, `o_s`.
    pub send_overhead: Picos,
    /// Time the receiver is engaged with a message, `o_r`.
    pub recv_overhead: Picos,
    /// Least time between two messages of one byte, `g`.
    pub gap: Picos,
    /// Time of each further byte, `G`.
    pub gap_per_byte: PerByte,
}

impl LogGp {
    /// `G_all = g + (s − 1)·G`: least time between two messages of `size`
    /// bytes. An empty message counts as one byte.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn gap_at(&self, size: Bytes) -> Result<Picos, Overflow> {
        self.gap.plus(self.gap_per_byte.times(size.after_first())?)
    }

    /// End-to-end time of one message, `L + o_s + o_r + (s − 1)·G`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn one_way(&self, size: Bytes) -> Result<Picos, Overflow> {
        let ends = self.send_overhead.plus(self.recv_overhead)?;
        self.latency.plus(ends)?.plus(self.gap_per_byte.times(size.after_first())?)
    }

    /// Eq. 1: `PRTT(1,0,s) = 2·(L + o_s + o_r + (s − 1)·G)`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn round_trip(&self, size: Bytes) -> Result<Picos, Overflow> {
        self.one_way(size)?.times(2)
    }

    /// Eq. 3: `PRTT(n,d,s) = PRTT(1,0,s) + (n − 1)·max{o_s + d, G_all}`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn prtt(&self, prtt: Prtt) -> Result<Picos, Overflow> {
        let round_trip = self.round_trip(prtt.size)?;
        prtt.time(round_trip, self.send_overhead, self.gap_at(prtt.size)?)
    }
}

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
    fn infiniband() -> LogGp {
        LogGp {
            latency: Picos(5_960_000),
            send_overhead: Picos(4_720_000),
            recv_overhead: Picos(4_720_000),
            gap: Picos(21_390_000),
            gap_per_byte: PerByte(1_030 << 16),
        }
    }

    #[test]
    fn the_papers_infiniband_gives_the_papers_equations() -> Result<(), Overflow> {
        let size = Bytes(20_001);
        let wire = 20_000 * 1_030;
        let (set, one_way) = (infiniband(), 5_960_000 + 2 * 4_720_000 + wire);
        assert_eq!(set.one_way(size)?, Picos(one_way));
        assert_eq!(set.round_trip(size)?, Picos(2 * one_way));
        assert_eq!(set.gap_at(size)?, Picos(21_390_000 + wire));
        let burst = Prtt { messages: 10, delay: Picos::ZERO, size };
        assert_eq!(set.prtt(burst)?, Picos(2 * one_way + 9 * (21_390_000 + wire)));
        let paced = Prtt { delay: Picos(90_000_000), ..burst };
        assert_eq!(set.prtt(paced)?, Picos(2 * one_way + 9 * 94_720_000));
        Ok(())
    }

    #[test]
    fn an_empty_message_costs_what_one_byte_costs() {
        assert_eq!(infiniband().one_way(Bytes(0)), infiniband().one_way(Bytes(1)));
        assert_eq!(infiniband().gap_at(Bytes(0)), Ok(Picos(21_390_000)));
    }

    #[test]
    fn sizes_that_take_longer_than_time_lasts_are_refused() {
        assert_eq!(infiniband().round_trip(Bytes(u64::MAX)), Err(Overflow));
        let prtt = Prtt { messages: u32::MAX, delay: Picos(1 << 40), size: Bytes(1) };
        assert_eq!(infiniband().prtt(prtt), Err(Overflow));
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
