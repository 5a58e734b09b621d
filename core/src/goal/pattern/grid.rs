//! Grids of ranks: exchange of halos with the neighbours, and a sweep from one corner.

use super::script::{Place, Script};
use crate::goal::Sink;
use crate::units::Picos;

/// Offsets to all neighbours are numbered like the digits of a number in base 3, x first; the middle
/// one is the rank itself, and those of opposite neighbours add up to [`LAST`].
const LAST: u8 = 26;
const SELF: u8 = LAST / 2;
const FACES: [u8; 6] = [4, 10, 12, 14, 16, 22];
const AROUND: [u8; 26] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26];

/// Neighbours with which a rank exchanges messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stencil {
    /// Those across the edges of a grid in two dimensions, or the faces of one in three: up to 4 or 6.
    Faces,
    /// All around in three dimensions: up to 26.
    Around,
}

impl Stencil {
    /// Numbers of its offsets, ascending.
    const fn offsets(self) -> &'static [u8] {
        match self {
            Self::Faces => &FACES,
            Self::Around => &AROUND,
        }
    }
}

/// Steps of an offset: −1, 0 or 1 along x, y and z.
const fn steps(offset: u8) -> [i8; 3] {
    let offset = offset.cast_signed();
    [offset % 3 - 1, offset / 3 % 3 - 1, offset / 9 - 1]
}

/// Ranks on a grid that is no torus, x fastest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Grid {
    extents: [u32; 3],
}

impl Grid {
    /// Grid of these extents; `None` unless it has exactly `ranks` ranks.
    pub(super) fn of(extents: [u32; 3], ranks: u32) -> Option<Self> {
        let size = extents.iter().try_fold(1u32, |size, extent| size.checked_mul(*extent));
        (size == Some(ranks)).then_some(Self { extents })
    }

    /// The grid of `ranks` ranks in one to three dimensions whose extents are nearest to each other,
    /// the largest first.
    #[must_use]
    pub fn balanced(ranks: u32, dimensions: u32) -> Self {
        let mut extents = [1; 3];
        let mut left = ranks;
        let [first, second, third] = &mut extents;
        let square: fn(u64) -> u64 = |extent| extent * extent;
        let cube: fn(u64) -> u64 = |extent| extent * extent * extent;
        for (place, power, least) in [(third, cube, 3), (second, square, 2)] {
            let mut extent = 1;
            while least <= dimensions && power(extent.into()) <= left.into() {
                if left.is_multiple_of(extent) {
                    *place = extent;
                }
                extent += 1;
            }
            left = left.checked_div(*place).unwrap_or(0);
        }
        *first = left;
        Self { extents }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.extents.iter().product()
    }

    /// A function of an offset: the rank there from `rank`; `None` beyond the grid.
    fn around(&self, rank: u32) -> impl Fn(u8) -> Option<u32> + use<> {
        let [x, y, _] = self.extents;
        let across = rank.checked_div(x).unwrap_or(0);
        let place = [rank - across * x, across.checked_rem(y).unwrap_or(0), across / y.max(1)];
        let extents = self.extents;
        let strides = [1, x, x.wrapping_mul(y)];
        move |offset| {
            let mut peer = rank;
            for ((at, step), (extent, stride)) in
                place.into_iter().zip(steps(offset)).zip(extents.into_iter().zip(strides))
            {
                peer = match step {
                    0 => peer,
                    1 if at + 1 < extent => peer.wrapping_add(stride),
                    -1 if at > 0 => peer.wrapping_sub(stride),
                    _ => return None,
                };
            }
            Some(peer)
        }
    }

    /// Number of messages of an exchange.
    #[must_use]
    pub fn messages(&self, stencil: Stencil) -> u64 {
        let pairs = |offset: &u8| {
            let sides = self.extents.into_iter().zip(steps(*offset));
            sides.map(|(extent, step)| u64::from(extent - u32::from(step != 0))).product::<u64>()
        };
        stencil.offsets().iter().map(pairs).sum()
    }

    /// Neighbours of `rank` in the order of their offsets.
    pub fn neighbours(&self, stencil: Stencil, rank: u32) -> impl Iterator<Item = u32> {
        let around = self.around(rank);
        stencil.offsets().iter().filter_map(move |offset| around(*offset))
    }

    /// The neighbour of `rank` with this number, and the number of `rank` among that one's.
    #[must_use]
    pub fn neighbour(&self, stencil: Stencil, rank: u32, number: u32) -> Option<[u32; 2]> {
        let around = self.around(rank);
        let known =
            stencil.offsets().iter().filter_map(|&offset| Some([offset.into(), around(offset)?]));
        let [offset, peer] = known.into_iter().nth(number as usize)?;
        let back = u32::from(LAST) - offset;
        let around = self.around(peer);
        let before = stencil.offsets().iter().take_while(|other| u32::from(**other) < back);
        let number = before.filter(|other| around(**other).is_some()).count();
        Some([peer, u32::try_from(number).ok()?])
    }

    /// Neighbours of a sweep, which follows x and y: those before `rank`, or behind it.
    pub fn swept(&self, rank: u32, step: SweepStep) -> impl Iterator<Item = u32> {
        let offsets = match step {
            SweepStep::Before => [SELF - 1, SELF - 3],
            SweepStep::Behind => [SELF + 1, SELF + 3],
        };
        let around = self.around(rank);
        offsets.into_iter().filter_map(around)
    }

