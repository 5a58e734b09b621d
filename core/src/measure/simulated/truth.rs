//! True parameters of a simulated link.

use crate::units::{Bytes, PerByte, Picos};

use super::disturbance::times;

/// Parameters of one protocol, valid from its first size on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Truth {
    /// First message size of this protocol, in bytes.
    pub first_size: u32,
    /// Latency, `L`.
    pub latency: Picos,
    /// Send overhead of one byte, `o_s`.
    pub send_overhead: Picos,
    /// Send overhead of each further byte.
    pub send_overhead_per_byte: PerByte,
    /// Receive overhead of one byte, `o_r`.
    pub recv_overhead: Picos,
    /// Receive overhead of each further byte.
    pub recv_overhead_per_byte: PerByte,
    /// Gap, `g`.
    pub gap: Picos,
    /// Gap per byte, `G`.
    pub gap_per_byte: PerByte,
}

/// A gap per byte that rises smoothly, as at the end of a cache: by
/// `per_byte·log(s/first)/log(last/first)` between two sizes, and by `per_byte` above. Its integral
/// is added to the gap and to the travel time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bend {
    /// Size up to which `G` is that of the protocol.
    pub first: u32,
    /// Size from which `G` is larger by `per_byte`; there is no bend if it is not above `first`.
    pub last: u32,
    /// Final increase of `G`.
    pub per_byte: PerByte,
}

impl Bend {
    /// Additional time of a message of `size` bytes: `∫ w dx` from `first` to `size` with `w =
    /// log(x/first)/log(last/first)` up to `last`, 1 above.
    #[must_use]
    pub fn extra(&self, size: u64) -> Picos {
        let (first, last) = (f64::from(self.first.max(1)), f64::from(self.last));
        let size = size as f64;
        if last <= first || size <= first {
            return Picos::ZERO;
        }
        let bent = size.min(last);
        let integral = bent * libm::log(bent / first) - bent + first;
        let bytes = integral / libm::log(last / first) + (size - bent);
        let fraction = (1_u64 << PerByte::FRACTION_BITS) as f64;
        Picos(times(self.per_byte.0, bytes / fraction))
    }
}

/// Protocols by ascending first size, and the bend of the gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truths<'t> {
    pub(super) protocols: &'t [Truth],
    pub(super) bend: Bend,
}

impl Truths<'_> {
    /// Parameters for messages of `size` bytes.
    pub(super) fn of(&self, size: usize) -> Truth {
        let rules = |truth: &&Truth| truth.first_size as usize <= size.max(1);
        self.protocols.iter().rev().find(rules).copied().unwrap_or_default()
    }

    /// `g + (s − 1)·G` plus the bend.
    pub(super) fn gap(&self, size: usize) -> Picos {
        let truth = self.of(size);
        self.bent(truth.gap, truth.gap_per_byte, size)
    }

    /// `L + (s − 1)·G` plus the bend.
    pub(super) fn travel(&self, size: usize) -> Picos {
        let truth = self.of(size);
        self.bent(truth.latency, truth.gap_per_byte, size)
    }

    pub(super) fn send_overhead(&self, size: usize) -> Picos {
        let truth = self.of(size);
        line(truth.send_overhead, truth.send_overhead_per_byte, size)
    }

    pub(super) fn recv_overhead(&self, size: usize) -> Picos {
        let truth = self.of(size);
        line(truth.recv_overhead, truth.recv_overhead_per_byte, size)
    }

    fn bent(&self, base: Picos, per_byte: PerByte, size: usize) -> Picos {
        let straight = line(base, per_byte, size);
        Picos(straight.0.saturating_add(self.bend.extra(size as u64).0))
    }
}

/// `base + (size − 1)·per_byte`, saturating.
fn line(base: Picos, per_byte: PerByte, size: usize) -> Picos {
    let rest = per_byte.times(Bytes(size as u64).after_first()).unwrap_or(Picos::MAX);
    Picos(base.0.saturating_add(rest.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEND: Bend = Bend { first: 1_024, last: 16_384, per_byte: PerByte(100 << 16) };

    #[test]
    fn a_bend_adds_nothing_before_it_and_its_slope_after_it() {
        assert_eq!(BEND.extra(1), Picos::ZERO);
        assert_eq!(BEND.extra(1_024), Picos::ZERO);
        let rise = |from: u64, to: u64| BEND.extra(to).0.abs_diff(BEND.extra(from).0);
        assert_eq!(rise(16_384, 17_384), 100_000);
        assert_eq!(Bend::default().extra(65_536), Picos::ZERO);
    }

    #[test]
    fn within_a_bend_the_slope_grows_with_the_logarithm_of_the_size() {
        // Half of the octaves from 1,024 to 16,384, hence half of the slope.
        let rise = BEND.extra(4_097).0.abs_diff(BEND.extra(4_095).0);
        assert!((99..=101).contains(&rise), "{rise} for 2 bytes of 50 ps");
    }
}
