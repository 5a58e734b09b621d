//! Explains the makespan: the longest path, and its length as a sum of the model's parameters.
//!
//! Every event begins at the latest of its [`Causes`]. So there is a path from the end of the last
//! rank back to time 0, from each event to the latest of its causes; the lengths along it add up to
//! the makespan, exact to the picosecond. Among causes that end at the same time, those that occupy
//! a processor are preferred, then those that take no time, then the arrival of a message, then the
//! gap of an interface.
//!
//! On a network with shared links, a message arrives with its last byte, that is, w·G plus the time
//! lost by sharing after its first byte would have arrived without sharing. A processor may have
//! worked on it during these w·G, which is a step back in time: the sum then counts all bytes of
//! the path at the network's rate, minus those handled early.

use std::cmp::Reverse;
use std::collections::HashMap;

use loggap_core::sim::Parameters;
use loggap_core::units::Picos;

use super::causes::{Cause, Causes, Kind, Part, Quantity, Transfer, Via};

/// A count of equal times, or of bytes, and their total time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Term {
    /// Number of times, or of bytes.
    pub count: u64,
    /// Total time.
    pub time: Picos,
}

impl Term {
    fn add(&mut self, count: u64, time: Picos) {
        self.count = self.count.saturating_add(count);
        self.time = Picos(self.time.0.saturating_add(time.0));
    }
}

/// Contribution of each quantity to the path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Terms([Term; Quantity::COUNT]);

impl Terms {
    /// Contribution of some quantities together.
    #[must_use]
    pub fn of(&self, quantities: &[Quantity]) -> Term {
        let mut sum = Term::default();
        for quantity in quantities {
            let term = self.0.get(*quantity as usize).copied().unwrap_or_default();
            sum.add(term.count, term.time);
        }
        sum
    }

    fn add(&mut self, Part { quantity, count, time }: Part) {
        if let Some(term) = self.0.get_mut(quantity as usize) {
            term.add(count, time);
        }
    }

    /// Sum of all contributions.
    #[must_use]
    pub fn total(&self) -> Picos {
        let all = self.0.iter().fold(0u128, |sum, term| sum + u128::from(term.time.0));
        let early = u128::from(self.of(&[Quantity::EarlyBytes]).time.0);
        Picos(u64::try_from(all.saturating_sub(2 * early)).unwrap_or(u64::MAX))
    }
}

/// Time that a link cost the messages of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkTerm {
    /// Number of the link in the network.
    pub link: u32,
    /// Messages that it delayed, and the total delay.
    pub term: Term,
}

/// A step of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// What takes the time.
    pub via: Via,
    /// Rank on which it takes place; for a flight, the sender.
    pub rank: u32,
    /// Start of the step.
    pub start: Picos,
    /// End of the step.
    pub end: Picos,
    /// For a calculation, index of its operation on the rank.
    pub op: Option<u32>,
    /// For a message, rank at its other end.
    pub peer: u32,
    /// For a message, its size in bytes.
    pub size: u64,
    /// For a transfer, time lost to other messages.
    pub lost: Picos,
    /// Link on which most of `lost` was lost.
    pub link: Option<u32>,
}

/// The longest path and its length.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explanation {
    /// Length of the path as a sum.
    pub terms: Terms,
    /// Contributions of each parameter set; sets beyond the end contribute nothing.
    pub sets: Vec<Terms>,
    /// Links that cause [`Quantity::Sharing`], in descending order of time.
    pub links: Vec<LinkTerm>,
    /// Steps of the path, beginning at time 0.
    pub steps: Vec<Step>,
}

/// An event begins at a time at which none of its causes ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nothing explains what begins at {time} on rank {rank}; please report this schedule")]
pub struct Unexplained {
    /// Rank of the event.
    pub rank: u32,
    /// Start of the event.
    pub time: Picos,
}

/// Finds the longest path of a run with these parameters.
///
/// # Errors
///
/// [`Unexplained`] if the graph is not that of a simulation.
pub fn explain(causes: &Causes, parameters: &Parameters<'_>) -> Result<Explanation, Unexplained> {
    let mut explanation = Explanation::default();
    let mut links = HashMap::<u32, Term>::new();
    let Some(mut event) = causes.events().last().copied() else { return Ok(explanation) };
    while event.kind != Kind::Start {
        let last = causes.of(&event).iter().filter(|cause| causes.instant(**cause) == event.time);
        let Some(&cause) = last.min_by_key(|cause| preference(cause.via)) else {
            return Err(Unexplained { rank: event.rank, time: event.time });
        };
        let from = causes.event(cause.from);
        let level = parameters.level(from.rank, from.peer);
        let set = parameters.number(level, causes.costs(&from).size);
        if explanation.sets.len() <= set {
            explanation.sets.resize(set + 1, Terms::default());
        }
        for part in causes.parts(cause) {
            explanation.terms.add(part);
            if let Some(terms) = explanation.sets.get_mut(set) {
                terms.add(part);
            }
        }
        explanation.steps.extend(step(causes, cause));
        if cause.via == Via::Transfer {
            for loss in causes.losses(&from) {
                links.entry(loss.link).or_default().add(1, loss.lost);
            }
        }
        event = from;
    }
    explanation.steps.reverse();
    explanation.links = links.into_iter().map(|(link, term)| LinkTerm { link, term }).collect();
    explanation.links.sort_unstable_by_key(|link| (Reverse(link.term.time), link.link));
    Ok(explanation)
}

/// Preference among causes that end at the same time; the path takes the lowest value.
const fn preference(via: Via) -> u8 {
    match via {
        Via::Calc | Via::Send | Via::Receive => 0,
        Via::Instant => 1,
        Via::Delivery | Via::FirstByte | Via::LastByte => 2,
        Via::Flight | Via::Transfer => 3,
        Via::SendGap | Via::ReceiveGap => 4,
    }
}

/// The step of a cause; `None` if it takes no time.
fn step(causes: &Causes, cause: Cause) -> Option<Step> {
    let via = match cause.via {
        // A step back in time is not shown: the next step begins before the last one ends.
        Via::Instant | Via::FirstByte => return None,
        Via::LastByte => Via::Receive,
        via => via,
    };
    let event = causes.event(cause.from);
    let is_transfer = via == Via::Transfer;
    let transfer = if is_transfer { causes.transfer(&event) } else { Transfer::default() };
    let losses = if is_transfer { causes.losses(&event) } else { &[] };
    Some(Step {
        via,
        rank: event.rank,
        start: event.time,
        end: causes.instant(cause),
        op: (via == Via::Calc).then(|| causes.op_on_rank(&event)),
        peer: event.peer,
        size: event.amount,
        lost: transfer.took.since(transfer.alone),
        link: losses.iter().max_by_key(|loss| loss.lost).map(|loss| loss.link),
    })
}
