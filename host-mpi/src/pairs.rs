//! Pairs of ranks that are measured, and which of them at the same time.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use loggap_core::random::Random;
use serde::{Deserialize, Serialize};

use crate::job::{Place, Sharing};

/// A choice of pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pairs {
    /// Every rank with every other one.
    All,
    /// This many random partners for every rank, drawn once; one fewer for
    /// ranks that pause in a round, if the number of ranks is odd.
    Random(u32),
    /// Every rank with the next one, the last with the first.
    Ring,
    /// This many other ranks to rank 0, one pair after the other.
    ToFirst(u32),
    /// Rank 0 to this many other ranks, one pair after the other.
    FromFirst(u32),
}

/// The text names no choice of pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "expected all, random:K, ring, to-first:K or from-first:K with K at least 1, such as random:3"
)]
pub struct UnknownPairs;

impl FromStr for Pairs {
    type Err = UnknownPairs;

    fn from_str(text: &str) -> Result<Self, UnknownPairs> {
        let count =
            |digits: &str| digits.parse().ok().filter(|count| *count > 0).ok_or(UnknownPairs);
        match text.split_once(':') {
            None if text == "all" => Ok(Self::All),
            None if text == "ring" => Ok(Self::Ring),
            Some(("random", digits)) => Ok(Self::Random(count(digits)?)),
            Some(("to-first", digits)) => Ok(Self::ToFirst(count(digits)?)),
            Some(("from-first", digits)) => Ok(Self::FromFirst(count(digits)?)),
            _ => Err(UnknownPairs),
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Random(count) => write!(f, "random:{count}"),
            Self::Ring => f.write_str("ring"),
            Self::ToFirst(count) => write!(f, "to-first:{count}"),
            Self::FromFirst(count) => write!(f, "from-first:{count}"),
        }
    }
}

/// A pair of ranks and their roles.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Pair {
    /// Rank that measures.
    pub initiator: i32,
    /// Rank that responds.
    pub responder: i32,
}

/// Pairs that are measured at the same time; no rank is in two of them.
pub type Round = Vec<Pair>;

impl Pairs {
    /// Rounds in which every pair is measured `times` times. `seed` decides the
    /// order, and which rank of a pair measures. The same on every rank.
    #[must_use]
    pub fn rounds(self, ranks: i32, times: u32, seed: u64) -> Vec<Round> {
        let mut random = Random::new(seed);
        let pairs = self.drawn(ranks, &mut random);
        let mut rounds = Vec::new();
        for _ in 0..times {
            let mut turn = pairs.clone();
            random.shuffle(&mut turn);
            if self.is_undirected() {
                turn.iter_mut().flatten().for_each(|pair| pair.turn(&mut random));
            }
            rounds.append(&mut turn);
        }
        rounds
    }

    /// Rounds that measure each pair once.
    fn drawn(self, ranks: i32, random: &mut Random) -> Vec<Round> {
        match self {
            Self::All => tournament(&shuffled(ranks, random)),
            Self::Random(count) => {
                // Some of the rounds in which all would meet, so that no pair
                // occurs twice.
                let mut some = tournament(&shuffled(ranks, random));
                random.shuffle(&mut some);
                some.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                some
            }
            Self::Ring => ring(ranks),
            Self::ToFirst(count) => others(count, ranks).map(|rank| vec![pair(rank, 0)]).collect(),
            Self::FromFirst(count) => {
                others(count, ranks).map(|rank| vec![pair(0, rank)]).collect()
            }
        }
    }

    /// True if either rank of a pair may measure.
    const fn is_undirected(self) -> bool {
        matches!(self, Self::All | Self::Random(_) | Self::Ring)
    }
}

impl Pair {
    /// Swaps the roles, or does not, at random.
    fn turn(&mut self, random: &mut Random) {
        if random.below(2) == 1 {
            *self = pair(self.responder, self.initiator);
        }
    }
}

const fn pair(initiator: i32, responder: i32) -> Pair {
    Pair { initiator, responder }
}

/// The first `count` ranks after rank 0.
fn others(count: u32, ranks: i32) -> impl Iterator<Item = i32> {
    (1..ranks).take(usize::try_from(count).unwrap_or(usize::MAX))
}

fn shuffled(ranks: i32, random: &mut Random) -> Vec<i32> {
    let mut order: Vec<i32> = (0..ranks).collect();
    random.shuffle(&mut order);
    order
}

