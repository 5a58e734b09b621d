//! The methods by name.

use std::fmt;

use loggap_core::measure::Quantity;

/// How parameters are measured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Method {
    /// Parametrised round trips: Hoefler, Lichei, Rehm 2007. Changes of
    /// protocol are bisected.
    #[default]
    Prtt,
    /// The `LogP` signature: Culler et al. 1996.
    Signature,
    /// Parametrised `LogP`: Kielmann, Bal, Verstoep 2000.
    Plogp,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 3] = [Self::Prtt, Self::Signature, Self::Plogp];

    /// The name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prtt => "prtt",
            Self::Signature => "signature",
            Self::Plogp => "plogp",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether values of `quantity` were timed as they stand. The methods
    /// beside PRTT compute all but the round trip from rounds of another
    /// shape.
    #[must_use]
    pub fn times(self, quantity: Quantity) -> bool {
        self == Self::Prtt || quantity == Quantity::RoundTrip
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
