//! Ranks of a traced grid and of a larger one. The last dimension varies fastest, as in
//! `MPI_Cart_create`.

use std::fmt;

/// Largest number of dimensions.
pub(super) const DIMENSIONS: usize = 3;

/// A vector in the grid, or the coordinates of a rank.
pub(super) type Vector = [i32; DIMENSIONS];

/// A dimension of the grid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Dimension {
    /// Extent in the trace.
    pub traced: u32,
    /// Extent of the larger grid.
    pub target: u32,
    /// True if its last rank is a neighbour of the first.
    pub is_ring: bool,
}

impl Dimension {
    pub(super) const fn grows(&self) -> bool {
        self.traced != self.target
    }

    /// True for two ranks that are to have others between them.
    pub(super) const fn has_ends_only(&self) -> bool {
        self.grows() && self.traced == 2 && !self.is_ring
    }

    /// True if it grows, and no rank of the trace has neighbours on both sides, nor ends from which it
    /// follows what such a rank does.
    pub(super) const fn is_narrow(&self) -> bool {
        self.grows() && self.traced < 3 && !self.has_ends_only()
    }

    /// Number of programs: those of the traced ranks, and one between two ends.
    const fn programs(&self) -> u32 {
        if self.has_ends_only() { 3 } else { self.traced }
    }

    /// Program that the coordinate `at` runs: the first, the last, or one between them; on a ring the
    /// first, which may do what no other does, or one of the others.
    const fn source(&self, at: u32) -> u32 {
        match self.programs() {
            _ if !self.grows() => at,
            _ if at == 0 => 0,
            programs if programs < 3 => at % programs,
            programs if self.is_ring => 1 + (at - 1) % (programs - 1),
            programs if at + 1 == self.target => programs - 1,
            programs => 1 + (at - 1) % (programs - 2),
        }
    }

    /// Traced coordinates from which a program follows: twice its own, or two ends.
    const fn ends_of(&self, program: u32) -> [u32; 2] {
        if self.has_ends_only() { [program / 2, program.div_ceil(2)] } else { [program; 2] }
    }

    /// Equal for coordinates that run the same program.
    const fn class(&self, at: u32) -> u32 {
        if self.grows() { self.end(at) } else { at }
    }

    /// Way from one traced coordinate to another. `None` if it grows and it is not clear how: between
    /// the ends, or if both ways around a ring are as long.
    const fn way(&self, from: i32, to: i32) -> Option<i32> {
        let (way, extent) = (to - from, self.traced.cast_signed());
        match way {
            way if !self.is_ring && self.grows() && way.abs() + 1 == extent && extent > 2 => None,
            way if !self.is_ring => Some(way),
            way if 2 * way.abs() == extent => {
                if self.grows() {
                    None
                } else {
                    Some(way)
                }
            }
            way if 2 * way > extent => Some(way - extent),
            way if -2 * way > extent => Some(way + extent),
            way => Some(way),
        }
    }

    /// 0 at the first coordinate, 2 at the last, 1 between them and on a ring.
    const fn end(&self, at: u32) -> u32 {
        match at {
            _ if self.is_ring => 1,
            0 => 0,
            at if at + 1 == self.traced => 2,
            _ => 1,
        }
    }
}

/// A traced grid and a larger one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mapping {
    pub(super) dimensions: Vec<Dimension>,
}

/// Coordinates of a rank in a grid with these extents.
fn coordinates(rank: u32, extents: impl DoubleEndedIterator<Item = u32>) -> Vector {
    let (mut rest, mut found, mut count) = (rank, [0; DIMENSIONS], 0);
    for (extent, at) in extents.rev().zip(&mut found) {
        *at = (rest % extent.max(1)).cast_signed();
        rest /= extent.max(1);
        count += 1;
    }
    if let Some(found) = found.get_mut(..count) {
        found.reverse();
    }
    found
}

/// Rank of these coordinates.
fn rank_of(at: Vector, extents: impl Iterator<Item = u32>) -> u32 {
    let step = |rank: u32, (extent, at): (u32, i32)| {
        rank.wrapping_mul(extent).wrapping_add(at.cast_unsigned())
    };
    extents.zip(at).fold(0, step)
}

impl Mapping {
    /// `copies` times the traced ranks, without messages between the copies.
    pub(super) fn of_copies(ranks: u32, copies: u32) -> Self {
        let alone = |traced, target| Dimension { traced, target, is_ring: false };
        Self { dimensions: vec![alone(1, copies), alone(ranks, ranks)] }
    }

