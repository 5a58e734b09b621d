//! What happened when in a simulation, and pictures of it.
//!
//! A [`Timeline`] holds the time that each processor and interface was
//! occupied, and the messages between them. Exporters: [`svg`] draws it,
//! [`chrome`] writes it for the trace viewers of Chrome and Perfetto,
//! [`viz`] writes the reference simulator's text format. A [`Recorder`] makes
//! one while a simulation runs.

mod cause_recorder;
pub mod causes;
pub mod chrome;
pub mod crowd;
pub mod explain;
pub mod link_holds;
mod record;
pub mod svg;
pub mod viz;

pub use record::Recorder;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use loggap_core::sim::MessageKind;
use loggap_core::units::Picos;

/// What occupied a lane.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Activity {
    /// A processor or interface sends.
    Send,
    /// A processor or interface receives.
    Receive,
    /// A processor calculates.
    Calc,
    /// A processor was taken away by noise.
    Noise,
}

impl Activity {
    /// As printed in legends.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Calc => "calc",
            Self::Noise => "noise",
        }
    }
}

/// A resource of a rank.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Lane {
    /// Processor of this index.
    Cpu(u16),
    /// Sending direction of the interface of this index.
    NicOut(u16),
    /// Receiving direction of the interface of this index.
    NicIn(u16),
}

/// A time during which a resource was occupied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// Whose resource.
    pub rank: u32,
    /// Which one.
    pub lane: Lane,
    /// What with.
    pub activity: Activity,
    /// From when.
    pub start: Picos,
    /// Until when.
    pub end: Picos,
}

/// A calculation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calc {
    /// Whose.
    pub rank: u32,
    /// On which processor.
    pub cpu: u16,
    /// Index of the operation.
    pub op: u32,
    /// When it began.
    pub start: Picos,
    /// How long it was meant to take.
    pub work: Picos,
    /// What noise added.
    pub noise: Picos,
}

/// One end of a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct End {
    /// The rank.
    pub rank: u32,
    /// Its processor.
    pub cpu: u16,
    /// Its interface.
    pub nic: u16,
}

/// What a message costs by the model.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Costs {
    /// o.
    pub overhead: Picos,
    /// (s − 1)·O.
    pub overhead_bytes: Picos,
    /// g.
    pub gap: Picos,
    /// (s − 1)·G.
    pub gap_bytes: Picos,
}

/// A message from one rank to another, handled at its end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Message {
    /// Where it came from.
    pub from: End,
    /// Where it went.
    pub to: End,
    /// Index of the send, on the rank that has it.
    pub op: u32,
    /// Which message of the send it is.
    pub message_kind: MessageKind,
    /// Bytes.
    pub size: u64,
    /// Tag; [`ANY_TAG`](loggap_core::goal::ANY_TAG) for the wildcard.
    pub tag: u64,
    /// What it costs.
    pub costs: Costs,
    /// When the sender began.
    pub sent: Picos,
    /// What noise added there.
    pub send_noise: Picos,
    /// When its first byte arrived.
    pub arrived: Picos,
    /// When the receiver's interface took it.
    pub taken: Picos,
    /// When the receiver's processor began with it.
    pub handled: Picos,
    /// How long the processor was held.
    pub held: Picos,
    /// What noise added there.
    pub receive_noise: Picos,
    /// When a receive took it, if one did.
    pub matched: Option<Picos>,
    /// When it was all there and handled.
    pub done: Picos,
}

/// The sum, or the longest time where there is none.
fn sum(times: &[Picos]) -> Picos {
    Picos(times.iter().fold(0, |sum, time| sum.saturating_add(time.0)))
}

impl Calc {
    /// When it was over, noise included.
    #[must_use]
    pub fn end(&self) -> Picos {
        sum(&[self.start, self.work, self.noise])
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        let worked = sum(&[self.start, self.work]);
        let of = |activity, start, end| Span {
            rank: self.rank,
            lane: Lane::Cpu(self.cpu),
            activity,
            start,
            end,
        };
        [of(Activity::Calc, self.start, worked), of(Activity::Noise, worked, self.end())]
            .into_iter()
            .filter(|span| span.start < span.end)
    }
}

impl Message {
    /// When its first byte left.
    #[must_use]
    pub fn left(&self) -> Picos {
        sum(&[self.sent, self.costs.overhead])
    }

    /// When the sender's processor was free again.
    #[must_use]
    pub fn send_end(&self) -> Picos {
        sum(&[self.sent, self.costs.overhead, self.costs.overhead_bytes, self.send_noise])
    }

