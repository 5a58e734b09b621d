//! Why a simulation took as long as it did: the chain of events that ends
//! with the last one, as a sum of the model's parameters.
//!
//! Everything in a simulation begins at the instant at which something else
//! ends: an operation when its processor, its interface or an operation
//! before it is done, the handling of a message when it arrives or the
//! receiver is free. So from the end of the last rank one can walk back,
//! from each beginning to an end at that very instant, to time 0; the times
//! of what was passed add up to the makespan, to the picosecond. Where more
//! than one thing ends at the instant, the walk prefers what occupied a
//! processor to the arrival of a message, and that to the gap of an
//! interface.

use std::collections::HashSet;

use loggap_core::units::Picos;

use super::{Calc, Message, Part, Timeline};

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
    /// Index among the timeline's messages, or calculations for a calc.
    pub index: usize,
}

/// The chain of events that ends with the last one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explanation {
    /// The rank that is last, the lowest of several.
    pub rank: u32,
    /// The makespan as a sum.
    pub terms: Terms,
    /// The path, from time 0 on.
    pub steps: Vec<Step>,
}

/// The timeline is incomplete: something begins when nothing ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "nothing explains what begins at {time} on rank {rank}: the timeline must hold all ranks and \
     the whole time"
)]
pub struct Unexplained {
    /// Where the latest such thing begins.
    pub rank: u32,
    /// When.
    pub time: Picos,
}

/// Finds the path.
///
/// # Errors
///
/// [`Unexplained`] when the timeline is only a part of a simulation.
pub fn explain(timeline: &Timeline) -> Result<Explanation, Unexplained> {
    let index = Index::new(timeline);
    let makespan = timeline.end();
    let Some(rank) = last_rank(timeline, makespan) else { return Ok(Explanation::default()) };
    let nodes = index.walk(Point::Rank { rank, time: makespan, nic: None })?;
    let mut explanation = Explanation { rank, ..Explanation::default() };
    for node in nodes.iter().rev() {
        index.count(*node, &mut explanation.terms);
        explanation.steps.push(index.step(*node));
    }
    Ok(explanation)
}

/// The lowest rank that is busy until `end`.
fn last_rank(timeline: &Timeline, end: Picos) -> Option<u32> {
    let calcs = timeline.calcs.iter().filter(|calc| calc.end() == end).map(|calc| calc.rank);
    let messages = timeline.messages.iter().flat_map(|message| {
        let sender = (message.send_end() == end).then_some(message.from.rank);
        let done = message.receive_end().max(message.done);
        sender.into_iter().chain((done == end).then_some(message.to.rank))
    });
    calcs.chain(messages).min()
}

/// Something that takes time.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Node {
    Calc(usize),
    Receive(usize),
    Send(usize),
    Delivery(usize),
    Flight(usize),
    SendGap(usize),
    ReceiveGap(usize),
}

/// An instant that wants an explanation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Point {
    /// Something on a rank, which may also have waited for an interface.
    Rank { rank: u32, time: Picos, nic: Option<u8> },
    /// The processor begins with a message.
    Handled(usize),
    /// The interface takes a message.
    Taken(usize),
}

/// What explains an instant: something that ends then, or another instant
/// at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    Node(Node),
    Point(Point),
}

/// Finds what happens on a rank at an instant.
struct Index<'a> {
    timeline: &'a Timeline,
    /// Ends, by rank and time.
    ends: Vec<(u32, Picos, Node)>,
    /// Instants at which a message from this rank was matched, and at which
    /// something on it began.
    turns: Vec<(u32, Picos, Turn)>,
}

/// An instant of a rank at which something happens that takes no time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Turn {
    /// The receiver of this message released its sender.
    Matched(usize),
    /// This calculation began.
    Calc(usize),
    /// This message was sent.
    Send(usize),
}

