//! Result of a measurement: ranges of sizes with their parameters, and protocol changes.

use core::fmt;

use super::{Coefficient, Curve, Estimate, LogGops, Parameter, ReceiveOverhead, SizeLine};
use crate::units::{Bytes, PerByte, Picos, SignedPerByte, SignedPicos};
use crate::wide::divide;

/// A jump of a curve: the link changes its protocol at this size.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Change {
    /// First size of the new protocol.
    pub at: Bytes,
    /// Lower end of the interval for that size.
    pub low: Bytes,
    /// Upper end of the interval for that size.
    pub high: Bytes,
    /// Curve in which the jump is most significant.
    pub parameter: Parameter,
    /// Height of the jump in millionths of the curve's value before it; negative if the new
    /// protocol is faster.
    pub jump_ppm: i32,
    /// True if a range begins here. A jump that is significant but smaller than the tolerance is
    /// listed without dividing a range.
    pub splits: bool,
}

/// Parameters of one protocol, for the sizes from `first` to `last`.
///
/// Neither the value of a line nor its slope is negative within the range; a fit that would be is
/// set to 0. The line of a later range may be negative at size 1, see [`SizeLine`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Range {
    /// Smallest size of the range.
    pub first: Bytes,
    /// Largest size of the range that was measured.
    pub last: Bytes,
    /// `G_all(s) = g + (s − 1)·G`: the gap at size 1 and the gap per byte.
    pub gap: SizeLine,
    /// `PRTT(1,0,s)/2`, the end-to-end latency as the paper reports it,
    /// overlapped overheads included.
    pub half_rtt: Option<SizeLine>,
    /// `o_s(s) = o_s + (s − 1)·O`.
    pub send_overhead: Option<SizeLine>,
    /// `o_r(s) = o_r + (s − 1)·O`.
    pub recv_overhead: Option<SizeLine>,
    /// `L = PRTT(1,0,1)/2 − o_s − o_r`; `None` if its parts were not measured, or if overheads
    /// overlap with the latency so that no part of the interval is positive.
    pub latency: Option<Estimate<SignedPicos>>,
}

/// Reasons why a range cannot be used as one set of parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UnusableParameter {
    /// The parameter was not measured.
    NotMeasured(Parameter),
    /// The parameter decreases with the size and reaches 0 within the range.
    Negative(Parameter),
    /// The parameter was measured at a single size, so its values at others are unknown.
    OneSize(Parameter),
}

impl fmt::Display for UnusableParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMeasured(parameter) => {
                write!(f, "{parameter} was not measured: measure all quantities, or for longer")
            }
            Self::Negative(parameter) => {
                write!(f, "{parameter} came out negative: measure for longer on a quieter machine")
            }
            Self::OneSize(parameter) => {
                write!(f, "{parameter} was measured at one size only: measure more sizes")
            }
        }
    }
}

impl core::error::Error for UnusableParameter {}

impl Range {
    /// True if `size` belongs to this protocol; size 0 counts as 1.
    #[must_use]
    pub fn contains(&self, size: Bytes) -> bool {
        let size = size.max(Bytes(1));
        self.first <= size && size <= self.last
    }

    /// Line of `curve`, if measured.
    #[must_use]
    pub const fn line(&self, curve: Curve) -> Option<&SizeLine> {
        match curve {
            Curve::Gap => Some(&self.gap),
            Curve::HalfRtt => self.half_rtt.as_ref(),
            Curve::SendOverhead => self.send_overhead.as_ref(),
            Curve::RecvOverhead => self.recv_overhead.as_ref(),
        }
    }

    /// Estimate of `coefficient` in picoseconds, or in 2⁻¹⁶ picoseconds per byte; `None` if it was
    /// not measured, as are slopes at a single size.
    #[must_use]
    pub fn estimate(&self, coefficient: Coefficient) -> Option<Estimate<i64>> {
        match coefficient {
            Coefficient::Latency => self.latency.map(|latency| latency.map(|time| time.0)),
            Coefficient::AtOne(curve) => Some(self.line(curve)?.at_one.map(|time| time.0)),
            Coefficient::PerByte(curve) => {
                let line = self.line(curve).filter(|line| line.has_slope())?;
                Some(line.per_byte.map(|slope| slope.0))
            }
        }
    }

