//! Synchronises virtual clocks with known truth over the tree, and reports how far the corrected
//! clocks deviate from the root's and whether the claimed errors cover the deviations.

use std::convert::Infallible;

use loggap_core::sync::{
    Assumptions, Edge, RankClock, ResidualSummary, SyncError, SyncOptions, Tree,
};
use loggap_core::units::Picos;
use serde::{Serialize, Serializer};

use super::clock::ClockTruth;
use super::cluster::{Cluster, residuals};
use super::path::{Contention, Path};
use super::{SECOND, seconds};
use crate::clocks::{check, with_tree};

/// Passes over the tree at the beginning; five over
/// [`LEAST_SPAN`](loggap_core::sync::LEAST_SPAN) or more give a useful slope.
const PASSES: u64 = 5;
/// Time between the beginnings of two passes, in ps; a pass that takes longer delays the next.
const PAUSE: u64 = SECOND / 4;
/// Time from the end of these passes to the final one, in ps.
const HOLD: u64 = 10 * SECOND;

/// Clocks and network of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Name in reports.
    pub name: &'static str,
    /// Properties of the clocks.
    clocks: ClockTruth,
    /// Path between domains. If it is asymmetric, the longer direction is drawn for every edge.
    network: Path,
    /// Path within a domain.
    within: Path,
}

impl Scenario {
    /// One scenario for each disturbance of clocks and pings.
    #[must_use]
    pub fn all() -> [Self; 6] {
        const MICROSECOND: u64 = 1_000_000;
        const MILLISECOND: u64 = 1_000 * MICROSECOND;
        let clocks = ClockTruth::USUAL;
        let (network, within) = (Path::of(Picos(MICROSECOND)), Path::of(Picos(MICROSECOND / 10)));
        let quiet = Self { name: "quiet", clocks, network, within };
        let drift = ClockTruth { drift_ppm: 100.0, ..clocks };
        let wander = ClockTruth { wander_ppb: 20.0, widest_wander_ppb: 100.0, ..clocks };
        let jitter = ClockTruth { jitter: Picos(50_000), granularity: Picos(100_000), ..clocks };
        let noisy = Path { jitter: Picos(2 * MICROSECOND), ..network };
        let asymmetric = Path { asymmetry_percent: 80, ..network };
        let contention = Contention {
            probability: 0.005,
            phase: Picos(100 * MILLISECOND),
            delay: Picos(4 * MILLISECOND),
        };
        let contended = |path| Path { contention, ..path };
        [
            quiet,
            Self { name: "drift", clocks: drift, ..quiet },
            Self { name: "wander", clocks: wander, ..quiet },
            Self { name: "jitter", clocks: jitter, network: noisy, ..quiet },
            Self { name: "asymmetry", network: asymmetric, ..quiet },
            Self {
                name: "preemption",
                network: contended(network),
                within: contended(within),
                ..quiet
            },
        ]
    }

    /// Options that match the paths and clock resolution of this scenario, with the given
    /// assumptions.
    #[must_use]
    pub fn options(&self, assumptions: Assumptions) -> SyncOptions {
        let (between, within) = (self.network.round_trip(), self.within.round_trip());
        SyncOptions::expecting(between, within, self.clocks.resolution(), assumptions)
    }
}

/// Result of a trial. Residuals are corrected clock minus root's clock, of all ranks but the root.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct TrialReport {
    /// Duration of the last of the first passes.
    #[serde(rename = "pass_s", serialize_with = "seconds")]
    pub pass: Picos,
    /// Total number of pings.
    pub pings: u64,
    /// Number of ranks with contradicting offsets.
    pub contradicted: u32,
    /// Residuals at the end of the first passes.
    #[serde(serialize_with = "in_seconds")]
    pub synchronised: ResidualSummary,
    /// Residuals at the end of the hold, extrapolated.
    #[serde(serialize_with = "in_seconds")]
    pub extrapolated: ResidualSummary,
    /// Residuals in the middle of the hold, interpolated after the final pass. Ranks whose clock
    /// was found to be set are excluded.
    #[serde(serialize_with = "in_seconds")]
    pub interpolated: ResidualSummary,
}

