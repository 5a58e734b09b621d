//! Parametrised `LogP`: Kielmann, Bal and Verstoep, "Fast Measurement of
//! `LogP` Parameters for Message Passing Platforms", IPDPS 2000, and the README of `LogP`/MPI.
//!
//! - `g(0)`: [`FIRST_FLOOD`] messages in a row, then one acknowledgement, doubled until the gap
//!   changes by less than 1%, or than the intervals of both allow: the time beyond the round trip, over the messages after the first.
//! - `o_s(m)` is the send call of a message of `m` bytes that is answered by one byte, and `RTT(m)`
//!   the time until that answer.
//! - `o_r(m)` is the receive call for a reply of `m` bytes that arrived while the sender was idle
//!   for longer than the round trip.
//! - `g(m) = RTT(m) − RTT(0) + g(0)`, or by a flood of its own for every `m`.
//! - `L = (RTT(0) − 2·g(0))/2`.
//!
//! Sizes are 0 and powers of two. The largest grows while `g` departs from its extrapolation, and a
//! size where `o_s`, `o_r` or `g` departs from the line through the two smaller ones gets another
//! one halfway below it. Size 0 is one byte, since a stream carries no empty message.

use crate::measure::methods::probe::{FEWEST, Probe, ProbeKind, ProbeRow, Spread};
use crate::model::Estimate;
use crate::number::larger;
use crate::units::{Picos, SignedPicos};

/// Messages of the first flood.
pub const FIRST_FLOOD: u32 = 200;
/// Messages of the longest flood.
pub const LONGEST_FLOOD: u32 = 3_200;
/// Relative change of `g(0)` that ends the doubling.
const STABLE: f64 = 0.01;
/// Most growth of the largest size, a factor.
const GROWTH: u32 = 8;
/// Sizes closer to each other than this are not refined, bytes.
const CLOSE: f64 = 32.0;
/// Most sizes that refinement leads to.
const MOST_SIZES: usize = 64;
/// Half intervals that a difference has to exceed to be none of noise.
const CERTAIN: f64 = 2.0;
/// Idle time before a receive over the round trip of its size.
const IDLE: u64 = 2;

/// Options of pLogP.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlogpOptions {
    /// Half of an interval over its value that ends the repetitions at a size, `eps`.
    pub eps: f64,
    /// Fewest repetitions at a size.
    pub min_its: usize,
    /// Most repetitions at a size above 64 KiB; twice as many up to there, four times up to 1 KiB.
    pub max_its: usize,
    /// Relative difference from the extrapolation that is refined.
    pub max_diff: f64,
    /// True if `g(m)` is measured by a flood at each size.
    pub flood: bool,
    /// True if sizes are added: between those given and, up to `longest`, beyond them.
    pub adapt: bool,
    /// Longest message, bytes.
    pub longest: u32,
}

impl Default for PlogpOptions {
    /// 3%, 6 to 18 repetitions, 20%, no floods, sizes of up to 1 MiB added.
    fn default() -> Self {
        Self {
            eps: 0.03,
            min_its: FEWEST,
            max_its: 18,
            max_diff: 0.2,
            flood: false,
            adapt: true,
            longest: 1 << 20,
        }
    }
}

impl PlogpOptions {
    /// Most repetitions of `probe`.
    #[must_use]
    pub fn most(&self, probe: &Probe) -> usize {
        let most = match (probe.kind, probe.messages, probe.size) {
            (ProbeKind::Flood, 2.., _) => self.fewest(probe),
            (_, _, ..=1_024) => 4 * self.max_its,
            (_, _, ..=65_536) => 2 * self.max_its,
            _ => self.max_its,
        };
        most.max(self.fewest(probe))
    }

    /// Fewest repetitions of `probe`.
    #[must_use]
    pub const fn fewest(&self, probe: &Probe) -> usize {
        match (probe.kind, probe.messages) {
            (ProbeKind::Flood, messages) if messages > SHORT_FLOOD => LONG_FLOODS,
            (ProbeKind::Flood, 2..) => FLOODS,
            _ => self.min_its,
        }
    }
}