/// Splits rounds until no machine has more busy ranks than processors, and no
/// processor has ranks of two pairs. Only the two ranks of one pair may share a
/// processor, as it has to be measured all the same.
#[must_use]
pub fn within_processors(rounds: Vec<Round>, places: &[Place]) -> Vec<Round> {
    let sharing = Sharing::of(places);
    let processors: HashMap<&str, usize> =
        sharing.hosts().iter().map(|host| (host.host.as_str(), host.processors)).collect();
    rounds.into_iter().flat_map(|round| split(round, places, &processors)).collect()
}

/// Ranks that are busy at the same time.
#[derive(Default)]
struct Busy<'p>(Vec<&'p Place>);

impl<'p> Busy<'p> {
    fn has_room(&self, ends: &[&Place], processors: &HashMap<&str, usize>) -> bool {
        let all = || self.0.iter().chain(ends);
        ends.iter().all(|end| {
            let there = || all().filter(|place| place.host == end.host);
            let on_its_processor = there().filter(|place| place.cpu == end.cpu).count();
            let fits =
                processors.get(end.host.as_str()).is_some_and(|most| there().count() <= *most);
            fits && (end.cpu.is_none() || on_its_processor == 1)
        })
    }
}

fn split<'p>(round: Round, places: &'p [Place], processors: &HashMap<&str, usize>) -> Vec<Round> {
    let place = |rank: i32| usize::try_from(rank).ok().and_then(|rank| places.get(rank));
    let mut rounds: Vec<(Round, Busy<'p>)> = Vec::new();
    for pair in round {
        let ends: Vec<&Place> =
            [pair.initiator, pair.responder].into_iter().filter_map(place).collect();
        let room = rounds.iter_mut().find(|(_, busy)| busy.has_room(&ends, processors));
        if let Some((round, busy)) = room {
            round.push(pair);
            busy.0.extend(ends);
        } else {
            rounds.push((vec![pair], Busy(ends)));
        }
    }
    rounds.into_iter().map(|(round, _)| round).collect()
}

/// Every pair once in as few rounds as possible, by the circle method: one rank
/// stays in its place, the others rotate around it.
fn tournament(order: &[i32]) -> Vec<Round> {
    const RESTS: i32 = -1;
    let mut places = order.to_vec();
    if places.len() % 2 == 1 {
        places.push(RESTS);
    }
    let half = places.len() / 2;
    (1..places.len())
        .map(|_| {
            let facing = places.iter().take(half).zip(places.iter().rev());
            let round = facing.map(|(one, other)| pair(*one, *other));
            let round = round.filter(|pair| pair.initiator != RESTS && pair.responder != RESTS);
            let round = round.collect();
            if let Some((_stays, moving)) = places.split_first_mut() {
                moving.rotate_right(1);
            }
            round
        })
        .collect()
}

/// Neighbours in two rounds, or in three if their number is odd.
fn ring(ranks: i32) -> Vec<Round> {
    let link = |rank: i32| pair(rank, (rank + 1) % ranks);
    let count = if ranks > 2 { ranks } else { ranks - 1 };
    let last = (count % 2 == 1 && ranks > 2).then_some(count - 1);
    let round = |parity: i32| -> Round {
        let of_parity = (0..count).filter(|rank| rank % 2 == parity && Some(*rank) != last);
        of_parity.map(link).collect()
    };
    let rounds = [round(0), round(1), last.map(link).into_iter().collect()];
    rounds.into_iter().filter(|round| !round.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of times that each pair is measured, by either rank. Checks that
    /// no rank is in two pairs of a round.
    fn counts(rounds: &[Round], ranks: i32) -> HashMap<(i32, i32), u32> {
        let mut counts = HashMap::new();
        for round in rounds {
            let mut busy: Vec<i32> =
                round.iter().flat_map(|pair| [pair.initiator, pair.responder]).collect();
            busy.sort_unstable();
            assert!(busy.windows(2).all(|two| two[0] < two[1]), "{round:?}");
            assert!(busy.iter().all(|rank| (0..ranks).contains(rank)), "{round:?}");
            for Pair { initiator, responder } in round {
                let key = (*initiator.min(responder), *initiator.max(responder));
                *counts.entry(key).or_default() += 1;
            }
        }
        counts
    }

    #[test]
    fn all_pairs_are_measured_as_often_as_asked_in_the_fewest_rounds() {
        for ranks in 2..=17 {
            let rounds = Pairs::All.rounds(ranks, 3, 1);
            let fewest = if ranks % 2 == 0 { ranks - 1 } else { ranks };
            assert_eq!(rounds.len(), 3 * usize::try_from(fewest).unwrap());
            let counts = counts(&rounds, ranks);
            assert_eq!(counts.len(), usize::try_from(ranks * (ranks - 1) / 2).unwrap());
            assert!(counts.values().all(|count| *count == 3), "{counts:?}");
        }
    }

    #[test]
    fn a_ring_has_each_neighbour_once() {
        for ranks in 2..=9 {
            let counts = counts(&Pairs::Ring.rounds(ranks, 1, 5), ranks);
            let links = if ranks == 2 { 1 } else { ranks };
            assert_eq!(counts.len(), usize::try_from(links).unwrap(), "{ranks}");
            assert!(counts.values().all(|count| *count == 1));
        }
    }

    #[test]
    fn random_partners_are_drawn_once_and_the_same_for_a_seed() {
        let rounds = Pairs::Random(4).rounds(9, 3, 3);
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [4; 12]);
        let all = counts(&rounds, 9);
        assert!(all.len() == 16 && all.values().all(|count| *count == 3), "{all:?}");
        for turn in rounds.chunks(4) {
            let once = counts(turn, 9);
            assert!(once.len() == 16 && once.values().all(|count| *count == 1), "{once:?}");
        }
        assert_eq!(rounds, Pairs::Random(4).rounds(9, 3, 3));
        assert_ne!(rounds, Pairs::Random(4).rounds(9, 3, 4));
        // No more partners than there are others.
        let most = counts(&Pairs::Random(8).rounds(4, 2, 1), 4);
        assert!(most.len() == 6 && most.values().all(|count| *count == 2), "{most:?}");
        for rank in 0..10 {
            let has = |pair: &&(i32, i32)| pair.0 == rank || pair.1 == rank;
            let even = counts(&Pairs::Random(3).rounds(10, 1, 7), 10);
            assert_eq!(even.keys().filter(has).count(), 3, "{rank}");
        }
    }

    #[test]
    fn one_to_some_and_some_to_one_keep_their_roles() {
        let from = Pairs::FromFirst(2).rounds(4, 1, 1);
        assert!(from.iter().flatten().all(|pair| pair.initiator == 0) && from.len() == 2);
        let to = Pairs::ToFirst(9).rounds(4, 2, 1);
        assert!(to.iter().flatten().all(|pair| pair.responder == 0) && to.len() == 6);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["all", "random:3", "ring", "to-first:5", "from-first:7"] {
            assert_eq!(text.parse::<Pairs>().unwrap().to_string(), text);
        }
        for text in
            ["", "some", "random:0", "random:", "to-first:0", "from-first:x", "5-to-1", "1-to-5"]
        {
            assert_eq!(text.parse::<Pairs>(), Err(UnknownPairs), "{text}");
        }
    }

    #[test]
    fn no_machine_has_more_busy_ranks_than_processors() {
        let place = |rank: usize| Place {
            host: if rank < 6 { "small" } else { "large" }.to_owned(),
            processors: if rank < 6 { 2 } else { 8 },
            ..Place::default()
        };
        let places: Vec<Place> = (0..12).map(place).collect();
        let rounds = within_processors(Pairs::All.rounds(12, 1, 1), &places);
        assert_eq!(counts(&rounds, 12).len(), 66);
        for round in &rounds {
            let ranks = || round.iter().flat_map(|pair| [pair.initiator, pair.responder]);
            assert!(
                ranks().filter(|rank| *rank < 6).count() <= 2 && !round.is_empty(),
                "{round:?}"
            );
        }
        let one = Place { processors: 1, ..Place::default() };
        let alone = within_processors(Pairs::All.rounds(4, 1, 1), &vec![one; 4]);
        assert!(alone.len() == 6 && alone.iter().all(|round| round.len() == 1));
        // Two ranks each are bound to one of four processors.
        let bound = |rank: usize| Place { processors: 1, cpu: Some(rank / 2), ..Place::default() };
        let places: Vec<Place> = (0..8).map(bound).collect();
        let rounds = within_processors(Pairs::All.rounds(8, 1, 1), &places);
        assert_eq!(counts(&rounds, 8).len(), 28);
        for round in &rounds {
            let ranks = round.iter().flat_map(|pair| [pair.initiator, pair.responder]);
            let mut cpus: Vec<i32> = ranks.map(|rank| rank / 2).collect();
            cpus.sort_unstable();
            cpus.dedup();
            let sharing = round.iter().filter(|pair| pair.initiator / 2 == pair.responder / 2);
            assert_eq!(cpus.len(), 2 * round.len() - sharing.count(), "{round:?}");
        }
    }
}