    fn traced(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.dimensions.iter().map(|one| one.traced)
    }

    fn target(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.dimensions.iter().map(|one| one.target)
    }

    /// Number of ranks; `None` beyond 2³¹.
    pub(super) fn ranks(&self) -> Option<u32> {
        let ranks = self.target().try_fold(1u32, u32::checked_mul)?;
        (ranks < 1 << 31).then_some(ranks)
    }

    pub(super) fn at_traced(&self, rank: u32) -> Vector {
        coordinates(rank, self.traced())
    }

    pub(super) fn at_target(&self, rank: u32) -> Vector {
        coordinates(rank, self.target())
    }

    pub(super) fn target_rank(&self, at: Vector) -> u32 {
        rank_of(at, self.target())
    }

    /// Number of programs.
    pub(super) fn programs(&self) -> u32 {
        self.dimensions.iter().map(Dimension::programs).product()
    }

    /// Number of the program that `rank` runs: of traced ranks in their order.
    pub(super) fn source(&self, rank: u32) -> u32 {
        let mut at = self.at_target(rank);
        for (one, at) in self.dimensions.iter().zip(&mut at) {
            *at = one.source(at.cast_unsigned()).cast_signed();
        }
        rank_of(at, self.dimensions.iter().map(Dimension::programs))
    }