/// Repetitions of a flood of up to this many messages, and of a longer one.
const FLOODS: usize = 5;
const SHORT_FLOOD: u32 = 800;
const LONG_FLOODS: usize = 3;

/// Parameters of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PlogpRow {
    /// Message size in bytes; 0 stands for an empty message.
    pub size: u32,
    /// Send overhead.
    pub send_overhead: Estimate<SignedPicos>,
    /// Receive overhead.
    pub recv_overhead: Estimate<SignedPicos>,
    /// Gap.
    pub gap: Estimate<SignedPicos>,
    /// Round trip with an empty reply.
    pub round_trip: Estimate<SignedPicos>,
}

/// Rows of all probes.
#[derive(Clone, Copy)]
struct Points<'r>(&'r [ProbeRow]);

/// Values of one size, in picoseconds.
#[derive(Clone, Copy)]
struct Values {
    size: u32,
    send: Spread,
    receive: Spread,
    gap: Spread,
    round_trip: Spread,
}

/// Message of the probes for `size`.
fn on_the_wire(size: u32) -> u32 {
    size.max(1)
}

fn flood(size: u32, messages: u32) -> Probe {
    Probe { size: on_the_wire(size), kind: ProbeKind::Flood, messages, delay: Picos::ZERO }
}

impl<'r> Points<'r> {
    fn find(self, size: u32, kind: ProbeKind, messages: u32) -> Option<&'r ProbeRow> {
        let size = on_the_wire(size);
        let is = |probe: &Probe| (probe.size, probe.kind, probe.messages) == (size, kind, messages);
        self.0.iter().find(|row| is(&row.probe))
    }

    fn round_trip(self, size: u32) -> Option<Spread> {
        Some(Spread::of(&self.find(size, ProbeKind::Flood, 1)?.whole))
    }

    /// Gap from a flood of `messages`.
    fn flood(self, size: u32, messages: u32) -> Option<Spread> {
        let row = self.find(size, ProbeKind::Flood, messages)?;
        let rest = Spread::of(&row.whole).minus(self.round_trip(size)?);
        Some(rest.times(1.0 / f64::from((messages - 1).max(1))))
    }

    /// Messages of the longest flood at `size`; 0 without a flood.
    fn last_flood(self, size: u32) -> u32 {
        let is = |probe: &Probe| {
            (probe.size, probe.kind) == (on_the_wire(size), ProbeKind::Flood) && probe.messages > 1
        };
        let floods = self.0.iter().filter(|row| is(&row.probe));
        floods.map(|row| row.probe.messages).max().unwrap_or(0)
    }

    /// True if the gaps of the last flood at `size` and of the one before differ by less than 1%, or
    /// than their intervals allow.
    fn is_stable(self, size: u32) -> bool {
        let last = self.last_flood(size);
        let both = self.flood(size, last).zip(self.flood(size, last / 2));
        both.is_some_and(|(one, before)| one.agrees(before, STABLE))
    }

    fn values(self, size: u32, options: &PlogpOptions) -> Option<Values> {
        let gap_of_zero = self.flood(0, self.last_flood(0))?;
        let round_trip = self.round_trip(size)?;
        let gap = if options.flood && size > 0 {
            self.flood(size, self.last_flood(size))?
        } else {
            round_trip.minus(self.round_trip(0)?).plus(gap_of_zero)
        };
        let send = Spread::of(&self.find(size, ProbeKind::Flood, 1)?.time);
        let receive = Spread::of(&self.find(size, ProbeKind::Receive, 1)?.time);
        // The same message gives both round trips of sizes 0 and 1.
        let gap = if on_the_wire(size) == 1 { gap_of_zero } else { gap };
        Some(Values { size, send, receive, gap, round_trip })
    }

    /// Next size above `size` whose overheads are known.
    fn size_after(self, size: u32) -> Option<u32> {
        let received = self.0.iter().filter(|row| row.probe.kind == ProbeKind::Receive);
        received.map(|row| row.probe.size).filter(|other| *other > size).min()
    }

    /// Known sizes from `first` on, ascending. One byte is also measured for size 0.
    fn sizes(self, first: u32) -> impl Iterator<Item = u32> + use<'r> {
        let begin = self.size_after(first.saturating_sub(1));
        core::iter::successors(begin, move |size| self.size_after(*size))
    }
}

