//! Sensitivities by runs with other parameters, where instants are no sums of them:
//! where messages share links.

use loggap_core::noise::Phases;
use loggap_core::units::Picos;

use super::{APART, GROWTHS, Parameter, Sensitivity, TOGETHER, Tolerance, Units};
use crate::sensitivity::function::FRACTION_BITS;
use crate::simulation::{
    Ended, LevelSet, ParameterSets, Plan, Point, RunError, Source, run_each_point,
};

/// By which parts of its value, or of what stands for it where that is 0, a
/// parameter is moved each way: 1/1000, 1/100, 1/10, all of it.
const PARTS: [u128; 4] = [1_000, 100, 10, 1];
/// Into so many parts and one an interval of tolerated latencies is cut in a round.
const CUTS: u32 = 7;
/// Rounds at most, and the part of the latency that the interval is at the end.
const MOST_ROUNDS: u32 = 14;
const RESOLUTION: u128 = 1_024;
/// By how much the end of a message may be rounded, in ps.
const ROUNDING: u64 = 2;

/// One parameter, and the values that it is given.
struct Moved {
    level: usize,
    number: usize,
    first_bytes: u64,
    parameter: Parameter,
    value: u128,
    /// Other values: downwards from the nearest, then upwards.
    down: Vec<u128>,
    up: Vec<u128>,
}

/// What runs found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Differences {
    /// Slopes, rounded to whole numbers, and the values that were tried up to which
    /// the makespan is on that line, but for what ends of messages are rounded. On a
    /// side on which the makespan falls nothing is known.
    pub sensitivities: Vec<Sensitivity>,
    /// How much all latencies may grow, where the makespan grows with them.
    pub tolerances: Vec<Tolerance>,
}

/// Runs that [`differences`] makes at most.
#[must_use]
pub fn runs(sets: &ParameterSets) -> u64 {
    let tolerances = u64::from(2 + MOST_ROUNDS * CUTS) * GROWTHS.len() as u64;
    let values: usize = all(sets).iter().map(|moved| moved.down.len() + moved.up.len()).sum();
    1 + values as u64 + tolerances
}

/// How the makespan of `source`, of whose messages so many `flows` have bytes that
/// links carry, changes with each parameter of `sets`, by runs with other values.
/// `note` is called after each run. Nothing is known beyond a value with which the
/// schedule does not come to its end.
///
/// # Errors
///
/// [`RunError`] of the run as given, or of memory.
pub fn differences(
    (source, flows): (&Source, u64),
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
    let mut ended = runs.of(&points)?.into_iter();
    let now = ended.next().transpose()?.unwrap_or_default().makespan.0;
    let mut makespans = ended.map(makespan);
    let given = Given { makespan: now, rounding: rounding(sets, now, flows) };
    let sensitivities: Vec<Sensitivity> = moved
        .iter()
        .map(|parameter| {
            let mut of = |values: &[u128]| -> Vec<Trial> {
                let ended = values.iter().zip(makespans.by_ref());
                ended.map(|(&value, makespan)| Trial { value, makespan }).collect()
            };
            let (down, up) = (of(&parameter.down), of(&parameter.up));
            parameter.sensitivity(&given, &down, &up)
        })
        .collect();
    let latencies = sensitivities.iter().filter(|found| found.parameter == Parameter::Latency);
    let slope = latencies.map(|found| found.slope).sum();
    let tolerances = tolerances(&runs, sets, now, slope)?;
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
            // 1 ps, and 1 ps/B where there is nothing to go by.
            let finest = parameter.is_per_byte() && scale > 0;
            let quantum = if finest { 1 } else { 1 << FRACTION_BITS };
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

    /// Of the makespans with values below and above.
    fn sensitivity(&self, given: &Given, down: &[Trial], up: &[Trial]) -> Sensitivity {
        let [below, above] = [down, up].map(|trials| self.line(given, trials));
        let known = above.or(below);
        let slope = known.map_or(0.0, |line| line.slope);
        let apart =
            above.zip(below).is_some_and(|(up, down)| up.least > down.most || down.least > up.most);
        let low = below.filter(|_| !apart).map_or(self.value, |line| line.until);
        let high = above.map_or(self.value, |line| line.until);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "none is below 0"
        )]
        let [slope, slope_error] =
            [slope.round(), known.map_or(0.0, Line::error)].map(|rounded| rounded as u64);
        Sensitivity {
            parameter: self.parameter,
            first_bytes: self.first_bytes,
            level: self.level,
            value: Units(self.value),
            slope,
            slope_error,
            low: Units(low),
            high: Some(Units(high)),
        }
    }

    /// The line on which the makespan is up to the last of `trials`, from the
    /// nearest on, that can be on it with those before; `None` where it falls.
    #[allow(clippy::cast_precision_loss, reason = "rounding of ends is more")]
    fn line(&self, given: &Given, trials: &[Trial]) -> Option<Line> {
        let mut line: Option<Line> = None;
        for &Trial { value, makespan } in trials {
            let Some(makespan) = makespan else { break };
            let by = value.cast_signed() - self.value.cast_signed();
            let by = by as f64 / (1u64 << FRACTION_BITS) as f64;
            let grown = (i128::from(makespan) - i128::from(given.makespan)) as f64;
            let (slope, off) = (grown / by, given.rounding as f64 / by.abs());
            let (mut least, mut most) = (slope - off, slope + off);
            if let Some(line) = line {
                (least, most) = (least.max(line.least), most.min(line.most));
            }
            if least > most {
                break;
            }
            line = Some(Line { slope, least, most, until: value });
        }
        // Half a unit is nothing but rounding.
        line.filter(|line| line.slope > -0.5)
    }
}

