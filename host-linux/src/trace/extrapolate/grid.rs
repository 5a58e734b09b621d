//! The grid of a traced program: which of its ranks run the same program, and where their peers
//! are.

use std::collections::{BTreeSet, HashMap};

use loggap_core::goal::{ANY, OpKind};

use super::build::Traced;
use super::mapping::{DIMENSIONS, Dimension, Extents, Mapping, Vector};
use super::{ExtrapolateError, fit};

/// Extents that are given, and those of the trace, if these are given too.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grid {
    /// Extents in the trace.
    pub traced: Option<Vec<u32>>,
    /// Extents to extrapolate to.
    pub target: Vec<u32>,
}

/// A communication of a rank: a message, or a collective operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step<'t> {
    Send { way: Vector, tag: u64 },
    Receive { way: Vector, tag: u64 },
    FromAny { tag: u64 },
    Call { name: &'t str, tag: u64 },
}

/// A communication, and its bytes: of a message, or sent and received.
type Sized<'t> = (Step<'t>, [u64; 2]);

/// Why ranks do not form a grid.
#[derive(Clone, Copy, Debug)]
pub enum Misfit {
    /// Two ranks that should do the same differ in this communication.
    Differ([u32; 2], usize),
    /// A peer of this rank is at the other end, or half a ring away.
    Unclear(u32),
}

/// True if ranks with the same place may do so: the roots of collectives have other sizes.
fn are_equal(one: &Sized<'_>, other: &Sized<'_>) -> bool {
    one.0 == other.0 && (one.1 == other.1 || matches!(one.0, Step::Call { .. }))
}

/// Communications of a rank, with its peers as ways.
fn steps<'t>(
    traced: &'t Traced<'_>,
    rank: u32,
    mapping: &Mapping,
) -> impl Iterator<Item = Result<Sized<'t>, Misfit>> {
    let mut calls = traced.calls.iter().peekable();
    let ops = (0..).zip(&traced.captured.ops);
    // Communicators of parts, by whose numbers tags differ, have other numbers in each part.
    let plain = |tag: u64| tag % (1 << 32);
    ops.filter_map(move |(at, op)| {
        let way = |peer| mapping.way(rank, peer).ok_or(Misfit::Unclear(rank));
        match op.kind {
            OpKind::Send { peer, size, tag } => {
                Some(way(peer).map(|way| (Step::Send { way, tag: plain(tag) }, [size, 0])))
            }
            OpKind::Receive { peer: ANY, size, tag } => {
                Some(Ok((Step::FromAny { tag: plain(tag) }, [size, 0])))
            }
            OpKind::Receive { peer, size, tag } => {
                Some(way(peer).map(|way| (Step::Receive { way, tag: plain(tag) }, [size, 0])))
            }
            OpKind::Calc { .. } => {
                let noted = calls.next_if(|call| call.op == at)?;
                let call = &noted.call;
                let step = Step::Call { name: &call.name, tag: plain(noted.tag) };
                Some(Ok((step, [call.sent, call.received])))
            }
        }
    })
}