impl Values {
    /// Largest relative difference of this size's values from the line through those of two smaller
    /// sizes; 0 where the intervals explain it.
    fn departs(&self, one: &Self, two: &Self, quantities: &[fn(&Self) -> Spread]) -> f64 {
        let ratio = f64::from(self.size - two.size) / f64::from((two.size - one.size).max(1));
        let share = |of: &fn(&Self) -> Spread| {
            let expected = of(two).plus(of(two).minus(of(one)).times(ratio));
            let difference = of(self).minus(expected);
            let is_noise = difference.value.abs() <= CERTAIN * difference.half;
            if is_noise {
                0.0
            } else {
                (difference.value / larger(expected.value.abs(), 1.0)).abs()
            }
        };
        quantities.iter().map(share).fold(0.0, larger)
    }
}

/// Tells which probes pLogP needs beyond `rows`, the medians so far, each with as many repetitions
/// as it takes, and passes them to `add`, some of them twice. `sizes` are ascending, without 0.
pub fn missing_probes(
    sizes: &[u32],
    rows: &[ProbeRow],
    options: &PlogpOptions,
    mut add: impl FnMut(Probe),
) {
    let points = Points(rows);
    let mut ask = |size: u32| {
        let Some(round_trip) = points.round_trip(size) else {
            add(flood(size, 1));
            return;
        };
        if points.find(size, ProbeKind::Receive, 1).is_none() {
            let idle = SignedPicos::from_f64(round_trip.value).0.unsigned_abs();
            let delay = Picos(idle.saturating_mul(IDLE).max(1));
            let size = on_the_wire(size);
            add(Probe { size, kind: ProbeKind::Receive, messages: 1, delay });
        }
        let before = points.last_flood(size);
        let is_flooded = size == 0 || options.flood && size > 1;
        if is_flooded && before < LONGEST_FLOOD && !points.is_stable(size) {
            add(flood(size, if before == 0 { FIRST_FLOOD } else { 2 * before }));
        }
    };
    ask(0);
    sizes.iter().copied().for_each(&mut ask);
    let (true, Some(&first), Some(&last)) = (options.adapt, sizes.first(), sizes.last()) else {
        return;
    };
    let is_known = |size| points.values(size, options).is_some();
    if !is_known(0) || !sizes.iter().copied().all(is_known) {
        return;
    }
    let is_grown = |size: &u32| size.is_multiple_of(last) && (size / last).is_power_of_two();
    let largest = points.sizes(last).filter(is_grown).last().unwrap_or(last);
    let grown = largest.saturating_mul(2);
    if grown <= last.saturating_mul(GROWTH).min(options.longest)
        && departs_at(points, largest, options)
    {
        return ask(grown);
    }
    refine(points, first, options, ask);
}

/// True if `g(size)` departs by more than `eps` from the line through the two halves of it.
fn departs_at(points: Points<'_>, size: u32, options: &PlogpOptions) -> bool {
    let values = |size| points.values(size, options);
    let three = values(size).zip(values(size / 2)).zip(values(size / 4));
    three.is_some_and(|((largest, two), one)| {
        largest.departs(&one, &two, &[|values| values.gap]) > options.eps
    })
}

