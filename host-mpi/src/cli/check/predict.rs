//! Predicted duration of an operation: its algorithm, simulated.

use loggap::machine::noise::THRESHOLD;
use loggap::profile::ProfileDocument;
use loggap_core::model::Estimate;
use loggap_core::noise::Trace;
use loggap_core::sim::Parameters;
use loggap_core::units::Picos;

use super::cause::System;
use super::noise::RankNoise;
use super::taking::Taken;
use crate::algorithm::{End, MessageCost, Program, Repeated, Way, makespan, protocols, repeated};

/// Profiles and noise on which predictions are based.
pub(super) struct Basis<'a> {
    /// Profiles of one pair of ranks, at several times.
    pub(super) profiles: &'a [&'a ProfileDocument],
    /// Noise of each rank, if it was measured.
    pub(super) noise: Option<&'a [RankNoise]>,
    /// Seed of the ranks' phases in their noise.
    pub(super) seed: u64,
    pub(super) system: System,
}

pub(super) struct Prediction {
    /// Predicted duration: under noise, if that was measured.
    pub(super) estimate: Estimate<Picos>,
    pub(super) under_noise: Option<UnderNoise>,
}

/// Effect of measured noise on a prediction.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderNoise {
    /// Prediction without noise.
    pub(super) quiet: Picos,
    /// Prediction under noise, at the estimates of all parameters.
    pub(super) repeated: Repeated,
}

impl Basis<'_> {
    /// Costs of the program's messages, from all profiles; `None` if they lack one.
    pub(super) fn costs(&self, program: &Program, taken: &Taken) -> Option<Vec<MessageCost>> {
        let cost = |size: u64| {
            if size == 0 {
                return Some(empty(taken));
            }
            let row = |profile: &&ProfileDocument| {
                let record = profile.sizes.iter().find(|record| record.row.size.0 == size)?;
                MessageCost::of(&record.row)
            };
            self.profiles.iter().filter_map(row).reduce(|one, other| one.with(&other))
        };
        // With more ranks each pair has directions of its own, which were not measured.
        let share = (program.ranks == 2).then(|| share(program.way(), taken));
        let directed = |cost: MessageCost| share.map_or(cost, |share| cost.of_one_way(share));
        program.message_sizes().into_iter().map(|size| cost(size).map(directed)).collect()
    }

    /// Simulates at the estimates of all parameters, and at both ends of their intervals.
    pub(super) fn predict(
        &self,
        program: &Program,
        taken: &Taken,
        costs: &[MessageCost],
    ) -> Option<Prediction> {
        let program = |end: End| Program {
            local: end.of(&taken.local),
            combine: end.of(&taken.combine),
            post: end.of(&taken.post),
            ..*program
        };
        let sets = |end: End| protocols(costs, end);
        let quiet = |end: End| makespan(&program(end), Parameters::per_protocol(&sets(end))?).ok();
        let Some(noise) = self.noise else {
            let estimate = estimate(quiet)?;
            return Some(Prediction { estimate, under_noise: None });
        };
        let traces: Vec<Option<Trace<'_>>> = noise.iter().map(RankNoise::trace).collect();
        let under_noise = |end: End| {
            let sets = sets(end);
            let parameters = Parameters::per_protocol(&sets)?;
            repeated(&program(end), parameters, &traces, THRESHOLD, self.seed).ok().flatten()
        };
        let best = under_noise(End::Value)?;
        let estimate = estimate(|end| match end {
            End::Value => Some(best.median),
            End::Low | End::High => Some(under_noise(end)?.median),
        })?;
        let under_noise = UnderNoise { quiet: quiet(End::Value)?, repeated: best };
        Some(Prediction { estimate, under_noise: Some(under_noise) })
    }
}

/// Duration of a message in the direction `way` relative to the mean of both
/// directions, which is half a round trip: lower end, value and upper end, from
/// messages on the global clock.
fn share(way: Way, taken: &Taken) -> [f64; 3] {
    let is_slower_back = taken.back.value > taken.message.value;
    let (this, other) = match way {
        Way::Away => (&taken.message, &taken.back),
        Way::Back => (&taken.back, &taken.message),
        // An exchange waits for the slower direction.
        Way::Both if is_slower_back => (&taken.back, &taken.message),
        Way::Both => (&taken.message, &taken.back),
    };
    let share = |this: Picos, other: Picos| {
        let (this, other) = (this.seconds(), other.seconds());
        if this > 0.0 { 2.0 * this / (this + other) } else { 1.0 }
    };
    [share(this.low, other.high), share(this.value, other.value), share(this.high, other.low)]
}

fn estimate(at: impl Fn(End) -> Option<Picos>) -> Option<Estimate<Picos>> {
    let (value, low, high) = (at(End::Value)?, at(End::Low)?, at(End::High)?);
    Some(Estimate { value, low, high, ..Estimate::default() })
}

/// Cost of an empty message, which no profile has, as measured beside the
/// operation. Its receiver is assumed to be as busy as its sender.
fn empty(taken: &Taken) -> MessageCost {
    let overheads = Estimate::exact(Picos(taken.sender.0.saturating_mul(2)));
    let gap = Estimate::exact(Picos::ZERO);
    let one_way = MessageCost { size: 0, one_way: taken.message, overheads, gap };
    // Mean of both directions, as in a round trip.
    one_way.with(&MessageCost { one_way: taken.back, ..one_way })
}
