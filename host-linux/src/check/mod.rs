//! Predictions beside measurements: of round trips and of scatters between processes, in one run.
//!
//! The link is measured before and after plain rounds. Each round is simulated with the costs that
//! both profiles give a message of its size, and then compared with what it took.

mod costs;
mod fan;
mod verdict;

use std::ops::ControlFlow;

use loggap_core::measure::{
    Buffers, Clock, Experiment, Initiator, Link, Outcome, Quantity, SessionError, SessionOptions,
};
use loggap_core::model::Estimate;
use loggap_core::random::Random;
use loggap_core::sim::{Parameters, Settings};
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::{Bytes, Picos};

pub use self::costs::{End, MessageCost, protocols};
pub use self::verdict::{Asserted, Verdict};

use self::fan::Fan;
use crate::drive::{EndOptions, Endpoints, Ends, Measurement, Options};
use crate::link::{AnyLink, HostLink, LinkError, LinkVisitor, Waiting};
use crate::machine::clock::HostClock;
use crate::machine::placement::Cpu;
use crate::output::number;
use crate::profile::ProfileDocument;
use crate::schedule::PrttRound;
use crate::serve::local::{Process, Responder};
use crate::simulation::{Job, Source, makespan};
use crate::terminal::{CliError, Console, Interrupt};

/// Most rounds of one size and number of processes in a row; those during which an end was preempted do
/// not count.
const IN_A_ROW: usize = 20;
/// Times that each size and number of processes has its turn.
const TURNS: usize = 20;
/// Longest time of the turns of one size and number of processes; one turn is made in any case.
const LONGEST: Picos = Picos(1_000_000_000_000);

/// Options of a check.
#[derive(Clone, Debug)]
pub(crate) struct CheckOptions {
    /// Ends of the link.
    pub(crate) ends: EndOptions,
    /// Processors that this thread may use.
    pub(crate) allowed: Vec<Cpu>,
    /// Measurement of the link.
    pub(crate) measure: Options,
    /// Message sizes, bytes.
    pub(crate) sizes: Vec<u32>,
    /// Numbers of processes that a message goes to; more than one only on this machine.
    pub(crate) processes: Vec<u32>,
}

impl CheckOptions {
    /// True if `processes` and this one do not each have a processor.
    fn is_crowded(&self, processes: u32) -> bool {
        self.ends.remote.is_none() && processes as usize >= self.allowed.len()
    }
}

/// A round, predicted and measured. Unknown values are `None`.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) processes: u32,
    pub(crate) size: u32,
    /// Number of rounds that count.
    pub(crate) rounds: usize,
    pub(crate) predicted: Option<Estimate<Picos>>,
    pub(crate) measured: Option<Estimate<Picos>>,
    /// True if there are fewer processors than processes: some wait for others.
    pub(crate) is_crowded: bool,
}

impl Checked {
    /// Relation of both, if they can be compared.
    pub(crate) fn verdict(&self) -> Verdict {
        match (&self.measured, &self.predicted) {
            (Some(measured), Some(predicted)) if !self.is_crowded => {
                Verdict::of(measured, predicted)
            }
            _ => Verdict::CannotTell,
        }
    }

    /// Measured relative to predicted.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let ratio = self.measured?.value.seconds() / self.predicted?.value.seconds();
        Some(ratio).filter(|ratio| ratio.is_finite())
    }
}

/// All rounds, and the profile before them.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) profile: ProfileDocument,
    pub(crate) rounds: Vec<Checked>,
}

