//! The methods that repeat one procedure per size: sweeps over all sizes in
//! random order until every number is exact enough or the budget is spent.

use std::collections::BTreeMap;

use loggap_core::measure::{
    Assessment, Clock, Conclusion, Initiator, Link, MethodOptions, MethodSamples, PlanOptions,
    Progress, Sample, SampleStore, SessionError,
};
use loggap_core::random::Random;
use loggap_core::units::Picos;

use super::{AssessBuffers, Memory, Method};

/// Sweeps before the first assessment: enough for a 95% interval that tolerates outliers.
const FIRST_SWEEPS: u64 = 8;

/// Length from which on a repetition counts although an end was preempted: it outlasts time slices
/// and mostly waits for the link.
const SLICE: Picos = Picos(2_000_000_000);

/// Schedule of the signature or pLogP method.
#[derive(Debug)]
pub(super) struct Repetitions<'m> {
    pub(super) store: SampleStore<'m>,
    pub(super) memory: &'m mut AssessBuffers,
    method: Method,
    pub(super) options: PlanOptions,
    /// All sizes in the order of this sweep, and the number of them done.
    order: Vec<u32>,
    done: usize,
    random: Random,
    /// Number of sweeps whose samples count.
    sweeps: u64,
    /// True once the connection's first sweep, which does not count, is over.
    warm: bool,
    /// Shortest repetition of each size.
    shortest: BTreeMap<u32, Picos>,
    /// Messages sent over this connection, and over earlier ones.
    messages: u64,
    earlier_messages: u64,
    lost: u64,
    /// Rounds of repetitions that were discarded because an end was preempted.
    pub(super) left_out: u64,
    pub(super) conclusion: Option<Conclusion>,
}

impl<'m> Repetitions<'m> {
    pub(super) fn new(
        method: Method,
        sizes: &[u32],
        options: PlanOptions,
        memory: &'m mut Memory,
    ) -> Self {
        let (store, memory) = memory.lend_store();
        Self {
            store,
            memory,
            method,
            options,
            order: sizes.to_vec(),
            done: 0,
            random: Random::new(options.seed),
            sweeps: 0,
            warm: false,
            shortest: BTreeMap::new(),
            messages: 0,
            earlier_messages: 0,
            lost: 0,
            left_out: 0,
            conclusion: None,
        }
    }

    /// Drops sizes of more than `longest` bytes; if sizes may be added, `longest` itself is then
    /// the last one. False if there are none to drop, or no others.
    pub(super) fn limit_sizes(&mut self, longest: u32) -> bool {
        let kept = self.order.iter().filter(|size| **size <= longest).count();
        let is_limited = 0 < kept && kept < self.order.len();
        if is_limited {
            self.order.retain(|size| *size <= longest);
            if self.options.adapt_sizes && !self.order.contains(&longest) {
                self.order.push(longest);
            }
        }
        is_limited
    }

    pub(super) fn begin_launch(&mut self) {
        (self.warm, self.done) = (false, 0);
        // Every connection is measured, also after convergence.
        self.conclusion = self.conclusion.filter(|found| *found != Conclusion::Converged);
        self.earlier_messages = self.earlier_messages.saturating_add(self.messages);
        self.messages = 0;
    }

    /// True if there are enough sweeps for a first assessment.
    pub(super) const fn has_base(&self) -> bool {
        self.sweeps >= FIRST_SWEEPS
    }

    pub(super) fn conclude(&mut self, conclusion: Conclusion) {
        self.conclusion.get_or_insert(conclusion);
    }

    pub(super) const fn progress(&self) -> Progress {
        let messages = self.earlier_messages.saturating_add(self.messages);
        Progress { spent_ppm: 0, widest_ppm: None, messages, lost: self.lost }
    }

    /// Repeats the procedure at the next size; false once the run has concluded.
    pub(super) fn step<C: Clock, L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        keep: &mut impl FnMut(&Sample),
    ) -> Result<bool, SessionError<L::Error>> {
        if self.done == 0 {
            self.random.shuffle(&mut self.order);
        }
        let (None, Some(&size)) = (self.conclusion, self.order.get(self.done)) else {
            return Ok(false);
        };
        let (before, rounds) = (session.clock().interruptions(), session.traffic().rounds);
        let began = session.clock().now();
        let repeated = self.repeat(session, size)?;
        let took = session.clock().duration(session.clock().now().saturating_sub(began));
        let shortest = self.shortest.entry(size).or_insert(took);
        *shortest = took.min(*shortest);
        let is_disturbed = session.clock().interruptions() != before && *shortest < SLICE;
        match repeated {
            None => self.lost = self.lost.saturating_add(1),
            Some(_) if is_disturbed => self.left_out += session.traffic().rounds - rounds,
            Some(samples) if self.warm => {
                for sample in samples.as_slice() {
                    if self.store.insert(sample).is_err() {
                        self.conclude(Conclusion::MemorySpent);
                        return Ok(false);
                    }
                    keep(sample);
                }
            }
            Some(_) => {}
        }
        self.messages = session.traffic().messages();
        self.advance();
        Ok(true)
    }

    fn advance(&mut self) {
        self.done = self.done.saturating_add(1);
        if self.done == self.order.len() {
            self.done = 0;
            self.sweeps = self.sweeps.saturating_add(u64::from(self.warm));
            if self.warm && self.has_base() && self.has_converged() {
                self.conclude(Conclusion::Converged);
            }
            self.warm = true;
        }
        if self.progress().messages >= self.options.max_messages {
            self.conclude(Conclusion::MessagesSpent);
        }
    }

    /// True if there are numbers and every one has the requested accuracy.
    fn has_converged(&mut self) -> bool {
        let assessed: Result<Assessment, _> =
            Assessment::new(&self.store, &self.options.assess, &mut self.memory.lend());
        assessed.is_ok_and(|assessment| assessment.profile.converged())
    }

    fn repeat<C: Clock, L: Link>(
        &self,
        session: &mut Initiator<'_, C, L>,
        size: u32,
    ) -> Result<Option<MethodSamples>, SessionError<L::Error>> {
        let messages = self.options.messages;
        let options = MethodOptions { messages, ..MethodOptions::default() };
        match self.method {
            Method::Plogp => session.plogp(size, &options),
            Method::Prtt | Method::Signature => session.signature(size, &options),
        }
    }
}
