//! Warnings of an assessment.

use core::fmt;

use crate::fit::Bound;
use crate::model::Parameter;
use crate::units::{Bytes, Picos};

/// A property of a measurement that its numbers alone do not show; the host words it.
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
    Bound(Parameter, Bytes, Bound),
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
