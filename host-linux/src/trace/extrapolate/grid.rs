//! The grid of a traced program: which of its ranks run the same program, and where their peers
//! are.

use std::collections::{BTreeSet, HashMap};

use super::build::{Traced, count};
use super::communication::{Difference, Misfit, plain};
use super::fit::{self, SizeOn};
use super::mapping::{DIMENSIONS, Dimension, Extents, Mapping, Vector};
use super::{ExtrapolateError, between};

/// Extents that are given, and those of the trace, if these are given too.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grid {
    /// Extents in the trace.
    pub traced: Option<Vec<u32>>,
    /// Extents to extrapolate to.
    pub target: Vec<u32>,
}

/// Ways that the ranks use, if those of a class do the same.
fn ways(all: &[Traced<'_>], mapping: &Mapping) -> Result<BTreeSet<Vector>, Misfit> {
    let mut ways = BTreeSet::new();
    let mut firsts: HashMap<[u32; DIMENSIONS], u32> = HashMap::new();
    for rank in 0..count(all) {
        let first = *firsts.entry(mapping.class(rank)).or_insert(rank);
        let [mut known, mut own] = [first, rank].map(|rank| plain(all, rank, mapping));
        for number in 1.. {
            match [known.next().transpose()?, own.next().transpose()?] {
                [None, None] => break,
                [Some(known), Some(own)] if known.is_like(&own) => ways.extend(own.way()),
                both => {
                    let difference = Difference::new([first, rank], number, both);
                    return Err(Misfit::Differ(difference));
                }
            }
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

/// Traced extents to try, and whether the dimensions are rings if that is known.
struct Candidate {
    extents: Vec<u32>,
    rings: Option<Vec<bool>>,
}

/// The grid of `MPI_Cart_create` if it has the given extents, else these; else all of as many ranks.
fn candidates(all: &[Traced<'_>], grid: &Grid, rings: Option<&[bool]>) -> Vec<Candidate> {
    let first = all.first();
    let mut cartesian = first.into_iter().flat_map(|first| &first.grids).filter_map(|dimensions| {
        let (extents, rings): (Vec<u32>, Vec<bool>) = dimensions.iter().copied().unzip();
        let is_wanted = match &grid.traced {
            Some(traced) => extents == *traced,
            None => extents.len() == grid.target.len(),
        };
        is_wanted.then_some(Candidate { extents, rings: Some(rings) })
    });
    if let Some(created) = cartesian.next() {
        return vec![created];
    }
    let all = match &grid.traced {
        Some(traced) => vec![traced.clone()],
        None => products(count(all), grid.target.len()),
    };
    let candidate = |extents| Candidate { extents, rings: rings.map(<[bool]>::to_vec) };
    all.into_iter().map(candidate).collect()
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
struct Fit {
    mapping: Mapping,
    ways: BTreeSet<Vector>,
}

/// A grid that does not.
struct NoFit {
    mapping: Mapping,
    misfit: Misfit,
}

/// The grid of a trace; `rings` tells which dimensions are rings, if that is known.
fn find(
    all: &[Traced<'_>],
    grid: &Grid,
    rings: Option<&[bool]>,
) -> Result<Mapping, ExtrapolateError> {
    if !(1..=DIMENSIONS).contains(&grid.target.len()) {
        return Err(ExtrapolateError::Dimensions);
    }
    let ranks = count(all);
    let (mut fits, mut misfits, mut refused) = (vec![], vec![], None);
    for Candidate { extents, rings } in candidates(all, grid, rings) {
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
            let checked = |ways| between::check(all, &mapping).map(|_taken| ways);
            match ways(all, &mapping).and_then(checked) {
                Ok(ways) => fits.push(Fit { mapping, ways }),
                Err(misfit) => misfits.push(NoFit { mapping, misfit }),
            }
        }
    }
    // Fewest ways; among equal ones, no ring where nothing leads around it.
    let rings = |mapping: &Mapping| mapping.dimensions.iter().filter(|one| one.is_ring).count();
    fits.sort_by_key(|Fit { mapping, ways }| (ways.len(), rings(mapping)));
    let mut fits = fits.into_iter();
    let Some(Fit { mapping, ways }) = fits.next() else {
        return Err(no_grid(misfits, refused, grid.target.len()));
    };
    let is_tie = |other: &Fit| {
        let differs = other.ways != ways || other.mapping.extents() != mapping.extents();
        other.ways.len() == ways.len() && differs
    };
    match fits.find(is_tie) {
        Some(other) => {
            let grids = [&mapping, &other.mapping];
            let grids = grids.map(|one| Extents(&one.dimensions, |one| one.traced).to_string());
            Err(ExtrapolateError::Tie { grids })
        }
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
    let narrow = dimensions.iter().position(Dimension::is_narrow)?;
    Some(ExtrapolateError::Narrow { extents: mapping.extents(), dimension: narrow + 1 })
}

/// Why no grid fits: where the only one that was tried fails, else that none does.
fn no_grid(
    mut misfits: Vec<NoFit>,
    refused: Option<ExtrapolateError>,
    dimensions: usize,
) -> ExtrapolateError {
    let mut all = misfits.iter().map(|one| one.mapping.extents());
    let Some(first) = all.next() else {
        return refused.unwrap_or(ExtrapolateError::NoGrid { dimensions });
    };
    if all.any(|other| other != first) {
        return ExtrapolateError::NoGrid { dimensions };
    }
    // That of rings says more if only a way is not clear.
    let is_unclear = |one: &NoFit| matches!(one.misfit, Misfit::Unclear(_));
    let at = if misfits.last().is_some_and(is_unclear) { misfits.len() - 1 } else { 0 };
    let NoFit { mapping, misfit } = misfits.swap_remove(at);
    misfit.of(&mapping)
}

/// The error, or that the traced ranks are a grid of more dimensions than are given.
pub(super) fn or_other_shape(
    error: ExtrapolateError,
    all: &[Traced<'_>],
    grid: &Grid,
) -> ExtrapolateError {
    use ExtrapolateError::{Misfit, NoGrid};
    if grid.traced.is_some() || !matches!(error, Misfit { .. } | NoGrid { .. }) {
        return error;
    }
    // All dimensions grow.
    let extent = count(all).saturating_add(1);
    let more = grid.target.len() + 1..=DIMENSIONS;
    let mut others = more.map(|dimensions| Grid { traced: None, target: vec![extent; dimensions] });
    let Some(mapping) = others.find_map(|other| find(all, &other, None).ok()) else { return error };
    let larger = mapping.dimensions.iter().map(|one| (one.traced + 1).to_string());
    let example = larger.collect::<Vec<_>>().join("x");
    ExtrapolateError::OtherShape { extents: mapping.extents(), example }
}

/// Sizes of the communications of each rank of the last trace, on the ranks to extrapolate to.
///
/// # Errors
///
/// A smaller trace, extrapolated to the ranks of the last one, differs from it; or the sizes follow
/// no known form.
pub(super) fn sizes(
    smaller: &[Vec<Traced<'_>>],
    last: &[Traced<'_>],
    mappings: &[Mapping],
    target: u32,
) -> Result<Vec<Vec<[u64; 2]>>, ExtrapolateError> {
    let Some((mapping, mappings)) = mappings.split_last() else { return Ok(Vec::new()) };
    let ranks = count(last);
    let mut known: HashMap<Vec<u64>, Option<u64>> = HashMap::new();
    let mut of_rank = |rank: u32| {
        let others = smaller.iter().zip(mappings).map(|(all, mapping)| {
            let merged = between::merged(all, mapping.source(rank), mapping);
            let merged = merged.map_err(|misfit| misfit.of(mapping))?.into_iter();
            Ok((count(all), merged.filter(|one| !one.is_null())))
        });
        let mut others = others.collect::<Result<Vec<_>, ExtrapolateError>>()?;
        let (mut found, mut own) = (Vec::new(), plain(last, rank, mapping));
        loop {
            let one = own.next().transpose().map_err(|misfit| misfit.of(mapping))?;
            let message = found.len() + 1;
            let mut sizes = Vec::new();
            for (traced, others) in &mut others {
                let other = others.next();
                if other.map(|other| other.step) != one.map(|one| one.step) {
                    let Difference { what, .. } = Difference::new([rank; 2], message, [one, other]);
                    let traced = *traced;
                    return Err(ExtrapolateError::HeldOut { traced, ranks, rank, message, what });
                }
                sizes.extend(other.map(|other| (*traced, other.bytes)));
            }
            let Some(one) = one else { return Ok(found) };
            sizes.push((ranks, one.bytes));
            let mut grown = [0; 2];
            for (at, grown) in grown.iter_mut().enumerate() {
                let one = |(ranks, bytes): &(u32, [u64; 2])| {
                    Some(SizeOn { ranks: *ranks, bytes: *bytes.get(at)? })
                };
                let one: Vec<_> = sizes.iter().filter_map(one).collect();
                let key = one.iter().map(|size| size.bytes).collect();
                let size = *known.entry(key).or_insert_with(|| fit::size(&one, target));
                let wrong = || ExtrapolateError::Sizes { rank, message, sizes: one.clone() };
                *grown = size.ok_or_else(wrong)?;
            }
            found.push(grown);
        }
    };
    (0..ranks).map(&mut of_rank).collect()
}
