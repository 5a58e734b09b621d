//! Gaps measured with several numbers of messages, and the send overhead by the method of Bell et
//! al.: the evidence for n, and for Eq. 4, of "LogGP in Theory and Practice".

use loggap_core::measure::{Clock, Experiment, Quantity, Sample, SessionError};
use loggap_core::random::Random;
use loggap_core::stats::{Confidence, MedianInterval, Sorted};
use loggap_core::units::{Picos, SignedPicos};

use super::connections::Connections;
use super::rounds::Rounds;
use super::{Missing, SizeResult, SizeTest, round_trip};
use crate::link::LinkError;
use crate::machine::clock::{Deadline, HostClock};
use crate::machine::interruptions;
use crate::terminal::Bar;

/// Rounds of each number of messages in a block, whose value is their median, where six blocks fit
/// into the time of a size; otherwise one.
const ROUNDS: usize = 5;
/// Fewest and most blocks of a size: six medians have a distribution-free interval of 95%.
const BLOCKS: std::ops::RangeInclusive<usize> = 6..=40;
/// Warm-up rounds of each size.
const WARM_UP: u32 = 20;
/// Messages of a round in the method of Bell et al., as in a measurement by default.
const BELL_MESSAGES: u32 = 10;
/// Rounds of each kind in a step of that method, and its bisections of the delay.
const BELL_ROUNDS: usize = 40;
const BISECTIONS: u32 = 8;

/// Fewest sizes with a deviation from their line: the first ones are measured in any case.
pub(crate) const FEWEST_SIZES: usize = 3;

/// Gaps at one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct SizeGaps {
    /// Message size, bytes.
    pub(crate) size: u32,
    /// Repetitions, each an independent measurement.
    pub(crate) blocks: Vec<Block>,
    /// Send overhead by both methods, at the smallest size.
    pub(crate) bell: Option<Bell>,
}

/// One measurement of the gap with each number of messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    /// Median round trip.
    pub(crate) round_trip: Picos,
    /// Gap by Eq. 5 for each number of messages; `None` where all rounds were lost.
    pub(crate) gaps: Vec<Option<SignedPicos>>,
}

/// Send overhead of a message from the smallest delay d at which PRTT(n, d, s) exceeds
/// PRTT(n, 0, s) (Bell et al. 2003), beside that of Eq. 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bell {
    /// Message size, bytes.
    pub(crate) size: u32,
    /// Messages of a round, n.
    pub(crate) messages: u32,
    /// G_all, the gap without delay.
    pub(crate) gap: MedianInterval<SignedPicos>,
    /// Largest delay that changed nothing.
    pub(crate) stays: Picos,
    /// Smallest delay found to lengthen the round.
    pub(crate) leaves: Picos,
    /// Send overhead by Eq. 4.
    pub(crate) eq_4: MedianInterval<SignedPicos>,
}

/// Measures the gap with each number of messages.
pub(crate) struct MessagesTest {
    /// Numbers of messages, ascending.
    pub(crate) counts: Vec<u32>,
    /// Time in which all sizes are measured, and its end.
    pub(crate) max_time: Picos,
    pub(crate) end: Deadline,
    /// All sizes, ascending; the overhead is measured at the first, too.
    pub(crate) sizes: Vec<u32>,
    /// Seed of the order of rounds.
    pub(crate) seed: u64,
    /// True to show progress.
    pub(crate) is_watched: bool,
}

impl SizeTest for MessagesTest {
    type Row = SizeGaps;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<SizeResult<SizeGaps>, SessionError<LinkError>> {
        interruptions::watch(connections.responders().next());
        let Some(session) = connections.first() else {
            return Ok(SizeResult { row: None, failure: None });
        };
        self.measure_over(session, size)
    }

    fn missing(row: &SizeGaps) -> Option<Missing> {
        row.blocks.is_empty().then_some(Missing::Messages)
    }
}

