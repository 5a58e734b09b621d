//! Chart of the makespan over one or two swept parameters.

use loggap_core::units::Picos;

use super::{Axis, Form, Spacing, Sweep, Tangent};
use crate::output::number::{self, Unit};
use crate::sensitivity::Parameter;
use crate::study::{Axes, Chart, Coordinates, Interval, Series};

/// Most axes that a chart can show.
pub const MOST_AXES: usize = 2;
/// Most curves, one for each value of the second axis.
const MOST_CURVES: usize = 7;
/// Points of a tangent, which is curved on logarithmic axes.
const TANGENT_POINTS: u32 = 33;

/// Chart of the makespans of all points of `sweep` over its first axis. With a second axis there is
/// one curve for each of its values, or for seven of them. `None` for more axes. Points without a
/// makespan are gaps; `spread` has intervals of the makespans, if any.
#[must_use]
pub fn chart(
    sweep: &Sweep,
    makespans: &[Option<Picos>],
    spread: &[Option<[Picos; 2]>],
    tangent: Option<&Tangent>,
    schedule: &str,
) -> Option<Chart> {
    let (across, curves) = match sweep.axes() {
        [across] => (across, Vec::new()),
        [across, second] => (across, chosen(second.span().points as usize)),
        _ => return None,
    };
    let last = makespans.iter().flatten().max().copied().unwrap_or_default();
    let (x_unit, y_unit) = (unit(across), Unit::fitting(number::TIME, last.seconds(), 1.0));
    let each = if curves.is_empty() { 1 } else { sweep.count() / across.span().points as usize };
    let curve = |label: String, index: usize| {
        let points = || (0..sweep.count()).skip(index).step_by(each.max(1));
        let x = |point| Some(across.number(sweep.at(point).next()?) / x_unit.size);
        let place = |point: usize| {
            let makespan = makespans.get(point)?.map_or(f64::NAN, Picos::seconds);
            Some(Coordinates { x: x(point)?, y: makespan / y_unit.size })
        };
        let interval = |point: usize| {
            let [low, high] = spread.get(point)?.as_ref()?.map(|end| end.seconds() / y_unit.size);
            Some(Interval { x: x(point)?, low, high })
        };
        Series::new(label, points().filter_map(place).collect())
            .with_intervals(points().filter_map(interval).collect())
    };
    let mut series = match sweep.axes() {
        [_, second] => {
            let named = |&index: &usize| {
                let raw = second.raw(u32::try_from(index).unwrap_or(u32::MAX));
                curve(second.label(raw), index)
            };
            curves.iter().map(named).collect()
        }
        _ => vec![curve("makespan".into(), 0)],
    };
    series.extend(tangent.and_then(|tangent| line(tangent, &x_unit, &y_unit)));
    let logarithmic = across.span().spacing == Spacing::Logarithmic;
    Some(Chart {
        nested: false,
        title: title(sweep, curves.len(), schedule),
        x_label: x_label(across, &x_unit),
        y_label: match spread {
            [] => format!("makespan [{}]", y_unit.name),
            _ => format!("makespan [{}], with 90% of draws", y_unit.name),
        },
        axes: if logarithmic { Axes::Logarithmic } else { Axes::Linear },
        series,
    })
}

/// Indices of up to [`MOST_CURVES`] of `values` values, evenly spread, both ends included.
fn chosen(values: usize) -> Vec<usize> {
    if values <= MOST_CURVES {
        return (0..values).collect();
    }
    (0..MOST_CURVES).map(|curve| curve * (values - 1) / (MOST_CURVES - 1)).collect()
}

fn title(sweep: &Sweep, curves: usize, schedule: &str) -> String {
    let symbols: Vec<&str> = sweep.axes().iter().map(|axis| axis.swept.symbol()).collect();
    let some = match sweep.axes() {
        [_, second] if curves < second.span().points as usize => {
            format!(" ({curves} of {} values)", second.span().points)
        }
        _ => String::new(),
    };
    format!("Makespan of {schedule} over {}{some}", symbols.join(" and "))
}

/// Unit of the x axis.
fn unit(axis: &Axis) -> Unit {
    let last = axis.number(axis.span().to);
    match (axis.form, axis.swept) {
        (Form::Factor, _) | (_, Parameter::EagerLimit) => Unit { name: "", size: 1.0 },
        (Form::Value, swept) if swept.is_per_byte() => {
            Unit::fitting(number::TIME_PER_BYTE, last, 1.0)
        }
        (Form::Value, _) => Unit::fitting(number::TIME, last, 1.0),
    }
}

fn x_label(axis: &Axis, unit: &Unit) -> String {
    let symbol = axis.swept.symbol();
    match (axis.form, axis.swept) {
        (Form::Factor, _) => format!("{symbol}, times that given"),
        (Form::Value, Parameter::EagerLimit) => format!("{symbol} [bytes]"),
        (Form::Value, _) => format!("{symbol} [{}]", unit.name),
    }
}

fn line(tangent: &Tangent, x_unit: &Unit, y_unit: &Unit) -> Option<Series> {
    let stretch = tangent.stretch()?;
    let point = |index: u32| {
        let share = f64::from(index) / f64::from(TANGENT_POINTS - 1);
        let x = stretch.from + share * (stretch.to - stretch.from);
        Coordinates { x: x / x_unit.size, y: stretch.value(x) / y_unit.size }
    };
    let label = format!("as given: slope {}", number::count(tangent.slope()));
    Some(Series::line(label, (0..TANGENT_POINTS).map(point).collect()))
}
