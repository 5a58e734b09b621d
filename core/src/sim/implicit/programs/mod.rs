//! Built-in patterns as programs.

mod doubling;
mod grid;
mod linear;
mod permuted;
mod place;
mod ring;
mod rounds;
mod tree;

pub use doubling::Doubling;
pub use grid::{Halo, Sweep};
pub use linear::{Linear, LinearKind};
pub use permuted::Permuted;
pub use ring::{Ring, RingKind};
pub use rounds::{Round, Rounds};
pub use tree::{Reduction, Tree};

use crate::goal::pattern::{
    Algorithm, Collective, OptionError, Options, Pattern, TreeKind, settled,
};
use place::Place;

/// A built-in pattern as a program.
#[derive(Clone, Copy, Debug)]
pub enum PatternProgram {
    /// Broadcast along a tree.
    Tree(Tree),
    /// Reduction along a tree.
    Reduction(Reduction),
    /// Between one rank and all others, or between all.
    Linear(Linear),
    /// Ring.
    Ring(Ring),
    /// Rounds with one message for each rank.
    Rounds(Rounds),
    /// Recursive halving and doubling, on any number of ranks.
    Doubling(Doubling),
    /// Exchange with the neighbours on a grid.
    Halo(Halo),
    /// Wavefront over a grid.
    Sweep(Sweep),
    /// Permutation of the ranks.
    Permuted(Permuted),
}

/// Evaluates an expression with the program in a [`PatternProgram`], whichever it is:
/// `with_program!(program, one => run(one))`.
#[macro_export]
macro_rules! with_program {
    ($program:expr, $one:ident => $does:expr) => {
        match $program {
            $crate::sim::implicit::PatternProgram::Tree($one) => $does,
            $crate::sim::implicit::PatternProgram::Reduction($one) => $does,
            $crate::sim::implicit::PatternProgram::Linear($one) => $does,
            $crate::sim::implicit::PatternProgram::Ring($one) => $does,
            $crate::sim::implicit::PatternProgram::Rounds($one) => $does,
            $crate::sim::implicit::PatternProgram::Doubling($one) => $does,
            $crate::sim::implicit::PatternProgram::Halo($one) => $does,
            $crate::sim::implicit::PatternProgram::Sweep($one) => $does,
            $crate::sim::implicit::PatternProgram::Permuted($one) => $does,
        }
    };
}

impl PatternProgram {
    /// Program for `pattern` with `options`; `None` if it exists only as a stored schedule: tables
    /// and random pairs, n-way dissemination, training, repetitions, several groups, background
    /// calculations.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if the options are invalid for the pattern.
    pub fn new(pattern: Pattern, options: &Options) -> Result<Option<Self>, OptionError> {
        let (options, algorithm) = settled(pattern, options)?;
        if options.repeat > 1 || options.groups > 1 || options.background.is_some() {
            return Ok(None);
        }
        let make = Maker { options, place: Place { ranks: options.ranks, root: options.root } };
        Ok(match pattern {
            Pattern::BinomialBroadcast => Some(make.tree(TreeKind::Binomial)),
            Pattern::BinomialReduce => Some(make.reduction()),
            Pattern::BinaryBroadcast => Some(make.tree(TreeKind::Binary)),
            Pattern::Gather => Some(make.linear(LinearKind::Gather)),
            Pattern::Scatter => Some(make.linear(LinearKind::Scatter)),
            Pattern::LinearBarrier => Some(make.linear(LinearKind::Barrier)),
            Pattern::AllToAll => Some(make.linear(LinearKind::AllToAll)),
            Pattern::PipelinedRing => make.ring(RingKind::Pipelined),
            Pattern::PipelinedRingBlocking => make.ring(RingKind::PipelinedBlocking),
            Pattern::DoubleRing => make.ring(RingKind::Double),
            Pattern::Dissemination => make.rounds([Some(Round::Dissemination), None]),
            Pattern::ChainedDissemination => make.rounds([Some(Round::Dissemination); 2]),
            Pattern::RingAllreduce => make.ring_allreduce(),
            Pattern::RecursiveDoubling => Some(Self::Doubling(Doubling {
                place: make.place,
                size: options.size,
                compute: options.compute,
            })),
            Pattern::Permutation | Pattern::Tornado => Some(Self::Permuted(Permuted {
                permutation: options.permutation(pattern),
                ranks: options.ranks,
                size: options.size,
            })),
            Pattern::Halo2d | Pattern::Halo3d | Pattern::Halo26 => Some(Self::Halo(Halo {
                grid: options.grid(pattern)?,
                stencil: pattern.stencil(),
                size: options.size,
                compute: options.compute,
            })),
            Pattern::Sweep => Some(Self::Sweep(Sweep {
                grid: options.grid(pattern)?,
                size: options.size,
                compute: options.compute.unwrap_or_default(),
            })),
            Pattern::Mpi(collective) => make.mpi(collective, algorithm),
            Pattern::NWayDissemination
            | Pattern::AllToAllSkewed
            | Pattern::ResNet
            | Pattern::RandomPairs
            | Pattern::RandomPairsBothWays => None,
        })
    }
}

