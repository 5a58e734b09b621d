//! Owned parameter sets with the overheads of both ends, by placement level.

use std::mem;
use std::num::NonZeroU32;

use crate::profile::SizeSpan;
use loggap_core::model::{Protocol, Range, ReceiveOverhead, UnusableParameter};
use loggap_core::sim::{Level, Parameters, Rendezvous};
use loggap_core::units::{Bytes, Picos};

/// Parameter sets with the overheads of both ends, by placement level.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ParameterSets {
    /// At least one set: those of ranks that share no level, ascending in message size; then the
    /// sets of each level.
    pub protocols: Vec<Protocol>,
    /// Receive overhead of each set; empty if it equals the send overhead.
    pub receive: Vec<ReceiveOverhead>,
    /// Levels of placement, the nearest first.
    pub levels: Vec<Level>,
    /// Place of each rank; empty if it is the rank's number.
    pub places: Vec<u32>,
}

/// A parameter set and its level.
#[derive(Clone, Copy, Debug)]
pub struct LevelSet<'a> {
    /// Placement level; 0 is the nearest.
    pub level: usize,
    /// Index among all sets.
    pub number: usize,
    /// The set.
    pub protocol: &'a Protocol,
}

/// Why sets are invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SetsError {
    /// Their number is 0 or too large, or they are not in ascending order.
    #[error("a simulation takes up to {most} parameter sets, in ascending order of size", most = Parameters::MOST)]
    Number,
    /// The size of a level is no multiple of that of the previous one.
    #[error("a level of {far} is no multiple of the level of {near} before it")]
    Levels {
        /// Places in a block of the nearer level.
        near: u32,
        /// Places in a block of the farther level.
        far: u32,
    },
    /// The number of receive overheads differs from that of sets.
    #[error("each parameter set needs an overhead of the receiver")]
    Receive,
}

/// A measured size range that yields no parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {error}", SizeSpan { first: *first, last: *last })]
pub struct UnusableRange {
    /// Smallest size of the range.
    pub first: Bytes,
    /// Largest size of the range.
    pub last: Bytes,
    /// The missing or negative parameter.
    pub error: UnusableParameter,
}

impl ParameterSets {
    /// Creates sets; `receive` has as many elements as `protocols`, or none.
    #[must_use]
    pub fn new(protocols: Vec<Protocol>, receive: Vec<ReceiveOverhead>) -> Self {
        Self { protocols, receive, ..Self::default() }.simplified()
    }

    /// Overhead of the receiver with the set of this index.
    #[must_use]
    pub fn receive_overhead(&self, number: usize) -> ReceiveOverhead {
        let same = || Some(self.protocols.get(number)?.parameters.receive_overhead());
        self.receive.get(number).copied().or_else(same).unwrap_or_default()
    }

    /// Removes the receive overheads if they equal the send overheads.
    #[must_use]
    pub fn simplified(self) -> Self {
        let mut ends = self.protocols.iter().zip(&self.receive);
        if ends.all(|(protocol, receive)| protocol.parameters.receive_overhead() == *receive) {
            return Self { receive: Vec::new(), ..self };
        }
        self
    }

    /// The sets for ranks with other numbers: `ranks` has the rank of each.
    #[must_use]
    pub fn numbered(&self, ranks: &[u32]) -> Self {
        let place = |rank: &u32| self.places.get(*rank as usize).copied().unwrap_or(*rank);
        let places = if self.levels.is_empty() { [].iter() } else { ranks.iter() };
        Self { places: places.map(place).collect(), ..self.clone() }
    }

    /// Adds a level with the sets `near`, for ranks in the same block of `places` places; nearer
    /// levels must be added first.
    #[must_use]
    pub fn with_level(mut self, places: NonZeroU32, near: Self) -> Self {
        let ends = |sets: &mut Self| {
            let own = |protocol: &Protocol| protocol.parameters.receive_overhead();
            match mem::take(&mut sets.receive) {
                same if same.is_empty() => sets.protocols.iter().map(own).collect(),
                receive => receive,
            }
        };
        let mut near = near;
        if !(self.receive.is_empty() && near.receive.is_empty()) {
            self.receive = ends(&mut self);
            self.receive.extend(ends(&mut near));
        }
        let (first, sets) = (self.protocols.len(), near.protocols.len());
        self.levels.push(Level { places, first, sets });
        self.protocols.extend(near.protocols);
        self
    }

