//! Least taper at which a network would limit a flat run.

use crate::goal::{Edge, Op, OpKind, Sink};
use crate::sim::BuildError;
use crate::sim::parameters::Parameters;
use crate::sim::rank::price::Prices;
use crate::units::{Overflow, Picos};

/// Number of ranks of the smallest leaf considered.
const SMALLEST: u32 = 8;
const _: () = assert!(SMALLEST.is_power_of_two(), "leaves are told apart by shifting");

/// Taper of a leaf switch whose uplinks would be busy for a whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taper {
    /// Contiguous ranks of a leaf.
    pub leaf: u32,
    /// Ratio of its hosts' links to its uplinks.
    pub taper: f64,
}

/// Sink that adds up the traffic across the edge of leaves of 8, 16, 32 … contiguous ranks, and of
/// halves.
#[derive(Debug)]
pub struct Crossing<'p, 'm> {
    prices: Prices<'p>,
    ranks: u32,
    rank: u32,
    ops: u32,
    /// Traffic out of and into each leaf of each size, in ps of a host's link.
    carried: &'m mut [[u64; 2]],
}

/// Sizes of leaves: powers of two below half the ranks, then half.
fn sizes(ranks: u32) -> impl Iterator<Item = u32> {
    let half = ranks.div_ceil(2);
    let powers = (0..32).map_while(|power| SMALLEST.checked_shl(power));
    let powers = powers.take_while(move |&size| size > 0 && size < half);
    powers.chain(Some(half).filter(|&half| half >= SMALLEST))
}

/// Number of leaves of a size.
fn leaves(ranks: u32, size: u32) -> usize {
    ranks.saturating_sub(1).checked_div(size).map_or(0, |last| last as usize + 1)
}

impl<'p, 'm> Crossing<'p, 'm> {
    /// Number of elements that `carried` needs.
    #[must_use]
    pub fn requirement(ranks: u32) -> usize {
        sizes(ranks).map(|size| leaves(ranks, size)).sum()
    }

    /// Creates the sink for a schedule of `ranks` ranks; `None` if `carried` has fewer elements
    /// than [`Crossing::requirement`].
    #[must_use]
    pub fn new(
        parameters: Parameters<'p>,
        ranks: u32,
        carried: &'m mut [[u64; 2]],
    ) -> Option<Self> {
        let carried = carried.get_mut(..Self::requirement(ranks))?;
        carried.fill([0; 2]);
        Some(Self { prices: Prices::new(parameters), ranks, rank: 0, ops: 0, carried })
    }

    /// Least taper at which the traffic across the edge of the busiest leaf alone would take longer
    /// than `makespan`; `None` if there is no such traffic.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a ratio of few digits")]
    pub fn taper(&self, makespan: Picos) -> Option<Taper> {
        let mut rest = &*self.carried;
        let mut least: Option<Taper> = None;
        for leaf in sizes(self.ranks) {
            let (some, others) = rest.split_at_checked(leaves(self.ranks, leaf))?;
            rest = others;
            let most = some.as_flattened().iter().max().copied().unwrap_or_default();
            if most == 0 {
                continue;
            }
            let taper = makespan.0 as f64 * f64::from(leaf) / most as f64;
            if least.is_none_or(|least| taper < least.taper) {
                least = Some(Taper { leaf, taper });
            }
        }
        least
    }

    /// (s − 1)·G of a message from the open rank.
    fn volume(&mut self, peer: u32, size: u64) -> Result<u64, Overflow> {
        Ok(self.prices.between(self.rank, peer, size)?.costs.gap_bytes)
    }

    fn add(&mut self, peer: u32, volume: u64) {
        let half = self.ranks.div_ceil(2);
        let mut first = 0;
        let mut shift = SMALLEST.trailing_zeros();
        while 1 << shift < half {
            let (from, to) = (self.rank >> shift, peer >> shift);
            if from == to {
                // Larger leaves contain both as well.
                break;
            }
            self.add_at(first, [from, to], volume);
            first += ((self.ranks - 1) >> shift) as usize + 1;
            shift += 1;
        }
        let (from, to) = (u32::from(self.rank >= half), u32::from(peer >= half));
        if from != to && half >= SMALLEST {
            self.add_at(self.carried.len().saturating_sub(2), [from, to], volume);
        }
    }

    /// Adds a message from the first of these leaves to the second.
    fn add_at(&mut self, first: usize, leaves: [u32; 2], volume: u64) {
        for (way, leaf) in leaves.into_iter().enumerate() {
            let slot = self.carried.get_mut(first + leaf as usize);
            if let Some(sum) = slot.and_then(|slot| slot.get_mut(way)) {
                *sum = sum.saturating_add(volume);
            }
        }
    }
}

impl Sink for Crossing<'_, '_> {
    type Error = BuildError;

    fn ranks(&mut self, _ranks: u32) -> Result<(), BuildError> {
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        (self.rank, self.ops) = (rank, 0);
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        if let OpKind::Send { peer, size, .. } = op.kind
            && let Ok(volume) = self.volume(peer, size)
        {
            self.add(peer, volume);
        }
        let index = self.ops;
        self.ops = index.checked_add(1).ok_or(BuildError::TooManyOps)?;
        Ok(index)
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), BuildError> {
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        Ok(())
    }
}
