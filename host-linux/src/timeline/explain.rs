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

use super::causes::{Cause, Causes, EventId, Kind, Transfer, Via};

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
        *self = self.and(Self { count, time });
    }

    /// Sum of both.
    const fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            time: Picos(self.time.0.saturating_add(other.time.0)),
        }
    }
}

/// Contributions of one parameter set to the path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetTerms {
    /// Wire latencies, `n_L·L`.
    pub latency: Term,
    /// Constant overheads of senders, `n·o_s`.
    pub send_overhead: Term,
    /// Further bytes at the rate of the sending processor, `bytes·O_s`.
    pub send_overhead_bytes: Term,
    /// Constant overheads of receivers, `n·o_r`.
    pub receive_overhead: Term,
    /// Further bytes at the rate of the receiving processor, `bytes·O_r`.
    pub receive_overhead_bytes: Term,
    /// Constant gaps, `n_g·g`.
    pub gap: Term,
    /// Further bytes at the rate of the network, `bytes_G·G`.
    pub gap_bytes: Term,
    /// Bytes in `gap_bytes` that a processor handled while they arrived; to be subtracted.
    pub early_bytes: Term,
}

impl SetTerms {
    /// Constant overheads of both ends.
    #[must_use]
    pub fn overhead(&self) -> Term {
        self.send_overhead.and(self.receive_overhead)
    }

    /// Further bytes at the rate of either processor.
    #[must_use]
    pub fn overhead_bytes(&self) -> Term {
        self.send_overhead_bytes.and(self.receive_overhead_bytes)
    }

    /// Sum of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            latency: self.latency.and(other.latency),
            send_overhead: self.send_overhead.and(other.send_overhead),
            send_overhead_bytes: self.send_overhead_bytes.and(other.send_overhead_bytes),
            receive_overhead: self.receive_overhead.and(other.receive_overhead),
            receive_overhead_bytes: self.receive_overhead_bytes.and(other.receive_overhead_bytes),
            gap: self.gap.and(other.gap),
            gap_bytes: self.gap_bytes.and(other.gap_bytes),
            early_bytes: self.early_bytes.and(other.early_bytes),
        }
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

/// The makespan as a sum of contributions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// By index of the parameter set; sets beyond the end contribute nothing.
    pub sets: Vec<SetTerms>,
    /// Calculations.
    pub calc: Term,
    /// Noise.
    pub noise: Term,
    /// Messages delayed by sharing links, and their delay; on LogGOPSim's network the time of
    /// messages beyond o + L.
    pub sharing: Term,
    /// Messages that had to wait for an earlier message between the same two ranks, and their
    /// delay.
    pub order: Term,
    /// Links that cause `sharing`, in descending order of time.
    pub links: Vec<LinkTerm>,
}

impl Terms {
    /// Sum over all parameter sets.
    #[must_use]
    pub fn all_sets(&self) -> SetTerms {
        self.sets.iter().fold(SetTerms::default(), |sum, set| sum.and(set))
    }

    /// Sum of all contributions.
    #[must_use]
    pub fn total(&self) -> Picos {
        let set = self.all_sets();
        let all = [
            set.latency,
            set.overhead(),
            set.overhead_bytes(),
            set.gap,
            set.gap_bytes,
            self.calc,
            self.noise,
            self.sharing,
            self.order,
        ];
        let sum = all.iter().fold(0u128, |sum, term| sum + u128::from(term.time.0));
        let sum = sum.saturating_sub(set.early_bytes.time.0.into());
        Picos(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    fn add_transfer(&mut self, causes: &Causes, from: EventId) {
        let departure = causes.event(from);
        let transfer = causes.transfer(&departure);
        for (term, time) in
            [(&mut self.sharing, transfer.shared()), (&mut self.order, transfer.behind)]
        {
            term.add(u64::from(time > Picos::ZERO), time);
        }
    }

    fn set(&mut self, number: usize) -> Option<&mut SetTerms> {
        if self.sets.len() <= number {
            self.sets.resize(number + 1, SetTerms::default());
        }
        self.sets.get_mut(number)
    }
}

/// Kind of a step of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepKind {
    /// A calculation.
    Calc,
    /// A processor sends.
    Send,
    /// A processor begins to send, and the first byte travels.
    Flight,
    /// A processor begins to send, and the message passes a network with shared links.
    Transfer,
    /// A processor receives.
    Receive,
    /// The interface receives, without the processor.
    Delivery,
    /// The interface sends, and the next message waits.
    SendGap,
    /// The interface receives, and the next message waits.
    ReceiveGap,
}

/// A step of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// Kind of the step.
    pub kind: StepKind,
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
        count(causes, cause, parameters, &mut explanation.terms);
        explanation.steps.extend(step(causes, cause));
        if cause.via == Via::Transfer {
            for loss in causes.losses(&causes.event(cause.from)) {
                links.entry(loss.link).or_default().add(1, loss.lost);
            }
        }
        event = causes.event(cause.from);
    }
    explanation.steps.reverse();
    let mut links: Vec<_> = links.into_iter().map(|(link, term)| LinkTerm { link, term }).collect();
    links.sort_unstable_by_key(|link| (Reverse(link.term.time), link.link));
    explanation.terms.links = links;
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

