//! Costs of messages.

use core::num::NonZeroU32;

use crate::model::{LogGops, Protocol, ReceiveOverhead};
use crate::units::{Bytes, Overflow, Picos};

/// Receive mode.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Receive {
    /// The processor is held for o plus the longer of (s − 1)·O and (s − 1)·G, as in LogGOPSim.
    #[default]
    Hold,
    /// The processor is held for o + (s − 1)·O, and the interface receives the bytes meanwhile, as
    /// in LogGOPS.
    Overlap,
}

/// Rendezvous mode: protocol of messages above the eager limit.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Rendezvous {
    /// The sender is blocked until the instant of the match, as in LogGOPSim.
    #[default]
    Instant,
    /// RTS, CTS and data are messages, as in LogGPS.
    Handshake,
}

/// Modes of a simulation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Settings {
    /// Receive mode.
    pub receive: Receive,
    /// Rendezvous mode.
    pub rendezvous: Rendezvous,
}

/// Costs of one message, ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) overhead: u64,
    /// (s − 1)·O.
    pub(super) overhead_bytes: u64,
    /// o_r.
    pub(super) receive_overhead: u64,
    /// (s − 1)·O_r.
    pub(super) receive_overhead_bytes: u64,
    pub(super) gap: u64,
    /// (s − 1)·G.
    pub(super) gap_bytes: u64,
    pub(super) latency: u64,
    /// Index of the parameter set.
    pub(super) protocol: usize,
    /// True if the message is above the eager limit.
    pub(super) rendezvous: bool,
}

/// Parameter sets: one for each range of sizes, optionally different between ranks that are near
/// each other.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    first: Protocol,
    further: &'a [Protocol],
    /// Receive overheads, one for each set; empty where receiving costs the same as sending.
    receive: &'a [ReceiveOverhead],
    near: Option<Nearness<'a>>,
}

/// Levels of nearness. `level` and `sets` are function pointers, so that a program without levels
/// links none of their code.
#[derive(Clone, Copy, Debug)]
struct Nearness<'a> {
    /// Levels, nearest first. Their parameter sets come last in the list, in the same order.
    levels: &'a [Level],
    /// Place of each rank; empty if a rank's place is its number.
    places: &'a [u32],
    /// Computes the level of two ranks.
    level: fn(&Nearness<'_>, u32, u32) -> usize,
    /// Computes the first set and the end of the sets of a level; the last argument is the number
    /// of all sets.
    sets: fn(&Nearness<'_>, usize, usize) -> [usize; 2],
}

/// Level of nearness: a block of ranks among which messages have their own parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Level {
    /// Size of a block in places: ranks at places i and j are in the same block if ⌊i / `places`⌋ =
    /// ⌊j / `places`⌋.
    pub places: NonZeroU32,
    /// Index of its first parameter set.
    pub first: usize,
    /// Number of its parameter sets.
    pub sets: usize,
}

/// Level of any two ranks if there are no levels.
pub(super) const EVERYWHERE: usize = 0;

/// True if the sets are in ascending order of size.
fn ascend(sets: &[Protocol]) -> bool {
    sets.is_sorted_by(|a, b| a.first < b.first)
}

impl<'a> Parameters<'a> {
    /// Largest number of parameter sets, over all levels.
    pub const MOST: usize = 16;

    /// One parameter set for all sizes.
    #[must_use]
    pub const fn one(parameters: LogGops) -> Self {
        let first = Protocol { first: Bytes(0), parameters };
        Self { first, further: &[], receive: &[], near: None }
    }

    /// One set per protocol, in ascending order of size; the first also holds for smaller sizes.
    /// `None` if empty, out of order, or more than [`Self::MOST`].
    #[must_use]
    pub fn per_protocol(protocols: &'a [Protocol]) -> Option<Self> {
        let (first, further) = protocols.split_first()?;
        let few = protocols.len() <= Self::MOST;
        (few && ascend(protocols)).then_some(Self {
            first: *first,
            further,
            ..Self::one(first.parameters)
        })
    }

