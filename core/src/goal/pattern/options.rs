//! Options of patterns, and their errors.

use super::grid::Grid;
use super::name::{Algorithm, Collective, Pattern};
use super::permutation::Permutation;
use super::ring::segments;
use crate::goal::ANY;
use crate::units::Picos;
use crate::worded::errors;
/// Options of a pattern; a pattern ignores those that it does not use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Options {
    /// Number of ranks in each group.
    pub ranks: u32,
    /// Size of the collective, bytes.
    pub size: u64,
    /// Root of broadcast, reduction, gather and scatter; in the skewed all-to-all the rank that
    /// receives the large messages.
    pub root: u32,
    /// Number of targets of a rank in each round of the n-way dissemination.
    pub ways: u32,
    /// Size of a segment of the pipelined rings, bytes; `None` for the whole message.
    pub segment: Option<u64>,
    /// Largest number of sends in flight in linear collectives of Schedgen 2.
    pub window: Option<u32>,
    /// Extents of the grid along x, y and z, whose product is the number of ranks; `None` for the
    /// most balanced one.
    pub grid: Option<[u32; 3]>,
    /// Duration of a calculation before the messages to neighbours, or between the rounds: in recursive doubling it replaces the
    /// dependency on the last receive (`--rpl-dep-cmp`), in collectives of Schedgen 2 it follows it
    /// (`--compute_time_dependency`).
    pub compute: Option<Picos>,
    /// Divisor of the size for the small messages of the skewed all-to-all.
    pub skew: u32,
    /// True if, in the skewed all-to-all, the rank above the root sends only large messages.
    pub outcast: bool,
    /// Calculation in the background on every rank (`--nb`).
    pub background: Option<Background>,
    /// Algorithm of a collective of Schedgen 2 (`--ptrn`).
    pub algorithm: Algorithm,
    /// Number of disjoint groups of ranks, each of which runs the pattern (`--num_comm_groups`).
    pub groups: u32,
    /// Number of repetitions, one after the other on each rank.
    pub repeat: u32,
    /// True if the root moves to the next rank in each repetition.
    pub rotate_root: bool,
    /// Seed of random patterns.
    pub seed: u64,
}

/// Background calculations on each rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Background {
    /// Total duration (`--nb`).
    pub duration: Picos,
    /// Duration of the pieces into which it is divided, between which the rank can communicate
    /// (`--nb-poll`); the last is not shortened. `None` for one piece.
    pub poll: Option<Picos>,
    /// Processor (`--cpu`).
    pub cpu: u8,
}

impl Background {
    /// Number of calculations.
    pub(super) fn calcs(self) -> u64 {
        self.poll.map_or(1, |poll| self.duration.0.div_ceil(poll.0.max(1)))
    }
}

impl Options {
    /// Default options for `ranks` ranks and `size` bytes.
    #[must_use]
    pub const fn new(ranks: u32, size: u64) -> Self {
        Self {
            ranks,
            size,
            root: 0,
            ways: 1,
            segment: None,
            window: None,
            grid: None,
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

    /// Size of a segment, at least 1, bytes.
    pub(super) fn segment(&self) -> u64 {
        self.segment.unwrap_or(self.size).max(1)
    }

    /// Grid of `pattern`.
    pub(crate) fn grid(&self, pattern: Pattern) -> Result<Grid, OptionError> {
        let dimensions = pattern.dimensions();
        match self.grid.filter(|_| dimensions > 0) {
            None => Ok(Grid::balanced(self.ranks, dimensions)),
            Some(extents) => {
                let grid = Grid::of(extents, self.ranks);
                let grid = grid.filter(|_| dimensions == 3 || matches!(extents, [_, _, 1]));
                grid.ok_or(OptionError::Grid { dimensions, ranks: self.ranks })
            }
        }
    }

    /// Permutation of `pattern`.
    pub(crate) const fn permutation(&self, pattern: Pattern) -> Permutation {
        match pattern {
            Pattern::Tornado => Permutation::tornado(self.ranks),
            _ => Permutation::Random { seed: self.seed },
        }
    }

    /// Checks that the options make a schedule.
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

    /// Upper bound of the number of operations of a rank; saturating.
    fn operations_bound(&self, pattern: Pattern) -> u64 {
        let ranks = u64::from(self.ranks);
        let once = match pattern {
            Pattern::PipelinedRing | Pattern::PipelinedRingBlocking => {
                segments(self.size, self.segment()).saturating_mul(2)
            }
            Pattern::NWayDissemination => u64::from(self.ways).saturating_mul(3 * 33),
            _ => 4 * ranks + 256,
        };
        let background = self.background.map_or(0, Background::calcs);
        once.saturating_add(1).saturating_mul(u64::from(self.repeat)).saturating_add(background)
    }
}

errors! {
    /// Reason why options are invalid for a pattern.
    pub enum OptionError {
        /// There are no ranks, no groups or no repetitions.
        Nothing => "ranks, groups and repetitions must be at least 1";
        /// A window, segment, number of ways, skew or poll interval is 0.
        Zero => "window, segment, ways, skew and poll interval must be at least 1";
        /// The root is not one of the ranks.
        Root {
            /// Root given.
            root: u32,
            /// Number of ranks.
            ranks: u32,
        } => "root {root} is not among ranks 0 to {}", ranks.saturating_sub(1);
        /// The skew leaves less than one byte for the small messages.
        Skew {
            /// Divisor given.
            skew: u32,
            /// Size that it divides, bytes.
            size: u64,
        } => "skew {skew} leaves less than one of {size} bytes; take a skew of at most {size}";
        /// The extents of the grid do not make as many ranks, or are too many.
        Grid {
            /// Dimensions of the pattern's grid.
            dimensions: u32,
            /// Number of ranks.
            ranks: u32,
        } => "the grid needs up to {dimensions} extents whose product is {ranks}, the ranks";
        /// There are 2³² or more ranks, or operations on one rank.
        TooLarge => "more than 2^32 - 2 ranks, or operations on one rank; \
                 take fewer ranks or repetitions, or larger segments";
        /// Recursive doubling needs a number of ranks that is a power of two.
        PowerOfTwo {
            /// Number of ranks.
            ranks: u32,
        } => "this collective by recursive doubling needs a power of two of ranks, not \
                 {ranks}; take the ring, or the pattern allreduce_recdoub";
        /// The collective does not have this algorithm.
        Algorithm {
            /// Collective given.
            collective: Collective,
            /// Algorithm given.
            algorithm: Algorithm,
        } => "{collective} has no algorithm {algorithm}; try auto";
        /// The lent scratch memory is too small.
        Scratch {
            /// Number of words needed.
            needed: usize,
            /// Number of words lent.
            given: usize,
        } => "{needed} words of scratch memory needed, {given} lent";
    }
}
