//! A link measured once an interval with little traffic, for as long as one likes, and the changes
//! that its values reveal.

mod traffic;

use std::thread;
use std::time::{Duration, SystemTime};

use loggap_core::measure::Clock;
use loggap_core::model::Curve;
use loggap_core::stats::{SequentialDetector, Shift, ShiftKind};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use self::traffic::{LONGEST, Traffic, Values, describe, rate};
use super::connections::{self, Connections, Memory, Opening};
use super::rounds::Rounds;
use crate::assertion::Assertion;
use crate::drive::EndOptions;
use crate::link::{Endpoint, Waiting};
use crate::machine::clock::HostClock;
use crate::machine::placement;
use crate::output::number;
use crate::terminal::{CliError, Console, Exit, Interrupt, end_on_request};

/// Longest sleep between looks at Ctrl-C.
const NAP: Duration = Duration::from_millis(100);

/// Options of watching.
#[derive(Clone, Debug)]
pub(crate) struct WatchOptions {
    /// Part of the link's rate that may be used.
    pub(crate) budget: f64,
    /// Time between measurements.
    pub(crate) interval: Duration,
    /// Time after which watching ends.
    pub(crate) time: Option<Duration>,
    /// Limits of `half_rtt` and `gap`, each at one size.
    pub(crate) assertions: Vec<Assertion>,
    /// Time for which an assertion has to fail.
    pub(crate) hold: Duration,
}

impl WatchOptions {
    /// Size that an assertion about `curve` names, bytes.
    fn asserted(&self, curve: Curve) -> Option<u32> {
        let named = self.assertions.iter().find(|assertion| assertion.curve() == curve)?;
        u32::try_from(named.size()).ok()
    }
}

/// State of the link at an interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Measured; its usual values are being learned.
    Learning,
    /// Measured, and compared with its usual values.
    Watching,
    /// The responder does not answer.
    Lost,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// A value changed from one interval to the next.
    Step,
    /// A value changed little by little.
    Drift,
    /// The responder stopped answering.
    Lost,
    /// The responder answers again.
    Back,
}

/// Change of the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// Value that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<&'static str>,
    /// Its level before, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_s: Option<f64>,
    /// Its level after, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after_s: Option<f64>,
}

impl Event {
    const fn of_peer(kind: EventKind) -> Self {
        Self { kind, parameter: None, before_s: None, after_s: None }
    }

    fn of_value(parameter: &'static str, shift: Shift) -> Self {
        let kind = match shift.kind {
            ShiftKind::Step => EventKind::Step,
            ShiftKind::Drift => EventKind::Drift,
        };
        let [before_s, after_s] = [shift.before, shift.after].map(|level| Some(level.exp()));
        Self { kind, parameter: Some(parameter), before_s, after_s }
    }
}

/// Values of an interval. Unknown values are `None`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interval {
    /// Start, seconds since 1970 in UTC.
    pub(crate) time_unix_s: f64,
    pub(crate) state: State,
    /// Half of a short round trip.
    pub(crate) half_rtt_s: Option<f64>,
    pub(crate) half_rtt_size_bytes: u32,
    pub(crate) gap_s: Option<f64>,
    pub(crate) gap_size_bytes: u32,
    pub(crate) lost_rounds: u64,
    pub(crate) events: Vec<Event>,
    /// Assertions that this interval does not keep.
    pub(crate) failing: Vec<String>,
}

/// A value with its detector.
struct Watched {
    curve: Curve,
    detector: SequentialDetector,
}

impl Watched {
    fn new(curve: Curve) -> Self {
        Self { curve, detector: SequentialDetector::default() }
    }

    /// Adds an interval's values and returns the change that they reveal.
    fn add(&mut self, values: &Values) -> Option<Event> {
        let value = values.of(self.curve)?.seconds();
        let shift = self.detector.add(value.ln())?;
        Some(Event::of_value(self.curve.parameter().key(), shift))
    }
}

/// An assertion, since when it fails, and when it was last seen to.
struct Held {
    assertion: Assertion,
    since: Option<Picos>,
    last: Picos,
}

impl Held {
    /// True if a known value does not keep the limit; unknown ones neither begin nor end that.
    fn fails(&mut self, values: &Values, now: Picos) -> bool {
        let Some(value) = values.of(self.assertion.curve()) else { return false };
        let is_kept = self.assertion.is_kept(value);
        self.since = if is_kept { None } else { self.since.or(Some(now)) };
        self.last = now;
        !is_kept
    }

    /// True if it was seen to fail over `hold`.
    fn is_broken(&self, hold: Picos) -> bool {
        self.since.is_some_and(|since| self.last.since(since) >= hold)
    }
}

/// Called with each interval.
pub(crate) type Report<'r> = &'r mut dyn FnMut(&Interval, &mut Console) -> Result<(), CliError>;