    /// Parameter sets by nearness: `protocols` has the sets between ranks that share no block, then
    /// the sets of each level. Blocks grow from level to level, each a multiple of the one before.
    /// `places` has each rank's place; a rank beyond its end is at the place of its number. `None`
    /// also if a level has no set or blocks are not nested.
    #[must_use]
    pub fn by_level(
        protocols: &'a [Protocol],
        levels: &'a [Level],
        places: &'a [u32],
    ) -> Option<Self> {
        let (first, further) = protocols.split_first()?;
        let mut rest = protocols;
        for level in levels.iter().rev() {
            let (others, sets) = rest.split_at_checked(level.first)?;
            rest = others;
            if sets.len() != level.sets || sets.is_empty() || !ascend(sets) {
                return None;
            }
        }
        let nested = |pair: &[Level]| match pair {
            [near, far] => far.places > near.places && far.places.get() % near.places == 0,
            _ => true,
        };
        let nested = levels.windows(2).all(nested);
        let usable = nested && !rest.is_empty() && ascend(rest) && protocols.len() <= Self::MOST;
        let near = Nearness { levels, places, level: level_of, sets: sets_of };
        let near = Some(near).filter(|near| !near.levels.is_empty());
        usable.then_some(Self { first: *first, further, receive: &[], near })
    }

    /// Sets the receive overheads o_r, O_r, one for each parameter set, in the same order; the sets
    /// keep those of the sender. `None` if their number differs.
    #[must_use]
    pub const fn with_receive(self, receive: &'a [ReceiveOverhead]) -> Option<Self> {
        if receive.len() == self.further.len() + 1 { Some(Self { receive, ..self }) } else { None }
    }

    /// Number of levels, not counting pairs of ranks that share no block.
    #[must_use]
    pub const fn levels(&self) -> usize {
        match self.near {
            Some(near) => near.levels.len(),
            None => 0,
        }
    }

    /// Level of two ranks: 0 is the nearest; the number of levels if they share no block.
    #[inline]
    #[must_use]
    pub fn level(&self, one: u32, other: u32) -> usize {
        self.near.as_ref().map_or(EVERYWHERE, |near| (near.level)(near, one, other))
    }

    /// All parameter sets.
    fn all(&self) -> impl Iterator<Item = &Protocol> {
        core::iter::once(&self.first).chain(self.further)
    }

    /// True if the same messages are above the eager limit as with `other`: equal ranges, eager
    /// limits and blocks.
    #[cfg(target_has_atomic = "64")]
    pub(super) fn has_limits_of(&self, other: &Parameters<'_>) -> bool {
        let limits = |of: &Protocol| (of.first, of.parameters.eager_limit);
        self.further.len() == other.further.len()
            && self.near.map(Nearness::blocks) == other.near.map(Nearness::blocks)
            && self.all().zip(other.all()).all(|(own, other)| limits(own) == limits(other))
    }

    /// o + L of each set, ps: time from the start of a send to the arrival of its message.
    /// Saturating.
    pub(super) fn delays(&self) -> impl Iterator<Item = u64> {
        self.all().map(|protocol| {
            let set = &protocol.parameters;
            set.overhead.0.saturating_add(set.latency.0)
        })
    }

    /// o + L of a message of `size` bytes at a level, ps.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn delay(&self, level: usize, size: u64) -> Result<u64, Overflow> {
        let (_, set) = self.at(level, size);
        Ok(set.overhead.plus(set.latency)?.0)
    }

    /// Index and parameter set of a message of `size` bytes at a level.
    #[inline]
    fn at(&self, level: usize, size: u64) -> (usize, &LogGops) {
        if self.further.is_empty() {
            return (0, &self.first.parameters);
        }
        let number = self.number(level, size);
        let further = number.checked_sub(1).and_then(|at| self.further.get(at));
        (number, &further.unwrap_or(&self.first).parameters)
    }

    /// Index of the parameter set of messages of `size` bytes at a level, in the order given.
    #[must_use]
    pub fn number(&self, level: usize, size: u64) -> usize {
        let all = self.further.len() + 1;
        let [before, end] = match &self.near {
            Some(near) => (near.sets)(near, level, all),
            None => [0, all],
        };
        // The first set also holds for smaller sizes.
        let later = self.further.get(before..end - 1).unwrap_or_default();
        before + later.iter().rposition(|set| set.first.0 <= size).map_or(0, |at| at + 1)
    }

    /// Costs of a message of `size` bytes at a level.
    #[inline]
    pub(super) fn costs(&self, level: usize, size: u64) -> Result<Costs, Overflow> {
        let (protocol, set) = self.at(level, size);
        let rest = Bytes(size).after_first();
        let overhead_bytes = set.overhead_per_byte.times(rest)?.0;
        let (receive_overhead, receive_overhead_bytes) = match self.receive.get(protocol) {
            None => (set.overhead.0, overhead_bytes),
            Some(ends) => (ends.overhead.0, ends.overhead_per_byte.times(rest)?.0),
        };
        Ok(Costs {
            receive_overhead,
            receive_overhead_bytes,
            overhead: set.overhead.0,
            overhead_bytes,
            gap: set.gap.0,
            gap_bytes: set.gap_per_byte.times(rest)?.0,
            latency: set.latency.0,
            protocol,
            rendezvous: size > set.eager_limit.0,
        })
    }

    /// Least o + L over all sets: the conservative lookahead, by which a rank can be simulated
    /// ahead of the others.
    #[must_use]
    pub fn lookahead(&self) -> Picos {
        Picos(self.delays().min().unwrap_or_default())
    }
}

