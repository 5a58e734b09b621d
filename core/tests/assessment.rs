//! What an assessment says of links whose times are given exactly.

#[cfg(test)]
mod assessment {
    use loggap_core::fit::{Bound, Node, Point};
    use loggap_core::measure::{
        AssessError, AssessMemory, AssessOptions, AssessRequirements, Assessment, Experiment,
        Findings, MAX_WARNINGS, Quantity, RowHeader, Sample, SampleStore, StoreRequirements,
        Warning,
    };
    use loggap_core::model::{Mark, Parameter, Range};
    use loggap_core::units::{Bytes, Picos};

    const MICRO: u64 = 1_000_000;
    const MILLI: u64 = 1_000 * MICRO;

    /// Messages in a burst.
    const BURST: u32 = 11;

    /// The times of a link at one size.
    #[derive(Clone, Copy)]
    struct Times {
        half_rtt: u64,
        gap: u64,
        send: u64,
        recv: u64,
        /// Delay of the paced rounds.
        delay: u64,
    }

    /// `L` 10 us, `o_s` 4 us, `o_r` 6 us, `g` 9 us, all with a slope.
    fn plain(size: u32) -> Times {
        let rest = u64::from(size) - 1;
        Times {
            half_rtt: 20 * MICRO + 900 * rest,
            gap: 9 * MICRO + 800 * rest,
            send: 4 * MICRO + 200 * rest,
            recv: 6 * MICRO + 100 * rest,
            delay: 2 * (20 * MICRO + 900 * rest),
        }
    }

    const SIZES: [u32; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048];

    /// The rounds of one quantity, of which Eq. 1 to 3 say how long they take.
    fn round(quantity: Quantity, size: u32, times: Times) -> Sample {
        let rest = u64::from(BURST) - 1;
        let round_trip = 2 * times.half_rtt;
        let (messages, delay, elapsed) = match quantity {
            Quantity::RoundTrip => (1, 0, round_trip),
            Quantity::Gap => (BURST, 0, round_trip + rest * times.gap),
            Quantity::Paced => (BURST, times.delay, round_trip + rest * (times.delay + times.send)),
            Quantity::Receive => (1, times.delay, times.recv),
        };
        let experiment = Experiment { quantity, messages, delay: Picos(delay), size };
        Sample { experiment, delay: Picos(delay), elapsed: Picos(elapsed) }
    }

    /// All four quantities at `sizes`, eight times each.
    fn rounds(sizes: &[u32], times: impl Fn(u32) -> Times) -> Vec<Sample> {
        let kinds = [Quantity::RoundTrip, Quantity::Gap, Quantity::Paced, Quantity::Receive];
        let sweep = sizes.iter().flat_map(|&size| kinds.map(|kind| round(kind, size, times(size))));
        let sweep: Vec<Sample> = sweep.collect();
        std::iter::repeat_n(sweep, 8).flatten().collect()
    }

