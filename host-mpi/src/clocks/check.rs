//! Agreement of clocks: corrected clocks against the truth if all ranks read
//! one clock, otherwise by fresh pings between ranks.

use loggap_core::random::Random;
use loggap_core::sync::{
    ParentClock, Residual, ResidualSummary, Residuals, SeriesOptions, Triangle, measure_offset,
};
use loggap_core::units::{Picos, SignedPicos};
use mpi::topology::Communicator as _;

use super::GlobalClock;
use super::pass::Ends;
use crate::job::{CONTROLLER, Job};
use crate::waiting::Waiting;

/// Ranks that are compared.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    /// Ranks that are compared with the root.
    pub with_root: Vec<u32>,
    /// Triples of ranks, no two of which have met in the tree.
    pub triangles: Vec<[u32; 3]>,
}

impl Sample {
    /// Sample of the ranks of `clock`, the same on every rank. All ranks but
    /// the root up to `most`; if there are more, the last one, the last power
    /// of two, and random ones. As many triangles, up to eight.
    #[must_use]
    pub fn of(clock: &GlobalClock, most: usize, seed: u64) -> Self {
        const TRIANGLES: usize = 8;
        let ranks = u32::try_from(clock.domains().len()).unwrap_or(u32::MAX);
        let mut random = Random::new(seed);
        let mut others: Vec<u32> = (1..ranks).collect();
        if others.len() > most {
            random.shuffle(&mut others);
            let last_power = ranks.checked_ilog2().map_or(0, |log| 1 << log);
            others.retain(|rank| *rank != last_power && *rank != ranks - 1);
            others.splice(0..0, [last_power.min(ranks - 1), ranks - 1]);
            others.truncate(most);
            others.sort_unstable();
            others.dedup();
        }
        let triangle = |random: &mut Random| clock.with_tree(|tree| tree.strangers(random))?;
        let triangles = (0..TRIANGLES.min(others.len())).map_while(|_| triangle(&mut random));
        let triangles = triangles.collect();
        Self { with_root: others, triangles }
    }
}

/// Result of a check, at the root only.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Ranks, and their residuals against the root.
    pub with_root: Vec<(u32, Residual)>,
    /// True if the residuals of `with_root` are against the truth.
    pub is_truth: bool,
    /// Triangles of ranks that have not met, and the residuals of their sides.
    pub triangles: Vec<(Triangle, [Residual; 3])>,
}

impl Found {
    /// Distribution of the residuals: those against the truth if there are any,
    /// otherwise all.
    #[must_use]
    pub fn summary(&self) -> ResidualSummary {
        let triangles = if self.is_truth { &[] } else { &self.triangles[..] };
        let sides = triangles.iter().flat_map(|(_, sides)| sides.iter().copied());
        let all: Vec<Residual> = self.with_root.iter().map(|(_, one)| *one).chain(sides).collect();
        summary(&all)
    }
}

/// Distribution of `all`.
pub(super) fn summary(all: &[Residual]) -> ResidualSummary {
    let mut memory = vec![Picos::ZERO; all.len()];
    let mut residuals = Residuals::new(&mut memory);
    for residual in all {
        // The memory has room for all of them.
        let _kept = residuals.push(*residual);
    }
    residuals.summary()
}

/// Compares the corrected clocks of `sample`. All ranks call this together.
#[must_use]
pub fn check(clock: &GlobalClock, job: &Job, sample: &Sample, waiting: Waiting<'_>) -> Found {
    let mut found = Found::default();
    if let Some(residuals) = against_truth(clock, job, waiting) {
        found.is_truth = true;
        let of = |&rank: &u32| Some((rank, *residuals.get(usize::try_from(rank).ok()?)?));
        found.with_root = sample.with_root.iter().filter_map(of).collect();
    } else {
        for &rank in &sample.with_root {
            let residual = between(clock, job, [rank, 0], waiting);
            found.with_root.extend(residual.map(|residual| (rank, residual)));
        }
    }
    for &[a, b, c] in &sample.triangles {
        let sides = [[a, b], [b, c], [c, a]].map(|pair| between(clock, job, pair, waiting));
        if let [Some(first), Some(second), Some(third)] = sides {
            let sides = [first, second, third];
            found.triangles.push((Triangle::of(&sides), sides));
        }
    }
    found
}

/// Residuals of all ranks against the truth at the root, none elsewhere; `None`
/// unless all ranks read one clock.
fn against_truth(clock: &GlobalClock, job: &Job, waiting: Waiting<'_>) -> Option<Vec<Residual>> {
    let reading = clock.read();
    let truth = clock.truth(reading)?;
    let own = Residual::of_truth(clock.model(), clock.local(reading), truth);
    let all = waiting.gather(job.control(), CONTROLLER, &words(Some(&own)));
    let residual = |rank: &[u64]| from_words(rank.try_into().ok()?);
    Some(all.chunks(WORDS).filter_map(residual).collect())
}

/// Residual of two ranks, at the root.
fn between(
    clock: &GlobalClock,
    job: &Job,
    pair: [u32; 2],
    waiting: Waiting<'_>,
) -> Option<Residual> {
    let [first, second] = pair.map(|rank| i32::try_from(rank).unwrap_or(CONTROLLER));
    let own = job.rank();
    let ends = |peer| Ends { clock, peer: job.control().process_at_rank(peer), waiting };
    if own == second {
        let ends = ends(first);
        let model = ParentClock { model: *clock.model(), ..ParentClock::root() };
        waiting.send(&ends.peer, &model.to_words());
        ends.answer();
    }
    let residual = (own == first).then(|| ends(second).residual()).flatten();
    if own == first && own != CONTROLLER {
        let root = job.control().process_at_rank(CONTROLLER);
        waiting.send(&root, &words(residual.as_ref()));
    }
    if own == CONTROLLER && first != CONTROLLER {
        let mut words = [0_u64; WORDS];
        let peer = job.control().process_at_rank(first);
        waiting.numbers_from(&peer, &mut words);
        return from_words(words);
    }
    residual
}

impl Ends<'_> {
    /// Pings the peer, and compares the offset with both clock models.
    fn residual(mut self) -> Option<Residual> {
        let mut words = [0_u64; ParentClock::WORDS];
        self.waiting.numbers_from(&self.peer, &mut words);
        let series = measure_offset(&mut self, &SeriesOptions::default(), &mut []);
        self.end();
        let theirs = ParentClock::from_words(&words)?;
        Some(Residual::of(&series.ok()?.offset, self.clock.model(), &theirs.model))
    }
}

/// Words of a residual in a message: whether there is one, and its fields.
const WORDS: usize = 6;

fn words(residual: Option<&Residual>) -> [u64; WORDS] {
    let Some(residual) = residual else { return [0; WORDS] };
    let Residual { at, value, claimed, uncertainty, drift_error } = *residual;
    [1, at.0, value.0.cast_unsigned(), claimed.0, uncertainty.0, drift_error]
}

fn from_words(
    [is_some, at, value, claimed, uncertainty, drift_error]: [u64; WORDS],
) -> Option<Residual> {
    let value = SignedPicos(value.cast_signed());
    let [at, claimed, uncertainty] = [at, claimed, uncertainty].map(Picos);
    (is_some == 1).then_some(Residual { at, value, claimed, uncertainty, drift_error })
}
