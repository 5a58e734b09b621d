//! The `LogP` signature: Culler, Liu, Martin and Yoshikawa, "`LogP`
//! Performance Assessment of Fast Network Interfaces", IEEE Micro 1996, section 3.
//!
//! `M` requests are issued with a computation of `Δ` after each, and `T(M, Δ)` is measured. Over
//! `M`, the cost of a message `c = T(M, Δ)/M` goes through three regimes: *send-only* until the
//! first reply arrives or the capacity is reached, *transition*, and *steady state*.
//!
//! - `o_s` is the cost in the send-only regime at `Δ` = 0.
//! - `g(Δ)` is the slope `(T(M, Δ) − T(M/2, Δ))/(M/2)` once it agrees with the one before within 5%;
//!   `g` = `g(0)` is the gap of request and reply, not that of messages in one direction.
//! - `o_r = g(Δ) − Δ − o_s` for `Δ` beyond the idle time `g − o_s − o_r`, where `g(Δ)` grows as `Δ`.
//! - `L = RTT/2 − o_s − o_r`.
//!
//! Of bulk transfers (section 4) the requests are stores of `n` bytes with a short reply, so that
//! `o_s(n)` and `g(n)` are those of `n` bytes, and `T(n)` is the time until the reply.
//!
//! At most `window` requests are unanswered: twice as many as the sender can issue within a round
//! trip, so that the window hides no gap (`RTT/window < o_s`), or fewer where a link's buffers would
//! not hold them.

use crate::measure::methods::probe::{FEWEST, Probe, ProbeKind, ProbeRow, Spread};
use crate::model::{Estimate, Mark};
use crate::number::larger;
use crate::units::{Picos, SignedPicos};

/// Most delays `Δ` besides 0.
pub const MAX_DELTAS: usize = 16;
/// Largest `M`; a curve that is not flat by then has no gap.
pub const MOST_IN_FLIGHT: u32 = 1 << 16;

/// Relative difference of slopes up to which a curve is flat.
const FLAT: f64 = 0.05;
/// Unanswered requests by which runs in a steady state differ.
const UNEVEN: u32 = 2;
/// Largest difference of `dg(Δ)/dΔ` from 1.
const SLOPE: f64 = 0.02;
/// Fewest `Δ` beyond the idle time that give `o_r`.
const FEWEST_DELTAS: usize = 3;
/// Factor of `o_s` from which on a message's cost shows that the capacity is reached.
const STALLED: f64 = 2.0;
/// Longest run, 50 ms or eight round trips; curves end there.
const LONGEST_RUN: f64 = 5e10;
/// Largest ratio of `M` that is asked for before its runs' durations are known.
const STEP: u32 = 8;
/// Bytes that a message takes in a socket's buffer besides its own.
const BOOKKEEPING: u32 = 1 << 10;
/// Usual delays in sixteenths of a round trip: one that a sender with idle time hides, one within
/// the round trip, and three beyond it.
const USUAL_DELTAS: [u64; 5] = [1, 4, 16, 24, 32];

/// Options of the signature.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SignatureOptions {
    /// Largest `M`, at most [`MOST_IN_FLIGHT`].
    pub max_in_flight: u32,
    /// Delays `Δ` besides 0; zeros are ignored, and without any they follow from the round trip.
    pub deltas: [Picos; MAX_DELTAS],
    /// Messages in a train for the gap in one direction.
    pub train: u32,
    /// True for bulk transfers (section 4): requests of the size with replies of a byte.
    pub bulk: bool,
    /// Computation of the responder for each request, `ZERO` for none: it lengthens the gap.
    pub handler: Picos,
    /// Most unanswered bytes, so that the ends do not block each other.
    pub unanswered_bytes: u32,
    /// Half of an interval over its value, up to which it is converged.
    pub relative_error: f64,
}

