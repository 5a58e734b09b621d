//! The table of measured parameters: their curves, names, symbols, and keys in files.

use core::fmt;

/// Curve over the sizes, to which lines are fitted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Curve {
    /// `G_all = (PRTT(n,0,s) − PRTT(1,0,s))/(n − 1)`, Eq. 5.
    Gap,
    /// `PRTT(1,0,s)/2`, half the median round trip.
    HalfRtt,
    /// `o_s = (PRTT(n,d,s) − PRTT(1,0,s))/(n − 1) − d`, Eq. 4.
    SendOverhead,
    /// Median time of the receive call for a reply that has arrived.
    RecvOverhead,
}

impl Curve {
    /// All curves.
    pub const ALL: [Self; 4] = [Self::Gap, Self::HalfRtt, Self::SendOverhead, Self::RecvOverhead];

    /// Curve whose line gives `parameter`; the round trip's for `L`.
    pub(crate) fn of(parameter: Parameter) -> Self {
        let found = Self::ALL.into_iter().find(|curve| curve.parameter() == parameter);
        found.unwrap_or(Self::HalfRtt)
    }

    /// Parameter given by the curve's line.
    #[must_use]
    pub const fn parameter(self) -> Parameter {
        match self {
            Self::HalfRtt => Parameter::HalfRtt,
            Self::Gap => Parameter::Gap,
            Self::SendOverhead => Parameter::SendOverhead,
            Self::RecvOverhead => Parameter::RecvOverhead,
        }
    }
}

/// A measured parameter: the latency, or the line of a curve.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Parameter {
    /// `g` and `G`.
    #[default]
    Gap,
    /// `PRTT(1,0,s)/2`.
    HalfRtt,
    /// `o_s`.
    SendOverhead,
    /// `o_r`.
    RecvOverhead,
    /// `L`.
    Latency,
}

/// A row of the table.
struct Names {
    key: &'static str,
    name: &'static str,
    symbol: &'static str,
    per_byte: &'static str,
}

const fn names(
    key: &'static str,
    name: &'static str,
    symbol: &'static str,
    per_byte: &'static str,
) -> Names {
    Names { key, name, symbol, per_byte }
}

impl Parameter {
    /// All parameters.
    pub const ALL: [Self; 5] =
        [Self::Gap, Self::HalfRtt, Self::SendOverhead, Self::RecvOverhead, Self::Latency];

    const fn names(self) -> Names {
        match self {
            Self::Gap => names("gap", "gap", "g", "G"),
            Self::HalfRtt => names("half_rtt", "half round trip", "RTT/2", "RTT/2/B"),
            Self::SendOverhead => names("send_overhead", "send overhead", "o_s", "O_s"),
            Self::RecvOverhead => names("recv_overhead", "receive overhead", "o_r", "O_r"),
            Self::Latency => names("latency", "latency", "L", "L"),
        }
    }

    /// Key in files, without unit.
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.names().key
    }

    /// Name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.names().name
    }

    /// Name of its values over the sizes, as a column is headed.
    #[must_use]
    pub const fn curve(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            _ => self.names().symbol,
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HalfRtt => f.write_str("the round trip"),
            Self::Gap => f.write_str("the gap g, G"),
            _ => write!(f, "the {} {}", self.name(), self.names().symbol),
        }
    }
}

/// A number of a [`Range`](super::Range): the latency, or one of the two numbers of a line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Coefficient {
    /// `L`.
    Latency,
    /// Value of the curve's line at size 1: RTT/2, `o_s`, `o_r` or `g`.
    AtOne(Curve),
    /// Slope of the curve's line: RTT/2 per byte, `O_s`, `O_r` or `G`.
    PerByte(Curve),
}

impl Coefficient {
    /// All coefficients, in the order of printing.
    pub const ALL: [Self; 9] = [
        Self::AtOne(Curve::HalfRtt),
        Self::PerByte(Curve::HalfRtt),
        Self::Latency,
        Self::AtOne(Curve::SendOverhead),
        Self::PerByte(Curve::SendOverhead),
        Self::AtOne(Curve::RecvOverhead),
        Self::PerByte(Curve::RecvOverhead),
        Self::AtOne(Curve::Gap),
        Self::PerByte(Curve::Gap),
    ];

    /// Parameter that it belongs to.
    #[must_use]
    pub const fn parameter(self) -> Parameter {
        match self {
            Self::Latency => Parameter::Latency,
            Self::AtOne(curve) | Self::PerByte(curve) => curve.parameter(),
        }
    }

    /// True if its unit is time per byte, and not time.
    #[must_use]
    pub const fn is_per_byte(self) -> bool {
        matches!(self, Self::PerByte(_))
    }

    /// Symbol in formulas and tables.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        let Names { symbol, per_byte, .. } = self.parameter().names();
        if self.is_per_byte() { per_byte } else { symbol }
    }
}
