//! Virtual clocks of many ranks, synchronised over the tree and compared with
//! the truth.

#[cfg(test)]
mod clock_tree {
    use loggap_core::random::Random;
    use loggap_core::sync::simulated::{ClockTruth, Contention, Path, VirtualClock, VirtualPinger};
    use loggap_core::sync::{
        Assumptions, Residual, ResidualSummary, Residuals, Scenario, SyncOptions, Tree, TreeEntry,
        TreeError, TreeMemory, TrialError, TrialMemory, TrialRank, TrialReport, Triangle,
        measure_offset, trial,
    };
    use loggap_core::units::{Picos, SignedPicos};
    use quickcheck::quickcheck;

    const MICROSECOND: u64 = 1_000_000;
    const MILLISECOND: u64 = 1_000 * MICROSECOND;

    fn run_with(domains: &[u32], scenario: &Scenario, options: &SyncOptions) -> TrialReport {
        let ranks = domains.len();
        let memory = TrialMemory {
            clocks: &mut vec![VirtualClock::exact(); ranks],
            ranks: &mut vec![TrialRank::default(); ranks],
            residuals: &mut vec![Picos::ZERO; ranks],
            order: &mut vec![0; ranks],
            entries: &mut vec![TreeEntry::default(); ranks],
        };
        trial(domains, scenario, options, memory).unwrap()
    }

    fn run(domains: &[u32], scenario: &Scenario) -> TrialReport {
        run_with(domains, scenario, &options_of(scenario))
    }

    /// Options for who assumes just what is true of the clocks of `scenario`.
    fn options_of(scenario: &Scenario) -> SyncOptions {
        let ClockTruth { drift_ppm, widest_wander_ppb, .. } = scenario.clocks;
        let relative = |one: f64| format!("{:.0}", (2.0 * one).ceil().max(1.0)).parse().unwrap();
        let drift_ppm = relative(drift_ppm + widest_wander_ppb / 1_000.0);
        // Its range is twice the widest of each clock.
        let wander_ppb = relative(2.0 * widest_wander_ppb);
        scenario.options(Assumptions { drift_ppm, wander_ppb })
    }

    /// `ranks` with `per_domain` of each domain next to each other.
    fn blocks(ranks: u32, per_domain: u32) -> Vec<u32> {
        (0..ranks).map(|rank| 1_000 - rank / per_domain % 1_000 + rank / per_domain * 7).collect()
    }

    fn assert_covered(name: &str, report: &TrialReport) {
        for summary in [report.synchronised, report.extrapolated, report.interpolated] {
            assert!(summary.covered_share() >= 0.95, "{name} {report:#?}");
        }
    }

    #[test]
    fn claims_cover_the_truth_in_every_scenario() {
        for (name, scenario) in Scenario::all() {
            for domains in [blocks(300, 1), blocks(1_000, 24)] {
                for seed in 1..=3 {
                    // What `loggap-mpi` assumes, whatever the clocks are.
                    let scenario = Scenario { seed, ..scenario };
                    let options = scenario.options(Assumptions::default());
                    let report = run_with(&domains, &scenario, &options);
                    assert_covered(name, &report);
                    for summary in [report.synchronised, report.extrapolated, report.interpolated] {
                        assert_eq!(summary.count as usize, domains.len() - 1);
                    }
                    assert_eq!((report.contradicted, report.checks_failed), (0, 0), "{name}");
                }
            }
        }
    }

    #[test]
    fn sixteen_thousand_ranks_agree_within_their_claims() {
        let scenario = Scenario::default();
        let report = run(&blocks(16_384, 1), &scenario);
        assert_covered("a clock each", &report);
        // 14 edges, each of half a round trip, granularity and the drift until its child is done.
        let edge = scenario.network.round_trip().0 / 2 + 2 * scenario.clocks.granularity.0;
        assert!(report.synchronised.largest_claim.0 < 14 * (edge + edge / 50), "{report:#?}");
        assert!(report.synchronised.max.0 < MICROSECOND / 10, "{report:#?}");
        assert!(report.interpolated.max.0 < MICROSECOND / 10, "{report:#?}");
        assert!(report.pass.0 < 5 * MILLISECOND, "{report:#?}");
        let shared = run(&blocks(16_384, 64), &scenario);
        assert_covered("64 share a clock", &shared);
        assert!(shared.pings < report.pings / 3 && shared.pass < report.pass);
    }

