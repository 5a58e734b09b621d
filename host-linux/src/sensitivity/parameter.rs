//! Parameters of the model, and their values in fixed point.

use loggap_core::model::{LogGops, ReceiveOverhead};
use loggap_core::units::{PerByte, Picos};

use super::function::FRACTION_BITS;
use crate::timeline::causes::Quantity;

/// Parameters of `LogGOPS`, with separate overheads of sender and receiver.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Parameter {
    /// L.
    Latency,
    /// o, at both ends.
    Overhead,
    /// o of the sender alone, if the receiver's differs.
    SendOverhead,
    /// o of the receiver alone.
    ReceiveOverhead,
    /// g.
    Gap,
    /// G.
    GapPerByte,
    /// O, at both ends.
    OverheadPerByte,
    /// O of the sender alone.
    SendOverheadPerByte,
    /// O of the receiver alone.
    ReceiveOverheadPerByte,
}

/// Parameters if both ends of a message cost the same.
pub(super) const TOGETHER: &[Parameter] = &[
    Parameter::Latency,
    Parameter::Overhead,
    Parameter::Gap,
    Parameter::GapPerByte,
    Parameter::OverheadPerByte,
];
/// Parameters if the two ends differ.
pub(super) const APART: &[Parameter] = &[
    Parameter::Latency,
    Parameter::SendOverhead,
    Parameter::ReceiveOverhead,
    Parameter::Gap,
    Parameter::GapPerByte,
    Parameter::SendOverheadPerByte,
    Parameter::ReceiveOverheadPerByte,
];

/// Index of a parameter of the set with index `set`, among those of all sets; `None` if `quantity` is
/// no parameter.
pub(super) fn index(quantity: Quantity, set: usize) -> Option<u16> {
    let at = quantity as usize;
    let index = set * Quantity::PARAMETERS + at;
    (at < Quantity::PARAMETERS).then(|| u16::try_from(index).unwrap_or(u16::MAX))
}

impl Parameter {
    /// Symbol used in the papers.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Latency => "L",
            Self::Overhead => "o",
            Self::SendOverhead => "o_s",
            Self::ReceiveOverhead => "o_r",
            Self::Gap => "g",
            Self::GapPerByte => "G",
            Self::OverheadPerByte => "O",
            Self::SendOverheadPerByte => "O_s",
            Self::ReceiveOverheadPerByte => "O_r",
        }
    }

    /// True if it is a time per byte.
    #[must_use]
    pub const fn is_per_byte(self) -> bool {
        matches!(
            self,
            Self::GapPerByte
                | Self::OverheadPerByte
                | Self::SendOverheadPerByte
                | Self::ReceiveOverheadPerByte
        )
    }

    /// True if it belongs to the sender alone, or to the receiver alone.
    #[must_use]
    pub const fn is_of_one_end(self) -> bool {
        matches!(
            self,
            Self::SendOverhead
                | Self::ReceiveOverhead
                | Self::SendOverheadPerByte
                | Self::ReceiveOverheadPerByte
        )
    }

    /// True if this parameter and `other` change the same value of a parameter set.
    #[must_use]
    pub fn shares(self, other: Self) -> bool {
        self.stored().iter().any(|stored| other.stored().contains(stored))
    }

    /// The values of a parameter set that it changes.
    pub(super) const fn stored(self) -> &'static [Quantity] {
        match self {
            Self::Latency => &[Quantity::Latency],
            Self::Overhead => &[Quantity::SendOverhead, Quantity::ReceiveOverhead],
            Self::SendOverhead => &[Quantity::SendOverhead],
            Self::ReceiveOverhead => &[Quantity::ReceiveOverhead],
            Self::Gap => &[Quantity::Gap],
            Self::GapPerByte => &[Quantity::GapPerByte],
            Self::OverheadPerByte => {
                &[Quantity::SendOverheadPerByte, Quantity::ReceiveOverheadPerByte]
            }
            Self::SendOverheadPerByte => &[Quantity::SendOverheadPerByte],
            Self::ReceiveOverheadPerByte => &[Quantity::ReceiveOverheadPerByte],
        }
    }

    /// Sets its value in a parameter set; times are rounded down to whole ps.
    pub fn set(self, set: &mut LogGops, receive: &mut ReceiveOverhead, Units(value): Units) {
        let time = Picos(u64::try_from(value >> FRACTION_BITS).unwrap_or(u64::MAX));
        let per_byte = PerByte(u64::try_from(value).unwrap_or(u64::MAX));
        match self {
            Self::Latency => set.latency = time,
            Self::Overhead | Self::SendOverhead => set.overhead = time,
            Self::ReceiveOverhead => receive.overhead = time,
            Self::Gap => set.gap = time,
            Self::GapPerByte => set.gap_per_byte = per_byte,
            Self::OverheadPerByte | Self::SendOverheadPerByte => set.overhead_per_byte = per_byte,
            Self::ReceiveOverheadPerByte => receive.overhead_per_byte = per_byte,
        }
    }

    /// Its value in a parameter set, in 2⁻¹⁶ ps, or 2⁻¹⁶ ps per byte.
    pub(super) fn of(self, set: &LogGops, receive: ReceiveOverhead) -> u128 {
        let time = |Picos(picos): Picos| u128::from(picos) << FRACTION_BITS;
        let per_byte = |PerByte(units): PerByte| u128::from(units);
        match self {
            Self::Latency => time(set.latency),
            Self::Overhead | Self::SendOverhead => time(set.overhead),
            Self::ReceiveOverhead => time(receive.overhead),
            Self::Gap => time(set.gap),
            Self::GapPerByte => per_byte(set.gap_per_byte),
            Self::OverheadPerByte | Self::SendOverheadPerByte => per_byte(set.overhead_per_byte),
            Self::ReceiveOverheadPerByte => per_byte(receive.overhead_per_byte),
        }
    }
}

/// A value of a parameter, in 2⁻¹⁶ ps, or 2⁻¹⁶ ps per byte.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Units(pub u128);

impl Units {
    /// Fractional bits of a picosecond.
    pub const FRACTION_BITS: u32 = FRACTION_BITS;

    /// Value in seconds, or seconds per byte; rounded to the nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << FRACTION_BITS) * 1e-12
    }

    /// Value in nanoseconds, or nanoseconds per byte, with six decimals.
    #[must_use]
    pub fn nanos(self) -> String {
        // 10⁻⁶ ns are 10⁻³ ps.
        let thousandths = self.0.saturating_mul(1_000) >> FRACTION_BITS;
        crate::decimal::fixed(thousandths, 6)
    }
}
