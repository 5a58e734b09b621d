//! Communicators by an identity that their ranks agree on without a message: of the communicator
//! that a new one was made of, the call, the members, and how many the same were made before.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::sync::Arc;

use loggap_core::trace::{ANY_PEER, Direction, FOREIGN_PEER, NO_PEER, Part};

use crate::library::{self, DISTRIBUTED_GRAPH, Library, UNDEFINED};
use crate::requests::{Fast, Multiplied};

/// A communicator of this rank.
#[derive(Debug)]
pub(crate) struct Communicator {
    /// Number at this rank.
    pub(crate) number: u32,
    identity: u64,
    /// Ranks of the world in order; `None` for all in the world's order.
    members: Option<Arc<[i32]>>,
    /// The other group of an intercommunicator.
    remote: Option<Arc<[i32]>>,
    /// Own rank and number of ranks.
    pub(crate) rank: i32,
    pub(crate) size: usize,
    /// Neighbours that send to this rank, and that it sends to.
    pub(crate) neighbours: [usize; 2],
}

impl Communicator {
    /// Rank in the world of a peer of this communicator.
    pub(crate) fn world_rank(&self, library: &Library, rank: i32) -> i32 {
        if rank == library.proc_null {
            return NO_PEER;
        }
        if rank == library.any_source {
            return ANY_PEER;
        }
        member(self.remote.as_ref().or(self.members.as_ref()), rank).unwrap_or(FOREIGN_PEER)
    }

    /// Number of ranks that a collective operation sends to.
    pub(crate) fn peers(&self) -> usize {
        self.remote.as_ref().map_or(self.size, |remote| remote.len())
    }

    /// Rank in the world of the root of a collective operation.
    pub(crate) fn root(&self, library: &Library, root: i32) -> i32 {
        if root == library.root {
            return member(self.members.as_ref(), self.rank).unwrap_or(0);
        }
        self.world_rank(library, root)
    }

    /// True if this rank is the root.
    pub(crate) fn is_root(&self, library: &Library, root: i32) -> bool {
        root == library.root || self.remote.is_none() && root == self.rank
    }
}

/// Rank in the world of a member of a group; `None` is the group of all in the world's order.
#[inline]
fn member(group: Option<&Arc<[i32]>>, rank: i32) -> Option<i32> {
    let Some(members) = group else { return Some(rank) };
    members.get(usize::try_from(rank).ok()?).copied()
}

/// All communicators of this rank.
#[derive(Debug)]
pub(crate) struct Communicators {
    library: &'static Library,
    /// Group of the world, to translate ranks.
    world_group: usize,
    known: HashMap<usize, Communicator, Fast>,
    /// Communicators made so far of the same origin, call and members.
    made: HashMap<u64, u64, Fast>,
    next_number: u32,
}

impl Communicators {
    /// The world's own, with its definitions.
    pub(crate) fn new(library: &'static Library) -> (Self, Vec<Part<'static>>) {
        let mut world_group = 0;
        library::comm_group(library.world, &mut world_group);
        let (known, made) = (HashMap::default(), HashMap::default());
        let mut all = Self { library, world_group, known, made, next_number: 0 };
        let mut parts = all.define(library.world, 0, "");
        parts.extend(all.define(library.own, 0, ""));
        (all, parts)
    }

    pub(crate) fn get(&self, handle: usize) -> Option<&Communicator> {
        self.known.get(&handle)
    }

    /// Rank in the world of the rank `source` of the communicator `number`.
    pub(crate) fn peer(&self, number: u32, source: i32) -> i32 {
        let comm = self.known.values().find(|comm| comm.number == number);
        comm.map_or(FOREIGN_PEER, |comm| comm.world_rank(self.library, source))
    }

    pub(crate) fn identity(&self, handle: usize) -> u64 {
        self.known.get(&handle).map_or(0, |comm| comm.identity)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Option<Communicator> {
        self.known.remove(&handle)
    }

    /// Defines the communicator that `call` made of that of the identity `origin`.
    pub(crate) fn define(&mut self, handle: usize, origin: u64, call: &str) -> Vec<Part<'static>> {
        let (mut is_inter, mut group, mut rank) = (0, 0, 0);
        library::comm_test_inter(handle, &mut is_inter);
        library::comm_group(handle, &mut group);
        library::comm_rank(handle, &mut rank);
        let members = self.ranks(group);
        let remote = (is_inter != 0).then(|| {
            let mut group = 0;
            library::comm_remote_group(handle, &mut group);
            self.ranks(group)
        });
        self.add(handle, rank, (members, remote), origin, call)
    }

