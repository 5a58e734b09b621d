//! Sensitivities by runs with other parameters, where instants are no sums of them:
//! where messages share links.

use loggap_core::noise::Phases;
use loggap_core::units::Picos;

use super::{APART, GROWTHS, Parameter, Sensitivity, TOGETHER, Tolerance, Units};
use crate::sensitivity::function::FRACTION_BITS;
use crate::simulation::{LevelSet, ParameterSets, Plan, Point, RunError, Source, run_points};

/// By which parts of its value, or of what stands for it where that is 0, a
/// parameter is moved each way: 1/1000, 1/100, 1/10, all of it.
const PARTS: [u128; 4] = [1_000, 100, 10, 1];
/// Rounds in which the interval of a tolerated latency is cut into [`CUTS`] + 1
/// parts: to 1/4096 of it.
const ROUNDS: u32 = 4;
const CUTS: u32 = 7;

/// One parameter, and the values that it is given.
struct Moved {
    level: usize,
    number: usize,
    first_bytes: u64,
    parameter: Parameter,
    value: u128,
    /// Downwards from the nearest, then upwards.
    down: Vec<u128>,
    up: Vec<u128>,
}

/// What runs found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Differences {
    /// Slopes, rounded to whole numbers, and the values that were tried up to which
    /// the makespan is on that line, to a picosecond or a millionth.
    pub sensitivities: Vec<Sensitivity>,
    /// How much all latencies may grow, where the makespan grows with them.
    pub tolerances: Vec<Tolerance>,
}

/// Runs that [`differences`] makes at most.
#[must_use]
pub fn runs(sets: &ParameterSets) -> u64 {
    let tolerances = u64::from(ROUNDS * CUTS + 1) * GROWTHS.len() as u64;
    let values: usize = all(sets).iter().map(|moved| moved.down.len() + moved.up.len()).sum();
    1 + values as u64 + tolerances
}

/// How the makespan of `source` changes with each parameter of `sets`, by runs with
/// other values. `note` is called after each run.
///
/// # Errors
///
/// [`RunError`].
pub fn differences(
    source: &Source,
    sets: &ParameterSets,
    plan: &Plan<'_>,
    note: &(dyn Fn() + Sync),
) -> Result<Differences, RunError> {
    let moved = all(sets);
    let mut points = vec![sets.clone()];
    for parameter in &moved {
        let values = parameter.down.iter().chain(&parameter.up);
        points.extend(values.map(|&value| parameter.in_sets(sets, value)));
    }
    let runs = Runs { source, plan, note };
    let mut makespans = runs.of(&points)?.into_iter();
    let now = makespans.next().unwrap_or_default();
    let sensitivities: Vec<Sensitivity> = moved
        .iter()
        .map(|parameter| {
            let mut of = |values: &[u128]| -> Vec<(u128, u64)> {
                values.iter().copied().zip(makespans.by_ref()).collect()
            };
            let (down, up) = (of(&parameter.down), of(&parameter.up));
            parameter.sensitivity(now, &down, &up)
        })
        .collect();
    let tolerances = tolerances(&runs, sets, now)?;
    Ok(Differences { sensitivities, tolerances })
}

/// Every parameter with the values that it is given.
fn all(sets: &ParameterSets) -> Vec<Moved> {
    let parameters = if sets.receive.is_empty() { TOGETHER } else { APART };
    let mut all = Vec::new();
    for LevelSet { level, number, protocol } in sets.by_level() {
        let set = &protocol.parameters;
        let receive = sets.receive.get(number).copied().unwrap_or(set.receive_overhead());
        for &parameter in parameters {
            let value = parameter.of(set, receive);
            // What is 0 is moved as what it is added to.
            let per_byte = Parameter::GapPerByte.of(set, receive);
            let time = Parameter::Latency.of(set, receive) + Parameter::Overhead.of(set, receive);
            let scale = match (value, parameter.is_per_byte()) {
                (0, true) => per_byte,
                (0, false) => time,
                _ => value,
            };
            let quantum = if parameter.is_per_byte() { 1 } else { 1 << FRACTION_BITS };
            let step = |part: &u128| (scale / part / quantum).max(1) * quantum;
            let mut steps: Vec<u128> = PARTS.iter().map(step).collect();
            steps.dedup();
            let down = steps.iter().filter_map(|step| value.checked_sub(*step)).collect();
            let up = steps.iter().map(|step| value + step).collect();
            let first_bytes = protocol.first.0;
            all.push(Moved { level, number, first_bytes, parameter, value, down, up });
        }
    }
    all
}

impl Moved {
    /// `sets` with the parameter at another value.
    fn in_sets(&self, sets: &ParameterSets, value: u128) -> ParameterSets {
        let mut sets = sets.clone();
        let Some(protocol) = sets.protocols.get_mut(self.number) else { return sets };
        let set = &mut protocol.parameters;
        let mut unused = set.receive_overhead();
        let receive = sets.receive.get_mut(self.number).unwrap_or(&mut unused);
        self.parameter.set(set, receive, Units(value));
        sets
    }

