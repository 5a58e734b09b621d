//! Periodic traces of detours and the delay that they cause to an operation.

use core::num::NonZeroU64;

use crate::random::Random;
use crate::units::Picos;
use crate::worded::errors;

/// One interruption of the program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Detour {
    /// Start, from the beginning of the trace.
    pub start: Picos,
    /// Duration.
    pub duration: Picos,
}

impl Detour {
    /// End of the detour; saturating.
    const fn end(self) -> u64 {
        self.start.0.saturating_add(self.duration.0)
    }
}

errors! {
    /// Reasons why a list of detours is not a valid trace.
    pub enum InvalidTrace {
        /// The list is empty.
        Empty => "the trace has no detour";
        /// The detour with this index (from 0) starts before the end of the one before it.
        Overlap(index: usize) => "detour {index} starts before the end of the one before it; \
                 traces of several runs must not be joined";
        /// The detour with this index (from 0) ends after the end of the trace.
        PastEnd(index: usize) => "detour {index} reaches past the end of the trace";
    }
}

/// Detours that repeat periodically.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    detours: &'a [Detour],
    length: u64,
    /// Total duration of all detours, in ps.
    total: u64,
    /// Prefix sums: for each detour, the total duration up to and including it. May be empty.
    sums: &'a [Picos],
}

/// Fills `sums` with the prefix sums of the durations, for [`Trace::with_sums`].
pub fn sum_up(detours: &[Detour], sums: &mut [Picos]) {
    let mut total = 0u64;
    for (detour, sum) in detours.iter().zip(sums) {
        total = total.saturating_add(detour.duration.0);
        *sum = Picos(total);
    }
}

impl<'a> Trace<'a> {
    /// Trace of `detours`, which are in ascending order and do not overlap. Its length is `length`,
    /// or the end of the last detour.
    ///
    /// # Errors
    ///
    /// [`InvalidTrace`] names the first detour that is out of place.
    pub fn new(detours: &'a [Detour], length: Option<Picos>) -> Result<Self, InvalidTrace> {
        let mut end = 0;
        let mut total = 0u64;
        for (index, detour) in detours.iter().enumerate() {
            if detour.start.0 < end {
                return Err(InvalidTrace::Overlap(index));
            }
            end = detour.end();
            total = total.saturating_add(detour.duration.0);
        }
        let length = length.map_or(end, |length| length.0);
        if detours.is_empty() || length == 0 {
            return Err(InvalidTrace::Empty);
        }
        if end > length {
            return Err(InvalidTrace::PastEnd(detours.len().saturating_sub(1)));
        }
        Ok(Self { detours, length, total, sums: &[] })
    }

    /// Adds the prefix sums computed by [`sum_up`]: [`Trace::lost`] then takes logarithmic time
    /// however many detours an operation spans. Ignored if they belong to other detours.
    #[must_use]
    pub fn with_sums(self, sums: &'a [Picos]) -> Self {
        let own =
            sums.len() == self.detours.len() && sums.last().is_some_and(|sum| sum.0 == self.total);
        debug_assert!(own, "the sums are of other detours");
        Self { sums: if own { sums } else { &[] }, ..self }
    }

    /// Period with which the detours repeat.
    #[must_use]
    pub const fn length(&self) -> Picos {
        Picos(self.length)
    }

    /// Total duration of the detours in one period.
    #[must_use]
    pub const fn total(&self) -> Picos {
        Picos(self.total)
    }