impl Default for SignatureOptions {
    /// Curves until they are flat, usual delays, trains of 10, 256 KiB, 5%.
    fn default() -> Self {
        Self {
            max_in_flight: MOST_IN_FLIGHT,
            deltas: [Picos::ZERO; MAX_DELTAS],
            train: 10,
            bulk: false,
            handler: Picos::ZERO,
            unanswered_bytes: 1 << 18,
            relative_error: 0.05,
        }
    }
}

/// Regime of a point of the signature (section 3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Regime {
    /// No reply arrives before the last issue.
    SendOnly,
    /// Some replies do.
    Transition,
    /// The curve is flat.
    SteadyState,
}

/// Bottleneck of the gap of request and reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Bottleneck {
    /// The link: the sender is idle in between.
    Network,
    /// The sender, which is never idle: the link's gap is at most `o_s + o_r`.
    Sender,
    /// The number of requests that may be unanswered: the link's gap is at most this one.
    Window,
}

/// Parameters at one size, from the points of its signature.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Signature {
    /// Message size in bytes.
    pub size: u32,
    /// Round trip of one message; of bulk transfers a store with its short reply, `T(n)`.
    pub round_trip: Estimate<SignedPicos>,
    /// A get of bulk transfers: a short request and the reply.
    pub get: Option<Estimate<SignedPicos>>,
    /// Send overhead `o_s`.
    pub send_overhead: Estimate<SignedPicos>,
    /// Receive overhead `o_r`; `None` with fewer than three `Δ` beyond the idle time.
    pub recv_overhead: Option<Estimate<SignedPicos>>,
    /// Gap of request and reply; `None` where the curve is not flat.
    pub gap: Option<Estimate<SignedPicos>>,
    /// Bottleneck of that gap.
    pub bottleneck: Bottleneck,
    /// Latency `RTT/2 − o_s − o_r`, negative where overheads overlap the transfer; not of bulk
    /// transfers.
    pub latency: Option<Estimate<SignedPicos>>,
    /// `dg(Δ)/dΔ` beyond the idle time.
    pub slope: Option<f64>,
    /// Requests that the link takes before a sender waits, or as many as were sent until the first
    /// reply arrived.
    pub capacity: u32,
    /// True if the sender waited; otherwise the capacity is at least as large.
    pub is_capacity_reached: bool,
}

/// Rows of one size.
#[derive(Clone, Copy)]
struct Points<'r>(&'r [ProbeRow]);

