//! Message rates from bursts: a row, and warnings about it.

use loggap_core::stats::{Measure, Sorted};
use loggap_core::units::Picos;
use serde::Serialize;

use super::Missing;
use super::bw::{BURSTS, BandwidthTest, LONGEST_BURST, SHORTEST_BURST};
use super::rounds::{Budget, Values};

/// Message rate at one size, over all connections and directions. Unknown values are `None`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Rate {
    pub(crate) size_bytes: u32,
    pub(crate) messages: u64,
    /// Number of bursts that count, and messages per burst, connection and direction.
    pub(crate) bursts: u64,
    burst_messages: u32,
    /// Most messages in flight, over RDMA verbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u16>,
    /// Number of bursts in which a message was lost.
    pub(crate) lost: u64,
    /// True if single messages arrived.
    #[serde(skip)]
    has_single: bool,
    /// Time per message; `None` if a burst takes less than twice as long as a single message.
    gap_s: Option<f64>,
    /// Smallest median gap of successive bursts, at least [`STRETCH`] and a tenth of all.
    fastest_gap_s: Option<f64>,
    /// Variation between bursts: half the interquartile range of their gaps, divided by the median.
    /// `None` for fewer than four bursts.
    spread: Option<f64>,
    pub(crate) bandwidth_bytes_per_s: Option<f64>,
    pub(crate) peak_bytes_per_s: Option<f64>,
    pub(crate) messages_per_s: Option<f64>,
}

/// Messages in flight below which a warning is given.
const ENOUGH_UNDER_WAY: u32 = 8;
/// Duration, seconds, of bursts of several connections below which a warning is given.
const BRIEF_S: f64 = 1e-3;
/// Variation between bursts above which a warning is given.
const LARGE_SPREAD: f64 = 0.1;

/// Fewest successive bursts that make a peak: single bursts may be faster than the link, into a
/// buffer or a token bucket.
pub(crate) const STRETCH: usize = 5;

/// Median duration of the fastest sequence of successive bursts, of at least [`STRETCH`] and a
/// tenth of all. Sequences begin a tenth of their length apart, so that there are at most some
/// hundred.
fn fastest_stretch(elapsed: &[Picos]) -> Option<Picos> {
    let length = STRETCH.max(elapsed.len() / 10);
    let stretches = elapsed.windows(length).step_by((length / 10).max(1));
    stretches.map(|stretch| median(&mut stretch.to_vec())).min()
}

/// Median as of [`Sorted`], in linear time, of values that are not empty.
fn median(values: &mut [Picos]) -> Picos {
    let is_even = values.len().is_multiple_of(2);
    let (lower, &mut upper, _) = values.select_nth_unstable(values.len() / 2);
    let below = lower.iter().max().filter(|_| is_even);
    below.map_or(upper, |&below| below.halfway(upper))
}

impl Rate {
    /// Rate at `size_bytes` from the durations of `single` messages and of `bursts`.
    pub(super) fn of(
        plan: &BandwidthTest,
        size_bytes: u32,
        mut single: Values,
        mut bursts: Values,
    ) -> Self {
        let single = Sorted::new(&mut single.elapsed).median();
        let count = bursts.elapsed.len() as u64;
        let fastest = fastest_stretch(&bursts.elapsed);
        let sorted = Sorted::new(&mut bursts.elapsed);
        let others = plan.burst.saturating_sub(1).max(1) * plan.times();
        // A burst shorter than two single messages consists mostly of latency: the difference of
        // the two is then less than the variation of messages.
        let gap = |burst_took: Option<Picos>| {
            let whole = burst_took?.0;
            let more = whole.checked_sub(single?.0).filter(|more| *more >= whole.div_ceil(2))?;
            Some(Picos(more).seconds() / f64::from(others))
        };
        let (gap_s, fastest_gap_s) = (gap(sorted.median()), gap(fastest));
        let quartiles = (gap(sorted.quantile(1, 4)), gap(sorted.quantile(3, 4)));
        let spread = match (quartiles, gap_s) {
            ((Some(lower), Some(upper)), Some(gap)) if count >= 4 => {
                Some((upper - lower) / 2.0 / gap)
            }
            _ => None,
        };
        let bandwidth = |gap: Option<f64>| Some(f64::from(size_bytes) / gap?);
        Self {
            size_bytes,
            messages: count * u64::from(plan.burst) * u64::from(plan.times()),
            bursts: count,
            burst_messages: plan.burst,
            depth: None,
            lost: bursts.lost,
            has_single: single.is_some(),
            gap_s,
            fastest_gap_s,
            spread,
            bandwidth_bytes_per_s: bandwidth(gap_s),
            peak_bytes_per_s: bandwidth(fastest_gap_s),
            messages_per_s: gap_s.map(|gap| 1.0 / gap),
        }
    }