/// Measures the link, then the rounds, and the link again.
///
/// # Errors
///
/// [`CliError`] of a measurement or a session.
pub(crate) fn run(
    options: &CheckOptions,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Check, CliError> {
    let crowded = options.processes.iter().find(|processes| options.is_crowded(**processes));
    if let (Some(processes), Waiting::Poll) = (crowded, options.ends.settings.waiting) {
        console.warn(format_args!(
            "--processes {processes}: with this one more than {}, so that rounds include turns of others \
             and have no verdict; --block helps",
            number::counted(options.allowed.len() as u64, "processor")
        ));
    }
    let profile = |console: &mut Console| {
        let longest = options.measure.longest_message();
        let ends = Endpoints::new(options.ends.clone(), longest, options.allowed.clone());
        Measurement::prepare(options.measure.clone())?.run(ends, interrupt, console)?.profile()
    };
    let before = profile(console)?;
    if !before.is_usable() || interrupt.is_requested() {
        return Ok(Check { profile: before, rounds: Vec::new() });
    }
    let mut rounds = Vec::new();
    for &processes in &options.processes {
        rounds.extend(measure(options, processes, interrupt)?);
    }
    let after = profile(console)?;
    for round in &mut rounds {
        round.predicted = predict(&[&before, &after], round);
    }
    Ok(Check { profile: before, rounds })
}

/// Simulates a round at the estimates of all costs and at both ends of their intervals.
fn predict(profiles: &[&ProfileDocument], round: &Checked) -> Option<Estimate<Picos>> {
    let size = Bytes(round.size.into());
    let of_profile = |profile: &&ProfileDocument| {
        let model = profile.model().ok()?;
        MessageCost::at(model.range(size)?, size)
    };
    let costs = profiles.iter().filter_map(of_profile);
    let cost = costs.reduce(|one, other| one.with(&other))?;
    let prtt =
        PrttRound { messages: 1, delay: Picos::ZERO, size: size.0, repliers: round.processes };
    let at = |end| {
        let sets = protocols(&[cost], end);
        let job = Job::new(Parameters::per_protocol(&sets)?, Settings::default());
        makespan(&Source::Prtt(prtt), &job).ok()
    };
    let (value, low, high) = (at(End::Value)?, at(End::Low)?, at(End::High)?);
    Some(Estimate { low, high, ..Estimate::exact(value) })
}

/// Measures rounds of all sizes to `processes` processes.
fn measure(
    options: &CheckOptions,
    processes: u32,
    interrupt: &Interrupt,
) -> Result<Vec<Checked>, CliError> {
    let clock = HostClock::calibrated();
    let plan = Plan {
        clock,
        sizes: &options.sizes,
        processes,
        is_crowded: options.is_crowded(processes),
        seed: options.measure.seed,
        interrupt,
    };
    if processes == 1 {
        let longest = options.sizes.iter().copied().max().unwrap_or(1);
        let mut ends = Endpoints::new(options.ends.clone(), longest, options.allowed.clone());
        let measured = ends.open(&clock)?.visit(plan).map_err(failed)?;
        return ends.close().map_or(Ok(measured), Err);
    }
    let (links, started) = spawn(options, processes)?;
    let measured = plan.over(Fan::new(links)).map_err(failed)?;
    started.into_iter().try_for_each(Process::finish)?;
    Ok(measured)
}

fn failed(error: SessionError<LinkError>) -> CliError {
    CliError::failed(error)
}

/// Starts `processes` responders, each on a processor of its own as long as there are any.
fn spawn(options: &CheckOptions, processes: u32) -> Result<(Vec<AnyLink>, Vec<Process>), CliError> {
    let others = options.allowed.iter().skip(1).chain(options.allowed.first());
    let mut cpus = others.cycle();
    let longest = options.sizes.iter().copied().max().unwrap_or(1);
    let settings = options.ends.settings(longest);
    let start = |_| {
        let cpu = cpus.next().copied();
        let responder = Responder {
            settings,
            cpu,
            longest_message: longest,
            ..Responder::new(options.ends.transport)?
        };
        Ok(responder.spawn()?)
    };
    let started: Result<Vec<_>, CliError> = (0..processes).map(start).collect();
    if let Some(first) = options.allowed.first() {
        // Its processes have the others; failure costs time, and shows as a difference.
        let _unpinned = crate::machine::placement::pin(*first);
    }
    Ok(started?.into_iter().unzip())
}

/// Rounds that are measured over one session.
struct Plan<'a> {
    clock: HostClock,
    sizes: &'a [u32],
    processes: u32,
    is_crowded: bool,
    seed: u64,
    interrupt: &'a Interrupt,
}

