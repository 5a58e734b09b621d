//! Effect of noise on a repeated program: every rank meets the detours of its
//! own processor, at another phase in each repetition.
//!
//! Repetitions have a common start and do not count if a rank is late, which it
//! is here if it has a detour under way at the start. Repetitions are much
//! shorter than the time between detours: most meet none, take as long as
//! without noise, and need no simulation.

use loggap_core::noise::Trace;
use loggap_core::random::Random;
use loggap_core::sim::{NoNoise, Noise, Parameters};
use loggap_core::stats::Sorted;
use loggap_core::units::Picos;

use super::program::Program;
use super::simulate::{PredictError, Simulation};

/// Traces of all ranks, each with a phase of its own.
struct RankTraces<'a> {
    traces: &'a [Option<Trace<'a>>],
    phases: Vec<Picos>,
}

impl RankTraces<'_> {
    /// Draws new phases.
    fn draw(&mut self, random: &mut Random) {
        for (phase, trace) in self.phases.iter_mut().zip(self.traces) {
            *phase = trace.map_or(Picos::ZERO, |trace| Picos(random.below(trace.length().0)));
        }
    }

    /// True if a rank loses time to an operation of `length` that begins with
    /// the repetition.
    fn hits(&self, length: Picos) -> bool {
        (0..).zip(self.traces).any(|(rank, _)| self.lost(rank, Picos::ZERO, length) > Picos::ZERO)
    }
}

impl Noise for &RankTraces<'_> {
    fn lost(&self, rank: u32, start: Picos, length: Picos) -> Picos {
        let at = rank as usize;
        let trace = self.traces.get(at).copied().flatten();
        let phase = self.phases.get(at).copied().unwrap_or_default();
        trace.map_or(Picos::ZERO, |trace| trace.lost(phase, start, length))
    }
}

/// Statistics of a program that is repeated under noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// Median of the repetitions that count.
    pub median: Picos,
    /// Share of these that exceed the median by more than the given limit.
    pub slow_share: f64,
    /// Share of all repetitions that do not count because a rank is late.
    pub late_share: f64,
}

/// Repeats `program` under the noise of its ranks' `traces`, at phases drawn
/// from `seed`. A repetition is slow if it exceeds the median by more than
/// `slow`. `None` if every repetition is late.
///
/// # Errors
///
/// [`PredictError`].
pub fn repeated(
    program: &Program,
    parameters: Parameters<'_>,
    traces: &[Option<Trace<'_>>],
    slow: Picos,
    seed: u64,
) -> Result<Option<Repeated>, PredictError> {
    // Maximum numbers of repetitions, and of those that are simulated: about a second.
    let ranks = program.ranks.max(1);
    let draws = (2_000_000 / ranks).clamp(1_000, 100_000) as usize;
    let simulations = (100_000 / ranks).clamp(100, 2_000);
    let mut simulation = Simulation::new(program)?;
    let quiet = simulation.makespan(parameters, NoNoise)?;
    // Detours that begin at the very end count.
    let whole = Picos(quiet.0.saturating_add(1));
    let mut random = Random::new(seed);
    let mut noise = RankTraces { traces, phases: vec![Picos::ZERO; traces.len()] };
    let (mut times, mut late, mut simulated) = (Vec::new(), 0, 0);
    while times.len() + late < draws && simulated < simulations {
        noise.draw(&mut random);
        if noise.hits(Picos::ZERO) {
            late += 1;
        } else if noise.hits(whole) {
            times.push(simulation.makespan(parameters, &noise)?);
            simulated += 1;
        } else {
            times.push(quiet);
        }
    }
    let (counted, all) = (times.len(), times.len() + late);
    let sorted = Sorted::new(&mut times);
    let Some(median) = sorted.median() else { return Ok(None) };
    let limit = Picos(median.0.saturating_add(slow.0));
    let above = sorted.as_slice().iter().filter(|time| **time > limit).count();
    Ok(Some(Repeated {
        median,
        slow_share: above as f64 / counted as f64,
        late_share: late as f64 / all as f64,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, Tuned};
    use super::*;
    use loggap_core::model::LogGops;
    use loggap_core::noise::Detour;
    use loggap_core::units::{Bytes, PerByte};

    const MICRO: u64 = 1_000_000;

    /// L = 1 µs, o = 0.5 µs, g = 0: a message takes 2 µs.
    const PARAMETERS: LogGops = LogGops {
        latency: Picos(MICRO),
        overhead: Picos(MICRO / 2),
        gap: Picos::ZERO,
        gap_per_byte: PerByte::ZERO,
        overhead_per_byte: PerByte::ZERO,
        eager_limit: Bytes(u64::MAX),
    };

    const PROGRAM: Program = Program {
        shape: Shape::Tuned(Tuned::BroadcastBinomial),
        ranks: 2,
        size: 8,
        local: Picos::ZERO,
        combine: Picos::ZERO,
        post: Picos::ZERO,
    };

    fn found(traces: &[Option<Trace<'_>>]) -> Option<Repeated> {
        repeated(&PROGRAM, Parameters::one(PARAMETERS), traces, Picos(MICRO), 1).unwrap()
    }

    #[test]
    fn without_detours_it_takes_what_it_takes() {
        let quiet = Repeated { median: Picos(2 * MICRO), slow_share: 0.0, late_share: 0.0 };
        assert_eq!(found(&[None, None]), Some(quiet));
    }

    #[test]
    fn the_share_that_detours_hit_is_that_of_the_processors_time() {
        // 5 µs per 100 µs, of which 95 µs are left for a start. Rank 0 is hit
        // if a detour starts in its 0.5 µs of sending; rank 1 if one starts in
        // the 1.5 µs before it handles the message, or in the 0.5 µs in which
        // it does.
        let detours = [Detour { start: Picos(20 * MICRO), duration: Picos(5 * MICRO) }];
        let trace = Trace::new(&detours, Some(Picos(100 * MICRO))).unwrap();
        let sender = found(&[Some(trace), None]).unwrap();
        assert!((sender.late_share - 0.05).abs() < 0.01, "{sender:?}");
        assert!((sender.slow_share - 0.5 / 95.0).abs() < 0.002, "{sender:?}");
        let receiver = found(&[None, Some(trace)]).unwrap();
        assert!((receiver.slow_share - 2.0 / 95.0).abs() < 0.004, "{receiver:?}");
        assert_eq!(receiver.median, Picos(2 * MICRO));
        let both = found(&[Some(trace), Some(trace)]).unwrap();
        assert!((both.late_share - 0.0975).abs() < 0.01, "{both:?}");
        assert!((both.slow_share - 2.5 / 95.0).abs() < 0.004, "{both:?}");
    }

    #[test]
    fn detours_that_most_repetitions_meet_move_the_median() {
        // No gap between two detours has 2 µs.
        let detours = [Detour { start: Picos(0), duration: Picos(MICRO) }];
        let trace = Trace::new(&detours, Some(Picos(2 * MICRO))).unwrap();
        let often = found(&[Some(trace), Some(trace)]).unwrap();
        assert!(often.median > Picos(2 * MICRO), "{often:?}");
        let always = [Detour { start: Picos(0), duration: Picos(MICRO) }];
        let always = Trace::new(&always, None).unwrap();
        assert_eq!(found(&[None, Some(always)]), None);
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let detours = [Detour { start: Picos(20 * MICRO), duration: Picos(5 * MICRO) }];
        let trace = Some(Trace::new(&detours, Some(Picos(100 * MICRO))).unwrap());
        assert_eq!(found(&[trace, trace]), found(&[trace, trace]));
    }
}