/// Watches the link until the time is over, Ctrl-C, or an assertion has failed for long.
pub(crate) fn watch(
    ends: EndOptions,
    options: &WatchOptions,
    console: &mut Console,
    report: Report<'_>,
) -> Result<Exit, CliError> {
    let interrupt = end_on_request()?;
    interrupt.listen();
    let sizes = [Curve::HalfRtt, Curve::Gap].map(|curve| options.asserted(curve).unwrap_or(1));
    let largest = sizes.into_iter().fold(LONGEST, u32::max);
    let mut options_of_ends = ends;
    options_of_ends.settings.waiting = Waiting::Block;
    let mut link = WatchedLink {
        remote: options_of_ends.remote.clone(),
        opening: Opening {
            queues: false,
            options: options_of_ends,
            allowed: placement::allowed(),
            again: false,
            told: Vec::new(),
        },
        memory: connections::memory(1, largest)?,
        largest,
        interrupt,
    };
    let stopwatch = Stopwatch::start();
    let traffic = link.over(console, |session| {
        let longest = session.allowed();
        let outside = options
            .assertions
            .iter()
            .find(|assertion| !(1..=u64::from(longest)).contains(&assertion.size()));
        if let Some(assertion) = outside {
            let longest = number::bytes(longest.into());
            return Err(CliError::usage(format_args!(
                "--assert '{assertion}': this link takes messages from 1 B to {longest}"
            )));
        }
        let (rate, longest) = rate(session, longest.min(LONGEST))?;
        Ok(Traffic::of(options, rate, longest))
    });
    let traffic = match traffic {
        Err(_) if link.interrupt.is_requested() => return Ok(Exit::Interrupted),
        traffic => traffic?,
    };
    console.note(describe(&traffic, options));
    let watched = [Watched::new(Curve::HalfRtt), Watched::new(Curve::Gap)];
    let held = options.assertions.iter().cloned();
    let held = held.map(|assertion| Held { assertion, since: None, last: Picos::ZERO }).collect();
    let time_told = false;
    let is_lost = false;
    let (intervals, events) = (0, 0);
    let mut watch =
        Watch { link, stopwatch, traffic, watched, held, is_lost, time_told, intervals, events };
    let exit = watch.until(options, console, report);
    console.note(format_args!(
        "{}, {}, {}",
        number::counted(watch.intervals, "interval"),
        number::counted(watch.events, "event"),
        if watch.is_lost { "the responder does not answer" } else { "the responder answers" }
    ));
    exit
}

/// Link that is opened anew at each interval, so that the responder is free in between and may be
/// restarted.
struct WatchedLink {
    /// Responder as it was named, whose address may change while it is lost.
    remote: Option<Endpoint>,
    opening: Opening,
    memory: Vec<Memory>,
    largest: u32,
    interrupt: Interrupt,
}

impl WatchedLink {
    fn over<T>(
        &mut self,
        console: &mut Console,
        work: impl FnOnce(&mut dyn Rounds) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let Self { opening, memory, largest, interrupt, .. } = self;
        let mut connections = Connections::open(opening, *largest, memory, interrupt, console)?;
        let closed = || CliError::failed("no connection was opened");
        let found = work(connections.first().ok_or_else(closed)?)?;
        connections.close()?;
        Ok(found)
    }
}

/// Watching under way.
struct Watch {
    link: WatchedLink,
    stopwatch: Stopwatch,
    traffic: Traffic,
    watched: [Watched; 2],
    held: Vec<Held>,
    is_lost: bool,
    /// True once the time to report a change was told.
    time_told: bool,
    intervals: u64,
    events: u64,
}

impl Watch {
    fn until(
        &mut self,
        options: &WatchOptions,
        console: &mut Console,
        report: Report<'_>,
    ) -> Result<Exit, CliError> {
        let end = options.time.map_or(Picos::MAX, Picos::from_duration);
        let pause = Picos::from_duration(self.traffic.interval);
        let hold = Picos::from_duration(options.hold);
        let mut next = self.stopwatch.now();
        loop {
            if !self.stopwatch.sleep_until(next.min(end), &self.link.interrupt) {
                return Ok(Exit::Interrupted);
            }
            if self.stopwatch.now() >= end {
                return Ok(Exit::Done);
            }
            let interval = self.interval(console);
            if self.link.interrupt.is_requested() {
                return Ok(Exit::Interrupted);
            }
            self.intervals += 1;
            self.events += interval.events.len() as u64;
            report(&interval, console)?;
            self.tell_time(console);
            if let Some(broken) = self.broken(hold) {
                console.note(format_args!("fails for {:?}: {broken}", options.hold));
                return Ok(Exit::Differs);
            }
            // An interval that took longer than its time moves the later ones.
            next = Picos(next.0.saturating_add(pause.0)).max(self.stopwatch.now());
        }
    }

