//! The closed forms of collective operations against simulation.

use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{ClosedForm, LogGops};
use loggap_core::random::Random;
use loggap_core::units::{Bytes, Overflow, PerByte, Picos};
use loggap_tests::program::Program;
use loggap_tests::shadow::{self, Settings};

fn pattern(form: ClosedForm) -> Pattern {
    match form {
        ClosedForm::Scatter => Pattern::Scatter,
        ClosedForm::Gather => Pattern::Gather,
        ClosedForm::BinomialTree => Pattern::BinomialBroadcast,
        ClosedForm::Dissemination => Pattern::Dissemination,
    }
}

fn parameters(random: &mut Random) -> LogGops {
    let mut nanos = |bound: u64| random.below(bound) * 1_000;
    LogGops {
        latency: Picos(nanos(5_000)),
        overhead: Picos(nanos(3_000)),
        gap: Picos(nanos(9_000)),
        gap_per_byte: PerByte(nanos(9) << 16),
        overhead_per_byte: PerByte(nanos(9) << 16),
        eager_limit: Bytes(nanos(40_000)),
    }
}

/// How often a form was exact, and how often it differed with a caveat.
fn compare(form: ClosedForm) -> Result<(u32, u32), Overflow> {
    let mut random = Random::new(11);
    let (mut exact, mut explained) = (0, 0);
    for round in 0..600 {
        let set = parameters(&mut random);
        let ranks = if round % 2 == 0 { 1 << random.below(6) } else { round / 2 % 40 + 1 };
        let size = random.below(1_200);
        let program = Program::of_pattern(pattern(form), &Options::new(ranks, size));
        let simulated = shadow::run(&program, &Settings::new(set), None).makespan();
        let printed = form.time(&set, ranks, Bytes(size))?.0;
        let caveat = form.caveat(&set, ranks, Bytes(size))?;
        if caveat.is_none() {
            assert_eq!(simulated, printed, "{form}, {ranks} ranks, {size} B, {set:?}");
            exact += 1;
        } else if simulated != printed {
            explained += 1;
        }
    }
    Ok((exact, explained))
}

#[test]
fn forms_hold_exactly_wherever_they_have_no_caveat() -> Result<(), Overflow> {
    for form in ClosedForm::ALL {
        let (exact, explained) = compare(form)?;
        assert!(exact > 100, "{form}: {exact} exact");
        assert!(explained > 20, "{form}: {explained} differ");
    }
    Ok(())
}