impl<'a> Index<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let (mut ends, mut turns) = (Vec::new(), Vec::new());
        for (at, calc) in timeline.calcs.iter().enumerate() {
            ends.push((calc.rank, calc.end(), Node::Calc(at)));
            turns.push((calc.rank, calc.start, Turn::Calc(at)));
        }
        for (at, message) in timeline.messages.iter().enumerate() {
            let (from, to) = (message.from.rank, message.to.rank);
            ends.push((to, message.receive_end(), Node::Receive(at)));
            ends.push((from, message.send_end(), Node::Send(at)));
            if message.done > message.receive_end() {
                ends.push((to, message.done, Node::Delivery(at)));
            }
            ends.push((from, message.next_send(), Node::SendGap(at)));
            ends.push((to, message.next_receive(), Node::ReceiveGap(at)));
            turns.push((from, message.sent, Turn::Send(at)));
            if let (Some(matched), Part::Whole) = (message.matched, message.part) {
                turns.push((from, matched, Turn::Matched(at)));
            }
        }
        ends.sort_unstable();
        turns.sort_unstable();
        Self { timeline, ends, turns }
    }

    fn message(&self, at: usize) -> Message {
        self.timeline.messages.get(at).copied().unwrap_or_default()
    }

    fn calc(&self, at: usize) -> Calc {
        let none =
            Calc { rank: 0, cpu: 0, op: 0, start: Picos(0), work: Picos(0), noise: Picos(0) };
        self.timeline.calcs.get(at).copied().unwrap_or(none)
    }

    /// Depth-first, because at one instant there can be many candidates of
    /// which not all lead on.
    fn walk(&self, from: Point) -> Result<Vec<Node>, Unexplained> {
        let mut path = Vec::new();
        let mut seen = HashSet::from([from]);
        let mut stack = vec![(0, self.causes(from))];
        let mut deepest = from;
        while let Some((depth, causes)) = stack.last_mut() {
            let depth = *depth;
            let Some(cause) = causes.pop() else {
                stack.pop();
                continue;
            };
            path.truncate(depth);
            let point = match cause {
                Cause::Node(node) => {
                    path.push(node);
                    self.begin(node)
                }
                Cause::Point(point) => point,
            };
            if self.time(point) == Picos::ZERO {
                return Ok(path);
            }
            if seen.insert(point) {
                if self.time(point) < self.time(deepest) {
                    deepest = point;
                }
                stack.push((path.len(), self.causes(point)));
            }
        }
        if self.time(from) == Picos::ZERO {
            return Ok(path);
        }
        Err(Unexplained { rank: self.rank(deepest), time: self.time(deepest) })
    }

    fn time(&self, point: Point) -> Picos {
        match point {
            Point::Rank { time, .. } => time,
            Point::Handled(at) => self.message(at).handled,
            Point::Taken(at) => self.message(at).taken,
        }
    }

    fn rank(&self, point: Point) -> u32 {
        match point {
            Point::Rank { rank, .. } => rank,
            Point::Handled(at) | Point::Taken(at) => self.message(at).to.rank,
        }
    }

    /// What wants an explanation next, after `node`.
    fn begin(&self, node: Node) -> Point {
        match node {
            Node::Calc(at) => {
                let Calc { rank, start, .. } = self.calc(at);
                Point::Rank { rank, time: start, nic: None }
            }
            Node::Send(at) | Node::Flight(at) | Node::SendGap(at) => {
                let Message { from, sent, .. } = self.message(at);
                Point::Rank { rank: from.rank, time: sent, nic: Some(from.nic) }
            }
            Node::Receive(at) => Point::Handled(at),
            // Taken with the processor, it may have waited for that.
            Node::Delivery(at) | Node::ReceiveGap(at) => {
                let Message { taken, handled, .. } = self.message(at);
                if taken == handled { Point::Handled(at) } else { Point::Taken(at) }
            }
        }
    }

    /// What may explain `point`, the most telling last.
    fn causes(&self, point: Point) -> Vec<Cause> {
        let mut causes = match point {
            Point::Rank { rank, time, nic } => self.rank_causes(rank, time, nic),
            Point::Handled(at) => self.handling_causes(at),
            Point::Taken(at) => self.taking_causes(at),
        };
        causes.reverse();
        causes
    }

    fn ends_at(&self, rank: u32, time: Picos) -> impl Iterator<Item = Node> {
        let first = self.ends.partition_point(|end| (end.0, end.1) < (rank, time));
        let ends = self.ends.iter().skip(first);
        ends.take_while(move |end| (end.0, end.1) == (rank, time)).map(|end| end.2)
    }

    fn turns_at(&self, rank: u32, time: Picos) -> impl Iterator<Item = Turn> {
        let first = self.turns.partition_point(|turn| (turn.0, turn.1) < (rank, time));
        let turns = self.turns.iter().skip(first);
        turns.take_while(move |turn| (turn.0, turn.1) == (rank, time)).map(|turn| turn.2)
    }

    fn rank_causes(&self, rank: u32, time: Picos, nic: Option<u8>) -> Vec<Cause> {
        let mut causes = Vec::new();
        for node in self.ends_at(rank, time) {
            match node {
                Node::SendGap(at) if nic == Some(self.message(at).from.nic) => {}
                Node::SendGap(_) | Node::ReceiveGap(_) => continue,
                _ => {}
            }
            causes.push(Cause::Node(node));
        }
        for turn in self.turns_at(rank, time) {
            causes.extend(self.turn_causes(turn));
        }
        causes
    }

    fn turn_causes(&self, turn: Turn) -> Vec<Cause> {
        match turn {
            Turn::Matched(at) => {
                let message = self.message(at);
                let time = message.matched.unwrap_or_default();
                let rank = message.to.rank;
                // Matched on arrival, or by a receive posted later.
                let handled = (message.handled == time).then_some(Point::Handled(at));
                let posted = Point::Rank { rank, time, nic: None };
                handled.into_iter().chain([posted]).map(Cause::Point).collect()
            }
            Turn::Calc(at) => vec![Cause::Point(self.begin(Node::Calc(at)))],
            Turn::Send(at) => vec![Cause::Point(self.begin(Node::Send(at)))],
        }
    }

    /// What lets the processor begin with a message.
    fn handling_causes(&self, at: usize) -> Vec<Cause> {
        let Message { handled, taken, to, .. } = self.message(at);
        let mut causes = Vec::new();
        if taken == handled {
            causes = self.taking_causes(at);
        }
        let ends = self
            .ends_at(to.rank, handled)
            .filter(|node| matches!(node, Node::Calc(_) | Node::Send(_) | Node::Receive(_)));
        causes.extend(ends.map(Cause::Node));
        // A match holds the processor of a sender until then.
        let turns = self.turns_at(to.rank, handled);
        for turn in turns.filter(|turn| matches!(turn, Turn::Matched(_))) {
            causes.extend(self.turn_causes(turn));
        }
        causes
    }

    /// What lets the interface take a message.
    fn taking_causes(&self, at: usize) -> Vec<Cause> {
        let Message { taken, arrived, to, .. } = self.message(at);
        let flight = (arrived == taken).then_some(Node::Flight(at));
        // Of any interface: it may have waited for another receive's.
        let gaps = self.ends_at(to.rank, taken);
        let gaps = gaps.filter(|node| matches!(node, Node::ReceiveGap(_)));
        flight.into_iter().chain(gaps).map(Cause::Node).collect()
    }

    fn count(&self, node: Node, terms: &mut Terms) {
        let message = |at| self.message(at);
        match node {
            Node::Calc(at) => {
                let Calc { work, noise, .. } = self.calc(at);
                terms.calc.add(1, work);
                terms.noise.add(u64::from(noise > Picos::ZERO), noise);
            }
            Node::Send(at) => {
                let Message { costs, size, send_noise, .. } = message(at);
                terms.overhead.add(1, costs.overhead);
                terms.overhead_bytes.add(size.saturating_sub(1), costs.overhead_bytes);
                terms.noise.add(u64::from(send_noise > Picos::ZERO), send_noise);
            }
            Node::Flight(at) => {
                let message = message(at);
                terms.overhead.add(1, message.costs.overhead);
                terms.latency.add(1, message.arrived.since(message.left()));
            }
            Node::Receive(at) => {
                let Message { costs, size, held, receive_noise, .. } = message(at);
                terms.overhead.add(1, costs.overhead);
                let bytes = held.since(costs.overhead);
                let by_network = bytes > costs.overhead_bytes;
                let term =
                    if by_network { &mut terms.gap_bytes } else { &mut terms.overhead_bytes };
                term.add(size.saturating_sub(1), bytes);
                terms.noise.add(u64::from(receive_noise > Picos::ZERO), receive_noise);
            }
            Node::Delivery(at) => {
                let Message { costs, size, .. } = message(at);
                terms.overhead.add(1, costs.overhead);
                terms.gap_bytes.add(size.saturating_sub(1), costs.gap_bytes);
            }
            Node::SendGap(at) | Node::ReceiveGap(at) => {
                let Message { costs, size, .. } = message(at);
                terms.gap.add(1, costs.gap);
                terms.gap_bytes.add(size.saturating_sub(1), costs.gap_bytes);
            }
        }
    }

    fn step(&self, node: Node) -> Step {
        let (kind, index) = match node {
            Node::Calc(at) => (StepKind::Calc, at),
            Node::Send(at) => (StepKind::Send, at),
            Node::Flight(at) => (StepKind::Flight, at),
            Node::Receive(at) => (StepKind::Receive, at),
            Node::Delivery(at) => (StepKind::Delivery, at),
            Node::SendGap(at) => (StepKind::SendGap, at),
            Node::ReceiveGap(at) => (StepKind::ReceiveGap, at),
        };
        let message = self.message(index);
        let end = match node {
            Node::Calc(at) => self.calc(at).end(),
            Node::Send(_) => message.send_end(),
            Node::Flight(_) => message.arrived,
            Node::Receive(_) => message.receive_end(),
            Node::Delivery(_) => message.done,
            Node::SendGap(_) => message.next_send(),
            Node::ReceiveGap(_) => message.next_receive(),
        };
        let begin = self.begin(node);
        Step { kind, rank: self.rank(begin), start: self.time(begin), end, index }
    }
}