    /// The range as one `LogGOPS` set, with the mean of both overheads as `o` and `O`, and
    /// `eager_limit` as `S`.
    ///
    /// A line that is negative at size 1, since the range begins later, is replaced by a line
    /// through 0 at size 1 with the same value at the middle of the range. `L` is 0 if the profile
    /// has none.
    ///
    /// # Errors
    ///
    /// [`UnusableParameter`] with the parameter that is missing or negative.
    pub fn loggops(&self, eager_limit: Bytes) -> Result<LogGops, UnusableParameter> {
        let (set, receive) = self.loggops_apart(eager_limit)?;
        Ok(LogGops {
            overhead: Picos(set.overhead.0.midpoint(receive.overhead.0)),
            overhead_per_byte: PerByte(
                set.overhead_per_byte.0.midpoint(receive.overhead_per_byte.0),
            ),
            ..set
        })
    }

    /// The range as one `LogGOPS` set with the send overhead as `o` and `O`, and the receive
    /// overhead separately.
    ///
    /// Where no positive latency was measured, a message of one byte takes half the round trip: both
    /// overheads, which overlap the transfer, are shortened to it.
    ///
    /// # Errors
    ///
    /// As [`Range::loggops`].
    pub fn loggops_apart(
        &self,
        eager_limit: Bytes,
    ) -> Result<(LogGops, ReceiveOverhead), UnusableParameter> {
        let (gap, gap_per_byte) = self.nonnegative(Curve::Gap)?;
        let (overhead, overhead_per_byte) = self.nonnegative(Curve::SendOverhead)?;
        let receive = self.nonnegative(Curve::RecvOverhead)?;
        let mut receive = ReceiveOverhead { overhead: receive.0, overhead_per_byte: receive.1 };
        let latency = self.latency.and_then(|latency| latency.value.picos()).unwrap_or_default();
        let mut set =
            LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit };
        if let (Picos::ZERO, Ok((half_rtt, _))) = (latency, self.nonnegative(Curve::HalfRtt)) {
            let both = set.one_byte(&receive);
            set.latency = half_rtt.since(both);
            set.shorten(&mut receive, both.since(half_rtt));
        }
        Ok((set, receive))
    }

    /// Intercept and slope of the line of `curve`, neither negative.
    fn nonnegative(&self, curve: Curve) -> Result<(Picos, PerByte), UnusableParameter> {
        let parameter = curve.parameter();
        let line = self.line(curve).ok_or(UnusableParameter::NotMeasured(parameter))?;
        if !line.has_slope() {
            return Err(UnusableParameter::OneSize(parameter));
        }
        let slope = line.per_byte.value.max(SignedPerByte(0)).per_byte().unwrap_or_default();
        let at_one = line.at(Bytes(1));
        if let (Some(at_one), true) = (at_one.picos(), line.per_byte.value.0 >= 0) {
            return Ok((at_one, slope));
        }
        let middle = Bytes(self.first.0.midpoint(self.last.0));
        let there = line.at(middle).picos().ok_or(UnusableParameter::Negative(parameter))?;
        if at_one.0 >= 0 || middle.after_first().0 == 0 {
            return Ok((there, PerByte::ZERO));
        }
        let slope = divide(there.0, 1 << PerByte::FRACTION_BITS, middle.after_first().0);
        let (slope, _) = slope.ok_or(UnusableParameter::Negative(parameter))?;
        Ok((Picos::ZERO, PerByte(slope)))
    }
}

/// Parameters of a link: one [`Range`] per protocol, contiguous and in ascending order of size, and
/// the changes of protocol. At most `N` of each. If a range begins without a change, the curves
/// bend there.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Profile<const N: usize = 16> {
    /// Ranges, ascending and contiguous.
    pub ranges: heapless::Vec<Range, N>,
    /// Jumps, ascending; see [`Change::splits`].
    pub changes: heapless::Vec<Change, N>,
}

impl<const N: usize> Profile<N> {
    /// Range of `size`; `None` if the size was not measured.
    #[must_use]
    pub fn range(&self, size: Bytes) -> Option<&Range> {
        self.ranges.iter().find(|range| range.contains(size))
    }

    /// The other range that `size` may belong to, if it lies within the interval of a change.
    #[must_use]
    pub fn alternative(&self, size: Bytes) -> Option<&Range> {
        let size = size.max(Bytes(1));
        let inside = |change: &&Change| change.splits && change.low <= size && size < change.high;
        let at = self.changes.iter().find(inside)?.at;
        let there = |range: &&Range| if size < at { range.first == at } else { range.last < at };
        if size < at {
            self.ranges.iter().find(there)
        } else {
            self.ranges.iter().rev().find(there)
        }
    }

