//! Slopes of the makespan are exactly its finite differences, all over the
//! interval that is claimed for them.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use loggap::sensitivity::{Analysis, Sensitivity, Tolerance, Units, tolerances_found_by_runs};
use loggap_core::model::{LogGops, ReceiveOverhead};
use loggap_core::random::Random;
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::cases::Case;
use loggap_tests::engine;
use loggap_tests::program::Program;
use loggap_tests::random_program::{Shape, parameters, program};
use loggap_tests::seeds;
use loggap_tests::shadow::{Receive, Rendezvous, Settings};

static GO_ON: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(true);

/// One whole ps, or ps per byte: smaller steps are rounded by the simulation.
const STEP: u128 = 1 << 16;

/// `settings` with the parameter of a range at another value.
fn moved(settings: &Settings, of: &Sensitivity, value: u128) -> Settings {
    let mut settings = settings.clone();
    let far = settings.levels.len();
    let levels = settings.levels.iter_mut().map(|level| &mut level.parameters).enumerate();
    let all = std::iter::once((far, &mut settings.parameters)).chain(levels);
    let mut apart = settings.receive_overheads.iter_mut();
    let sets = all.flat_map(|(level, sets)| {
        let mut first = 0;
        sets.iter_mut().map(move |(last, set)| {
            (level, std::mem::replace(&mut first, last.saturating_add(1)), set)
        })
    });
    for (level, first, set) in sets {
        let mut unused = ReceiveOverhead::default();
        let receive = apart.next().unwrap_or(&mut unused);
        if (level, first) == (of.level, of.first_bytes) {
            of.parameter.set(set, receive, Units(value));
        }
    }
    settings
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    /// Steps that were compared.
    steps: u64,
    /// Of those the ones with a slope.
    growing: u64,
    /// Parameters with a slope, and of those how many have an interval above.
    parameters: u64,
    above: u64,
    /// Intervals with an end above, and of those how many do not go on beyond.
    ends: u64,
    tight: u64,
}

/// Compares slopes with finite differences: by one step, halfway to the ends,
/// and as close to them as whole steps come.
fn compare(name: &str, program: &Program, settings: &Settings, seen: &mut Seen) {
    let causes = engine::causes(program, settings, None);
    let sets = engine::sets(settings);
    let analysis = Analysis::new(&causes, &sets, &GO_ON).unwrap();
    // What was stopped proves nothing.
    for found in Analysis::new(&causes, &sets, &STOPPED).unwrap().sensitivities() {
        assert_eq!((found.low, found.high), (found.value, Some(found.value)), "{name}");
    }
    let makespan = |settings| engine::run(program, &settings, None).makespan();
    let now = makespan(settings.clone());
    for found in analysis.sensitivities() {
        let (Units(value), Units(low)) = (found.value, found.low);
        // Beyond 18 s, or 18 s per byte, times end.
        let high = found.high.map_or(value * 3 + 100_000 * STEP, |Units(high)| high).min(1 << 60);
        assert!(low <= value && value <= high, "{name}: {found:?}");
        seen.parameters += u64::from(found.slope > 0);
        seen.above += u64::from(found.slope > 0 && high > value);
        // Whole steps strictly inside.
        let (up, down) =
            ((high - value).saturating_sub(1) / STEP, (value - low).saturating_sub(1) / STEP);
        let expect = |value, by: i128| {
            let slope = i128::from(found.slope);
            let then = i128::from(makespan(moved(settings, &found, value)));
            assert_eq!(
                then - i128::from(now),
                slope * by,
                "{name}: {by} from {found:?} {settings:?} {program:?}"
            );
        };
        for steps in [1, up / 2, up].into_iter().filter(|steps| (1..=up).contains(steps)) {
            expect(value + steps * STEP, i128::try_from(steps).unwrap());
            seen.steps += 1;
            seen.growing += u64::from(found.slope > 0);
        }
        for steps in [1, down / 2, down].into_iter().filter(|steps| (1..=down).contains(steps)) {
            expect(value - steps * STEP, -i128::try_from(steps).unwrap());
            seen.steps += 1;
            seen.growing += u64::from(found.slope > 0);
        }
        if found.high.is_some() && high < 1 << 60 && found.slope > 0 && up > 0 {
            let beyond = (high - value) / STEP + 1 + up / 50 + 5;
            let then = makespan(moved(settings, &found, value + beyond * STEP));
            seen.ends += 1;
            seen.tight += u64::from(
                i128::from(then) - i128::from(now)
                    != i128::try_from(beyond * u128::from(found.slope)).unwrap(),
            );
        }
    }
}

#[test]
fn slopes_are_finite_differences_on_every_reference_case() {
    let mut seen = Seen::default();
    for case in Case::all() {
        let name = format!("case {}", case.id);
        compare(&name, &case.program(), &Settings::new(case.parameters()), &mut seen);
    }
    assert!(seen.growing > 1_000 && seen.above * 2 > seen.parameters, "{seen:?}");
    // An interval is proved, and need not be the widest.
    assert!(seen.ends > 300 && seen.tight * 10 > seen.ends * 6, "{seen:?}");
}

/// The program of a seed and the settings that it runs with.
struct Setup {
    program: Program,
    settings: Settings,
}

