//! Matrix of parameters over pairs of ranks, and its slow machines, ranks and pairs.

use std::collections::BTreeMap;

use loggap::link::MpiLibrary;
use loggap::output::number;
use loggap::output::plot::heat::HeatMap;
use loggap::profile::ProfileDocument;
use serde::{Deserialize, Serialize};

use crate::job::Place;
use crate::pairs::Pair;
use crate::slower::{
    EndEffect, LEAST_ENDS, PairValue, Slower, SlowerOptions, slowest_end, slowest_pair,
};

/// Measurements between two ranks, in seconds: medians over the sessions in
/// both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairRecord {
    /// Lower rank.
    pub low_rank: i32,
    /// Higher rank.
    pub high_rank: i32,
    /// Number of sessions that gave a value.
    pub sessions: usize,
    /// Medians of the sessions.
    #[serde(flatten)]
    pub values: Values,
}

/// Values of a pair in seconds, as far as known.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Values {
    /// Half the round trip of the smallest message.
    pub half_rtt_s: Option<f64>,
    /// Gap at the largest size: time per further message.
    pub gap_s: Option<f64>,
    /// Send overhead of the smallest message.
    pub send_overhead_s: Option<f64>,
    /// Receive overhead of the smallest message.
    pub recv_overhead_s: Option<f64>,
}

/// Quantity in which ranks are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quantity {
    /// Half round trip of the smallest message.
    HalfRoundTrip,
    /// Time per message of the largest size.
    Gap,
}

impl Quantity {
    /// Both quantities.
    pub const ALL: [Self; 2] = [Self::HalfRoundTrip, Self::Gap];

    /// Key in documents, without the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HalfRoundTrip => "half_rtt",
            Self::Gap => "gap",
        }
    }

    /// Value in a record, in seconds.
    #[must_use]
    pub const fn of(self, record: &PairRecord) -> Option<f64> {
        match self {
            Self::HalfRoundTrip => record.values.half_rtt_s,
            Self::Gap => record.values.gap_s,
        }
    }
}

/// A machine, rank or pair that is slower than the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowRecord {
    /// `machine` (all its ranks), `rank`, or `pair` (messages between two ranks).
    pub kind: &'static str,
    /// Name of the machine, or the ranks.
    pub name: String,
    /// Quantity in which it is slow: `half_rtt` or `gap`.
    pub quantity: &'static str,
    /// Factor by which it takes longer.
    pub factor: f64,
    /// Lower bound of the factor, at the requested error.
    pub factor_lo: f64,
}

/// Document of a job's matrix.
#[derive(Clone, Debug, Serialize)]
pub struct MatrixDocument {
    /// Version of loggap.
    pub loggap_version: &'static str,
    /// Command line.
    pub command: Vec<String>,
    /// Seed of the order.
    pub seed: u64,
    /// Always `mpi`.
    pub transport: &'static str,
    /// MPI library and its settings.
    pub mpi: MpiLibrary,
    /// Pairs that were requested.
    pub pairs_asked: String,
    /// Smallest message size.
    pub smallest_bytes: u64,
    /// Largest message size.
    pub largest_bytes: u64,
    /// Places of the ranks.
    pub ranks: Vec<Place>,
    /// Measurements of the pairs.
    pub pairs: Vec<PairRecord>,
    /// Probability of calling anything slow when nothing is.
    pub error: f64,
    /// Slow machines, ranks and pairs.
    pub slow: Vec<SlowRecord>,
    /// Duration of the job, in seconds.
    pub wall_s: f64,
    /// Reason why pairs or sessions are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Warnings about the results.
    pub warnings: Vec<String>,
}

/// Values of one session.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SessionValues {
    /// Ranks that it was measured between.
    pub pair: Pair,
    /// Sizes of the smallest and the largest message.
    pub sizes: [u64; 2],
    /// Values.
    pub values: Values,
}