impl LinkVisitor for Plan<'_> {
    type Output = Result<Vec<Checked>, SessionError<LinkError>>;

    fn visit<L: HostLink>(self, link: L) -> Self::Output {
        self.over(link)
    }
}

impl Plan<'_> {
    fn over<L: Link<Error = LinkError>>(
        &self,
        link: L,
    ) -> Result<Vec<Checked>, SessionError<LinkError>> {
        let Self { clock, sizes, processes, is_crowded, .. } = *self;
        let longest = sizes.iter().copied().max().unwrap_or(1) as usize;
        let length = longest.max(loggap_core::wire::FRAME_LEN);
        let (mut outgoing, mut incoming) = (vec![0; length], vec![0; length]);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let waiting = |_| match self.interrupt.is_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = SessionOptions::default();
        let mut session = Initiator::connect(clock, link, buffers, options, waiting)?;
        let mut turns: Vec<Turns> = vec![Turns::default(); sizes.len()];
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        let mut random = Random::new(self.seed);
        for turn in 0..TURNS {
            random.shuffle(&mut order);
            for &at in &order {
                let Some(turns) = turns.get_mut(at) else { continue };
                if self.interrupt.is_requested() || (turn > 0 && turns.spent >= LONGEST) {
                    continue;
                }
                let size = sizes.get(at).copied().unwrap_or(1);
                let began = clock.now();
                turns.add(&mut self.in_a_row(&mut session, size, turns.rounds_of_next())?);
                turns.spent.0 += clock.duration(clock.now().saturating_sub(began)).0;
            }
        }
        session.goodbye()?;
        let checked = sizes.iter().zip(turns).map(|(&size, mut turns)| Checked {
            processes,
            size,
            rounds: turns.rounds,
            predicted: None,
            measured: median(&mut turns.medians),
            is_crowded,
        });
        Ok(checked.collect())
    }

    /// Durations of rounds in a row, the first left out; none if an end was preempted meanwhile, unless
    /// that is usual for lack of processors.
    fn in_a_row<L: Link<Error = LinkError>>(
        &self,
        session: &mut Initiator<'_, HostClock, L>,
        size: u32,
        rounds: usize,
    ) -> Result<Vec<Picos>, SessionError<LinkError>> {
        let round =
            Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size };
        let mut times = Vec::with_capacity(rounds + 1);
        session.run(&vec![round; rounds + 1], |outcome| {
            if let Outcome::Sample(sample) = outcome {
                times.push(sample.elapsed);
            }
        })?;
        if (session.was_interrupted() && !self.is_crowded) || times.is_empty() {
            return Ok(Vec::new());
        }
        times.remove(0);
        Ok(times)
    }
}

/// Turns of one size. Rounds in a row see one state of the machine, so the medians of turns count.
#[derive(Clone, Debug, Default)]
struct Turns {
    medians: Vec<Picos>,
    rounds: usize,
    spent: Picos,
}

impl Turns {
    /// Rounds of the next turn, as many as fit into its share of the time; a few in the first.
    fn rounds_of_next(&self) -> usize {
        const FIRST: usize = 2;
        let Some(last) = self.medians.last() else { return FIRST };
        let fit = LONGEST.0 / TURNS as u64 / last.0.max(1);
        usize::try_from(fit).unwrap_or(IN_A_ROW).clamp(1, IN_A_ROW)
    }

    fn add(&mut self, times: &mut [Picos]) {
        self.rounds += times.len();
        self.medians.extend(Sorted::new(times).median());
    }
}

