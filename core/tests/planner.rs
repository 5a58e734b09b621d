//! The planner under whatever values a link may give it.

#[cfg(test)]
mod planner {
    use loggap_core::fit::{Node, Point};
    use loggap_core::measure::{
        AssessMemory, Conclusion, Experiment, Kept, Outcome, PlanError, PlanMemory, PlanOptions,
        PlanRequirements, Planner, Quantity, RowHeader, Sample, Slot, coarse_sizes,
    };
    use loggap_core::random::Random;
    use loggap_core::units::Picos;
    use quickcheck::{QuickCheck, quickcheck};

    /// A planner's memory.
    struct Memory {
        rows: Vec<RowHeader>,
        values: Vec<u64>,
        order: Vec<Slot>,
        points: Vec<Point>,
        nodes: Vec<Node>,
    }

    impl Memory {
        fn new(sizes: usize, repetitions: usize) -> Self {
            let needed = PlanRequirements::new(sizes, repetitions).unwrap();
            Self {
                rows: vec![RowHeader::default(); needed.store.rows],
                values: vec![0; needed.store.values],
                order: vec![Slot::default(); needed.order],
                points: vec![Point::default(); needed.assess.points],
                nodes: vec![Node::default(); needed.assess.nodes],
            }
        }

        fn lend(&mut self) -> PlanMemory<'_> {
            PlanMemory {
                rows: &mut self.rows,
                values: &mut self.values,
                order: &mut self.order,
                assess: AssessMemory { points: &mut self.points, nodes: &mut self.nodes },
            }
        }
    }

    /// What became of a plan.
    struct Run {
        conclusion: Option<Conclusion>,
        experiments: Vec<Experiment>,
    }

    /// Runs a planner to its end; `answer` gives delay and time of a round, or
    /// loses it. All that was asked for.
    fn follow(
        planner: &mut Planner<'_>,
        options: PlanOptions,
        mut answer: impl FnMut(&Experiment) -> Option<(u64, u64)>,
    ) -> Vec<Experiment> {
        let (mut now, mut experiments) = (Picos(5), vec![]);
        let mut messages = 0;
        loop {
            let batch = planner.poll_batch::<16>(now);
            if batch.is_empty() {
                break;
            }
            for experiment in batch {
                messages += u64::from(experiment.messages) + 1;
                experiments.push(experiment);
                match answer(&experiment) {
                    None => planner.handle_lost(&experiment),
                    Some((delay, elapsed)) => {
                        now = Picos(now.0.saturating_add(elapsed.min(options.max_time.0 / 100)));
                        let (delay, elapsed) = (Picos(delay), Picos(elapsed));
                        let sample = Sample { experiment, delay, elapsed };
                        assert_ne!(planner.handle_sample(&sample), Kept::Refused);
                    }
                }
            }
            assert_eq!(planner.progress(now).messages, messages);
        }
        assert!(messages <= options.max_messages);
        assert!(planner.poll_batch::<16>(now).is_empty(), "a plan that is over stays over");
        experiments
    }

    /// Runs a plan to its end, see [`follow`].
    fn run(
        options: PlanOptions,
        sizes: &[u32],
        answer: impl FnMut(&Experiment) -> Option<(u64, u64)>,
    ) -> Run {
        let mut memory = Memory::new(sizes.len() + 24, 12);
        let mut planner: Planner<'_> = Planner::new(options, sizes, memory.lend()).unwrap();
        let experiments = follow(&mut planner, options, answer);
        let _ = planner.assess(); // whatever it says, it says it
        Run { conclusion: planner.conclusion(), experiments }
    }

    fn options(seed: u64) -> PlanOptions {
        PlanOptions { seed, max_messages: 6_000, ..PlanOptions::default() }
    }

    /// A lossless answer by Eq. 1 to 3, in picoseconds.
    fn model(gap: u64) -> impl Fn(&Experiment) -> Option<(u64, u64)> {
        move |experiment: &Experiment| {
            let rest = u64::from(experiment.size) - 1;
            let (delay, n) = (experiment.delay.0, u64::from(experiment.messages));
            let period = (700_000 + delay).max(gap + 80 * rest);
            Some(match experiment.quantity {
                Quantity::Receive => (delay, 900_000),
                _ => (delay, 14_000_000 + 160 * rest + (n - 1) * period),
            })
        }
    }

    #[test]
    fn sizes_that_never_arrive_cost_a_few_rounds_and_the_others_are_measured() {
        let mut sizes = [0; 29];
        let count = coarse_sizes(1, 65_536, &mut sizes);
        let lossless = model(1_000_000);
        for seed in 0..20 {
            let mut memory = Memory::new(count + 24, 12);
            let mut planner: Planner<'_> =
                Planner::new(options(seed), &sizes[..count], memory.lend()).unwrap();
            let mut lost = 0;
            follow(&mut planner, options(seed), |experiment| {
                let arrives = experiment.size <= 1_472;
                lost += u32::from(!arrives);
                lossless(experiment).filter(|_| arrives)
            });
            assert_eq!(planner.reached(), Some(1_024), "seed {seed}");
            assert!(lost < 60, "seed {seed}: {lost} rounds were lost");
            assert!(planner.assess().is_ok());
        }
    }

    /// Largest size that is said to arrive, bytes, on a machine that takes a processor away in
    /// three batches of four and on a path that carries up to `path` bytes; `None` for all.
    fn largest_that_arrives_on_a_busy_machine(seed: u64, path: u32) -> Option<u32> {
        let mut sizes = [0; 29];
        let count = coarse_sizes(1, 65_536, &mut sizes);
        let lossless = model(1_000_000);
        let mut random = Random::new(seed);
        let mut memory = Memory::new(count + 24, 12);
        let mut planner: Planner<'_> =
            Planner::new(options(seed), &sizes[..count], memory.lend()).unwrap();
        let mut now = Picos(5);
        loop {
            let batch = planner.poll_batch::<16>(now);
            if batch.is_empty() {
                return planner.reached();
            }
            // Every fifth of the batches that are hit loses what follows a round.
            let is_hit = !random.draw().is_multiple_of(4);
            let lost_from = if random.draw().is_multiple_of(5) { random.draw() % 16 } else { 16 };
            let mut outcomes = Vec::new();
            for (index, experiment) in batch.into_iter().enumerate() {
                let arrives = !is_hit || (index as u64) < lost_from;
                let sent = lossless(&experiment).filter(|_| experiment.size <= path && arrives);
                outcomes.push(match sent {
                    None => Outcome::Lost(experiment),
                    Some((delay, elapsed)) => {
                        now = Picos(now.0 + elapsed);
                        let (delay, elapsed) = (Picos(delay), Picos(elapsed));
                        Outcome::Sample(Sample { experiment, delay, elapsed })
                    }
                });
            }
            for (index, outcome) in outcomes.iter().enumerate() {
                match outcome {
                    _ if is_hit => planner.handle_disturbed(outcome, &outcomes[..index]),
                    Outcome::Sample(sample) => {
                        planner.handle_sample(sample);
                    }
                    Outcome::Lost(experiment) | Outcome::Late(experiment) => {
                        planner.handle_lost(experiment);
                    }
                }
            }
        }
    }

    #[test]
    fn a_small_mtu_is_found_on_a_busy_machine_and_none_where_there_is_none() {
        let found = (0..50)
            .filter(|&seed| largest_that_arrives_on_a_busy_machine(seed, 1_472) == Some(1_024))
            .count();
        let mistaken = (0..50)
            .filter(|&seed| largest_that_arrives_on_a_busy_machine(seed, u32::MAX).is_some())
            .count();
        assert!(found >= 45 && mistaken == 0, "{found} found, {mistaken} mistaken");
    }

    #[test]
    fn the_wait_before_a_launch_is_no_time_that_a_preemption_took() {
        let mut memory = Memory::new(8, 12);
        let mut planner: Planner<'_> = Planner::new(options(1), &[1, 64], memory.lend()).unwrap();
        let lossless = model(1_000_000);
        let mut now = Picos(5);
        // All batches of the first launch are clean but the last.
        for batch in 0..5 {
            for experiment in planner.poll_batch::<16>(now) {
                let (delay, elapsed) = lossless(&experiment).unwrap();
                now = Picos(now.0 + elapsed);
                let (delay, elapsed) = (Picos(delay), Picos(elapsed));
                let sample = Sample { experiment, delay, elapsed };
                if batch == 4 {
                    planner.handle_disturbed(&Outcome::Sample(sample), &[]);
                } else {
                    planner.handle_sample(&sample);
                }
            }
        }
        planner.begin_launch();
        assert!(!planner.poll_batch::<16>(Picos(4 * now.0)).is_empty());
        assert!(planner.disturbed() > 0 && !planner.is_busy());
    }

    #[test]
    fn sizes_of_which_chance_loses_most_rounds_are_not_given_up() {
        let mut random = Random::new(3);
        let lossless = model(1_000_000);
        let mut memory = Memory::new(40, 12);
        let sizes = [1, 64, 1_024, 16_384, 65_536];
        let mut planner: Planner<'_> = Planner::new(options(1), &sizes, memory.lend()).unwrap();
        follow(&mut planner, options(1), |experiment| {
            // Packets of 1,500 B, of which 1% are lost each way.
            let packets = 2 * (1 + experiment.size / 1_500);
            let arrives = (0..packets).all(|_| !random.draw().is_multiple_of(100));
            lossless(experiment).filter(|_| arrives)
        });
        assert_eq!(planner.reached(), None);
    }

    #[test]
    fn sizes_beyond_a_bound_are_left_out_unless_no_others_are_left() {
        let sizes = [1_500, 64, 1, 4_096];
        for (adapt_sizes, last) in [(true, 1_472), (false, 64)] {
            let mut memory = Memory::new(20, 12);
            let options = PlanOptions { adapt_sizes, ..options(1) };
            let mut planner: Planner<'_> = Planner::new(options, &sizes, memory.lend()).unwrap();
            assert!(!planner.limit_sizes(0) && !planner.limit_sizes(4_096));
            assert!(planner.limit_sizes(1_472));
            let asked = follow(&mut planner, options, model(1_000_000));
            let largest = asked.iter().map(|experiment| experiment.size).max();
            assert_eq!(largest, Some(last));
        }
    }

    #[test]
    fn bursts_that_never_arrive_become_shorter_until_they_do() {
        let lossless = model(1_000_000);
        let answer = |experiment: &Experiment| {
            let bytes = u64::from(experiment.messages) * u64::from(experiment.size);
            let fits = experiment.quantity != Quantity::Gap || bytes <= 30_000;
            fits.then(|| lossless(experiment)).flatten()
        };
        let run = run(options(7), &[1, 512, 8_192], answer);
        let bursts = |asked: &&Experiment| asked.quantity == Quantity::Gap;
        let sent = |size| {
            let at_size = move |asked: &&Experiment| asked.size == size;
            run.experiments.iter().filter(bursts).filter(at_size).map(|asked| asked.messages)
        };
        assert_eq!((sent(512).min(), sent(512).max()), (Some(10), Some(10)));
        assert_eq!((sent(8_192).min(), sent(8_192).max()), (Some(2), Some(10)));
        assert!(sent(8_192).filter(|&messages| messages == 2).count() >= 8);
    }

    #[test]
    fn what_is_known_well_enough_is_measured_no_longer() {
        let exact = model(1_000_000);
        let mut random = Random::new(3);
        let noisy = |experiment: &Experiment| {
            let (delay, elapsed) = exact(experiment)?;
            Some((delay, elapsed + random.below(elapsed / 100_000)))
        };
        let run = run(options(7), &[1, 64, 4_096, 65_536], noisy);
        assert_eq!(run.conclusion, Some(Conclusion::Converged));
        assert!(run.experiments.len() < 400, "{} rounds", run.experiments.len());
    }

    #[test]
    fn arbitrary_values_and_losses_end_within_the_budget() {
        fn property(seed: u64, sizes: Vec<u16>, values: Vec<(u64, u64, u8)>) -> bool {
            let sizes: Vec<u32> = sizes.iter().take(40).map(|&size| u32::from(size) + 1).collect();
            let mut next = values.iter().cycle();
            let answer = |_: &Experiment| match next.next() {
                Some(&(delay, elapsed, kind)) => match kind % 4 {
                    0 => None,
                    1 => Some((delay % 1_000, elapsed % 1_000_000)),
                    2 => Some((delay, elapsed)),
                    _ => Some((0, 0)),
                },
                None => None,
            };
            sizes.is_empty() || run(options(seed), &sizes, answer).conclusion.is_some()
        }
        // Three rounds of one size in a batch, and room for one.
        assert!(property(0, vec![0], vec![(0, 2, 5), (0, 0, 0), (0, 0, 1)]));
        QuickCheck::new().tests(60).quickcheck(property as fn(u64, Vec<u16>, Vec<_>) -> bool);
    }

    /// The delay kept and the time taken, or a lost round.
    type Answer<'a> = dyn FnMut(&Experiment) -> Option<(u64, u64)> + 'a;

    #[test]
    fn zero_huge_equal_and_falling_times_end_within_the_budget() {
        let mut sizes = [0; 29];
        let count = coarse_sizes(1, 65_536, &mut sizes);
        let sizes = &sizes[..count];
        let mut falling = u64::MAX;
        let answers: [&mut Answer<'_>; 5] = [
            &mut |_| Some((0, 0)),
            &mut |_| Some((u64::MAX, u64::MAX)),
            &mut |experiment| Some((experiment.delay.0, 1_000)),
            &mut |experiment| {
                falling -= falling / 50;
                Some((experiment.delay.0, falling))
            },
            &mut |_| None,
        ];
        for answer in answers {
            assert!(run(options(1), sizes, answer).conclusion.is_some());
        }
    }

    #[test]
    fn a_link_that_loses_everything_is_given_up() {
        let run = run(options(1), &[1, 64, 4_096], |_| None);
        assert_eq!(run.conclusion, Some(Conclusion::RoundsLost));
    }

    #[test]
    fn the_clock_ends_a_plan_too() {
        let slow = |_: &Experiment| Some((0, 1 << 60));
        let run = run(options(1), &[1, 64, 4_096], slow);
        assert_eq!(run.conclusion, Some(Conclusion::TimeSpent));
    }

    #[test]
    fn a_link_that_stands_still_is_warm_after_two_windows_at_each_end() {
        let run = run(options(5), &[1, 64, 4_096], model(1_500_000));
        let bursts = |asked: &Experiment| asked.quantity == Quantity::Gap;
        let before = run.experiments.iter().position(bursts).unwrap();
        assert!((32..=64).contains(&before), "{before} round trips");
    }

    #[test]
    fn a_link_that_never_stands_still_is_warmed_up_with_a_tenth_of_the_budget() {
        let mut falling = 1_u64 << 30;
        let answer = |experiment: &Experiment| {
            falling -= falling / 64;
            Some((experiment.delay.0, falling))
        };
        let run = run(options(5), &[1, 64, 4_096], answer);
        let bursts = |asked: &Experiment| asked.quantity == Quantity::Gap;
        let before = run.experiments.iter().position(bursts).unwrap();
        // Of 6,000 messages, two a round trip, in batches of 16.
        assert!((300..=332).contains(&before), "{before} round trips");
    }

    /// Messages that the first samples of all cells take, of so many.
    fn base_messages(max_messages: u64, sizes: &[u32]) -> u64 {
        let options = PlanOptions { max_messages, ..options(3) };
        let mut memory = Memory::new(sizes.len(), 12);
        let mut planner: Planner<'_> = Planner::new(options, sizes, memory.lend()).unwrap();
        let answer = model(1_500_000);
        let now = Picos(5);
        let mut warm = 0;
        while !planner.has_base() {
            let batch = planner.poll_batch::<16>(now);
            assert!(!batch.is_empty(), "over before the first samples were there");
            for experiment in batch {
                let (delay, elapsed) = answer(&experiment).unwrap();
                let sample = Sample { experiment, delay: Picos(delay), elapsed: Picos(elapsed) };
                if planner.handle_sample(&sample) == Kept::WarmUp {
                    warm = planner.progress(now).messages;
                }
            }
        }
        planner.progress(now).messages - warm
    }

    #[test]
    fn the_first_samples_take_half_of_a_small_budget_at_most() {
        let mut sizes = [0; 17];
        let count = coarse_sizes(1, 65_536, &mut sizes);
        let all = base_messages(100_000, &sizes[..count]);
        for budget in [1_000, 2_000, 4_000, 8_000] {
            let taken = base_messages(budget, &sizes[..count]);
            assert!(taken <= budget / 2 + 16, "{taken} of {budget}");
            // And not much less, unless nothing is lacking.
            assert!(taken >= budget / 5 || taken == all, "{taken} of {budget}, {all} at most");
        }
    }

    #[test]
    fn quantities_and_sizes_come_mixed() {
        let run = run(options(3), &[1, 8, 64, 512, 4_096, 32_768], model(1_500_000));
        let kept = run.experiments.iter().skip(60);
        let (mut same_quantity, mut same_size, mut pairs) = (0, 0, 0);
        for (a, b) in kept.clone().zip(kept.skip(1)) {
            pairs += 1;
            same_quantity += u32::from(a.quantity == b.quantity);
            same_size += u32::from(a.size == b.size);
        }
        // By chance a third share the quantity, as round trips come twice, and a sixth the size.
        assert!(pairs > 100 && same_quantity < pairs / 2 && same_size < pairs / 3);
    }

    #[test]
    fn the_same_seed_asks_the_same_questions() {
        let ask = |seed| run(options(seed), &[1, 8, 64, 512, 4_096], model(1_500_000)).experiments;
        assert_eq!(ask(7), ask(7));
        assert_ne!(ask(7), ask(8));
    }

    #[test]
    fn the_delay_is_the_round_trip_or_more_where_the_gap_exceeds_it() {
        for (gap, factor) in [(1_500_000, 1), (40_000_000, 3)] {
            let run = run(options(1), &[1, 8, 64], model(gap));
            let paced = |e: &&Experiment| e.quantity == Quantity::Paced;
            for experiment in run.experiments.iter().filter(paced) {
                assert!(experiment.delay.0 > gap, "{experiment:?}");
                assert_eq!(experiment.delay.0 / 14_000_000, if factor == 1 { 1 } else { 4 });
            }
            assert!(run.experiments.iter().any(|e| e.quantity == Quantity::Paced));
        }
    }

    #[test]
    fn a_reply_is_received_only_after_it_must_have_arrived() {
        let run = run(options(1), &[1, 8, 64], model(1_500_000));
        let receives = run.experiments.iter().filter(|e| e.quantity == Quantity::Receive);
        assert!(receives.clone().count() > 0);
        for experiment in receives {
            assert!(experiment.delay.0 > 20_000_000, "{experiment:?}");
        }
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        let mut memory = Memory::new(4, 12);
        let mut plan = |options: PlanOptions, sizes: &[u32]| {
            Planner::<16>::new(options, sizes, memory.lend()).err()
        };
        let two = PlanOptions { messages: 1, ..PlanOptions::default() };
        assert_eq!(plan(two, &[1]), Some(PlanError::TooFewMessages(1)));
        assert_eq!(plan(PlanOptions::default(), &[]), Some(PlanError::NoSizes));
        assert_eq!(plan(PlanOptions::default(), &[1, 0]), Some(PlanError::EmptyMessage));
        let many = [1, 2, 3, 4, 5];
        assert_eq!(plan(PlanOptions::default(), &many), Some(PlanError::Memory(5)));
        let mut small = Memory::new(4, 7);
        let few = Planner::<16>::new(PlanOptions::default(), &[1], small.lend()).err();
        assert_eq!(few, Some(PlanError::Memory(1)));
    }

    quickcheck! {
        fn no_budget_asks_nothing(seed: u64) -> bool {
            let none = PlanOptions { max_messages: 0, ..options(seed) };
            let no_time = PlanOptions { max_time: Picos::ZERO, ..options(seed) };
            let ask = |options| run(options, &[1, 64], model(1_500_000));
            let (messages, time) = (ask(none), ask(no_time));
            messages.experiments.is_empty()
                && time.experiments.is_empty()
                && messages.conclusion == Some(Conclusion::MessagesSpent)
                && time.conclusion == Some(Conclusion::TimeSpent)
        }
    }

    #[test]
    fn a_plan_that_was_given_no_time_takes_the_longest_and_ends() {
        for max_time in 0..5 {
            let options = PlanOptions {
                max_time: Picos(max_time),
                longest_time: Picos(1_000_000_000_000),
                ..PlanOptions::default()
            };
            let done = run(options, &[1, 64, 4_096], |_| Some((1_000_000, 1_000_000)));
            assert_ne!(done.conclusion, None, "{max_time} ps");
        }
    }
}