    /// Number of messages of a sweep.
    #[must_use]
    pub fn swept_messages(&self) -> u64 {
        let [x, y, z] = self.extents.map(u64::from);
        z * ((x - 1) * y + x * (y - 1))
    }

    /// Most ranks that a sweep reaches at the same time.
    #[must_use]
    pub fn front(&self) -> u32 {
        let [x, y, z] = self.extents;
        x.min(y).saturating_mul(z)
    }
}

/// Direction along a sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SweepStep {
    /// To the neighbours that a rank waits for.
    Before,
    /// To those that wait for it.
    Behind,
}

/// Emits an exchange with all neighbours, after a calculation if there is one.
pub(super) fn halo<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    grid: &Grid,
    stencil: Stencil,
    compute: Option<Picos>,
) -> Result<(), S::Error> {
    let calc = compute.map(|duration| out.calc(duration)).transpose()?;
    calc.map_or(Ok(()), |calc| out.start(calc))?;
    let mut last = calc;
    for peer in grid.neighbours(stencil, at.rank) {
        let send = out.send(peer, at.size)?;
        out.follows(send, calc)?;
        out.end(send)?;
        last = None;
    }
    last.map_or(Ok(()), |calc| out.end(calc))?;
    for peer in grid.neighbours(stencil, at.rank) {
        out.receive_alone(peer, at.size)?;
    }
    Ok(())
}

/// Emits a sweep: messages from the neighbours before, a calculation, messages to those behind.
pub(super) fn sweep<S: Sink>(
    out: &mut Script<'_, S>,
    at: &Place,
    grid: &Grid,
    compute: Option<Picos>,
) -> Result<(), S::Error> {
    let mut received = [None; 2];
    for (place, peer) in received.iter_mut().zip(grid.swept(at.rank, SweepStep::Before)) {
        let receive = out.receive(peer, at.size)?;
        out.start(receive)?;
        *place = Some(receive);
    }
    let calc = out.calc(compute.unwrap_or_default())?;
    out.follows(calc, received[0])?;
    if let Some(second) = received[1] {
        out.requires(calc, second)?;
    }
    let mut last = Some(calc);
    for peer in grid.swept(at.rank, SweepStep::Behind) {
        let send = out.send(peer, at.size)?;
        out.requires(send, calc)?;
        out.end(send)?;
        last = None;
    }
    last.map_or(Ok(()), |calc| out.end(calc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_balanced_grid_has_all_ranks_and_extents_near_each_other() {
        for (ranks, dimensions, extents) in [
            (40, 2, [8, 5, 1]),
            (64, 3, [4, 4, 4]),
            (28_000, 2, [175, 160, 1]),
            (13, 2, [13, 1, 1]),
            (1, 3, [1, 1, 1]),
            (12, 3, [3, 2, 2]),
            (u32::MAX - 1, 1, [u32::MAX - 1, 1, 1]),
        ] {
            assert_eq!(Grid::balanced(ranks, dimensions).extents, extents, "{ranks}");
        }
        assert_eq!(Grid::of([8, 5, 1], 40).unwrap().ranks(), 40);
        assert_eq!(Grid::of([8, 5, 2], 40), None);
        assert_eq!(Grid::of([1 << 31, 2, 1], 0), None);
    }

    #[test]
    fn neighbours_are_those_of_the_grid_and_number_each_other() {
        let grid = Grid { extents: [3, 3, 3] };
        let count = |stencil, rank| grid.neighbours(stencil, rank).count();
        assert_eq!([0, 1, 4, 13].map(|rank| count(Stencil::Faces, rank)), [3, 4, 5, 6]);
        assert_eq!([0, 1, 4, 13].map(|rank| count(Stencil::Around, rank)), [7, 11, 17, 26]);
        let flat = Grid { extents: [4, 3, 1] };
        let around: Vec<u32> = flat.neighbours(Stencil::Faces, 5).collect();
        assert_eq!(around, [1, 4, 6, 9]);
        for (grid, stencil) in
            [(grid, Stencil::Faces), (grid, Stencil::Around), (flat, Stencil::Faces)]
        {
            let mut messages = 0;
            for rank in 0..grid.ranks() {
                for (number, peer) in (0..).zip(grid.neighbours(stencil, rank)) {
                    let [found, back] = grid.neighbour(stencil, rank, number).unwrap();
                    assert_eq!(found, peer);
                    assert_eq!(grid.neighbour(stencil, peer, back), Some([rank, number]));
                    messages += 1;
                }
            }
            assert_eq!(grid.messages(stencil), messages);
            assert_eq!(grid.neighbour(stencil, 0, 26), None);
        }
    }

    #[test]
    fn a_sweep_of_the_papers_grid_crosses_its_edges_once() {
        // 5×8 ranks have 67 edges, 140×200 have 55,660.
        for (extents, edges) in [([5, 8, 1], 67), ([140, 200, 1], 55_660)] {
            let grid = Grid { extents };
            let behind = |rank| grid.swept(rank, SweepStep::Behind).count() as u64;
            assert_eq!((0..grid.ranks()).map(behind).sum::<u64>(), edges);
            assert_eq!(grid.swept_messages(), edges);
        }
    }
}
