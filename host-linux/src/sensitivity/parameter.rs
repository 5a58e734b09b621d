//! Parameters of the model, and their values in fixed point.

use loggap_core::model::{LogGops, ReceiveOverhead};

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
    /// S, the eager limit, on which no time depends linearly.
    EagerLimit,
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

/// A row of the table of parameters.
struct Row {
    symbol: &'static str,
    name: &'static str,
    stored: &'static [Quantity],
}

impl Parameter {
    /// All parameters.
    pub const ALL: [Self; 10] = [
        Self::Latency,
        Self::Overhead,
        Self::SendOverhead,
        Self::ReceiveOverhead,
        Self::Gap,
        Self::GapPerByte,
        Self::OverheadPerByte,
        Self::SendOverheadPerByte,
        Self::ReceiveOverheadPerByte,
        Self::EagerLimit,
    ];

    const fn row(self) -> Row {
        use Quantity as Q;
        let (symbol, name, stored): (_, _, &[Q]) = match self {
            Self::Latency => ("L", "latency", &[Q::Latency]),
            Self::Overhead => ("o", "overhead", &[Q::SendOverhead, Q::ReceiveOverhead]),
            Self::SendOverhead => ("o_s", "send_overhead", &[Q::SendOverhead]),
            Self::ReceiveOverhead => ("o_r", "recv_overhead", &[Q::ReceiveOverhead]),
            Self::Gap => ("g", "gap", &[Q::Gap]),
            Self::GapPerByte => ("G", "gap_per_byte", &[Q::GapPerByte]),
            Self::OverheadPerByte => {
                ("O", "overhead_per_byte", &[Q::SendOverheadPerByte, Q::ReceiveOverheadPerByte])
            }
            Self::SendOverheadPerByte => {
                ("O_s", "send_overhead_per_byte", &[Q::SendOverheadPerByte])
            }
            Self::ReceiveOverheadPerByte => {
                ("O_r", "recv_overhead_per_byte", &[Q::ReceiveOverheadPerByte])
            }
            Self::EagerLimit => ("S", "eager_limit", &[]),
        };
        Row { symbol, name, stored }
    }

    /// Symbol used in the papers.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        self.row().symbol
    }

    /// Name in files, without a unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The costs of messages that it changes.
    pub(super) const fn stored(self) -> &'static [Quantity] {
        self.row().stored
    }

    /// True if it is a time per byte.
    #[must_use]
    pub const fn is_per_byte(self) -> bool {
        use Quantity as Q;
        matches!(
            self.stored(),
            [Q::GapPerByte | Q::SendOverheadPerByte | Q::ReceiveOverheadPerByte, ..]
        )
    }

    /// True if it belongs to the sender alone, or to the receiver alone.
    #[must_use]
    pub const fn is_of_one_end(self) -> bool {
        use Quantity as Q;
        matches!(
            self.stored(),
            [Q::SendOverhead
                | Q::ReceiveOverhead
                | Q::SendOverheadPerByte
                | Q::ReceiveOverheadPerByte]
        )
    }

    /// True if this parameter and `other` change the same value of a parameter set.
    #[must_use]
    pub fn shares(self, other: Self) -> bool {
        self == other || self.stored().iter().any(|stored| other.stored().contains(stored))
    }

    /// Fractional bits of [`Units`] below the unit of its type.
    pub(crate) const fn shift(self) -> u32 {
        if self.is_per_byte() { 0 } else { FRACTION_BITS }
    }

    /// The values of a parameter set that it changes (one or two), in the units of their types.
    pub(crate) fn numbers<'a>(
        self,
        set: &'a mut LogGops,
        receive: &'a mut ReceiveOverhead,
    ) -> impl Iterator<Item = &'a mut u64> {
        let costs = [
            (Quantity::Latency, &mut set.latency.0),
            (Quantity::SendOverhead, &mut set.overhead.0),
            (Quantity::ReceiveOverhead, &mut receive.overhead.0),
            (Quantity::Gap, &mut set.gap.0),
            (Quantity::GapPerByte, &mut set.gap_per_byte.0),
            (Quantity::SendOverheadPerByte, &mut set.overhead_per_byte.0),
            (Quantity::ReceiveOverheadPerByte, &mut receive.overhead_per_byte.0),
        ];
        let own = costs.into_iter().filter(move |(cost, _)| self.stored().contains(cost));
        let limit = (self == Self::EagerLimit).then_some(&mut set.eager_limit.0);
        own.map(|(_, number)| number).chain(limit)
    }

    /// Sets its value in a parameter set; times are rounded down to whole ps.
    pub fn set(self, set: &mut LogGops, receive: &mut ReceiveOverhead, value: Units) {
        let value = u64::try_from(value.0 >> self.shift()).unwrap_or(u64::MAX);
        self.numbers(set, receive).for_each(|number| *number = value);
    }

    /// Its value in a parameter set, in 2⁻¹⁶ ps, or 2⁻¹⁶ ps per byte; the sender's of two.
    pub(super) fn of(self, set: &LogGops, receive: ReceiveOverhead) -> u128 {
        let (mut set, mut receive) = (*set, receive);
        let value = self.numbers(&mut set, &mut receive).next().map_or(0, |number| *number);
        u128::from(value) << self.shift()
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