fn level_of(near: &Nearness<'_>, one: u32, other: u32) -> usize {
    let place = |rank: u32| near.places.get(rank as usize).copied().unwrap_or(rank);
    let (one, other) = (place(one), place(other));
    let together = |level: &Level| one / level.places == other / level.places;
    near.levels.iter().position(together).unwrap_or(near.levels.len())
}

fn sets_of(near: &Nearness<'_>, level: usize, all: usize) -> [usize; 2] {
    match near.levels.get(level) {
        Some(level) => [level.first, level.first + level.sets],
        None => [0, near.levels.first().map_or(all, |near| near.first)],
    }
}

#[cfg(target_has_atomic = "64")]
impl<'a> Nearness<'a> {
    /// Blocks of ranks: the levels and places.
    const fn blocks(self) -> (&'a [Level], &'a [u32]) {
        (self.levels, self.places)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code")]
mod tests {
    use super::*;

    fn protocol(first: u64, latency: u64) -> Protocol {
        let zero = LogGops {
            latency: Picos(latency),
            overhead: Picos(0),
            gap: Picos(0),
            gap_per_byte: crate::units::PerByte(0),
            overhead_per_byte: crate::units::PerByte(0),
            eager_limit: Bytes(0),
        };
        Protocol { first: Bytes(first), parameters: zero }
    }

    fn level(places: u32, first: usize, sets: usize) -> Level {
        Level { places: NonZeroU32::new(places).unwrap(), first, sets }
    }

    #[test]
    fn the_nearest_level_that_holds_both_ranks_counts() {
        let sets = [protocol(0, 1), protocol(9, 2), protocol(0, 3), protocol(0, 4), protocol(5, 5)];
        let levels = [level(2, 2, 1), level(4, 3, 2)];
        let parameters = Parameters::by_level(&sets, &levels, &[7, 6]).unwrap();
        // Ranks 0 and 1 exchange places with 7 and 6, which keep theirs.
        assert_eq!(
            [(0, 1), (0, 7), (2, 3), (0, 4), (3, 4)].map(|(a, b)| parameters.level(a, b)),
            [0, 0, 0, 1, 2]
        );
        let latency = |level, size| parameters.costs(level, size).unwrap().latency;
        assert_eq!([8, 9].map(|size| latency(2, size)), [1, 2]);
        assert_eq!([0, 100].map(|size| latency(0, size)), [3, 3]);
        assert_eq!([4, 5].map(|size| latency(1, size)), [4, 5]);
        assert_eq!(parameters.number(1, 5), 4);
        assert_eq!(parameters.lookahead(), Picos(1));
    }

    #[test]
    fn levels_without_sets_or_whole_blocks_are_none() {
        let sets = [protocol(0, 1), protocol(0, 2), protocol(0, 3)];
        let usable = |levels: &[Level]| Parameters::by_level(&sets, levels, &[]).is_some();
        assert!(usable(&[level(2, 1, 1), level(4, 2, 1)]));
        assert!(!usable(&[level(4, 1, 1), level(2, 2, 1)]), "larger ones come later");
        assert!(!usable(&[level(4, 1, 1), level(6, 2, 1)]), "six are no whole blocks of four");
        assert!(!usable(&[level(2, 1, 1), level(2, 2, 1)]), "nothing is in the second alone");
        assert!(!usable(&[level(2, 0, 3)]), "none is left for the others");
        assert!(!usable(&[level(2, 2, 1)]), "those of the others do not ascend");
        assert!(!usable(&[level(2, 1, 1), level(4, 1, 2)]) && !usable(&[level(2, 1, 1)]));
        assert!(!usable(&[level(2, 1, 0), level(4, 1, 2)]) && !usable(&[level(2, 4, 0)]));
        assert!(!usable(&[level(2, 1, usize::MAX), level(4, 2, 1)]));
    }
}
