//! Why a simulation took as long as it did: the chain of events that ends
//! with the last one, as a sum of the model's parameters.
//!
//! Every event begins at the latest of its [`Causes`]. So from the end of the
//! last rank one can walk back, from each event to the cause that came last,
//! to time 0; the times of what was passed add up to the makespan, to the
//! picosecond. Where several causes came last together, the walk prefers what
//! occupied a processor, then what takes no time, then the arrival of a
//! message, then the gap of an interface.

use loggap_core::units::Picos;

use super::causes::{Cause, Causes, Kind, Via};

/// A number of equal times, or of bytes, and what they take together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Term {
    /// How many times, or bytes.
    pub count: u64,
    /// Together.
    pub time: Picos,
}

impl Term {
    fn add(&mut self, count: u64, time: Picos) {
        self.count = self.count.saturating_add(count);
        self.time = Picos(self.time.0.saturating_add(time.0));
    }
}

/// The makespan as a sum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// Wire latencies, `n_L·L`.
    pub latency: Term,
    /// Overheads of one byte, `n_o·o`.
    pub overhead: Term,
    /// Further bytes at the processor's pace, `bytes_O·O`.
    pub overhead_bytes: Term,
    /// Gaps of one byte, `n_g·g`.
    pub gap: Term,
    /// Further bytes at the network's pace, `bytes_G·G`.
    pub gap_bytes: Term,
    /// Calculations.
    pub calc: Term,
    /// Detours.
    pub noise: Term,
}

impl Terms {
    /// All together.
    #[must_use]
    pub fn total(&self) -> Picos {
        let Self { latency, overhead, overhead_bytes, gap, gap_bytes, calc, noise } = self;
        let all = [latency, overhead, overhead_bytes, gap, gap_bytes, calc, noise];
        Picos(all.iter().fold(0, |sum, term| sum.saturating_add(term.time.0)))
    }
}

/// What a step of the path is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepKind {
    /// A calculation.
    Calc,
    /// The processor sends.
    Send,
    /// The processor begins to send, and the first byte travels.
    Flight,
    /// The processor receives.
    Receive,
    /// The interface receives while the processor need not.
    Delivery,
    /// The interface sends; the next message has to wait.
    SendGap,
    /// The interface receives; the next message has to wait.
    ReceiveGap,
}

/// One step of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// On which rank; for a flight, from which.
    pub rank: u32,
    /// From when.
    pub start: Picos,
    /// Until when.
    pub end: Picos,
    /// Of a calculation, its operation on this rank.
    pub op: Option<u32>,
    /// Of a message, the rank at its other end.
    pub peer: u32,
    /// Of a message, its bytes.
    pub size: u64,
}

/// The chain of events that ends with the last one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explanation {
    /// The makespan as a sum.
    pub terms: Terms,
    /// The path, from time 0 on.
    pub steps: Vec<Step>,
}

/// An event begins when none of its causes is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nothing explains what begins at {time} on rank {rank}; please report this schedule")]
pub struct Unexplained {
    /// The rank.
    pub rank: u32,
    /// When.
    pub time: Picos,
}

/// Finds the path.
///
/// # Errors
///
/// [`Unexplained`] where the graph is not that of a simulation.
pub fn explain(causes: &Causes) -> Result<Explanation, Unexplained> {
    let mut explanation = Explanation::default();
    let Some(mut event) = causes.events().last().copied() else { return Ok(explanation) };
    while event.kind != Kind::Start {
        let last = causes.of(&event).iter().filter(|cause| causes.instant(**cause) == event.time);
        let Some(&cause) = last.min_by_key(|cause| preference(cause.via)) else {
            return Err(Unexplained { rank: event.rank, time: event.time });
        };
        count(causes, cause, &mut explanation.terms);
        explanation.steps.extend(step(causes, cause));
        event = causes.event(cause.from);
    }
    explanation.steps.reverse();
    Ok(explanation)
}

/// Of causes that come last together, the least is on the path.
const fn preference(via: Via) -> u8 {
    match via {
        Via::Calc | Via::Send | Via::Receive => 0,
        Via::Instant => 1,
        Via::Delivery => 2,
        Via::Flight => 3,
        Via::SendGap | Via::ReceiveGap => 4,
    }
}

fn count(causes: &Causes, cause: Cause, terms: &mut Terms) {
    let event = causes.event(cause.from);
    let costs = causes.costs(&event);
    let bytes = costs.size.saturating_sub(1);
    let noise = (u64::from(event.noise > Picos::ZERO), event.noise);
    match cause.via {
        Via::Instant => {}
        Via::Calc => {
            terms.calc.add(1, Picos(event.amount));
            terms.noise.add(noise.0, noise.1);
        }
        Via::Send => {
            terms.overhead.add(1, costs.overhead);
            terms.overhead_bytes.add(bytes, costs.overhead_bytes);
            terms.noise.add(noise.0, noise.1);
        }
        Via::Receive => {
            terms.overhead.add(1, costs.receive_overhead);
            terms.noise.add(noise.0, noise.1);
            if !causes.overlaps() && costs.gap_bytes > costs.receive_overhead_bytes {
                terms.gap_bytes.add(bytes, costs.gap_bytes);
            } else {
                terms.overhead_bytes.add(bytes, costs.receive_overhead_bytes);
            }
        }
        Via::Delivery => {
            terms.overhead.add(1, costs.receive_overhead);
            terms.gap_bytes.add(bytes, costs.gap_bytes);
        }
        Via::Flight => {
            terms.overhead.add(1, costs.overhead);
            terms.latency.add(1, costs.latency);
        }
        Via::SendGap | Via::ReceiveGap => {
            terms.gap.add(1, costs.gap);
            terms.gap_bytes.add(bytes, costs.gap_bytes);
        }
    }
}

/// What takes time, as a step.
fn step(causes: &Causes, cause: Cause) -> Option<Step> {
    let kind = match cause.via {
        Via::Instant => return None,
        Via::Calc => StepKind::Calc,
        Via::Send => StepKind::Send,
        Via::Receive => StepKind::Receive,
        Via::Delivery => StepKind::Delivery,
        Via::Flight => StepKind::Flight,
        Via::SendGap => StepKind::SendGap,
        Via::ReceiveGap => StepKind::ReceiveGap,
    };
    let event = causes.event(cause.from);
    Some(Step {
        kind,
        rank: event.rank,
        start: event.time,
        end: causes.instant(cause),
        op: (kind == StepKind::Calc).then(|| causes.op_on_rank(&event)),
        peer: event.peer,
        size: event.amount,
    })
}