impl MessagesTest {
    /// Measures `size`; no row if it was interrupted, or if the time does not suffice for the fewest
    /// blocks of one round.
    fn measure_over(
        &self,
        session: &mut (dyn Rounds + Send + '_),
        size: u32,
    ) -> Result<SizeResult<SizeGaps>, SessionError<LinkError>> {
        let none = SizeResult { row: None, failure: None };
        let is_needed = self.sizes.iter().take(FEWEST_SIZES).any(|first| *first == size);
        if self.end.expired() && !is_needed {
            return Ok(none);
        }
        let bar = self.is_watched.then(|| self.bar(size));
        session.warm_up(round_trip(size), WARM_UP)?;
        let stopwatch = HostClock::monotonic_raw();
        let began = stopwatch.now();
        let passed = || stopwatch.duration(stopwatch.now().saturating_sub(began));
        let mut random = Random::new(self.seed ^ u64::from(size));
        // A block of one round tells how long blocks take.
        let first = session.run(&self.rounds(size, 1, &mut random))?;
        let least = Picos(passed().0.saturating_mul(*BLOCKS.start() as u64));
        let is_too_long = least > Picos::from_duration(self.end.left()) && !is_needed;
        if session.is_interrupted() || is_too_long {
            return Ok(none);
        }
        let share = self.share(size);
        let is_short = least.0.saturating_mul(ROUNDS as u64) > share.0;
        let mut gaps = SizeGaps { size, ..SizeGaps::default() };
        gaps.blocks.extend(Block::of(&first, &self.counts).filter(|_| is_short));
        let rounds = if is_short { 1 } else { ROUNDS };
        for index in usize::from(is_short)..*BLOCKS.end() {
            if index >= *BLOCKS.start() && passed() >= share {
                break;
            }
            if let Some(Bar(bar)) = &bar {
                bar.set_message(format!("repetition {} of {size} B", index + 1));
            }
            let samples = session.run(&self.rounds(size, rounds, &mut random))?;
            if session.is_interrupted() {
                return Ok(none);
            }
            gaps.blocks.extend(Block::of(&samples, &self.counts));
        }
        if self.sizes.first() == Some(&size) {
            gaps.bell = bell(session, size)?;
        }
        Ok(SizeResult { row: Some(gaps), failure: None })
    }

    /// Progress bar at the start of `size`.
    fn bar(&self, size: u32) -> Bar {
        let template = "measuring [{bar:12}] {pos} of {len} sizes, {msg}";
        let bar = Bar::shown(self.sizes.len() as u64, template);
        bar.0.set_position(self.sizes.partition_point(|other| *other < size) as u64);
        bar.0.set_message(format!("{size} B"));
        bar
    }

    /// Part of the time that `size` has; long messages take longer. A quarter remains for sizes that
    /// exceed theirs.
    fn share(&self, size: u32) -> Picos {
        const FIXED: u64 = 1_500;
        let weight = |size: u32| FIXED + u64::from(size);
        let all: u64 = self.sizes.iter().map(|size| weight(*size)).sum();
        let all = u128::from(all.max(1)) * 4;
        let part = u128::from(self.max_time.0) * 3 * u128::from(weight(size)) / all;
        Picos(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// Rounds of a block in random order, `each` of every kind.
    fn rounds(&self, size: u32, each: usize, random: &mut Random) -> Vec<Experiment> {
        let kinds = self.counts.iter().map(|&messages| burst(size, messages, Picos::ZERO));
        let kinds = kinds.chain([round_trip(size), round_trip(size)]);
        let mut rounds: Vec<_> = kinds.flat_map(|kind| std::iter::repeat_n(kind, each)).collect();
        random.shuffle(&mut rounds);
        rounds
    }
}

const fn burst(size: u32, messages: u32, delay: Picos) -> Experiment {
    let quantity = if delay.0 == 0 { Quantity::Gap } else { Quantity::Paced };
    Experiment { quantity, messages, delay, size }
}

/// Durations of the rounds of a kind.
fn elapsed(samples: &[Sample], kind: Experiment) -> Vec<Picos> {
    let of_kind = samples.iter().filter(|sample| sample.experiment == kind);
    of_kind.map(|sample| sample.elapsed).collect()
}

/// (round − round trip)/(n − 1).
fn per_message(round: Picos, round_trip: Picos, messages: u32) -> SignedPicos {
    let beyond = i128::from(round.0) - i128::from(round_trip.0);
    let each = beyond / i128::from(messages.max(2) - 1);
    SignedPicos(i64::try_from(each).unwrap_or(i64::MAX))
}

impl Block {
    /// Medians of a block; `None` without a round trip.
    fn of(samples: &[Sample], counts: &[u32]) -> Option<Self> {
        let size = samples.first()?.experiment.size;
        let median = |kind| Sorted::new(&mut elapsed(samples, kind)).median();
        let round_trip = median(round_trip(size))?;
        let gap = |&messages: &u32| {
            let round = median(burst(size, messages, Picos::ZERO))?;
            Some(per_message(round, round_trip, messages))
        };
        Some(Self { round_trip, gaps: counts.iter().map(gap).collect() })
    }
}

/// Bisects for the smallest delay that lengthens a round. `None` if even the delay of Eq. 4 does
/// not, or rounds were lost.
fn bell(
    session: &mut (dyn Rounds + Send + '_),
    size: u32,
) -> Result<Option<Bell>, SessionError<LinkError>> {
    let probe = session.run(&[round_trip(size); BELL_ROUNDS])?;
    let Some(longest) = Sorted::new(&mut elapsed(&probe, round_trip(size))).median() else {
        return Ok(None);
    };
    let Some(first) = Step::run(session, size, longest)?.filter(|step| step.is_longer) else {
        return Ok(None);
    };
    // Delays as they were measured, which exceed what was asked for.
    let (mut stays, mut leaves) = (Picos::ZERO, first.delay);
    for _ in 0..BISECTIONS {
        let delay = Picos(stays.0.midpoint(leaves.0));
        let Some(step) = Step::run(session, size, delay)? else { return Ok(None) };
        if !(stays..leaves).contains(&step.delay) {
            break;
        }
        *(if step.is_longer { &mut leaves } else { &mut stays }) = step.delay;
    }
    let Step { gap, eq_4, .. } = first;
    Ok(Some(Bell { size, messages: BELL_MESSAGES, gap, stays, leaves, eq_4 }))
}

/// Rounds with a delay, compared with rounds without.
struct Step {
    /// The delay as it was measured.
    delay: Picos,
    /// True if the rounds with the delay take longer.
    is_longer: bool,
    gap: MedianInterval<SignedPicos>,
    eq_4: MedianInterval<SignedPicos>,
}

impl Step {
    fn run(
        session: &mut (dyn Rounds + Send + '_),
        size: u32,
        delay: Picos,
    ) -> Result<Option<Self>, SessionError<LinkError>> {
        // Rounds that are compared follow one another.
        let kinds = [
            round_trip(size),
            burst(size, BELL_MESSAGES, Picos::ZERO),
            burst(size, BELL_MESSAGES, delay),
        ];
        let samples = session.run(&[kinds; BELL_ROUNDS].concat())?;
        Ok(Self::of(&samples, kinds))
    }

    fn of(samples: &[Sample], kinds: [Experiment; 3]) -> Option<Self> {
        let [trips, plain, paced] = kinds.map(|kind| elapsed(samples, kind));
        let delays = samples.iter().filter(|sample| sample.experiment == kinds[2]);
        let mut delays: Vec<Picos> = delays.map(|sample| sample.delay).collect();
        let delay = Sorted::new(&mut delays).median()?;
        let each = |rounds: &[Picos], less: Picos| {
            let pairs = rounds.iter().zip(&trips);
            let mut values: Vec<SignedPicos> = pairs
                .map(|(round, trip)| per_message(*round, *trip, BELL_MESSAGES))
                .map(|gap| SignedPicos(gap.0.saturating_sub_unsigned(less.0)))
                .collect();
            Sorted::new(&mut values).median_interval(Confidence::P95)
        };
        let interval =
            |rounds: &[Picos]| Sorted::new(&mut rounds.to_vec()).median_interval(Confidence::P95);
        let is_longer = interval(&paced)?.low > interval(&plain)?.high;
        Some(Self { delay, is_longer, gap: each(&plain, Picos::ZERO)?, eq_4: each(&paced, delay)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::{BothWays, Budget, Values};
    use super::*;

    fn sample(experiment: Experiment, nanos: u64) -> Sample {
        Sample { experiment, delay: experiment.delay, elapsed: Picos(nanos * 1_000) }
    }

    #[test]
    fn a_block_has_the_gap_of_each_number_of_messages() {
        // A round trip of 10 us, gaps of 2 us.
        let mut samples = vec![sample(round_trip(8), 10_000); 3];
        samples.push(sample(round_trip(8), 90_000));
        for messages in [2, 10] {
            let round = 10_000 + 2_000 * (u64::from(messages) - 1);
            samples.extend([sample(burst(8, messages, Picos::ZERO), round); 3]);
        }
        let block = Block::of(&samples, &[2, 3, 10]).unwrap();
        assert_eq!(block.round_trip, Picos(10_000_000));
        let gap = Some(SignedPicos(2_000_000));
        assert_eq!(block.gaps, [gap, None, gap]);
        assert_eq!(Block::of(&samples[4..], &[2]), None);
    }

    /// A link of Eq. 3 with a round trip of 20 us, G_all 2 us, o_s 1.2 us and up to 300 ns of noise.
    struct Model(Random);

    impl Rounds for Model {
        fn run(&mut self, rounds: &[Experiment]) -> Result<Vec<Sample>, SessionError<LinkError>> {
            let each = rounds.iter().map(|&experiment| {
                let wait = (1_200_000 + experiment.delay.0).max(2_000_000);
                let round = 20_000_000 + u64::from(experiment.messages - 1) * wait;
                let elapsed = Picos(round + self.0.below(300_000));
                Sample { experiment, delay: experiment.delay, elapsed }
            });
            Ok(each.collect())
        }

        fn warm_up(&mut self, _: Experiment, _: u32) -> Result<(), SessionError<LinkError>> {
            Ok(())
        }

        fn repeat(&mut self, _: Experiment, _: Budget) -> Result<Values, SessionError<LinkError>> {
            Ok(Values::default())
        }

        fn repeat_both_ways(
            &mut self,
            _: BothWays,
            _: Budget,
        ) -> Result<Values, SessionError<LinkError>> {
            Ok(Values::default())
        }

        fn longest(&mut self) -> u32 {
            1
        }

        fn allowed(&mut self) -> u32 {
            1
        }

        fn is_interrupted(&self) -> bool {
            false
        }

        fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>> {
            Ok(())
        }
    }

    #[test]
    fn both_methods_find_the_overhead_of_a_known_link() {
        let bell = bell(&mut Model(Random::new(1)), 8).unwrap().unwrap();
        let near = |found: u64, truth: f64| (found as f64 / truth - 1.0).abs() < 0.1;
        assert!(near(bell.stays.0, 800_000.0) && near(bell.leaves.0, 800_000.0), "{bell:?}");
        assert!(bell.stays < bell.leaves, "{bell:?}");
        let eq_4 = bell.eq_4;
        assert!(eq_4.low.0 <= 1_215_000 && eq_4.high.0 >= 1_185_000, "{bell:?}");
        assert!((1_950_000..2_050_000).contains(&bell.gap.median.0), "{bell:?}");
    }

    #[test]
    fn a_step_finds_the_delay_longer_and_eq_4_the_overhead() {
        let delay = Picos(5_000_000);
        let kinds = [round_trip(8), burst(8, 10, Picos::ZERO), burst(8, 10, delay)];
        // G_all 2 us, o_s 1.5 us.
        let took = [10_000, 10_000 + 9 * 2_000, 10_000 + 9 * 6_500];
        let samples: Vec<Sample> = (0..3 * 9)
            .map(|at| sample(kinds[at % 3], took[at % 3] + 9 * (at as u64 / 3)))
            .collect();
        let step = Step::of(&samples, kinds).unwrap();
        assert!(step.is_longer && step.delay == delay);
        assert_eq!([step.gap.median, step.eq_4.median], [2_000_000, 1_500_000].map(SignedPicos));
        let same = Step::of(&samples, [kinds[0], kinds[1], kinds[1]]).unwrap();
        assert!(!same.is_longer);
        assert!(Step::of(&samples, [kinds[0], kinds[1], burst(8, 3, delay)]).is_none());
    }
}
