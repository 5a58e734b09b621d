//! What an operation should take: its algorithm, simulated.

use loggap::machine::noise::THRESHOLD;
use loggap::profile::ProfileDocument;
use loggap_core::model::Estimate;
use loggap_core::noise::Trace;
use loggap_core::sim::Parameters;
use loggap_core::units::Picos;

use super::noise::RankNoise;
use super::taking::Taken;
use crate::algorithm::{End, MessageCost, Program, Repeated, Way, makespan, protocols, repeated};

/// What predictions are made with.
pub(super) struct Basis<'a> {
    /// Of one pair of ranks, at several times.
    pub(super) profiles: &'a [&'a ProfileDocument],
    /// Of each rank, where it was measured.
    pub(super) noise: Option<&'a [RankNoise]>,
    /// Decides where in their noise ranks begin.
    pub(super) seed: u64,
}

/// A prediction.
pub(super) struct Prediction {
    /// Under noise, where that was measured.
    pub(super) estimate: Estimate<Picos>,
    pub(super) under_noise: Option<UnderNoise>,
}

/// What noise changes, where it was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderNoise {
    /// The prediction without it.
    pub(super) quiet: Picos,
    /// The prediction with it, at the best values.
    pub(super) repeated: Repeated,
}

impl Basis<'_> {
    /// What the program's messages cost, by all profiles; `None` where they
    /// lack one.
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
        // Of more ranks each pair has ways of its own, which nothing tells.
        let share = (program.ranks == 2).then(|| share(program.way(), taken));
        let directed = |cost: MessageCost| share.map_or(cost, |share| cost.of_one_way(share));
        program.message_sizes().into_iter().map(|size| cost(size).map(directed)).collect()
    }

    /// The simulation at the best values, and at both ends of all intervals.
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
            repeated(&program(end), parameters, &traces, (THRESHOLD, self.seed)).ok().flatten()
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

/// How long a message takes the `way` that it goes, as a share of the mean of
/// both ways, which is what half a round trip tells: lower end, value and upper
/// end, by messages on the global clock.
fn share(way: Way, taken: &Taken) -> [f64; 3] {
    let is_slower_back = taken.back.value > taken.message.value;
    let (this, other) = match way {
        Way::Away => (&taken.message, &taken.back),
        Way::Back => (&taken.back, &taken.message),
        // Who exchanges waits for the slower one.
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

/// An empty message, which a profile has none of: as it was measured beside the
/// operation. Its receiver is taken to be as busy as its sender.
fn empty(taken: &Taken) -> MessageCost {
    let overheads = Estimate::exact(Picos(taken.sender.0.saturating_mul(2)));
    let gap = Estimate::exact(Picos::ZERO);
    let one_way = MessageCost { size: 0, one_way: taken.message, overheads, gap };
    // As a round trip has it: the mean of both ways.
    one_way.with(&MessageCost { one_way: taken.back, ..one_way })
}
