//! One edge, the published schemes and the tree, on clocks whose truth is known.

#[cfg(test)]
mod clocks {
    use loggap_core::random::Random;
    use loggap_core::sync::{
        Agreement, Assumptions, ClockModel, DriftError, Edge, MinRoundTrip, Offset, OffsetOptions,
        ParentClock, Ping, PingError, Pinger, RankClock, Residual, ResidualSummary, Residuals,
        Scheme, SeriesEnd, SeriesError, SeriesOptions, SyncOptions, Tree, TreeEntry, TreeMemory,
        Triangle, measure_offset, stop_after,
    };
    use loggap_core::units::{Picos, SignedPicos};
    use quickcheck::quickcheck;
    use std::convert::Infallible;
    use std::ops::Range;

    const MICROSECOND: u64 = 1_000_000;
    const MILLISECOND: u64 = 1_000 * MICROSECOND;
    const SECOND: u64 = 1_000 * MILLISECOND;

    /// Clock that is ahead of true time by `ahead` ps, and gains `drift` ps a second.
    #[derive(Clone, Copy)]
    struct Clock {
        ahead: i64,
        drift: i64,
    }

    impl Clock {
        /// Reading at the true time `now`.
        fn at(self, now: u64) -> Picos {
            let gained = i128::from(now) * i128::from(self.drift) / i128::from(SECOND);
            let reading = i128::from(1_000 * SECOND + now) + i128::from(self.ahead) + gained;
            Picos(u64::try_from(reading).unwrap())
        }
    }

    const fn ahead(ahead: i64) -> Clock {
        Clock { ahead, drift: 0 }
    }

    /// A clock that pings another over a path whose delays, in ps, scatter uniformly.
    struct Client {
        own: Clock,
        peer: Clock,
        delays: Range<u64>,
        /// True time, in ps.
        now: u64,
        random: Random,
    }

    impl Client {
        /// Client whose pings take about a microsecond each way.
        fn new(own: Clock, peer: Clock) -> Self {
            let delays = MICROSECOND..MICROSECOND * 11 / 10;
            Self { own, peer, delays, now: SECOND, random: Random::new(1) }
        }

        /// As [`Client::new`], but for ranks of one machine, about 100 ns apart.
        fn near(own: Clock, peer: Clock) -> Self {
            Self { delays: 100_000..120_000, ..Self::new(own, peer) }
        }

        fn travel(&mut self) {
            let width = self.delays.end - self.delays.start;
            self.now += self.delays.start + self.random.below(width);
        }
    }

    impl Pinger for Client {
        type Error = Infallible;

        fn now(&mut self) -> Picos {
            self.own.at(self.now)
        }

        fn ping(&mut self) -> Result<Ping, Infallible> {
            let sent = self.now();
            self.travel();
            let stamped = self.peer.at(self.now);
            self.travel();
            Ok(Ping { sent, stamped, received: self.now() })
        }
    }

    #[test]
    fn a_series_says_why_it_ended() {
        let series = |options: OffsetOptions, longest| {
            let options = SeriesOptions { longest, ..SeriesOptions::of(options) };
            let series = measure_offset(&mut Client::new(ahead(0), ahead(0)), &options, &mut []);
            series.map(|series| (series.end, series.offset.pings))
        };
        let usual = OffsetOptions::expecting(Picos(2 * MICROSECOND), Picos::ZERO);
        let narrow = OffsetOptions { widest: Picos(MICROSECOND / 2), ..usual };
        let (end, pings) = series(usual, Picos(SECOND)).unwrap();
        assert!(end == SeriesEnd::Settled && (21..200).contains(&pings), "{pings}");
        assert_eq!(series(narrow, Picos(SECOND)), Ok((SeriesEnd::MostPings, 1_000)));
        let (end, pings) = series(narrow, Picos(100 * MICROSECOND)).unwrap();
        assert!(end == SeriesEnd::OutOfTime && (40..50).contains(&pings), "{pings}");
        let none = OffsetOptions { most: 0, ..narrow };
        assert_eq!(series(none, Picos(SECOND)), Err(SeriesError::NoPing));
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
        let (options, mut middles) = (SeriesOptions::default(), [SignedPicos(0); 50]);
        let series = measure_offset(&mut OneWay(0), &options, &mut middles).unwrap();
        assert!(series.median_outside && series.offset.half_width.0 < 2_000, "{series:?}");
        let mut fair = Client::new(ahead(0), ahead(0));
        let series = measure_offset(&mut fair, &options, &mut middles).unwrap();
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
    }

