//! Schedule of a run: the plan of its method, and the time and messages of each launch.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use loggap_core::measure::{
    AssessError, AssessOptions, Assessment, Clock, Conclusion, Experiment, Initiator, Link,
    Progress, Quantity, Sample, SampleStore, SessionError, SizeRow, Traffic, floor,
};
use loggap_core::units::Picos;

use super::analysis::size_rows;
use super::observer::Status;
use super::probes::{Derived, ProbeMethod, Probes};
use super::rounds::Rounds;
use super::{Measured, MethodSeries, Observer};
use crate::machine::environment::Fingerprint;
use crate::samples::TimedSample;

/// Share of the time budget given to launches, percent; the rest is for closing the connections.
const LAUNCHED_PERCENT: u64 = 97;
/// Longest remaining wait that is spun, 50 ms; longer waits sleep in [`NAP`]s.
const LONGEST_SPIN: Picos = Picos(50_000_000_000);
/// Sleep during a wait; short enough for the observer to be called in time.
const NAP: Duration = Duration::from_millis(40);
/// A keep-alive round is due after the peer's silence limit divided by this.
const SILENCE_SHARE: u64 = 2;

/// Measuring plan of the method: PRTT rounds, with probes of other methods between them, or probes
/// alone.
#[derive(Debug)]
pub(super) enum Plan<'m> {
    Rounds(Box<Rounds<'m>>, Vec<Probes>),
    Probes(Box<Probes>, Derived<'m>),
}

impl Plan<'_> {
    /// True if `launch` has enough samples: those of an assessment or, after the first launch, one
    /// pass over all sizes.
    fn has_enough(&self, launch: u32) -> bool {
        match self {
            Self::Rounds(rounds, _) => rounds.planner.has_base(),
            Self::Probes(probes, _) => launch > 0 || probes.has_base(),
        }
    }

    /// Drops sizes of more than `longest` bytes before anything is measured; false if there are
    /// none to drop, or no others.
    fn limit_sizes(&mut self, longest: u32) -> bool {
        match self {
            Self::Rounds(rounds, _) => rounds.planner.limit_sizes(longest),
            Self::Probes(probes, _) => probes.limit_sizes(longest),
        }
    }

    fn store(&self) -> &SampleStore<'_> {
        match self {
            Self::Rounds(rounds, _) => rounds.planner.store(),
            Self::Probes(_, derived) => &derived.store,
        }
    }

    fn progress(&self) -> Progress {
        match self {
            Self::Rounds(rounds, _) => rounds.planner.progress(Picos::ZERO),
            Self::Probes(probes, _) => probes.progress(),
        }
    }

    fn conclusion(&self) -> Option<Conclusion> {
        match self {
            Self::Rounds(rounds, _) => rounds.planner.conclusion(),
            Self::Probes(probes, _) => probes.conclusion,
        }
    }

    /// Number of rounds discarded because their process was preempted.
    fn left_out(&self) -> u64 {
        match self {
            Self::Rounds(rounds, beside) => {
                let of_probes: u64 = beside.iter().map(|probes| probes.left_out).sum();
                rounds.planner.disturbed().saturating_add(of_probes)
            }
            Self::Probes(probes, _) => probes.left_out,
        }
    }

    /// Messages that a launch with this many `further` ones may spread over its time; `None` if
    /// unlimited.
    fn messages_of_launch(&self, further: u32) -> Option<u64> {
        match self {
            Self::Rounds(rounds, _) => rounds.messages_of_launch(further),
            Self::Probes(..) => None,
        }
    }

    /// End of the launches, where it depends on the link and the machine.
    fn end(&self) -> Option<Picos> {
        match self {
            Self::Rounds(rounds, _) => {
                let (allowed, last) = (rounds.planner.allowed(), rounds.planner.last_poll());
                Some(scaled(allowed, LAUNCHED_PERCENT, 100).min(last))
            }
            Self::Probes(..) => None,
        }
    }

    fn begin_launch(&mut self) {
        match self {
            Self::Rounds(rounds, beside) => {
                rounds.planner.begin_launch();
                beside.iter_mut().for_each(Probes::begin_launch);
            }
            Self::Probes(probes, _) => probes.begin_launch(),
        }
    }

    fn step<C: Clock, L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        now: Picos,
        keep: &mut impl FnMut(&Sample),
    ) -> Result<bool, SessionError<L::Error>> {
        match self {
            Self::Rounds(rounds, _) => {
                let has_run = rounds.planner.run_batch(session, now, keep)?;
                Ok(self.step_beside(session, now)? || has_run)
            }
            Self::Probes(probes, _) => probes.step(session, now),
        }
    }

    /// Times a batch of probes between the rounds, of each method in turn; false if none is missing.
    fn step_beside<C: Clock, L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        now: Picos,
    ) -> Result<bool, SessionError<L::Error>> {
        let Self::Rounds(_, beside) = self else { return Ok(false) };
        for turn in 0..beside.len() {
            let Some(probes) = beside.get_mut(turn) else { break };
            if probes.step(session, now)? {
                beside.rotate_left(turn + 1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Accuracy, parameters, and the table by size; `samples` of probes are computed now.
    fn assess(&mut self, samples: &mut Vec<TimedSample>) -> Assessed {
        let (exact, assessment) = match self {
            Self::Rounds(rounds, beside) => {
                beside.iter_mut().for_each(Probes::update);
                (rounds.planner.exactness(), rounds.planner.assess())
            }
            Self::Probes(probes, derived) => {
                let (found, assessment) = derived.assess(probes);
                *samples = found;
                (probes.options.assess, assessment)
            }
        };
        Assessed { exact, assessment, rows: size_rows(self.store(), &exact) }
    }

    /// Probes with their timings.
    fn into_series(self) -> MethodSeries {
        let all = match self {
            Self::Rounds(_, beside) => beside,
            Self::Probes(probes, _) => vec![*probes],
        };
        let mut found = MethodSeries::default();
        for probes in all {
            match probes.method {
                ProbeMethod::Signature(_) => found.signature = probes.series,
                ProbeMethod::Plogp(..) => found.plogp = probes.series,
            }
        }
        found
    }
}

/// Outcome of an assessment.
struct Assessed {
    exact: AssessOptions,
    assessment: Result<Assessment, AssessError>,
    rows: Vec<SizeRow>,
}

/// Time slots of the launches, from the begin of the run: the first takes `length` from 0; the
/// further ones, of `length` each, follow from `start`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    start: Picos,
    length: Picos,
    end: Picos,
}

impl Slots {
    /// Begin and end of the slot of `launch`.
    fn of(&self, launch: u32) -> (Picos, Picos) {
        let Some(later) = launch.checked_sub(1) else { return (Picos::ZERO, self.length) };
        let at = |count: u32| {
            let passed = self.length.0.saturating_mul(u64::from(count));
            Picos(self.start.0.saturating_add(passed)).min(self.end)
        };
        (at(later), at(later.saturating_add(1)))
    }
}

/// Schedule of a run, without its buffers.
#[derive(Debug)]
pub(super) struct Course<'m, C> {
    pub(super) clock: C,
    /// Clock reading at the begin of the run.
    began: u64,
    plan: Plan<'m>,
    /// Numbers of launches planned and begun.
    launches: u32,
    pub(super) begun: u32,
    /// Time of the request for the latest link, and duration of opening a link.
    asked: Picos,
    pub(super) opening: Picos,
    /// Time at which the first launch had samples for an assessment; zero before.
    assessed: Picos,
    slots: Slots,
    is_broken_off: bool,
    samples: Vec<TimedSample>,
    traffic: Traffic,
    /// Longest message that the peer takes, bytes, if longer sizes were dropped.
    longest: Option<u32>,
    pub(super) responder: Option<Fingerprint>,
}

impl<'m, C: Clock + Copy> Course<'m, C> {
    /// Plans `launches` launches within `max_time`, which begins now.
    pub(super) fn new(clock: C, plan: Plan<'m>, launches: u32, max_time: Picos) -> Self {
        let end = scaled(max_time, LAUNCHED_PERCENT, 100);
        Self {
            began: clock.now(),
            clock,
            plan,
            launches,
            begun: 0,
            asked: Picos::ZERO,
            opening: Picos::ZERO,
            assessed: Picos::ZERO,
            slots: Slots { start: Picos::ZERO, length: Picos(end.0 / u64::from(launches)), end },
            is_broken_off: false,
            samples: Vec::new(),
            traffic: Traffic::default(),
            longest: None,
            responder: None,
        }
    }

    /// Drops sizes longer than the peer takes, unless it takes none.
    pub(super) fn limit_sizes(&mut self, longest: u32) {
        self.longest = self.plan.limit_sizes(longest).then_some(longest);
    }

    /// Restarts the time of the run.
    pub(super) fn begin(&mut self) {
        self.began = self.clock.now();
    }

    /// Ends the run and assesses its samples.
    pub(super) fn finish(mut self) -> Measured {
        let wall = self.now();
        let Assessed { exact, assessment, rows } = self.plan.assess(&mut self.samples);
        Measured {
            exact,
            conclusion: self.conclusion(),
            samples: self.samples,
            change_floor: match &self.plan {
                Plan::Rounds(rounds, _) => rounds.planner.change_floor(),
                Plan::Probes(..) => floor::CHANGE,
            },
            has_probes: !matches!(&self.plan, Plan::Rounds(_, beside) if beside.is_empty()),
            assessment,
            rows,
            left_out: self.plan.left_out(),
            traffic: self.traffic,
            responder: self.responder,
            longest: self.longest,
            reached: match &self.plan {
                Plan::Rounds(rounds, _) => rounds.planner.reached(),
                Plan::Probes(probes, _) => probes.reached(),
            },
            calls: Vec::new(),
            launches: self.begun,
            wall,
            series: self.plan.into_series(),
        }
    }

    /// Time since the run began.
    pub(super) fn now(&self) -> Picos {
        self.clock.duration(self.clock.now().saturating_sub(self.began))
    }

    pub(super) fn next_launch(&mut self, observer: &mut Observer<'_>) -> Option<u32> {
        if self.begun == 1 {
            self.plan_further_launches();
        }
        if self.begun >= self.launches || self.is_broken_off {
            return None;
        }
        let (begin, _) = self.slots.of(self.begun);
        let opened = Picos(begin.max(self.now()).0.saturating_add(self.opening.0));
        if self.begun > 0 && opened >= self.end() {
            return None;
        }
        while self.now() < begin {
            if self.tell(observer).is_break() {
                return None;
            }
            wait(begin.since(self.now()));
        }
        self.asked = self.now();
        Some(self.begun)
    }

    /// Records how long a launch's session took to open since its link was requested. The first
    /// link was opened before the run: the time of that is added.
    pub(super) fn opened(&mut self) {
        let before = if self.begun == 0 { self.opening } else { Picos::ZERO };
        self.opening = Picos(before.0.saturating_add(self.now().since(self.asked).0));
    }

    /// Divides the remaining time among further launches, whose duration is known from the first.
    fn plan_further_launches(&mut self) {
        self.slots.end = self.end();
        let left = self.slots.end.since(self.now());
        let wanted = self.launches.saturating_sub(1);
        if let Plan::Rounds(rounds, _) = &self.plan {
            self.launches = 1 + rounds.launches(wanted, self.opening, self.assessed, left);
        }
        let further = u64::from(self.launches.saturating_sub(1)).max(1);
        self.slots = Slots { start: self.now(), length: Picos(left.0 / further), ..self.slots };
    }

    pub(super) fn launch<L: Link>(
        &mut self,
        session: &mut Initiator<'_, C, L>,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<L::Error>> {
        let (launch, (_, mut end)) = (self.begun, self.slots.of(self.begun));
        self.begun = launch.saturating_add(1);
        self.plan.begin_launch();
        let pace = Pace {
            began: self.now(),
            end,
            messages: self.plan.messages_of_launch(self.launches.saturating_sub(launch)),
            spent: self.plan.progress().messages,
        };
        while self.tell(observer).is_continue() {
            let now = self.now();
            let has_enough = self.plan.has_enough(launch);
            if has_enough && self.assessed == Picos::ZERO {
                self.assessed = now;
            }
            if launch == 0 && now >= end && has_enough {
                // No further launch fits: the first continues to the end.
                self.plan_further_launches();
                end = if self.launches > 1 { end } else { self.end() };
            }
            if now >= self.end() || now >= end && has_enough {
                break;
            }
            let Self { plan, samples, clock, began, .. } = self;
            let mut keep = |sample: &Sample| {
                let time = clock.duration(clock.now().saturating_sub(*began));
                samples.push(TimedSample { sample: *sample, launch, time });
            };
            if !plan.step(session, now, &mut keep)? {
                break;
            }
            self.wait_for_pace(&pace, session, observer)?;
        }
        Ok(())
    }

    /// Waits until the share of the launch's time that has passed equals the share of its messages
    /// that is spent. The samples then cover the whole time, because a machine is slower or faster
    /// for tenths of a second at a time. A silent peer counts as gone, so keep-alive rounds, which
    /// do not count, are run during long waits. Probes between the rounds fill the time.
    fn wait_for_pace<L: Link>(
        &mut self,
        pace: &Pace,
        session: &mut Initiator<'_, C, L>,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError<L::Error>> {
        let due = pace.due(self.plan.progress().messages);
        let patience = Picos(session.bounds().silence.0 / SILENCE_SHARE);
        let mut heard = self.now();
        while self.now() < due && !self.is_broken_off {
            let now = self.now();
            if now.since(heard) >= patience {
                session.measure(&self.sign_of_life())?;
                heard = now;
            }
            if self.plan.step_beside(session, now)? {
                heard = now;
                continue;
            }
            if due.since(now) > LONGEST_SPIN && self.tell(observer).is_break() {
                break;
            }
            wait(due.since(now));
        }
        Ok(())
    }

    /// Keep-alive: a round trip at the smallest size.
    fn sign_of_life(&self) -> Experiment {
        let size = self.plan.store().size(0).unwrap_or(1);
        Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
    }

    /// End of the run: later on a slow link that was granted more time.
    fn end(&self) -> Picos {
        self.plan.end().unwrap_or(self.slots.end)
    }

    fn tell(&mut self, observer: &mut Observer<'_>) -> ControlFlow<()> {
        let share = u128::from(self.now().0) * 1_000_000 / u128::from(self.end().0.max(1));
        let spent_ppm = u32::try_from(share).unwrap_or(u32::MAX).min(1_000_000);
        let status = Status {
            progress: Progress { spent_ppm, ..self.plan.progress() },
            launch: self.begun.max(1),
            launches: self.launches,
            store: self.plan.store(),
        };
        let told = observer.on_progress(&status);
        self.is_broken_off |= told.is_break();
        told
    }

    fn conclusion(&self) -> Conclusion {
        let of_plan = self.plan.conclusion().unwrap_or(Conclusion::TimeSpent);
        if self.is_broken_off { Conclusion::Stopped } else { of_plan }
    }

    pub(super) fn add_traffic(&mut self, session: &Traffic) {
        let sum = &mut self.traffic;
        sum.data_sent += session.data_sent;
        sum.data_received += session.data_received;
        sum.control_sent += session.control_sent;
        sum.control_received += session.control_received;
        sum.rounds += session.rounds;
        sum.rounds_lost += session.rounds_lost;
        sum.messages_lost += session.messages_lost;
        sum.strays += session.strays;
        sum.late_replies += session.late_replies;
        sum.in_rounds = Picos(sum.in_rounds.0.saturating_add(session.in_rounds.0));
    }
}

/// Pacing of a launch's messages over its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    began: Picos,
    end: Picos,
    /// Message budget of the launch; `None` if unlimited.
    messages: Option<u64>,
    /// Messages spent before the launch.
    spent: u64,
}