    /// Defines a communicator that cannot be asked yet, with the members of `old`.
    pub(crate) fn duplicate(&mut self, handle: usize, old: usize) -> Vec<Part<'static>> {
        let Some(comm) = self.known.get(&old) else { return Vec::new() };
        let (rank, origin) = (comm.rank, comm.identity);
        let all = || (0..i32::try_from(comm.size).unwrap_or(0)).collect();
        let members = comm.members.clone().unwrap_or_else(all);
        let groups = (members, comm.remote.clone());
        self.add(handle, rank, groups, origin, "Comm_idup")
    }

    fn add(
        &mut self,
        handle: usize,
        rank: i32,
        (members, remote): (Arc<[i32]>, Option<Arc<[i32]>>),
        origin: u64,
        call: &str,
    ) -> Vec<Part<'static>> {
        let number = self.next_number;
        self.next_number += 1;
        // Both groups of an intercommunicator have to find the same.
        let groups = remote.as_ref().map_or(0, |remote| hash(remote)).wrapping_add(hash(&members));
        let mut key = Multiplied::default();
        [origin, groups].into_iter().for_each(|word| key.write_u64(word));
        key.write(call.as_bytes());
        let made = self.made.entry(key.finish()).or_default();
        key.write_u64(*made);
        *made += 1;
        let identity = key.finish();
        let mut parts = vec![Part::Define { number, identity }];
        progressions(&members, |first, stride, count| {
            parts.push(Part::Members { remote: false, first, stride, count });
        });
        progressions(remote.as_deref().unwrap_or_default(), |first, stride, count| {
            parts.push(Part::Members { remote: true, first, stride, count });
        });
        let is_world = members.iter().copied().eq(0..i32::try_from(members.len()).unwrap_or(0));
        let mut comm = Communicator {
            number,
            identity,
            rank,
            size: members.len(),
            members: (!is_world).then_some(members),
            remote,
            neighbours: [0; 2],
        };
        if comm.remote.is_none() && call != "Comm_idup" {
            self.topology(handle, &mut comm, &mut parts);
        }
        self.known.insert(handle, comm);
        parts
    }

    /// Ranks in the world of the members of a group, which is freed.
    fn ranks(&self, mut group: usize) -> Arc<[i32]> {
        let mut size = 0;
        library::group_size(group, &mut size);
        let own: Vec<i32> = (0..size).collect();
        let mut world = vec![FOREIGN_PEER; own.len()];
        let (from, to) = (own.as_ptr(), world.as_mut_ptr());
        library::group_translate_ranks(group, size, from, self.world_group, to);
        library::group_free(&mut group);
        let translated = |rank| if rank == UNDEFINED { FOREIGN_PEER } else { rank };
        world.into_iter().map(translated).collect()
    }

    /// Adds what the topology of a communicator is.
    fn topology(&self, handle: usize, comm: &mut Communicator, parts: &mut Vec<Part<'static>>) {
        let mut kind = UNDEFINED;
        library::topo_test(handle, &mut kind);
        let list = |count: i32| vec![0; usize::try_from(count).unwrap_or(0)];
        let mut neighbour = |direction, ranks: &[i32]| {
            parts.extend(ranks.iter().map(|rank| {
                let peer = comm.world_rank(self.library, *rank);
                Part::Neighbour { direction, peer }
            }));
        };
        if kind == self.library.cartesian {
            let mut dimensions = 0;
            library::cartdim_get(handle, &mut dimensions);
            let [mut extents, mut periods, mut place] = [(); 3].map(|()| list(dimensions));
            let pointers = [&mut extents, &mut periods, &mut place].map(|list| list.as_mut_ptr());
            let [to_extents, to_periods, to_place] = pointers;
            library::cart_get(handle, dimensions, to_extents, to_periods, to_place);
            comm.neighbours = [2 * extents.len(); 2];
            parts.extend(extents.iter().zip(&periods).map(|(extent, period)| Part::Dimension {
                extent: extent.unsigned_abs(),
                periodic: *period != 0,
            }));
        } else if kind == self.library.graph {
            let mut count = 0;
            library::graph_neighbors_count(handle, comm.rank, &mut count);
            let mut ranks = list(count);
            library::graph_neighbors(handle, comm.rank, count, ranks.as_mut_ptr());
            neighbour(Direction::Receive, &ranks);
            neighbour(Direction::Send, &ranks);
            comm.neighbours = [ranks.len(); 2];
        } else if kind == DISTRIBUTED_GRAPH {
            let (mut incoming, mut outgoing, mut weighted) = (0, 0, 0);
            library::dist_graph_neighbors_count(
                handle,
                &mut incoming,
                &mut outgoing,
                &mut weighted,
            );
            let [mut sources, mut source_weights] = [(); 2].map(|()| list(incoming));
            let [mut targets, mut target_weights] = [(); 2].map(|()| list(outgoing));
            let pointers = [&mut sources, &mut source_weights, &mut targets, &mut target_weights]
                .map(|list| list.as_mut_ptr());
            let [from, from_weights, to, to_weights] = pointers;
            library::dist_graph_neighbors(
                handle,
                incoming,
                from,
                from_weights,
                outgoing,
                to,
                to_weights,
            );
            neighbour(Direction::Receive, &sources);
            neighbour(Direction::Send, &targets);
            comm.neighbours = [sources.len(), targets.len()];
        }
    }
}

fn hash(ranks: &[i32]) -> u64 {
    let mut hash = Multiplied::default();
    hash.write_u64(ranks.len() as u64 + 1);
    ranks.iter().for_each(|rank| hash.write_u64(u64::from(rank.cast_unsigned())));
    hash.finish()
}

/// Divides `ranks` into progressions of first rank, stride and count.
fn progressions(ranks: &[i32], mut each: impl FnMut(i32, i32, u32)) {
    let mut rest = ranks;
    while let Some((first, others)) = rest.split_first() {
        let stride = others.first().map_or(1, |second| second - first);
        let steps = rest.windows(2).take_while(|pair| match pair {
            [one, next] => next - one == stride,
            _ => false,
        });
        let count = steps.count() + 1;
        each(*first, stride, u32::try_from(count).unwrap_or(u32::MAX));
        rest = rest.get(count..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_few_progressions() {
        let of = |ranks: &[i32]| {
            let mut found = Vec::new();
            progressions(ranks, |first, stride, count| found.push((first, stride, count)));
            found
        };
        assert_eq!(of(&[0, 1, 2, 3]), [(0, 1, 4)]);
        assert_eq!(of(&[9, 7, 5, 6, 7]), [(9, -2, 3), (6, 1, 2)]);
        assert_eq!(of(&[4]), [(4, 1, 1)]);
        assert_eq!(of(&[-3, -3]), [(-3, 0, 2)]);
        assert!(of(&[]).is_empty());
    }
}
