//! Messages of an interval: their number and sizes by a budget, and their rounds.

use std::time::Duration;

use loggap_core::measure::{Experiment, Quantity, Sample};
use loggap_core::model::Curve;
use loggap_core::stats::{SequentialDetector, Sorted};
use loggap_core::units::{Picos, SignedPicos};

use super::super::rounds::Rounds;
use super::super::{failed, round_trip};
use super::WatchOptions;
use crate::output::number;
use crate::terminal::CliError;

/// Size of the short message, unless an assertion names another, bytes.
const SHORT: u32 = 8;
/// Longest message of a train that is chosen here, bytes.
pub(super) const LONGEST: u32 = 64 << 10;
/// Shortest message of a train that is chosen here, bytes: below, the bandwidth hardly matters.
const SHORTEST: u32 = 256;
/// Fewest and most messages of a train.
const MESSAGES: std::ops::RangeInclusive<u32> = 4..=32;
/// Messages of a train for which their size is chosen.
const USUAL_MESSAGES: f64 = 8.0;
/// Trains of an interval that count, and short round trips.
const TRAINS: usize = 5;
const ROUND_TRIPS: usize = 9;
/// Headers of a message, bytes, and control frames of a connection: hello, announcements, close.
const HEADERS: u64 = 64;
const FRAMES: u64 = 3_072;
/// Messages of a train that measures the rate.
const MESSAGES_OF_RATE: u32 = 16;

/// Messages of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Traffic {
    /// Size of the short round trips, bytes.
    pub(super) short: u32,
    /// Size of the messages of a train, bytes.
    pub(super) size: u32,
    /// Messages of a train.
    pub(super) messages: u32,
    /// Time between measurements: longer than asked for where the budget is too small.
    pub(super) interval: Duration,
    /// Rate of the link when watching began, bytes a second.
    pub(super) rate: f64,
    /// Part of the rate with which trains are as long as those that showed it.
    enough: f64,
}

impl Traffic {
    /// Traffic within the budget on a link of `rate` bytes a second, with messages of up to
    /// `longest` bytes.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to small ranges"
    )]
    pub(super) fn of(options: &WatchOptions, rate: f64, longest: u32) -> Self {
        let short = options.asserted(Curve::HalfRtt).unwrap_or(SHORT);
        let trains = TRAINS as f64 + 1.0;
        let fixed = (FRAMES + (ROUND_TRIPS as u64 + 1) * (u64::from(short) + HEADERS)) as f64;
        let allowed = options.budget * rate;
        let train = (allowed * options.interval.as_secs_f64() - fixed) / trains;
        let chosen = || {
            let usual = (train / (USUAL_MESSAGES + 1.0)).clamp(1.0, f64::from(LONGEST)) as u32;
            (1 << usual.ilog2()).clamp(SHORTEST.min(longest), longest)
        };
        let size = options.asserted(Curve::Gap).unwrap_or_else(chosen);
        let message = (u64::from(size) + HEADERS) as f64;
        let messages = ((train / message) as u32).saturating_sub(1);
        let messages = messages.clamp(*MESSAGES.start(), *MESSAGES.end());
        let bytes = fixed + trains * (f64::from(messages) + 1.0) * message;
        let needed = Duration::try_from_secs_f64(bytes / allowed).unwrap_or(Duration::MAX);
        let of_rate = f64::from(MESSAGES_OF_RATE + 2) * (u64::from(longest) + HEADERS) as f64;
        let enough = (fixed + trains * of_rate) / rate / options.interval.as_secs_f64();
        Self { short, size, messages, interval: options.interval.max(needed), rate, enough }
    }

    /// Says that trains with a gap of `gap_s` pass faster than the link: they fit into a burst that
    /// it lets through.
    pub(super) fn burst(&self, gap_s: f64) -> Option<String> {
        let rate = f64::from(self.size) / gap_s;
        (rate > 2.0 * self.rate).then(|| {
            format!(
                "trains of {} pass at {} on a link of {}: a burst is let through, and the bandwidth \
                 is not watched; --budget {}%",
                number::size(u64::from(self.size) * u64::from(self.messages)),
                number::in_units(rate, number::BYTE_RATE),
                number::in_units(self.rate, number::BYTE_RATE),
                (self.enough * 100.0).ceil().min(99.0)
            )
        })
    }

    const fn train(&self) -> Experiment {
        train(self.size, self.messages)
    }
}

const fn train(size: u32, messages: u32) -> Experiment {
    Experiment { quantity: Quantity::Gap, messages, delay: Picos::ZERO, size }
}

/// Medians of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Values {
    pub(super) half_rtt: Option<SignedPicos>,
    pub(super) gap: Option<SignedPicos>,
    pub(super) lost_rounds: u64,
}

impl Values {
    /// Measures over an open session: a round trip and a train to warm up, and those that count.
    pub(super) fn measure(session: &mut dyn Rounds, traffic: &Traffic) -> Result<Self, CliError> {
        let short = [round_trip(traffic.short); ROUND_TRIPS + 1];
        let pair = [traffic.train(), round_trip(traffic.size)];
        let trips = session.run(&short).map_err(failed)?;
        // The first train widens windows and empties buckets of tokens.
        let warm_up = session.run(&pair).map_err(failed)?;
        let samples = session.run(&[pair; TRAINS].concat()).map_err(failed)?;
        let arrived = trips.len() + warm_up.len() + samples.len();
        let asked = short.len() + pair.len() * (TRAINS + 1);
        let half = |sample: &Sample| SignedPicos(signed(sample.elapsed) / 2);
        let mut halves: Vec<_> = trips.iter().skip(1).map(half).collect();
        Ok(Self {
            half_rtt: Sorted::new(&mut halves).median(),
            gap: gap(&samples, traffic.train()),
            lost_rounds: asked.saturating_sub(arrived) as u64,
        })
    }