    /// Traced ranks from which a program follows: that which has it, or those on all sides of it.
    pub(super) fn ends_of(&self, program: u32) -> Vec<u32> {
        let place = coordinates(program, self.dimensions.iter().map(Dimension::programs));
        let mut all = vec![0];
        for (one, place) in self.dimensions.iter().zip(place) {
            let [first, last] = one.ends_of(place.cast_unsigned());
            let ends = if first == last { 1 } else { 2 };
            let with = |rank: u32| {
                [first, last].into_iter().take(ends).map(move |at| rank * one.traced + at)
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all
    }

    /// True for a program of ranks between two traced ones.
    pub(super) fn is_between(&self, program: u32) -> bool {
        self.ends_of(program).len() > 1
    }

    /// Extents in the trace, without what tells rings.
    pub(super) fn extents(&self) -> String {
        Extents(&self.dimensions, |one| one.traced).to_string().replace('r', "")
    }

    /// The first of [`Mapping::ends_of`].
    pub(super) fn origin(&self, program: u32) -> u32 {
        let mut at = coordinates(program, self.dimensions.iter().map(Dimension::programs));
        for (one, at) in self.dimensions.iter().zip(&mut at) {
            *at = one.ends_of(at.cast_unsigned())[0].cast_signed();
        }
        rank_of(at, self.traced())
    }

    /// Equal for traced ranks that have to run the same program.
    pub(super) fn class(&self, rank: u32) -> [u32; DIMENSIONS] {
        let at = self.at_traced(rank);
        let mut class = [0; DIMENSIONS];
        for ((one, at), class) in self.dimensions.iter().zip(at).zip(&mut class) {
            *class = one.class(at.cast_unsigned());
        }
        class
    }

    /// Place in the larger grid of a traced rank that is named by its number, such as a root: at the
    /// same end, else at the same coordinates.
    pub(super) fn end(&self, rank: u32) -> Vector {
        let mut at = self.at_traced(rank);
        for (one, at) in self.dimensions.iter().zip(&mut at) {
            if one.grows() && one.traced > 1 && at.cast_unsigned() + 1 == one.traced {
                *at = (one.target - 1).cast_signed();
            }
        }
        at
    }

    /// True if the members are all ranks that differ from `rank` in the dimensions that vary only,
    /// in order.
    pub(super) fn is_line(&self, members: &[u32], rank: u32, varies: [bool; DIMENSIONS]) -> bool {
        let own = self.at_traced(rank);
        let count = self.traced().product::<u32>();
        let is_on = |other: &u32| {
            let at = self.at_traced(*other);
            at.iter().zip(own).zip(varies).all(|((at, own), varies)| varies || *at == own)
        };
        (0..count).filter(is_on).eq(members.iter().copied())
    }

    /// Ends of the dimensions at which a traced rank is, each as 0, 1 or 2.
    pub(super) fn ends(&self, rank: u32) -> [u32; DIMENSIONS] {
        let mut ends = [1; DIMENSIONS];
        let at = self.at_traced(rank);
        for ((one, at), end) in self.dimensions.iter().zip(at).zip(&mut ends) {
            *end = one.end(at.cast_unsigned());
        }
        ends
    }

    /// True for a traced rank between others along all dimensions of more than one.
    pub(super) fn is_inner(&self, rank: u32) -> bool {
        let ends = self.ends(rank);
        self.dimensions.iter().zip(ends).all(|(one, end)| end == 1 || one.traced == 1)
    }

    /// Name of [`Mapping::ends`].
    pub(super) fn name(&self, ends: [u32; DIMENSIONS]) -> String {
        let words = ends.iter().take(self.dimensions.len()).map(|end| match end {
            0 => "first",
            1 => "inner",
            _ => "last",
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Way from one traced rank to another; `None` if it is not clear.
    pub(super) fn way(&self, from: u32, to: u32) -> Option<Vector> {
        let (from, to) = (self.at_traced(from), self.at_traced(to));
        let mut way = [0; DIMENSIONS];
        for (((one, from), to), way) in self.dimensions.iter().zip(from).zip(to).zip(&mut way) {
            *way = one.way(from, to)?;
        }
        Some(way)
    }

    /// A way in the larger grid.
    pub(super) fn step(&self, way: Vector) -> Step {
        let wraps = self.dimensions.iter().zip(way).any(|(one, way)| one.is_ring && way != 0);
        Step { way, offset: rank_of(way, self.target()), wraps }
    }

    /// Rank to which `step` leads from `rank` in the larger grid.
    #[inline]
    pub(super) fn after(&self, rank: u32, step: &Step) -> u32 {
        if !step.wraps {
            return rank.wrapping_add(step.offset);
        }
        let mut at = self.at_target(rank);
        for ((one, way), at) in self.dimensions.iter().zip(step.way).zip(&mut at) {
            *at += way;
            if one.is_ring {
                *at = at.rem_euclid(one.target.cast_signed());
            }
        }
        self.target_rank(at)
    }
}

/// A way to another rank of the larger grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    way: Vector,
    /// Difference of the ranks, modulo 2³².
    offset: u32,
    /// True if the way may lead around a ring.
    wraps: bool,
}

/// Extents as `5x8`, with `r` behind those of rings.
pub(super) struct Extents<'d>(pub(super) &'d [Dimension], pub(super) fn(&Dimension) -> u32);

impl fmt::Display for Extents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.0.iter().enumerate() {
            let ring = if one.is_ring { "r" } else { "" };
            let between = if number > 0 { "x" } else { "" };
            write!(f, "{between}{}{ring}", self.1(one))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(extents: &[(u32, u32, bool)]) -> Mapping {
        let one = |&(traced, target, is_ring)| Dimension { traced, target, is_ring };
        Mapping { dimensions: extents.iter().map(one).collect() }
    }

    #[test]
    fn corners_and_edges_stay_and_the_inner_ranks_repeat() {
        let grid = grid(&[(4, 7, false), (3, 5, false)]);
        let sources: Vec<_> = (0..35).map(|rank| grid.source(rank)).collect();
        // Rows 0, 1, 2, 1, 2, 1, 3 of columns 0, 1, 1, 1, 2.
        let rows = [0, 1, 2, 1, 2, 1, 3];
        let expected: Vec<_> =
            rows.iter().flat_map(|row| [0, 1, 1, 1, 2].map(|column| row * 3 + column)).collect();
        assert_eq!(sources, expected);
        let step = grid.step(grid.way(4, 1).unwrap());
        assert_eq!(grid.after(17, &step), 12, "one row up");
    }

    #[test]
    fn ways_around_rings_stay_short_and_halves_are_refused() {
        let torus = grid(&[(4, 8, true), (3, 6, true)]);
        let step = torus.step(torus.way(0, 11).unwrap());
        assert_eq!((torus.after(0, &step), torus.after(7, &step)), (47, 0));
        assert_eq!(torus.way(0, 6), None, "two rows of four either way");
        let copies = Mapping::of_copies(40, 700);
        assert_eq!((copies.ranks(), copies.source(27_999)), (Some(28_000), 39));
        let step = copies.step(copies.way(39, 31).unwrap());
        assert_eq!(copies.after(79, &step), 71);
    }
}
