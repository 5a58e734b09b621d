//! Which way changes are found.

use core::fmt;

use super::look_ahead::LookAhead;
use super::node::Node;
use super::noise::Noise;
use super::partition::Cell;
use super::segmentation::Config;
use super::select::Selection;

/// How protocol changes are found.
///
/// It holds a function, not a choice among all of them: a firmware links only
/// what it names.
#[derive(Clone, Copy)]
pub struct Detector {
    /// Of those that look ahead.
    ahead: Option<LookAhead>,
    pub(super) select: fn(&mut [Node], &mut [Cell], Noise, &Config) -> Selection,
}

impl Detector {
    /// The optimal partition of the whole sweep.
    #[must_use]
    pub const fn optimal() -> Self {
        Self { ahead: None, select: Selection::find }
    }

    /// One pass that looks a few points ahead, as in the paper: see
    /// [`ChangeDetector`](super::ChangeDetector).
    #[must_use]
    pub const fn look_ahead(settings: LookAhead) -> Self {
        Self { ahead: Some(settings), select: Selection::look_ahead }
    }

    /// The settings of a detector that looks ahead; `None` of the optimal one.
    #[must_use]
    pub const fn settings(&self) -> Option<LookAhead> {
        self.ahead
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::optimal()
    }
}

impl PartialEq for Detector {
    fn eq(&self, other: &Self) -> bool {
        self.ahead == other.ahead
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ahead {
            None => f.write_str("Optimal"),
            Some(settings) => settings.fmt(f),
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Detector {
    fn format(&self, fmt: defmt::Formatter<'_>) {
        match self.ahead {
            None => defmt::write!(fmt, "Optimal"),
            Some(settings) => settings.format(fmt),
        }
    }
}
