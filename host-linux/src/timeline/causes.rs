//! Happens-before graph of a simulation: the causes that delayed each event.
//!
//! An event begins at the latest of its causes: the dependencies it waited for, the previous users
//! of its processor and interface, the arrival of its message, the match that resumed its sender. A
//! [`CauseRecorder`] records them while the engine runs, so that nothing has to be inferred from
//! equal times. Events are numbered in the order of their simulation, which in windows is rank by
//! rank; a cause always precedes its event.

use std::collections::HashMap;

use loggap_core::sim::MessageKind;
use loggap_core::units::Picos;

pub use super::cause_recorder::CauseRecorder;
use super::link_holds::LinkLoss;

/// Index of an event; 0 is the start of the simulation.
pub type EventId = u32;

/// Type of a cause: which time must pass after one event before another can begin.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Via {
    /// End of a calculation.
    Calc,
    /// End of a send on the processor: o + w·O.
    Send,
    /// End of a receive on the processor: o + w·max(O, G), or o + w·O if the interface takes the
    /// bytes independently.
    Receive,
    /// No time.
    Instant,
    /// End of the delivery by the interface: o + w·G.
    Delivery,
    /// Arrival of the first byte: o + L.
    Flight,
    /// Interface free to send again: g + w·G.
    SendGap,
    /// Interface free to receive again: g + w·G, or g if links were charged for the bytes.
    ReceiveGap,
    /// Arrival through a network, with the last byte if links were charged for the bytes: o + L and
    /// the [`Transfer`].
    Transfer,
    /// Arrival of the first byte, for messages that are reported with their last byte: w·G earlier,
    /// the transmission time without sharing.
    FirstByte,
    /// End of handling the last byte: o.
    LastByte,
}

/// A cause of an event.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cause {
    /// The earlier event.
    pub from: EventId,
    /// Time that must pass after it.
    pub via: Via,
}

impl Cause {
    /// The start of the simulation.
    pub const START: Self = Self { from: 0, via: Via::Instant };

    /// Cause that takes no time.
    #[must_use]
    pub const fn instant(from: EventId) -> Self {
        Self { from, via: Via::Instant }
    }
}

/// Quantity of the model of which a length consists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Quantity {
    /// Wire latencies, L.
    Latency,
    /// Constant overheads of senders, o_s.
    SendOverhead,
    /// Further bytes at the rate of the sending processor, O_s.
    SendOverheadPerByte,
    /// Constant overheads of receivers, o_r.
    ReceiveOverhead,
    /// Further bytes at the rate of the receiving processor, O_r.
    ReceiveOverheadPerByte,
    /// Constant gaps, g.
    Gap,
    /// Further bytes at the rate of the network, G.
    GapPerByte,
    /// Bytes in [`Quantity::GapPerByte`] that a processor handled while they arrived; to be subtracted.
    EarlyBytes,
    /// Calculations.
    Calc,
    /// Operations with noise, and the noise.
    #[default]
    Noise,
    /// Messages delayed by sharing links, and their delay; on LogGOPSim's network the time of
    /// messages beyond o + L.
    Sharing,
    /// Messages that had to wait for an earlier message between the same two ranks, and their
    /// delay.
    Order,
}

impl Quantity {
    /// Number of quantities.
    pub const COUNT: usize = 12;
    /// Number of those that are parameters of a set; they come first.
    pub const PARAMETERS: usize = 7;
}

/// Part of the length of a cause.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Part {
    /// Quantity that is counted.
    pub quantity: Quantity,
    /// Number of times, or of bytes.
    pub count: u64,
    /// Total time.
    pub time: Picos,
}

impl Part {
    /// Largest number of parts of a length.
    pub const MOST: usize = 5;
}

/// `parts`, and empty ones.
fn sum(parts: &[Part]) -> [Part; Part::MOST] {
    let mut all = [Part::default(); Part::MOST];
    all.iter_mut().zip(parts).for_each(|(place, part)| *place = *part);
    all
}