impl Pace {
    /// Due time of the next round once the run has sent `messages` messages.
    fn due(&self, messages: u64) -> Picos {
        let Some(all) = self.messages else { return Picos::ZERO };
        let share = scaled(self.end.since(self.began), messages.saturating_sub(self.spent), all);
        Picos(self.began.0.saturating_add(share.0)).min(self.end)
    }
}

/// Waits for a part of `left`: sleeps if it is long, else spins, so that the end is not overslept
/// and the processor stays awake.
fn wait(left: Picos) {
    if left > LONGEST_SPIN {
        thread::sleep(NAP);
    } else {
        std::hint::spin_loop();
    }
}

/// `time · part / whole`, saturating.
fn scaled(time: Picos, part: u64, whole: u64) -> Picos {
    let product = u128::from(time.0) * u128::from(part) / u128::from(whole.max(1));
    Picos(u64::try_from(product).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_divide_the_time_that_the_first_one_leaves() {
        let slots = Slots { start: Picos(400), length: Picos(200), end: Picos(900) };
        let ends: Vec<(u64, u64)> =
            [1, 2, 3].map(|launch| slots.of(launch)).map(|(a, b)| (a.0, b.0)).into();
        assert_eq!(ends, [(400, 600), (600, 800), (800, 900)]);
    }

    #[test]
    fn messages_are_due_evenly_and_never_after_the_launch() {
        let pace = Pace { began: Picos(1_000), end: Picos(2_000), messages: Some(10), spent: 5 };
        assert_eq!(
            [5, 10, 15, 99].map(|messages| pace.due(messages).0),
            [1_000, 1_500, 2_000, 2_000]
        );
        assert_eq!(Pace { messages: None, ..pace }.due(99), Picos::ZERO);
    }
}
