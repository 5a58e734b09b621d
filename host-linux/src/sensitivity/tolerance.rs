//! Latency tolerance: the increase of all latencies at which the makespan has grown by some
//! percent, found by runs with larger latencies.
//!
//! Where the order of events changes, a makespan may jump, and even decrease. So results refer to
//! the latencies that were tried: the smallest with which the makespan exceeds the limit, and the
//! largest tried below that one.

use std::collections::{BTreeMap, BTreeSet};

use loggap_core::units::Picos;
use serde::{Serialize, Serializer};

/// Tolerated increase of all latencies.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Tolerance {
    /// Growth of the makespan, in percent.
    #[serde(rename = "growth_percent")]
    pub percent: u32,
    /// Largest increase of the latencies; `None` if the makespan does not depend on L.
    #[serde(rename = "latency_s", serialize_with = "seconds")]
    pub latency: Option<Picos>,
    /// True if the order of events is proved to stay up to this latency. Otherwise, and without
    /// `exceeded`, the latency is an estimate that assumes the present order.
    #[serde(rename = "order_stays")]
    pub proved: bool,
    /// If found by runs: smallest tried increase with which the makespan exceeds the limit;
    /// `latency` is the largest one tried below it.
    #[serde(rename = "exceeded_at_s", serialize_with = "seconds")]
    pub exceeded: Option<Picos>,
}

fn seconds<S: Serializer>(time: &Option<Picos>, to: S) -> Result<S::Ok, S::Error> {
    time.map(Picos::seconds).serialize(to)
}

impl Tolerance {
    /// Growths of the makespan that are examined, in percent.
    pub(super) const PERCENT: [u32; 3] = [1, 5, 10];

    /// Largest number of runs that [`found_by_runs`] makes.
    pub const MOST_RUNS: u64 =
        1 + Self::PERCENT.len() as u64 * (2 + MOST_ROUNDS as u64 * (PARTS - 1));
}

/// Final width of a bracket: the latency divided by this.
const RESOLUTION: u64 = 1_024;
/// Number of parts into which a round divides a bracket.
const PARTS: u64 = 4;
/// Rounds of runs after the first.
const MOST_ROUNDS: u32 = 20;

/// `estimates`, with those that are not proved replaced by results of runs. `makespan` is that of
/// the given latencies. `run` returns the makespan for each of some increases of all latencies,
/// `None` where the schedule does not complete.
///
/// # Errors
///
/// Errors of `run`.
pub fn found_by_runs<E>(
    makespan: Picos,
    estimates: &[Tolerance],
    mut run: impl FnMut(&[Picos]) -> Result<Vec<Option<Picos>>, E>,
) -> Result<Vec<Tolerance>, E> {
    let open = || estimates.iter().filter(|estimate| !estimate.proved);
    let limit = |tolerance: &Tolerance| grown_by(makespan, tolerance.percent);
    let Some(longest) = open().map(limit).max() else { return Ok(estimates.to_vec()) };
    let mut trials = Trials(BTreeMap::from([(0, Some(makespan.0))]));
    // A single message that takes longer than the largest limit exceeds it.
    let mut next = BTreeSet::from([longest.saturating_add(1)]);
    for estimate in open().filter_map(|estimate| estimate.latency) {
        next.extend([estimate.0, estimate.0.saturating_add(resolution(estimate.0))]);
    }
    for round in 0..=MOST_ROUNDS {
        let growths: Vec<Picos> = next.iter().copied().map(Picos).collect();
        let makespans = run(&growths)?;
        trials.0.extend(next.into_iter().zip(makespans.into_iter().map(|of| of.map(|of| of.0))));
        let brackets = open().filter_map(|tolerance| trials.bracket(limit(tolerance)));
        next = brackets.flat_map(|bracket| bracket.next(round)).collect();
        if next.is_empty() {
            break;
        }
    }
    let found = |estimate: &Tolerance| {
        if estimate.proved {
            return *estimate;
        }
        let bracket = trials.bracket(limit(estimate));
        let latency = bracket.as_ref().map(|bracket| Picos(bracket.within.growth));
        let exceeded = bracket.as_ref().map(|bracket| Picos(bracket.beyond));
        Tolerance { latency, exceeded, ..*estimate }
    };
    Ok(estimates.iter().map(found).collect())
}

/// Limit for a growth by `percent`.
fn grown_by(Picos(makespan): Picos, percent: u32) -> u64 {
    let grown = u128::from(makespan) * u128::from(100 + percent) / 100;
    u64::try_from(grown).unwrap_or(u64::MAX)
}

/// Width at which a bracket around `latency` is narrow enough.
fn resolution(latency: u64) -> u64 {
    (latency / RESOLUTION).max(1)
}

/// Makespan in ps for each increase of the latencies that was tried; `None` where the schedule did
/// not complete.
struct Trials(BTreeMap<u64, Option<u64>>);

impl Trials {
    /// Neighbouring trials between which the makespan first exceeds `limit`; `None` if it never
    /// does.
    fn bracket(&self, limit: u64) -> Option<Bracket> {
        let mut within = Trial::default();
        for (&growth, &makespan) in &self.0 {
            match makespan {
                Some(makespan) if makespan <= limit => within = Trial { growth, makespan },
                _ => return Some(Bracket { limit, within, beyond: growth, longer: makespan }),
            }
        }
        None
    }
}

/// A run with increased latencies.
#[derive(Default)]
struct Trial {
    growth: u64,
    makespan: u64,
}

/// Bracket of a tolerance.
struct Bracket {
    limit: u64,
    /// Trial whose makespan is at most the limit.
    within: Trial,
    /// Increase with which the makespan exceeds the limit.
    beyond: u64,
    /// Makespan with that increase; `None` if the schedule does not complete.
    longer: Option<u64>,
}

impl Bracket {
    /// Increases to try in a round; none if the bracket is narrow enough.
    fn next(&self, round: u32) -> Vec<u64> {
        if self.beyond - self.within.growth <= resolution(self.within.growth) {
            return Vec::new();
        }
        let by_turns = self.longer.filter(|_| round.is_multiple_of(2));
        by_turns.map_or_else(|| self.cuts(), |longer| self.crossing(longer))
    }

    /// Linear interpolation of the increase at which the makespan reaches the limit, and the next
    /// one in steps of the resolution.
    fn crossing(&self, longer: u64) -> Vec<u64> {
        let Trial { growth, makespan } = self.within;
        let part = u128::from(self.beyond - growth) * u128::from(self.limit - makespan);
        let part = part / u128::from(longer - makespan).max(1);
        let before = growth + u64::try_from(part).unwrap_or(u64::MAX);
        let both = [before, before + resolution(before)].into_iter();
        both.filter(|&at| at > growth && at < self.beyond).collect()
    }

    /// Even division of the bracket, or geometric if its ends are far apart.
    fn cuts(&self) -> Vec<u64> {
        let (within, width) = (self.within.growth, self.beyond - self.within.growth);
        let least = within.max(1);
        let octaves = u64::from((self.beyond / least).ilog2());
        let cut = |part: u64| match octaves {
            PARTS.. => least << (octaves * part / PARTS),
            _ => within + width / PARTS * part + width % PARTS * part / PARTS,
        };
        (1..PARTS).map(cut).filter(|&at| at > within && at < self.beyond).collect()
    }
}