    /// Of the makespan `now` and those with values below and above.
    fn sensitivity(&self, now: u64, down: &[(u128, u64)], up: &[(u128, u64)]) -> Sensitivity {
        let slope = |&(value, makespan): &(u128, u64)| {
            let grown = i128::from(makespan) - i128::from(now);
            let by = value.cast_signed() - self.value.cast_signed();
            rounded(grown << FRACTION_BITS, by)
        };
        // A larger step has the smaller error of rounding.
        let last_alike = |ends: &[(u128, u64)]| {
            let mut alike = None;
            for end in ends {
                match alike {
                    Some((_, found)) if !self.is_on(now, end, found) => break,
                    _ => alike = Some((end.0, slope(end))),
                }
            }
            alike
        };
        let (below, above) = (last_alike(down), last_alike(up));
        let slope = above.or(below).map_or(0, |(_, slope)| slope);
        let far = |end: Option<(u128, i128)>| {
            end.filter(|(_, found)| *found == slope).map_or(self.value, |(value, _)| value)
        };
        Sensitivity {
            parameter: self.parameter,
            first_bytes: self.first_bytes,
            level: self.level,
            value: Units(self.value),
            slope: u64::try_from(slope).unwrap_or_default(),
            low: Units(far(below)),
            high: Some(Units(far(above))),
        }
    }

    /// Whether a makespan is on the line of that slope through `now`.
    fn is_on(&self, now: u64, &(value, makespan): &(u128, u64), slope: i128) -> bool {
        let by = value.cast_signed() - self.value.cast_signed();
        let line = i128::from(now) + ((by * slope) >> FRACTION_BITS);
        // A slope that is no whole number is off by up to half of one.
        let rounding = (by.abs() >> FRACTION_BITS) / 2 + 1 + i128::from(now / 1_000_000);
        (i128::from(makespan) - line).abs() <= rounding
    }
}

/// A quotient rounded to the nearest.
const fn rounded(numerator: i128, denominator: i128) -> i128 {
    let (half, sign) = (denominator.abs() / 2, denominator.signum());
    (numerator * sign + half).div_euclid(denominator.abs())
}

/// Runs with other parameters.
struct Runs<'a> {
    source: &'a Source,
    plan: &'a Plan<'a>,
    note: &'a (dyn Fn() + Sync),
}

impl Runs<'_> {
    /// Their makespans, in ps.
    fn of(&self, all: &[ParameterSets]) -> Result<Vec<u64>, RunError> {
        let point = |at: usize| Point {
            sets: all.get(at).cloned().unwrap_or_default(),
            phases: Phases::Together { seed: 0 },
        };
        let ran = run_points(self.source, (all.len(), &point), self.plan, self.note)?;
        Ok(ran.iter().map(|run| run.makespan.0).collect())
    }
}

/// By how much all latencies may grow until the makespan has grown by so much.
fn tolerances(runs: &Runs<'_>, sets: &ParameterSets, now: u64) -> Result<Vec<Tolerance>, RunError> {
    let with = |growth: u128| {
        let mut grown = sets.clone();
        for protocol in &mut grown.protocols {
            let latency = &mut protocol.parameters.latency;
            *latency = Picos(latency.0.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX)));
        }
        grown
    };
    let most = |percent: u32| u128::from(now) + u128::from(now) * u128::from(percent) / 100;
    // The makespan has grown by as much at the latest when one latency has, if it
    // grows with them at all.
    let mut intervals: Vec<[u128; 2]> =
        GROWTHS.iter().map(|&percent| [0, most(percent) - u128::from(now) + 1]).collect();
    for round in 0..=ROUNDS {
        // The first round looks whether the end of the interval is far enough.
        let cuts = if round == 0 { 1 } else { CUTS };
        let at = |&[low, high]: &[u128; 2], cut: u32| match round {
            0 => high,
            _ => low + (high - low) * u128::from(cut) / u128::from(CUTS + 1),
        };
        let values: Vec<u128> =
            intervals.iter().flat_map(|ends| (1..=cuts).map(move |cut| at(ends, cut))).collect();
        let points: Vec<_> = values.iter().map(|&growth| with(growth)).collect();
        let makespans = runs.of(&points)?;
        let tried: Vec<(u128, u64)> = values.into_iter().zip(makespans).collect();
        let each = usize::try_from(cuts).unwrap_or(1);
        for ((ends, tried), &percent) in intervals.iter_mut().zip(tried.chunks(each)).zip(&GROWTHS)
        {
            let beyond = tried.iter().find(|(_, makespan)| u128::from(*makespan) > most(percent));
            let within = |&&(value, _): &&(u128, u64)| beyond.is_none_or(|end| value < end.0);
            let last = tried.iter().rfind(within).map(|(value, _)| *value);
            match (round, beyond) {
                (0, None) => *ends = [0, 0],
                (0, Some(_)) => {}
                _ => *ends = [last.unwrap_or(ends[0]), beyond.map_or(ends[1], |end| end.0)],
            }
        }
    }
    let tolerance = |(&percent, [low, high]): (&u32, [u128; 2])| Tolerance {
        percent,
        latency: (high > 0).then(|| Picos(u64::try_from(low).unwrap_or(u64::MAX))),
        proved: false,
    };
    Ok(GROWTHS.iter().zip(intervals).map(tolerance).collect())
}