/// Ways that the ranks use, if those of a class do the same.
fn ways(all: &[Traced<'_>], mapping: &Mapping) -> Result<BTreeSet<Vector>, Misfit> {
    let mut ways = BTreeSet::new();
    let mut firsts: HashMap<[u32; DIMENSIONS], u32> = HashMap::new();
    for (rank, traced) in (0..).zip(all) {
        let first = *firsts.entry(mapping.class(rank)).or_insert(rank);
        let Some(other) = all.get(first as usize) else { continue };
        let mut others = steps(other, first, mapping);
        let mut count = 0;
        for step in steps(traced, rank, mapping) {
            let step = step?;
            if let Step::Send { way, .. } | Step::Receive { way, .. } = step.0 {
                ways.insert(way);
            }
            if !others.next().transpose()?.is_some_and(|other| are_equal(&other, &step)) {
                return Err(Misfit::Differ([first, rank], count));
            }
            count += 1;
        }
        if others.next().is_some() {
            return Err(Misfit::Differ([first, rank], count));
        }
    }
    Ok(ways)
}

/// All products of `count` extents that are `ranks`.
fn products(ranks: u32, count: usize) -> Vec<Vec<u32>> {
    if count == 1 {
        return vec![vec![ranks]];
    }
    let divisors = (1..=ranks).filter(|extent| ranks.is_multiple_of(*extent));
    let with = |first: u32| {
        let rest = products(ranks / first, count - 1);
        rest.into_iter().map(move |rest| [vec![first], rest].concat())
    };
    divisors.flat_map(with).collect()
}

/// Traced extents to try, each with whether its dimensions are rings if that is known.
fn candidates(
    all: &[Traced<'_>],
    grid: &Grid,
    rings: Option<&[bool]>,
) -> Vec<(Vec<u32>, Option<Vec<bool>>)> {
    let rings = rings.map(<[bool]>::to_vec);
    if let Some(traced) = &grid.traced {
        return vec![(traced.clone(), rings)];
    }
    let ranks = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let first = all.first();
    let cartesian = first.into_iter().flat_map(|first| &first.grids);
    let mut cartesian = cartesian.filter(|dimensions| dimensions.len() == grid.target.len());
    if let Some(dimensions) = cartesian.next() {
        let (extents, rings) = dimensions.iter().copied().unzip();
        return vec![(extents, Some(rings))];
    }
    let products = products(ranks, grid.target.len()).into_iter();
    products.map(|extents| (extents, rings.clone())).collect()
}

/// The grids of all traces, of which the last is the largest.
pub(super) fn find_all(
    traces: &[Vec<Traced<'_>>],
    grid: &Grid,
) -> Result<Vec<Mapping>, ExtrapolateError> {
    let Some((last, smaller)) = traces.split_last() else { return Ok(Vec::new()) };
    let mapping = find(last, grid, None)?;
    let traced: Vec<u32> = mapping.dimensions.iter().map(|one| one.traced).collect();
    let rings: Vec<_> = mapping.dimensions.iter().map(|one| one.is_ring).collect();
    let one = |all: &Vec<Traced<'_>>| {
        let known = (all.len() == last.len()).then(|| traced.clone());
        find(all, &Grid { traced: known, target: traced.clone() }, Some(&rings))
    };
    let mut found = smaller.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    found.push(mapping);
    Ok(found)
}

/// A grid that fits, and its ways.
type Fit = (Mapping, BTreeSet<Vector>);

/// The grid of a trace; `rings` tells which dimensions are rings, if that is known.
fn find(
    all: &[Traced<'_>],
    grid: &Grid,
    rings: Option<&[bool]>,
) -> Result<Mapping, ExtrapolateError> {
    if grid.target.len() > DIMENSIONS {
        return Err(ExtrapolateError::Dimensions);
    }
    let ranks = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let (mut fits, mut misfits, mut refused): (Vec<Fit>, Vec<_>, _) = (vec![], vec![], None);
    for (extents, rings) in candidates(all, grid, rings) {
        let product = extents.iter().try_fold(1u32, |product, one| product.checked_mul(*one));
        if extents.len() != grid.target.len() || product != Some(ranks) {
            return Err(ExtrapolateError::Product { ranks });
        }
        for mapping in mappings(&extents, grid, rings.as_deref()) {
            if let Some(error) = unsuitable(&mapping) {
                let is_narrow = matches!(error, ExtrapolateError::Narrow { .. });
                refused = refused.filter(|_| !is_narrow).or(Some(error));
                continue;
            }
            match ways(all, &mapping) {
                Ok(ways) => fits.push((mapping, ways)),
                Err(misfit) => misfits.push((extents.clone(), mapping, misfit)),
            }
        }
    }
    // Fewest ways; among equal ones, no ring where nothing leads around it.
    let rings = |mapping: &Mapping| mapping.dimensions.iter().filter(|one| one.is_ring).count();
    fits.sort_by_key(|(mapping, ways)| (ways.len(), rings(mapping)));
    let mut fits = fits.into_iter();
    let Some((mapping, ways)) = fits.next() else {
        return Err(no_grid(&misfits, refused, grid.target.len()));
    };
    let extents = |mapping: &Mapping| Extents(&mapping.dimensions, |one| one.traced).to_string();
    let plain = |mapping: &Mapping| extents(mapping).replace('r', "");
    let is_tie = |(other, others): &Fit| {
        others.len() == ways.len() && (*others != ways || plain(other) != plain(&mapping))
    };
    match fits.find(is_tie) {
        Some((other, _)) => Err(ExtrapolateError::Tie { grids: [&mapping, &other].map(extents) }),
        None => Ok(mapping),
    }
}

/// Grids with these extents: all choices of rings that are not known.
fn mappings(extents: &[u32], grid: &Grid, rings: Option<&[bool]>) -> Vec<Mapping> {
    let choices = 0..1usize << extents.len();
    let is_ring = |choice: usize, at: usize| choice >> at & 1 != 0;
    let is_known = |choice: &usize| {
        let mut known = rings.into_iter().flatten().enumerate();
        known.all(|(at, ring)| is_ring(*choice, at) == *ring)
    };
    let mapping = |choice: usize| {
        let both = extents.iter().zip(&grid.target).enumerate();
        let one = |(at, (&traced, &target)): (usize, (&u32, &u32))| Dimension {
            traced,
            target,
            is_ring: is_ring(choice, at),
        };
        Mapping { dimensions: both.map(one).collect() }
    };
    choices.filter(is_known).map(mapping).collect()
}

/// Why a grid cannot grow.
fn unsuitable(mapping: &Mapping) -> Option<ExtrapolateError> {
    let dimensions = &mapping.dimensions;
    if let Some(at) = dimensions.iter().position(|one| one.target < one.traced) {
        return Some(ExtrapolateError::Smaller { dimension: at + 1 });
    }
    let is_narrow = dimensions.iter().any(|one| one.grows() && one.traced < 3);
    let extents = || Extents(dimensions, |one| one.traced).to_string().replace('r', "");
    is_narrow.then(|| ExtrapolateError::Narrow { extents: extents() })
}

/// Why no grid fits: where the only one that was tried fails, else that none does.
fn no_grid(
    misfits: &[(Vec<u32>, Mapping, Misfit)],
    refused: Option<ExtrapolateError>,
    dimensions: usize,
) -> ExtrapolateError {
    let Some((first, ..)) = misfits.first() else {
        return refused.unwrap_or(ExtrapolateError::NoGrid { dimensions });
    };
    if misfits.iter().any(|(extents, ..)| extents != first) {
        return ExtrapolateError::NoGrid { dimensions };
    }
    // That of rings says more if only a way is not clear.
    let of_rings = misfits.last().filter(|(.., misfit)| matches!(misfit, Misfit::Unclear(_)));
    match of_rings.or(misfits.first()) {
        Some((_, mapping, misfit)) => {
            let extents = Extents(&mapping.dimensions, |one| one.traced).to_string();
            ExtrapolateError::Misfit { extents, misfit: *misfit }
        }
        None => ExtrapolateError::NoGrid { dimensions },
    }
}

/// Sizes of the communications of each rank of the last trace, on the ranks to extrapolate to.
///
/// # Errors
///
/// A smaller trace, extrapolated to the ranks of the last one, differs from it; or the sizes follow
/// no known form.
pub(super) fn sizes(
    traces: &[(&[Traced<'_>], &Mapping)],
    target: u32,
) -> Result<Vec<Vec<[u64; 2]>>, ExtrapolateError> {
    let Some(((last, mapping), smaller)) = traces.split_last() else { return Ok(Vec::new()) };
    let count = |traced: &[Traced<'_>]| u32::try_from(traced.len()).unwrap_or(u32::MAX);
    let mut known: HashMap<Vec<u64>, Option<u64>> = HashMap::new();
    let mut of_rank = |rank: u32| {
        let Some(traced) = last.get(rank as usize) else { return Ok(Vec::new()) };
        let mut others: Vec<_> = smaller
            .iter()
            .filter_map(|(all, mapping)| {
                let source = mapping.source(rank);
                let steps = steps(all.get(source as usize)?, source, mapping);
                Some((count(all), steps))
            })
            .collect();
        let mut found = Vec::new();
        for step in steps(traced, rank, mapping) {
            let (step, own) = step.map_err(|_| ExtrapolateError::Ranks)?;
            let message = found.len() + 1;
            let mut sizes = Vec::new();
            for (ranks, others) in &mut others {
                let other = others.next().and_then(Result::ok).filter(|other| other.0 == step);
                let (_, other) = other.ok_or(ExtrapolateError::HeldOut {
                    traced: *ranks,
                    ranks: count(last),
                    rank,
                    message,
                })?;
                sizes.push((*ranks, other));
            }
            sizes.push((count(last), own));
            let mut grown = [0; 2];
            for (at, grown) in grown.iter_mut().enumerate() {
                let one = |(ranks, sizes): &(u32, [u64; 2])| Some((*ranks, *sizes.get(at)?));
                let one: Vec<_> = sizes.iter().filter_map(one).collect();
                let key = one.iter().map(|(_, size)| *size).collect();
                let size = *known.entry(key).or_insert_with(|| fit::size(&one, target));
                let wrong = || ExtrapolateError::Sizes { rank, message, sizes: one.clone() };
                *grown = size.ok_or_else(wrong)?;
            }
            found.push(grown);
        }
        for (ranks, others) in &mut others {
            if others.next().is_some() {
                let (traced, message) = (*ranks, found.len() + 1);
                return Err(ExtrapolateError::HeldOut {
                    traced,
                    ranks: count(last),
                    rank,
                    message,
                });
            }
        }
        Ok(found)
    };
    (0..count(last)).map(&mut of_rank).collect()
}