impl SessionValues {
    /// Values in `document`.
    #[must_use]
    pub fn of(pair: Pair, document: &ProfileDocument) -> Self {
        let rows = || document.sizes.iter().map(|record| &record.row);
        let (Some(first), Some(last)) = (rows().next(), rows().next_back()) else {
            return Self { pair, ..Self::default() };
        };
        let seconds = |picos: i64| Some(picos as f64 * 1e-12).filter(|seconds| *seconds > 0.0);
        Self {
            pair,
            sizes: [first.size.0, last.size.0],
            values: Values {
                half_rtt_s: first.half_rtt.and_then(|value| seconds(value.value.0)),
                gap_s: last.gap.and_then(|value| seconds(value.value.0)),
                send_overhead_s: first.send_overhead.and_then(|value| seconds(value.value.0)),
                recv_overhead_s: first.recv_overhead.and_then(|value| seconds(value.value.0)),
            },
        }
    }
}

/// Records of all measured pairs, from the values of each session.
#[must_use]
pub fn records(sessions: &[SessionValues]) -> Vec<PairRecord> {
    of_pairs(sessions).into_iter().map(|([low, high], values)| record(low, high, &values)).collect()
}

/// Sessions of each pair, in order of time.
fn of_pairs(sessions: &[SessionValues]) -> BTreeMap<[i32; 2], Vec<SessionValues>> {
    let mut pairs: BTreeMap<_, Vec<SessionValues>> = BTreeMap::new();
    for session in sessions {
        let Pair { initiator, responder } = &session.pair;
        let key = [*initiator.min(responder), *initiator.max(responder)];
        pairs.entry(key).or_default().push(*session);
    }
    pairs
}

/// Medians of the first and of the second half of each pair's sessions.
fn halves(sessions: &[SessionValues]) -> [Vec<PairRecord>; 2] {
    let pairs = of_pairs(sessions).into_iter();
    let (first, second) = pairs
        .map(|([low, high], values)| {
            let (first, second) = values.split_at(values.len() / 2);
            (record(low, high, first), record(low, high, second))
        })
        .unzip();
    [first, second]
}

fn record(low_rank: i32, high_rank: i32, sessions: &[SessionValues]) -> PairRecord {
    let known = |of: fn(&Values) -> Option<f64>| sessions.iter().filter_map(move |s| of(&s.values));
    let values = Values {
        half_rtt_s: median(known(|values| values.half_rtt_s)),
        gap_s: median(known(|values| values.gap_s)),
        send_overhead_s: median(known(|values| values.send_overhead_s)),
        recv_overhead_s: median(known(|values| values.recv_overhead_s)),
    };
    let sessions = known(|values| values.half_rtt_s).count();
    PairRecord { low_rank, high_rank, sessions, values }
}

/// Median of `values`.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((upper + sorted.get(middle.checked_sub(1)?)?) / 2.0)
}