    /// Delay of an operation of `length` that starts at `start`, on a rank whose trace is `phase`
    /// ahead; saturating.
    #[must_use]
    pub fn lost(&self, phase: Picos, start: Picos, length: Picos) -> Picos {
        // Every trace has a positive length, which the optimiser cannot see.
        let Some(period) = NonZeroU64::new(self.length) else { return Picos::ZERO };
        let (phase, begin) = (phase.0 % period, start.0 % period);
        let left = self.length - phase;
        let position = if begin >= left { begin - left } else { begin + phase };
        let whole = (length.0 / period).saturating_mul(self.total);
        let rest = length.0 % period;
        let until = position.saturating_add(rest);
        let mut lost = whole.saturating_add(self.rest_at(position));
        lost = lost.saturating_add(self.sum(self.after(position), until.min(self.length)));
        if until > self.length {
            // After the wrap-around, a first detour at exactly 0 counts, too.
            lost = lost.saturating_add(self.sum(0, until - self.length));
        }
        Picos(lost)
    }

    /// Index of the first detour that starts after `position`.
    fn after(&self, position: u64) -> usize {
        self.detours.partition_point(|detour| detour.start.0 <= position)
    }

    /// Remainder of a detour under way at `position`, in ps.
    fn rest_at(&self, position: u64) -> u64 {
        let under_way = self.after(position).checked_sub(1).and_then(|at| self.detours.get(at));
        under_way.map_or(0, |detour| detour.end().saturating_sub(position))
    }

    /// Total duration of the detours from index `first` on that start before `until`.
    fn sum(&self, first: usize, until: u64) -> u64 {
        // Summed one by one before the prefix sums are used: most operations span few detours.
        const FEW: usize = 8;
        let later = self.detours.get(first..).unwrap_or_default();
        let few = if self.sums.is_empty() { later.len() } else { FEW.min(later.len()) };
        let (near, far) = later.split_at_checked(few).unwrap_or((later, &[]));
        let mut sum = 0u64;
        for detour in near {
            look();
            if detour.start.0 >= until {
                return sum;
            }
            sum = sum.saturating_add(detour.duration.0);
        }
        let further = far.partition_point(|detour| {
            look();
            detour.start.0 < until
        });
        let up_to = |count: usize| {
            count.checked_sub(1).and_then(|at| self.sums.get(at)).map_or(0, |sum| sum.0)
        };
        let last = first + few;
        sum.saturating_add(up_to(last + further).saturating_sub(up_to(last)))
    }
}

/// Counts the detours visited, for tests.
#[inline]
fn look() {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
}

/// Phase of each rank in the trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phases {
    /// Each rank has a phase of its own.
    Drawn {
        /// The seed.
        seed: u64,
    },
    /// All ranks have the same phase: their noise is co-scheduled.
    Together {
        /// The seed.
        seed: u64,
    },
}