/// Sum of `parts`, saturating.
fn length(parts: &[Part]) -> Picos {
    Picos(parts.iter().fold(0, |sum, part| sum.saturating_add(part.time.0)))
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Start of the simulation.
    Start,
    /// Start of a calculation.
    Calc,
    /// Start of a send.
    Send,
    /// Post of a receive.
    Post,
    /// An interface takes a message, independently of the processor.
    Take,
    /// A processor begins to handle a message.
    Handle,
    /// A match resumes the sender of a message above the eager limit; the sender's resources become
    /// free at these events.
    Resume {
        /// When its processor becomes free.
        cpu: EventId,
        /// When its interface can send.
        out: EventId,
    },
    /// The latest of several times; no event of the simulation.
    Latest,
    /// End of the simulation.
    End,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Start of the event.
    pub time: Picos,
    /// Kind of the event.
    pub kind: Kind,
    /// Rank on which it happens.
    pub rank: u32,
    /// Rank at the other end of its message.
    pub peer: u32,
    /// Index of the operation in the whole schedule; for a message that of its send.
    pub op: u32,
    /// Event that made this one ready: the release, or the departure of the message. It determines
    /// the order of events at equal times.
    pub creator: EventId,
    /// Length of a calculation in ps, or size of a message in bytes.
    pub amount: u64,
    /// Processor time added by noise.
    pub noise: Picos,
    /// Index of the message's costs.
    pub(super) costs: u32,
    /// Index of the transfer of a send's message.
    pub(super) transfer: u32,
    pub(super) first_cause: u32,
    pub(super) causes: u32,
}

impl Event {
    pub(super) const NONE: Self = Self {
        time: Picos::ZERO,
        kind: Kind::Start,
        rank: 0,
        peer: 0,
        op: 0,
        creator: 0,
        amount: 0,
        noise: Picos::ZERO,
        costs: 0,
        transfer: 0,
        first_cause: 0,
        causes: 0,
    };
}

/// Costs of a message.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct MessageCosts {
    /// Size in bytes; w = max(s, 1) − 1 of them are charged per byte.
    pub size: u64,
    /// o, the sender's.
    pub overhead: Picos,
    /// w·O, the sender's.
    pub overhead_bytes: Picos,
    /// o, the receiver's.
    pub receive_overhead: Picos,
    /// w·O, the receiver's.
    pub receive_overhead_bytes: Picos,
    /// g.
    pub gap: Picos,
    /// w·G.
    pub gap_bytes: Picos,
    /// L.
    pub latency: Picos,
}

/// Transfer of a message through a network, in addition to o + L.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Transfer {
    /// Total time from the send, without o + L, until the message was through.
    pub took: Picos,
    /// Part of `took` without sharing: w·G if links were charged, else 0.
    pub alone: Picos,
    /// Part of `took` spent waiting for an earlier message between the same two ranks.
    pub behind: Picos,
    pub(super) first_loss: usize,
    pub(super) losses: usize,
}

impl Transfer {
    /// Part of `took` lost by sharing links.
    #[must_use]
    pub const fn shared(&self) -> Picos {
        self.took.since(self.alone).since(self.behind)
    }
}

/// The happens-before graph of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    pub(super) events: Vec<Event>,
    pub(super) causes: Vec<Cause>,
    pub(super) costs: Vec<MessageCosts>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) losses: Vec<LinkLoss>,
    pub(super) link_names: HashMap<u32, String>,
    /// Index of the first operation of each rank.
    pub(super) first_ops: Vec<u32>,
    /// True if interfaces take messages independently of the processor.
    pub(super) overlap: bool,
    /// True if a rank has several processors or interfaces.
    pub(super) several: bool,
    /// True if links were charged for bytes, so that messages arrive with their last byte.
    pub(super) whole: bool,
}

impl Causes {
    /// All events; causes precede the events they delay, and the last event is the end.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Causes of `event`.
    #[must_use]
    pub fn of(&self, event: &Event) -> &[Cause] {
        let first = event.first_cause as usize;
        self.causes.get(first..first + event.causes as usize).unwrap_or_default()
    }

