//! One edge, the published schemes, the choice of N and the drift study, on
//! virtual clocks whose truth is known.

#[cfg(test)]
mod clock_schemes {
    use loggap_core::random::Random;
    use loggap_core::stats::Sorted;
    use loggap_core::sync::simulated::{
        ClockTruth, Contention, NoClock, Path, VirtualClock, VirtualPinger,
    };
    use loggap_core::sync::{
        Agreement, Assumptions, DriftError, OffsetOptions, PATIENCES, ParentClock, Ping, PingError,
        Pinger, RankClock, Scenario, Scheme, SchemeMemory, SchemeReport, SeriesEnd, SeriesError,
        SeriesOptions, SyncOptions, TimedOffset, measure_offset, record_drift, scheme_trial,
        stop_after, study_drift, study_patience,
    };
    use loggap_core::units::{Picos, SignedPicos};
    use quickcheck::quickcheck;

    const MICROSECOND: u64 = 1_000_000;
    const MILLISECOND: u64 = 1_000 * MICROSECOND;
    const SECOND: u64 = 1_000 * MILLISECOND;

    /// Ranks of which some share their processor when a series begins: each
    /// ping waits for a time slice of a few milliseconds then, and that for
    /// longer than twenty pings take.
    fn contended() -> Path {
        let contention = Contention {
            probability: 0.1,
            phase: Picos(200 * MILLISECOND),
            delay: Picos(4 * MILLISECOND),
        };
        Path { contention, ..Path::of(Picos(MICROSECOND)) }
    }

    fn pair(truth: ClockTruth, seed: u64) -> [VirtualClock; 2] {
        [VirtualClock::new(truth, seed, 0), VirtualClock::new(truth, seed, 1)]
    }

    fn truth_at(clocks: &mut [VirtualClock], now: Picos) -> i64 {
        clocks[0].exact_at(now).signed_difference(clocks[1].exact_at(now))
    }

    #[test]
    fn twenty_pings_without_a_look_at_the_width_fail_where_ranks_are_preempted() {
        const SERIES: usize = 500;
        let truth = ClockTruth::default();
        let offset = OffsetOptions {
            most: 100_000,
            ..OffsetOptions::expecting(contended().round_trip(), truth.resolution())
        };
        let options = SeriesOptions { longest: Picos(100 * SECOND), ..SeriesOptions::of(offset) };
        let (mut blind, mut wide) = (vec![], vec![]);
        for seed in 0..SERIES as u64 {
            let run = |clocks: &mut [VirtualClock; 2], careful| {
                let random = Random::stream(seed, 7);
                let mut pinger =
                    VirtualPinger::new(clocks, (0, 1), contended(), Picos(SECOND), random);
                let (value, half_width) = if careful {
                    let series = measure_offset(&mut pinger, &options, &mut []).unwrap();
                    assert_eq!(series.end, SeriesEnd::Settled);
                    (series.offset.value.0, series.offset.half_width.0)
                } else {
                    (stop_after(&mut pinger, 20, u32::MAX).unwrap().value.0, 0)
                };
                let now = pinger.true_now();
                (value.abs_diff(truth_at(clocks, now)), half_width)
            };
            blind.push(run(&mut pair(truth, seed), false).0);
            let (error, half_width) = run(&mut pair(truth, seed), true);
            assert!(error <= half_width, "seed {seed}: {error} {half_width}");
            wide.push(error);
        }
        let (blind, wide) = (Sorted::new(&mut blind), Sorted::new(&mut wide));
        let max = |sorted: &Sorted<'_, u64>| sorted.quantile(1, 1).unwrap();
        let failed = blind.as_slice().iter().filter(|&&error| error > 5 * MICROSECOND).count();
        assert!(failed > SERIES / 100, "{failed}");
        assert!(max(&blind) > 50 * MICROSECOND, "{}", max(&blind));
        assert!(max(&wide) < 2 * MICROSECOND, "{}", max(&wide));
    }