    /// When the receiver's processor was free again.
    #[must_use]
    pub fn receive_end(&self) -> Picos {
        sum(&[self.handled, self.held, self.receive_noise])
    }

    /// When the sender's interface could send again.
    #[must_use]
    pub fn next_send(&self) -> Picos {
        sum(&[self.sent, self.costs.gap, self.costs.gap_bytes])
    }

    /// When the receiver's interface could receive again.
    #[must_use]
    pub fn next_receive(&self) -> Picos {
        sum(&[self.taken, self.costs.gap, self.costs.gap_bytes])
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        let (from, to) = (self.from, self.to);
        let sent = sum(&[self.sent, self.costs.overhead, self.costs.overhead_bytes]);
        let received = sum(&[self.handled, self.held]);
        let of = |rank, lane, activity, start, end| Span { rank, lane, activity, start, end };
        [
            of(from.rank, Lane::Cpu(from.cpu), Activity::Send, self.sent, sent),
            of(from.rank, Lane::Cpu(from.cpu), Activity::Noise, sent, self.send_end()),
            of(from.rank, Lane::NicOut(from.nic), Activity::Send, self.sent, self.next_send()),
            of(to.rank, Lane::Cpu(to.cpu), Activity::Receive, self.handled, received),
            of(to.rank, Lane::Cpu(to.cpu), Activity::Noise, received, self.receive_end()),
            of(to.rank, Lane::NicIn(to.nic), Activity::Receive, self.taken, self.next_receive()),
        ]
        .into_iter()
        .filter(|span| span.start < span.end)
    }

    /// When its last byte was there and somebody had taken it.
    fn end(&self) -> Picos {
        self.done.max(sum(&[self.arrived, self.costs.gap_bytes]))
    }
}

/// The course of a simulation, as far as it was asked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Timeline {
    /// Ranks of the schedule.
    pub ranks: u32,
    /// Calculations.
    pub calcs: Vec<Calc>,
    /// Messages.
    pub messages: Vec<Message>,
}

/// Which part of a simulation is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Selection {
    /// These ranks.
    pub ranks: Range<u32>,
    /// What touches this time.
    pub window: Range<Picos>,
}

impl Default for Selection {
    /// Everything.
    fn default() -> Self {
        Self { ranks: 0..u32::MAX, window: Picos::ZERO..Picos::MAX }
    }
}

impl Selection {
    /// Whether a time from `start` to `end` of `rank` is kept.
    #[must_use]
    pub fn keeps(&self, rank: u32, start: Picos, end: Picos) -> bool {
        self.ranks.contains(&rank) && start < self.window.end && end >= self.window.start
    }
}

impl Timeline {
    /// The part of this timeline that `selection` keeps; messages with at
    /// least one end among its ranks.
    #[must_use]
    pub fn selected(&self, selection: &Selection) -> Self {
        let calcs =
            self.calcs.iter().filter(|calc| selection.keeps(calc.rank, calc.start, calc.end()));
        let messages = self.messages.iter().filter(|message| {
            let (start, end) = (message.sent, message.end());
            [message.from, message.to].iter().any(|at| selection.keeps(at.rank, start, end))
        });
        Self {
            ranks: self.ranks,
            calcs: calcs.copied().collect(),
            messages: messages.copied().collect(),
        }
    }

    /// When the last thing in it is over; gaps of interfaces do not count.
    #[must_use]
    pub fn end(&self) -> Picos {
        let calcs = self.calcs.iter().map(Calc::end);
        let messages = self
            .messages
            .iter()
            .flat_map(|message| [message.send_end(), message.receive_end(), message.done]);
        calcs.chain(messages).max().unwrap_or_default()
    }

    /// Everything that occupied something, with the message it belongs to.
    pub fn spans(&self) -> impl Iterator<Item = (Span, Option<&Message>)> {
        let calcs = self.calcs.iter().flat_map(Calc::spans).map(|span| (span, None));
        let messages = self
            .messages
            .iter()
            .flat_map(|message| message.spans().map(move |span| (span, Some(message))));
        calcs.chain(messages)
    }

    /// The processors and interfaces that occur, by rank.
    fn lanes(&self) -> BTreeMap<u32, BTreeSet<Lane>> {
        let mut lanes = BTreeMap::<u32, BTreeSet<Lane>>::new();
        for (span, _) in self.spans() {
            lanes.entry(span.rank).or_default().insert(span.lane);
        }
        lanes
    }
}