/// The makespan that others are compared with.
struct Given {
    makespan: u64,
    /// By how much differences may be off, in ps.
    rounding: u64,
}

/// A run with another value.
#[derive(Clone, Copy)]
struct Trial {
    value: u128,
    /// In ps; `None` where the schedule did not come to its end.
    makespan: Option<u64>,
}

/// A makespan that grows evenly with a parameter.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// With the least error of rounding, and between which it is.
    slope: f64,
    least: f64,
    most: f64,
    /// The last value on it.
    until: u128,
}

impl Line {
    /// By how much its slope may be off, in whole numbers; 0 where at most one whole
    /// number is possible.
    fn error(self) -> f64 {
        if self.most - self.least < 1.0 {
            return 0.0;
        }
        (self.most - self.slope).max(self.slope - self.least).ceil()
    }
}

/// How far off the difference of two makespans can be: each flow on the longest
/// path ends at a whole picosecond. There are not more than fit into the makespan.
fn rounding(sets: &ParameterSets, now: u64, flows: u64) -> u64 {
    let alone = sets.by_level().map(|LevelSet { number, protocol, .. }| {
        let set = &protocol.parameters;
        let receive = sets.receive.get(number).copied().unwrap_or(set.receive_overhead());
        set.latency.0.saturating_add(set.overhead.0).saturating_add(receive.overhead.0)
    });
    let alone = alone.min().unwrap_or_default();
    let path = now.checked_div(alone).map_or(flows, |most| flows.min(most));
    path.saturating_mul(ROUNDING).saturating_add(1)
}

/// Runs with other parameters.
struct Runs<'a> {
    source: &'a Source,
    plan: &'a Plan<'a>,
    note: &'a (dyn Fn() + Sync),
}

impl Runs<'_> {
    /// How each ended.
    fn of(&self, all: &[ParameterSets]) -> Result<Vec<Ended>, RunError> {
        let point = |at: usize| Point {
            sets: all.get(at).cloned().unwrap_or_default(),
            phases: Phases::Together { seed: 0 },
        };
        run_each_point(self.source, all.len(), &point, self.plan, self.note)
    }
}

