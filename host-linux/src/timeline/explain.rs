//! Why a simulation took as long as it did: the chain of events that ends
//! with the last one, as a sum of the model's parameters.
//!
//! Every event begins at the latest of its [`Causes`]. So from the end of the
//! last rank one can walk back, from each event to the cause that came last,
//! to time 0; the times of what was passed add up to the makespan, to the
//! picosecond. Where several causes came last together, the walk prefers what
//! occupied a processor, then what takes no time, then the arrival of a
//! message, then the gap of an interface.
//!
//! On a network whose links are shared a message comes with its last byte, w·G and what it lost
//! to sharing later than its first one would have come alone. A processor may have worked on
//! it for w·G by then, a step back in time: so that the sum is of all bytes that the path
//! passes at the network's pace, less those.

use std::cmp::Reverse;
use std::collections::HashMap;

use loggap_core::sim::Parameters;
use loggap_core::units::Picos;

use super::causes::{Cause, Causes, EventId, Kind, Transfer, Via};

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
        *self = self.and(Self { count, time });
    }

    /// Both together.
    const fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            time: Picos(self.time.0.saturating_add(other.time.0)),
        }
    }
}

/// What the parameters of one set take along the path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetTerms {
    /// Wire latencies, `n_L·L`.
    pub latency: Term,
    /// Overheads of one byte of senders, `n·o_s`.
    pub send_overhead: Term,
    /// Further bytes at the sending processor's pace, `bytes·O_s`.
    pub send_overhead_bytes: Term,
    /// Overheads of one byte of receivers, `n·o_r`.
    pub receive_overhead: Term,
    /// Further bytes at the receiving processor's pace, `bytes·O_r`.
    pub receive_overhead_bytes: Term,
    /// Gaps of one byte, `n_g·g`.
    pub gap: Term,
    /// Further bytes at the network's pace, `bytes_G·G`.
    pub gap_bytes: Term,
    /// Those of them that a processor handled while they arrived, to be subtracted.
    pub early_bytes: Term,
}

impl SetTerms {
    /// Overheads of one byte of both ends.
    #[must_use]
    pub fn overhead(&self) -> Term {
        self.send_overhead.and(self.receive_overhead)
    }

    /// Further bytes at either processor's pace.
    #[must_use]
    pub fn overhead_bytes(&self) -> Term {
        self.send_overhead_bytes.and(self.receive_overhead_bytes)
    }

    /// Both together.
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

/// What a link cost the messages of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkTerm {
    /// The link, by the network's number.
    pub link: u32,
    /// Messages that it held back, and for how long.
    pub term: Term,
}

/// The makespan as a sum.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// By the numbers of parameter sets; those beyond the last take nothing.
    pub sets: Vec<SetTerms>,
    /// Calculations.
    pub calc: Term,
    /// Detours.
    pub noise: Term,
    /// Messages that shared links, and what that cost; on LogGOPSim's network what
    /// messages took beyond o + L.
    pub sharing: Term,
    /// Messages that were through before an earlier one of the same two ranks, and had to
    /// wait for that.
    pub order: Term,
    /// The links that `sharing` is due to, in descending order of time.
    pub links: Vec<LinkTerm>,
}

impl Terms {
    /// Of all parameter sets together.
    #[must_use]
    pub fn all_sets(&self) -> SetTerms {
        self.sets.iter().fold(SetTerms::default(), |sum, set| sum.and(set))
    }

    /// All together.
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

/// What a step of the path is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepKind {
    /// A calculation.
    Calc,
    /// The processor sends.
    Send,
    /// The processor begins to send, and the first byte travels.
    Flight,
    /// The processor begins to send, and the message comes through a network whose links are
    /// shared.
    Transfer,
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
    /// Of a transfer, what it lost to others, and the link that it lost most on.
    pub lost: Picos,
    /// See `lost`.
    pub link: Option<u32>,
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

/// Finds the path of a run with these parameters.
///
/// # Errors
///
/// [`Unexplained`] where the graph is not that of a simulation.
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

/// Of causes that come last together, the least is on the path.
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

/// What takes time, as a step.
fn step(causes: &Causes, cause: Cause) -> Option<Step> {
    let kind = match cause.via {
        // A step back in time is none: the next one begins before the last one ends.
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