/// Median with its 95% interval; `None` of fewer than six times, which have none.
fn median(times: &mut [Picos]) -> Option<Estimate<Picos>> {
    let found = Sorted::new(times).median_interval(Confidence::P95)?;
    let found = Some(found).filter(|found| found.reached)?;
    Some(Estimate { low: found.low, high: found.high, ..Estimate::exact(found.median) })
}

#[cfg(test)]
mod tests {
    use loggap_core::model::{Range, SizeLine};
    use loggap_core::units::{SignedPerByte, SignedPicos};

    use super::*;
    use crate::profile::RangeRecord;

    fn checked(processes: u32, size: u32) -> Checked {
        let (predicted, measured) = (None, None);
        Checked { processes, size, rounds: 0, predicted, measured, is_crowded: false }
    }

    /// L = 5, o_s = 1.2, o_r = 1.8, g = 2 us; 1 ns a byte.
    fn profile() -> ProfileDocument {
        let line = |at_one: i64, per_byte| {
            SizeLine::exact(SignedPicos(at_one), SignedPerByte::from_f64(per_byte))
        };
        let range = Range {
            first: Bytes(1),
            last: Bytes(65_536),
            gap: line(2_000_000, 1_000.0),
            half_rtt: Some(line(8_000_000, 1_000.0)),
            send_overhead: Some(line(1_200_000, 0.0)),
            recv_overhead: Some(line(1_800_000, 0.0)),
            latency: None,
        };
        ProfileDocument { ranges: vec![RangeRecord::from(range)], ..ProfileDocument::default() }
    }

    #[test]
    fn a_round_trip_is_two_messages_and_each_further_process_a_gap() {
        let profile = profile();
        let at = |processes, size| predict(&[&profile], &checked(processes, size)).unwrap().value;
        assert_eq!(at(1, 1), Picos(16_000_000));
        assert_eq!(at(1, 1_001), Picos(18_000_000));
        // Messages of 1 B leave 2 us apart, and the answers arrive as far apart.
        assert_eq!(at(2, 1), Picos(18_000_000));
        assert_eq!(at(4, 1_001), Picos(18_000_000 + 3 * 3_000_000));
        assert!(predict(&[], &checked(1, 1)).is_none());
    }

    #[test]
    fn the_profiles_before_and_after_bound_a_prediction() {
        let (before, mut after) = (profile(), profile());
        let line = SizeLine::exact(SignedPicos(12_000_000), SignedPerByte::from_f64(1_000.0));
        after.ranges[0].range.half_rtt = Some(line);
        let found = predict(&[&before, &after], &checked(1, 1)).unwrap();
        let ends = [found.low, found.value, found.high].map(|time| time.0 / 1_000_000);
        assert_eq!(ends, [16, 20, 24]);
    }

    #[test]
    fn rounds_in_a_row_are_one_value_and_fit_into_the_time() {
        let mut turns = Turns::default();
        assert_eq!(turns.rounds_of_next(), 2);
        turns.add(&mut [1, 2, 9].map(Picos));
        assert_eq!((turns.rounds, &turns.medians[..]), (3, &[Picos(2)][..]));
        assert_eq!(turns.rounds_of_next(), IN_A_ROW);
        // 50 ms a turn.
        turns.add(&mut [Picos(20_000_000_000)]);
        assert_eq!(turns.rounds_of_next(), 2);
        turns.add(&mut [Picos(900_000_000_000)]);
        assert_eq!(turns.rounds_of_next(), 1);
    }

    #[test]
    fn what_waits_for_a_processor_is_compared_with_nothing() {
        let estimate = Some(Estimate::exact(Picos(100)));
        let round = Checked { predicted: estimate, measured: estimate, ..checked(2, 8) };
        assert_eq!((round.verdict(), round.ratio()), (Verdict::Agree, Some(1.0)));
        assert_eq!(Checked { is_crowded: true, ..round }.verdict(), Verdict::CannotTell);
        assert_eq!(checked(2, 8).verdict(), Verdict::CannotTell);
    }
}
