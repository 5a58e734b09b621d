//! Warnings of an assessment.

use core::fmt;

use crate::model::Parameter;
use crate::units::{Bytes, Picos};

/// A property of a measurement that its numbers alone do not show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Warning {
    /// The gap exceeds the round trip, so `d_G = PRTT(2,0,s)` was used: first size, number of
    /// sizes.
    DelayFallback(Bytes, usize),
    /// The delay was below the gap, so the sizes have no send overhead: first size, number of
    /// sizes.
    DelayTooShort(Bytes, usize),
    /// The parameter's value at size 1 or its slope is 0 in the range that begins at this size; an
    /// unconstrained fit would make it negative.
    Bound(Parameter, Bytes),
    /// The parameter exceeded the round trip, its upper bound, and was set to it: first size,
    /// number of sizes.
    BeyondRoundTrip(Parameter, Bytes, usize),
    /// `PRTT(1,0,1)/2 − o_s − o_r` is not positive in the range that begins at this size: overheads
    /// overlap with the latency, so there is no net L.
    Overlap(Bytes),
    /// Bursts of this size and above stall for the timer of delayed acknowledgements: first size,
    /// stall.
    Stall(Bytes, Picos),
    /// Sizes were not measured for lack of time or messages: first size, number of sizes.
    SizesLeftOut(Bytes, usize),
    /// Scatter of the points about the parameter's line beyond their own noise, in millionths, in
    /// the range that begins at this size.
    Misfit(Parameter, Bytes, u32),
    /// The range that begins at this size has too few sizes to test whether they lie on a line:
    /// first size, number of sizes.
    FewSizes(Bytes, usize),
    /// The protocol changes between these sizes; noise or budget did not allow a more precise
    /// result.
    ChangeNotExact(Bytes, Bytes),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DelayFallback(size, count) => write!(
                f,
                "gap > RTT at {count} sizes from {size}: measured with two-message bursts there"
            ),
            Self::DelayTooShort(size, count) => write!(
                f,
                "the delay was below the gap at {count} sizes from {size}: no send overhead there \
                 (measure again, the machine was busy)"
            ),
            Self::Bound(parameter, first) => write!(
                f,
                "{parameter} would come out negative at size 1 or fall with the size in the range \
                 from {first}, and was fitted as 0 there (use the values by size)"
            ),
            Self::BeyondRoundTrip(parameter, first, count) => write!(
                f,
                "{parameter} hit its upper bound, the round trip, at {count} sizes from {first} \
                 (measure again on a quieter machine)"
            ),
            Self::Stall(first, stall) => write!(
                f,
                "bursts from {first} on stall for {stall}: these look like delayed \
                 acknowledgements (set TCP_NODELAY on both ends)"
            ),
            Self::SizesLeftOut(first, count) => write!(
                f,
                "{count} sizes from {first} were left out, as the link is slow for the time or \
                 messages allowed (allow more with --max-time)"
            ),
            Self::Overlap(first) => write!(
                f,
                "the overheads exceed half the round trip in the range from {first}: they overlap \
                 with L, use PRTT(1,0,1)/2"
            ),
            Self::Misfit(parameter, first, ppm) => write!(
                f,
                "{parameter} lies up to {}% beside its line in the range from {first}: \
                 use the per-size table for exact values",
                ppm.div_ceil(10_000)
            ),
            Self::FewSizes(first, 1) => write!(
                f,
                "only one size in the range from {first}: its numbers are those at that size, and \
                 G is not known (measure more sizes)"
            ),
            Self::FewSizes(first, count) => write!(
                f,
                "only {count} sizes in the range from {first}: nothing tells whether they lie on a \
                 line (measure more sizes)"
            ),
            Self::ChangeNotExact(low, high) => write!(
                f,
                "the protocol changes between {low} and {high}: where exactly was not to be told \
                 (allow more time)"
            ),
        }
    }
}

/// Reasons why there is no assessment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AssessError {
    /// No size has both round trips and bursts.
    NoSamples,
    /// The lent memory is too small.
    Memory(crate::measure::AssessRequirements),
}

impl fmt::Display for AssessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str(
                "nothing to assess: no size has both round trips and bursts (allow more time or messages)",
            ),
            Self::Memory(needed) => write!(
                f,
                "the assessment needs memory for {} points and {} nodes",
                needed.points, needed.nodes
            ),
        }
    }
}

impl core::error::Error for AssessError {}
