//! Measuring methods by name.

use loggap_core::measure::Quantity;

/// Measuring method.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Method {
    /// Parametrised round trips (Hoefler, Lichei, Rehm 2007). Changes of protocol are bisected.
    #[default]
    Prtt,
    /// The `LogP` signature (Culler et al. 1996).
    Signature,
    /// Parametrised `LogP` (Kielmann, Bal, Verstoep 2000).
    Plogp,
    /// PRTT, with the others at the smallest size between its rounds, to compare them.
    All,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::Prtt, Self::Signature, Self::Plogp, Self::All];

    /// Name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prtt => "prtt",
            Self::Signature => "signature",
            Self::Plogp => "plogp",
            Self::All => "all",
        }
    }

    /// Method called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// True if `other` is measured.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::All
    }

    /// True if single rounds of `quantity` were timed and are not computed from probes: of the
    /// signature round trips and bursts.
    #[must_use]
    pub const fn times(self, quantity: Quantity) -> bool {
        match self {
            Self::Prtt | Self::All => true,
            Self::Signature => matches!(quantity, Quantity::RoundTrip | Quantity::Gap),
            Self::Plogp => false,
        }
    }
}
