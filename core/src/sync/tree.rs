//! Binomial tree that determines which ranks synchronise in which round.
//!
//! Ranks that share a clock form a domain, led by its lowest rank. The leaders form a binomial tree
//! that grows from the root: in round `k` each of the first 2ᵏ leaders, which are synchronised by
//! then, is the parent of the leader 2ᵏ positions after it (`HCA3`: Hunold and Carpen-Amarie,
//! "Hierarchical Clock Synchronization in MPI", 2018, but with doubling distances, so that any
//! number of ranks takes ⌈log₂⌉ rounds). The following rounds do the same in all domains
//! concurrently, with checks as edges. Rank 0 is the root.

use core::fmt;

use crate::random::Random;
use crate::stats::heap_sort::heap_sort;

/// Reasons why there is no tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TreeError {
    /// There are no ranks.
    NoRanks,
    /// More than 2³¹ ranks.
    TooMany(usize),
    /// The memory is too small: each part needs this number of elements, one per rank.
    Memory(usize),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRanks => f.write_str("no ranks to synchronise"),
            Self::TooMany(ranks) => write!(f, "{ranks} ranks: at most 2^31 are synchronised"),
            Self::Memory(needed) => write!(f, "memory for a tree of {needed} ranks is needed"),
        }
    }
}

impl core::error::Error for TreeError {}

/// Kind of an edge of the tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Edge {
    /// Leaders of two domains: [`RankClock::synchronise`](super::RankClock::synchronise).
    Leaders,
    /// Ranks of one domain: [`RankClock::share`](super::RankClock::share) and, if it returns false,
    /// as between leaders.
    Domain,
}

/// Role of a rank in a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Role {
    /// Sends pings and is synchronised.
    Child,
    /// Answers pings.
    Parent,
}

/// Task of a rank in one round.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Step {
    /// Round, from 0.
    pub round: u32,
    /// The other rank.
    pub peer: u32,
    /// Role of this rank.
    pub role: Role,
    /// Kind of the edge.
    pub edge: Edge,
}

/// Tree data of one rank, and of the leader with the same index.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeEntry {
    /// Index in the order of the first member of this rank's domain.
    begin: u32,
    /// Position of this rank among the members; 0 is the leader.
    place: u32,
    /// Number of members of this rank's domain.
    members: u32,
    /// Index of the leader of this rank's domain among all leaders.
    index: u32,
    /// Rank of the leader whose index is this entry's.
    leader: u32,
}

/// Memory of a tree, an element per rank.
#[derive(Debug)]
pub struct TreeMemory<'m> {
    /// Ranks, sorted by domain.
    pub order: &'m mut [u64],
    /// Tree data of each rank.
    pub entries: &'m mut [TreeEntry],
}

/// Synchronisation tree of all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'m> {
    /// Domain and rank, 32 bits each, ascending.
    order: &'m [u64],
    entries: &'m [TreeEntry],
    leaders: u32,
    largest_domain: u32,
}

impl<'m> Tree<'m> {
    /// Tree of `domains.len()` ranks. An element is the clock domain of its rank: an arbitrary
    /// number, equal for ranks that read the same clock. O(n log n).
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn new(domains: &[u32], memory: TreeMemory<'m>) -> Result<Self, TreeError> {
        let ranks = domains.len();
        if ranks == 0 {
            return Err(TreeError::NoRanks);
        }
        if ranks > 1 << 31 {
            return Err(TreeError::TooMany(ranks));
        }
        let (Some(order), Some(entries)) =
            (memory.order.get_mut(..ranks), memory.entries.get_mut(..ranks))
        else {
            return Err(TreeError::Memory(ranks));
        };
        for ((place, &domain), rank) in order.iter_mut().zip(domains).zip(0_u64..) {
            *place = u64::from(domain) << 32 | rank;
        }
        heap_sort(order);
        let largest_domain = describe_domains(order, entries);
        let leaders = number_leaders(entries);
        Ok(Self { order, entries, leaders, largest_domain })
    }

    /// Number of ranks.
    #[must_use]
    pub const fn ranks(&self) -> usize {
        self.entries.len()
    }

