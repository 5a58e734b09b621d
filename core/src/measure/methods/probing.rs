//! Timing of probes within a session.

use crate::measure::methods::probe::{Probe, ProbeKind, ProbeTime};
use crate::measure::session::batch::beyond;
use crate::measure::session::kernel::without_reading;
use crate::measure::{
    Buffers, Clock, Deadline, Initiator, Link, Outcome, Phase, Poller, SessionError,
};
use crate::units::{Picos, SignedPicos};
use crate::wide::times;
use crate::wire::{Round, tag_of};

/// Most repetitions of a probe in a row: the batch of Culler et al., section 3.3.
pub const PROBE_BATCH: u16 = 50;
/// Number of empty polls that are timed together.
const POLLS: u32 = 32;

/// Times of a run in ticks.
struct Run {
    /// Part that the probe's kind names.
    part: u64,
    /// Until the end of the last receive.
    whole: u64,
    /// Readings of the clock within the part and within the whole, besides the last.
    part_readings: u32,
    whole_readings: u32,
    /// Number of empty polls in the part while the sender was free to send.
    polls: u64,
    /// Replies received; fewer than expected if one did not arrive in time.
    replies: u32,
    /// Requests without a reply at the end of the last issue.
    unanswered: u32,
}

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// Times `probe` `repeats` times in a row, at most [`PROBE_BATCH`], and passes each timing to
    /// `each`. False if a message was lost, which ends the batch.
    ///
    /// # Errors
    ///
    /// As [`Initiator::run`].
    pub fn probe(
        &mut self,
        probe: &Probe,
        repeats: u16,
        mut each: impl FnMut(ProbeTime),
    ) -> Result<bool, SessionError<L::Error>> {
        let repeats = repeats.clamp(1, PROBE_BATCH);
        if let Some(experiment) = probe.experiment() {
            let batch = [experiment; PROBE_BATCH as usize];
            let mut is_whole = true;
            self.run(batch.get(..repeats.into()).unwrap_or(&batch), |outcome| match outcome {
                Outcome::Sample(sample) => {
                    let time = signed(sample.elapsed);
                    each(ProbeTime { time, whole: time, unanswered: 0 });
                }
                Outcome::Late(_) | Outcome::Lost(_) => is_whole = false,
            })?;
            return Ok(is_whole);
        }
        let is_issue = matches!(probe.kind, ProbeKind::Issue { .. });
        let poll = if is_issue { self.empty_poll()? } else { Picos::ZERO };
        let round = probe.round(repeats);
        let Some(limit) = self.begin_rounds(&round, probe.delay)? else { return Ok(false) };
        let last = self.sequence.wrapping_add(u32::from(repeats));
        for _ in 0..repeats {
            let run = self.timed_run(probe, limit)?;
            if run.replies < round.replies() {
                self.sequence = last;
                return self.lose_rounds(&round, run.replies).map(|()| false);
            }
            self.end_round(&round, run.whole);
            each(self.without_costs(&run, poll));
        }
        Ok(true)
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
        let (window, handler) = (window.max(1), Picos::ZERO);
        let kind = ProbeKind::Issue { window, reply: size, handler };
        let mut elapsed = None;
        let probe = Probe { size, kind, messages, delay: Picos::ZERO };
        self.probe(&probe, 1, |time| elapsed = time.whole.picos())?;
        Ok(elapsed)
    }

    /// Time of a run without the cost of readings and of `polls`, each of which costs `poll`.
    fn without_costs(&self, run: &Run, poll: Picos) -> ProbeTime {
        let without = |ticks, readings: u32, polls: u64| {
            let costs = times(self.clock.read_cost().0, readings.into());
            let costs = costs.saturating_add(times(poll.0, polls));
            let time = signed(without_reading(&self.clock, ticks));
            SignedPicos(time.0.saturating_sub_unsigned(costs))
        };
        ProbeTime {
            time: without(run.part, run.part_readings, run.polls),
            whole: without(run.whole, run.whole_readings, 0),
            unanswered: run.unanswered,
        }
    }

    fn timed_run(&mut self, probe: &Probe, limit: u64) -> Result<Run, SessionError<L::Error>> {
        if let Some(first) = self.buffers.outgoing.first_mut() {
            *first = tag_of(self.sequence);
        }
        let ticks = self.clock.ticks(probe.delay);
        let Self { clock, link, buffers, poller, .. } = self;
        let Round { size, reply_size, .. } = probe.round(1);
        let (message, reply) = windows(buffers, size, reply_size);
        let mut timer = ProbeTimer { clock, poller, limit, ticks };
        let run = match probe.kind {
            ProbeKind::Issue { window, .. } => link.exchange(message, reply, |link, reply| {
                timer.issue(link, message, probe.messages, window, reply)
            }),
            _ => timer.burst(link, message, probe.messages, reply),
        };
        run.map_err(SessionError::Link)
    }

    /// Announces `round`, in which an end waits `delay` or its pause for each message, and returns
    /// the time limit of a repetition in ticks; `None` if the responder did not answer on a datagram
    /// link.
    fn begin_rounds(
        &mut self,
        round: &Round,
        delay: Picos,
    ) -> Result<Option<u64>, SessionError<L::Error>> {
        self.agreed.check(core::slice::from_ref(round)).map_err(beyond)?;
        if !self.announce(core::slice::from_ref(round))? {
            self.synchronise()?;
            return Ok(None);
        }
        let messages = u64::from(round.messages) + u64::from(round.replies());
        let bytes = u64::from(round.messages) * u64::from(round.size)
            + u64::from(round.replies()) * u64::from(round.reply_size);
        let waits =
            self.clock.ticks(delay.max(round.pause)).saturating_mul(u64::from(round.messages));
        Ok(Some(self.timeout.limit(messages, bytes).saturating_add(waits)))
    }

    /// Counts a completed repetition of `round` that took `whole` ticks.
    fn end_round(&mut self, round: &Round, whole: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(round.messages);
        self.traffic.data_received += u64::from(round.replies());
        self.traffic.rounds += 1;
        let whole = self.clock.duration(whole);
        self.traffic.in_rounds = Picos(self.traffic.in_rounds.0.saturating_add(whole.0));
    }

    /// Abandons the rest of the announced repetitions, of which one received only `replies`.
    fn lose_rounds(&mut self, round: &Round, replies: u32) -> Result<(), SessionError<L::Error>> {
        self.traffic.data_sent += u64::from(round.messages);
        self.traffic.data_received += u64::from(replies);
        if !self.datagrams {
            return Err(self.silent(Phase::Round, self.timeout.longest));
        }
        self.traffic.rounds_lost += 1;
        self.timeout.on_loss();
        self.synchronise()
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

/// Clock, poller and time limits of a run, in ticks.
struct ProbeTimer<'a, C> {
    clock: &'a C,
    poller: &'a mut Poller,
    limit: u64,
    /// Computation after each request, or idle time before the receive.
    ticks: u64,
}