    #[test]
    fn few_ranks_and_odd_numbers_of_them_are_synchronised() {
        for ranks in [1, 2, 3, 5, 7, 33, 100] {
            for per_domain in [1, 3, 200] {
                let report = run(&blocks(ranks, per_domain), &Scenario::default());
                assert_covered("few", &report);
                assert_eq!(report.synchronised.count, ranks - 1);
                assert!(report.synchronised.max.0 < MICROSECOND / 5, "{report:#?}");
            }
        }
    }

    #[test]
    fn interpolation_is_better_than_extrapolation() {
        let (_, wander) = Scenario::all()[2];
        let report = run(&blocks(200, 1), &wander);
        assert!(report.interpolated.p99.0 * 2 < report.extrapolated.p99.0, "{report:#?}");
        assert!(report.interpolated.mean_claim.0 * 5 < report.extrapolated.mean_claim.0);
        // Without a slope, it is the drift that counts.
        let once = Scenario { passes: 1, ..Scenario::default() };
        let once = run(&blocks(200, 1), &once);
        assert_covered("one pass", &once);
        assert!(once.extrapolated.p50.0 > 50 * MICROSECOND, "{once:#?}");
        assert!(once.interpolated.p99.0 < MICROSECOND / 10, "{once:#?}");
    }

    #[test]
    fn series_that_do_not_look_at_their_width_are_far_off_but_say_so() {
        let (_, mut preempted) = Scenario::all()[5];
        // Many a series begins where its rank does not run.
        preempted.network.contention.probability = 0.05;
        preempted.network.contention.phase = Picos(200 * MILLISECOND);
        let mut options = options_of(&preempted);
        options.series.longest = Picos(10_000 * MILLISECOND);
        let careful = run_with(&blocks(200, 1), &preempted, &options);
        options.series.offset.widest = Picos::MAX;
        let careless = run_with(&blocks(200, 1), &preempted, &options);
        assert_covered("careless", &careless);
        let (careful, careless) = (careful.interpolated, careless.interpolated);
        assert!(careful.max.0 < 4 * MICROSECOND, "{careful:?}");
        assert!(careful.largest_claim.0 < 30 * MICROSECOND, "{careful:?}");
        assert!(careless.max.0 > 30 * MICROSECOND, "{careless:?}");
        assert!(careless.largest_claim.0 > 50 * MICROSECOND, "{careless:?}");
    }

    #[test]
    fn domains_that_are_trusted_add_nothing_to_the_error() {
        let scenario = Scenario::default();
        let checked = options_of(&scenario);
        let trusted = SyncOptions { trusts_domains: true, ..checked };
        let domains = blocks(64, 64);
        let checked = run_with(&domains, &scenario, &checked).synchronised;
        let trusted = run_with(&domains, &scenario, &trusted).synchronised;
        assert!(checked.mean_claim.0 > 0, "{checked:?}");
        assert_eq!((trusted.largest_claim, trusted.max), (Picos::ZERO, Picos::ZERO));
    }