/// Creates programs from options that have been checked.
struct Maker {
    options: Options,
    place: Place,
}

impl Maker {
    const fn tree(&self, kind: TreeKind) -> PatternProgram {
        let Self { place, options } = self;
        PatternProgram::Tree(Tree { kind, place: *place, size: options.size })
    }

    const fn reduction(&self) -> PatternProgram {
        let Self { place, options } = self;
        PatternProgram::Reduction(Reduction { place: *place, size: options.size })
    }

    const fn linear(&self, kind: LinearKind) -> PatternProgram {
        let Self { place, options } = self;
        let size = if matches!(kind, LinearKind::Barrier) { 1 } else { options.size };
        let window = match (kind, options.window) {
            (LinearKind::Outcast | LinearKind::AllToAllByRank, Some(window)) => window,
            _ => u32::MAX,
        };
        PatternProgram::Linear(Linear { kind, place: *place, size, window })
    }

    fn ring(&self, kind: RingKind) -> Option<PatternProgram> {
        let (place, size) = (self.place, self.options.size);
        let segment = self.options.segment.unwrap_or(size).max(1);
        let segments = u32::try_from(size.div_ceil(segment)).ok()?;
        Some(PatternProgram::Ring(Ring { kind, place, size, segment, segments }))
    }

    /// Program of ⌈log₂ P⌉ rounds.
    fn rounds(&self, halves: [Option<Round>; 2]) -> Option<PatternProgram> {
        let rounds = self.place.ranks.saturating_sub(1).checked_ilog2().map_or(0, |last| last + 1);
        self.some_rounds(halves, rounds, None)
    }

    fn ring_allreduce(&self) -> Option<PatternProgram> {
        let rounds = self.place.ranks.saturating_sub(1).checked_mul(2)?;
        self.some_rounds([Some(Round::Ring), None], rounds, None)
    }

    fn some_rounds(
        &self,
        halves: [Option<Round>; 2],
        rounds: u32,
        compute: Option<crate::units::Picos>,
    ) -> Option<PatternProgram> {
        // The calculations of both halves, and the one between, are numbered in 32 bits.
        rounds.checked_mul(2)?.checked_add(1)?;
        let (place, size) = (self.place, self.options.size);
        Some(PatternProgram::Rounds(Rounds { halves, place, size, rounds, compute }))
    }

    fn mpi(&self, collective: Collective, algorithm: Algorithm) -> Option<PatternProgram> {
        let ring = algorithm == Algorithm::Ring;
        let [first, second] =
            if ring { [Round::Ring; 2] } else { [Round::Halving, Round::Doubling] };
        let rounds = if ring {
            self.place.ranks.saturating_sub(1)
        } else {
            self.place.ranks.checked_ilog2().unwrap_or(0)
        };
        let halves = match (collective, algorithm) {
            (Collective::Broadcast, Algorithm::BinomialTree) => {
                return Some(self.tree(TreeKind::Binomial));
            }
            (Collective::Reduce, Algorithm::BinomialTree) => return Some(self.reduction()),
            (Collective::Broadcast | Collective::Outcast, _) => {
                return Some(self.linear(LinearKind::Outcast));
            }
            (Collective::Reduce | Collective::Incast, _) => {
                return Some(self.linear(LinearKind::Incast));
            }
            (Collective::AllToAll, _) => return Some(self.linear(LinearKind::AllToAllByRank)),
            (Collective::ReduceScatter, _) => [Some(first), None],
            (Collective::Allgather, _) => [Some(second), None],
            (Collective::Allreduce, _) => [Some(first), Some(second)],
        };
        self.some_rounds(halves, rounds, self.options.compute)
    }
}
