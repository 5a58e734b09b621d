//! What an initiator's session says and hears between the timed loops.

use core::ops::ControlFlow;

use super::batch::Batch;
use super::kernel::{self, Expected, Ticks, Timer};
use super::patience::Exchange;
use super::{
    Clock, Deadline, Experiment, Initiator, Link, Outcome, Phase, Quantity, Sample, SessionError,
    SessionOptions,
};
use crate::units::Picos;
use crate::wide::times;
use crate::wire::{FRAME_LEN, Hello, Refusal, Reply, Request, Round, Versions, tag_of};

impl<C: Clock, L: Link> Initiator<'_, C, L> {
    /// Says hello until welcomed.
    pub(super) fn greet(
        &mut self,
        options: &SessionOptions,
        mut on_queue: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), SessionError<L::Error>> {
        let bounds = self.agreed;
        let hello = Request::Hello(Hello { versions: Versions::OURS, capabilities: 0, bounds });
        let mut phase = Phase::Handshake;
        let mut tries = if self.datagrams { self.tries } else { 1 };
        let mut limit = options.handshake;
        let mut ticks = self.clock.ticks(limit) / u64::from(tries);
        self.say(&hello)?;
        loop {
            let deadline = self.deadline(ticks);
            match self.hear(phase, deadline)? {
                Some(Reply::Welcome(welcome)) => {
                    let version = welcome.version;
                    let responder = Versions { lowest: version, highest: version };
                    let initiator = Versions::OURS;
                    if initiator.newest_common(responder).is_none() {
                        let mismatch = Refusal::Version { initiator, responder };
                        return Err(SessionError::Refused(mismatch));
                    }
                    self.agreed = bounds.narrowed(welcome.bounds);
                    return Ok(());
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
                    self.say(&hello)?;
                }
            }
        }
    }

    /// Announces `rounds` and waits until the responder is ready. False when
    /// it did not answer in time on a datagram link.
    pub(super) fn announce(&mut self, rounds: &[Round]) -> Result<bool, SessionError<L::Error>> {
        self.say(&Request::Batch { sequence: self.sequence, rounds })?;
        self.is_ready()
    }

    /// Announces as many of `experiments` as go into one batch, and says how
    /// many; [`Self::is_ready`] waits for the answer.
    // On its own, so that the rounds are not on the stack during the batch.
    #[inline(never)]
    pub(super) fn say_batch(
        &mut self,
        experiments: &[Experiment],
    ) -> Result<usize, SessionError<L::Error>> {
        let batch = Batch::of(experiments, self.agreed.rounds);
        self.say(&Request::Batch { sequence: self.sequence, rounds: &batch.rounds })?;
        Ok(batch.taken)
    }

    /// Waits until the responder is ready for the batch that was announced.
    /// False when it did not answer in time on a datagram link.
    pub(super) fn is_ready(&mut self) -> Result<bool, SessionError<L::Error>> {
        let sequence = self.sequence;
        let deadline = self.deadline(self.control_limit());
        loop {
            match self.hear(Phase::Batch, deadline)? {
                Some(Reply::Ready { sequence: ready }) if ready == sequence => {
                    self.learn(deadline.since);
                    return Ok(true);
                }
                // Late answers to what was repeated.
                Some(_) if self.datagrams => {}
                Some(other) => return Err(out_of_order(Phase::Batch, &other)),
                None if self.datagrams => {
                    self.patience.on_loss();
                    return Ok(false);
                }
                None => return Err(self.silent(Phase::Batch, self.patience.longest)),
            }
        }
    }

    /// Runs the announced `experiments` and returns how many are done: all,
    /// or up to and with the first that was lost.
    pub(super) fn rounds(
        &mut self,
        experiments: &[Experiment],
        each: &mut impl FnMut(Outcome),
    ) -> Result<usize, SessionError<L::Error>> {
        let first = self.sequence;
        let count = u32::try_from(experiments.len()).unwrap_or(u32::MAX);
        for (done, experiment) in experiments.iter().enumerate() {
            match self.round(experiment)? {
                Some(sample) => each(Outcome::Sample(sample)),
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

    /// One timed round; `None` when its reply did not come.
    fn round(&mut self, experiment: &Experiment) -> Result<Option<Sample>, SessionError<L::Error>> {
        let timed = self.timed(experiment);
        self.sequence = self.sequence.wrapping_add(1);
        self.traffic.data_sent += u64::from(experiment.messages);
        let Some(ticks) = timed? else {
            self.traffic.rounds_lost += 1;
            self.patience.on_loss();
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
        Ok(Some(Sample { experiment: *experiment, delay, elapsed }))
    }

    fn timed(&mut self, experiment: &Experiment) -> Result<Option<Ticks>, SessionError<L::Error>> {
        let size = usize::try_from(experiment.size).unwrap_or(usize::MAX);
        let tag = tag_of(self.sequence);
        let delay = self.clock.ticks(experiment.delay);
        let count = experiment.messages;
        let messages = u64::from(count) + 1;
        let limit = self.patience.limit(messages, messages * u64::from(experiment.size));
        let limit = limit.saturating_add(times(delay, count.into()));
        let Some(message) = self.buffers.outgoing.get_mut(..size) else {
            return Err(SessionError::TooSmall { needed: size, lent: self.buffers.outgoing.len() });
        };
        if let Some(first) = message.first_mut() {
            *first = tag;
        }
        let expected = Expected { length: size, tag, datagrams: self.datagrams };
        let reply = (&mut *self.buffers.incoming, expected);
        let (clock, link) = (&self.clock, &mut self.link);
        let mut timer = Timer { clock, link, watch: &mut self.watch, limit, strays: 0 };
        let ticks = match experiment.quantity {
            Quantity::RoundTrip | Quantity::Gap => timer.back_to_back(message, count, reply),
            Quantity::Paced => timer.paced(message, (count, delay), reply),
            Quantity::Receive => timer.receive(message, delay, reply),
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

    /// Counts a round that came to its end.
    fn account(&mut self, experiment: &Experiment, ticks: Ticks) {
        self.traffic.data_received += 1;
        self.traffic.rounds += 1;
        self.traffic.late_replies += u64::from(!ticks.prompt);
        let whole = self.clock.duration(ticks.whole);
        self.traffic.in_rounds = Picos(self.traffic.in_rounds.0.saturating_add(whole.0));
        let messages = u64::from(experiment.messages) + 1;
        let busy = ticks.whole.saturating_sub(ticks.waited);
        let bytes = messages * u64::from(experiment.size);
        self.patience.on_success(Exchange { ticks: busy, messages, bytes });
    }

    /// The round whose receives the responder times: its messages, and the
    /// reply. False when it was lost.
    pub(super) fn far_round(
        &mut self,
        messages: u32,
        size: u32,
        pause: Picos,
    ) -> Result<bool, SessionError<L::Error>> {
        let experiment = Experiment { quantity: Quantity::Gap, messages, delay: Picos::ZERO, size };
        let pauses = pause.0.saturating_mul(u64::from(messages));
        let allowance = self.clock.ticks(Picos(pauses));
        let longest = self.patience.longest;
        self.patience.longest = longest.saturating_add(allowance);
        let shortest = self.patience.shortest;
        self.patience.shortest = shortest.saturating_add(allowance);
        let outcome = self.round(&experiment);
        (self.patience.longest, self.patience.shortest) = (longest, shortest);
        outcome.map(|sample| sample.is_some())
    }

    /// The sum of receive times that the responder reports for the batch of
    /// one round at `sequence`.
    pub(super) fn report(
        &mut self,
        sequence: u32,
    ) -> Result<Option<Picos>, SessionError<L::Error>> {
        let deadline = self.deadline(self.control_limit());
        match self.hear(Phase::Report, deadline)? {
            Some(Reply::Report { sequence: of, values }) if of == sequence => Ok(Some(values)),
            None if !self.datagrams => Err(self.silent(Phase::Report, self.patience.longest)),
            Some(other) if !self.datagrams => Err(out_of_order(Phase::Report, &other)),
            _ => Ok(None),
        }
    }

    /// Drops everything under way on both sides and compares counts.
    pub(super) fn synchronise(&mut self) -> Result<(), SessionError<L::Error>> {
        let phase = Phase::Synchronisation;
        self.token = self.token.wrapping_add(1);
        let token = self.token;
        for _ in 0..self.tries {
            self.link.discard().map_err(SessionError::Link)?;
            self.say(&Request::Sync { token })?;
            let deadline = self.deadline(self.control_limit());
            while let Some(heard) = self.hear(phase, deadline)? {
                if let Reply::Synced { token: answered, received, replied } = heard
                    && answered == token
                {
                    self.compare(received, replied);
                    self.learn(deadline.since);
                    return Ok(());
                }
            }
            self.patience.on_loss();
        }
        Err(self.silent(phase, self.patience.longest))
    }

    /// Counts what one side has sent and the other has not got.
    fn compare(&mut self, received: u64, replied: u64) {
        let there = self.traffic.data_sent.saturating_sub(received);
        let back = replied.saturating_sub(self.traffic.data_received);
        self.traffic.messages_lost = there.saturating_add(back);
    }

    /// A control frame was answered that was sent at `since`.
    fn learn(&mut self, since: u64) {
        let ticks = self.clock.now().saturating_sub(since);
        self.patience.on_success(Exchange { ticks, messages: 2, bytes: 2 * FRAME_LEN as u64 });
    }

    /// Ticks to wait for an answer to a control frame.
    fn control_limit(&self) -> u64 {
        self.patience.limit(2, 2 * FRAME_LEN as u64)
    }

    /// `limit` ticks from now on.
    fn deadline(&self, limit: u64) -> Deadline {
        Deadline { since: self.clock.now(), limit }
    }

    pub(super) fn silent(&self, phase: Phase, limit: u64) -> SessionError<L::Error> {
        SessionError::Silent { phase, limit: self.clock.duration(limit) }
    }

    /// Sends a control frame. It is built where replies are received: none is
    /// on its way.
    pub(super) fn say(
        &mut self,
        request: &Request<&[Round]>,
    ) -> Result<(), SessionError<L::Error>> {
        let lent = self.buffers.incoming.len();
        let Some(frame) = self.buffers.incoming.first_chunk_mut() else {
            return Err(SessionError::TooSmall { needed: FRAME_LEN, lent });
        };
        request.emit(frame);
        self.link.send(frame).map_err(SessionError::Link)?;
        self.traffic.control_sent += 1;
        Ok(())
    }

    /// Waits for a control frame; on a datagram link anything else is a late
    /// reply and skipped. However much arrives, nothing is waited for beyond
    /// the deadline.
    fn hear(
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
                .watch
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
                Err(_) if self.datagrams && phase != Phase::Handshake => {
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

/// Fills a buffer with bytes that are neither all equal, so that no link
/// compresses them away, nor the begin of a control frame.
pub(super) fn fill(buffer: &mut [u8]) {
    let mut state = 0x2545_f491_u32;
    for byte in buffer {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = state.to_be_bytes()[0] & 0x7f;
    }
}
