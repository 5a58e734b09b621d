//! What a pattern can be told, and what it refuses.

use super::name::{Algorithm, Collective, Pattern};
use super::ring::segments;
use crate::goal::ANY;
use crate::units::Picos;
use crate::worded::errors;
/// Settings of a pattern; those it does not know are ignored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Options {
    /// Ranks of each group.
    pub ranks: u32,
    /// Bytes of the collective.
    pub size: u64,
    /// Rank at the root of broadcast, reduction, gather and scatter; the
    /// receiver of most in the skewed all-to-all.
    pub root: u32,
    /// Targets of a rank in each round of the n-way dissemination.
    pub ways: u32,
    /// Bytes of a segment of the pipelined rings; the whole message if
    /// `None`.
    pub segment: Option<u64>,
    /// Sends in flight at once in linear collectives of Schedgen 2.
    pub window: Option<u32>,
    /// A calculation between the rounds: in recursive doubling in place of
    /// the wait for the last receive (`--rpl-dep-cmp`), in collectives of
    /// Schedgen 2 after it (`--compute_time_dependency`).
    pub compute: Option<Picos>,
    /// Divides the size for the small messages of the skewed all-to-all.
    pub skew: u32,
    /// In the skewed all-to-all, the rank above the root sends large
    /// messages only.
    pub outcast: bool,
    /// A calculation beside the pattern on every rank (`--nb`).
    pub background: Option<Background>,
    /// Algorithm of a collective of Schedgen 2 (`--ptrn`).
    pub algorithm: Algorithm,
    /// Disjoint groups of ranks that all run the pattern
    /// (`--num_comm_groups`).
    pub groups: u32,
    /// Repetitions, one after the other on each rank.
    pub repeat: u32,
    /// Whether each repetition has the root one rank further.
    pub rotate_root: bool,
    /// Decides random patterns.
    pub seed: u64,
}

/// Calculations beside the pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Background {
    /// How long in all (`--nb`).
    pub duration: Picos,
    /// Length of the pieces into which it is cut, between which the rank
    /// can communicate (`--nb-poll`); the last is not shortened.
    pub poll: Option<Picos>,
    /// The processor that calculates (`--cpu`).
    pub cpu: u8,
}

impl Options {
    /// The defaults for `ranks` ranks and `size` bytes.
    #[must_use]
    pub const fn new(ranks: u32, size: u64) -> Self {
        Self {
            ranks,
            size,
            root: 0,
            ways: 1,
            segment: None,
            window: None,
            compute: None,
            skew: 1,
            outcast: false,
            background: None,
            algorithm: Algorithm::Auto,
            groups: 1,
            repeat: 1,
            rotate_root: false,
            seed: 0,
        }
    }

    /// Bytes of a segment, at least 1.
    pub(super) fn segment(&self) -> u64 {
        self.segment.unwrap_or(self.size).max(1)
    }

    /// Refuses what makes no schedule.
    pub(super) fn check(&self, pattern: Pattern) -> Result<(), OptionError> {
        let Self { ranks, root, groups, .. } = *self;
        if ranks == 0 || groups == 0 || self.repeat == 0 {
            return Err(OptionError::Nothing);
        }
        if u64::from(ranks) * u64::from(groups) >= u64::from(ANY) {
            return Err(OptionError::TooLarge);
        }
        if root >= ranks {
            return Err(OptionError::Root { root, ranks });
        }
        if self.window == Some(0) || self.segment == Some(0) || self.ways == 0 || self.skew == 0 {
            return Err(OptionError::Zero);
        }
        if self.background.is_some_and(|background| background.poll == Some(Picos::ZERO)) {
            return Err(OptionError::Zero);
        }
        if pattern == Pattern::AllToAllSkewed && self.size < u64::from(self.skew) {
            return Err(OptionError::Skew { skew: self.skew, size: self.size });
        }
        if self.operations_bound(pattern) > u64::from(u32::MAX) {
            return Err(OptionError::TooLarge);
        }
        Ok(())
    }

    /// No rank has more operations than this; saturating.
    fn operations_bound(&self, pattern: Pattern) -> u64 {
        let ranks = u64::from(self.ranks);
        let once = match pattern {
            Pattern::PipelinedRing | Pattern::PipelinedRingBlocking => {
                segments(self.size, self.segment()).saturating_mul(2)
            }
            Pattern::NWayDissemination => u64::from(self.ways).saturating_mul(3 * 33),
            _ => 4 * ranks + 256,
        };
        let background = self.background.map_or(0, |background| {
            background.poll.map_or(1, |poll| background.duration.0.div_ceil(poll.0.max(1)))
        });
        once.saturating_add(1).saturating_mul(u64::from(self.repeat)).saturating_add(background)
    }
}

errors! {
    /// Why options make no pattern.
    pub enum OptionError {
        /// No ranks, no groups or no repetitions.
        Nothing => "ranks, groups and repetitions must be at least 1";
        /// A window, segment, number of ways, skew or poll interval of 0.
        Zero => "window, segment, ways, skew and poll interval must be at least 1";
        /// The root is not one of the ranks.
        Root {
            /// The root.
            root: u32,
            /// Ranks, so that the last is one less.
            ranks: u32,
        } => "root {root} is not among ranks 0 to {}", ranks.saturating_sub(1);
        /// The skew leaves less than one byte for the small messages.
        Skew {
            /// The divisor.
            skew: u32,
            /// The size, in bytes, that it divides.
            size: u64,
        } => "skew {skew} leaves less than one of {size} bytes; take a skew of at most {size}";
        /// 2³² or more ranks, or operations on one rank.
        TooLarge => "more than 2^32 - 2 ranks, or operations on one rank; \
                 take fewer ranks or repetitions, or larger segments";
        /// Recursive doubling between ranks that are no power of two.
        PowerOfTwo {
            /// How many ranks.
            ranks: u32,
        } => "this collective by recursive doubling needs a power of two of ranks, not \
                 {ranks}; take the ring, or the pattern allreduce_recdoub";
        /// The collective has no such algorithm.
        Algorithm {
            /// The collective.
            collective: Collective,
            /// The algorithm.
            algorithm: Algorithm,
        } => "{collective} has no algorithm {algorithm}; try auto";
        /// The lent scratch memory is too small.
        Scratch {
            /// Words needed.
            needed: usize,
            /// Words lent.
            given: usize,
        } => "{needed} words of scratch memory needed, {given} lent";
    }
}
