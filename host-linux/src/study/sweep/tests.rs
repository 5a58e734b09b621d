//! Grids, refused sweeps, tangents and charts.

use loggap_core::model::{LogGops, Protocol, ReceiveOverhead};
use loggap_core::units::{Bytes, PerByte, Picos};

use super::*;
use crate::sensitivity::{Sensitivity, Units};
use crate::study::{Axes, Coordinates};

fn set() -> LogGops {
    LogGops {
        latency: Picos(1_000),
        overhead: Picos(500),
        gap: Picos(0),
        gap_per_byte: PerByte(13),
        overhead_per_byte: PerByte(3),
        eager_limit: Bytes(17),
    }
}

fn given(ranges: u64) -> ParameterSets {
    let protocol = |first| Protocol { first: Bytes(first), parameters: set() };
    ParameterSets::new((0..ranges).map(protocol).collect(), Vec::new())
}

fn axis(parameter: Parameter, form: Form, [from, to]: [u64; 2], points: u32) -> Axis {
    let span = Span { from, to, points, spacing: Spacing::Linear };
    Axis::new(parameter, form, span).unwrap()
}

const HALF_TO_DOUBLE: [u64; 2] = [500_000_000, 2_000_000_000];

#[test]
fn factors_keep_ranges_and_ends_apart() {
    let mut sets = given(2);
    sets.protocols[1].parameters.latency = Picos(3_000);
    let receive = ReceiveOverhead { overhead: Picos(40), overhead_per_byte: PerByte(0) };
    sets.receive = vec![receive; 2];
    let axes = vec![
        axis(Parameter::Latency, Form::Factor, HALF_TO_DOUBLE, 2),
        axis(Parameter::Overhead, Form::Factor, HALF_TO_DOUBLE, 2),
    ];
    let sweep = Sweep::new(axes, &sets).unwrap();
    let last = sweep.sets(3);
    let latencies: Vec<u64> =
        last.protocols.iter().map(|protocol| protocol.parameters.latency.0).collect();
    assert_eq!(latencies, [2_000, 6_000]);
    assert_eq!((last.protocols[0].parameters.overhead.0, last.receive[1].overhead.0), (1_000, 80));
}

/// Where L is 0, its factors are those of what a message of a byte takes.
#[test]
fn factors_of_a_hidden_latency_are_those_of_the_overheads() {
    let mut sets = given(2);
    sets.protocols[1].parameters.latency = Picos(0);
    let axes = vec![axis(Parameter::Latency, Form::Factor, HALF_TO_DOUBLE, 2)];
    let sweep = Sweep::new(axes, &sets).unwrap();
    assert!(sweep.has_hidden_latency());
    let of = |point| {
        let sets = sweep.sets(point);
        let one_way = |number: usize| {
            let set = sets.protocols[number].parameters;
            [set.latency.0, set.overhead.0, sets.receive_overhead(number).overhead.0]
        };
        [one_way(0), one_way(1)]
    };
    assert_eq!(of(0), [[500, 500, 500], [0, 250, 250]]);
    assert_eq!(of(1), [[2_000, 500, 500], [1_000, 500, 500]]);
    let tangent = sweep.tangent(&[], Picos(1));
    assert!(tangent.is_none());
}

#[test]
fn what_has_no_meaning_is_refused() {
    let refused = |axes, sets: &ParameterSets| Sweep::new(axes, sets).unwrap_err().to_string();
    let values = |parameter| axis(parameter, Form::Value, [1, 9], 3);
    let factors = |parameter| axis(parameter, Form::Factor, HALF_TO_DOUBLE, 3);
    let both = vec![values(Parameter::Overhead), values(Parameter::SendOverhead)];
    assert!(refused(both, &given(1)).contains("o and o_s"));
    let mut apart = given(1);
    apart.receive = vec![ReceiveOverhead { overhead: Picos(1), overhead_per_byte: PerByte(3) }];
    assert!(Sweep::new(vec![values(Parameter::OverheadPerByte)], &apart).is_ok());
    let eager_limit = |form, ends: [u64; 2]| {
        let span = Span { from: ends[0], to: ends[1], points: 2, spacing: Spacing::Linear };
        vec![Axis::new(Parameter::EagerLimit, form, span).unwrap()]
    };
    let mut levels = given(2);
    assert!(Sweep::new(eager_limit(Form::Value, [1, 9]), &levels).is_ok());
    levels.protocols[1].parameters.eager_limit = Bytes(99);
    assert!(refused(eager_limit(Form::Value, [1, 9]), &levels).contains("S differs"));
    assert!(Sweep::new(eager_limit(Form::Factor, HALF_TO_DOUBLE), &levels).is_ok());
    let mut long = given(1);
    long.protocols[0].parameters.latency = Picos(u64::MAX);
    assert!(refused(vec![factors(Parameter::Latency)], &long).contains("213 days"));
}