    /// Number of domains.
    #[must_use]
    pub const fn leaders(&self) -> u32 {
        self.leaders
    }

    /// Number of rounds.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.domain_rounds_begin() + depth(self.largest_domain)
    }

    /// Step in which `rank` is the child; `None` for the root and for invalid ranks.
    #[must_use]
    pub fn parent(&self, rank: u32) -> Option<Step> {
        let entry = self.entry(rank)?;
        if entry.place > 0 {
            let (round, place) = parent_of(entry.place)?;
            let peer = self.member(&entry, place)?;
            let round = self.domain_rounds_begin() + round;
            return Some(Step { round, peer, role: Role::Child, edge: Edge::Domain });
        }
        let (round, index) = parent_of(entry.index)?;
        let peer = self.entry(index)?.leader;
        Some(Step { round, peer, role: Role::Child, edge: Edge::Leaders })
    }

    /// Steps of `rank` in the order of rounds: first as a child, then as a parent.
    pub fn steps(&self, rank: u32) -> impl Iterator<Item = Step> + use<'_, 'm> {
        let entry = self.entry(rank);
        self.parent(rank).into_iter().chain(entry.into_iter().flat_map(move |entry| {
            let leads = if entry.place == 0 { self.leaders } else { 0 };
            let leaders = children_of(entry.index, leads).filter_map(|(round, index)| {
                let peer = self.entry(index)?.leader;
                Some(Step { round, peer, role: Role::Parent, edge: Edge::Leaders })
            });
            let members = children_of(entry.place, entry.members);
            leaders.chain(members.filter_map(move |(round, place)| {
                let peer = self.member(&entry, place)?;
                let round = self.domain_rounds_begin() + round;
                Some(Step { round, peer, role: Role::Parent, edge: Edge::Domain })
            }))
        }))
    }

    /// All ranks, each after its parent, and the children of each in the order of rounds.
    pub fn parents_first(&self) -> impl Iterator<Item = u32> + use<'_, 'm> {
        let leads = move |rank: &u32| self.entry(*rank).is_some_and(|entry| entry.place == 0);
        let leaders = (0..self.leaders).filter_map(|index| Some(self.entry(index)?.leader));
        leaders.chain(self.order.iter().map(|&key| low(key)).filter(move |rank| !leads(rank)))
    }

    /// Leader of the domain of `rank`.
    #[must_use]
    pub fn leader(&self, rank: u32) -> Option<u32> {
        let entry = self.entry(rank)?;
        self.member(&entry, 0)
    }

    /// True if an edge of the tree connects both ranks. Pings between other ranks check the tree
    /// independently.
    #[must_use]
    pub fn have_met(&self, first: u32, second: u32) -> bool {
        let is_child = |child, parent| self.parent(child).is_some_and(|step| step.peer == parent);
        is_child(first, second) || is_child(second, first)
    }

    /// Three random ranks without an edge between any two; `None` if a hundred draws found none, as
    /// may happen among few ranks.
    #[must_use]
    pub fn strangers(&self, random: &mut Random) -> Option<[u32; 3]> {
        let ranks = self.ranks() as u64;
        let mut draw = || u32::try_from(random.below(ranks)).unwrap_or(0);
        (0..100).map(|_| [draw(), draw(), draw()]).find(|&[a, b, c]| {
            let apart = |a, b| a != b && !self.have_met(a, b);
            apart(a, b) && apart(b, c) && apart(c, a)
        })
    }

    fn domain_rounds_begin(&self) -> u32 {
        depth(self.leaders)
    }

    fn entry(&self, rank: u32) -> Option<TreeEntry> {
        self.entries.get(usize::try_from(rank).ok()?).copied()
    }

    /// Rank at position `place` in the domain of `entry`.
    fn member(&self, entry: &TreeEntry, place: u32) -> Option<u32> {
        let at = usize::try_from(entry.begin.checked_add(place)?).ok()?;
        self.order.get(at).map(|&key| low(key))
    }
}