    /// Sets of measured ranges, with separate overheads of both ends as measured, and `eager_limit`
    /// as S. Measured times and gaps above S contain a handshake, two messages of one byte; if the
    /// simulation has its own, it is subtracted, and a range across S becomes two. A message takes at
    /// least as long as one of one byte; from the first range nothing can be subtracted.
    ///
    /// # Errors
    ///
    /// [`UnusableRange`] with the first range that yields no set.
    pub fn of_ranges<'a>(
        ranges: impl IntoIterator<Item = &'a Range>,
        eager_limit: Bytes,
        rendezvous: Rendezvous,
    ) -> Result<Self, UnusableRange> {
        let (mut protocols, mut receive) = (Vec::new(), Vec::new());
        let mut eager: Option<(Picos, Picos)> = None;
        for range in ranges {
            let (mut parameters, mut ends) = range
                .loggops_apart(eager_limit)
                .map_err(|error| UnusableRange { first: range.first, last: range.last, error })?;
            let one_way = parameters.one_byte(&ends);
            let &mut (least, least_gap) = eager.get_or_insert((one_way, parameters.gap));
            let mut first = range.first;
            // Without shorter messages to compare with, what the handshake took is not known.
            let has_handshake = one_way > least || parameters.gap > least_gap;
            if rendezvous == Rendezvous::Handshake && range.last > eager_limit && has_handshake {
                if first <= eager_limit {
                    protocols.push(Protocol { first, parameters });
                    receive.push(ends);
                    first = Bytes(eager_limit.0.saturating_add(1));
                }
                let handshake = Picos(least.0.saturating_mul(2));
                parameters.shorten(&mut ends, one_way.since(least).min(handshake));
                let gap = parameters.gap;
                parameters.gap = gap.since(handshake).max(least_gap.min(gap));
            }
            protocols.push(Protocol { first, parameters });
            receive.push(ends);
        }
        Ok(Self::new(protocols, receive))
    }

    /// Sets of ranks that share no level.
    #[must_use]
    pub fn without_level(&self) -> &[Protocol] {
        let own = self.levels.first().map_or(self.protocols.len(), |near| near.first);
        self.protocols.get(..own).unwrap_or_default()
    }

    /// The sets if no ranks share a level.
    #[must_use]
    pub fn without_levels(&self) -> Self {
        let protocols = self.without_level().to_vec();
        let receive = self.receive.iter().take(protocols.len()).copied().collect();
        Self::new(protocols, receive)
    }

    /// All sets, from the nearest level to the farthest; those without a level come last.
    pub fn by_level(&self) -> impl Iterator<Item = LevelSet<'_>> {
        let own = self.without_level().len();
        let levels = self.levels.iter().enumerate();
        let of_level = levels.flat_map(|(at, level)| std::iter::repeat_n(at, level.sets));
        let near = of_level.zip(self.protocols.iter().enumerate().skip(own));
        let far = self.protocols.iter().enumerate().take(own);
        let far = far.map(|set| (self.levels.len(), set));
        let of = |(level, (number, protocol))| LevelSet { level, number, protocol };
        near.chain(far).map(of)
    }

    /// The sets in the form that simulations take.
    ///
    /// # Errors
    ///
    /// [`SetsError`].
    pub fn parameters(&self) -> Result<Parameters<'_>, SetsError> {
        let parameters = Parameters::by_level(&self.protocols, &self.levels, &self.places);
        let parameters = parameters.ok_or_else(|| self.unusable())?;
        if self.receive.is_empty() {
            return Ok(parameters);
        }
        parameters.with_receive(&self.receive).ok_or(SetsError::Receive)
    }

    fn unusable(&self) -> SetsError {
        let pairs = self.levels.iter().zip(self.levels.iter().skip(1));
        let mut places = pairs.map(|(near, far)| (near.places.get(), far.places.get()));
        match places.find(|(near, far)| far <= near || far % near != 0) {
            None => SetsError::Number,
            Some((near, far)) => SetsError::Levels { near, far },
        }
    }
}

#[cfg(test)]
mod tests {
    use loggap_core::goal::pattern::{Options, Pattern};
    use loggap_core::model::{Estimate, LogGops, SizeLine};
    use loggap_core::noise::Phases;
    use loggap_core::sim::Settings;
    use loggap_core::units::{PerByte, SignedPerByte, SignedPicos};

    use super::*;
    use crate::simulation::{Plan, Point, Source, run_points};