    fn try_assess(samples: &[Sample], options: &AssessOptions) -> Result<Assessment, AssessError> {
        let needed = StoreRequirements::new(64, 16).unwrap();
        let (mut rows, mut values) =
            (vec![RowHeader::default(); needed.rows], vec![0; needed.values]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        for sample in samples {
            store.insert(sample).unwrap();
        }
        let needed = AssessRequirements::new(64);
        let mut memory = AssessMemory {
            points: &mut vec![Point::default(); needed.points],
            nodes: &mut vec![Node::default(); needed.nodes],
        };
        Assessment::new(&store, options, &mut memory)
    }

    fn assess(samples: &[Sample]) -> Assessment {
        try_assess(samples, &AssessOptions::default()).unwrap()
    }

    #[test]
    fn exact_rounds_give_the_parameters_that_made_them_and_no_warning() {
        let assessment = assess(&rounds(&SIZES, plain));
        assert_eq!(assessment.warnings, []);
        assert!(assessment.profile.changes.is_empty());
        let [range] = assessment.profile.ranges[..] else { panic!("{assessment:?}") };
        assert_eq!((range.first, range.last), (Bytes(1), Bytes(2_048)));
        let latency = range.latency.unwrap();
        assert_eq!([latency.value.0, latency.low.0, latency.high.0], [10_000_000; 3]);
        assert_eq!(latency.mark, Mark::Converged);
        let lines = [
            (range.gap, 9, 800),
            (range.half_rtt.unwrap(), 20, 900),
            (range.send_overhead.unwrap(), 4, 200),
            (range.recv_overhead.unwrap(), 6, 100),
        ];
        for (line, at_one, per_byte) in lines {
            let (value, slope) = (line.at_one, line.per_byte);
            assert_eq!([value.value.0, value.low.0, value.high.0], [at_one * 1_000_000; 3]);
            assert_eq!([slope.value.0, slope.low.0, slope.high.0], [per_byte << 16; 3]);
            assert_eq!((value.mark, slope.mark), (Mark::Converged, Mark::Converged));
            assert_eq!(line.scatter_ppm, 0);
        }
    }

    #[test]
    fn a_one_sided_link_has_no_one_way_times() {
        let both = assess(&rounds(&SIZES, plain)).profile.ranges[0];
        let options = AssessOptions { one_sided: true, ..AssessOptions::default() };
        let assessment = try_assess(&rounds(&SIZES, plain), &options).unwrap();
        let expected = Range { half_rtt: None, latency: None, ..both };
        assert_eq!(assessment.profile.ranges, [expected]);
        assert_eq!(assessment.warnings, []);
    }

    #[test]
    fn the_latency_is_given_only_where_it_is_positive() {
        for (half_rtt, latency) in [(10_000_001, Some(1)), (10_000_000, None), (9_000_000, None)] {
            let times = |size| Times {
                half_rtt: plain(size).half_rtt - 20_000_000 + half_rtt,
                ..plain(size)
            };
            let assessment = assess(&rounds(&SIZES, times));
            let found = assessment.profile.ranges[0].latency;
            assert_eq!(found.map(|latency| latency.value.0), latency);
            let overlaps = assessment.warnings.contains(&Warning::Overlap(Bytes(1)));
            assert_eq!(overlaps, latency.is_none(), "{:?}", assessment.warnings);
        }
    }

    #[test]
    fn two_sizes_do_not_show_whether_they_lie_on_a_line_and_three_do() {
        for (count, warnings) in [
            (1, &[Warning::FewSizes(Bytes(1), 1)][..]),
            (2, &[Warning::FewSizes(Bytes(1), 2)]),
            (3, &[]),
        ] {
            assert_eq!(assess(&rounds(&SIZES[..count], plain)).warnings, warnings);
        }
    }

    #[test]
    fn a_gap_that_falls_with_the_size_is_fitted_as_constant_and_named() {
        let times = |size| Times { gap: 9 * MICRO - 100 * u64::from(size), ..plain(size) };
        let assessment = assess(&rounds(&SIZES, times));
        assert_eq!(assessment.warnings, [Warning::Bound(Parameter::Gap, Bytes(1), Bound::Slope)]);
        assert_eq!(assessment.profile.ranges[0].gap.per_byte.value.0, 0);
    }

    #[test]
    fn what_a_bounded_slope_may_be_is_in_the_unit_of_the_times() {
        // Falls by less than its noise; everything eight times as slow is so by the byte.
        let high = |times: u64| {
            let gap = |size: u32| 9 * MICRO - u64::from(size);
            let mut samples = rounds(&SIZES, |size| Times { gap: gap(size), ..plain(size) });
            for (index, sample) in samples.iter_mut().enumerate() {
                sample.elapsed.0 += 6_400 * (index as u64 * 7 % 5);
                sample.elapsed.0 *= times;
                sample.delay.0 *= times;
                sample.experiment.delay.0 *= times;
            }
            let assessment = assess(&samples);
            let slope = assessment.profile.ranges[0].gap.per_byte;
            assert_eq!(slope.value.0, 0, "{slope:?}");
            slope.high.0 as f64
        };
        let ratio = high(8) / high(1);
        assert!((ratio - 8.0).abs() < 0.1, "{ratio}: {} {}", high(1), high(8));
    }

    #[test]
    fn points_far_beside_their_line_are_named_and_those_near_it_are_not() {
        let one_range = AssessOptions { max_changes: 0, ..AssessOptions::default() };
        let warnings = |percent: u64| {
            // Above, below, below, above: neither falling nor rising.
            let above = |size: u32| matches!(size.ilog2() % 4, 0 | 3);
            let part = |size| if above(size) { 100 + percent } else { 100 - percent };
            let recv = |size| (8 * MICRO + 100 * u64::from(size)) / 100 * part(size);
            let times = |size| Times { recv: recv(size), ..plain(size) };
            try_assess(&rounds(&SIZES, times), &one_range).unwrap().warnings
        };
        assert_eq!(warnings(10), []);
        let [Warning::Misfit(Parameter::RecvOverhead, Bytes(1), ppm)] = warnings(30)[..] else {
            panic!("{:?}", warnings(30))
        };
        // Of values 30% beside the line.
        assert!((250_000..=350_000).contains(&ppm), "{ppm}");
    }

    #[test]
    fn where_the_curve_bends_the_interval_at_one_byte_holds_the_value_there() {
        // 1 and 2 bytes take 5% longer than the line of all others says.
        let measured = |size| plain(size).half_rtt / 100 * if size <= 2 { 105 } else { 100 };
        let mut samples = rounds(&SIZES, |size| Times { half_rtt: measured(size), ..plain(size) });
        // Noise of a thousandth, the same at all sizes.
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.elapsed.0 += sample.elapsed.0 / 1_000 * (index as u64 / 48 % 4);
        }
        let one_range = AssessOptions { max_changes: 0, ..AssessOptions::default() };
        let profile = try_assess(&samples, &one_range).unwrap().profile;
        let at_one = profile.ranges[0].half_rtt.unwrap().at_one;
        let there = i64::try_from(measured(1)).unwrap();
        assert!(at_one.low.0 <= there && there <= at_one.high.0, "{there}: {at_one:?}");
    }

