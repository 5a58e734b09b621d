//! A measured number with its interval and whether it may be trusted.

use core::fmt;

/// Why an interval is as wide as it is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mark {
    /// The interval is as narrow as was asked for.
    #[default]
    Converged,
    /// Time, messages or memory ran out before the interval was narrow
    /// enough: more measuring would help.
    BudgetSpent,
    /// The points scatter about the fitted line more than their own noise
    /// explains: more measuring would not help, the model does not fit that
    /// well.
    Misfit,
}

impl Mark {
    /// Whether the number is as exact as was asked for.
    #[must_use]
    pub const fn converged(self) -> bool {
        matches!(self, Self::Converged)
    }

    /// One character behind a printed number: nothing, `?` where the budget
    /// was spent, `~` where the model does not fit.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Converged => "",
            Self::BudgetSpent => "?",
            Self::Misfit => "~",
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::BudgetSpent => "not converged: the budget was spent (allow more time)",
            Self::Misfit => "not converged: the points do not lie on the model's line",
        })
    }
}

/// A measured number and the interval in which the true one lies at the
/// confidence that was asked for (95% unless said otherwise).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Estimate<T> {
    /// Best value.
    pub value: T,
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
    /// Whether it may be trusted.
    pub mark: Mark,
}

impl<T: Copy> Estimate<T> {
    /// A number known without doubt.
    #[must_use]
    pub const fn exact(value: T) -> Self {
        Self { value, low: value, high: value, mark: Mark::Converged }
    }
}

impl<T: Copy + PartialOrd> Estimate<T> {
    /// Lowers what exceeds `bound`; a value that does is not known well.
    pub(crate) fn lower_to(&mut self, bound: T) {
        let lowered = |end: T| if end > bound { bound } else { end };
        if self.value > bound {
            self.mark = Mark::BudgetSpent;
        }
        (self.value, self.low, self.high) =
            (lowered(self.value), lowered(self.low), lowered(self.high));
    }
}

impl<T: PartialOrd> Estimate<T> {
    /// Whether `truth` lies inside the interval.
    #[must_use]
    pub fn covers(&self, truth: &T) -> bool {
        self.low <= *truth && *truth <= self.high
    }
}
