//! Synthetic noise.

use super::trace::Detour;
use crate::random::Random;
use crate::units::Picos;

/// The one detour of periodic noise, of length `duration` at the end of every `period`. The
/// [`Trace`](super::Trace) has length `period`.
#[must_use]
pub const fn periodic(period: Picos, duration: Picos) -> Detour {
    Detour { start: period.since(duration), duration }
}

/// Fills `detours` with a Poisson process: the times between them are exponentially distributed
/// with mean `interval`, their durations with mean `duration`. The trace ends with the last detour;
/// times saturate.
pub fn exponential(detours: &mut [Detour], interval: Picos, duration: Picos, seed: u64) {
    let mut random = Random::new(seed);
    let mut now = 0u64;
    for detour in detours {
        let start = now.saturating_add(draw(&mut random, interval));
        let duration = draw(&mut random, duration);
        *detour = Detour { start: Picos(start), duration: Picos(duration) };
        now = start.saturating_add(duration);
    }
}

/// Exponentially distributed time with this mean, in ps.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive random number, rounded; the cast saturates"
)]
fn draw(random: &mut Random, mean: Picos) -> u64 {
    libm::round(random.exponential() * mean.0 as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::*;
    use std::vec;

    #[test]
    fn periodic_noise_takes_its_share() {
        let detours = [periodic(Picos(1_000), Picos(25))];
        let trace = Trace::new(&detours, Some(Picos(1_000))).unwrap();
        assert_eq!(trace.lost(Picos::ZERO, Picos(12), Picos(10_000)), Picos(250));
    }

    #[test]
    fn a_poisson_process_has_the_means_it_was_asked_for() {
        let mut detours = vec![Detour::default(); 100_000];
        exponential(&mut detours, Picos(1_000_000), Picos(20_000), 3);
        let trace = Trace::new(&detours, None).unwrap();
        let expected = 100_000u64 * 1_020_000;
        assert!(trace.length().0.abs_diff(expected) < expected / 100);
        assert!(trace.total().0.abs_diff(2_000_000_000) < 20_000_000);
        let mut again = vec![Detour::default(); 100_000];
        exponential(&mut again, Picos(1_000_000), Picos(20_000), 3);
        assert_eq!(detours, again);
    }
}