/// Slow machines, then slow ranks, then slow pairs; ranks and pairs that belong
/// to a slow machine or rank are not listed again.
///
/// If every machine has one rank, machines are tested and ranks are not. The
/// probability `error` of a false alarm is divided among all tests, in both
/// quantities. A finding has to show in both halves of the sessions, so pairs
/// with one session do not count.
#[must_use]
pub fn slow(sessions: &[SessionValues], places: &[Place], error: f64) -> Vec<SlowRecord> {
    let records = &records(sessions)[..];
    let [first, second] = halves(sessions);
    let mut hosts: Vec<&str> = places.iter().map(|place| place.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let host_of = |rank: i32| {
        let place = usize::try_from(rank).ok().and_then(|rank| places.get(rank));
        place.and_then(|place| hosts.binary_search(&place.host.as_str()).ok()).unwrap_or(0)
    };
    let has_machines = hosts.len() >= LEAST_ENDS;
    let has_ranks = hosts.len() < places.len() || !has_machines;
    let kinds = 1 + u32::from(has_machines) + u32::from(has_ranks);
    let tried = Quantity::ALL.len() as f64 * f64::from(kinds);
    let options = SlowerOptions { error: error / tried, ..SlowerOptions::default() };
    let mut effects = vec![EndEffect::default(); places.len()];
    let mut found = Vec::new();
    for quantity in Quantity::ALL {
        let mut values = values([records, &first, &second], quantity, host_of);
        let mut note = |kind, name: String, slower: Slower| {
            let (factor, factor_lo) = (slower.factor, slower.factor_low);
            found.push(SlowRecord { kind, name, quantity: quantity.name(), factor, factor_lo });
        };
        let mut of_hosts: Vec<PairValue> = values.clone();
        for (value, record) in of_hosts.iter_mut().zip(records) {
            value.ends = [record.low_rank, record.high_rank].map(host_of);
            // Within a machine both ends are the same.
            value.named |= value.ends.first() == value.ends.last();
        }
        let mut of_machines = vec![EndEffect::default(); hosts.len()];
        while has_machines
            && let Some(slower) = slowest_end(&mut of_hosts, &mut of_machines, &options)
        {
            let name = hosts.get(slower.which).copied().unwrap_or("?");
            for value in values.iter_mut().zip(records).filter_map(|(value, record)| {
                [record.low_rank, record.high_rank]
                    .map(host_of)
                    .contains(&slower.which)
                    .then_some(value)
            }) {
                value.named = true;
            }
            note("machine", name.to_owned(), slower);
        }
        while has_ranks && let Some(slower) = slowest_end(&mut values, &mut effects, &options) {
            note("rank", slower.which.to_string(), slower);
        }
        while let Some(slower) = slowest_pair(&mut values, &mut effects, &options) {
            let Some(record) = records.get(slower.which) else { break };
            let name = format!("{} and {}", record.low_rank, record.high_rank);
            note("pair", name, slower);
        }
    }
    found
}

/// Logarithms of the pairs' times relative to the median of their kind: within
/// a machine, or between two. `parts` are all sessions, and the two halves in
/// time.
fn values(
    parts: [&[PairRecord]; 3],
    quantity: Quantity,
    host_of: impl Fn(i32) -> usize,
) -> Vec<PairValue> {
    let near = |record: &PairRecord| host_of(record.low_rank) == host_of(record.high_rank);
    let logarithms = |records: &[PairRecord]| -> Vec<f64> {
        let [far, close] = [false, true].map(|is_near| {
            let of_kind = records.iter().filter(|record| near(record) == is_near);
            median(of_kind.filter_map(|record| quantity.of(record))).unwrap_or(1.0)
        });
        let middle = |record| if near(record) { close } else { far };
        let value = |record| quantity.of(record).map(|seconds| (seconds / middle(record)).ln());
        records.iter().map(|record| value(record).unwrap_or(f64::NAN)).collect()
    };
    let [records, ..] = parts;
    let [whole, first, second] = parts.map(logarithms);
    let value = |(((record, value), first), second): (((&PairRecord, f64), f64), f64)| {
        let ends =
            [record.low_rank, record.high_rank].map(|rank| usize::try_from(rank).unwrap_or(0));
        PairValue { ends, value, halves: [first, second], named: false }
    };
    records.iter().zip(whole).zip(first).zip(second).map(value).collect()
}

impl MatrixDocument {
    /// Heat map of the half round trips.
    #[must_use]
    pub fn heat_map(&self) -> HeatMap {
        let count = self.ranks.len();
        let mut values = vec![None; count * count];
        for record in &self.pairs {
            let ranks = [record.low_rank, record.high_rank].map(usize::try_from);
            let [Ok(low), Ok(high)] = ranks else { continue };
            for index in [low * count + high, high * count + low] {
                if let Some(value) = values.get_mut(index) {
                    *value = record.values.half_rtt_s;
                }
            }
        }
        HeatMap {
            title: format!("half round trip between {count} ranks, {}", self.mpi.version),
            caption: format!("half round trip of {}", number::size(self.smallest_bytes)),
            axis: "rank".into(),
            names: (0..count).map(|rank| rank.to_string()).collect(),
            values,
            units: number::TIME,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Pairs;
    use loggap_core::random::Random;

    fn places(hosts: usize, each: usize) -> Vec<Place> {
        let place = |host: usize| Place { host: format!("node{host}"), ..Place::default() };
        (0..hosts * each).map(|rank| place(rank / each)).collect()
    }

    /// Three sessions of every pair: 1 us within a machine, 5 us between two,
    /// with noise, times `factor`.
    fn sessions(places: &[Place], seed: u64, factor: impl Fn(Pair) -> f64) -> Vec<SessionValues> {
        let mut random = Random::new(seed);
        let ranks = i32::try_from(places.len()).unwrap();
        let rounds = Pairs::All.rounds(ranks, 3, seed);
        let place = |rank: i32| &places[usize::try_from(rank).unwrap()].host;
        rounds
            .into_iter()
            .flatten()
            .map(|pair| {
                let near = place(pair.initiator) == place(pair.responder);
                let base = if near { 1e-6 } else { 5e-6 };
                let mut noisy = |base: f64| Some(base * (0.05 * random.normal()).exp());
                let factor = factor(pair);
                SessionValues {
                    pair,
                    sizes: [1, 65_536],
                    values: Values {
                        half_rtt_s: noisy(base * factor),
                        gap_s: noisy(base),
                        send_overhead_s: noisy(1e-7),
                        recv_overhead_s: noisy(1e-7),
                    },
                }
            })
            .collect()
    }

    #[test]
    fn a_slow_machine_is_named_once() {
        let places = places(5, 2);
        for seed in 0..20 {
            let slow_host = |rank: i32| rank / 2 == 3;
            let factor = |pair: Pair| {
                if slow_host(pair.initiator) || slow_host(pair.responder) { 1.5 } else { 1.0 }
            };
            let sessions = sessions(&places, seed, factor);
            assert_eq!(records(&sessions).len(), 45);
            let found = slow(&sessions, &places, 0.02);
            assert_eq!(found.len(), 1, "{seed}: {found:?}");
            assert_eq!((found[0].kind, found[0].name.as_str()), ("machine", "node3"));
            assert!((found[0].factor - 1.5).abs() < 0.15 && found[0].quantity == "half_rtt");
        }
    }

    #[test]
    fn a_slow_rank_of_one_machine_is_named() {
        let places = places(1, 6);
        for seed in 0..20 {
            let factor =
                |pair: Pair| if pair.initiator == 4 || pair.responder == 4 { 1.6 } else { 1.0 };
            let found = slow(&sessions(&places, seed, factor), &places, 0.02);
            assert_eq!(found.len(), 1, "{seed}: {found:?}");
            assert_eq!((found[0].kind, found[0].name.as_str()), ("rank", "4"));
        }
    }

    /// All pairs are measured once before any is measured again, and another
    /// process slows one rank in one of these turns.
    #[test]
    fn a_rank_that_is_slow_for_a_while_is_not_named() {
        let places = places(1, 6);
        for (seed, slow_turn) in (0..40).zip([0, 1].into_iter().cycle()) {
            let mut sessions = sessions(&places, seed, |_| 1.0);
            for (index, SessionValues { pair, values, .. }) in sessions.iter_mut().enumerate() {
                let of_rank = pair.initiator == 4 || pair.responder == 4;
                let turn = usize::from(index >= 15);
                if of_rank && turn == slow_turn {
                    values.half_rtt_s = values.half_rtt_s.map(|seconds| 2.0 * seconds);
                }
            }
            assert_eq!(slow(&sessions, &places, 0.02), [], "{seed}");
        }
    }

    #[test]
    fn one_session_a_pair_names_nobody() {
        let places = places(1, 6);
        let factor =
            |pair: Pair| if pair.initiator == 4 || pair.responder == 4 { 2.0 } else { 1.0 };
        let mut sessions = sessions(&places, 1, factor);
        assert!(!slow(&sessions[..30], &places, 0.02).is_empty());
        sessions.truncate(15);
        assert_eq!(slow(&sessions, &places, 0.02), []);
    }

    #[test]
    fn nobody_is_named_where_nobody_is_slow_in_98_of_100() {
        for places in [places(1, 4), places(4, 2), places(6, 1)] {
            let named = (0..300)
                .filter(|seed| !slow(&sessions(&places, *seed, |_| 1.0), &places, 0.02).is_empty());
            let named = named.count();
            assert!(named <= 6, "{named} of 300 with {} ranks", places.len());
        }
    }

    #[test]
    fn a_picture_has_every_pair_twice() {
        let places = places(2, 2);
        let document = MatrixDocument {
            loggap_version: "0",
            command: Vec::new(),
            seed: 1,
            transport: "mpi",
            mpi: MpiLibrary::default(),
            pairs_asked: "all".into(),
            smallest_bytes: 1,
            largest_bytes: 65_536,
            pairs: records(&sessions(&places, 1, |_| 1.0)),
            ranks: places,
            error: 0.02,
            slow: Vec::new(),
            wall_s: 1.0,
            incomplete: None,
            warnings: Vec::new(),
        };
        let map = document.heat_map();
        assert_eq!(map.values.iter().filter(|value| value.is_some()).count(), 12);
        assert!(map.svg().unwrap().contains("1 - 3: "));
    }
}