impl<'r> Points<'r> {
    /// A message and its reply, which of a store is short.
    fn round_trip(self) -> Option<&'r ProbeRow> {
        let of = |kind| {
            let is = move |row: &&ProbeRow| (row.probe.kind, row.probe.messages) == (kind, 1);
            self.0.iter().find(is)
        };
        of(ProbeKind::Flood).or_else(|| of(ProbeKind::Train))
    }

    /// All points with `M` and `Δ`.
    fn issues(self) -> impl Iterator<Item = &'r ProbeRow> {
        self.0.iter().filter(|row| matches!(row.probe.kind, ProbeKind::Issue { .. }))
    }

    /// `T(M, Δ)`.
    fn issue(self, messages: u32, delay: Picos) -> Option<&'r ProbeRow> {
        self.issues().find(|row| row.probe.messages == messages && row.probe.delay == delay)
    }

    /// Largest `M` at `Δ`; 0 without a point.
    fn last(self, delay: Picos) -> u32 {
        let of_delay = self.issues().filter(|row| row.probe.delay == delay);
        of_delay.map(|row| row.probe.messages).max().unwrap_or(0)
    }

    /// Smallest `Δ` above `delay`.
    fn delay_after(self, delay: Picos) -> Option<Picos> {
        self.issues().map(|row| row.probe.delay).filter(|other| *other > delay).min()
    }

    /// All `Δ` besides 0, ascending.
    fn deltas(self) -> impl Iterator<Item = Picos> + use<'r> {
        core::iter::successors(self.delay_after(Picos::ZERO), move |delay| self.delay_after(*delay))
    }

    /// Slope from `T(M/2, Δ)` to `T(M, Δ)`, per message.
    fn slope(self, messages: u32, delay: Picos) -> Option<Spread> {
        let half = messages / 2;
        let [longer, shorter] = [self.issue(messages, delay)?, self.issue(half, delay)?];
        let more = Spread::of(&longer.time).minus(Spread::of(&shorter.time));
        Some(more.times(1.0 / f64::from(half.max(1))))
    }

    /// True if the slope to `T(M, Δ)` agrees with the one before, and no more requests are unanswered
    /// at its end than at that of half of them. While their number grows the sender is faster than the
    /// link, and its slope a constant, too.
    fn is_flat(self, messages: u32, delay: Picos) -> bool {
        let slopes = self.slope(messages, delay).zip(self.slope(messages / 2, delay));
        let unanswered = |messages| self.issue(messages, delay).map(|row| row.unanswered);
        let is_steady =
            unanswered(messages).zip(unanswered(messages / 2)).is_some_and(|(last, half)| {
                last <= half.saturating_add(half / 10).saturating_add(UNEVEN)
            });
        is_steady && slopes.is_some_and(|(last, before)| last.agrees(before, FLAT))
    }

    /// Round trip over the time of an issue with `Δ`: the requests that are issued until a reply
    /// arrives.
    fn issued_in_round_trip(self, delay: Picos) -> Option<f64> {
        let round_trip = self.round_trip()?.whole.value.0 as f64;
        let first = self.issue(1, Picos::ZERO)?.time.value.0 as f64 + delay.0 as f64;
        (first > 0.0).then(|| round_trip / first)
    }

    /// Fewest `M` for a steady state at `Δ`: four times the requests until a reply arrives.
    fn fewest(self, delay: Picos) -> Option<u32> {
        let until = self.issued_in_round_trip(delay)?;
        let mut fewest = 4;
        while fewest < MOST_IN_FLIGHT && f64::from(fewest) < 4.0 * until {
            fewest *= 2;
        }
        Some(fewest)
    }

    /// Slope of the flat end of the curve at `Δ`; `None` if it is not flat.
    fn plateau(self, delay: Picos) -> Option<Spread> {
        let last = self.last(delay);
        let is_steady = last >= self.fewest(delay)? && self.is_flat(last, delay);
        self.slope(last, delay).filter(|_| is_steady)
    }

    /// A short request and the reply.
    fn get(self) -> Option<Estimate<SignedPicos>> {
        let get = self.0.iter().find(|row| row.probe.kind == ProbeKind::Receive);
        get.map(|row| row.whole)
    }

    /// Window of the points with more than two requests.
    fn window(self) -> Option<u32> {
        self.issues().find_map(|row| match row.probe.kind {
            ProbeKind::Issue { window, .. } if row.probe.messages > 2 => Some(window),
            _ => None,
        })
    }
}

