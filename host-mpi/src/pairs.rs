//! Which pairs of ranks are measured, and which of them at the same time.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use loggap_core::random::Random;

use crate::job::Place;

/// A choice of pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pairs {
    /// Every rank with every other.
    All,
    /// So many random partners for every rank.
    Random(u32),
    /// Every rank with the next one, the last with the first.
    Ring,
    /// The first so many others to rank 0, one after the other.
    ToOne(u32),
    /// Rank 0 to the first so many others, one after the other.
    FromOne(u32),
}

/// A text names no choice of pairs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected all, random:K, ring, K-to-1 or 1-to-K with K at least 1, such as random:3")]
pub struct UnknownPairs;

impl FromStr for Pairs {
    type Err = UnknownPairs;

    fn from_str(text: &str) -> Result<Self, UnknownPairs> {
        let count =
            |digits: &str| digits.parse().ok().filter(|count| *count > 0).ok_or(UnknownPairs);
        match text {
            "all" => Ok(Self::All),
            "ring" => Ok(Self::Ring),
            _ => {
                if let Some(digits) = text.strip_prefix("random:") {
                    Ok(Self::Random(count(digits)?))
                } else if let Some(digits) = text.strip_suffix("-to-1") {
                    Ok(Self::ToOne(count(digits)?))
                } else {
                    let digits = text.strip_prefix("1-to-").ok_or(UnknownPairs)?;
                    Ok(Self::FromOne(count(digits)?))
                }
            }
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Random(count) => write!(f, "random:{count}"),
            Self::Ring => f.write_str("ring"),
            Self::ToOne(count) => write!(f, "{count}-to-1"),
            Self::FromOne(count) => write!(f, "1-to-{count}"),
        }
    }
}

/// Who measures, and to whom.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pair {
    /// The rank that measures.
    pub initiator: i32,
    /// The one that answers.
    pub responder: i32,
}

/// Pairs that are measured at the same time: no rank is in two.
pub type Round = Vec<Pair>;

impl Pairs {
    /// Rounds in which every pair is measured `times` times. Which rank of a
    /// pair measures, and the order, are drawn by `seed`; the same on every
    /// rank.
    #[must_use]
    pub fn rounds(self, ranks: i32, times: u32, seed: u64) -> Vec<Round> {
        let mut random = Random::new(seed);
        let mut rounds = Vec::new();
        for _ in 0..times {
            let mut some = match self {
                Self::All => tournament(&shuffled(ranks, &mut random)),
                Self::Random(count) => {
                    (0..count).map(|_| matching(&shuffled(ranks, &mut random))).collect()
                }
                Self::Ring => ring(ranks),
                Self::ToOne(count) => {
                    others(count, ranks).map(|rank| vec![pair(rank, 0)]).collect()
                }
                Self::FromOne(count) => {
                    others(count, ranks).map(|rank| vec![pair(0, rank)]).collect()
                }
            };
            random.shuffle(&mut some);
            if self.is_undirected() {
                some.iter_mut().flatten().for_each(|pair| pair.turn(&mut random));
            }
            rounds.append(&mut some);
        }
        rounds
    }

    /// Whether either rank of a pair may measure.
    const fn is_undirected(self) -> bool {
        matches!(self, Self::All | Self::Random(_) | Self::Ring)
    }
}

impl Pair {
    /// Changes the roles, or does not.
    fn turn(&mut self, random: &mut Random) {
        if random.below(2) == 1 {
            *self = pair(self.responder, self.initiator);
        }
    }
}

const fn pair(initiator: i32, responder: i32) -> Pair {
    Pair { initiator, responder }
}

/// The first so many ranks besides rank 0.
fn others(count: u32, ranks: i32) -> impl Iterator<Item = i32> {
    (1..ranks).take(usize::try_from(count).unwrap_or(usize::MAX))
}

fn shuffled(ranks: i32, random: &mut Random) -> Vec<i32> {
    let mut order: Vec<i32> = (0..ranks).collect();
    random.shuffle(&mut order);
    order
}

/// Neighbours in `order`; of an odd number, the last one rests.
fn matching(order: &[i32]) -> Round {
    order.chunks_exact(2).filter_map(|two| Some(pair(*two.first()?, *two.get(1)?))).collect()
}

/// The same pairs in as many rounds as it takes so that no machine has more
/// busy ranks than processors, but for one pair, which every machine takes.
#[must_use]
pub fn within_processors(rounds: Vec<Round>, places: &[Place]) -> Vec<Round> {
    rounds.into_iter().flat_map(|round| split(round, places)).collect()
}

fn split(round: Round, places: &[Place]) -> Vec<Round> {
    let place = |rank: i32| usize::try_from(rank).ok().and_then(|rank| places.get(rank));
    let mut rounds: Vec<(Round, HashMap<&str, usize>)> = Vec::new();
    for pair in round {
        let ends = [pair.initiator, pair.responder].map(place);
        let fits = |busy: &HashMap<&str, usize>| {
            let mut both = busy.clone();
            ends.iter().flatten().for_each(|end| *both.entry(&end.host).or_default() += 1);
            ends.iter().flatten().all(|end| both.get(end.host.as_str()) <= Some(&end.cpus))
        };
        let place = rounds.iter().position(|(_, busy)| fits(busy)).unwrap_or_else(|| {
            rounds.push(Default::default());
            rounds.len() - 1
        });
        if let Some((round, busy)) = rounds.get_mut(place) {
            ends.iter().flatten().for_each(|end| *busy.entry(&end.host).or_default() += 1);
            round.push(pair);
        }
    }
    rounds.into_iter().map(|(round, _)| round).collect()
}

/// Every pair once in as few rounds as possible: one stays in its place, the
/// others move around it.
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

/// Neighbours in two rounds, in three where their number is odd.
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

    /// How often each pair is measured, whoever measures; checks that no rank
    /// is in two pairs of a round.
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
    fn random_partners_are_new_in_each_round_and_the_same_for_a_seed() {
        let rounds = Pairs::Random(4).rounds(9, 1, 3);
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [4; 4]);
        counts(&rounds, 9);
        assert_eq!(rounds, Pairs::Random(4).rounds(9, 1, 3));
        assert_ne!(rounds, Pairs::Random(4).rounds(9, 1, 4));
    }

    #[test]
    fn one_to_some_and_some_to_one_keep_their_roles() {
        let from = Pairs::FromOne(2).rounds(4, 1, 1);
        assert!(from.iter().flatten().all(|pair| pair.initiator == 0) && from.len() == 2);
        let to = Pairs::ToOne(9).rounds(4, 2, 1);
        assert!(to.iter().flatten().all(|pair| pair.responder == 0) && to.len() == 6);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["all", "random:3", "ring", "5-to-1", "1-to-7"] {
            assert_eq!(text.parse::<Pairs>().unwrap().to_string(), text);
        }
        for text in ["", "some", "random:0", "random:", "0-to-1", "1-to-x", "-to-1"] {
            assert_eq!(text.parse::<Pairs>(), Err(UnknownPairs), "{text}");
        }
    }

    #[test]
    fn no_machine_has_more_busy_ranks_than_processors() {
        let place = |rank: usize| Place {
            host: if rank < 6 { "small" } else { "large" }.to_owned(),
            cpus: if rank < 6 { 2 } else { 8 },
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
        let one = Place { cpus: 1, ..Place::default() };
        let alone = within_processors(Pairs::All.rounds(4, 1, 1), &vec![one; 4]);
        assert!(alone.len() == 6 && alone.iter().all(|round| round.len() == 1));
    }
}