    #[test]
    fn a_series_says_why_it_ended() {
        let series = |path: Path, options: OffsetOptions, longest| {
            let mut clocks = [VirtualClock::exact(); 2];
            let random = Random::new(1);
            let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, random);
            let options = SeriesOptions { longest, ..SeriesOptions::of(options) };
            let series = measure_offset(&mut pinger, &options, &mut []);
            (series.map(|series| (series.end, series.offset.pings)), pinger.pings())
        };
        let quick = Path::of(Picos(MICROSECOND));
        let narrow = OffsetOptions { widest: Picos(MICROSECOND / 2), ..OffsetOptions::default() };
        let (ended, _) =
            series(quick, OffsetOptions::expecting(quick.round_trip(), Picos::ZERO), Picos(SECOND));
        let (end, pings) = ended.unwrap();
        assert!(end == SeriesEnd::Settled && (21..200).contains(&pings), "{pings}");
        assert_eq!(series(quick, narrow, Picos(SECOND)).0, Ok((SeriesEnd::MostPings, 1_000)));
        let (ended, _) = series(quick, narrow, Picos(100 * MICROSECOND));
        let (end, pings) = ended.unwrap();
        assert!(end == SeriesEnd::OutOfTime && (40..50).contains(&pings), "{pings}");
        let none = OffsetOptions { most: 0, ..narrow };
        assert_eq!(series(quick, none, Picos(SECOND)), (Err(SeriesError::NoPing), 0));
    }

    #[test]
    fn a_median_outside_of_the_bounds_is_told() {
        /// Quick both ways every tenth time, and else slow on one way.
        struct OneWay(u64);
        impl Pinger for OneWay {
            type Error = ();
            fn now(&mut self) -> Picos {
                Picos(self.0)
            }
            fn ping(&mut self) -> Result<Ping, ()> {
                self.0 += MICROSECOND;
                let quick = (self.0 / MICROSECOND).is_multiple_of(10);
                let slow = if quick { 0 } else { MICROSECOND / 2 };
                let ping = Ping {
                    sent: Picos(self.0),
                    stamped: Picos(self.0 + 1_000 + slow),
                    received: Picos(self.0 + 2_000 + slow),
                };
                Ok(ping)
            }
        }
        let mut middles = [SignedPicos(0); 50];
        let series =
            measure_offset(&mut OneWay(0), &SeriesOptions::default(), &mut middles).unwrap();
        assert!(series.median_outside && series.offset.half_width.0 < 2_000, "{series:?}");
        let mut clocks = [VirtualClock::exact(); 2];
        let path = Path::of(Picos(MICROSECOND));
        let mut fair = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, Random::new(1));
        let series = measure_offset(&mut fair, &SeriesOptions::default(), &mut middles).unwrap();
        assert!(!series.median_outside && series.median.is_some(), "{series:?}");
    }

    #[test]
    fn failures_of_the_exchange_and_of_clocks_are_handed_on() {
        struct Broken(bool);
        impl Pinger for Broken {
            type Error = &'static str;
            fn now(&mut self) -> Picos {
                Picos(9)
            }
            fn ping(&mut self) -> Result<Ping, Self::Error> {
                let backwards = Ping { sent: Picos(9), stamped: Picos(5), received: Picos(4) };
                if self.0 { Err("gone") } else { Ok(backwards) }
            }
        }
        let options = SeriesOptions::default();
        let gone = measure_offset(&mut Broken(true), &options, &mut []);
        assert_eq!(gone, Err(SeriesError::Exchange("gone")));
        let backwards = SeriesError::Ping(PingError::Backwards(Picos(5)));
        assert_eq!(measure_offset(&mut Broken(false), &options, &mut []), Err(backwards));
        assert_eq!(stop_after(&mut Broken(false), 3, 9), Err(backwards));
        let mut clocks = [VirtualClock::exact()];
        let path = Path::of(Picos(MICROSECOND));
        let mut lonely = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, Random::new(1));
        assert_eq!(lonely.ping(), Err(NoClock(1)));
    }

    #[test]
    fn a_slope_over_a_long_base_is_within_its_bound_and_one_over_a_short_base_is_none() {
        let truth = ClockTruth { drift_ppm: 50.0, ..ClockTruth::default() };
        let mut options = SyncOptions::default();
        options.series.offset.resolution = truth.resolution();
        for seed in 0..20 {
            let mut clocks = pair(truth, seed);
            let (begin, later) = (Picos(SECOND), Picos(12 * SECOND));
            let path = Path::of(Picos(MICROSECOND));
            let follow = |clocks: &mut [VirtualClock], pause: u64| {
                let mut pinger = VirtualPinger::new(clocks, (0, 1), path, begin, Random::new(seed));
                let mut rank = RankClock::default();
                for _ in 0..5 {
                    let next = Picos(pinger.now().0 + pause);
                    rank.synchronise(&ParentClock::root(), &mut pinger, &options, &mut []).unwrap();
                    pinger.wait_until(next);
                }
                rank.model(&options.assumptions).unwrap()
            };
            let long = follow(&mut clocks.clone(), SECOND / 4);
            let short = follow(&mut clocks.clone(), MILLISECOND);
            assert_eq!((short.drift, short.drift_error), (0, 200_000_000));
            let exact = truth_at(&mut clocks, later);
            let local = clocks[0].exact_at(later);
            for model in [long, short] {
                let error = model.offset_at(local).0.abs_diff(exact);
                assert!(error <= model.error_at(local).0, "{error} {model:?}");
            }
            let error = long.offset_at(local).0.abs_diff(exact);
            assert!(error < MICROSECOND && long.drift_error < 3_000_000, "{error} {long:?}");
        }
    }

    #[test]
    fn an_offset_that_contradicts_the_model_begins_anew() {
        let assumptions = Assumptions::default();
        let reference = RankClock::root().model(&assumptions).unwrap();
        let offset = |at: u64, value| loggap_core::sync::Offset {
            at: Picos(at),
            value: SignedPicos(value),
            half_width: Picos(1_000),
            round_trip: Picos(2_000),
            pings: 20,
            contradictions: 0,
        };
        let mut rank = RankClock::default();
        assert_eq!(rank.model(&assumptions), Err(DriftError::NoOffsets));
        let mut handle = |at, value| rank.handle(&offset(at, value), &reference, &assumptions);
        assert_eq!(handle(SECOND, 5_000_000), Ok(Agreement::First));
        // 200 ppm of a second, and both half widths.
        let most = 5_000_000 + 200_000_000 + 2_000;
        assert_eq!(handle(2 * SECOND, most), Ok(Agreement::Agrees));
        assert!(matches!(handle(2 * SECOND, most), Err(DriftError::Order { .. })));
        let Ok(Agreement::Contradicts(by)) = handle(3 * SECOND, most + 300_000_000) else {
            panic!("100 ppm more than assumed")
        };
        assert!(by.0.abs_diff(100_000_000) < 1_000_000, "{by}");
        let before = rank;
        assert_eq!((rank.contradictions(), rank.latest().unwrap().at.0), (1, 3 * SECOND));
        rank.handle(&offset(4 * SECOND, most + 300_000_000), &reference, &assumptions).unwrap();
        let between = rank.since(&before, &assumptions).unwrap();
        assert_eq!(between.offset_at(Picos(3 * SECOND + SECOND / 2)).0, most + 300_000_000);
        // The wander over half of a second.
        assert_eq!(between.error_at(Picos(3 * SECOND + SECOND / 2)).0, 1_002 + 200_000);
        assert_eq!(rank.since(&RankClock::default(), &assumptions), Err(DriftError::Set));
    }

    #[test]
    fn what_a_check_within_a_domain_cannot_see_is_in_the_claim() {
        let options = SyncOptions::default();
        let shared = |ahead: i64, times: usize| {
            let mut clocks = [VirtualClock::exact(); 2];
            clocks[0].set(Picos(SECOND), SignedPicos(ahead));
            let path = Path::of(Picos(100_000));
            let mut parent = ParentClock::root();
            let mut rank = RankClock::default();
            for link in 0..times as u64 {
                let mut pinger =
                    VirtualPinger::new(&mut clocks, (0, 1), path, Picos(SECOND), Random::new(link));
                if !rank.share(&parent, &mut pinger, &options).unwrap() {
                    return None;
                }
                parent = rank.announce(&options.assumptions).unwrap();
            }
            rank.model(&options.assumptions).ok()
        };
        let same = shared(0, 1).unwrap();
        let near = shared(-50_000, 1).unwrap();
        assert_eq!((same.offset.0, near.offset.0), (0, 0));
        assert!((50_000..400_000).contains(&near.error.0), "{near:?}");
        assert!(shared(0, 3).unwrap().error.0 > 2 * same.error.0);
        assert_eq!(shared(-200_000, 1), None);
        assert_eq!(shared(200_000, 1), None);
    }

    /// As on a machine that is busy throughout: its ranks read one clock all
    /// the same.
    #[test]
    fn a_check_that_stayed_wide_parts_only_domains_that_are_not_trusted() {
        let mut options = SyncOptions::default();
        options.check.offset.widest = Picos(50_000);
        let mut shared = |trusts_domains, ahead| {
            options.trusts_domains = trusts_domains;
            let mut clocks = [VirtualClock::exact(); 2];
            clocks[0].set(Picos(SECOND), SignedPicos(ahead));
            let path = Path::of(Picos(100_000));
            let random = Random::new(1);
            let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, Picos(SECOND), random);
            let mut rank = RankClock::default();
            rank.share(&ParentClock::root(), &mut pinger, &options).unwrap()
        };
        assert!(shared(true, 0) && !shared(false, 0));
        assert!(!shared(true, 400_000), "zero is contradicted");
    }

    #[test]
    fn between_two_checks_a_shared_clock_claims_the_wider_of_both() {
        let options = SyncOptions::default();
        let mut clocks = [VirtualClock::exact(); 2];
        let mut rank = RankClock::default();
        let mut share = |rank: &mut RankClock, one_way| {
            let path = Path::of(Picos(one_way));
            let mut pinger =
                VirtualPinger::new(&mut clocks, (0, 1), path, Picos(SECOND), Random::new(1));
            assert!(rank.share(&ParentClock::root(), &mut pinger, &options).unwrap());
            rank.model(&options.assumptions).unwrap().error
        };
        let wide = share(&mut rank, 400_000);
        let before = rank;
        let narrow = share(&mut rank, 100_000);
        assert!(wide.0 > 2 * narrow.0 && narrow > Picos::ZERO, "{wide} {narrow}");
        assert_eq!(rank.since(&before, &options.assumptions).unwrap().error, wide);
        assert_eq!(before.since(&rank, &options.assumptions).unwrap().error, wide);
    }

    #[test]
    fn a_domain_that_shares_the_roots_clock_is_told_when_it_does_not_any_more() {
        let options = SyncOptions::default();
        let mut clocks = [VirtualClock::exact(); 2];
        let mut rank = RankClock::default();
        let mut meet = |rank: &mut RankClock, now| {
            let path = Path::of(Picos(100_000));
            let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, now, Random::new(1));
            let shares = rank.share(&ParentClock::root(), &mut pinger, &options).unwrap();
            if !shares {
                rank.synchronise(&ParentClock::root(), &mut pinger, &options, &mut []).unwrap();
            }
            clocks[0].set(Picos(5 * SECOND), SignedPicos(900_000));
            shares
        };
        assert!(meet(&mut rank, Picos(SECOND)));
        let before = rank;
        assert!(!meet(&mut rank, Picos(9 * SECOND)));
        assert_eq!(rank.contradictions(), 1);
        assert_eq!(rank.since(&before, &options.assumptions), Err(DriftError::Set));
        assert!(rank.model(&options.assumptions).unwrap().offset.0.abs_diff(900_000) < 200_000);
    }

    quickcheck! {
        fn what_a_parent_tells_arrives(words: Vec<u64>, has_offset: bool) -> bool {
            let mut message = [3; ParentClock::WORDS];
            message.iter_mut().zip(words).for_each(|(word, any)| *word = any);
            let is_valid = message[7] <= 1 && message[13] < 1 << 32;
            let is_taken = ParentClock::from_words(&message).is_some();
            message[7] = has_offset.into();
            message[13] %= 1 << 32;
            let told = ParentClock::from_words(&message).unwrap();
            let again = ParentClock::from_words(&told.to_words());
            is_taken == is_valid && again == Some(told) && told.latest.is_some() == has_offset
        }
    }

    fn scheme(scheme: Scheme, ranks: u32, scenario: &Scenario) -> SchemeReport {
        let count = ranks as usize;
        let memory = SchemeMemory {
            clocks: &mut vec![VirtualClock::exact(); count],
            offsets: &mut vec![SignedPicos(0); count],
            free: &mut vec![Picos::ZERO; count],
            residuals: &mut vec![Picos::ZERO; count],
        };
        scheme_trial(scheme, ranks, 20, scenario, memory).unwrap()
    }

    fn ideal() -> Scenario {
        let clocks =
            ClockTruth { drift_ppm: 0.0, granularity: Picos::ZERO, ..ClockTruth::default() };
        let network = Path { jitter: Picos::ZERO, ..Path::of(Picos(MICROSECOND)) };
        Scenario { clocks, network, ..Scenario::default() }
    }

    quickcheck! {
        fn schemes_find_exact_offsets_where_nothing_disturbs(ranks: u8, seed: u64) -> bool {
            let ranks = u32::from(ranks) + 1;
            [Scheme::Linear, Scheme::Binomial].into_iter().all(|which| {
                let report = scheme(which, ranks, &Scenario { seed, ..ideal() });
                // The peer reads its clock 20 ns after the ping arrived, but answers 20 ns later:
                // its reading is 10 ns from the middle. Own readings take 20 ns, too.
                let edges = ranks.ilog2() as u64 + 1;
                report.residuals.count == ranks - 1 && report.residuals.max.0 <= edges * 10_001
            })
        }

        fn a_scheme_reaches_every_rank_once(ranks: u16) -> bool {
            let ranks = u32::from(ranks % 2_000);
            [Scheme::Linear, Scheme::Binomial].into_iter().all(|which| {
                let mut servers: Vec<u32> = which.steps(ranks).map(|step| step.server).collect();
                servers.sort_unstable();
                servers.into_iter().eq(1..ranks.max(1))
            })
        }
    }

    #[test]
    fn time_and_error_of_a_tree_grow_with_the_logarithm_and_those_in_a_line_linearly() {
        let network = Path { jitter: Picos(MICROSECOND), ..Path::of(Picos(MICROSECOND)) };
        let still = ClockTruth { drift_ppm: 0.0, ..ClockTruth::default() };
        let scenario = Scenario { network, clocks: still, ..Scenario::default() };
        let (small, large) = (32, 1_024);
        let mean = |which, ranks, scenario: &Scenario| {
            let of = |seed| scheme(which, ranks, &Scenario { seed, ..*scenario });
            let reports: Vec<_> = (0..20).map(of).collect();
            let sum = |pick: fn(&SchemeReport) -> u64| reports.iter().map(pick).sum::<u64>() / 20;
            (sum(|report| report.took.0), sum(|report| report.mean.0))
        };
        let (few, many) =
            (mean(Scheme::Binomial, small, &scenario), mean(Scheme::Binomial, large, &scenario));
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        // Ten rounds to five; errors add like independent ones, sqrt(2), up to all one way, 2.
        assert!((1.5..3.0).contains(&ratio(many.0, few.0)), "{few:?} {many:?}");
        assert!((1.2..2.2).contains(&ratio(many.1, few.1)), "{few:?} {many:?}");
        let (few, many) =
            (mean(Scheme::Linear, small, &scenario), mean(Scheme::Linear, large, &scenario));
        assert!((25.0..40.0).contains(&ratio(many.0, few.0)), "{few:?} {many:?}");
        assert!((0.8..1.25).contains(&ratio(many.1, few.1)), "{few:?} {many:?}");
        // With drift the first ranks of a line are stale when the last one is done.
        let clocks = ClockTruth { drift_ppm: 20.0, ..ClockTruth::default() };
        let drifting = Scenario { clocks, ..scenario };
        let line = mean(Scheme::Linear, large, &drifting);
        let tree = mean(Scheme::Binomial, large, &drifting);
        assert!(line.1 > 5 * tree.1 && line.0 > 50 * tree.0, "{line:?} {tree:?}");
    }

    #[test]
    fn a_larger_n_costs_pings_and_lowers_the_error() {
        let path = Path { jitter: Picos(MICROSECOND), ..Path::of(Picos(10 * MICROSECOND)) };
        let mut errors = [Picos::ZERO; 400];
        let rows = study_patience(path, 5, &mut errors).unwrap();
        assert_eq!(rows.map(|row| row.patience), PATIENCES);
        for (row, next) in rows.iter().zip(&rows[1..]) {
            assert!(row.pings < next.pings, "{row:?} {next:?}");
            assert!(row.mean.0 * 11 > next.mean.0 * 10, "{row:?} {next:?}");
        }
        assert!(rows[0].mean.0 > 4 * rows[7].mean.0 && rows[0].p99.0 > 4 * rows[7].p99.0);
        // As measured on shared memory and TCP: 1.9 N pings.
        for row in rows.iter().skip(3) {
            let per_n = row.mean_pings() / f64::from(row.patience);
            assert!((1.5..2.5).contains(&per_n), "{row:?}");
        }
        assert_eq!(study_patience(path, 5, &mut errors), Some(rows));
    }

    #[test]
    fn readings_scatter_by_the_jitter_and_are_rounded_down() {
        for (jitter, low, high) in [(0, -100, 0), (5_000, -5_100, 5_000)] {
            let truth = ClockTruth {
                jitter: Picos(jitter),
                granularity: Picos(100),
                ..ClockTruth::default()
            };
            let clock = &mut pair(truth, 10)[1];
            let off: Vec<i64> = (0..1_000)
                .map(|n| {
                    let now = Picos(SECOND + n * MICROSECOND);
                    let exact = clock.exact_at(now).0.cast_signed();
                    clock.read(now).0.cast_signed() - exact
                })
                .collect();
            let (least, most) = (*off.iter().min().unwrap(), *off.iter().max().unwrap());
            assert!(low < least && most <= high, "{jitter}: {least} {most}");
            // And take all of the room.
            assert!(least < low + 200 && most > high - 200, "{jitter}: {least} {most}");
        }
    }

    /// Offsets of two clocks, one a second.
    fn recorded(truth: ClockTruth, count: usize) -> (Vec<TimedOffset>, f64) {
        let mut clocks = pair(truth, 10);
        let (begin, end) = (Picos(0), Picos(count as u64 * SECOND));
        let path = Path::of(Picos(MICROSECOND));
        let mut samples = vec![TimedOffset::default(); count];
        let mut before = clocks;
        let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, begin, Random::new(2));
        record_drift(&mut pinger, Picos(SECOND), 5, &mut samples).unwrap();
        let first = truth_at(&mut before, begin);
        let gained = truth_at(&mut clocks, end) - first;
        (samples, gained as f64 / count as f64)
    }

    #[test]
    fn fifty_thousand_seconds_of_constant_drift_are_a_line() {
        let (samples, drift) = recorded(ClockTruth::default(), 50_000);
        let study = study_drift(&samples).unwrap();
        assert!(
            (study.drift as f64 - drift).abs() < 1_000.0 + drift.abs() * 1e-4,
            "{study:?} {drift}"
        );
        assert!(study.is_linear() && study.drift_error < 10, "{study:?}");
        assert!(study.span.0.abs_diff(49_999 * SECOND) < 2 * SECOND, "{study:?}");
        assert!(study.residual_rms.0 < MICROSECOND / 10, "{study:?}");
        let off = study.noise.0.abs_diff(study.residual_rms.0);
        assert!(off < study.noise.0 / 50, "{study:?}");
        assert!(study.residual_max >= study.residual_rms);
    }

    #[test]
    fn the_error_of_a_drift_is_that_of_a_slope() {
        let (samples, _) = recorded(ClockTruth::default(), 100);
        let study = study_drift(&samples).unwrap();
        // Of n values one a second: the standard deviation over √(n³/12).
        let expected = study.residual_rms.0 as f64 / (100_f64.powi(3) / 12.0).sqrt();
        assert!(expected > 40.0, "{study:?}");
        assert!((study.drift_error as f64 / expected - 1.0).abs() < 0.05, "{expected} {study:?}");
    }

    #[test]
    fn a_wandering_drift_is_a_line_for_a_while_only() {
        let truth =
            ClockTruth { wander_ppb: 1.0, widest_wander_ppb: 50.0, ..ClockTruth::default() };
        let (samples, drift) = recorded(truth, 20_000);
        let study = study_drift(&samples).unwrap();
        assert!(!study.is_linear(), "{study:?}");
        assert!((10 * SECOND..2_000 * SECOND).contains(&study.linear_for.0), "{study:?}");
        assert!((study.drift as f64 - drift).abs() < 100_000.0, "{study:?} {drift}");
        assert!(study.residual_max.0 > 20 * MICROSECOND, "{study:?}");
        assert!(study.noise.0 < MICROSECOND / 5, "{study:?}");
    }

    #[test]
    fn a_record_of_others_is_studied_as_well() {
        let sample = |second: u64| TimedOffset {
            at: Picos(second * SECOND),
            offset: SignedPicos(-7_000 + 3_000_000 * second.cast_signed()),
        };
        let mut samples: Vec<_> = (1..=100).map(sample).collect();
        let study = study_drift(&samples).unwrap();
        assert_eq!(
            (study.drift, study.residual_max, study.is_linear()),
            (3_000_000, Picos(0), true)
        );
        assert_eq!(study_drift(&samples[..2]), Err(DriftError::NoOffsets));
        assert_eq!(study_drift(&[]), Err(DriftError::NoOffsets));
        samples[60].offset.0 += 90_000_000;
        let study = study_drift(&samples).unwrap();
        assert!(study.residual_max.0.abs_diff(90_000_000) < 2_000_000, "{study:?}");
        samples.swap(3, 4);
        assert!(matches!(study_drift(&samples), Err(DriftError::Order { .. })));
        let fast = |second: u64| TimedOffset {
            at: Picos(second * SECOND),
            offset: SignedPicos(600_000_000 * second.cast_signed()),
        };
        let samples: Vec<_> = (1..=100).map(fast).collect();
        assert_eq!(study_drift(&samples), Err(DriftError::Implausible(600_000_000)));
    }

    #[test]
    fn a_virtual_clock_has_the_errors_that_it_was_given() {
        let truth = ClockTruth {
            jitter: Picos(300),
            granularity: Picos(500),
            wander_ppb: 30.0,
            widest_wander_ppb: 40.0,
            ..ClockTruth::default()
        };
        for stream in 0..50 {
            let mut clock = VirtualClock::new(truth, 1, stream);
            let mut same = clock;
            let begin = clock.exact_at(Picos::ZERO).signed_difference(Picos(1_000 * SECOND));
            assert!(begin.unsigned_abs() <= truth.offset.0, "{begin}");
            let mut rates = vec![];
            for second in 0..200 {
                let (a, b) = (Picos(second * SECOND), Picos((second + 1) * SECOND - 1));
                let passed = clock.exact_at(b).since(clock.exact_at(a));
                rates.push(Picos(b.0 - a.0).signed_difference(passed));
                let read = clock.read(b);
                assert_eq!(read.0 % 500, 0);
                assert!(read.0.abs_diff(clock.exact_at(b).0) <= 800);
            }
            let (least, most) = (rates.iter().min().unwrap(), rates.iter().max().unwrap());
            assert!(most - least <= 80_002 && most - least > 20_000, "{least} {most}");
            assert!(rates[0].abs() <= 20_000_001);
            // Asked at other times, it is the same clock.
            let late = Picos(200 * SECOND + 5);
            assert_eq!(same.exact_at(late), clock.exact_at(late));
            let earlier = Picos(199 * SECOND + SECOND / 2);
            assert_eq!(same.exact_at(earlier), clock.exact_at(earlier));
            assert!(clock.exact_at(earlier) < clock.exact_at(late));
        }
        let mut clock = VirtualClock::exact();
        let before = clock.exact_at(Picos(SECOND));
        clock.set(Picos(SECOND), SignedPicos(-77));
        assert_eq!(clock.exact_at(Picos(SECOND)).0, before.0 - 77);
        assert_eq!(clock.exact_at(Picos(9 * SECOND)).0, before.0 - 77 + 8 * SECOND);
    }

    #[test]
    fn waiting_ends_when_the_own_clock_says_so() {
        let mut clocks = pair(ClockTruth::default(), 9);
        let target = Picos(clocks[0].exact_at(Picos::ZERO).0 + 3 * SECOND);
        let path = Path::of(Picos(MICROSECOND));
        let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, Random::new(1));
        pinger.wait_until(target);
        let now = pinger.now();
        assert!(now >= target && now.0 < target.0 + MICROSECOND);
    }

    #[test]
    #[ignore = "seconds; prints what N costs, schemes by ranks, and the drift study"]
    fn figures() {
        let network = Path { jitter: Picos(MICROSECOND), ..Path::of(Picos(MICROSECOND)) };
        let mut errors = [Picos::ZERO; 1_000];
        for (name, path) in [("jitter", network), ("preemption", contended())] {
            for row in study_patience(path, 1, &mut errors).unwrap() {
                let (n, pings) = (row.patience, row.mean_pings());
                println!(
                    "{name} N {n}: {pings:.1} pings, mean {} p99 {} max {}",
                    row.mean, row.p99, row.max
                );
            }
        }
        let scenario = Scenario { network, ..Scenario::default() };
        for which in [Scheme::Linear, Scheme::Binomial] {
            for ranks in [4, 16, 64, 256, 1_024, 4_096, 16_384] {
                let SchemeReport { took, mean, residuals, .. } = scheme(which, ranks, &scenario);
                let (p99, max) = (residuals.p99, residuals.max);
                println!("{which:?} {ranks} ranks: {took}, mean {mean} p99 {p99} max {max}");
            }
        }
        for wander_ppb in [0.0, 1.0, 20.0] {
            let truth = ClockTruth { wander_ppb, widest_wander_ppb: 50.0, ..ClockTruth::default() };
            let (samples, drift) = recorded(truth, 50_000);
            println!(
                "wander {wander_ppb} ppb, drift {drift}: {:?}",
                study_drift(&samples).unwrap()
            );
        }
    }
}