/// Tells which probes of `size` the signature needs beyond `rows`, the medians so far, and passes
/// them to `add`. `M` doubles until a curve is flat.
pub fn missing_points(
    size: u32,
    rows: &[ProbeRow],
    options: &SignatureOptions,
    mut add: impl FnMut(Probe),
) {
    let points = Points(rows);
    let issue = |messages, delay, window| Probe {
        size,
        kind: ProbeKind::Issue {
            window,
            reply: if options.bulk { 1 } else { size },
            handler: options.handler,
        },
        messages,
        delay,
    };
    let (Some(round_trip), Some(first)) = (points.round_trip(), points.issue(1, Picos::ZERO))
    else {
        add(Probe::round_trip(size));
        if options.train > 1 {
            add(Probe { messages: options.train, ..Probe::round_trip(size) });
        }
        if options.bulk {
            let store = ProbeKind::Flood;
            add(Probe { kind: store, ..Probe::round_trip(size) });
            add(Probe { kind: ProbeKind::Receive, ..Probe::round_trip(size) });
        }
        add(issue(1, Picos::ZERO, 2));
        return;
    };
    if round_trip.samples < FEWEST || first.samples < FEWEST {
        return;
    }
    let window = points.window().unwrap_or_else(|| window(points, size, options));
    let mut ask = |delay| {
        let last = points.last(delay);
        let fewest = points.fewest(delay).unwrap_or(4).min(options.max_in_flight);
        let longest = larger(LONGEST_RUN, 8.0 * round_trip.whole.value.0 as f64);
        let is_open = |row: &ProbeRow| row.samples < FEWEST || row.whole.value.0 as f64 > longest;
        if points.issue(last, delay).is_some_and(is_open) {
            return;
        }
        if last < fewest {
            let mut messages = (last * 2).max(1);
            while messages <= fewest.min(last.max(1).saturating_mul(STEP)) {
                add(issue(messages, delay, window));
                messages *= 2;
            }
        } else if last.saturating_mul(2) <= options.max_in_flight && !points.is_flat(last, delay) {
            add(issue(last * 2, delay, window));
        }
    };
    ask(Picos::ZERO);
    if points.delay_after(Picos::ZERO).is_some() {
        points.deltas().for_each(ask);
    } else if options.deltas.iter().any(|delay| *delay > Picos::ZERO) {
        options.deltas.into_iter().filter(|delay| *delay > Picos::ZERO).for_each(ask);
    } else {
        let trip = round_trip.whole.value.0.unsigned_abs().saturating_add(options.handler.0);
        let sixteenth = trip.max(16) / 16;
        USUAL_DELTAS.map(|count| Picos(count * sixteenth)).into_iter().for_each(ask);
    }
}

/// Window for all points of `size`: twice the requests until a reply arrives, a power of two.
fn window(points: Points<'_>, size: u32, options: &SignatureOptions) -> u32 {
    let wanted = points.fewest(Picos::ZERO).unwrap_or(4) / 2;
    let held = options.unanswered_bytes / size.saturating_add(BOOKKEEPING);
    wanted.clamp(4, held.max(4)).min(options.max_in_flight).max(2)
}

impl Signature {
    /// Parameters from the medians of all points of one size; `None` before the round trip and the
    /// cost of a single request are known.
    #[must_use]
    pub fn of(rows: &[ProbeRow], options: &SignatureOptions) -> Option<Self> {
        let points = Points(rows);
        let round_trip = points.round_trip()?;
        let (capacity, is_capacity_reached) = capacity(points)?;
        let send = send_overhead(points, capacity)?;
        let plateau = points.plateau(Picos::ZERO);
        let received = recv_overhead(points, send);
        let share = options.relative_error;
        let half_trip = Spread::of(&round_trip.whole).times(0.5);
        let is_off = received.is_some_and(|found| is_off(found.slope));
        let of_misfit = |estimate: Estimate<SignedPicos>| {
            if is_off { Estimate { mark: Mark::Misfit, ..estimate } } else { estimate }
        };
        let receive = received.map(|found| found.overhead);
        let bottleneck = bottleneck(points, send, receive, plateau);
        let both = receive.map(|receive| send.plus(receive));
        let gap = if bottleneck == Bottleneck::Sender { both } else { plateau };
        Some(Self {
            size: round_trip.probe.size,
            round_trip: round_trip.whole,
            get: points.get().filter(|_| options.bulk),
            send_overhead: send.estimate(share),
            recv_overhead: receive.map(|receive| of_misfit(receive.estimate(share))),
            gap: gap.map(|gap| gap.estimate(share)),
            bottleneck,
            // The two ways of a store differ.
            latency: both
                .filter(|_| !options.bulk)
                .map(|both| of_misfit(half_trip.minus(both).estimate(share))),
            slope: received.map(|found| found.slope),
            capacity,
            is_capacity_reached,
        })
    }

    /// True if the gap does not grow as the delay, as `o_r` needs.
    #[must_use]
    pub fn is_slope_off(&self) -> bool {
        self.slope.is_some_and(is_off)
    }