impl Phases {
    /// The phase of `rank` in a trace of `length`.
    #[must_use]
    pub const fn of(self, rank: u32, length: Picos) -> Picos {
        let (seed, stream) = match self {
            Self::Drawn { seed } => (seed, rank as u64),
            Self::Together { seed } => (seed, 0),
        };
        Picos(Random::stream(seed, stream).below(length.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec::Vec;

    std::thread_local! {
        pub(super) static LOOKS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
    }

    #[test]
    fn an_operation_that_spans_very_many_detours_looks_at_few() {
        let detours: Vec<_> = (0..100_000)
            .map(|at| Detour { start: Picos(10 * at), duration: Picos(1 + at % 3) })
            .collect();
        let mut sums = std::vec![Picos::ZERO; detours.len()];
        sum_up(&detours, &mut sums);
        let plain = Trace::new(&detours, None).unwrap();
        let summed = plain.with_sums(&sums);
        for (start, length) in [(0, 999_990), (17, 500_000), (600_003, 700_000), (5, 70)] {
            let (start, length) = (Picos(start), Picos(length));
            let expected = plain.lost(Picos::ZERO, start, length);
            LOOKS.set(0);
            assert_eq!(summed.lost(Picos::ZERO, start, length), expected);
            assert!(LOOKS.get() <= 60, "{} looks", LOOKS.get());
        }
    }

    const DETOURS: [Detour; 3] = [
        Detour { start: Picos(0), duration: Picos(5) },
        Detour { start: Picos(20), duration: Picos(10) },
        Detour { start: Picos(50), duration: Picos(1) },
    ];

    fn trace() -> Trace<'static> {
        Trace::new(&DETOURS, Some(Picos(100))).unwrap()
    }

    fn lost(start: u64, length: u64) -> u64 {
        trace().lost(Picos::ZERO, Picos(start), Picos(length)).0
    }

    #[test]
    fn an_operation_loses_the_rest_of_the_detour_under_way_and_those_that_start_in_it() {
        assert_eq!(lost(5, 10), 0);
        assert_eq!(lost(3, 1), 2);
        assert_eq!(lost(25, 10), 5);
        assert_eq!(lost(15, 10), 10);
        assert_eq!(lost(15, 5), 0, "a detour at its end does not touch it");
        assert_eq!(lost(10, 41), 11);
        assert_eq!(lost(22, 0), 8, "even an empty operation waits for the detour");
    }

    #[test]
    fn the_first_detour_counts_also_past_the_seam() {
        assert_eq!(lost(0, 1), 5);
        assert_eq!(lost(90, 10), 0);
        assert_eq!(lost(90, 11), 5);
        assert_eq!(lost(90, 31), 15);
    }

    #[test]
    fn a_phase_moves_the_start() {
        for start in 0..250 {
            let moved = trace().lost(Picos(37), Picos(start), Picos(13)).0;
            assert_eq!(moved, lost(start + 37, 13));
        }
        assert_eq!(trace().lost(Picos::MAX, Picos::MAX, Picos(1)), Picos(lost(30, 1)));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_place() {
        assert_eq!(Trace::new(&[], None).unwrap_err(), InvalidTrace::Empty);
        let late = [DETOURS[0], DETOURS[2], DETOURS[1]];
        assert_eq!(Trace::new(&late, None).unwrap_err(), InvalidTrace::Overlap(2));
        let short = Trace::new(&DETOURS, Some(Picos(50))).unwrap_err();
        assert_eq!(short, InvalidTrace::PastEnd(2));
        assert_eq!(Trace::new(&DETOURS, None).unwrap().length(), Picos(51));
    }

    #[test]
    fn ranks_have_phases_of_their_own_unless_scheduled_together() {
        let length = Picos(1 << 40);
        let drawn = Phases::Drawn { seed: 5 };
        assert_ne!(drawn.of(0, length), drawn.of(1, length));
        assert_eq!(drawn.of(3, length), drawn.of(3, length));
        let together = Phases::Together { seed: 5 };
        assert_eq!(together.of(0, length), together.of(1, length));
        assert!((0..1_000).all(|rank| drawn.of(rank, Picos(10)).0 < 10));
    }

    quickcheck! {
        fn noise_equals_the_sum_over_detours_one_by_one(
            gaps: Vec<(u8, u8)>, start: u16, length: u16
        ) -> bool {
            let mut detours = Vec::new();
            let mut time = 0u64;
            for (gap, duration) in gaps {
                let start = Picos(time + u64::from(gap));
                detours.push(Detour { start, duration: Picos(u64::from(duration)) });
                time = start.0 + u64::from(duration);
            }
            let Ok(trace) = Trace::new(&detours, Some(Picos(time + 7))) else {
                return detours.is_empty();
            };
            let (start, length) = (u64::from(start), u64::from(length));
            let mut expected = 0;
            for period in 0..=(start + length) / (time + 7) {
                for detour in &detours {
                    let begin = detour.start.0 + period * (time + 7);
                    let end = begin + detour.duration.0;
                    if begin <= start {
                        expected += end.saturating_sub(start);
                    } else if begin < start + length {
                        expected += detour.duration.0;
                    }
                }
            }
            let mut sums = std::vec![Picos::ZERO; detours.len()];
            sum_up(&detours, &mut sums);
            [trace, trace.with_sums(&sums)]
                .iter()
                .all(|trace| trace.lost(Picos::ZERO, Picos(start), Picos(length)) == Picos(expected))
        }
    }
}