fn sensitivity(parameter: Parameter, [value, low, high]: [u64; 3], slope: u64) -> Sensitivity {
    let units = |picos: u64| Units(u128::from(picos) << Units::FRACTION_BITS);
    let (value, low, high) = (units(value), units(low), Some(units(high)));
    Sensitivity { parameter, first_bytes: 0, level: 0, value, slope, slope_error: 0, low, high }
}

#[test]
fn a_tangent_goes_through_what_was_given_as_far_as_it_is_proved() {
    let found = sensitivity(Parameter::Latency, [1_000, 800, 1_500], 4);
    let values =
        Sweep::new(vec![axis(Parameter::Latency, Form::Value, [500, 2_000], 4)], &given(1));
    let values = values.unwrap();
    let tangent = values.tangent(&[found], Picos(9_000)).unwrap();
    let stretch = tangent.stretch().unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-15;
    assert!(close(stretch.from, 800e-12) && close(stretch.to, 1_500e-12), "{stretch:?}");
    assert!(close(stretch.value(1_000e-12), 9_000e-12));
    assert!(close(stretch.value(1_100e-12), 9_400e-12));
    let holds: Vec<bool> = [500, 800, 1_000, 1_499, 1_500].map(|raw| tangent.holds(raw)).to_vec();
    assert_eq!(holds, [false, false, true, true, false]);
    let axes = vec![axis(Parameter::Latency, Form::Factor, HALF_TO_DOUBLE, 4)];
    let factors = Sweep::new(axes, &given(1)).unwrap();
    let tangent = factors.tangent(&[found], Picos(9_000)).unwrap();
    let stretch = tangent.stretch().unwrap();
    assert!((stretch.from - 0.8).abs() < 1e-9 && close(stretch.value(1.1), 9_400e-12));
    assert!(tangent.holds(1_499_000_000) && !tangent.holds(1_500_000_000));
}

#[test]
fn where_nothing_is_proved_there_is_no_tangent() {
    let latency = axis(Parameter::Latency, Form::Value, [500, 2_000], 4);
    let sweep = Sweep::new(vec![latency], &given(1)).unwrap();
    let found = sensitivity(Parameter::Latency, [1_000, 800, 1_500], 4);
    assert!(sweep.tangent(&[], Picos(1)).is_none());
    assert!(sweep.tangent(&[found, found], Picos(1)).is_none());
    let point = sensitivity(Parameter::Latency, [1_000; 3], 4);
    assert!(sweep.tangent(&[point], Picos(1)).is_none());
    let elsewhere = sensitivity(Parameter::Latency, [100, 50, 200], 4);
    assert!(sweep.tangent(&[elsewhere], Picos(1)).unwrap().stretch().is_none());
    let gap = axis(Parameter::Gap, Form::Value, [0, 9], 2);
    let grid = Sweep::new(vec![latency, gap], &given(1)).unwrap();
    assert!(grid.tangent(&[found], Picos(1)).is_none());
}

#[test]
fn a_chart_has_a_curve_for_each_of_a_few_values_of_the_second_axis() {
    let latency = axis(Parameter::Latency, Form::Value, [1_000_000, 3_000_000], 3);
    let curves = |points| {
        let gap = axis(Parameter::Gap, Form::Value, [0, 1_000 * u64::from(points - 1)], points);
        let sweep = Sweep::new(vec![latency, gap], &given(1)).unwrap();
        let makespans: Vec<Option<Picos>> =
            (0..sweep.count() as u64).map(|at| Some(Picos(at * 1_000_000))).collect();
        chart(&sweep, &makespans, &[], None, "x").unwrap()
    };
    let two = curves(2);
    assert_eq!((&*two.x_label, &*two.y_label, two.axes), ("L [us]", "makespan [us]", Axes::Linear));
    assert_eq!(two.title, "Makespan of x over L and g");
    assert_eq!(two.series[1].label, "g = 1 ns");
    let at = |x, y| Coordinates { x, y };
    assert_eq!(two.series[1].points, [at(1.0, 1.0), at(2.0, 3.0), at(3.0, 5.0)]);
    let many = curves(20);
    assert_eq!(many.series.len(), 7);
    assert_eq!(many.series[6].label, "g = 19 ns");
    assert!(many.title.ends_with("(7 of 20 values)"), "{}", many.title);
    let third = axis(Parameter::GapPerByte, Form::Value, [0, 9], 2);
    let gap = axis(Parameter::Gap, Form::Value, [0, 9], 2);
    let sweep = Sweep::new(vec![latency, gap, third], &given(1)).unwrap();
    assert_eq!(chart(&sweep, &[], &[], None, "x"), None);
}