    /// The `M` at which `g(Δ)` was read among `rows`, if `delay` is beyond the idle time, so that
    /// it shows `o_r`.
    #[must_use]
    pub fn flat_beyond_idle(rows: &[ProbeRow], delay: Picos) -> Option<u32> {
        let points = Points(rows);
        let slowed = points.plateau(delay).filter(|_| delay > Picos::ZERO)?;
        is_raised(points, delay, slowed).then(|| points.last(delay))
    }

    /// Regime of the point `probe` among `rows`, which this signature was computed from.
    #[must_use]
    pub fn regime(&self, probe: &Probe, rows: &[ProbeRow]) -> Regime {
        let points = Points(rows);
        let Probe { messages, delay, .. } = *probe;
        let before_reply = points.issued_in_round_trip(delay).unwrap_or(0.0);
        if messages == 1 || messages <= self.capacity && f64::from(messages) < before_reply {
            return Regime::SendOnly;
        }
        let last = points.last(delay);
        let Some(plateau) = points.plateau(delay) else { return Regime::Transition };
        let longer = core::iter::successors(Some(messages), |messages| messages.checked_mul(2));
        let mut slopes = longer.take_while(|messages| *messages <= last);
        let is_flat = |messages| {
            points.slope(messages, delay).is_some_and(|slope| plateau.agrees(slope, FLAT))
        };
        if slopes.all(is_flat) { Regime::SteadyState } else { Regime::Transition }
    }
}

/// True if `dg(Δ)/dΔ` is not 1 within 2%.
fn is_off(slope: f64) -> bool {
    (slope - 1.0).abs() > SLOPE
}

/// Requests that the link takes before a sender waits, and true if one did before the first reply
/// could have arrived, and before this end's own window was full.
fn capacity(points: Points<'_>) -> Option<(u32, bool)> {
    let until = points.issued_in_round_trip(Picos::ZERO)?;
    let first = Spread::of(&points.issue(1, Picos::ZERO)?.time);
    let mut capacity = 1;
    let mut messages = 2;
    let window = points.window().unwrap_or(u32::MAX);
    while f64::from(messages) < until && messages < window {
        let Some(slope) = points.slope(messages, Picos::ZERO) else { break };
        if slope.value - slope.half > STALLED * first.value {
            return Some((capacity, true));
        }
        (capacity, messages) = (messages, messages * 2);
    }
    Some((capacity, false))
}

/// Median of the costs in the send-only regime, with the interval of that point.
fn send_overhead(points: Points<'_>, capacity: u32) -> Option<Spread> {
    // One for each power of two up to the largest M.
    let mut costs = heapless::Vec::<Spread, { MOST_IN_FLIGHT.ilog2() as usize + 1 }>::new();
    let mut messages = 1;
    while messages <= capacity {
        if let Some(row) = points.issue(messages, Picos::ZERO) {
            costs.push(Spread::of(&row.time).times(1.0 / f64::from(messages))).ok()?;
        }
        messages *= 2;
    }
    middle(&costs)
}

/// Median of a few values; of two in the middle the one with the narrower interval.
pub(super) fn middle(values: &[Spread]) -> Option<Spread> {
    let below = |one: &Spread| values.iter().filter(|other| other.value < one.value).count();
    let of_rank = |rank: usize| {
        // Equal values share the lowest rank of theirs.
        values.iter().filter(|one| below(one) <= rank).max_by(|a, b| a.value.total_cmp(&b.value))
    };
    let upper = of_rank(values.len() / 2)?;
    let lower = of_rank(values.len().checked_sub(1)? / 2)?;
    Some(if lower.half < upper.half { *lower } else { *upper })
}

/// Receive overhead and how well its `Δ` agree.
#[derive(Clone, Copy)]
struct Received {
    overhead: Spread,
    /// `dg(Δ)/dΔ`, by least squares.
    slope: f64,
}