/// Asks for the sizes halfway to those that depart from the line through their lower neighbours.
fn refine(points: Points<'_>, first: u32, options: &PlogpOptions, mut ask: impl FnMut(u32)) {
    let quantities: [fn(&Values) -> Spread; 3] =
        [|values| values.send, |values| values.receive, |values| values.gap];
    let mut left = MOST_SIZES.saturating_sub(points.sizes(first).count());
    let mut known = points.sizes(first).filter_map(|size| points.values(size, options));
    let (Some(mut one), Some(mut two)) = (known.next(), known.next()) else { return };
    for values in known {
        let distance = f64::from(values.size - two.size);
        let middle = two.size.midpoint(values.size) / 4 * 4;
        if distance > larger(CLOSE, options.eps * f64::from(two.size))
            && middle > two.size
            && left > 0
            && values.departs(&one, &two, &quantities) > options.max_diff
        {
            left -= 1;
            ask(middle);
        }
        (one, two) = (two, values);
    }
}

/// Passes the parameters of size 0 and of all known ones from `first` on to `each`, ascending.
pub fn plogp_rows(
    first: u32,
    rows: &[ProbeRow],
    options: &PlogpOptions,
    mut each: impl FnMut(PlogpRow),
) {
    let points = Points(rows);
    let estimate = |spread: Spread| spread.estimate(options.eps);
    for size in core::iter::once(0).chain(points.sizes(first)) {
        let Some(values) = points.values(size, options) else { continue };
        each(PlogpRow {
            size,
            send_overhead: estimate(values.send),
            recv_overhead: estimate(values.receive),
            gap: estimate(values.gap),
            round_trip: estimate(values.round_trip),
        });
    }
}

/// Latency `(RTT(0) − 2·g(0))/2` of the row of size 0, negative where the gap hides it.
#[must_use]
pub fn plogp_latency(zero: &PlogpRow, options: &PlogpOptions) -> Estimate<SignedPicos> {
    let half_trip = Spread::of(&zero.round_trip).times(0.5);
    half_trip.minus(Spread::of(&zero.gap)).estimate(options.eps)
}