    /// Event with this index; the start of the simulation for an invalid index.
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        debug_assert!((id as usize) < self.events.len(), "no event {id}");
        self.events.get(id as usize).copied().unwrap_or(Event::NONE)
    }

    /// Costs of the message of an event.
    #[must_use]
    pub fn costs(&self, event: &Event) -> MessageCosts {
        self.costs.get(event.costs as usize).copied().unwrap_or_default()
    }

    /// Transfer of a send's message through a network.
    #[must_use]
    pub fn transfer(&self, event: &Event) -> Transfer {
        self.transfers.get(event.transfer as usize).copied().unwrap_or_default()
    }

    /// Time that each link cost the message of a send.
    #[must_use]
    pub fn losses(&self, event: &Event) -> &[LinkLoss] {
        let Transfer { first_loss, losses, .. } = self.transfer(event);
        self.losses.get(first_loss..first_loss + losses).unwrap_or_default()
    }

    /// Name of a link, by the nodes it connects; empty if unknown.
    #[must_use]
    pub fn link_name(&self, link: u32) -> &str {
        self.link_names.get(&link).map_or("", String::as_str)
    }

    /// Parts whose sum is the length of `cause`: the longer of up to two sums, as a receiving
    /// processor is held for the longer of two times.
    #[must_use]
    pub fn sums(&self, cause: Cause) -> [Option<[Part; Part::MOST]>; 2] {
        let event = self.event(cause.from);
        let (costs, transfer) = (self.costs(&event), self.transfer(&event));
        let part = |quantity, count, time| Part { quantity, count, time };
        let once = |quantity, time| part(quantity, 1, time);
        let bytes = |quantity, time| part(quantity, costs.size.saturating_sub(1), time);
        let lost = |quantity, time| part(quantity, u64::from(time > Picos::ZERO), time);
        let send = once(Quantity::SendOverhead, costs.overhead);
        let receive = once(Quantity::ReceiveOverhead, costs.receive_overhead);
        let latency = once(Quantity::Latency, costs.latency);
        let gap = once(Quantity::Gap, costs.gap);
        let sent = bytes(Quantity::SendOverheadPerByte, costs.overhead_bytes);
        let received = bytes(Quantity::ReceiveOverheadPerByte, costs.receive_overhead_bytes);
        let network = bytes(Quantity::GapPerByte, costs.gap_bytes);
        let noise = lost(Quantity::Noise, event.noise);
        let one = match cause.via {
            Via::Instant => sum(&[]),
            Via::Calc => sum(&[once(Quantity::Calc, Picos(event.amount)), noise]),
            Via::Send => sum(&[send, sent, noise]),
            Via::Receive if !self.overlap && !self.whole => {
                let both = [[receive, network, noise], [receive, received, noise]];
                return both.map(|parts| Some(sum(&parts)));
            }
            Via::Receive => sum(&[receive, received, noise]),
            Via::Delivery => sum(&[receive, network]),
            Via::Flight => sum(&[send, latency]),
            Via::Transfer => sum(&[
                send,
                latency,
                bytes(Quantity::GapPerByte, transfer.alone),
                lost(Quantity::Sharing, transfer.shared()),
                lost(Quantity::Order, transfer.behind),
            ]),
            Via::FirstByte => sum(&[bytes(Quantity::EarlyBytes, costs.gap_bytes)]),
            Via::LastByte => sum(&[receive, noise]),
            Via::ReceiveGap if self.whole => sum(&[gap]),
            Via::SendGap | Via::ReceiveGap => sum(&[gap, network]),
        };
        [Some(one), None]
    }

    /// The longer of the [`Causes::sums`] of `cause`; if they are equal, that of the processor.
    #[must_use]
    pub fn parts(&self, cause: Cause) -> [Part; Part::MOST] {
        let [one, other] = self.sums(cause);
        let all = one.into_iter().chain(other);
        all.max_by_key(|parts| length(parts)).unwrap_or_default()
    }

    /// Earliest time at which `cause` lets its event begin.
    #[must_use]
    pub fn instant(&self, cause: Cause) -> Picos {
        let start = self.event(cause.from).time;
        let length = length(&self.parts(cause));
        if cause.via == Via::FirstByte {
            return start.since(length);
        }
        Picos(start.0.saturating_add(length.0))
    }

    /// Index of an event's operation on its rank.
    #[must_use]
    pub fn op_on_rank(&self, event: &Event) -> u32 {
        let first = self.first_ops.get(event.rank as usize).copied().unwrap_or_default();
        event.op.saturating_sub(first)
    }

    /// True if interfaces take messages independently of the processor.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlap
    }

    /// True if operations use several processors or interfaces.
    #[must_use]
    pub const fn has_several(&self) -> bool {
        self.several
    }

    /// Memory for an event with its causes, in bytes; an estimate for sizing runs.
    #[must_use]
    pub const fn bytes_an_event() -> usize {
        size_of::<Event>() + 4 * size_of::<Cause>()
    }
}

/// True if a match ends the transfer of a message of this kind.
pub(super) const fn is_data(message_kind: MessageKind) -> bool {
    matches!(message_kind, MessageKind::Whole | MessageKind::Data)
}