    pub(super) fn with_depth(self, depth: Option<u16>) -> Self {
        Self { depth, ..self }
    }

    /// Kind of the lost rounds, if all bursts were lost.
    pub(super) fn missing(&self) -> Option<Missing> {
        let lost = if self.has_single { Missing::Bursts } else { Missing::Messages };
        (self.bursts == 0).then_some(lost)
    }
}

/// Warnings about doubtful numbers of the table.
pub(crate) fn warnings(plan: &BandwidthTest, results: &[Rate]) -> Vec<String> {
    let mut warnings = Vec::new();
    let short = plan.burst;
    if short < SHORTEST_BURST {
        let enough = SHORTEST_BURST * BURSTS;
        warnings.push(format!(
            "bursts of {short} messages are too short to trust; -n {enough} makes {BURSTS} of {SHORTEST_BURST}"
        ));
    }
    if results.iter().any(|rate| rate.gap_s.is_some() && rate.bursts < STRETCH as u64) {
        let more = match plan.budget {
            Budget::For(_) => "a longer -D",
            Budget::Times(_) | Budget::Within(..) => "larger -n",
        };
        warnings.push(format!("no peak (-) of fewer than {STRETCH} bursts; {more} makes more"));
    }
    let has_stretch = |rate: &&Rate| rate.bursts >= STRETCH as u64;
    let is_unknown = |rate: &&Rate| {
        rate.gap_s.is_none() && rate.bursts > 0 || rate.fastest_gap_s.is_none() && has_stretch(rate)
    };
    let unknown = results.iter().find(is_unknown);
    if let Some(Rate { size_bytes, .. }) = unknown {
        let what = if results.iter().any(|rate| rate.gap_s.is_some()) {
            "the fastest burst"
        } else {
            "bursts"
        };
        warnings.push(format!(
            "no rate (-) where a burst takes less than twice as long as a single message, as {what} of {size_bytes} B; larger -n makes them longer, up to {LONGEST_BURST} messages"
        ));
    }
    let least = results.iter().filter_map(|rate| Some((rate.depth?, rate.size_bytes))).min();
    if let Some((depth, size)) = least.filter(|(depth, _)| u32::from(*depth) < ENOUGH_UNDER_WAY) {
        warnings.push(format!(
            "{depth} messages of {size} B are under way at most: --depth, or the memory that both ends may lock (`ulimit -l`)"
        ));
    }
    let brief = results.iter().find(|rate| {
        let took = rate.gap_s.map(|gap| gap * f64::from(plan.burst * plan.times()));
        plan.connections > 1 && took.is_some_and(|took| took < BRIEF_S)
    });
    if let Some(rate) = brief {
        warnings.push(format!(
            "bursts of {} B last less than 1 ms, as long as connections may begin one after the other, which counts: the rate may be too low; larger -n makes them longer, up to {LONGEST_BURST} messages",
            rate.size_bytes
        ));
    }
    warnings.extend(differing(plan, results));
    warnings
}

