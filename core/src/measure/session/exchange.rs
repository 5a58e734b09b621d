//! Control messages of an initiator's session, and the handling of rounds between the timed loops.

use core::ops::ControlFlow;

use crate::measure::session::batch::Batch;
use crate::measure::session::kernel::{self, Expected, Ticks, Timer};
use crate::measure::session::retransmission::Exchange;
use crate::measure::{
    Clock, Deadline, Experiment, Initiator, Link, Outcome, Phase, Quantity, Sample, SessionError,
    SessionOptions,
};
use crate::slice::copy;
use crate::units::{PerByte, Picos};
use crate::wide::times;
use crate::wire::{
    CAPABILITY_DESCRIPTION, DescriptionPart, DescriptionRequest, FRAME_LEN, Hello, Refusal, Reply,
    Request, Round, Versions, Welcome, tag_of,
};

/// Longest pause between rounds, in which the responder receives nothing.
const LONGEST_REST: Picos = Picos(200_000_000_000);

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// Sends hello until a welcome arrives. A repeated hello carries no nonce, since the one
    /// received earlier may have expired.
    pub(in crate::measure) fn handshake(
        &mut self,
        options: &SessionOptions,
        mut on_queue: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), SessionError<L::Error>> {
        let bounds = self.agreed;
        let hello = |nonce| {
            let (versions, capabilities) = (Versions::OURS, CAPABILITY_DESCRIPTION);
            Request::Hello(Hello { versions, capabilities, bounds, nonce })
        };
        let mut phase = Phase::Handshake;
        let mut tries = if self.datagrams { self.tries } else { 1 };
        let mut challenges = if self.datagrams { self.tries } else { 0 };
        let mut limit = options.handshake;
        let mut ticks = self.clock.ticks(limit) / u64::from(tries);
        self.send_control(&hello(0))?;
        loop {
            let deadline = self.deadline(ticks);
            match self.receive_control(phase, deadline)? {
                Some(Reply::Welcome(welcome)) => return self.welcomed(&welcome),
                Some(Reply::Challenge { nonce }) if challenges > 0 => {
                    challenges -= 1;
                    self.send_control(&hello(nonce))?;
                }
                Some(Reply::Queue { position }) => {
                    if on_queue(position).is_break() {
                        let waiting = u64::from(position);
                        return Err(SessionError::Refused(Refusal::Busy { waiting }));
                    }
                    (phase, limit, tries) = (Phase::Queue, options.queue, 1);
                    ticks = self.clock.ticks(limit);
                }
                Some(other) => return Err(out_of_order(phase, &other)),
                None => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(SessionError::Silent { phase, limit });
                    }
                    self.send_control(&hello(0))?;
                }
            }
        }
    }

    fn welcomed(&mut self, welcome: &Welcome) -> Result<(), SessionError<L::Error>> {
        let version = welcome.version;
        let responder = Versions { lowest: version, highest: version };
        let initiator = Versions::OURS;
        if initiator.newest_common(responder).is_none() {
            return Err(SessionError::Refused(Refusal::Version { initiator, responder }));
        }
        self.agreed = self.agreed.narrowed(welcome.bounds);
        self.described = welcome.capabilities & CAPABILITY_DESCRIPTION != 0;
        Ok(())
    }

    /// Copies the part of the responder's description at `offset` to the front of `text`. Returns
    /// the number of bytes copied, which is below the length of a part at the end, or `None` if no
    /// answer arrived on a datagram link.
    pub(in crate::measure) fn description_part(
        &mut self,
        offset: usize,
        text: &mut [u8],
    ) -> Result<Option<usize>, SessionError<L::Error>> {
        let request = DescriptionRequest { offset: u32::try_from(offset).unwrap_or(u32::MAX) };
        let tries = if self.datagrams { self.tries } else { 1 };
        for _ in 0..tries {
            request.emit(self.control_frame()?);
            self.send_frame()?;
            let deadline = self.deadline(self.control_limit());
            while let Some(reply) = self.receive_control(Phase::Description, deadline)? {
                let part = DescriptionPart::parse(self.buffers.incoming);
                match part {
                    Ok(part) if part.offset == request.offset => {
                        let count = part.bytes.len().min(text.len());
                        copy(part.bytes.get(..count).unwrap_or_default(), text);
                        self.learn(deadline.since);
                        return Ok(Some(count));
                    }
                    // Late answer to an earlier request.
                    _ if self.datagrams => {}
                    _ => return Err(out_of_order(Phase::Description, &reply)),
                }
            }
            self.timeout.on_loss();
        }
        if self.datagrams {
            return Ok(None);
        }
        Err(self.silent(Phase::Description, self.timeout.longest))
    }

    /// Announces `rounds` and waits until the responder is ready. False if it did not answer in
    /// time on a datagram link.
    pub(in crate::measure) fn announce(
        &mut self,
        rounds: &[Round],
    ) -> Result<bool, SessionError<L::Error>> {
        self.send_control(&Request::Batch { sequence: self.sequence, rounds })?;
        self.await_ready()
    }

    /// Announces the first `experiments` in one batch; returns their number. [`Self::await_ready`]
    /// waits for the answer.
    // A function of its own, so that the rounds are not on the stack during the batch.
    #[inline(never)]
    pub(in crate::measure) fn send_batch(
        &mut self,
        experiments: &[Experiment],
    ) -> Result<usize, SessionError<L::Error>> {
        let batch = Batch::of(experiments, self.agreed.rounds);
        self.send_control(&Request::Batch { sequence: self.sequence, rounds: &batch.rounds })?;
        Ok(batch.taken)
    }

    /// Waits until the responder is ready for the announced batch. False if it did not answer in
    /// time on a datagram link.
    pub(in crate::measure) fn await_ready(&mut self) -> Result<bool, SessionError<L::Error>> {
        let sequence = self.sequence;
        let deadline = self.deadline(self.control_limit());
        loop {
            match self.receive_control(Phase::Batch, deadline)? {
                Some(Reply::Ready { sequence: ready }) if ready == sequence => {
                    self.learn(deadline.since);
                    return Ok(true);
                }
                // Late answers to earlier requests.
                Some(_) if self.datagrams => {}
                Some(other) => return Err(out_of_order(Phase::Batch, &other)),
                None if self.datagrams => {
                    self.timeout.on_loss();
                    return Ok(false);
                }
                None => return Err(self.silent(Phase::Batch, self.timeout.longest)),
            }
        }
    }

    /// Runs the announced `experiments` and returns the number completed: all, or those up to and
    /// including the first one lost.
    pub(in crate::measure) fn rounds(
        &mut self,
        experiments: &[Experiment],
        each: &mut impl FnMut(Outcome),
    ) -> Result<usize, SessionError<L::Error>> {
        let first = self.sequence;
        let count = u32::try_from(experiments.len()).unwrap_or(u32::MAX);
        for (done, experiment) in experiments.iter().enumerate() {
            match self.round(experiment)? {
                Some((_, false)) => each(Outcome::Late(*experiment)),
                Some((sample, true)) => each(Outcome::Sample(sample)),
                None => {
                    each(Outcome::Lost(*experiment));
                    self.sequence = first.wrapping_add(count);
                    self.synchronise()?;
                    return Ok(done + 1);
                }
            }
        }
        Ok(experiments.len())
    }

    /// Runs one timed round. The flag is false if the reply arrived only after the start of a timed
    /// receive; `None` if the reply was lost.
    fn round(
        &mut self,
        experiment: &Experiment,
    ) -> Result<Option<(Sample, bool)>, SessionError<L::Error>> {
        self.rest(experiment);
        let timed = self.timed(experiment);
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(experiment.messages);
        let Some(ticks) = timed? else {
            self.traffic.rounds_lost += 1;
            self.timeout.on_loss();
            return Ok(None);
        };
        self.account(experiment, ticks);
        let delay = match experiment.quantity {
            Quantity::RoundTrip | Quantity::Gap => Picos::ZERO,
            Quantity::Paced => {
                kernel::mean_delay(&self.clock, ticks.waited, experiment.messages.saturating_sub(1))
            }
            Quantity::Receive => kernel::mean_delay(&self.clock, ticks.waited, 1),
        };
        let elapsed = kernel::without_reading(&self.clock, ticks.elapsed);
        Ok(Some((Sample { experiment: *experiment, delay, elapsed }, ticks.prompt)))
    }

    /// Waits until the link has recovered from the previous round, and computes the time at which
    /// it will have recovered from `experiment`.
    fn rest(&mut self, experiment: &Experiment) {
        if self.sustained == PerByte::ZERO {
            return;
        }
        let mut now = self.clock.now();
        while now < self.rested_at {
            now = self.clock.now();
        }
        let passing = experiment.passing(self.sustained).min(LONGEST_REST);
        self.rested_at = now.saturating_add(self.clock.ticks(passing));
    }

    fn timed(&mut self, experiment: &Experiment) -> Result<Option<Ticks>, SessionError<L::Error>> {
        let size = usize::try_from(experiment.size).unwrap_or(usize::MAX);
        let tag = tag_of(self.sequence);
        let delay = self.clock.ticks(experiment.delay);
        let count = experiment.messages;
        let messages = u64::from(count) + 1;
        let limit = self.timeout.limit(messages, messages * u64::from(experiment.size));
        let limit = limit.saturating_add(times(delay, count.into()));
        let Some(message) = self.buffers.outgoing.get_mut(..size) else {
            return Err(SessionError::TooSmall { needed: size, lent: self.buffers.outgoing.len() });
        };
        if let Some(first) = message.first_mut() {
            *first = tag;
        }
        let expected = Expected { length: size, tag, datagrams: self.datagrams };
        let reply = &mut *self.buffers.incoming;
        let (clock, link) = (&self.clock, &mut self.link);
        let mut timer = Timer { clock, poller: &mut self.poller, limit, expected, strays: 0 };
        let ticks = match experiment.quantity {
            Quantity::RoundTrip | Quantity::Gap => timer.back_to_back(link, message, count, reply),
            Quantity::Paced => timer.paced(link, message, count, delay, reply),
            Quantity::Receive => timer.receive(link, message, delay, reply),
        };
        let strays = timer.strays;
        self.traffic.strays += strays;
        self.traffic.data_received += strays;
        let ticks = ticks.map_err(SessionError::Link)?;
        if ticks.is_some() || self.datagrams {
            Ok(ticks)
        } else if strays > 0 {
            let tag = self.buffers.incoming.first().copied().unwrap_or_default();
            Err(SessionError::Misplaced { tag })
        } else {
            Err(self.silent(Phase::Round, limit))
        }
    }

    /// Updates counters and retransmission timeout after a completed round.
    fn account(&mut self, experiment: &Experiment, ticks: Ticks) {
        self.traffic.data_received += 1;
        self.traffic.rounds += 1;
        self.traffic.late_replies += u64::from(!ticks.prompt);
        let whole = self.clock.duration(ticks.whole);
        self.traffic.in_rounds = Picos(self.traffic.in_rounds.0.saturating_add(whole.0));
        let messages = u64::from(experiment.messages) + 1;
        let busy = ticks.whole.saturating_sub(ticks.waited);
        let bytes = messages * u64::from(experiment.size);
        self.timeout.on_success(Exchange { ticks: busy, messages, bytes });
    }

    /// Aborts the batch on both ends and compares their counts.
    pub(in crate::measure) fn synchronise(&mut self) -> Result<(), SessionError<L::Error>> {
        let phase = Phase::Synchronisation;
        self.token = self.token.wrapping_add(1);
        let token = self.token;
        for _ in 0..self.tries {
            self.link.discard().map_err(SessionError::Link)?;
            self.send_control(&Request::Sync { token })?;
            let deadline = self.deadline(self.control_limit());
            while let Some(heard) = self.receive_control(phase, deadline)? {
                if let Reply::Synced { token: answered, received, replied } = heard
                    && answered == token
                {
                    self.compare(received, replied);
                    self.learn(deadline.since);
                    return Ok(());
                }
            }
            self.timeout.on_loss();
        }
        Err(self.silent(phase, self.timeout.longest))
    }

    /// Counts the messages that one end has sent and the other has not received.
    fn compare(&mut self, received: u64, replied: u64) {
        let there = self.traffic.data_sent.saturating_sub(received);
        let back = replied.saturating_sub(self.traffic.data_received);
        self.traffic.messages_lost = there.saturating_add(back);
    }

    /// Updates the retransmission timeout: a control frame sent at `since` was answered.
    fn learn(&mut self, since: u64) {
        let ticks = self.clock.now().saturating_sub(since);
        self.timeout.on_success(Exchange { ticks, messages: 2, bytes: 2 * FRAME_LEN as u64 });
    }

    /// Time limit for the answer to a control frame, in ticks.
    fn control_limit(&self) -> u64 {
        self.timeout.limit(2, 2 * FRAME_LEN as u64)
    }

    /// Deadline `limit` ticks from now.
    fn deadline(&self, limit: u64) -> Deadline {
        Deadline { since: self.clock.now(), limit }
    }

    pub(in crate::measure) fn silent(&self, phase: Phase, limit: u64) -> SessionError<L::Error> {
        SessionError::Silent { phase, limit: self.clock.duration(limit) }
    }

    /// Sends a control frame.
    pub(in crate::measure) fn send_control(
        &mut self,
        request: &Request<&[Round]>,
    ) -> Result<(), SessionError<L::Error>> {
        request.emit(self.control_frame()?);
        self.send_frame()
    }

    /// Buffer in which a control frame is built: the receive buffer, as no reply is on its way.
    fn control_frame(&mut self) -> Result<&mut [u8; FRAME_LEN], SessionError<L::Error>> {
        let lent = self.buffers.incoming.len();
        let frame = self.buffers.incoming.first_chunk_mut();
        frame.ok_or(SessionError::TooSmall { needed: FRAME_LEN, lent })
    }

    fn send_frame(&mut self) -> Result<(), SessionError<L::Error>> {
        let frame = self.buffers.incoming.get(..FRAME_LEN).unwrap_or_default();
        self.link.send(frame).map_err(SessionError::Link)?;
        self.traffic.control_sent += 1;
        Ok(())
    }

    /// Waits for a control frame until the deadline. On a datagram link everything else is skipped
    /// as a late reply.
    fn receive_control(
        &mut self,
        phase: Phase,
        deadline: Deadline,
    ) -> Result<Option<Reply<Picos>>, SessionError<L::Error>> {
        loop {
            if self.clock.now().saturating_sub(deadline.since) > deadline.limit {
                return Ok(None);
            }
            let whole = if self.datagrams { self.buffers.incoming.len() } else { FRAME_LEN };
            let window = self.buffers.incoming.get_mut(..whole).unwrap_or_default();
            let arrived = self
                .poller
                .receive(&self.clock, &mut self.link, window, deadline)
                .map_err(SessionError::Link)?;
            let Some(length) = arrived else { return Ok(None) };
            let message = window.get(..length).unwrap_or_default();
            match Reply::parse(message) {
                Ok(Reply::Refuse(refusal)) => return Err(SessionError::Refused(refusal)),
                Ok(message) => {
                    self.traffic.control_received += 1;
                    return Ok(Some(message));
                }
                // Until the first control frame, malformed data may mean that the peer speaks
                // another protocol.
                Err(_) if self.datagrams && self.traffic.control_received > 0 => {
                    self.traffic.data_received += 1;
                    self.traffic.strays += 1;
                }
                Err(error) => return Err(SessionError::Malformed { phase, error }),
            }
        }
    }
}

const fn out_of_order<E>(phase: Phase, reply: &Reply<Picos>) -> SessionError<E> {
    SessionError::OutOfOrder { phase, kind: reply.kind() }
}

/// Fills a buffer with bytes that differ, so that no link compresses them, and that do not look
/// like the beginning of a control frame.
pub(in crate::measure) fn fill(buffer: &mut [u8]) {
    let mut state = 0x2545_f491_u32;
    for byte in buffer {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = state.to_be_bytes()[0] & 0x7f;
    }
}
