//! Choice of a change detector.

use core::fmt;

use super::look_ahead::{ChangeDetector, Detected, LookAhead};
use super::ranges::Config;
use super::{Change, Point, jumps};
use crate::number::{larger, nearest};

/// Function that finds the changes of several curves.
type Find = fn(&[&[Point]], &Config, &mut heapless::VecView<Change>);

/// Method of finding protocol changes.
///
/// Holds a function pointer, not an enum, so that a firmware links only the method that it uses.
#[derive(Clone, Copy)]
pub struct Detector {
    /// Settings of the streaming detector.
    ahead: Option<LookAhead>,
    pub(super) find: Find,
}

impl Detector {
    /// Significant jumps of any curve, found from all points together; the default.
    #[must_use]
    pub const fn optimal() -> Self {
        Self { ahead: None, find: jumps::find }
    }

    /// Streaming detector of the paper: one pass over the first curve, looking a few points ahead;
    /// see [`ChangeDetector`]. Every change that it finds divides ranges.
    #[must_use]
    pub const fn look_ahead(settings: LookAhead) -> Self {
        Self { ahead: Some(settings), find: look_ahead }
    }

    /// Settings of the streaming detector; `None` for the other.
    #[must_use]
    pub const fn settings(&self) -> Option<LookAhead> {
        self.ahead
    }
}

fn look_ahead(curves: &[&[Point]], config: &Config, changes: &mut heapless::VecView<Change>) {
    let points = curves.first().copied().unwrap_or_default();
    let mut detector = ChangeDetector::new(config.detector.settings().unwrap_or_default());
    let mut take = |found: Option<Detected>| {
        let Some(Detected { before, at, line, .. }) = found else { return };
        let first = points.iter().find(|point| point.size() == at).copied().unwrap_or_default();
        let old = line.at(first.after_first());
        let ppm = nearest(1e6 * (first.value() - old) / larger(old.abs(), f64::MIN_POSITIVE));
        let jump_ppm = i32::try_from(ppm).unwrap_or(if ppm < 0 { i32::MIN } else { i32::MAX });
        let change = Change {
            at,
            low: before.saturating_add(1),
            high: at,
            curve: 0,
            jump_ppm,
            splits: true,
        };
        // If there are too many, the first ones are kept.
        let _ = changes.push(change);
    };
    for &point in points.iter().filter(|point| !point.is_outlier()) {
        take(detector.push(point));
    }
    take(detector.finish());
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
