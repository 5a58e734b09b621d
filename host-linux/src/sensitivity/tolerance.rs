//! How much all latencies may grow until the makespan has grown by some percent,
//! by runs with larger latencies.
//!
//! Where the order of events changes a makespan may jump, and even fall. So what is
//! found is stated of the values that were tried: the least with which the makespan
//! has grown by more, and the greatest below that.

use std::collections::{BTreeMap, BTreeSet};

use loggap_core::units::Picos;

/// How much all latencies may grow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tolerance {
    /// Until the makespan has grown by so many percent.
    pub percent: u32,
    /// By so much at most; `None` where the makespan does not depend on L.
    pub latency: Option<Picos>,
    /// Where runs found it: the least growth tried with which the makespan has grown
    /// by more. `latency` is the greatest that was tried below.
    pub exceeded: Option<Picos>,
    /// Whether the order of events is proved to stay until then. Otherwise, and
    /// without `exceeded`, the latency is an estimate: that of a machine that keeps
    /// the present order.
    pub proved: bool,
}

impl Tolerance {
    /// Growths of the makespan that are looked at, in percent.
    pub(super) const PERCENT: [u32; 3] = [1, 5, 10];

    /// Runs that [`found_by_runs`] makes at most.
    pub const MOST_RUNS: u64 =
        1 + Self::PERCENT.len() as u64 * (2 + MOST_ROUNDS as u64 * (PARTS - 1));
}

/// The distance of both ends is at most this part of the latency in the end.
const RESOLUTION: u64 = 1_024;
/// Into so many parts an interval is cut.
const PARTS: u64 = 4;
/// Rounds of runs after the first.
const MOST_ROUNDS: u32 = 20;

/// `estimates`, where those that are not proved are found by runs. `makespan` is that
/// of the latencies as they are; `run` says what it is with each of some growths of
/// all latencies, `None` where the schedule does not come to its end.
///
/// # Errors
///
/// Those of `run`.
pub fn found_by_runs<E>(
    makespan: Picos,
    estimates: &[Tolerance],
    mut run: impl FnMut(&[Picos]) -> Result<Vec<Option<Picos>>, E>,
) -> Result<Vec<Tolerance>, E> {
    let open = || estimates.iter().filter(|estimate| !estimate.proved);
    let limit = |tolerance: &Tolerance| grown_by(makespan, tolerance.percent);
    let Some(longest) = open().map(limit).max() else { return Ok(estimates.to_vec()) };
    let mut trials = Trials(BTreeMap::from([(0, Some(makespan.0))]));
    // One message that takes longer than the longest makespan makes it longer.
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

/// The longest makespan that has grown by no more than so many percent.
fn grown_by(Picos(makespan): Picos, percent: u32) -> u64 {
    let grown = u128::from(makespan) * u128::from(100 + percent) / 100;
    u64::try_from(grown).unwrap_or(u64::MAX)
}

/// How far apart both ends may be in the end.
fn resolution(latency: u64) -> u64 {
    (latency / RESOLUTION).max(1)
}

/// Growths of all latencies that were tried, and the makespan with each, in ps; `None`
/// where the schedule did not come to its end.
struct Trials(BTreeMap<u64, Option<u64>>);

impl Trials {
    /// Between which of them the makespan passes `limit` first; `None` where it does not.
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

/// A run with longer latencies.
#[derive(Default)]
struct Trial {
    growth: u64,
    makespan: u64,
}

/// Between what a tolerance is.
struct Bracket {
    limit: u64,
    /// Its makespan is at most the limit.
    within: Trial,
    /// With so much more latency it is longer,
    beyond: u64,
    /// and so long, if the schedule comes to its end.
    longer: Option<u64>,
}

impl Bracket {
    /// What to try in a round; nothing where it is narrow enough.
    fn next(&self, round: u32) -> Vec<u64> {
        if self.beyond - self.within.growth <= resolution(self.within.growth) {
            return Vec::new();
        }
        let by_turns = self.longer.filter(|_| round.is_multiple_of(2));
        by_turns.map_or_else(|| self.cuts(), |longer| self.crossing(longer))
    }

    /// Where the makespan passes the limit if it grows evenly: the last growth before,
    /// and the first one behind.
    fn crossing(&self, longer: u64) -> Vec<u64> {
        let Trial { growth, makespan } = self.within;
        let part = u128::from(self.beyond - growth) * u128::from(self.limit - makespan);
        let part = part / u128::from(longer - makespan).max(1);
        let before = growth + u64::try_from(part).unwrap_or(u64::MAX);
        let both = [before, before + resolution(before)].into_iter();
        both.filter(|&at| at > growth && at < self.beyond).collect()
    }

    /// Evenly between both ends, or by equal factors where they are far apart.
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