    fn set([latency, overhead]: [u64; 2], receive: Option<u64>) -> ParameterSets {
        let parameters = LogGops {
            latency: Picos(latency),
            overhead: Picos(overhead),
            gap: Picos(0),
            gap_per_byte: PerByte::ZERO,
            overhead_per_byte: PerByte::ZERO,
            eager_limit: Bytes(u64::MAX),
        };
        let receive = receive.map(|overhead| ReceiveOverhead {
            overhead: Picos(overhead),
            overhead_per_byte: PerByte::ZERO,
        });
        let protocols = vec![Protocol { first: Bytes(0), parameters }];
        ParameterSets::new(protocols, receive.into_iter().collect())
    }

    /// Makespan of a broadcast of one byte from rank 0 to 1 and 2, then from 1 to 3; the last
    /// message is sent after the receive.
    fn makespan(sets: &ParameterSets, ranks: u32) -> u64 {
        let options = Options::new(ranks, 1);
        let source = Source::Pattern(Pattern::BinomialBroadcast, options);
        let point = |_| Point { sets: sets.clone(), phases: Phases::Drawn { seed: 0 } };
        let plan = Plan::new(Settings::default());
        run_points(&source, 1, &point, &plan, &|| {}).unwrap()[0].makespan.0
    }

    #[test]
    fn overheads_of_each_end_are_those_of_the_level() {
        let pair = NonZeroU32::new(2).unwrap();
        let (far, near) = ([1_000, 10], [100, 1]);
        for (far_receive, near_receive) in
            [(None, None), (Some(70), None), (None, Some(7)), (Some(70), Some(7))]
        {
            let sets = set(far, far_receive).with_level(pair, set(near, near_receive));
            let (far_r, near_r) = (far_receive.unwrap_or(10), near_receive.unwrap_or(1));
            // 0 to 1 within a pair.
            assert_eq!(makespan(&sets, 2), 1 + 100 + near_r);
            // 0 to 1; then 0 to 2 in the other pair; then 2 or 1 to 3.
            let to_two = 1 + 10 + 1_000 + far_r;
            let to_one = 1 + 100 + near_r;
            let to_three = to_one + 10 + 1_000 + far_r;
            assert_eq!(
                makespan(&sets, 4),
                to_two.max(to_three),
                "{far_receive:?} {near_receive:?}"
            );
        }
    }

    /// A message above S is measured with its handshake, which a simulation adds again.
    #[test]
    fn a_simulated_handshake_is_not_added_to_the_measured_one() {
        let line = |at_one, per_byte: i64| {
            SizeLine::exact(SignedPicos(at_one), SignedPerByte(per_byte << 16))
        };
        let range = |first, last, half_rtt: i64, latency: Option<i64>| Range {
            first: Bytes(first),
            last: Bytes(last),
            gap: line(if first == 1 { 100 } else { 1_000 }, 1),
            half_rtt: Some(line(half_rtt, 1)),
            send_overhead: Some(line(100, 0)),
            recv_overhead: Some(line(300, 0)),
            latency: latency.map(|time| Estimate::exact(SignedPicos(time))),
        };
        // 600 of the long ones' one-way time are a handshake; overheads are 400.
        for (long, expected_above) in [(2_000, 1_400), (1_300, 700)] {
            let latency = Some(long - 400);
            let ranges = [range(1, 99, 300, None), range(100, 999, long, latency)];
            for (rendezvous, expected) in
                [(Rendezvous::Handshake, expected_above), (Rendezvous::Instant, long)]
            {
                let sets = ParameterSets::of_ranges(&ranges, Bytes(99), rendezvous).unwrap();
                let set = sets.protocols[1].parameters;
                let one_byte = set.one_byte(&sets.receive_overhead(1));
                assert_eq!(one_byte.0.cast_signed(), expected);
                let is_whole = rendezvous == Rendezvous::Instant;
                assert_eq!(set.gap, Picos(if is_whole { 1_000 } else { 400 }));
            }
            // Of a first range, nothing tells what a handshake took.
            let sets = ParameterSets::of_ranges(&ranges[1..], Bytes(99), Rendezvous::Handshake);
            assert_eq!(sets.unwrap().protocols.len(), 1);
            // S within the second range: its sizes up to S are sent without a handshake.
            let sets = ParameterSets::of_ranges(&ranges, Bytes(500), Rendezvous::Handshake);
            let sets = sets.unwrap();
            let firsts: Vec<_> = sets.protocols.iter().map(|set| set.first).collect();
            assert_eq!(firsts, [Bytes(1), Bytes(100), Bytes(501)]);
            for (number, expected) in [(1, long), (2, expected_above)] {
                let set = sets.protocols[number].parameters;
                let one_byte = set.one_byte(&sets.receive_overhead(number));
                assert_eq!(one_byte.0.cast_signed(), expected);
            }
        }
    }
}