fn count(causes: &Causes, cause: Cause, parameters: &Parameters<'_>, terms: &mut Terms) {
    let event = causes.event(cause.from);
    let costs = causes.costs(&event);
    let bytes = costs.size.saturating_sub(1);
    if matches!(cause.via, Via::Calc | Via::Send | Via::Receive | Via::LastByte) {
        terms.noise.add(u64::from(event.noise > Picos::ZERO), event.noise);
    }
    match cause.via {
        Via::Instant => return,
        Via::Calc => return terms.calc.add(1, Picos(event.amount)),
        Via::Transfer => terms.add_transfer(causes, cause.from),
        _ => {}
    }
    let level = parameters.level(event.rank, event.peer);
    let Some(set) = terms.set(parameters.number(level, costs.size)) else { return };
    match cause.via {
        Via::Instant | Via::Calc => {}
        Via::Send => {
            set.send_overhead.add(1, costs.overhead);
            set.send_overhead_bytes.add(bytes, costs.overhead_bytes);
        }
        Via::Receive => {
            set.receive_overhead.add(1, costs.receive_overhead);
            if !causes.overlaps()
                && !causes.are_whole()
                && costs.gap_bytes > costs.receive_overhead_bytes
            {
                set.gap_bytes.add(bytes, costs.gap_bytes);
            } else {
                set.receive_overhead_bytes.add(bytes, costs.receive_overhead_bytes);
            }
        }
        Via::Delivery => {
            set.receive_overhead.add(1, costs.receive_overhead);
            set.gap_bytes.add(bytes, costs.gap_bytes);
        }
        Via::Flight => {
            set.send_overhead.add(1, costs.overhead);
            set.latency.add(1, costs.latency);
        }
        Via::Transfer => {
            set.send_overhead.add(1, costs.overhead);
            set.latency.add(1, costs.latency);
            let Transfer { alone, .. } = causes.transfer(&event);
            if causes.are_whole() {
                set.gap_bytes.add(bytes, alone);
            }
        }
        Via::FirstByte => set.early_bytes.add(bytes, costs.gap_bytes),
        Via::LastByte => set.receive_overhead.add(1, costs.receive_overhead),
        Via::ReceiveGap if causes.are_whole() => set.gap.add(1, costs.gap),
        Via::SendGap | Via::ReceiveGap => {
            set.gap.add(1, costs.gap);
            set.gap_bytes.add(bytes, costs.gap_bytes);
        }
    }
}

/// The step of a cause; `None` if it takes no time.
fn step(causes: &Causes, cause: Cause) -> Option<Step> {
    let kind = match cause.via {
        // A step back in time is not shown: the next step begins before the last one ends.
        Via::Instant | Via::FirstByte => return None,
        Via::Calc => StepKind::Calc,
        Via::Send => StepKind::Send,
        Via::Receive | Via::LastByte => StepKind::Receive,
        Via::Delivery => StepKind::Delivery,
        Via::Flight => StepKind::Flight,
        Via::Transfer => StepKind::Transfer,
        Via::SendGap => StepKind::SendGap,
        Via::ReceiveGap => StepKind::ReceiveGap,
    };
    let event = causes.event(cause.from);
    let is_transfer = kind == StepKind::Transfer;
    let transfer = if is_transfer { causes.transfer(&event) } else { Transfer::default() };
    let losses = if is_transfer { causes.losses(&event) } else { &[] };
    Some(Step {
        kind,
        rank: event.rank,
        start: event.time,
        end: causes.instant(cause),
        op: (kind == StepKind::Calc).then(|| causes.op_on_rank(&event)),
        peer: event.peer,
        size: event.amount,
        lost: transfer.took.since(transfer.alone),
        link: losses.iter().max_by_key(|loss| loss.lost).map(|loss| loss.link),
    })
}