/// Writes each rank's domain data to its entry; returns the number of members of the largest
/// domain.
fn describe_domains(order: &[u64], entries: &mut [TreeEntry]) -> u32 {
    let (mut begin, mut place, mut last) = (0, 0, None);
    for &key in order {
        if last != Some(key >> 32) {
            (begin, place, last) = (begin + place, 0, Some(key >> 32));
        }
        if let Some(entry) = entry_of(entries, key) {
            *entry = TreeEntry { begin, place, ..TreeEntry::default() };
        }
        place += 1;
    }
    let (mut members, mut largest) = (0, 0);
    for &key in order.iter().rev() {
        let Some(entry) = entry_of(entries, key) else { continue };
        // In reverse order, the last member of a domain comes first.
        members = members.max(entry.place + 1);
        entry.members = members;
        largest = largest.max(members);
        if entry.place == 0 {
            members = 0;
        }
    }
    largest
}

fn entry_of(entries: &mut [TreeEntry], key: u64) -> Option<&mut TreeEntry> {
    entries.get_mut(usize::try_from(low(key)).ok()?)
}

/// Numbers the leaders by rank; returns their number.
fn number_leaders(entries: &mut [TreeEntry]) -> u32 {
    let mut leaders = 0_u32;
    for rank in 0..entries.len() {
        let Some(entry) = entries.get_mut(rank).filter(|entry| entry.place == 0) else { continue };
        entry.index = leaders;
        // Index `leaders` is at most `rank`.
        let place = usize::try_from(leaders).unwrap_or(usize::MAX);
        if let Some(entry) = entries.get_mut(place) {
            entry.leader = count(rank);
        }
        leaders += 1;
    }
    leaders
}

/// Round in which number `child` of a binomial tree is reached, and its parent's number; `None` for
/// the root.
fn parent_of(child: u32) -> Option<(u32, u32)> {
    let round = child.checked_ilog2()?;
    Some((round, child ^ (1 << round)))
}

/// Rounds and numbers of the children of number `parent`, out of `numbers` in all.
fn children_of(parent: u32, numbers: u32) -> impl Iterator<Item = (u32, u32)> {
    let first = parent.checked_ilog2().map_or(0, |own| own + 1);
    let child = move |round| Some((round, parent.checked_add(1_u32.checked_shl(round)?)?));
    (first..u32::BITS).map_while(child).take_while(move |&(_, child)| child < numbers)
}