impl<C: Clock> ProbeTimer<'_, C> {
    /// Sends `message` `count` times, is idle for the delay, and receives the reply. The part is all
    /// send calls or, after an idle time, the receive call.
    fn burst<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        count: u32,
        reply: &mut [u8],
    ) -> Result<Run, L::Error> {
        let Self { clock, poller, limit, ticks } = self;
        let ((started, sent, from), first) = link.train(message, |link| {
            link.receive_after(reply, |link| {
                let started = clock.now();
                for _ in 0..count {
                    link.send(message)?;
                }
                let sent = clock.now();
                let from =
                    if *ticks > 0 { until(*clock, sent.saturating_add(*ticks)) } else { sent };
                Ok((started, sent, from))
            })
        })?;
        let deadline = Deadline { since: started, limit: *limit };
        let arrived = match first {
            Some(length) => Some(length),
            None => poller.receive(*clock, link, reply, deadline)?,
        };
        let ended = clock.now();
        let part =
            if *ticks > 0 { ended.saturating_sub(from) } else { sent.saturating_sub(started) };
        let (whole, replies) = (ended.saturating_sub(started), u32::from(arrived.is_some()));
        Ok(Run {
            part,
            whole,
            part_readings: 0,
            whole_readings: 1,
            polls: 0,
            replies,
            unanswered: 0,
        })
    }

    /// Issues `requests` requests, computes for the delay after each, and receives all replies.
    /// After each issue all replies that have arrived are consumed. The part is `T(M, Δ)`, from
    /// before the first issue to the end of the last delay, without the excess of the delays.
    fn issue<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        requests: u32,
        window: u32,
        reply: &mut [u8],
    ) -> Result<Run, L::Error> {
        let Self { clock, poller, limit, ticks } = self;
        let (mut replies, mut polls, mut overshoot) = (0, 0, 0);
        let (mut stalled, mut lost) = (false, false);
        let started = clock.now();
        let deadline = Deadline { since: started, limit: *limit };
        for issued in 1..=requests {
            link.send(message)?;
            while replies < issued && !lost {
                if link.poll_receive(reply)?.is_some() {
                    replies += 1;
                } else if issued - replies < window {
                    // Once the sender waits for the network, polls are part of its idle time.
                    polls += u64::from(!stalled);
                    break;
                } else {
                    stalled = true;
                    lost = poller.receive(*clock, link, reply, deadline)?.is_none();
                    replies += u32::from(!lost);
                }
            }
            if *ticks > 0 {
                overshoot += wait(*clock, *ticks);
            }
        }
        let part = clock.now().saturating_sub(started).saturating_sub(overshoot);
        let unanswered = requests - replies;
        while replies < requests && !lost {
            lost = poller.receive(*clock, link, reply, deadline)?.is_none();
            replies += u32::from(!lost);
        }
        let whole = clock.now().saturating_sub(started);
        let part_readings = if *ticks > 0 { requests } else { 0 };
        Ok(Run { part, whole, part_readings, whole_readings: 0, polls, replies, unanswered })
    }
}

/// Beginnings of both buffers, of the given lengths.
fn windows<'b>(
    buffers: &'b mut Buffers<'_>,
    message: u32,
    reply: u32,
) -> (&'b mut [u8], &'b mut [u8]) {
    let length = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (message, reply) = (length(message), length(reply));
    (
        buffers.outgoing.get_mut(..message).unwrap_or_default(),
        buffers.incoming.get_mut(..reply).unwrap_or_default(),
    )
}

fn signed(time: Picos) -> SignedPicos {
    SignedPicos(i64::try_from(time.0).unwrap_or(i64::MAX))
}

/// Busy-waits until the clock shows `when` and returns the last reading.
fn until<C: Clock>(clock: &C, when: u64) -> u64 {
    loop {
        let now = clock.now();
        if now >= when {
            return now;
        }
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
