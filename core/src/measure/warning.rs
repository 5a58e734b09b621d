//! What an assessment wants its reader to know.

use core::fmt;

use crate::model::Parameter;
use crate::units::{Bytes, Picos};

/// Something about a measurement that its numbers alone do not show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Warning {
    /// The gap exceeds the round trip from this size on, at so many sizes:
    /// there `d_G = PRTT(2,0,s)` was used.
    DelayFallback(Bytes, usize),
    /// The delay was below the gap at this size first, at so many sizes:
    /// they show no send overhead and were left out.
    DelayTooShort(Bytes, usize),
    /// The fitted parameter is negative somewhere in the range that begins
    /// here.
    Negative(Parameter, Bytes),
    /// The gap falls with the size in the range that begins here: the link
    /// does not follow the model.
    Falling(Bytes),
    /// `PRTT(1,0,1)/2 − o_s − o_r` is not positive in the range that begins
    /// here: overheads overlap with the latency, so no net L is given.
    Overlap(Bytes),
    /// The measured points lie this many millionths beside the parameter's
    /// line in the range that begins here, beyond their own noise.
    Misfit(Parameter, Bytes, u32),
    /// The range that begins here holds so few sizes that nothing tells
    /// whether they lie on a line.
    FewSizes(Bytes, usize),
    /// The protocol changes somewhere between these sizes: noise or budget
    /// did not allow to find the byte.
    ChangeNotExact(Bytes, Bytes),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DelayFallback(size, count) => write!(
                f,
                "the gap exceeds the round trip at {count} sizes from {size}: paced by PRTT(2,0,s) there"
            ),
            Self::DelayTooShort(size, count) => write!(
                f,
                "the delay was below the gap at {count} sizes from {size}: no send overhead there \
                 (measure again, the machine was busy)"
            ),
            Self::Negative(parameter, first) => write!(
                f,
                "{parameter} is negative in the range from {first}: noise exceeds it (allow more time)"
            ),
            Self::Falling(first) => write!(
                f,
                "the gap falls with the size in the range from {first}: LogGP does not describe \
                 this link (try a narrower range of sizes)"
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

/// Why there is no assessment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AssessError {
    /// No size has both round trips and bursts.
    NoSamples,
    /// At this size a round stands still for this long, which is the timer
    /// of delayed acknowledgements, not the link.
    DelayedAcknowledgement(Bytes, Picos),
    /// The lent memory is too small.
    Memory(super::AssessRequirements),
}

impl fmt::Display for AssessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str(
                "nothing to assess: no size has both round trips and bursts (allow more time or messages)",
            ),
            Self::DelayedAcknowledgement(size, stall) => write!(
                f,
                "rounds of {size} stall for {stall}: these are delayed acknowledgements, not the \
                 link (set TCP_NODELAY on both ends)"
            ),
            Self::Memory(needed) => write!(
                f,
                "the assessment needs memory for {} points, {} nodes, {} cells and {} segments",
                needed.points, needed.nodes, needed.cells, needed.segments
            ),
        }
    }
}

impl core::error::Error for AssessError {}
