//! Communication patterns as schedules: the collectives and synthetic traffic of Schedgen 1 and 2,
//! operation by operation in their order, with corrections where Schedgen's schedules do not run.
//!
//! [`generate`] writes a pattern into any [`Sink`]: a file, a schedule, a counter. It uses only the
//! caller's scratch memory, so the number of ranks is limited by the sink alone.
//!
//! # Differences from Schedgen
//!
//! - [`Pattern::BinaryBroadcast`] works with any root.
//! - [`Pattern::RecursiveDoubling`] works with any number of ranks.
//! - [`Pattern::ChainedDissemination`] sends only to ranks that exist.
//! - Random patterns use a seed from the options, not the clock.
//! - Every pattern can be repeated ([`Options::repeat`]): each rank starts the next repetition when
//!   its part of the last one is complete, with a fixed or rotating root
//!   ([`Options::rotate_root`]). It can also run in several groups of ranks at the same time
//!   ([`Options::groups`]).

mod dissemination;
mod doubling;
mod glibc;
mod grid;
mod linear;
mod mpi;
mod name;
mod options;
mod pairs;
mod permutation;
mod resnet;
mod ring;
mod script;
mod tree;

pub use grid::{Grid, Stencil, SweepStep};
pub use name::{Algorithm, Collective, Description, Pattern, UnknownName};
pub use options::{Background, OptionError, Options};
pub use permutation::Permutation;
pub use tree::TreeKind;
pub(crate) use tree::first_round;

use super::Sink;
use crate::worded::errors;
use pairs::{Maps, Traffic};
use ring::Passing;
use script::{Place, Script};

errors! {
    /// Reason why a pattern was not written.
    pub enum GenerateError<E> {
        /// The options are invalid for the pattern; nothing was written.
        Options(error: OptionError) => "{error}";
        /// The sink refused an element.
        Sink(error: E) => "{error}";
    }
}

/// Number of words of scratch memory that [`generate`] needs.
///
/// # Errors
///
/// [`OptionError::TooLarge`] beyond the address space.
pub fn scratch_words(pattern: Pattern, options: &Options) -> Result<usize, OptionError> {
    let ranks = u64::from(options.ranks);
    let words = match pattern {
        Pattern::AllToAllSkewed => ranks.checked_mul(ranks),
        Pattern::RandomPairs | Pattern::RandomPairsBothWays => Some(2 * (ranks & !1)),
        _ => Some(0),
    };
    words.and_then(|words| usize::try_from(words).ok()).ok_or(OptionError::TooLarge)
}

/// Writes `pattern` into `sink`. `scratch` needs at least [`scratch_words`] words, with any
/// content.
///
/// # Errors
///
/// [`GenerateError::Options`] before anything is written, [`GenerateError::Sink`] at the first
/// element that the sink refuses.
pub fn generate<S: Sink>(
    pattern: Pattern,
    options: &Options,
    scratch: &mut [u32],
    sink: &mut S,
) -> Result<(), GenerateError<S::Error>> {
    let plan = Plan::new(pattern, options, scratch).map_err(GenerateError::Options)?;
    let ranks = plan.options.ranks;
    sink.ranks(ranks.wrapping_mul(plan.options.groups)).map_err(GenerateError::Sink)?;
    for group in 0..plan.options.groups {
        let first_rank = group.wrapping_mul(ranks);
        for rank in 0..ranks {
            sink.begin_rank(first_rank.wrapping_add(rank)).map_err(GenerateError::Sink)?;
            let mut out = Script::new(sink, first_rank);
            plan.rank(&mut out, group, rank).map_err(GenerateError::Sink)?;
            sink.end_rank().map_err(GenerateError::Sink)?;
        }
    }
    Ok(())
}

/// Writes the operations of one rank of `pattern` into the open rank of `sink`. `scratch` as for
/// [`generate`]; patterns of several parts and repetitions need a rank without operations.
///
/// # Errors
///
/// As [`generate`].
pub fn generate_rank<S: Sink>(
    pattern: Pattern,
    options: &Options,
    rank: u32,
    scratch: &mut [u32],
    sink: &mut S,
) -> Result<(), GenerateError<S::Error>> {
    let plan = Plan::new(pattern, options, scratch).map_err(GenerateError::Options)?;
    plan.rank(&mut Script::new(sink, 0), 0, rank).map_err(GenerateError::Sink)
}