/// `o_r` from all `Δ` that raise the plateau, if there are enough.
fn recv_overhead(points: Points<'_>, send: Spread) -> Option<Received> {
    let mut found = heapless::Vec::<Spread, MAX_DELTAS>::new();
    let [mut sum_x, mut sum_y, mut sum_xx, mut sum_xy] = [0.0; 4];
    for delay in points.deltas() {
        let Some(slowed) = points.plateau(delay) else { continue };
        if !is_raised(points, delay, slowed) {
            continue;
        }
        let (x, y) = (delay.0 as f64, slowed.value);
        sum_x += x;
        sum_y += y;
        sum_xx += x * x;
        sum_xy += x * y;
        let rest = slowed.minus(send);
        found.push(Spread { value: rest.value - x, ..rest }).ok()?;
    }
    let count = found.len() as f64;
    let width = count * sum_xx - sum_x * sum_x;
    if found.len() < FEWEST_DELTAS || width <= 0.0 {
        return None;
    }
    let slope = (count * sum_xy - sum_x * sum_y) / width;
    Some(Received { overhead: middle(&found)?, slope })
}

/// True if `delay`, with the plateau `slowed`, is beyond the idle time: the plateau is above that of
/// no delay or, where the curve is not flat, the delay is a round trip.
fn is_raised(points: Points<'_>, delay: Picos, slowed: Spread) -> bool {
    match points.plateau(Picos::ZERO) {
        Some(plateau) => slowed.value > (1.0 + FLAT) * plateau.value,
        None => points.round_trip().is_some_and(|row| delay.0.cast_signed() >= row.whole.value.0),
    }
}