    #[test]
    fn a_slope_over_a_long_base_is_within_its_bound_and_one_over_a_short_base_is_none() {
        let mut options = SyncOptions::default();
        options.series.offset.resolution = Picos(2);
        let mut random = Random::new(1);
        for _ in 0..20 {
            let [own, peer] = [(); 2].map(|()| random_clock(50, &mut random));
            let follow = |pause: u64| {
                let mut client = Client::new(own, peer);
                let mut rank = RankClock::default();
                for pass in 0..5 {
                    client.now = SECOND + pass * pause;
                    rank.synchronise(&ParentClock::root(), &mut client, &options, &mut []).unwrap();
                }
                rank.model(&options.assumptions).unwrap()
            };
            let (long, short) = (follow(SECOND / 4), follow(MILLISECOND));
            assert_eq!((short.drift, short.drift_error), (0, 200_000_000));
            let local = own.at(12 * SECOND);
            let exact = local.signed_difference(peer.at(12 * SECOND));
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
        let offset = |at: u64, value| Offset {
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
        let shared = |by: i64, times: usize| {
            let mut parent = ParentClock::root();
            let mut rank = RankClock::default();
            for link in 0..times as u64 {
                let random = Random::new(link);
                let mut client = Client { random, ..Client::near(ahead(by), ahead(0)) };
                if !rank.share(&parent, &mut client, &options).unwrap() {
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
        let mut shared = |trusts_domains, by| {
            options.trusts_domains = trusts_domains;
            let mut client = Client::near(ahead(by), ahead(0));
            RankClock::default().share(&ParentClock::root(), &mut client, &options).unwrap()
        };
        assert!(shared(true, 0) && !shared(false, 0));
        assert!(!shared(true, 400_000), "zero is contradicted");
    }

    #[test]
    fn between_two_checks_a_shared_clock_claims_the_wider_of_both() {
        let options = SyncOptions::default();
        let mut rank = RankClock::default();
        let share = |rank: &mut RankClock, one_way| {
            let delays = one_way..one_way * 11 / 10;
            let mut client = Client { delays, ..Client::near(ahead(0), ahead(0)) };
            assert!(rank.share(&ParentClock::root(), &mut client, &options).unwrap());
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
        let mut rank = RankClock::default();
        let meet = |rank: &mut RankClock, now, by| {
            let mut client = Client { now, ..Client::near(ahead(by), ahead(0)) };
            let shares = rank.share(&ParentClock::root(), &mut client, &options).unwrap();
            if !shares {
                rank.synchronise(&ParentClock::root(), &mut client, &options, &mut []).unwrap();
            }
            shares
        };
        assert!(meet(&mut rank, SECOND, 0));
        let before = rank;
        assert!(!meet(&mut rank, 9 * SECOND, 900_000));
        assert_eq!(rank.contradictions(), 1);
        assert_eq!(rank.since(&before, &options.assumptions), Err(DriftError::Set));
        assert!(rank.model(&options.assumptions).unwrap().offset.0.abs_diff(900_000) < 200_000);
    }

    #[test]
    fn the_smallest_round_trip_counts_and_patience_begins_anew_with_it() {
        let ping = |round_trip: u64, middle: u64| Ping {
            sent: Picos(100),
            stamped: Picos(middle),
            received: Picos(100 + round_trip),
        };
        let mut smallest = MinRoundTrip::new(2, 9);
        assert!(smallest.offset().is_none() && !MinRoundTrip::new(0, 9).is_done());
        for (round_trip, middle, is_done) in
            [(40, 1, false), (40, 2, false), (20, 3, false), (30, 4, false), (20, 5, true)]
        {
            smallest.handle(&ping(round_trip, middle)).unwrap();
            assert_eq!(smallest.is_done(), is_done, "{smallest:?}");
        }
        let offset = smallest.offset().unwrap();
        assert_eq!((offset.at, offset.value.0, offset.half_width.0), (Picos(110), 107, 10));
        assert_eq!((offset.round_trip.0, offset.pings), (20, 5));
        let mut client = Client::new(ahead(-7), ahead(0));
        assert_eq!(stop_after(&mut client, 1_000, 9).unwrap().pings, 9);
        let offset = stop_after(&mut client, 20, 1_000).unwrap();
        assert!((21..1_000).contains(&offset.pings), "{offset:?}");
        assert!(offset.value.0.abs_diff(-7) < MICROSECOND / 20, "{offset:?}");
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

        fn a_scheme_reaches_every_rank_once_and_corrects_its_clock(ranks: u16, seed: u64) -> bool {
            let ranks = u32::from(ranks % 2_000);
            let ahead = |rank: u32| Random::stream(seed, rank.into()).below(SECOND) as i64;
            [Scheme::Linear, Scheme::Binomial].into_iter().all(|which| {
                let mut corrections = vec![SignedPicos(0); ranks as usize];
                let mut servers = vec![];
                for step in which.steps(ranks) {
                    let difference = SignedPicos(ahead(step.client) - ahead(step.server));
                    Scheme::merge(&step, difference, &mut corrections);
                    servers.push(step.server);
                }
                servers.sort_unstable();
                servers.into_iter().eq(1..ranks.max(1))
                    && corrections.iter().zip(0..).all(|(by, rank)| ahead(rank) + by.0 == ahead(0))
            })
        }
    }

    fn random_clock(drift_ppm: u64, random: &mut Random) -> Clock {
        let mut around = |most: u64| random.below(2 * most + 1).cast_signed() - most.cast_signed();
        Clock { ahead: around(100 * SECOND), drift: around(drift_ppm * MICROSECOND) }
    }

    /// `ranks` with `per_domain` of each domain next to each other.
    fn blocks(ranks: u32, per_domain: u32) -> Vec<u32> {
        (0..ranks).map(|rank| 1_000 - rank / per_domain % 1_000 + rank / per_domain * 7).collect()
    }

    /// Ranks that are synchronised over the tree, one after the other.
    #[derive(Clone)]
    struct Ranks {
        domains: Vec<u32>,
        clocks: Vec<Clock>,
        states: Vec<RankClock>,
        options: SyncOptions,
        delays: Range<u64>,
        /// True time, in ps.
        now: u64,
        random: Random,
    }

    impl Ranks {
        /// Ranks with clocks that drift by up to `drift_ppm`, and paths with these delays.
        fn new(domains: Vec<u32>, drift_ppm: u64, delays: Range<u64>, seed: u64) -> Self {
            let random = |&domain: &u32| Random::stream(seed, domain.into());
            let clocks = domains.iter().map(random);
            let clocks: Vec<_> =
                clocks.map(|mut random| random_clock(drift_ppm, &mut random)).collect();
            let mut states = vec![RankClock::default(); clocks.len()];
            states[0] = RankClock::root();
            let (round_trip, assumptions) = (Picos(2 * delays.start), Assumptions::default());
            let options = SyncOptions::expecting(round_trip, round_trip, Picos(2), assumptions);
            let random = Random::new(seed);
            Self { domains, clocks, states, options, delays, now: 0, random }
        }

        /// A hundred ranks, a microsecond apart.
        fn hundred(per_domain: u32) -> Self {
            Self::new(blocks(100, per_domain), 20, MICROSECOND..MICROSECOND * 11 / 10, 1)
        }

        /// Five passes over a second.
        fn synchronised(mut self) -> Self {
            for quarter in 0..5 {
                self.now = self.now.max(quarter * SECOND / 4);
                self.pass();
            }
            self
        }

        fn pass(&mut self) {
            let count = self.domains.len();
            let (mut order, mut entries) = (vec![0; count], vec![TreeEntry::default(); count]);
            let memory = TreeMemory { order: &mut order, entries: &mut entries };
            let domains = self.domains.clone();
            let tree = Tree::new(&domains, memory).unwrap();
            for rank in tree.parents_first() {
                let Some(step) = tree.parent(rank) else { continue };
                let (rank, peer) = (rank as usize, step.peer as usize);
                let mut client = self.client(rank, peer);
                let announced = self.states[peer].announce(&self.options.assumptions).unwrap();
                let state = &mut self.states[rank];
                let shares = step.edge == Edge::Domain
                    && state.share(&announced, &mut client, &self.options).unwrap();
                if !shares {
                    state.synchronise(&announced, &mut client, &self.options, &mut []).unwrap();
                }
                self.now = client.now;
            }
        }

        fn client(&mut self, own: usize, peer: usize) -> Client {
            let random = Random::new(self.random.draw());
            let (own, peer) = (self.clocks[own], self.clocks[peer]);
            Client { own, peer, delays: self.delays.clone(), now: self.now, random }
        }

        fn set(&mut self, ranks: Range<usize>, by: i64) {
            self.clocks[ranks].iter_mut().for_each(|clock| clock.ahead += by);
        }

        fn contradicted(&self) -> usize {
            self.states.iter().filter(|state| state.contradictions() > 0).count()
        }

        fn model(&self, rank: usize) -> ClockModel {
            self.states[rank].model(&self.options.assumptions).unwrap()
        }

        /// Residuals against the truth, of clocks corrected by their current models.
        fn compare(&self) -> ResidualSummary {
            let truth = self.clocks[0].at(self.now);
            let local = |rank: usize| self.clocks[rank].at(self.now);
            let ranks = 1..self.clocks.len();
            summary(ranks.map(|rank| Residual::of_truth(&self.model(rank), local(rank), truth)))
        }

        /// Residuals halfway since the pass after which `before` was true, with interpolated
        /// models.
        fn compare_since(&self, before: &Self) -> ResidualSummary {
            let middle = before.now.midpoint(self.now);
            summary((1..self.clocks.len()).filter_map(|rank| {
                let state = &self.states[rank];
                let model = state.since(&before.states[rank], &self.options.assumptions).ok()?;
                let (local, truth) = (before.clocks[rank].at(middle), self.clocks[0].at(middle));
                Some(Residual::of_truth(&model, local, truth))
            }))
        }

        /// Residual of two ranks by fresh pings.
        fn residual(&mut self, own: usize, peer: usize) -> Residual {
            let mut client = self.client(own, peer);
            let raw = measure_offset(&mut client, &self.options.series, &mut []).unwrap().offset;
            self.now = client.now;
            Residual::of(&raw, &self.model(own), &self.model(peer))
        }
    }

    fn summary(all: impl Iterator<Item = Residual>) -> ResidualSummary {
        let mut memory = vec![Picos::ZERO; 1_000];
        let mut residuals = Residuals::new(&mut memory);
        all.for_each(|residual| residuals.push(residual).unwrap());
        residuals.summary()
    }

    quickcheck! {
        /// Not only mostly: the claims are bounds.
        fn whatever_the_network_does_the_claims_hold(ways: (u16, u16), drift: u8, seed: u64) -> bool {
            let (one_way, jitter) = (u64::from(ways.0) * 1_000, u64::from(ways.1) * 1_000);
            let (domains, delays) = (blocks(21, 1 + u32::from(drift) % 4), one_way..one_way + jitter + 1);
            let mut ranks = Ranks::new(domains, u64::from(drift) % 90, delays, seed).synchronised();
            let before = ranks.clone();
            let at_once = ranks.compare();
            ranks.now += 10 * SECOND;
            let later = ranks.compare();
            ranks.pass();
            // Nothing lies between a pass that found a clock to be that of its parent and one that did not.
            let shared = |ranks: &Ranks, rank: usize| ranks.states[rank].latest().is_none();
            let turned = (1..21).filter(|&rank| shared(&before, rank) != shared(&ranks, rank)).count();
            let between = ranks.compare_since(&before);
            let all = [at_once, later, between];
            ranks.contradicted() == 0
                && [20, 20, 20 - turned] == all.map(|summary| summary.count as usize)
                && all.iter().all(|summary| summary.covered == summary.count)
        }
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_is_found_and_its_interpolation_withheld() {
        let millisecond = MILLISECOND.cast_signed();
        for (per_domain, set, by) in
            [(1, 5..6, millisecond), (1, 5..6, -millisecond), (24, 24..48, 1_000 * millisecond)]
        {
            let mut ranks = Ranks::hundred(per_domain).synchronised();
            let before = ranks.clone();
            ranks.set(set.clone(), by);
            ranks.now += 10 * SECOND;
            let count = u32::try_from(set.len()).unwrap();
            assert_eq!(ranks.compare().covered, 99 - count, "what is claimed before it is known");
            ranks.pass();
            let interpolated = ranks.compare_since(&before);
            assert_eq!((ranks.contradicted(), interpolated.count), (set.len(), 99 - count));
            assert_eq!(interpolated.covered, 99 - count);
        }
    }

    #[test]
    fn a_clock_that_its_domain_does_not_share_is_synchronised() {
        let mut ranks = Ranks::hundred(16);
        for rank in (9..100).step_by(10) {
            ranks.clocks[rank] = random_clock(20, &mut Random::new(rank as u64));
        }
        let summary = ranks.synchronised().compare();
        assert!(summary.covered == 99 && summary.max.0 < MICROSECOND, "{summary:?}");
    }

    #[test]
    fn domains_that_are_trusted_add_nothing_to_the_error() {
        let mut ranks = Ranks::hundred(100);
        let checked = ranks.clone().synchronised().compare();
        ranks.options.trusts_domains = true;
        let trusted = ranks.synchronised().compare();
        assert!(checked.mean_claim.0 > 0 && checked.covered == 99, "{checked:?}");
        assert_eq!((trusted.largest_claim, trusted.max), (Picos::ZERO, Picos::ZERO));
    }

    #[test]
    fn clocks_that_drift_faster_than_assumed_contradict_themselves() {
        let mut ranks = Ranks::hundred(1);
        ranks.clocks.iter_mut().for_each(|clock| clock.drift *= 4);
        ranks.options.assumptions.drift_ppm = 10;
        ranks.options.series.offset.drift_ppm = 10;
        ranks.pass();
        ranks.now += 10 * SECOND;
        ranks.pass();
        assert!(ranks.contradicted() > 50);
    }

    #[test]
    fn fresh_pings_confirm_a_good_synchronisation_and_refute_a_bad_one() {
        let mut ranks = Ranks::hundred(1);
        ranks.pass();
        let check = |ranks: &mut Ranks| summary((1..100).map(|rank| ranks.residual(0, rank)));
        assert_eq!(check(&mut ranks).covered, 99);
        ranks.set(50..100, 10 * MILLISECOND.cast_signed());
        let bad = check(&mut ranks);
        assert!(bad.covered < 75 && bad.p99.0 > 9 * MILLISECOND, "{bad:?}");
    }

    #[test]
    fn residuals_are_summarised_by_their_magnitudes() {
        let residual = |value, claimed| Residual {
            value: SignedPicos(value),
            claimed: Picos(claimed),
            ..Residual::default()
        };
        let found = summary((1..=200).map(|n| residual(if n % 2 == 0 { n } else { -n }, 150)));
        assert_eq!([found.p50, found.p99, found.max], [Picos(100), Picos(198), Picos(200)]);
        assert_eq!((found.count, found.covered, found.covered_share()), (200, 150, 0.75));
        let found = summary([residual(-3, 2), residual(0, 5)].into_iter());
        assert_eq!((found.largest_claim, found.mean_claim), (Picos(5), Picos(3)));
        assert_eq!((found.p50, found.covered), (Picos(0), 1));
        assert!(summary([].into_iter()).covered_share() >= 1.0);
        assert_eq!(Residuals::new(&mut []).push(residual(1, 1)), Err(residual(1, 1)));
    }

    #[test]
    fn triangles_of_strangers_close_unless_a_clock_was_set_meanwhile() {
        let mut ranks = Ranks::hundred(1).synchronised();
        for (a, b, c) in (1..98).map(|a| (a, a + 1, a + 2)) {
            let mut sides = [ranks.residual(a, b), ranks.residual(b, c), ranks.residual(c, a)];
            let triangle = Triangle::of(&sides);
            assert!(triangle.is_closed(), "{triangle:?}");
            assert!(sides.iter().all(Residual::is_covered), "{sides:?}");
            ranks.set(a..b, MILLISECOND.cast_signed());
            sides[2] = ranks.residual(c, a);
            assert!(!Triangle::of(&sides).is_closed());
            ranks.set(a..b, -MILLISECOND.cast_signed());
        }
    }

    #[test]
    fn a_triangle_may_open_by_what_clocks_drift_while_it_is_measured() {
        let side = |second: u64, value| Residual {
            at: Picos(second * SECOND),
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
}