/// In ps; `None` where the schedule did not come to its end.
fn makespan(ended: Ended) -> Option<u64> {
    ended.ok().map(|completed| completed.makespan.0)
}

/// A tolerated latency that is looked for.
struct Search {
    /// The makespan may be so long.
    most: u128,
    /// With so much more latency it is not longer,
    within: u128,
    /// and with so much it is.
    beyond: u128,
    /// Probably it is with so much: if it goes on to grow as it does now.
    guess: u128,
    /// No latency makes it longer.
    endless: bool,
}

impl Search {
    fn is_over(&self) -> bool {
        self.endless || self.beyond - self.within <= (self.within / RESOLUTION).max(1)
    }

    /// Values to be tried, evenly between both.
    fn cuts(&self) -> impl Iterator<Item = u128> {
        let width = self.beyond - self.within;
        let cut = move |part: u32| self.within + width * u128::from(part) / u128::from(CUTS + 1);
        (1..=CUTS).map(cut)
    }

    /// Whether a schedule that ended so took too long, or did not come to its end.
    fn is_exceeded(&self, makespan: Option<u64>) -> bool {
        makespan.is_none_or(|makespan| u128::from(makespan) > self.most)
    }

    /// Notes a makespan; values rise.
    fn note(&mut self, latency: u128, makespan: Option<u64>) {
        if self.is_exceeded(makespan) {
            self.beyond = self.beyond.min(latency);
        } else if latency < self.beyond {
            self.within = latency;
        }
    }
}

/// By how much all latencies may grow until the makespan has grown by so much.
/// `slope` is how it grows with them now.
fn tolerances(
    runs: &Runs<'_>,
    sets: &ParameterSets,
    now: u64,
    slope: u64,
) -> Result<Vec<Tolerance>, RunError> {
    let with = |growth: u128| {
        let mut grown = sets.clone();
        for protocol in &mut grown.protocols {
            let latency = &mut protocol.parameters.latency;
            *latency = Picos(latency.0.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX)));
        }
        grown
    };
    let search = |&percent: &u32| {
        let growth = u128::from(now) * u128::from(percent) / 100;
        let most = u128::from(now) + growth;
        // One message that takes longer than all of it makes it longer.
        let beyond = most + 1;
        let even = growth.checked_div(slope.into());
        let guess = even.map_or(beyond, |even| (even + even / 64 + 1).min(beyond));
        Search { most, within: 0, beyond, guess, endless: false }
    };
    let mut all: Vec<Search> = GROWTHS.iter().map(search).collect();
    for is_last in [false, true] {
        let end = |search: &Search| if is_last { search.beyond } else { search.guess };
        let latencies: Vec<u128> = all.iter().map(end).collect();
        let points: Vec<_> = latencies.iter().map(|&latency| with(latency)).collect();
        let makespans = runs.of(&points)?.into_iter().map(makespan);
        for ((search, latency), makespan) in all.iter_mut().zip(latencies).zip(makespans) {
            search.endless = is_last && !search.is_exceeded(makespan);
            search.note(latency, makespan);
        }
    }
    for _ in 0..MOST_ROUNDS {
        let open = || all.iter().enumerate().filter(|(_, search)| !search.is_over());
        let tried: Vec<(usize, u128)> = open()
            .flat_map(|(at, search)| search.cuts().map(move |latency| (at, latency)))
            .collect();
        let points: Vec<_> = tried.iter().map(|&(_, latency)| with(latency)).collect();
        let makespans = runs.of(&points)?.into_iter().map(makespan);
        for ((at, latency), makespan) in tried.into_iter().zip(makespans) {
            if let Some(search) = all.get_mut(at) {
                search.note(latency, makespan);
            }
        }
    }
    let tolerance = |(&percent, search): (&u32, &Search)| Tolerance {
        percent,
        latency: (!search.endless).then(|| Picos(u64::try_from(search.within).unwrap_or(u64::MAX))),
        proved: false,
    };
    Ok(GROWTHS.iter().zip(&all).map(tolerance).collect())
}