#[derive(Serialize)]
struct Summary {
    residual_p50_s: f64,
    residual_p99_s: f64,
    residual_max_s: f64,
    bound_s: f64,
    covered_share: f64,
}

fn in_seconds<S: Serializer>(summary: &ResidualSummary, to: S) -> Result<S::Ok, S::Error> {
    Summary {
        residual_p50_s: summary.p50.seconds(),
        residual_p99_s: summary.p99.seconds(),
        residual_max_s: summary.max.seconds(),
        bound_s: summary.largest_claim.seconds(),
        covered_share: summary.covered_share(),
    }
    .serialize(to)
}

/// Synchronises `domains.len()` ranks, an element being the clock domain of its rank, holds,
/// synchronises once more, and compares the clocks with the truth.
///
/// Errors are bounds as long as the [`Assumptions`] in `options` and the resolution of the clocks
/// hold, whatever the network does: see [`Scenario::options`].
///
/// # Errors
///
/// [`SyncError`].
pub fn trial(
    domains: &[u32],
    scenario: &Scenario,
    options: &SyncOptions,
    seed: u64,
) -> Result<TrialReport, SyncError<Infallible>> {
    let run = |tree: &Tree<'_>| {
        let leader = |rank| tree.leader(rank).unwrap_or(rank) as usize;
        let reads: Vec<usize> = (0..).map(leader).take(domains.len()).collect();
        let mut ranks = vec![RankClock::default(); reads.len()];
        if let Some(root) = ranks.first_mut() {
            *root = RankClock::root();
        }
        let cluster = Cluster::new(scenario.clocks, seed, reads);
        Trial { tree: *tree, scenario, options, cluster, ranks }.run()
    };
    with_tree(domains, run).unwrap_or_else(|| Ok(TrialReport::default()))
}

struct Trial<'t> {
    tree: Tree<'t>,
    scenario: &'t Scenario,
    options: &'t SyncOptions,
    cluster: Cluster,
    ranks: Vec<RankClock>,
}