/// Checks the options and adjusts them to `pattern`; selects the algorithm of a collective of
/// Schedgen 2.
pub(crate) fn settled(
    pattern: Pattern,
    options: &Options,
) -> Result<(Options, Algorithm), OptionError> {
    let mut options = *options;
    if matches!(pattern, Pattern::RandomPairs | Pattern::RandomPairsBothWays) {
        options.ranks &= !1;
        options.root = 0;
    }
    options.check(pattern)?;
    let algorithm = match pattern {
        Pattern::Mpi(collective) => {
            mpi::settle(collective, options.algorithm, options.size, options.ranks)?
        }
        _ => Algorithm::Auto,
    };
    Ok((options, algorithm))
}

/// Pattern with checked options.
struct Plan<'a> {
    pattern: Pattern,
    options: Options,
    algorithm: Algorithm,
    grid: Grid,
    scratch: &'a [u32],
}

impl<'a> Plan<'a> {
    fn new(
        pattern: Pattern,
        options: &Options,
        scratch: &'a mut [u32],
    ) -> Result<Self, OptionError> {
        let (options, algorithm) = settled(pattern, options)?;
        let needed = scratch_words(pattern, &options)?;
        let given = scratch.len();
        let Some(scratch) = scratch.get_mut(..needed) else {
            return Err(OptionError::Scratch { needed, given });
        };
        match pattern {
            Pattern::AllToAllSkewed => draw_sizes(scratch, &options),
            Pattern::RandomPairs | Pattern::RandomPairsBothWays => {
                draw_pairs(scratch, options.seed);
            }
            _ => {}
        }
        let grid = options.grid(pattern)?;
        Ok(Self { pattern, options, algorithm, grid, scratch })
    }

    /// Emits one rank: background calculations, then every repetition.
    fn rank<S: Sink>(
        &self,
        out: &mut Script<'_, S>,
        group: u32,
        rank: u32,
    ) -> Result<(), S::Error> {
        if let Some(background) = self.options.background {
            background_calcs(out, background)?;
        }
        let Options { ranks, root, size, repeat, rotate_root, .. } = self.options;
        for repetition in 1..=repeat {
            let shift = if rotate_root { u64::from(repetition) - 1 } else { 0 };
            let root = Place { rank: root, ranks, root, size }.above(shift);
            let at = Place { rank, ranks, root, size };
            if repetition < repeat {
                let join = out.joined(|out| self.once(out, &at, group))?;
                out.set_after(join);
            } else {
                self.once(out, &at, group)?;
            }
        }
        Ok(())
    }

    /// Emits one repetition of the pattern.
    fn once<S: Sink>(
        &self,
        out: &mut Script<'_, S>,
        at: &Place,
        group: u32,
    ) -> Result<(), S::Error> {
        let options = &self.options;
        match self.pattern {
            Pattern::BinomialBroadcast => tree::broadcast(out, at, TreeKind::Binomial),
            Pattern::BinomialReduce => tree::binomial_reduce(out, at),
            Pattern::BinaryBroadcast => tree::broadcast(out, at, TreeKind::Binary),
            Pattern::Dissemination => dissemination::dissemination(out, at),
            Pattern::NWayDissemination => dissemination::nway_dissemination(out, at, options.ways),
            Pattern::ChainedDissemination => chained(out, at),
            Pattern::PipelinedRing => {
                ring::pipelined_ring(out, at, options.segment(), Passing::Free)
            }
            Pattern::PipelinedRingBlocking => {
                ring::pipelined_ring(out, at, options.segment(), Passing::Blocking)
            }
            Pattern::DoubleRing => ring::double_ring(out, at),
            Pattern::Gather => linear::gather(out, at),
            Pattern::Scatter => linear::scatter(out, at),
            Pattern::LinearBarrier => linear::linear_barrier(out, at),
            Pattern::AllToAll => linear::all_to_all(out, at, |_, _| at.size),
            Pattern::AllToAllSkewed => {
                linear::all_to_all(out, at, |from, to| self.skewed_size(at, from, to))
            }
            Pattern::RecursiveDoubling => doubling::allreduce(out, at, options.compute),
            Pattern::RingAllreduce => ring::allreduce_ring(out, at),
            Pattern::ResNet => resnet::resnet(out, at),
            Pattern::RandomPairs => pairs::pairs(out, at, self.maps(), Traffic::OneWay),
            Pattern::RandomPairsBothWays => pairs::pairs(out, at, self.maps(), Traffic::BothWays),
            Pattern::Permutation | Pattern::Tornado => {
                permutation::permutation(out, at, options.permutation(self.pattern))
            }
            Pattern::Halo2d | Pattern::Halo3d | Pattern::Halo26 => {
                let stencil = self.pattern.stencil();
                grid::halo(out, at, &self.grid, stencil, options.compute)
            }
            Pattern::Sweep => grid::sweep(out, at, &self.grid, options.compute),
            Pattern::Mpi(collective) => {
                mpi::collective(out, at, &self.mpi_settings(collective, group))
            }
        }
    }