    /// True if every number is as exact as requested.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.ranges.iter().all(|range| {
            let mut lines = Curve::ALL.into_iter().filter_map(|curve| range.line(curve));
            lines.all(|line| line.mark().converged())
                && range.latency.is_none_or(|latency| latency.mark.converged())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_one: i64, per_byte: i64) -> SizeLine {
        SizeLine::exact(SignedPicos(at_one), SignedPerByte(per_byte << 16))
    }

    fn range(first: u64, last: u64, gap: SizeLine) -> Range {
        Range {
            first: Bytes(first),
            last: Bytes(last),
            gap,
            half_rtt: Some(line(5_000, 3)),
            send_overhead: Some(line(1_000, 1)),
            recv_overhead: Some(line(2_000, 3)),
            latency: Some(Estimate::exact(SignedPicos(2_000))),
        }
    }

    fn two_ranges() -> Profile {
        let mut profile = Profile::default();
        profile.ranges.extend([range(1, 99, line(10, 2)), range(100, 200, line(-100, 4))]);
        let (at, low, high) = (Bytes(100), Bytes(95), Bytes(103));
        profile.changes.extend([Change { at, low, high, splits: true, ..Change::default() }]);
        profile
    }

    #[test]
    fn a_size_finds_its_protocol_and_the_doubtful_other_one() {
        let profile = two_ranges();
        let first = |range: Option<&Range>| range.map(|range| range.first.0);
        assert_eq!(first(profile.range(Bytes(0))), Some(1));
        assert_eq!(first(profile.range(Bytes(99))), Some(1));
        assert_eq!(first(profile.range(Bytes(100))), Some(100));
        assert_eq!(first(profile.range(Bytes(201))), None);
        assert_eq!(first(profile.alternative(Bytes(94))), None);
        assert_eq!(first(profile.alternative(Bytes(95))), Some(100));
        assert_eq!(first(profile.alternative(Bytes(102))), Some(1));
        assert_eq!(first(profile.alternative(Bytes(103))), None);
    }

    #[test]
    fn a_range_serves_as_one_set_of_parameters() -> Result<(), UnusableParameter> {
        let set = range(1, 99, line(10, 2)).loggops(Bytes(64))?;
        let expected = LogGops {
            latency: Picos(2_000),
            overhead: Picos(1_500),
            gap: Picos(10),
            gap_per_byte: PerByte(2 << 16),
            overhead_per_byte: PerByte(2 << 16),
            eager_limit: Bytes(64),
        };
        assert_eq!(set, expected);
        Ok(())
    }

    #[test]
    fn overheads_that_hide_the_latency_are_shortened_to_half_the_round_trip() {
        let mut hidden = range(1, 99, line(10, 2));
        hidden.half_rtt = Some(line(1_500, 3));
        let of = |range: &Range| {
            let (set, receive) = range.loggops_apart(Bytes(64)).unwrap();
            [set.overhead, set.latency, receive.overhead].map(|time| time.0)
        };
        assert_eq!(of(&hidden), [1_000, 2_000, 2_000], "a latency was measured");
        hidden.latency = None;
        assert_eq!(of(&hidden), [500, 0, 1_000]);
        hidden.half_rtt = Some(line(4_000, 3));
        assert_eq!(of(&hidden), [1_000, 1_000, 2_000], "nothing overlaps");
    }

    #[test]
    fn a_gap_extrapolated_below_zero_keeps_its_value_within_the_range()
    -> Result<(), UnusableParameter> {
        let set = range(101, 201, line(-150, 3)).loggops(Bytes(64))?;
        assert_eq!(set.gap, Picos::ZERO);
        assert_eq!(set.gap_at(Bytes(151)), Ok(Picos(300)));
        Ok(())
    }

    #[test]
    fn a_falling_line_becomes_its_middle_or_is_refused() {
        let level = range(1, 21, line(100, -2)).loggops(Bytes(64));
        assert_eq!(level.map(|set| (set.gap, set.gap_per_byte)), Ok((Picos(80), PerByte::ZERO)));
        let refused = range(1, 201, line(100, -2)).loggops(Bytes(64));
        assert_eq!(refused, Err(UnusableParameter::Negative(Parameter::Gap)));
    }

    #[test]
    fn what_was_not_measured_is_named() {
        let mut only_gaps = range(1, 9, line(10, 2));
        only_gaps.send_overhead = None;
        let error = UnusableParameter::NotMeasured(Parameter::SendOverhead);
        assert_eq!(only_gaps.loggops(Bytes(1)), Err(error));
    }
}
