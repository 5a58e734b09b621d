//! Whole measurements of a link on virtual time whose parameters are known:
//! planner, session, kernels, responder, fit and assessment together.

mod measured;

#[cfg(test)]
mod whole {
    use loggap_core::measure::{
        AssessOptions, AssessRequirements, Assessment, Bend, Bursts, Conclusion, Disturbance,
        PlanOptions, Preemptions, Quantity, RoundNoise, RowHeader, Sample, SampleStore,
        StoreRequirements, Truth, TwoSpeeds,
    };
    use loggap_core::model::{Change, Range, SizeLine};
    use loggap_core::units::{Bytes, PerByte, Picos};
    use std::collections::{BTreeMap, BTreeSet};

    use crate::measured::judged::{intervals, values};
    use crate::measured::kinds::truth;
    use crate::measured::{Analysis, Measured, Noise, Setup};

    /// Ten times that of a processor's counter: what takes time in these
    /// tests is waiting by reading the clock.
    const READ_COST: Picos = Picos(200_000);

    fn measure(
        truths: &[Truth],
        disturbance: Disturbance,
        options: PlanOptions,
        rows: usize,
        repetitions: usize,
    ) -> Measured {
        let (bend, spread) = (Bend::default(), Picos::ZERO);
        let noise = Noise { calls: disturbance, ..Noise::default() };
        let (sizes, launches, read_cost) = (32, 1, READ_COST);
        Setup {
            truths,
            bend,
            noise,
            options,
            sizes,
            rows,
            repetitions,
            spread,
            launches,
            read_cost,
        }
        .measure()
    }