/// True if the last flood for `g(0)` confirms the one before it.
#[must_use]
pub fn is_gap_stable(rows: &[ProbeRow]) -> bool {
    Points(rows).is_stable(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::methods::tests::measured;
    use crate::measure::{Disturbance, Simulated, Truth};
    use crate::units::PerByte;
    use std::vec::Vec;

    const TRUTH: Truth = Truth {
        first_size: 1,
        latency: Picos(5_000_000),
        send_overhead: Picos(700_000),
        send_overhead_per_byte: PerByte(30 << 16),
        recv_overhead: Picos(900_000),
        recv_overhead_per_byte: PerByte(20 << 16),
        gap: Picos(2_500_000),
        gap_per_byte: PerByte(80 << 16),
    };

    const OPTIONS: PlogpOptions = PlogpOptions {
        eps: 0.03,
        min_its: 6,
        max_its: 18,
        max_diff: 0.2,
        flood: false,
        adapt: true,
        longest: 65_536,
    };

    /// Results with the powers of two from `first` to `last`.
    fn rows(
        truths: &[Truth],
        [first, last]: [u32; 2],
        options: &PlogpOptions,
    ) -> (Vec<PlogpRow>, Vec<ProbeRow>) {
        let sizes: Vec<_> = core::iter::successors(Some(first), |size| Some(2 * size))
            .take_while(|size| *size <= last)
            .collect();
        let simulated = Simulated::new(truths, Disturbance::default(), Picos(20_000));
        let measured =
            measured(simulated, 1, |rows, add| missing_probes(&sizes, rows, options, add));
        let mut rows = Vec::new();
        plogp_rows(first, &measured, options, |row| rows.push(row));
        (rows, measured)
    }

    #[test]
    fn the_overheads_and_the_gap_of_a_known_link_are_found_at_every_size() {
        let (rows, measured) = rows(&[TRUTH], [1, 16_384], &OPTIONS);
        let sizes: Vec<_> = rows.iter().map(|row| row.size).collect();
        let powers = (0..=14).map(|exponent| 1 << exponent);
        assert_eq!(sizes, core::iter::once(0).chain(powers).collect::<Vec<_>>());
        for row in &rows {
            let w = i64::from(row.size.max(1)) - 1;
            assert_eq!(row.send_overhead.value.0, 700_000 + 30 * w, "{row:?}");
            assert_eq!(row.recv_overhead.value.0, 900_000 + 20 * w, "{row:?}");
            // RTT(m) − RTT(0) includes the slopes of the overheads besides G, by the method's
            // definition.
            let gap = 2_500_000 + (80 + 30 + 20) * w;
            assert!(row.gap.value.0.abs_diff(gap) * 100 <= gap.unsigned_abs(), "{row:?}");
        }
        let latency = plogp_latency(&rows[0], &OPTIONS).value.0;
        let half_trip = 5_000_000 + 700_000 + 900_000;
        assert!(latency.abs_diff(half_trip - 2_500_000) * 50 < 4_100_000, "{latency}");
        assert!(is_gap_stable(&measured));
    }

    #[test]
    fn noise_of_a_link_widens_intervals_and_adds_no_sizes() {
        let noise = Disturbance { seed: 3, noise: 0.1, ..Disturbance::default() };
        let sizes: Vec<_> = (0..=14).map(|exponent| 1 << exponent).collect();
        let truths = [TRUTH];
        let simulated = Simulated::new(&truths, noise, Picos(20_000));
        let measured =
            measured(simulated, 30, |rows, add| missing_probes(&sizes, rows, &OPTIONS, add));
        let mut rows = Vec::new();
        plogp_rows(1, &measured, &OPTIONS, |row| rows.push(row));
        assert_eq!(rows.len(), sizes.len() + 1, "size 0, and no other was added");
        for row in &rows {
            let truth = 700_000 + 30 * (i64::from(row.size.max(1)) - 1);
            let Estimate { low, high, .. } = row.send_overhead;
            assert!(low < high, "{row:?}");
            assert!((low.0 - truth / 20..=high.0 + truth / 20).contains(&truth), "{row:?}");
        }
    }

    #[test]
    fn a_jump_is_refined_down_to_close_sizes_and_nothing_else_is() {
        let slow = Truth { first_size: 5_000, send_overhead: Picos(9_000_000), ..TRUTH };
        let (rows, _) = rows(&[TRUTH, slow], [1, 16_384], &OPTIONS);
        let sizes: Vec<_> = rows.iter().map(|row| row.size).collect();
        let between = sizes.iter().filter(|size| !size.is_power_of_two() && **size > 0);
        assert!(between.clone().all(|size| (4_096..16_384).contains(size)), "{sizes:?}");
        let below = sizes.iter().filter(|size| **size < 5_000).max().unwrap();
        let above = sizes.iter().find(|size| **size >= 5_000).unwrap();
        assert!(above - below <= 128 && between.clone().all(|size| size % 4 == 0), "{sizes:?}");
    }

    #[test]
    fn the_largest_size_grows_until_the_gap_is_what_is_expected_of_it() {
        let fast = Truth { first_size: 12_000, gap_per_byte: PerByte(20 << 16), ..TRUTH };
        let (found, _) = rows(&[TRUTH, fast], [1, 16_384], &OPTIONS);
        assert_eq!(found.last().map(|row| row.size), Some(65_536));
        let (found, _) =
            rows(&[TRUTH, fast], [1, 16_384], &PlogpOptions { longest: 20_000, ..OPTIONS });
        assert_eq!(found.last().map(|row| row.size), Some(16_384));
    }

    #[test]
    fn floods_measure_the_gap_of_every_size() {
        let options = PlogpOptions { flood: true, ..OPTIONS };
        let (rows, _) = rows(&[TRUTH], [256, 4_096], &options);
        assert_eq!(
            rows.iter().map(|row| row.size).collect::<Vec<_>>(),
            [0, 256, 512, 1_024, 2_048, 4_096]
        );
        for row in &rows[1..] {
            let gap = 2_500_000 + 80 * (i64::from(row.size) - 1);
            assert!(row.gap.value.0.abs_diff(gap) * 50 <= gap.unsigned_abs(), "{row:?}");
        }
    }
}