    #[test]
    fn a_clock_that_its_domain_does_not_share_is_found_and_synchronised() {
        let scenario = Scenario { impostors: 10, ..Scenario::default() };
        let report = run(&blocks(512, 16), &scenario);
        // Their children in the domain have another clock than they do.
        assert!((51 * 4..200 * 4).contains(&report.checks_failed), "{report:#?}");
        assert_covered("impostors", &report);
        assert!(report.synchronised.max.0 < MICROSECOND, "{report:#?}");
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_is_found_and_its_interpolation_withheld() {
        for by in [1_000, -1_000] {
            let set = Some((5, SignedPicos(by * MICROSECOND.cast_signed())));
            let report = run(&blocks(100, 1), &Scenario { set, ..Scenario::default() });
            assert_eq!((report.contradicted, report.interpolated.count), (1, 98), "{report:#?}");
            assert_eq!(report.interpolated.covered, 98);
            assert_eq!(report.extrapolated.covered, 98, "what is claimed before it is known");
        }
        let set = Some((24, SignedPicos(1_000_000 * MICROSECOND.cast_signed())));
        let report = run(&blocks(100, 24), &Scenario { set, ..Scenario::default() });
        assert_eq!((report.contradicted, report.interpolated.count), (24, 75), "{report:#?}");
    }

    #[test]
    fn broken_assumptions_are_noticed() {
        let domains = blocks(100, 1);
        let clocks = ClockTruth { drift_ppm: 80.0, ..ClockTruth::default() };
        let scenario = Scenario { clocks, ..Scenario::default() };
        let mut options = options_of(&scenario);
        options.assumptions.drift_ppm = 10;
        options.series.offset.drift_ppm = 10;
        let report = run_with(&domains, &scenario, &options);
        assert!(report.contradicted > 50, "{report:#?}");
        // Temperature that changes faster than assumed, over a minute.
        let clocks = ClockTruth {
            wander_ppb: 2_000.0,
            widest_wander_ppb: 10_000.0,
            ..ClockTruth::default()
        };
        let hold = Picos(60_000 * MILLISECOND);
        let scenario = Scenario { clocks, hold, ..Scenario::default() };
        let mut options = options_of(&scenario);
        options.assumptions.wander_ppb = 1;
        let report = run_with(&domains, &scenario, &options);
        assert!(report.contradicted > 10, "{report:#?}");
        assert!(report.interpolated.covered_share() < 0.95, "{report:#?}");
        assert_covered("with the right ones", &run(&domains, &scenario));
    }

    quickcheck! {
        /// Not only mostly: the claims are bounds.
        fn whatever_the_network_does_the_claims_hold(ways: (u16, i8, u16), rest: (u8, u8, u64)) -> bool {
            let ((one_way, asymmetry, jitter), (drift, noise, seed)) = (ways, rest);
            let contention = Contention {
                probability: f64::from(noise) / 2_000.0,
                phase: Picos(u64::from(noise) * MICROSECOND),
                delay: Picos(u64::from(jitter) * 10_000),
            };
            let network = Path {
                one_way: Picos(u64::from(one_way) * 1_000),
                asymmetry_percent: asymmetry,
                jitter: Picos(u64::from(jitter) * 100),
                contention,
                ..Path::of(Picos::ZERO)
            };
            let clocks = ClockTruth {
                drift_ppm: f64::from(drift % 90),
                wander_ppb: f64::from(noise),
                widest_wander_ppb: 3.0 * f64::from(noise),
                granularity: Picos(u64::from(noise) * 500),
                jitter: Picos(u64::from(drift) * 100),
                ..ClockTruth::default()
            };
            let scenario = Scenario { clocks, network, seed, ..Scenario::default() };
            let report = run(&blocks(21, 1 + u32::from(noise) % 4), &scenario);
            let all = [report.synchronised, report.extrapolated, report.interpolated];
            report.contradicted == 0 && all.iter().all(|summary| summary.covered == 20)
        }
    }

    /// The truth of one pair, by fresh pings.
    struct Check {
        clocks: Vec<VirtualClock>,
        ranks: Vec<TrialRank>,
        options: SyncOptions,
        scenario: Scenario,
        now: Picos,
    }

    impl Check {
        fn after(domains: &[u32], scenario: Scenario) -> (Self, TrialReport) {
            let ranks = domains.len();
            let mut clocks = vec![VirtualClock::exact(); ranks];
            let mut states = vec![TrialRank::default(); ranks];
            let memory = TrialMemory {
                clocks: &mut clocks,
                ranks: &mut states,
                residuals: &mut vec![Picos::ZERO; ranks],
                order: &mut vec![0; ranks],
                entries: &mut vec![TreeEntry::default(); ranks],
            };
            let options = options_of(&scenario);
            let report = trial(domains, &scenario, &options, memory).unwrap();
            let now = states.iter().map(TrialRank::free).max().unwrap();
            (Self { clocks, ranks: states, options, scenario, now }, report)
        }

        /// Pings of rank `own` with rank `peer`, and the residual.
        fn residual(&mut self, own: usize, peer: usize) -> Residual {
            let reads = (self.ranks[own].reads(), self.ranks[peer].reads());
            let random = Random::stream(99, (own * 10_000 + peer) as u64);
            let network = self.scenario.network;
            let mut pinger = VirtualPinger::new(&mut self.clocks, reads, network, self.now, random);
            let raw = measure_offset(&mut pinger, &self.options.series, &mut []).unwrap().offset;
            self.now = pinger.true_now();
            let assumptions = &self.options.assumptions;
            let model = |rank: usize| self.ranks[rank].clock().model(assumptions).unwrap();
            Residual::of(&raw, &model(own), &model(peer))
        }
    }

    #[test]
    fn fresh_pings_confirm_a_good_synchronisation_and_refute_a_bad_one() {
        let domains = blocks(400, 1);
        for (name, scenario) in Scenario::all() {
            let (mut check, _) = Check::after(&domains, Scenario { passes: 1, ..scenario });
            let mut memory = vec![Picos::ZERO; 1_000];
            let mut residuals = Residuals::new(&mut memory);
            for rank in 1..400 {
                residuals.push(check.residual(0, rank)).unwrap();
            }
            let summary = residuals.summary();
            assert!(summary.covered_share() >= 0.95, "{name} {summary:?}");
            // Somebody sets half of the clocks after that.
            let now = check.now;
            for clock in check.clocks.iter_mut().skip(200) {
                clock.set(now, SignedPicos(10_000 * MICROSECOND.cast_signed()));
            }
            let mut residuals = Residuals::new(&mut memory);
            for rank in 1..400 {
                residuals.push(check.residual(0, rank)).unwrap();
            }
            let summary = residuals.summary();
            assert!(summary.covered < 300 && summary.p99.0 > 9 * MILLISECOND, "{name} {summary:?}");
        }
    }

    #[test]
    fn triangles_of_strangers_close_unless_a_clock_was_set_meanwhile() {
        let domains = blocks(300, 1);
        let (mut order, mut entries) = (vec![0; 300], vec![TreeEntry::default(); 300]);
        let memory = TreeMemory { order: &mut order, entries: &mut entries };
        let tree = Tree::new(&domains, memory).unwrap();
        let mut random = Random::new(3);
        for (name, scenario) in Scenario::all() {
            let (mut check, _) = Check::after(&domains, scenario);
            for _ in 0..50 {
                let [a, b, c] = tree.strangers(&mut random).unwrap().map(|rank| rank as usize);
                let mut sides = [check.residual(a, b), check.residual(b, c), check.residual(c, a)];
                let triangle = Triangle::of(&sides);
                assert!(triangle.is_closed(), "{name} {triangle:?}");
                assert!(sides.iter().all(Residual::is_covered), "{name} {sides:?}");
                let now = check.now;
                check.clocks[a].set(now, SignedPicos(1_000 * MICROSECOND.cast_signed()));
                sides[2] = check.residual(c, a);
                assert!(!Triangle::of(&sides).is_closed(), "{name}");
                let back = SignedPicos(-1_000 * MICROSECOND.cast_signed());
                let now = check.now;
                check.clocks[a].set(now, back);
            }
        }
    }

    #[test]
    fn a_triangle_may_open_by_what_clocks_drift_while_it_is_measured() {
        let side = |second: u64, value| Residual {
            at: Picos(second * 1_000 * MILLISECOND),
            value: SignedPicos(value),
            claimed: Picos(0),
            uncertainty: Picos(1_000),
            drift_error: 200_000,
        };
        let triangle = Triangle::of(&[side(5, 900_000), side(6, 300_000), side(7, 0)]);
        assert_eq!((triangle.closure.0, triangle.uncertainty.0), (1_200_000, 1_203_000));
        assert!(triangle.is_closed());
        assert!(!Triangle::of(&[side(5, 900_000), side(6, 304_000), side(7, 0)]).is_closed());
        assert!(!Triangle::of(&[side(5, 900_000), side(5, 300_000), side(5, 0)]).is_closed());
    }

    #[test]
    fn too_little_memory_is_an_error() {
        let memory = TrialMemory {
            clocks: &mut [],
            ranks: &mut [TrialRank::default(); 2],
            residuals: &mut [Picos::ZERO; 2],
            order: &mut [0; 2],
            entries: &mut [TreeEntry::default(); 2],
        };
        let scenario = Scenario::default();
        let result = trial(&[1, 2], &scenario, &options_of(&scenario), memory);
        assert_eq!(result, Err(TrialError::Tree(TreeError::Memory(2))));
    }

    #[test]
    fn the_same_seed_gives_the_same_report() {
        let scenario = Scenario::all()[5].1;
        let first = run(&blocks(100, 3), &scenario);
        assert_eq!(first, run(&blocks(100, 3), &scenario));
        assert_ne!(first, run(&blocks(100, 3), &Scenario { seed: 2, ..scenario }));
    }

    fn show(summary: ResidualSummary) -> String {
        format!(
            "p50 {} p99 {} max {} claims {} (mean) {} (max) covered {:.4}",
            summary.p50,
            summary.p99,
            summary.max,
            summary.mean_claim,
            summary.largest_claim,
            summary.covered_share()
        )
    }

    #[test]
    #[ignore = "seconds; prints the figures of every scenario at 16,384 ranks"]
    fn figures() {
        for (name, scenario) in Scenario::all() {
            for per_domain in [1, 64] {
                let report = run(&blocks(16_384, per_domain), &scenario);
                let (pass, pings) = (report.pass, report.pings);
                println!("{name}, {per_domain} ranks a clock: a pass {pass}, {pings} pings");
                println!("  synchronised {}", show(report.synchronised));
                println!("  10 s later   {}", show(report.extrapolated));
                println!("  interpolated {}", show(report.interpolated));
                assert_covered(name, &report);
            }
        }
    }
}
