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
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Prtt, Self::Signature, Self::Plogp];

    /// Name on the command line and in profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prtt => "prtt",
            Self::Signature => "signature",
            Self::Plogp => "plogp",
        }
    }

    /// Method called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// True if single rounds of `quantity` were timed and are not computed from probes: of the
    /// signature round trips and bursts.
    #[must_use]
    pub const fn times(self, quantity: Quantity) -> bool {
        match self {
            Self::Prtt => true,
            Self::Signature => matches!(quantity, Quantity::RoundTrip | Quantity::Gap),
            Self::Plogp => false,
        }
    }
}