    /// Measures once and adds the values to the detectors.
    fn interval(&mut self, console: &mut Console) -> Interval {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let traffic = self.traffic;
        let measured = self.link.over(console, |session| Values::measure(session, &traffic));
        let mut events = Vec::new();
        let values = match measured {
            Ok(values) => {
                if std::mem::take(&mut self.is_lost) {
                    events.push(Event::of_peer(EventKind::Back));
                }
                events.extend(self.watched.iter_mut().filter_map(|one| one.add(&values)));
                values
            }
            Err(error) => {
                self.link.opening.options.remote.clone_from(&self.link.remote);
                if !std::mem::replace(&mut self.is_lost, true) {
                    events.push(Event::of_peer(EventKind::Lost));
                    console.note(error);
                }
                Values::default()
            }
        };
        let now = self.stopwatch.now();
        let failing = self
            .held
            .iter_mut()
            .filter_map(|held| held.fails(&values, now).then(|| held.assertion.to_string()));
        Interval {
            time_unix_s: since_1970.as_millis() as f64 / 1e3,
            failing: failing.collect(),
            state: self.state(),
            half_rtt_s: values.half_rtt.map(SignedPicos::seconds),
            half_rtt_size_bytes: traffic.short,
            gap_s: values.gap.map(SignedPicos::seconds),
            gap_size_bytes: traffic.size,
            lost_rounds: values.lost_rounds,
            events,
        }
    }

    fn state(&self) -> State {
        if self.is_lost {
            State::Lost
        } else if self.watched.iter().all(|one| one.detector.is_settled()) {
            State::Watching
        } else {
            State::Learning
        }
    }

    /// Says how long a change takes to be told, once the noise is known, and if the bandwidth is
    /// hidden.
    fn tell_time(&mut self, console: &mut Console) {
        let detector = &self.watched[1].detector;
        let Some((mean, deviation)) = detector.mean().zip(detector.deviation()) else { return };
        if std::mem::replace(&mut self.time_told, true) {
            return;
        }
        if let Some(passed) = self.traffic.burst(mean.exp()) {
            return console.warn(passed);
        }
        let noise = number::plus_minus(deviation);
        match detector.values_to_tell(std::f64::consts::LN_2) {
            Some(values) => {
                let seconds = f64::from(values) * self.traffic.interval.as_secs_f64();
                let time = number::in_units(seconds, number::TIME);
                console.note(format_args!(
                    "the gap varies by {noise}: a halved bandwidth is told within {time}"
                ));
            }
            None => console.warn(format_args!(
                "the gap varies by {noise}, which hides a halved bandwidth: a larger --budget"
            )),
        }
    }

    /// Assertion that has failed for `hold`.
    fn broken(&self, hold: Picos) -> Option<&Assertion> {
        self.held.iter().find(|held| held.is_broken(hold)).map(|held| &held.assertion)
    }
}

/// Time since the start of the command.
struct Stopwatch {
    clock: HostClock,
    began: u64,
}

impl Stopwatch {
    fn start() -> Self {
        let clock = HostClock::monotonic_raw();
        Self { clock, began: clock.now() }
    }

    fn now(&self) -> Picos {
        self.clock.duration(self.clock.now().saturating_sub(self.began))
    }

    /// Sleeps until `time`. Returns false after a request to stop.
    fn sleep_until(&self, time: Picos, interrupt: &Interrupt) -> bool {
        while !interrupt.is_requested() {
            let left = time.since(self.now());
            if left == Picos::ZERO {
                return true;
            }
            thread::sleep(Duration::from_nanos(left.0.div_ceil(1_000)).min(NAP));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_fails_from_its_first_value_on_until_one_does_not_break_it() {
        let mut held =
            Held { assertion: "gap<2us@1K".parse().unwrap(), since: None, last: Picos::ZERO };
        let values = |gap| Values { gap, ..Values::default() };
        let (slow, fast) = (values(Some(SignedPicos(3_000_000))), values(Some(SignedPicos(1))));
        let now = Picos(1);
        let fails = [&slow, &slow, &values(None), &slow, &fast].map(|one| held.fails(one, now));
        assert_eq!(fails, [true, true, false, true, false]);
        let since = [&slow, &values(None), &slow].map(|one| {
            held.fails(one, Picos(held.since.map_or(5, |_| 9)));
            held.since
        });
        assert_eq!(since, [Some(Picos(5)); 3]);
        // What is unknown does not last.
        held.fails(&values(None), Picos(99));
        assert_eq!([4, 5].map(|hold| held.is_broken(Picos(hold))), [true, false]);
    }
}
