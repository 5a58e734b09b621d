//! Timelines of simulations, and their output formats.
//!
//! A [`Timeline`] holds the times during which each processor and interface was occupied, and the
//! messages between them. A [`Recorder`] builds one while a simulation runs. Exporters: [`svg`]
//! draws it, [`chrome`] writes it for the trace viewers of Chrome and Perfetto, [`viz`] writes the
//! text format of LogGOPSim.

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

/// Use of a processor or interface.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Activity {
    /// A processor or interface sends.
    Send,
    /// A processor or interface receives.
    Receive,
    /// A processor calculates.
    Calc,
    /// Noise occupies a processor.
    Noise,
}

impl Activity {
    /// Name in legends.
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

/// A processor, or a direction of an interface, of a rank.
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
    /// Rank of the resource.
    pub rank: u32,
    /// The resource.
    pub lane: Lane,
    /// Its use.
    pub activity: Activity,
    /// Start.
    pub start: Picos,
    /// End.
    pub end: Picos,
}

/// A calculation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calc {
    /// Rank.
    pub rank: u32,
    /// Processor.
    pub cpu: u16,
    /// Index of the operation.
    pub op: u32,
    /// Start.
    pub start: Picos,
    /// Time without noise.
    pub work: Picos,
    /// Time added by noise.
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

/// Costs of a message by the model.
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

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Message {
    /// Sender.
    pub from: End,
    /// Receiver.
    pub to: End,
    /// Index of the send on its rank.
    pub op: u32,
    /// Kind of the message: whole, RTS, CTS or data.
    pub message_kind: MessageKind,
    /// Bytes.
    pub size: u64,
    /// Tag; [`ANY_TAG`](loggap_core::goal::ANY_TAG) for the wildcard.
    pub tag: u64,
    /// Costs by the model.
    pub costs: Costs,
    /// Start of the send.
    pub sent: Picos,
    /// Sender's processor time added by noise.
    pub send_noise: Picos,
    /// Arrival of its first byte.
    pub arrived: Picos,
    /// Time at which the receiver's interface took it.
    pub taken: Picos,
    /// Time at which the receiver's processor began to handle it.
    pub handled: Picos,
    /// Time for which the receiver's processor was held, without noise.
    pub held: Picos,
    /// Receiver's processor time added by noise.
    pub receive_noise: Picos,
    /// Time of the match with a receive, if any.
    pub matched: Option<Picos>,
    /// Time at which it had arrived completely and was handled.
    pub done: Picos,
}

/// Saturating sum.
fn sum(times: &[Picos]) -> Picos {
    Picos(times.iter().fold(0, |sum, time| sum.saturating_add(time.0)))
}

impl Calc {
    /// End, noise included.
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
    /// Departure of its first byte.
    #[must_use]
    pub fn left(&self) -> Picos {
        sum(&[self.sent, self.costs.overhead])
    }

    /// Time at which the sender's processor was free again.
    #[must_use]
    pub fn send_end(&self) -> Picos {
        sum(&[self.sent, self.costs.overhead, self.costs.overhead_bytes, self.send_noise])
    }

    /// Time at which the receiver's processor was free again.
    #[must_use]
    pub fn receive_end(&self) -> Picos {
        sum(&[self.handled, self.held, self.receive_noise])
    }

    /// Time at which the sender's interface could send again.
    #[must_use]
    pub fn next_send(&self) -> Picos {
        sum(&[self.sent, self.costs.gap, self.costs.gap_bytes])
    }

    /// Time at which the receiver's interface could receive again.
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

    /// Time at which it was handled and its last byte had arrived.
    fn end(&self) -> Picos {
        self.done.max(sum(&[self.arrived, self.costs.gap_bytes]))
    }
}

/// Recorded calculations and messages of a simulation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Timeline {
    /// Number of ranks of the schedule.
    pub ranks: u32,
    /// Calculations.
    pub calcs: Vec<Calc>,
    /// Messages.
    pub messages: Vec<Message>,
}

/// Ranks and time range of a simulation to keep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Selection {
    /// Ranks to keep.
    pub ranks: Range<u32>,
    /// Spans that overlap this range are kept.
    pub window: Range<Picos>,
}

impl Default for Selection {
    /// Everything.
    fn default() -> Self {
        Self { ranks: 0..u32::MAX, window: Picos::ZERO..Picos::MAX }
    }
}

impl Selection {
    /// True if the span from `start` to `end` on `rank` is kept.
    #[must_use]
    pub fn keeps(&self, rank: u32, start: Picos, end: Picos) -> bool {
        self.ranks.contains(&rank) && start < self.window.end && end >= self.window.start
    }
}

impl Timeline {
    /// The part of this timeline in `selection`; messages with at least one end among its ranks are
    /// included.
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

    /// End of the last calculation or message; gaps of interfaces do not count.
    #[must_use]
    pub fn end(&self) -> Picos {
        let calcs = self.calcs.iter().map(Calc::end);
        let messages = self
            .messages
            .iter()
            .flat_map(|message| [message.send_end(), message.receive_end(), message.done]);
        calcs.chain(messages).max().unwrap_or_default()
    }

    /// All spans, each with the message that it belongs to, if any.
    pub fn spans(&self) -> impl Iterator<Item = (Span, Option<&Message>)> {
        let calcs = self.calcs.iter().flat_map(Calc::spans).map(|span| (span, None));
        let messages = self
            .messages
            .iter()
            .flat_map(|message| message.spans().map(move |span| (span, Some(message))));
        calcs.chain(messages)
    }

    /// Processors and interfaces in use, by rank.
    fn lanes(&self) -> BTreeMap<u32, BTreeSet<Lane>> {
        let mut lanes = BTreeMap::<u32, BTreeSet<Lane>>::new();
        for (span, _) in self.spans() {
            lanes.entry(span.rank).or_default().insert(span.lane);
        }
        lanes
    }
}
