//! The critical path explains every picosecond.

use loggap::timeline::explain::explain;
use loggap_core::random::Random;
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