    /// Permutation of the random pairs.
    fn maps(&self) -> Maps<'_> {
        let (place_of, rank_at) = self.scratch.split_at(self.scratch.len() / 2);
        Maps { place_of, rank_at }
    }

    fn mpi_settings(&self, collective: Collective, group: u32) -> mpi::Settings {
        mpi::Settings {
            collective,
            algorithm: self.algorithm,
            window: self.options.window,
            compute: self.options.compute,
            group: group.wrapping_add(1),
            groups: self.options.groups,
        }
    }

    /// Size of a message of the skewed all-to-all, bytes: the whole size to the root and, with
    /// `outcast`, from the rank above it; otherwise the drawn size.
    fn skewed_size(&self, at: &Place, from: u32, to: u32) -> u64 {
        if full_size(&self.options, from, to) {
            return at.size;
        }
        let index = u64::from(from) * u64::from(at.ranks) + u64::from(to);
        let drawn = usize::try_from(index).ok().and_then(|index| self.scratch.get(index));
        drawn.copied().map_or(at.size, u64::from)
    }
}

/// True if the skewed all-to-all sends the whole size from `from` to `to`.
fn full_size(options: &Options, from: u32, to: u32) -> bool {
    let above_root =
        if options.root + 1 == options.ranks { 0 } else { options.root.wrapping_add(1) };
    to == options.root || (options.outcast && from == above_root)
}

/// Fills a P × P table, row by row, with the drawn sizes of the skewed all-to-all. Nothing is drawn
/// for entries of the whole size.
fn draw_sizes(table: &mut [u32], options: &Options) {
    let bound = options.size / u64::from(options.skew.max(1));
    let mut rand = glibc::Rand::new(1);
    let pairs = (0..options.ranks).flat_map(|from| (0..options.ranks).map(move |to| (from, to)));
    for (entry, (from, to)) in table.iter_mut().zip(pairs) {
        *entry = if full_size(options, from, to) {
            0
        } else {
            let draw = u64::from(rand.draw());
            u32::try_from(draw.checked_rem(bound).unwrap_or(0) + 1).unwrap_or(u32::MAX)
        };
    }
}

/// Draws the permutation of the random pairs. The lower half maps ranks to places, the upper half
/// places to ranks.
fn draw_pairs(maps: &mut [u32], seed: u64) {
    let (place_of, rank_at) = maps.split_at_mut(maps.len() / 2);
    pairs::shuffle(rank_at, seed);
    for (&rank, place) in rank_at.iter().zip(0u32..) {
        if let Some(slot) = usize::try_from(rank).ok().and_then(|rank| place_of.get_mut(rank)) {
            *slot = place;
        }
    }
}

/// Emits two disseminations; the second starts when the rank's part of the first is complete.
fn chained<S: Sink>(out: &mut Script<'_, S>, at: &Place) -> Result<(), S::Error> {
    let join = out.joined(|out| dissemination::dissemination(out, at))?;
    if at.ranks < 2 {
        out.end(join)?;
    }
    out.behind(join, |out| dissemination::dissemination(out, at))
}

/// Emits the background calculations: one, or a chain if they poll.
fn background_calcs<S: Sink>(
    out: &mut Script<'_, S>,
    background: Background,
) -> Result<(), S::Error> {
    let mut last = None;
    for _ in 0..background.calcs() {
        let duration = background.poll.unwrap_or(background.duration);
        let calc = out.calc_on(duration, background.cpu)?;
        last.map_or(Ok(()), |last| out.requires(calc, last))?;
        last = Some(calc);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
