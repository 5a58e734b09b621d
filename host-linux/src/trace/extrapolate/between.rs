//! Programs of ranks between the two of a dimension: what the ranks at both ends do, where a call
//! with `MPI_PROC_NULL` at one end is that of the other with a peer.

use std::collections::HashMap;

use super::build::Traced;
use super::communication::{Communication, Difference, Misfit, communications};
use super::mapping::Mapping;

/// Communications of a program, from those of traced ranks on all sides. Those with `MPI_PROC_NULL`
/// are those of all of these.
pub(super) fn merged<'t>(
    all: &'t [Traced<'_>],
    program: u32,
    mapping: &Mapping,
) -> Result<Vec<Communication<'t>>, Misfit> {
    let ends = mapping.ends_of(program);
    let mut each: Vec<_> = ends.iter().map(|rank| communications(all, *rank, mapping)).collect();
    let mut found = Vec::new();
    loop {
        let next = each.iter_mut().map(|one| one.next().transpose());
        let next = next.collect::<Result<Vec<_>, _>>()?;
        let is_message = |one: &Option<Communication<'_>>| one.is_some_and(|one| !one.is_null());
        let at = next.iter().position(is_message).unwrap_or(0);
        let known = next.get(at).copied().flatten();
        let fits = |other: &Option<Communication<'_>>| match (known, other) {
            (Some(known), Some(other)) => known.is_like(other) || known.is_instead_of(other),
            (known, other) => known.is_none() && other.is_none(),
        };
        if let Some(other) = next.iter().position(|other| !fits(other)) {
            let ranks = [at, other].map(|at| ends.get(at).copied().unwrap_or(0));
            let both = [known, next.get(other).copied().flatten()];
            return Err(Misfit::Ends(Difference::new(ranks, found.len() + 1, both)));
        }
        match known {
            Some(known) => found.push(known),
            None => return Ok(found),
        }
    }
}

/// Checks that all programs between two ranks follow, and that what they have with `MPI_PROC_NULL` is
/// along another dimension: has a peer at other ranks with as many communications, or may be along a
/// dimension of one rank. Returns how many communications of a program are taken for the latter, or
/// of a traced inner rank are with `MPI_PROC_NULL` without a dimension of one rank.
pub(super) fn check(all: &[Traced<'_>], mapping: &Mapping) -> Result<usize, Misfit> {
    let between = || (0..mapping.programs()).filter(|program| mapping.is_between(*program));
    if between().next().is_none() {
        if has_single(all, mapping) {
            return Ok(0);
        }
        let inner = (0..).zip(all).map(|(rank, _)| rank).filter(|rank| mapping.is_inner(*rank));
        let mut nulls = inner.map(|rank| {
            communications(all, rank, mapping)
                .try_fold(0, |nulls, one| Ok(nulls + usize::from(one?.is_null())))
        });
        return nulls.try_fold(0, |most: usize, nulls| Ok(most.max(nulls?)));
    }
    let mut with_peers: HashMap<usize, Vec<bool>> = HashMap::new();
    for (rank, _) in (0..).zip(all) {
        let one = communications(all, rank, mapping).map(|one| Ok(!one?.is_null()));
        let one = one.collect::<Result<Vec<_>, Misfit>>()?;
        let known = with_peers.entry(one.len()).or_insert_with(|| vec![false; one.len()]);
        known.iter_mut().zip(one).for_each(|(known, one)| *known |= one);
    }
    let (may_be_single, mut taken) = (has_single(all, mapping), 0);
    for program in between() {
        let merged = merged(all, program, mapping)?;
        let with_peers = with_peers.get(&merged.len()).into_iter().flatten();
        let lacking = merged.iter().zip(with_peers).map(|(one, with)| one.is_null() && !with);
        if let Some(at) = lacking.clone().position(|lacks| lacks && !may_be_single) {
            return Err(Misfit::Null { rank: mapping.origin(program), number: at + 1 });
        }
        taken = taken.max(lacking.filter(|lacks| *lacks).count());
    }
    Ok(taken)
}

/// True if there may be an open dimension of one rank: the program has one where it has topologies of
/// `MPI_Cart_create`, else the grid.
fn has_single(all: &[Traced<'_>], mapping: &Mapping) -> bool {
    let created = all.first().map(|first| first.grids.concat()).filter(|all| !all.is_empty());
    match created {
        Some(created) => created.contains(&(1, false)),
        None => mapping.dimensions.iter().any(|one| one.target == 1 && !one.is_ring),
    }
}
