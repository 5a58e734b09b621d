//! The critical path explains every picosecond.

use loggap::timeline::explain::explain;
use loggap_core::random::Random;
use loggap_tests::engine;
use loggap_tests::random_program::{Shape, parameters, program};
use loggap_tests::shadow::{self, Receive, Rendezvous, Settings};

#[test]
fn the_terms_add_up_to_the_makespan_and_the_steps_join() {
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let shape = if seed % 2 == 0 { Shape::PLAIN } else { Shape::WILD };
        let program = program(&mut random, &shape);
        let settings = Settings {
            receive: if seed % 3 == 0 { Receive::Overlap } else { Receive::Hold },
            rendezvous: if seed % 5 == 0 { Rendezvous::Handshake } else { Rendezvous::Instant },
            ..Settings::new(parameters(&mut random))
        };
        let noise = |rank: usize, time: u64, length: u64| {
            if (time / 1_000 + rank as u64).is_multiple_of(4) { length / 3 } else { 0 }
        };
        let noisy: Option<shadow::Noise<'_>> = if seed % 7 == 0 { Some(&noise) } else { None };
        let outcome = shadow::run(&program, &settings, noisy);
        let mut recorded = engine::timeline(&program, &settings, noisy);
        let mut expected = outcome.timeline.clone();
        for timeline in [&mut recorded, &mut expected] {
            timeline.calcs.sort_unstable_by_key(|calc| (calc.start, calc.rank, calc.op));
            timeline.messages.sort_unstable_by_key(|m| (m.sent, m.from.rank, m.to.rank, m.op));
        }
        assert_eq!(recorded, expected, "seed {seed}: what the engine's observers saw");
        let explanation = explain(&outcome.timeline);
        let explanation = explanation.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(explanation.terms.total().0, outcome.timeline.end().0, "seed {seed}");
        let mut now = 0;
        for step in &explanation.steps {
            assert_eq!(step.start.0, now, "seed {seed}: {step:?}");
            now = step.end.0;
        }
        assert_eq!(now, outcome.timeline.end().0, "seed {seed}");
    }
}