    #[test]
    fn the_scatter_of_a_line_is_that_of_single_rounds() {
        let mut samples = rounds(&SIZES, plain);
        samples.extend_from_within(..);
        let sweep = samples.len() / 16;
        // Round trips from 90 to 110% of what they are; half of 90% of them is 10%.
        for (index, sample) in samples.iter_mut().enumerate() {
            if sample.experiment.quantity == Quantity::RoundTrip {
                sample.elapsed.0 = sample.elapsed.0 / 150 * (135 + 2 * (index / sweep) as u64);
            }
        }
        let profile = assess(&samples).profile;
        let scatter = profile.ranges[0].half_rtt.unwrap().scatter_ppm;
        assert!((95_000..=105_000).contains(&scatter), "{scatter}");
    }

    #[test]
    fn a_change_between_two_sizes_is_not_exact_and_one_at_neighbours_is() {
        let times = |size: u32| {
            let more = if size > 512 { 30 * MICRO } else { 0 };
            let Times { half_rtt, gap, delay, .. } = plain(size);
            Times {
                half_rtt: half_rtt + more,
                gap: gap + more,
                delay: delay + 2 * more,
                ..plain(size)
            }
        };
        let sizes = [&SIZES[..], &[4_096, 8_192, 16_384]].concat();
        let coarse = assess(&rounds(&sizes, times));
        assert_eq!(coarse.warnings, [Warning::ChangeNotExact(Bytes(513), Bytes(1_024))]);
        assert_eq!(coarse.profile.ranges.len(), 2);
        let fine = assess(&rounds(&[&SIZES[..10], &[513], &sizes[10..]].concat(), times));
        assert_eq!(fine.warnings, []);
        assert_eq!(fine.profile.ranges[1].first, Bytes(513));
    }

    #[test]
    fn a_small_step_beside_a_change_is_no_other_protocol() {
        let times = |size: u32| {
            let Times { half_rtt, gap, .. } = plain(size);
            let gap = match size {
                4_096.. => 5 * gap / 2,
                4_084.. => gap + gap / 25,
                _ => gap,
            };
            Times { half_rtt: half_rtt + gap, gap, ..plain(size) }
        };
        let near = [3_072, 3_584, 3_840, 3_968, 4_032, 4_064, 4_074, 4_084, 4_090, 4_095, 4_096];
        let sizes = [&SIZES[..], &near, &[4_097, 4_352, 5_120, 6_144, 8_192, 16_384]].concat();
        let changes = assess(&rounds(&sizes, times)).profile.changes;
        let at: Vec<_> = changes.iter().map(|change| change.at).collect();
        assert_eq!(at, [Bytes(4_096)], "{changes:?}");
    }

