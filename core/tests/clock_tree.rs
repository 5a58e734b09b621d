//! Virtual clocks of many ranks, synchronised over the tree and compared with
//! the truth.

#[cfg(test)]
mod clock_tree {
    use loggap_core::sync::simulated::{ClockTruth, Contention, Path, VirtualClock};
    use loggap_core::sync::{
        ResidualSummary, Scenario, SyncOptions, TreeEntry, TrialMemory, TrialRank, TrialReport,
        trial,
    };
    use loggap_core::units::{Picos, SignedPicos};

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
        run_with(domains, scenario, &scenario.options())
    }

    /// `ranks` with `per_domain` of each domain next to each other.
    fn blocks(ranks: u32, per_domain: u32) -> Vec<u32> {
        (0..ranks).map(|rank| 1_000 - rank / per_domain % 1_000 + rank / per_domain * 7).collect()
    }

    fn scenarios() -> Vec<(&'static str, Scenario)> {
        let quiet = Scenario::default();
        let clocks = quiet.clocks;
        let drift = ClockTruth { drift_ppm: 100.0, ..clocks };
        let wander = ClockTruth { wander_ppb: 20.0, widest_wander_ppb: 100.0, ..clocks };
        let jitter = ClockTruth { jitter: Picos(50_000), granularity: Picos(100_000), ..clocks };
        let noisy = Path { jitter: Picos(2 * MICROSECOND), ..quiet.network };
        let asymmetric = Path { asymmetry_percent: 80, ..quiet.network };
        let contention = Contention {
            probability: 0.01,
            phase: Picos(10 * MILLISECOND),
            delay: Picos(200 * MICROSECOND),
        };
        let contended = Path { contention, ..quiet.network };
        let within = Path { contention, ..quiet.within };
        vec![
            ("quiet", quiet),
            ("drift", Scenario { clocks: drift, ..quiet }),
            ("wander", Scenario { clocks: wander, ..quiet }),
            ("jitter", Scenario { clocks: jitter, network: noisy, ..quiet }),
            ("asymmetry", Scenario { network: asymmetric, ..quiet }),
            ("preemption", Scenario { network: contended, within, ..quiet }),
        ]
    }

    fn is_covered(summary: &ResidualSummary) -> bool {
        summary.covered_share() >= 0.95
    }

    #[test]
    fn claims_cover_the_truth_in_every_scenario() {
        for (name, scenario) in scenarios() {
            for domains in [blocks(300, 1), blocks(1_000, 24)] {
                for seed in 1..=3 {
                    let report = run(&domains, &Scenario { seed, ..scenario });
                    println!("{name} {report:#?}");
                    for summary in [report.synchronised, report.extrapolated, report.interpolated] {
                        assert_eq!(summary.count as usize, domains.len() - 1);
                        assert!(is_covered(&summary), "{name} {summary:?}");
                    }
                    assert_eq!((report.contradicted, report.checks_failed), (0, 0), "{name}");
                }
            }
        }
    }

    /// What `cargo test --test clock_tree -- --nocapture figures` prints.
    #[test]
    fn figures_of_sixteen_thousand_ranks() {
        for (name, scenario) in scenarios() {
            for per_domain in [1, 64] {
                let report = run(&blocks(16_384, per_domain), &scenario);
                let show = |summary: ResidualSummary| {
                    format!(
                        "p50 {} p99 {} max {} claims {} (mean) {} (max) covered {:.4}",
                        summary.p50,
                        summary.p99,
                        summary.max,
                        summary.mean_claim,
                        summary.largest_claim,
                        summary.covered_share()
                    )
                };
                println!(
                    "{name}, {per_domain} ranks a clock: a pass {}, {} pings",
                    report.pass, report.pings
                );
                println!("  synchronised {}", show(report.synchronised));
                println!("  10 s later   {}", show(report.extrapolated));
                println!("  interpolated {}", show(report.interpolated));
                assert!(is_covered(&report.interpolated));
            }
        }
    }
}
