//! Potential of an application for overlapping communication with computation.
//!
//! This is the first use case of the talk on `LogGOPSim` (Hoefler, Schneider and Lumsdaine,
//! LSAP'10, "Application Overlap Potential"). The overhead is the processor time of a message.
//! Without it (o = O = 0) the interface works alone while the processor computes. With o = g and O
//! = G the processor is held for as long as the interface, and nothing overlaps. As long as o ≤ g
//! and O ≤ G, the makespans of these two cases bound what another implementation of message passing
//! could achieve.

use loggap_core::model::Protocol;
use loggap_core::units::{PerByte, Picos};

use super::{Axes, Chart, Coordinates, Series};
use crate::output::number::{self, Unit};
use crate::simulation::ParameterSets;

/// Degree of overlap of communication and computation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overlap {
    /// Full overlap: o = O = 0, at both ends.
    Full,
    /// The parameters as given.
    Present,
    /// No overlap: o = g and O = G, at both ends.
    None,
}

/// A value for each [`Overlap`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Three<T> {
    /// With full overlap.
    pub full: T,
    /// With the parameters as given.
    pub present: T,
    /// Without overlap.
    pub none: T,
}

/// Makespans for one factor on the gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GapRow {
    /// Factor on g and G.
    pub factor: f64,
    /// The makespans.
    pub makespans: Three<Picos>,
}

impl Overlap {
    /// All variants, from the shortest to the longest time.
    pub const ALL: [Self; 3] = [Self::Full, Self::Present, Self::None];

    /// `sets` with the overheads of this overlap.
    #[must_use]
    pub fn sets(self, sets: &ParameterSets) -> ParameterSets {
        let mut sets = sets.clone();
        if self == Self::Present {
            return sets;
        }
        sets.receive.clear();
        for Protocol { parameters, .. } in &mut sets.protocols {
            let full = self == Self::Full;
            parameters.overhead = if full { Picos::ZERO } else { parameters.gap };
            parameters.overhead_per_byte =
                if full { PerByte::ZERO } else { parameters.gap_per_byte };
        }
        sets
    }
}

/// `sets` with g and G multiplied by `factor`, rounded; `None` past 2⁶⁴ units.
#[must_use]
pub fn with_gaps(sets: &ParameterSets, factor: f64) -> Option<ParameterSets> {
    let mut sets = sets.clone();
    for Protocol { parameters, .. } in &mut sets.protocols {
        parameters.gap = Picos(scaled(parameters.gap.0, factor)?);
        parameters.gap_per_byte = PerByte(scaled(parameters.gap_per_byte.0, factor)?);
    }
    Some(sets)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "gaps below 2^53 are exact; what is negative or too large was refused"
)]
fn scaled(value: u64, factor: f64) -> Option<u64> {
    let product = (value as f64 * factor).round();
    (0.0..u64::MAX as f64).contains(&product).then_some(product as u64)
}

/// True if an overhead exceeds its gap; "without overlap" then costs the processor less than the
/// parameters as given.
#[must_use]
pub fn overhead_exceeds_gap(sets: &ParameterSets) -> bool {
    let is_above = |(number, Protocol { parameters, .. }): (usize, &Protocol)| {
        let receive = sets.receive_overhead(number);
        parameters.overhead.max(receive.overhead) > parameters.gap
            || parameters.overhead_per_byte.max(receive.overhead_per_byte) > parameters.gap_per_byte
    };
    sets.protocols.iter().enumerate().any(is_above)
}

impl Three<Picos> {
    /// Share of the present time that full overlap saves; negative if messages then meet in a worse
    /// order. `None` if the present time is 0.
    #[must_use]
    pub fn saved(&self) -> Option<f64> {
        ratio(
            self.present.signed_difference(self.full),
            self.present.signed_difference(Picos::ZERO),
        )
    }

    /// Share of the possible savings that the present parameters already achieve. `None` if overlap
    /// saves nothing, and if the present time does not lie between the two others.
    #[must_use]
    pub fn used(&self) -> Option<f64> {
        if !(self.full..=self.none).contains(&self.present) {
            return None;
        }
        ratio(self.none.signed_difference(self.present), self.none.signed_difference(self.full))
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share of few digits")]
fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// Chart of the makespans over the factor on g and G.
#[must_use]
pub fn chart(rows: &[GapRow], schedule: &str) -> Chart {
    let longest = rows.iter().map(|row| row.makespans.none).max().unwrap_or_default();
    let unit = Unit::fitting(number::TIME, longest.seconds(), 1.0);
    let series = |label: &str, of: fn(&Three<Picos>) -> Picos| {
        let point = |row: &GapRow| {
            let makespan = of(&row.makespans).seconds();
            Coordinates { x: row.factor, y: makespan / unit.size }
        };
        Series::new(label.to_owned(), rows.iter().map(point).collect())
    };
    Chart {
        title: format!("Potential for overlap of {schedule}"),
        x_label: "g and G, times those given".into(),
        y_label: format!("makespan [{}]", unit.name),
        axes: Axes::Powers,
        nested: true,
        series: vec![
            series("no overlap (o = g, O = G)", |three| three.none),
            series("present o and O", |three| three.present),
            series("full overlap (o = O = 0)", |three| three.full),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::model::{LogGops, ReceiveOverhead};
    use loggap_core::units::Bytes;

    fn sets() -> ParameterSets {
        let parameters = LogGops {
            latency: Picos(7),
            overhead: Picos(5),
            gap: Picos(11),
            gap_per_byte: PerByte(13),
            overhead_per_byte: PerByte(3),
            eager_limit: Bytes(17),
        };
        let receive = ReceiveOverhead { overhead: Picos(6), overhead_per_byte: PerByte(2) };
        ParameterSets::new(vec![Protocol { first: Bytes(0), parameters }], vec![receive])
    }

    #[test]
    fn an_overhead_above_its_gap_is_noticed_at_either_end() {
        assert!(!overhead_exceeds_gap(&sets()));
        let mut above = sets();
        above.receive[0].overhead = Picos(12);
        assert!(overhead_exceeds_gap(&above));
        let mut above = sets();
        above.protocols[0].parameters.overhead_per_byte = PerByte(14);
        assert!(overhead_exceeds_gap(&above));
    }

    #[test]
    fn shares_are_those_of_the_definition() {
        let three = |full, present, none| Three {
            full: Picos(full),
            present: Picos(present),
            none: Picos(none),
        };
        assert_eq!(three(60, 80, 140).saved(), Some(0.25));
        assert_eq!(three(60, 80, 140).used(), Some(0.75));
        assert_eq!(three(0, 0, 0).saved(), None);
        assert_eq!(three(5, 5, 5).used(), None);
        assert_eq!(three(5, 9, 8).used(), None);
        assert_eq!(three(10, 8, 12).saved(), Some(-0.25));
    }
}