/// Warning about a large variation between bursts.
fn differing(plan: &BandwidthTest, results: &[Rate]) -> Option<String> {
    let differing = results.iter().filter_map(|rate| Some((rate.spread?, rate.size_bytes)));
    let differing: Vec<_> = differing.filter(|(spread, _)| *spread > LARGE_SPREAD).collect();
    let (spread, size) =
        differing.iter().copied().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let percent = spread * 100.0;
    let others = match differing.len() {
        1 => String::new(),
        many => format!(", the most of {many} such sizes"),
    };
    let longer = match plan.budget {
        Budget::Times(_) => "-D measures for longer",
        Budget::For(_) | Budget::Within(..) => "a longer -D may even that out",
    };
    Some(format!("bursts differ by {percent:.0}% at {size} B{others}; {longer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(micros: &[u64]) -> Values {
        Values {
            elapsed: micros.iter().map(|us| Picos(us * 1_000_000)).collect(),
            ..Values::default()
        }
    }

    fn plan(burst: u32, connections: u32) -> BandwidthTest {
        let budget = Budget::Times(BURSTS);
        BandwidthTest { burst, budget, warmup: 0, connections, both_ways: false }
    }

    #[test]
    fn a_gap_is_what_the_others_of_a_burst_add() {
        let rate = Rate::of(&plan(11, 1), 1_000, values(&[20, 22, 18]), values(&[120, 130, 110]));
        assert!((rate.gap_s.unwrap() - 10e-6).abs() < 1e-12, "{rate:?}");
        assert_eq!((rate.messages, rate.bursts, rate.spread), (33, 3, None));
        assert_eq!(rate.peak_bytes_per_s, None);
    }

    #[test]
    fn the_fastest_stretch_of_a_million_bursts_is_found_at_once() {
        // 100,000 bursts of 1 us among others of 2 us; windows begin 10,000 bursts apart.
        let of = |at: usize| Picos(if (400_000..500_000).contains(&at) { 1 } else { 2 });
        let bursts: Vec<Picos> = (0..1_000_000).map(of).collect();
        assert_eq!(fastest_stretch(&bursts), Some(Picos(1)));
        assert_eq!(fastest_stretch(&bursts[..4]), None);
        assert_eq!(median(&mut [4, 1, 9, 2].map(Picos)), Picos(3));
        assert_eq!(median(&mut [4, 9, 2].map(Picos)), Picos(4));
    }

    #[test]
    fn the_gap_of_all_is_shared_by_connections_and_directions() {
        for (connections, both_ways, share) in [(1, true, 2_u32), (4, false, 4), (3, true, 6)] {
            let plan = BandwidthTest { both_ways, ..plan(11, connections) };
            let rate = Rate::of(&plan, 1_000, values(&[20]), values(&[120]));
            let gap = 10e-6 / f64::from(share);
            assert!((rate.gap_s.unwrap() - gap).abs() < 1e-12, "{rate:?}");
            assert_eq!(rate.messages, 11 * u64::from(share));
        }
    }

    #[test]
    fn a_burst_that_takes_no_longer_than_a_message_has_no_rate() {
        let rate = Rate::of(&plan(2, 1), 1, values(&[20]), values(&[20]));
        assert_eq!((rate.gap_s, rate.messages_per_s), (None, None));
        let said = warnings(&plan(100, 1), &[rate]);
        assert!(
            said[0].starts_with("no rate (-)") && said[0].contains("bursts of 1 B"),
            "{said:?}"
        );
    }

    #[test]
    fn a_peak_that_is_mostly_a_single_message_is_none() {
        // Minus the single message's 20 us, 39, 59 and 41 us leave 19, 39 and 21 us.
        for (fastest, is_known) in [(39, false), (41, true)] {
            let took = [[59; 6], [fastest; 6], [59; 6]].concat();
            let rate = Rate::of(&plan(100, 1), 8, values(&[20]), values(&took));
            assert_eq!((rate.gap_s.is_some(), rate.peak_bytes_per_s.is_some()), (true, is_known));
            let said = warnings(&plan(100, 1), &[rate]).join(" ");
            assert_eq!(said.contains("the fastest burst of 8 B"), !is_known, "{said}");
        }
    }

    #[test]
    fn a_peak_lasts_for_several_bursts_and_is_no_less_than_the_average() {
        let peak = |took: &[u64]| {
            let rate = Rate::of(&plan(11, 1), 1_000, values(&[0]), values(took));
            rate.peak_bytes_per_s.map(|peak| (peak / rate.bandwidth_bytes_per_s.unwrap()).round())
        };
        // Two single fast bursts of twenty are no peak; six fast ones in a row are.
        let mut took = [100; 20];
        (took[3], took[11]) = (20, 20);
        assert_eq!(peak(&took), Some(1.0));
        took[12..18].fill(50);
        assert_eq!(peak(&took), Some(2.0));
        assert_eq!(peak(&[10, 10, 100, 100, 10, 10, 100, 100, 10, 10]), Some(1.0));
        assert_eq!(peak(&[100, 20, 100, 100]), None);
        let few = Rate::of(&plan(100, 1), 8, values(&[20]), values(&[3_000, 3_000]));
        let said = warnings(&plan(100, 1), &[few]);
        assert!(matches!(&said[..], [said] if said.contains("no peak (-)")), "{said:?}");
        assert!(said[0].ends_with("larger -n makes more"), "{said:?}");
        let budget = Budget::For(std::time::Duration::from_secs(1));
        let said = warnings(&BandwidthTest { budget, ..plan(100, 1) }, &[few]);
        assert!(said[0].ends_with("a longer -D makes more"), "{said:?}");
    }

    #[test]
    fn bursts_that_are_lost_are_told_from_messages_that_are() {
        let lost = || Values { lost: 10, ..Values::default() };
        let missing = |single, bursts| Rate::of(&plan(100, 1), 8, single, bursts).missing();
        assert_eq!(missing(values(&[20]), lost()), Some(Missing::Bursts));
        assert_eq!(missing(lost(), lost()), Some(Missing::Messages));
        assert_eq!(missing(values(&[20]), values(&[3_000])), None);
    }

    #[test]
    fn short_bursts_are_pointed_out() {
        let said = warnings(&plan(10, 1), &[]);
        assert!(said[0].contains("bursts of 10 messages"), "{said:?}");
    }

    #[test]
    fn bursts_that_differ_are_pointed_out() {
        let plan = plan(101, 1);
        let warnings = |plan: &BandwidthTest, rates: &[Rate]| -> Vec<String> {
            let all = warnings(plan, rates);
            all.into_iter().filter(|said| !said.starts_with("no peak")).collect()
        };
        // Median gap 10 µs, quartiles 8 and 12 µs.
        let differing = Rate::of(&plan, 8, values(&[20]), values(&[820, 1_020, 1_020, 1_220]));
        assert!((differing.spread.unwrap() - 0.1).abs() < 1e-9, "{differing:?}");
        let worse = Rate::of(&plan, 64, values(&[20]), values(&[520, 520, 1_020, 1_520]));
        let alike = Rate::of(&plan, 8, values(&[20]), values(&[1_000, 1_020, 1_020, 1_030]));
        assert_eq!(warnings(&plan, &[alike]), Vec::<String>::new());
        let said = warnings(&plan, &[alike, worse, alike]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("bursts differ by ") && said[0].contains("64 B"), "{said:?}");
        assert!(said[0].ends_with("-D measures for longer"), "{said:?}");
        let budget = Budget::For(std::time::Duration::from_secs(1));
        let said = warnings(&BandwidthTest { budget, ..plan }, &[worse]);
        assert!(said[0].ends_with("a longer -D may even that out"), "{said:?}");
    }
}