impl Trial<'_> {
    fn run(&mut self) -> Result<TrialReport, SyncError<Infallible>> {
        let mut report = TrialReport::default();
        let mut now = Picos::ZERO;
        for pass in 0..PASSES {
            let begin = Picos(PAUSE * pass).max(now);
            now = self.pass(begin)?;
            report.pass = now.since(begin);
        }
        report.synchronised = self.compare_at(now);
        let before = self.ranks.clone();
        let middle = self.cluster.local_at(Picos(now.0 + HOLD / 2));
        let end = Picos(now.0 + HOLD);
        report.extrapolated = self.compare_at(end);
        self.pass(end)?;
        let assumptions = &self.options.assumptions;
        let since = self.ranks.iter().zip(&before);
        let models = since.map(|(rank, before)| rank.since(before, assumptions).ok());
        report.interpolated = check::summary(&residuals(&middle, models));
        report.pings = self.cluster.pings;
        let contradicted = self.ranks.iter().filter(|rank| rank.contradictions() > 0).count();
        report.contradicted = u32::try_from(contradicted).unwrap_or(u32::MAX);
        Ok(report)
    }

    /// Runs one pass over the tree, which begins at the true time `begin`; returns its end.
    fn pass(&mut self, begin: Picos) -> Result<Picos, SyncError<Infallible>> {
        self.cluster.begin_pass(begin);
        let tree = self.tree;
        for rank in tree.parents_first() {
            if let Some(step) = tree.parent(rank) {
                self.step(rank as usize, step.peer as usize, step.edge)?;
            }
        }
        Ok(self.cluster.end())
    }

    /// Synchronises `rank` with `parent`.
    fn step(
        &mut self,
        rank: usize,
        parent: usize,
        edge: Edge,
    ) -> Result<(), SyncError<Infallible>> {
        let mut options = *self.options;
        let Some(parent_clock) = self.ranks.get(parent) else { return Ok(()) };
        let announced = parent_clock.announce(&options.assumptions).map_err(SyncError::Drift)?;
        let Some(own) = self.ranks.get_mut(rank) else { return Ok(()) };
        let path = match edge {
            Edge::Leaders => self.scenario.network,
            Edge::Domain => {
                // A rank whose check fails is synchronised over the path within the domain.
                options.series.offset.widest = options.check.offset.widest;
                self.scenario.within
            }
        };
        self.cluster.meet(rank, parent, path, |pinger| {
            if edge == Edge::Leaders || !own.share(&announced, pinger, &options)? {
                own.synchronise(&announced, pinger, &options, &mut [])?;
            }
            Ok(())
        })
    }

    /// Residuals of the clocks at the true time `now`, corrected by their current models.
    fn compare_at(&mut self, now: Picos) -> ResidualSummary {
        let models = self.ranks.iter().map(|rank| rank.model(&self.options.assumptions).ok());
        check::summary(&residuals(&self.cluster.local_at(now), models))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::random::Random;

    const MICROSECOND: u64 = 1_000_000;

    /// Trial of `ranks`, of which `per_domain` next to each other share a clock.
    fn run(ranks: u32, per_domain: u32, scenario: &Scenario, options: &SyncOptions) -> TrialReport {
        let domains: Vec<u32> = (0..ranks).map(|rank| rank / per_domain).collect();
        let report = trial(&domains, scenario, options, 1).unwrap();
        assert_eq!(report.synchronised.count, ranks - 1);
        report
    }

    fn usual(scenario: &Scenario) -> SyncOptions {
        scenario.options(Assumptions::default())
    }

    fn is_covered(report: &TrialReport) -> bool {
        [report.synchronised, report.extrapolated, report.interpolated]
            .iter()
            .all(|summary| summary.covered_share() >= 0.95)
    }

    #[test]
    fn claims_cover_the_truth_in_every_scenario() {
        for scenario in Scenario::all() {
            for (ranks, per_domain) in [(1, 1), (2, 1), (7, 3), (33, 200), (300, 1), (1_000, 24)] {
                let report = run(ranks, per_domain, &scenario, &usual(&scenario));
                assert!(
                    is_covered(&report) && report.contradicted == 0,
                    "{scenario:?} {report:#?}"
                );
                assert_eq!(report.interpolated.count, ranks - 1);
                assert_eq!(report, run(ranks, per_domain, &scenario, &usual(&scenario)));
            }
        }
    }

    #[test]
    fn sixteen_thousand_ranks_agree_within_their_claims() {
        let [quiet, ..] = Scenario::all();
        let report = run(16_384, 1, &quiet, &usual(&quiet));
        // 14 edges, each of half a round trip, granularity and the drift until its child is done.
        let edge = quiet.network.round_trip().0 / 2 + 2 * quiet.clocks.granularity.0;
        assert!(report.synchronised.largest_claim.0 < 14 * (edge + edge / 50), "{report:#?}");
        assert!(report.synchronised.max.0 < MICROSECOND / 10, "{report:#?}");
        assert!(report.interpolated.max.0 < MICROSECOND / 10, "{report:#?}");
        assert!(report.pass.0 < 5_000 * MICROSECOND, "{report:#?}");
        let shared = run(16_384, 64, &quiet, &usual(&quiet));
        assert!(is_covered(&shared) && is_covered(&report));
        assert!(shared.pings < report.pings / 3 && shared.pass < report.pass);
    }

    #[test]
    fn interpolation_is_better_than_extrapolation() {
        let [_, _, wander, ..] = Scenario::all();
        let report = run(200, 1, &wander, &usual(&wander));
        assert!(report.interpolated.p99.0 * 2 < report.extrapolated.p99.0, "{report:#?}");
        assert!(report.interpolated.mean_claim.0 * 5 < report.extrapolated.mean_claim.0);
    }

    #[test]
    fn series_that_do_not_look_at_their_width_are_far_off_but_say_so() {
        let [.., mut preempted] = Scenario::all();
        // Many a series begins where its rank does not run.
        preempted.network.contention.probability = 0.05;
        preempted.network.contention.phase = Picos(SECOND / 5);
        let assumptions = Assumptions { drift_ppm: 40, wander_ppb: 1 };
        let mut options = preempted.options(assumptions);
        options.series.longest = Picos(10 * SECOND);
        let careful = run(200, 1, &preempted, &options).interpolated;
        options.series.offset.widest = Picos::MAX;
        let careless = run(200, 1, &preempted, &options);
        assert!(is_covered(&careless), "{careless:#?}");
        let careless = careless.interpolated;
        assert!(careful.max.0 < 4 * MICROSECOND, "{careful:?}");
        assert!(careful.largest_claim.0 < 30 * MICROSECOND, "{careful:?}");
        assert!(careless.max.0 > 30 * MICROSECOND, "{careless:?}");
        assert!(careless.largest_claim.0 > 50 * MICROSECOND, "{careless:?}");
    }

    #[test]
    fn temperature_that_changes_faster_than_assumed_is_noticed() {
        let [mut scenario, ..] = Scenario::all();
        scenario.clocks.wander_ppb = 2_000.0;
        scenario.clocks.widest_wander_ppb = 10_000.0;
        let assuming = |wander_ppb| {
            let assumptions = Assumptions { drift_ppm: 60, wander_ppb };
            run(100, 1, &scenario, &scenario.options(assumptions))
        };
        let report = assuming(1);
        assert!(report.contradicted > 5, "{report:#?}");
        assert!(report.interpolated.covered_share() < 0.95, "{report:#?}");
        assert!(is_covered(&assuming(40_000)));
    }

    /// Not only mostly: the claims are bounds.
    #[test]
    fn whatever_the_network_does_the_claims_hold() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let mut below = |bound: u16| u16::try_from(random.below(bound.into())).unwrap();
            let (drift, noise, jitter) = (below(90), below(256), u64::from(below(u16::MAX)));
            let contention = Contention {
                probability: f64::from(noise) / 2_000.0,
                phase: Picos(u64::from(noise) * MICROSECOND),
                delay: Picos(jitter * 10_000),
            };
            let network = Path {
                asymmetry_percent: i8::try_from(below(101)).unwrap(),
                jitter: Picos(jitter * 100),
                contention,
                ..Path::of(Picos(u64::from(below(u16::MAX)) * 1_000))
            };
            let clocks = ClockTruth {
                drift_ppm: f64::from(drift),
                wander_ppb: f64::from(noise),
                widest_wander_ppb: 3.0 * f64::from(noise),
                granularity: Picos(u64::from(noise) * 500),
                jitter: Picos(u64::from(drift) * 100),
                ..ClockTruth::USUAL
            };
            let [quiet, ..] = Scenario::all();
            let scenario = Scenario { clocks, network, ..quiet };
            // The range of two clocks is four times the widest of each.
            let (drift, noise) = (u32::from(drift), u32::from(noise));
            let assumptions = Assumptions { drift_ppm: 2 * drift + 2, wander_ppb: 12 * noise + 1 };
            let report = run(21, 1 + noise % 4, &scenario, &scenario.options(assumptions));
            let all = [report.synchronised, report.extrapolated, report.interpolated];
            let hold = all.iter().all(|summary| summary.covered == 20);
            assert!(report.contradicted == 0 && hold, "{scenario:?} {report:#?}");
        }
    }
}
