//! The `LogP` signature: Culler, Liu, Martin and Yoshikawa, "`LogP`
//! Performance Assessment of Fast Network Interfaces", IEEE Micro 1996.
//!
//! `M` requests are issued with a computation of `Δ` after each, and the time `T(M, Δ)` is measured
//! for several `M` and `Δ`. Every request is answered. After each issue all replies that have
//! arrived are consumed, and after the last issue the remaining ones. For each size one repetition
//! measures
//!
//! - `o_s`: `T(M, 0)/M` for the two requests that fit into a round trip, so that no reply
//!   interrupts them;
//! - `g`: the slope `(T(2M, 0) − T(M, 0))/M` of runs that are longer than the window of outstanding
//!   requests, so that issues wait for the network; the slope excludes the start-up. A window of
//!   `w` shows no gap below `RTT/w`;
//! - `o_r`: with `Δ` beyond the round trip each request costs `o_s + o_r + Δ`, so it is the slope
//!   of long runs less `Δ` and `o_s`;
//! - the round trip of a single request, from which `L = RTT/2 − o_s − o_r`.
//!
//! A poll without a reply has a cost, too, which is measured on the idle link and subtracted, once
//! per issue. If `g = o_s + o_r`, the sender itself is the bottleneck and the network's gap stays
//! hidden.

use crate::measure::methods::samples::{Repetition, windows};
use crate::measure::session::kernel::without_reading;
use crate::measure::{
    Clock, Deadline, Experiment, Initiator, Link, MethodOptions, MethodSamples, Quantity,
    SessionError,
};
use crate::units::Picos;
use crate::wire::{ReplyPolicy, Round};

/// Number of requests in a short run.
const SHORT: u32 = 2;
/// Number of windows in a long run.
const LONG: u32 = 3;
/// Number of empty polls that are timed together.
const POLLS: u32 = 32;

/// A run of requests.
#[derive(Clone, Copy)]
struct Run {
    requests: u32,
    /// Most outstanding requests.
    window: u32,
    delta: Picos,
    /// Cost of an empty poll.
    poll: Picos,
}

impl Run {
    const fn round(&self, size: u32) -> Round {
        Round { policy: ReplyPolicy::AfterEach, ..Round::plain(self.requests, size) }
    }
}

/// Time of issuing the requests of a run, `T(M, Δ)`.
#[derive(Clone, Copy)]
struct Issued {
    time: Picos,
    /// The time without the cost of empty polls.
    without_polls: Picos,
}