    pub(super) fn of(&self, curve: Curve) -> Option<SignedPicos> {
        match curve {
            Curve::HalfRtt => self.half_rtt,
            Curve::Gap => self.gap,
            Curve::SendOverhead | Curve::RecvOverhead => None,
        }
    }
}

fn signed(time: Picos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// Gap from the medians of trains and round trips: (PRTT(n,0,s) − PRTT(1,0,s))/(n − 1). `None` if
/// either were lost, or trains take no longer.
fn gap(samples: &[Sample], train: Experiment) -> Option<SignedPicos> {
    let median = |quantity| {
        let of_kind = samples.iter().filter(|sample| sample.experiment.quantity == quantity);
        let mut elapsed: Vec<_> = of_kind.map(|sample| sample.elapsed).collect();
        Sorted::new(&mut elapsed).median().map(signed)
    };
    let beyond = median(Quantity::Gap)? - median(Quantity::RoundTrip)?;
    let each = beyond / i64::from(train.messages.max(2) - 1);
    (each > 0).then_some(SignedPicos(each))
}

/// Rate of the link in bytes a second, and the longest message of which trains arrive: messages
/// grow while the rate does, as far as trains stay short.
pub(super) fn rate(session: &mut dyn Rounds, longest: u32) -> Result<(f64, u32), CliError> {
    const FIRST: u32 = 1 << 10;
    const ROUNDS: usize = 3;
    const LONG: Picos = Picos(20_000_000_000);
    let mut found: Option<(f64, u32)> = None;
    let mut size = FIRST.min(longest);
    loop {
        let train = train(size, MESSAGES_OF_RATE);
        let samples = session.run(&[[round_trip(size), train]; ROUNDS].concat()).map_err(failed)?;
        let Some(gap) = gap(&samples, train) else { break };
        let rate = f64::from(size) / gap.seconds();
        let grows = found.is_none_or(|(before, _)| rate > 1.2 * before);
        // The last one: short trains may fit into a token bucket.
        found = Some((rate, size));
        let is_short = samples.iter().all(|sample| sample.elapsed < LONG);
        if !grows || !is_short || size >= longest {
            break;
        }
        size = size.saturating_mul(4).min(longest);
    }
    found.ok_or_else(|| CliError::failed(format_args!("no train of messages of {size} B arrives")))
}

/// Traffic, and time until changes are reported, in words.
pub(super) fn describe(traffic: &Traffic, options: &WatchOptions) -> String {
    let Traffic { size, messages, interval, rate, .. } = *traffic;
    let seconds = interval.as_secs_f64();
    let time = |intervals: f64| number::in_units(intervals * seconds, number::TIME);
    let longer = if interval > options.interval { ", so long by the budget" } else { "" };
    format!(
        "link of {}: {} trains of {messages} messages of {} every {}{longer}; changes are told from {} on",
        number::in_units(rate, number::BYTE_RATE),
        TRAINS + 1,
        number::size(size.into()),
        time(1.0),
        time(SequentialDetector::WARM_UP as f64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seconds: u64) -> WatchOptions {
        WatchOptions {
            budget: 0.001,
            interval: Duration::from_secs(seconds),
            time: None,
            assertions: Vec::new(),
            hold: Duration::ZERO,
        }
    }

    /// Bytes a second of the traffic in one direction.
    fn used(traffic: &Traffic) -> f64 {
        let trains = 6.0 * f64::from(traffic.messages + 1) * f64::from(traffic.size + 64);
        (trains + FRAMES as f64 + 10.0 * 72.0) / traffic.interval.as_secs_f64()
    }

    #[test]
    fn traffic_keeps_the_budget_and_intervals_grow_on_slow_links() {
        for megabits in [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5] {
            let rate = megabits * 1e6 / 8.0;
            let traffic = Traffic::of(&options(5), rate, LONGEST);
            assert!(used(&traffic) <= 0.001_001 * rate, "{megabits} Mb/s: {traffic:?}");
            assert_eq!(traffic.interval > Duration::from_secs(5), megabits < 15.0, "{traffic:?}");
        }
        let gigabit = Traffic::of(&options(5), 125e6, LONGEST);
        assert_eq!((gigabit.size, gigabit.messages, gigabit.short), (8 << 10, 11, 8));
        assert_eq!(Traffic::of(&options(5), 125e6, 1_400).size, 1_400);
        let text = describe(&gigabit, &options(5));
        assert!(text.contains("every 5.00 s; changes are told from 120 s on"), "{text}");
    }

    #[test]
    fn a_train_within_a_burst_is_told_with_a_budget_that_exceeds_it() {
        // 50 Mb/s, which trains of 16 messages of 4 KiB showed.
        let traffic = Traffic::of(&options(5), 6.25e6, 4 << 10);
        assert_eq!((traffic.size, traffic.burst(256.0 / 12e6)), (256, None));
        let text = traffic.burst(256.0 / 46e6).unwrap();
        assert!(text.contains("pass at 46.0 MB/s on a link of 6.25 MB/s: a burst"), "{text}");
        assert!(text.ends_with("--budget 2%"), "{text}");
        let larger = WatchOptions { budget: 0.02, ..options(5) };
        let Traffic { size, messages, .. } = Traffic::of(&larger, 6.25e6, 4 << 10);
        assert!(size * messages >= 16 * (4 << 10), "{messages} of {size}");
    }
}
