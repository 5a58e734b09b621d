//! Links on which a single round may take a good part of the budget.

mod measured;

#[cfg(test)]
mod slow {
    use loggap_core::measure::{Bend, Disturbance, PlanOptions, RoundNoise, Truth};
    use loggap_core::model::Range;
    use loggap_core::units::{PerByte, Picos};

    use crate::measured::{Measured, Noise, Setup};

    const SECOND: u64 = 1_000_000_000_000;

    /// A link with this latency and gap per byte.
    fn truth(latency: u64, gap_per_byte: u64) -> Truth {
        Truth {
            first_size: 1,
            latency: Picos(latency),
            send_overhead: Picos(4_000_000),
            send_overhead_per_byte: PerByte(200 << 16),
            recv_overhead: Picos(5_000_000),
            recv_overhead_per_byte: PerByte(100 << 16),
            gap: Picos(6_000_000),
            gap_per_byte: PerByte(gap_per_byte << 16),
        }
    }

    fn measure(truth: Truth, options: PlanOptions) -> Measured {
        let calls = Disturbance { seed: options.seed, ..Disturbance::default() };
        let rounds = RoundNoise { skew: 0.03, ..RoundNoise::default() };
        let (bend, spread) = (Bend::default(), Picos::ZERO);
        let (sizes, rows, repetitions) = (36, 132, 2_048);
        let noise = Noise { calls, rounds, ..Noise::default() };
        Setup {
            truths: &[truth],
            bend,
            noise,
            options,
            sizes,
            rows,
            repetitions,
            spread,
            launches: 1,
            read_cost: Picos(200_000),
        }
        .measure()
    }

    fn whole_range(measured: &Measured) -> Range {
        assert_eq!(measured.assessment.profile.changes.len(), 0, "{:?}", measured.assessment);
        *measured.assessment.profile.ranges.last().expect("a range")
    }

    fn off(value: f64, truth: f64) -> f64 {
        (value / truth - 1.0).abs()
    }

    #[test]
    fn the_rate_of_a_slow_link_is_known_within_five_seconds() {
        // 10, 25, 100 Mb/s, 1 and 10 Gb/s.
        for gap_per_byte in [836_400, 334_600, 83_600, 8_360, 836] {
            for seed in 1..3 {
                let longest_time = Picos(5 * SECOND);
                let options = PlanOptions { seed, longest_time, ..PlanOptions::default() };
                let truth = truth(30_000_000, gap_per_byte);
                let measured = measure(truth, options);
                let range = whole_range(&measured);
                let slope = range.gap.per_byte.value.0 as f64 / 65_536.0;
                let told = format!("{gap_per_byte} ps/B, seed {seed}: {range:?}");
                assert!(off(slope, gap_per_byte as f64) < 0.05, "G {slope} of {told}");
                let half_rtt = measured.assessment.profile.ranges[0].half_rtt.expect("measured");
                let half_rtt = half_rtt.at_one.value.0 as f64;
                assert!(off(half_rtt, 39_000_000.0) < 0.05, "RTT/2 {half_rtt} of {told}");
                assert!(measured.seconds < 5.5, "{} s for {told}", measured.seconds);
            }
        }
    }

    #[test]
    fn a_satellite_link_gives_its_round_trip_within_ten_seconds() {
        let latency = 300_000_000_000;
        let (max_time, longest_time) = (Picos(10 * SECOND), Picos(10 * SECOND));
        let options = PlanOptions { max_time, longest_time, ..PlanOptions::default() };
        let measured = measure(truth(latency, 8_360), options);
        let half_rtt = measured.assessment.profile.ranges[0].half_rtt.expect("measured").at_one;
        assert!(off(half_rtt.value.0 as f64, latency as f64 + 9e6) < 0.02, "{half_rtt:?}");
        assert!(measured.seconds < 11.0, "{} s", measured.seconds);
    }

    #[test]
    fn a_thousand_messages_over_a_long_time_are_enough_for_a_rate() {
        let options = PlanOptions { max_messages: 1_000, ..PlanOptions::default() };
        let measured = measure(truth(30_000_000, 8_360), options);
        let range = whole_range(&measured);
        assert!(off(range.gap.per_byte.value.0 as f64 / 65_536.0, 8_360.0) < 0.05, "{range:?}");
    }
}