fn bottleneck(
    points: Points<'_>,
    send: Spread,
    receive: Option<Spread>,
    plateau: Option<Spread>,
) -> Bottleneck {
    let Some(gap) = plateau else { return Bottleneck::Network };
    let smallest = points.delay_after(Picos::ZERO);
    let raised = smallest.and_then(|delay| Some((delay, points.plateau(delay)?)));
    // The first Δ raises the plateau, as in Figures 11 and 13.
    let is_raised =
        raised.is_some_and(|(delay, slowed)| slowed.value - gap.value > 0.5 * delay.0 as f64);
    let idle = receive.map(|receive| gap.value - send.value - receive.value);
    if is_raised && idle.is_some_and(|idle| idle <= FLAT * gap.value) {
        return Bottleneck::Sender;
    }
    let limit = points.round_trip().zip(points.window());
    let limit = limit.map(|(trip, window)| trip.whole.value.0 as f64 / f64::from(window));
    let is_limited = limit.is_some_and(|limit| limit >= (1.0 - FLAT) * gap.value);
    if is_limited { Bottleneck::Window } else { Bottleneck::Network }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::methods::tests::measured;
    use crate::measure::{Disturbance, Simulated, Truth};
    use crate::model::Preset;
    use crate::units::PerByte;
    use std::vec::Vec;

    /// A link with these times in nanoseconds.
    fn link(send: u64, receive: u64, gap: u64, latency: u64) -> Truth {
        let [send_overhead, recv_overhead, gap, latency] =
            [send, receive, gap, latency].map(|nanos| Picos(nanos * 1_000));
        Truth { first_size: 1, latency, send_overhead, recv_overhead, gap, ..Truth::default() }
    }

    fn signature(
        simulated: Simulated<'_>,
        options: &SignatureOptions,
    ) -> (Signature, Vec<ProbeRow>) {
        let rows = measured(simulated, 1, |rows, add| missing_points(1, rows, options, add));
        (Signature::of(&rows, options).unwrap(), rows)
    }

    fn near(found: Option<Estimate<SignedPicos>>, truth: Picos) -> bool {
        found.is_some_and(|found| found.value.0.abs_diff(truth.0.cast_signed()) * 50 <= truth.0)
    }

    #[test]
    fn the_papers_machines_are_found_within_two_percent() {
        for name in ["paragon", "meiko", "myrinet"] {
            let preset: Preset = name.parse().unwrap();
            let [send, receive] = preset.ends.unwrap();
            let set = preset.protocols[0].parameters;
            let truth = Truth {
                first_size: 1,
                latency: set.latency,
                send_overhead: send,
                recv_overhead: receive,
                gap: set.gap,
                ..Truth::default()
            };
            let truths = [truth];
            let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
            let (found, rows) = signature(simulated, &SignatureOptions::default());
            assert!(near(Some(found.send_overhead), truth.send_overhead), "{name}: {found:?}");
            assert!(near(found.recv_overhead, truth.recv_overhead), "{name}: {found:?}");
            assert!(near(found.gap, truth.gap), "{name}: {found:?}");
            assert!(near(found.latency, truth.latency), "{name}: {found:?}");
            assert!(found.slope.is_some_and(|slope| (slope - 1.0).abs() < SLOPE), "{found:?}");
            assert_eq!(found.bottleneck, Bottleneck::Network, "{name}");
            assert!(!found.is_capacity_reached && found.capacity == 8, "{name}: {found:?}");
            let regime = |messages| {
                let row = rows.iter().find(|row| {
                    let Probe { messages: of, delay, kind, .. } = row.probe;
                    (of, delay) == (messages, Picos::ZERO) && kind != ProbeKind::Train
                });
                row.map(|row| found.regime(&row.probe, &rows))
            };
            assert_eq!(regime(8), Some(Regime::SendOnly), "{name}");
            assert_eq!(regime(16), Some(Regime::Transition), "{name}");
            assert_eq!(regime(Points(&rows).last(Picos::ZERO)), Some(Regime::SteadyState));
        }
    }

    /// True if the interval of `found` has a width, and holds `truth` within 2%.
    fn encloses(found: &Estimate<SignedPicos>, truth: Picos) -> bool {
        let (truth, margin) = (truth.0.cast_signed(), truth.0.cast_signed() / 50);
        found.low < found.high && (found.low.0 - margin..=found.high.0 + margin).contains(&truth)
    }

    #[test]
    fn intervals_of_a_noisy_link_hold_what_it_is() {
        let truths = [link(2_000, 2_600, 12_400, 11_100)];
        for seed in 0..4 {
            let noise = Disturbance { seed, noise: 0.1, ..Disturbance::default() };
            let simulated = Simulated::new(&truths, noise, Picos(20_000));
            let options = SignatureOptions::default();
            let rows = measured(simulated, 30, |rows, add| missing_points(1, rows, &options, add));
            let found = Signature::of(&rows, &options).unwrap();
            assert!(encloses(&found.send_overhead, truths[0].send_overhead), "{seed}: {found:?}");
            assert!(
                encloses(&found.recv_overhead.unwrap(), truths[0].recv_overhead),
                "{seed}: {found:?}"
            );
            assert!(encloses(&found.gap.unwrap(), truths[0].gap), "{seed}: {found:?}");
            assert!(encloses(&found.latency.unwrap(), truths[0].latency), "{seed}: {found:?}");
            assert_eq!(found.bottleneck, Bottleneck::Network, "{seed}: {found:?}");
        }
    }

    #[test]
    fn a_capacity_limits_the_gap_to_its_share_of_the_round_trip() {
        let truths = [link(1_000, 500, 5_000, 48_500)];
        for (capacity, gap) in [(2, 50_000_000), (4, 25_000_000), (8, 12_500_000), (32, 5_000_000)]
        {
            let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
            let simulated = simulated.with_capacity(capacity);
            let (found, _) = signature(simulated, &SignatureOptions::default());
            assert!(near(found.gap, Picos(gap)), "{capacity}: {found:?}");
            let reached = (found.capacity as usize, found.is_capacity_reached);
            assert_eq!(reached, (capacity, true), "{found:?}");
        }
    }

    #[test]
    fn a_handler_longer_than_the_gap_lengthens_it_and_nothing_else() {
        // The far end of a simulated link holds 64 replies.
        let truths = [link(700, 900, 2_500, 5_000)];
        for (handler, gap) in [(0, 2_500), (500, 2_500), (4_000, 5_600), (20_000, 21_600)] {
            let [handler, gap] = [handler, gap].map(|nanos| Picos(nanos * 1_000));
            let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
            let options = SignatureOptions { handler, ..SignatureOptions::default() };
            let (found, _) = signature(simulated, &options);
            assert!(near(found.gap, gap), "{handler}: {found:?}");
            assert!(near(Some(found.send_overhead), truths[0].send_overhead), "{found:?}");
            assert!(near(found.recv_overhead, truths[0].recv_overhead), "{found:?}");
        }
    }

    #[test]
    fn a_sender_nearly_as_slow_as_the_link_is_not_taken_for_the_link() {
        // While the window fills, a message costs 3/(1 − 3/7) = 5.25 µs, 0.75 of the gap.
        for (send, receive, gap) in [(3_000, 3_000, 7_000), (4_000, 1_000, 6_000)] {
            let truths = [link(send, receive, gap, 20_000)];
            let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
            let (found, _) = signature(simulated, &SignatureOptions::default());
            assert!(near(found.gap, Picos(gap * 1_000)), "{found:?}");
            assert_eq!(found.bottleneck, Bottleneck::Network, "{found:?}");
            assert!(near(found.recv_overhead, Picos(receive * 1_000)), "{found:?}");
        }
    }

    #[test]
    fn the_own_window_is_no_capacity_of_the_link() {
        let truths = [link(1_000, 500, 5_000, 48_500)];
        let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
        let options = SignatureOptions { max_in_flight: 8, ..SignatureOptions::default() };
        let (found, _) = signature(simulated, &options);
        assert!(!found.is_capacity_reached && found.capacity < 8, "{found:?}");
    }

    #[test]
    fn a_sender_that_is_never_idle_bounds_the_gap() {
        let truths = [link(5_000, 4_000, 2_000, 30_000)];
        let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
        let (found, _) = signature(simulated, &SignatureOptions::default());
        assert_eq!(found.bottleneck, Bottleneck::Sender);
        assert!(near(found.gap, Picos(9_000_000)), "{found:?}");
        assert!(near(found.latency, Picos(30_000_000)), "{found:?}");
    }

    #[test]
    fn a_window_that_hides_the_gap_is_told() {
        let truths = [link(1_000, 1_000, 2_000, 98_000)];
        let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
        let options =
            SignatureOptions { unanswered_bytes: 16 * 1_025, ..SignatureOptions::default() };
        let (found, _) = signature(simulated, &options);
        assert_eq!(found.bottleneck, Bottleneck::Window);
        assert!(near(found.gap, Picos(200_000_000 / 16)), "{found:?}");
    }

    #[test]
    fn stores_and_gets_take_what_the_link_takes_both_ways() {
        let truth = Truth {
            send_overhead_per_byte: PerByte(30 << 16),
            recv_overhead_per_byte: PerByte(20 << 16),
            gap_per_byte: PerByte(80 << 16),
            ..link(2_000, 2_600, 12_400, 11_100)
        };
        let truths = [truth];
        let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
        let options = SignatureOptions { bulk: true, ..SignatureOptions::default() };
        let rows = measured(simulated, 1, |rows, add| missing_points(4_096, rows, &options, add));
        let found = Signature::of(&rows, &options).unwrap();
        let w = 4_095;
        let both_ways = 2 * (2_000_000 + 2_600_000 + 11_100_000);
        assert!(near(Some(found.send_overhead), Picos(2_000_000 + 30 * w)), "{found:?}");
        assert!(near(found.gap, Picos(12_400_000 + 80 * w)), "{found:?}");
        let transfer = Picos(both_ways + (30 + 20 + 80) * w);
        assert!(near(Some(found.round_trip), transfer), "{found:?}");
        assert!(near(found.get, transfer) && found.latency.is_none(), "{found:?}");
    }

    #[test]
    fn the_median_of_a_few_is_found_without_sorting() {
        let of = |values: &[f64]| {
            let spreads: Vec<_> =
                values.iter().map(|&value| Spread { value, half: value }).collect();
            middle(&spreads).map(|found| found.value)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), Some(2.0));
        assert_eq!(of(&[2.0, 2.0, 5.0, 2.0]), Some(2.0));
    }
}