/// Number of rounds to reach `numbers` numbers, which double in each round.
fn depth(numbers: u32) -> u32 {
    numbers.max(1).next_power_of_two().trailing_zeros()
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half of a key is the rank")]
const fn low(key: u64) -> u32 {
    key as u32
}

/// Converts a number of ranks, at most 2³¹.
fn count(ranks: usize) -> u32 {
    u32::try_from(ranks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::{TestResult, quickcheck};
    use std::collections::HashMap;
    use std::vec;
    use std::vec::Vec;

    /// Calls `look` with the tree of `domains`.
    fn with_tree(domains: &[u32], look: impl FnOnce(Tree<'_>)) {
        let (mut order, mut entries) =
            (vec![0; domains.len()], vec![TreeEntry::default(); domains.len()]);
        let memory = TreeMemory { order: &mut order, entries: &mut entries };
        look(Tree::new(domains, memory).unwrap());
    }

    /// Checks all properties that a host relies on.
    fn is_sound(tree: &Tree<'_>, domains: &[u32]) {
        let ranks = u32::try_from(domains.len()).unwrap();
        let mut synchronised = vec![false; domains.len()];
        let mut edges = HashMap::new();
        for rank in tree.parents_first() {
            let steps: Vec<Step> = tree.steps(rank).collect();
            assert!(steps.windows(2).all(|two| two[0].round < two[1].round), "{steps:?}");
            assert!(steps.iter().skip(1).all(|step| step.role == Role::Parent));
            assert!(steps.iter().all(|step| step.round < tree.rounds()));
            let parent = tree.parent(rank);
            assert_eq!(steps.first().copied().filter(|step| step.role == Role::Child), parent);
            assert_eq!(parent.is_none(), rank == 0);
            if let Some(step) = parent {
                assert!(synchronised[step.peer as usize], "{rank} before {}", step.peer);
                let same = domains[rank as usize] == domains[step.peer as usize];
                assert_eq!(step.edge == Edge::Domain, same);
                edges.insert((rank, step.peer), step.round);
            }
            assert!(!core::mem::replace(&mut synchronised[rank as usize], true), "{rank} twice");
            let lowest = domains.iter().position(|&domain| domain == domains[rank as usize]);
            assert_eq!(tree.leader(rank).unwrap() as usize, lowest.unwrap());
        }
        assert!(synchronised.iter().all(|&is| is));
        let mut answered = 0;
        for rank in 0..ranks {
            for step in tree.steps(rank).filter(|step| step.role == Role::Parent) {
                assert_eq!(edges.get(&(step.peer, rank)), Some(&step.round));
                answered += 1;
            }
        }
        assert_eq!(answered, edges.len());
    }

    fn log_ceiling(count: usize) -> u32 {
        (0..).find(|&log| 1 << log >= count).unwrap()
    }

    quickcheck! {
        fn every_rank_is_reached_once_from_one_that_is(domains: Vec<u8>) -> TestResult {
            if domains.is_empty() {
                return TestResult::discard();
            }
            let domains: Vec<u32> = domains.iter().map(|&domain| u32::from(domain) % 9).collect();
            let mut members = HashMap::new();
            domains.iter().for_each(|domain| *members.entry(domain).or_insert(0_usize) += 1);
            let rounds = log_ceiling(members.len()) + log_ceiling(*members.values().max().unwrap());
            with_tree(&domains, |tree| {
                is_sound(&tree, &domains);
                assert_eq!(tree.leaders() as usize, members.len());
                assert_eq!(tree.rounds(), rounds);
            });
            TestResult::passed()
        }
    }

    #[test]
    fn any_number_of_ranks_takes_the_logarithm_rounded_up() {
        for ranks in [1, 2, 3, 5, 7, 8, 9, 63, 64, 65, 1_000] {
            let own: Vec<u32> = (0..ranks).rev().collect();
            with_tree(&own, |tree| {
                is_sound(&tree, &own);
                assert_eq!(tree.rounds(), log_ceiling(ranks as usize), "{ranks}");
            });
            let one = vec![77; ranks as usize];
            with_tree(&one, |tree| {
                is_sound(&tree, &one);
                assert_eq!((tree.leaders(), tree.rounds()), (1, log_ceiling(ranks as usize)));
            });
        }
    }

    #[test]
    fn leaders_come_before_their_domains() {
        let child = |round, peer, edge| Some(Step { round, peer, role: Role::Child, edge });
        with_tree(&[4, 4, 9, 9, 1, 9], |tree| {
            assert_eq!(tree.parent(0), None);
            assert_eq!(tree.parent(2), child(0, 0, Edge::Leaders));
            assert_eq!(tree.parent(4), child(1, 0, Edge::Leaders));
            assert_eq!(tree.parent(1), child(2, 0, Edge::Domain));
            assert_eq!(tree.parent(3), child(2, 2, Edge::Domain));
            assert_eq!(tree.parent(5), child(3, 2, Edge::Domain));
            assert_eq!(tree.parent(6), None);
            assert_eq!(tree.steps(6).count(), 0);
            assert!(tree.have_met(0, 4) && tree.have_met(5, 2) && !tree.have_met(4, 2));
            let strangers = tree.strangers(&mut Random::new(1)).unwrap();
            assert!(strangers.iter().any(|&rank| rank == 1 || rank == 3 || rank == 5));
        });
        with_tree(&[0, 1, 2], |tree| assert_eq!(tree.strangers(&mut Random::new(1)), None));
    }

    #[test]
    fn nobody_and_too_little_memory_are_errors() {
        let memory = || TreeMemory { order: &mut [], entries: &mut [] };
        assert_eq!(Tree::new(&[], memory()).unwrap_err(), TreeError::NoRanks);
        assert_eq!(Tree::new(&[1, 2], memory()).unwrap_err(), TreeError::Memory(2));
    }
}