    #[test]
    fn paced_rounds_that_show_no_overhead_are_counted_from_the_first_size_on() {
        // A delay that is no longer than the gap says nothing of the overhead.
        let short = |size| if size >= 512 { plain(size).gap } else { plain(size).delay };
        let assessment =
            assess(&rounds(&SIZES, |size| Times { delay: short(size), ..plain(size) }));
        assert_eq!(assessment.warnings, [Warning::DelayTooShort(Bytes(512), 3)]);
        // A delay beyond one and a half round trips comes from PRTT(2,0,s).
        let long = |size| plain(size).delay * if size >= 256 { 2 } else { 1 };
        let assessment = assess(&rounds(&SIZES, |size| Times { delay: long(size), ..plain(size) }));
        assert_eq!(assessment.warnings, [Warning::DelayFallback(Bytes(256), 4)]);
    }

    #[test]
    fn sizes_without_bursts_are_counted_and_end_the_range() {
        let mut samples = rounds(&SIZES, plain);
        let left = |sample: &Sample| {
            sample.experiment.size < 1_024 || sample.experiment.quantity == Quantity::RoundTrip
        };
        samples.retain(left);
        let assessment = assess(&samples);
        assert_eq!(assessment.warnings, [Warning::SizesLeftOut(Bytes(1_024), 2)]);
        assert_eq!(assessment.profile.ranges[0].last, Bytes(512));
    }

    #[test]
    fn bursts_that_wait_for_delayed_acknowledgements_are_told_from_a_slow_link() {
        let stalled = |beyond: u64| {
            let mut samples = rounds(&SIZES, plain);
            for sample in &mut samples {
                if sample.experiment.quantity == Quantity::Gap && sample.experiment.size >= 4 {
                    sample.elapsed.0 = 2 * plain(sample.experiment.size).half_rtt + beyond;
                }
            }
            assess(&samples)
                .warnings
                .iter()
                .copied()
                .find(|warning| matches!(warning, Warning::Stall(..)))
        };
        for time in [40 * MILLI, 200 * MILLI] {
            // The stall is seen where a size of a quarter stalls as well.
            assert_eq!(stalled(time), Some(Warning::Stall(Bytes(16), Picos(time))));
        }
        for time in [30 * MILLI, 100 * MILLI, 300 * MILLI] {
            assert_eq!(stalled(time), None, "{time} ps");
        }
        // 2 ms a message at 2,048 bytes: 40 ms a burst at 4,096, and half at half the size.
        let slow = |size: u32| Times { gap: u64::from(size) * MICRO, ..plain(size) };
        let warnings = assess(&rounds(&[&SIZES[..], &[4_096]].concat(), slow)).warnings;
        assert!(
            !warnings.iter().any(|warning| matches!(warning, Warning::Stall(..))),
            "{warnings:?}"
        );
    }

    #[test]
    fn warnings_beyond_those_that_fit_are_counted() {
        let mut assessment = Assessment::<4>::default();
        for _ in 0..MAX_WARNINGS + 6 {
            assessment.warning(Warning::Overlap(Bytes(1)));
        }
        assert_eq!((assessment.warnings.len(), assessment.further_warnings), (MAX_WARNINGS, 6));
    }

    #[test]
    fn without_bursts_or_memory_there_is_no_assessment_and_the_error_says_what_is_missing() {
        let mut samples = rounds(&SIZES, plain);
        samples.retain(|sample| sample.experiment.quantity != Quantity::Gap);
        let error = try_assess(&samples, &AssessOptions::default()).unwrap_err();
        assert_eq!(error, AssessError::NoSamples);
        assert!(error.to_string().contains("allow more time"), "{error}");
        let needed = AssessRequirements::new(12);
        assert!(AssessError::Memory(needed).to_string().contains("48 points"), "{needed:?}");
    }
}