    /// The parameters of one protocol: name, measured, true. Overheads at
    /// the first size that the protocol is used for.
    fn compare(measured: &Range, truth: &Truth) -> [(&'static str, f64, f64); 5] {
        let first = Bytes(u64::from(truth.first_size));
        let at_first = |line: Option<SizeLine>| line.expect("measured").at(first).0 as f64;
        let truly = |time: Picos, each: PerByte| {
            (time.0 + each.times(first.after_first()).expect("short").0) as f64
        };
        let fraction = f64::from(1 << PerByte::FRACTION_BITS);
        let latency = measured.latency.expect("positive").value.0 as f64;
        [
            ("g", measured.gap.at_one.value.0 as f64, truth.gap.0 as f64),
            (
                "G",
                measured.gap.per_byte.value.0 as f64 / fraction,
                truth.gap_per_byte.0 as f64 / fraction,
            ),
            (
                "o_s",
                at_first(measured.send_overhead),
                truly(truth.send_overhead, truth.send_overhead_per_byte),
            ),
            (
                "o_r",
                at_first(measured.recv_overhead),
                truly(truth.recv_overhead, truth.recv_overhead_per_byte),
            ),
            ("L", latency, truth.latency.0 as f64),
        ]
    }

    #[test]
    fn without_noise_all_parameters_and_changes_come_out_exactly() {
        let truths =
            [truth(1, 1_500_000, 80), truth(4_097, 6_000_000, 60), truth(20_001, 9_000_000, 50)];
        for protocols in 1..=3 {
            let truths = &truths[..protocols];
            let measured = measure(truths, Disturbance::default(), PlanOptions::default(), 96, 64);
            assert_eq!(measured.conclusion, Some(Conclusion::Converged));
            let Assessment { profile, warnings, .. } = &measured.assessment;
            assert!(warnings.is_empty(), "{warnings:?}");
            assert_eq!((profile.ranges.len(), profile.changes.len()), (protocols, protocols - 1));
            for (change, truth) in profile.changes.iter().zip(&truths[1..]) {
                let exact = Bytes(u64::from(truth.first_size));
                let Change { at, low, high, splits, .. } = *change;
                assert_eq!((at, low, high, splits), (exact, exact, exact, true));
            }
            for (range, truth) in profile.ranges.iter().zip(truths) {
                assert_exact(range, truth);
            }
        }
    }

    /// What two picoseconds, the clock's resolution on either side of a
    /// difference, can do to each parameter: 2 ps to a time, 2 ps over the
    /// range to a slope.
    fn assert_exact(range: &Range, truth: &Truth) {
        let length = (range.last.0 - range.first.0) as f64;
        let fraction = f64::from(1 << PerByte::FRACTION_BITS);
        for (name, value, expected) in compare(range, truth) {
            let most = if name == "G" { 2.0 / length + 1.0 / fraction } else { 2.0 };
            assert!((value - expected).abs() <= most, "{name}: {value}, truly {expected}");
        }
        let slopes = [
            ("O_s", range.send_overhead, truth.send_overhead_per_byte),
            ("O_r", range.recv_overhead, truth.recv_overhead_per_byte),
        ];
        for (name, line, expected) in slopes {
            let value = line.expect("measured").per_byte.value.0 as f64 / fraction;
            let expected = expected.0 as f64 / fraction;
            let most = 2.0 / length + 1.0 / fraction;
            assert!((value - expected).abs() <= most, "{name}: {value}, truly {expected}");
        }
    }

    #[test]
    fn the_stored_samples_give_the_same_assessment_again() {
        let truths = [truth(1, 1_500_000, 80), truth(4_097, 6_000_000, 60)];
        let disturbance =
            Disturbance { seed: 3, noise: 0.05, outliers: 0.02, ..Disturbance::default() };
        let measured = measure(&truths, disturbance, PlanOptions::default(), 96, 64);
        let needed = StoreRequirements::new(200, 100).unwrap();
        let mut rows = vec![RowHeader::default(); needed.rows];
        let mut values = vec![0; needed.values];
        let mut store = SampleStore::new(&mut rows, &mut values);
        for sample in &measured.samples {
            store.insert(sample).unwrap();
        }
        let options = AssessOptions::default();
        let mut analysis = Analysis::new(AssessRequirements::new(200));
        let again = Assessment::new(&store, &options, &mut analysis.lend()).unwrap();
        assert_eq!(again, measured.assessment);
    }

    /// What is wrong with a measurement: parameters off by more than 2%,
    /// changes that are neither exact nor inside their interval, and
    /// intervals so wide that this says little.
    fn mistakes(measured: &Measured, truths: &[Truth]) -> Vec<String> {
        let profile = &measured.assessment.profile;
        if [profile.ranges.len(), profile.changes.len() + 1] != [truths.len(); 2] {
            return vec![format!("{} protocols: {:?}", profile.ranges.len(), profile.changes)];
        }
        let mut mistakes = vec![];
        for (change, truth) in profile.changes.iter().zip(&truths[1..]) {
            let first = Bytes(u64::from(truth.first_size));
            if change.at != first && !(change.low <= first && first <= change.high) {
                mistakes.push(format!("{first}: {change:?}"));
            }
            if change.high.0 - change.low.0 > first.0 / 10 {
                mistakes.push(format!("{first}: no better than {change:?}"));
            }
        }
        for (range, truth) in profile.ranges.iter().zip(truths) {
            for (name, value, expected) in compare(range, truth) {
                if (value - expected).abs() > 0.02 * expected {
                    let percent = 100.0 * (value / expected - 1.0);
                    mistakes.push(format!("from {}: {name} {percent:+.1}%", range.first));
                }
            }
        }
        mistakes
    }

    /// Which of so many seeds lead to mistakes, and to which.
    fn mistaken(seeds: u64) -> Vec<(u64, Vec<String>)> {
        let truths = [
            truth(1, 1_500_000, 700),
            truth(2_049, 3_000_000, 400),
            truth(10_001, 5_000_000, 300),
            truth(30_001, 14_000_000, 250),
        ];
        let one = |seed: u64| {
            let protocols = [2, 3, 4][usize::try_from(seed % 3).unwrap()];
            let disturbance =
                Disturbance { seed, noise: 0.05, outliers: 0.02, ..Disturbance::default() };
            let mut options = PlanOptions { seed, max_messages: 200_000, ..PlanOptions::default() };
            options.assess.relative_error_ppm = 10_000;
            options.max_time = Picos(60_000_000_000_000);
            let truths = &truths[..protocols];
            mistakes(&measure(truths, disturbance, options, 128, 1_024), truths)
        };
        std::thread::scope(|scope| {
            let one = &one;
            let part = |first: u64| (first..seeds).step_by(4).map(|seed| (seed, one(seed)));
            let spawn = |first| scope.spawn(move || -> Vec<_> { part(first).collect() });
            let threads: Vec<_> = (0..4).map(spawn).collect();
            let all = threads.into_iter().flat_map(|thread| thread.join().unwrap());
            all.filter(|(_, mistakes)| !mistakes.is_empty()).collect()
        })
    }

    #[test]
    fn noise_and_outliers_leave_parameters_within_two_percent_and_changes_found() {
        let bad = mistaken(20);
        assert!(bad.len() <= 1, "{} of 20 seeds: {bad:#?}", bad.len());
    }

    #[test]
    #[ignore = "half a minute; the figure of docs/lab/performance.md"]
    fn of_a_hundred_noisy_measurements_95_are_right() {
        let bad = mistaken(100);
        assert!(bad.len() <= 5, "{} of 100 seeds: {bad:#?}", bad.len());
    }

    const RUNS: u64 = 20;

    /// Shares of intervals that hold the truth, of all parameters together,
    /// and runs with a change, over [`RUNS`] default runs of a link of one protocol.
    fn coverage(rounds: RoundNoise) -> (f64, usize) {
        let truths = [truth(1, 1_500_000, 80)];
        let (mut inside, mut all, mut changed) = (0_u32, 0_u32, 0);
        for seed in 1..=RUNS {
            let calls = Disturbance { seed, ..Disturbance::default() };
            let noise = Noise { calls, rounds, ..Noise::default() };
            let setup = Setup::of_the_command(&truths, Bend::default(), noise);
            let setup = Setup { read_cost: READ_COST, ..setup };
            let profile = setup.measure().assessment.profile;
            changed += usize::from(!profile.changes.is_empty());
            for range in &profile.ranges {
                for (interval, truth) in intervals(range).into_iter().zip(values(&truths[0])) {
                    let (low, _, high) = interval.expect("everything is measured");
                    all += 1;
                    inside += u32::from(low <= truth && truth <= high);
                }
            }
        }
        (f64::from(inside) / f64::from(all), changed)
    }

    #[test]
    fn intervals_hold_the_truth_under_the_noise_of_real_links() {
        let bursts =
            Bursts { interval: Picos(490_000_000_000), length: Picos(10_000_000_000), factor: 5.0 };
        let two_speeds = TwoSpeeds { share: 0.3, factor: 1.25 };
        let none = RoundNoise::default();
        let noises = [
            ("lognormal 10%", RoundNoise { skew: 0.1, ..none }, 0),
            // The median absolute deviation knows little of a second speed: the
            // goal of 1% is missed here, see docs/lab/performance.md.
            ("two speeds", RoundNoise { skew: 0.03, two_speeds, ..none }, 2),
            ("bursts", RoundNoise { skew: 0.05, bursts, ..none }, 1),
        ];
        for (name, noise, most) in noises {
            let (covered, changed) = coverage(noise);
            assert!(covered >= 0.9, "{name}: {covered} of the intervals hold the truth");
            assert!(
                changed <= most,
                "{name}: changes in {changed} of {RUNS} runs, where there is none"
            );
        }
    }

    const MILLI: u64 = 1_000_000_000;

    /// A default run between processors that are taken away for 6 ms after 3 ms
    /// on average, or as `told`.
    fn beside_others(seed: u64, preemptions: Preemptions) -> (Measured, Truth) {
        let links = [truth(1, 1_500_000, 80)];
        let calls = Disturbance { seed, noise: 0.05, ..Disturbance::default() };
        let noise = Noise { calls, preemptions, ..Noise::default() };
        let setup = Setup::of_the_command(&links, Bend::default(), noise);
        (Setup { read_cost: READ_COST, ..setup }.measure(), links[0])
    }

    #[test]
    fn rounds_without_a_processor_are_left_out_and_the_rest_decides() {
        let (interval, length) = (Picos(3 * MILLI), Picos(6 * MILLI));
        for seed in 1..=5 {
            let preemptions = Preemptions { interval, length, told: true };
            let (measured, link) = beside_others(seed, preemptions);
            assert!(measured.left_out > 200, "seed {seed}: {} rounds", measured.left_out);
            let longest = measured.samples.iter().map(|sample| sample.elapsed).max();
            assert!(longest < Some(length), "seed {seed}: {longest:?}");
            assert!(measured.assessment.profile.changes.is_empty(), "seed {seed}");
            let range = measured.assessment.profile.ranges.first().expect("a range");
            for (name, found, truly) in compare(range, &link) {
                assert!((found / truly - 1.0).abs() < 0.1, "seed {seed}: {name} {found} {truly}");
            }
            assert!(measured.seconds < 2.75, "seed {seed}: {} s", measured.seconds);
        }
    }

    #[test]
    fn all_first_sizes_meet_the_same_times_with_a_processor() {
        let preemptions =
            Preemptions { interval: Picos(MILLI), length: Picos(50 * MILLI), told: true };
        for seed in 1..=5 {
            let (measured, _) = beside_others(seed, preemptions);
            let round_trips = |sample: &&Sample| sample.experiment.quantity == Quantity::RoundTrip;
            let first = measured.samples.iter().filter(round_trips).take(60);
            let sizes: BTreeSet<u32> = first.map(|sample| sample.experiment.size).collect();
            assert!(sizes.len() >= 8, "seed {seed}: {sizes:?}");
            assert!(measured.seconds < 2.75, "seed {seed}: {} s", measured.seconds);
        }
    }

    #[test]
    fn a_tenth_of_the_rounds_moves_no_value_beyond_its_interval() {
        for seed in 1..=5 {
            // Rounds of 60 us on average, for all of which 0.5 ms would be a tenth.
            let (interval, length) = (Picos(MILLI / 2), Picos(3 * MILLI));
            let preemptions = Preemptions { interval, length, told: false };
            let (measured, link) = beside_others(seed, preemptions);
            let hit = |sample: &&Sample| sample.elapsed >= length;
            let hits = measured.samples.iter().filter(hit).count();
            assert!(hits * 20 > measured.samples.len(), "seed {seed}: {hits} rounds are hit");
            assert!(measured.assessment.profile.changes.is_empty(), "seed {seed}");
            for range in &measured.assessment.profile.ranges {
                for (interval, truth) in intervals(range).into_iter().zip(values(&link)) {
                    let (low, value, high) = interval.expect("everything is measured");
                    // Times in ps are known better than slopes in ps a byte.
                    let most = if truth > 1e3 { truth } else { 8.0 * truth };
                    assert!(high - low < most, "seed {seed}: {truth} is known as {low} to {high}");
                    // An interval of 95% is missed now and then, and then by little.
                    let slack = 0.1 * (high - low) + 0.02 * value;
                    assert!(
                        low - slack <= truth && truth <= high + slack,
                        "seed {seed}: {truth} not in {low} to {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn few_sizes_are_known_well_where_there_is_no_time_for_all() {
        // Both ends have a processor for 12 ms in all.
        let (interval, length) = (Picos(MILLI), Picos(200 * MILLI));
        for seed in 1..=5 {
            let preemptions = Preemptions { interval, length, told: true };
            let (measured, link) = beside_others(seed, preemptions);
            let mut counts = BTreeMap::<u32, usize>::new();
            let round_trips = |sample: &&Sample| sample.experiment.quantity == Quantity::RoundTrip;
            for sample in measured.samples.iter().filter(round_trips) {
                *counts.entry(sample.experiment.size).or_default() += 1;
            }
            let well = counts.values().filter(|count| **count >= 6).count();
            assert!(well >= 3 && well * 2 >= counts.len(), "seed {seed}: {counts:?}");
            assert!(measured.seconds < 2.75, "seed {seed}: {} s", measured.seconds);
            let range = measured.assessment.profile.ranges.first().expect("a range");
            let half_rtt = range.half_rtt.expect("known").at_one.value.0 as f64;
            let truly = (link.latency.0 + link.send_overhead.0 + link.recv_overhead.0) as f64;
            assert!((half_rtt / truly - 1.0).abs() < 0.25, "seed {seed}: {half_rtt} {truly}");
        }
    }
}