/// Record of a run; times in ticks.
struct Course {
    replies: u32,
    /// True if a reply did not arrive in time.
    lost: bool,
    /// Number of empty polls.
    polls: u64,
    /// Time until the end of the last request's `Δ`, without the excess of waits over `Δ`.
    busy: u64,
    /// Time until the last reply arrived.
    whole: u64,
}

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// Runs one repetition of the signature at `size`; `None` if a message was lost.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn signature(
        &mut self,
        size: u32,
        options: &MethodOptions,
    ) -> Result<Option<MethodSamples>, SessionError<L::Error>> {
        let quantity = Quantity::RoundTrip;
        let trip = Experiment { quantity, messages: 1, delay: Picos::ZERO, size };
        let Some(round_trip) = self.elapsed(&trip)? else { return Ok(None) };
        let poll = self.empty_poll()?;
        let most = options.run_bytes / size.max(1);
        let window = options.messages.min(most).max(SHORT);
        let many = window.saturating_mul(LONG);
        let delta = Picos(round_trip.0.saturating_mul(2));
        let zero = Picos::ZERO;
        let mut time = |requests, delta| self.issues(size, Run { requests, window, delta, poll });
        let Some(short) = time(SHORT, zero)? else { return Ok(None) };
        let Some(once) = time(many, zero)? else { return Ok(None) };
        let Some(twice) = time(2 * many, zero)? else { return Ok(None) };
        let Some(slow_once) = time(SHORT, delta)? else { return Ok(None) };
        let Some(slow_twice) = time(2 * SHORT, delta)? else { return Ok(None) };
        let slope = |longer: Issued, shorter: Issued, requests| {
            longer.time.signed_difference(shorter.time) / i64::from(requests)
        };
        let signed = |time: Picos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let send = signed(short.without_polls) / i64::from(SHORT);
        let slow = slow_twice.without_polls.signed_difference(slow_once.without_polls);
        let slow = slow / i64::from(SHORT);
        let receive = slow.saturating_sub(signed(delta)).saturating_sub(send);
        let gap = slope(twice, once, many);
        let repetition = Repetition { size, round_trip, send, receive, gap };
        Ok(Some(repetition.samples(options.messages)))
    }

    /// Measures `T(M, Δ)`, from before the first issue to the end of the last one's `Δ`. The excess
    /// of waits over `Δ` and the cost of readings are subtracted.
    fn issues(&mut self, size: u32, run: Run) -> Result<Option<Issued>, SessionError<L::Error>> {
        let Some(Course { polls, busy, .. }) = self.course(size, run)? else { return Ok(None) };
        let busy = without_reading(&self.clock, busy);
        let readings = if run.delta == Picos::ZERO { 0 } else { u64::from(run.requests) };
        let time = busy.since(Picos(self.clock.read_cost().0.saturating_mul(readings)));
        let without_polls = time.since(Picos(run.poll.0.saturating_mul(polls)));
        Ok(Some(Issued { time, without_polls }))
    }

    /// Sends messages in both directions at the same time: `messages` of `size` bytes, each
    /// answered by one of the same size, with at most `window` outstanding. Returns the time from
    /// the first send to the last answer, or `None` if a message was lost.
    ///
    /// The link has to buffer `window - 1` messages; otherwise both ends block until the link's
    /// time limit.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn both_ways(
        &mut self,
        size: u32,
        messages: u32,
        window: u32,
    ) -> Result<Option<Picos>, SessionError<L::Error>> {
        let zero = Picos::ZERO;
        let run = Run { requests: messages, window: window.max(1), delta: zero, poll: zero };
        let course = self.course(size, run)?;
        Ok(course.map(|course| without_reading(&self.clock, course.whole)))
    }

    /// Issues the requests of `run` and receives all replies; `None` if a message was lost.
    fn course(&mut self, size: u32, run: Run) -> Result<Option<Course>, SessionError<L::Error>> {
        let Some(limit) = self.begin_round(run.round(size), run.delta)? else { return Ok(None) };
        let ticks = self.clock.ticks(run.delta);
        let Self { clock, link, buffers, poller, .. } = self;
        let (message, reply) = windows(buffers, size, size);
        // Sends may remain incomplete until the last reply has arrived.
        let course = link.exchange(message, reply, |link, reply| {
            let (mut replies, mut polls, mut overshoot) = (0, 0, 0);
            let started = clock.now();
            let deadline = Deadline { since: started, limit };
            let mut lost = false;
            for issued in 1..=run.requests {
                link.send(message)?;
                while replies < issued {
                    if link.poll_receive(reply)?.is_some() {
                        replies += 1;
                    } else if issued - replies < run.window {
                        polls += 1;
                        break;
                    } else if poller.receive(clock, link, reply, deadline)?.is_some() {
                        replies += 1;
                    } else {
                        lost = true;
                        break;
                    }
                }
                if ticks > 0 {
                    overshoot += wait(clock, ticks);
                }
            }
            let busy = clock.now().saturating_sub(started).saturating_sub(overshoot);
            while replies < run.requests && !lost {
                let arrived = poller.receive(clock, link, reply, deadline)?;
                replies += u32::from(arrived.is_some());
                lost = arrived.is_none();
            }
            let whole = clock.now().saturating_sub(started);
            Ok(Course { replies, lost, polls, busy, whole })
        });
        let course = course.map_err(SessionError::Link)?;
        if course.lost {
            return self.lose_round(run.requests, course.replies).map(|()| None);
        }
        self.end_round(run.requests, run.requests, course.whole);
        Ok(Some(course))
    }

    /// Cost of a poll that finds no message.
    fn empty_poll(&mut self) -> Result<Picos, SessionError<L::Error>> {
        let Self { clock, link, buffers, traffic, .. } = self;
        let (message, reply) = windows(buffers, 1, 1);
        // Under the conditions of a run, in which a receive may be posted.
        let ticks = link.exchange(message, reply, |link, reply| {
            let started = clock.now();
            for _ in 0..POLLS {
                traffic.strays += u64::from(link.poll_receive(reply)?.is_some());
            }
            Ok(clock.now().saturating_sub(started))
        });
        let ticks = ticks.map_err(SessionError::Link)?;
        Ok(Picos(without_reading(clock, ticks).0 / u64::from(POLLS)))
    }
}

/// Busy-waits for `ticks` and returns the excess over them.
fn wait<C: Clock>(clock: &C, ticks: u64) -> u64 {
    let from = clock.now();
    loop {
        let kept = clock.now().saturating_sub(from);
        if kept >= ticks {
            return kept - ticks;
        }
    }
}
