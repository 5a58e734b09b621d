//! A measured number with its interval and a mark of its quality.

use core::fmt;

/// Reason for the width of an interval.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mark {
    /// The interval is as narrow as requested.
    #[default]
    Converged,
    /// Time, messages or memory ran out before the interval was narrow enough: more measurements
    /// would help.
    BudgetSpent,
    /// The points scatter about the fitted line more than their own noise explains: more
    /// measurements would not help, since the model does not fit better.
    Misfit,
}

impl Mark {
    /// All marks.
    pub(crate) const ALL: [Self; 3] = [Self::Converged, Self::BudgetSpent, Self::Misfit];

    /// True if the number is as exact as requested.
    #[must_use]
    pub const fn converged(self) -> bool {
        matches!(self, Self::Converged)
    }

    /// Character printed behind the number: none, `?` if the budget was spent, `~` if the model
    /// does not fit.
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

/// A measured number with a confidence interval (95% unless stated otherwise).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Estimate<T> {
    /// Best value.
    pub value: T,
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
    /// Quality of the interval.
    pub mark: Mark,
}

impl<T: Copy> Estimate<T> {
    /// An exactly known number.
    #[must_use]
    pub const fn exact(value: T) -> Self {
        Self { value, low: value, high: value, mark: Mark::Converged }
    }

    /// Estimate whose value and ends are converted by `convert`.
    pub fn map<U>(&self, convert: impl Fn(T) -> U) -> Estimate<U> {
        let Self { value, low, high, mark } = *self;
        Estimate { value: convert(value), low: convert(low), high: convert(high), mark }
    }
}

impl<T: Copy + PartialOrd> Estimate<T> {
    /// Lowers value and interval to at most `bound`; a value above it is marked as not converged.
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
    /// True if `truth` lies in the interval.
    #[must_use]
    pub fn covers(&self, truth: &T) -> bool {
        self.low <= *truth && *truth <= self.high
    }
}
