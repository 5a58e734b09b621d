//! Sensitivities by finite differences: further runs with changed parameters. They are used where
//! times are not sums of the parameters, as with shared links, and where no order of events can be
//! proved to stay.

use loggap_core::units::Picos;

use super::function::FRACTION_BITS;
use super::{
    APART, Parameter, Runs, Sensitivity, TOGETHER, Tolerance, Units, tolerances_found_by_runs,
};
use crate::simulation::{Ended, LevelSet, ParameterSets, RunError};

/// Steps by which a parameter is changed in each direction, as fractions of its value (or of a
/// related value if that is 0): 1/1000, 1/100, 1/10, all of it.
const PARTS: [u128; 4] = [1_000, 100, 10, 1];
/// Rounding of the end of a message, at most, in ps.
const ROUNDING: u64 = 2;

/// A parameter, its value, and the values to try.
struct Moved {
    level: usize,
    number: usize,
    first_bytes: u64,
    parameter: Parameter,
    value: u128,
    /// Values to try below the given one, nearest first.
    down: Vec<u128>,
    up: Vec<u128>,
}

/// Results of the runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Differences {
    /// Slopes, rounded to integers. Each interval reaches to the last tried value at which the
    /// makespan still follows the line, within rounding. It is empty on a side on which the
    /// makespan decreases.
    pub sensitivities: Vec<Sensitivity>,
    /// Increase of all latencies that the makespan tolerates, if it grows with them.
    pub tolerances: Vec<Tolerance>,
}

/// Largest number of runs that [`differences`] makes.
#[must_use]
pub fn runs(sets: &ParameterSets) -> u64 {
    let values: usize = all(sets).iter().map(|moved| moved.down.len() + moved.up.len()).sum();
    1 + values as u64 + Tolerance::MOST_RUNS
}

/// Sensitivities to each parameter of `sets`, by `runs` with changed values; `rounded` is the
/// number of messages whose end is rounded to whole picoseconds. An interval ends before a value
/// with which the schedule does not complete.
///
/// # Errors
///
/// [`RunError`] of the run with the given parameters, or of memory; [`RunError::Interrupted`] if
/// [`stop`](crate::simulation::Plan::stop) was set.
pub fn differences(
    runs: &Runs<'_>,
    sets: &ParameterSets,
    rounded: u64,
) -> Result<Differences, RunError> {
    let moved = all(sets);
    let mut points = vec![sets.clone()];
    for parameter in &moved {
        let values = parameter.down.iter().chain(&parameter.up);
        points.extend(values.map(|&value| parameter.in_sets(sets, value)));
    }
    let mut ended = runs.of(&points)?.into_iter();
    let now = ended.next().transpose()?.unwrap_or_default().makespan.0;
    let mut makespans = ended.map(makespan);
    let given = Given { makespan: now, rounding: rounding(sets, now, rounded) };
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
    let estimate = |percent: u32| {
        let growth = now.saturating_mul(percent.into()) / 100;
        let latency = growth.checked_div(slope).map(Picos);
        Tolerance { percent, latency, exceeded: None, proved: false }
    };
    let estimates = Tolerance::PERCENT.map(estimate);
    let tolerances = tolerances_found_by_runs(Picos(now), &estimates, |growths| {
        runs.with_latencies(sets, growths)
    })?;
    Ok(Differences { sensitivities, tolerances })
}

/// All parameters with the values to try.
fn all(sets: &ParameterSets) -> Vec<Moved> {
    let parameters = if sets.receive.is_empty() { TOGETHER } else { APART };
    let mut all = Vec::new();
    for LevelSet { level, number, protocol } in sets.by_level() {
        let set = &protocol.parameters;
        let receive = sets.receive_overhead(number);
        for &parameter in parameters {
            let value = parameter.of(set, receive);
            // A parameter that is 0 is changed by fractions of the parameter that it is added to.
            let per_byte = Parameter::GapPerByte.of(set, receive);
            let time = Parameter::Latency.of(set, receive) + Parameter::Overhead.of(set, receive);
            let scale = match (value, parameter.is_per_byte()) {
                (0, true) => per_byte,
                (0, false) => time,
                _ => value,
            };
            // Smallest step: 1 ps; 2⁻¹⁶ ps/B, or 1 ps/B if there is no scale.
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

    /// Sensitivity from the makespans at values below and above the given one.
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

    /// Line through the given makespan and as many `trials`, from the nearest on, as agree with it
    /// within rounding; `None` if it decreases.
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
        // A slope within half a unit of 0 is due to rounding.
        line.filter(|line| line.slope > -0.5)
    }
}

/// The makespan with the given parameters.
struct Given {
    makespan: u64,
    /// Error bound of a difference of makespans, in ps.
    rounding: u64,
}

/// A run with another value.
#[derive(Clone, Copy)]
struct Trial {
    value: u128,
    /// Makespan in ps; `None` if the schedule did not complete.
    makespan: Option<u64>,
}

/// A makespan that is linear in a parameter.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Slope of the farthest trial, which has the least rounding error; its bounds follow.
    slope: f64,
    least: f64,
    most: f64,
    /// Last value on the line.
    until: u128,
}

impl Line {
    /// Error bound of the slope, as an integer; 0 if the bounds leave room for at most one integer.
    fn error(self) -> f64 {
        if self.most - self.least < 1.0 {
            return 0.0;
        }
        (self.most - self.slope).max(self.slope - self.least).ceil()
    }
}

/// Error bound of the difference of two makespans: each message on the longest path ends at a whole
/// picosecond, and the path cannot have more messages than fit into the makespan.
fn rounding(sets: &ParameterSets, now: u64, messages: u64) -> u64 {
    let alone = sets.by_level().map(|LevelSet { number, protocol, .. }| {
        let set = &protocol.parameters;
        let receive = sets.receive_overhead(number);
        set.latency.0.saturating_add(set.overhead.0).saturating_add(receive.overhead.0)
    });
    let alone = alone.min().unwrap_or_default();
    let path = now.checked_div(alone).map_or(messages, |most| messages.min(most));
    path.saturating_mul(ROUNDING).saturating_add(1)
}

/// Makespan in ps; `None` if the schedule did not complete.
fn makespan(ended: Ended) -> Option<u64> {
    ended.ok().map(|completed| completed.makespan.0)
}