impl Setup {
    fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let shape = if seed.is_multiple_of(8) {
            Shape::WILD
        } else {
            Shape { wildcards: seed % 30, ..Shape::PLAIN }
        };
        let program = program(&mut random, &shape);
        let near = parameters(&mut random);
        let mut apart = || Picos(1_000 + random.below(1 << 24));
        let set = match seed % 3 {
            0 => near,
            _ => LogGops { latency: apart(), overhead: apart(), gap: apart(), ..near },
        };
        let mut sets = vec![(u64::MAX, set)];
        if seed % 4 == 1 {
            let first = LogGops { latency: Picos(set.latency.0 / 2), eager_limit: Bytes(9), ..set };
            sets.insert(0, (3, first));
        }
        let mut ends = |_| ReceiveOverhead {
            overhead: Picos(random.below(1 << 24)),
            overhead_per_byte: PerByte((random.below(3) * 1_000) << 16),
        };
        let receive_overheads = match seed % 6 {
            1 | 2 => sets.iter().map(&mut ends).collect(),
            _ => Vec::new(),
        };
        let mut settings = Settings {
            receive_overheads,
            receive: if seed.is_multiple_of(5) { Receive::Overlap } else { Receive::Hold },
            rendezvous: if seed.is_multiple_of(2) {
                Rendezvous::Handshake
            } else {
                Rendezvous::Instant
            },
            parameters: sets,
            ..Settings::new(set)
        };
        if seed % 7 == 3 {
            settings.add_levels(&mut random, |random| LogGops {
                latency: Picos(random.below(1 << 22)),
                ..parameters(random)
            });
        }
        Self { program, settings }
    }
}

#[test]
fn slopes_are_finite_differences_on_random_programs() {
    let mut seen = Seen::default();
    for seed in seeds(0..1_500) {
        let Setup { program, settings } = Setup::random(seed);
        compare(&format!("seed {seed}"), &program, &settings, &mut seen);
    }
    assert!(seen.growing > 250, "{seen:?}");
    assert!(seen.ends > 750 && seen.tight * 10 > seen.ends * 4, "{seen:?}");
}

/// `settings` with all latencies longer.
fn with_latency(settings: &Settings, growth: Picos) -> Settings {
    let mut settings = settings.clone();
    let levels = settings.levels.iter_mut().flat_map(|level| &mut level.parameters);
    for (_, set) in settings.parameters.iter_mut().chain(levels) {
        set.latency = set.latency.plus(growth).unwrap();
    }
    settings
}

/// How tolerances were found.
#[derive(Debug, Default)]
struct Found {
    proved: u64,
    /// Of those the ones with levels of nearness, and with several ranges of sizes.
    proved_with_levels: u64,
    proved_with_ranges: u64,
    by_runs: u64,
    runs: u64,
    /// Where the estimate from the present order was off by more than 1%.
    estimates_off: u64,
}

#[test]
fn with_the_latency_that_is_tolerated_the_makespan_has_grown_by_the_percent() {
    let mut seen = Found::default();
    let random = (0..500).map(Setup::random);
    let reference = Case::all()
        .into_iter()
        .take(100)
        .map(|case| Setup { program: case.program(), settings: Settings::new(case.parameters()) });
    for Setup { program, settings } in random.chain(reference) {
        let makespan = |growth| {
            let settings = with_latency(&settings, growth);
            let outcome = engine::run(&program, &settings, None);
            outcome.complete().then(|| Picos(outcome.makespan()))
        };
        let Some(now) = makespan(Picos(0)) else { continue };
        let causes = engine::causes(&program, &settings, None);
        let sets = engine::sets(&settings);
        let estimates = Analysis::new(&causes, &sets, &GO_ON).unwrap().tolerances();
        let mut runs = 0;
        let found = tolerances_found_by_runs(now, &estimates, |growths| {
            runs += growths.len() as u64;
            Ok::<_, Infallible>(growths.iter().map(|&growth| makespan(growth)).collect())
        });
        let found = found.unwrap();
        seen.runs += runs;
        assert!(runs <= Tolerance::MOST_RUNS);
        for (tolerance, estimate) in found.iter().zip(&estimates) {
            let Tolerance { percent, latency, exceeded, proved } = *tolerance;
            let is_longer = |growth| {
                makespan(growth).is_none_or(|then| {
                    u128::from(then.0) * 100 > u128::from(now.0) * u128::from(100 + percent)
                })
            };
            let Some(latency) = latency else {
                assert!(!is_longer(Picos(now.0 * 2)), "{tolerance:?} {settings:?} {program:?}");
                continue;
            };
            assert!(!is_longer(latency), "{tolerance:?} of {now:?}: {settings:?} {program:?}");
            if proved {
                assert_eq!((tolerance, exceeded), (estimate, None));
                // To 1 ps, and to another that a machine without whole picoseconds loses.
                let beyond = Picos(latency.0 + 2);
                assert!(is_longer(beyond), "{tolerance:?} of {now:?}: {settings:?} {program:?}");
                seen.proved += 1;
                seen.proved_with_levels += u64::from(!settings.levels.is_empty());
                seen.proved_with_ranges += u64::from(settings.parameters.len() > 1);
                continue;
            }
            let exceeded = exceeded.unwrap();
            assert!(is_longer(exceeded), "{tolerance:?} of {now:?}: {settings:?} {program:?}");
            assert!(exceeded.0 - latency.0 <= (latency.0 / 1_024).max(1), "{tolerance:?}");
            seen.by_runs += 1;
            let off = estimate.latency.map_or(u64::MAX, |estimate| estimate.0.abs_diff(latency.0));
            seen.estimates_off += u64::from(off > latency.0 / 100);
        }
    }
    assert!(seen.proved > 100 && seen.by_runs > 100 && seen.estimates_off > 30, "{seen:?}");
    assert!(seen.proved_with_levels > 30 && seen.proved_with_ranges > 30, "{seen:?}");
    assert!(seen.runs < 10 * seen.by_runs, "{seen:?}");
}
