//! What delayed each event of a simulation: the happens-before graph.
//!
//! An event begins at the latest of its causes: the dependencies that it
//! waited for, the previous users of its processor and of its interface, the
//! arrival of its message, the match that let its sender go on. A
//! [`CauseRecorder`] notes them while the engine runs, so that nothing has to be
//! guessed from equal times. Events are numbered as they were simulated, in
//! windows rank by rank; a cause comes before its event.

use std::collections::HashMap;

use loggap_core::sim::MessageKind;
use loggap_core::units::Picos;

pub use super::cause_recorder::CauseRecorder;
use super::link_holds::LinkLoss;

/// Number of an event; 0 is the start of the simulation.
pub type EventId = u32;

/// From the beginning of one event to the earliest beginning of another.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Via {
    /// A calculation is over.
    Calc,
    /// The processor has sent: o + w·O.
    Send,
    /// The processor has received: o + w·max(O, G), or o + w·O where the
    /// interface takes the bytes by itself.
    Receive,
    /// It is the same instant.
    Instant,
    /// The interface has delivered by itself: o + w·G.
    Delivery,
    /// The first byte has arrived: o + L.
    Flight,
    /// The interface can send again: g + w·G.
    SendGap,
    /// The interface can receive again: g + w·G, or g where links were charged for the bytes.
    ReceiveGap,
    /// It has come through a network, with its last byte where links were charged for the
    /// bytes: o + L and its [`Transfer`].
    Transfer,
    /// Where the last byte came, the first one would have been there w·G earlier, had it
    /// come alone: −w·G.
    FirstByte,
    /// The last byte is handled: o.
    LastByte,
}

/// One of the things that an event waited for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cause {
    /// The event before.
    pub from: EventId,
    /// What had to pass after it.
    pub via: Via,
}

impl Cause {
    /// The start of the simulation.
    pub const START: Self = Self { from: 0, via: Via::Instant };

    /// The instant of an event.
    #[must_use]
    pub const fn instant(from: EventId) -> Self {
        Self { from, via: Via::Instant }
    }
}

/// What happens in an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The simulation begins.
    Start,
    /// A calculation begins.
    Calc,
    /// A message leaves.
    Send,
    /// A receive is posted.
    Post,
    /// An interface takes a message, whose processor is told apart.
    Take,
    /// A processor begins to handle a message.
    Handle,
    /// A match lets the sender of a message above the eager limit go on; its
    /// clocks are raised to these events.
    Resume {
        /// When its processor is free.
        cpu: EventId,
        /// When its interface can send.
        out: EventId,
    },
    /// The later of several instants; nothing happens.
    Latest,
    /// The last rank is done.
    End,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When it begins.
    pub time: Picos,
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub rank: u32,
    /// The rank at the other end of its message.
    pub peer: u32,
    /// The operation, counted over the whole schedule; of a message its send.
    pub op: u32,
    /// The event that made what happens here ready: that of the release, or
    /// of a message its departure. It decides the order at equal times.
    pub creator: EventId,
    /// Of a calculation its length; of a message its bytes.
    pub amount: u64,
    /// What noise adds to the processor's time.
    pub noise: Picos,
    /// Of a message, index of its costs.
    pub(super) costs: u32,
    /// Of a send, index of its message's transfer.
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

/// What a message costs.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct MessageCosts {
    /// Bytes, of which w = max(s, 1) − 1 are charged further.
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

/// How a message came through a network, beyond o + L.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Transfer {
    /// From its send until it was through.
    pub took: Picos,
    /// What it would have taken alone, of that: w·G where links were charged.
    pub alone: Picos,
    /// Until an earlier message of the same two ranks was through, of the rest.
    pub behind: Picos,
    pub(super) first_loss: usize,
    pub(super) losses: usize,
}

impl Transfer {
    /// What was lost because links were shared.
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
    /// First operation of each rank.
    pub(super) first_ops: Vec<u32>,
    /// Whether interfaces take messages by themselves.
    pub(super) overlap: bool,
    /// Whether ranks have several processors or interfaces.
    pub(super) several: bool,
    /// Whether links were charged for bytes, so that messages arrive with the last one.
    pub(super) whole: bool,
}

impl Causes {
    /// All events, causes before what they delayed; the last is the end.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What `event` waited for.
    #[must_use]
    pub fn of(&self, event: &Event) -> &[Cause] {
        let first = event.first_cause as usize;
        self.causes.get(first..first + event.causes as usize).unwrap_or_default()
    }

    /// The event of a number; the start where there is none.
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        debug_assert!((id as usize) < self.events.len(), "no event {id}");
        self.events.get(id as usize).copied().unwrap_or(Event::NONE)
    }

    /// What the message of an event costs.
    #[must_use]
    pub fn costs(&self, event: &Event) -> MessageCosts {
        self.costs.get(event.costs as usize).copied().unwrap_or_default()
    }

    /// How the message of a send came through a network.
    #[must_use]
    pub fn transfer(&self, event: &Event) -> Transfer {
        self.transfers.get(event.transfer as usize).copied().unwrap_or_default()
    }

    /// What links cost the message of a send.
    #[must_use]
    pub fn losses(&self, event: &Event) -> &[LinkLoss] {
        let Transfer { first_loss, losses, .. } = self.transfer(event);
        self.losses.get(first_loss..first_loss + losses).unwrap_or_default()
    }

    /// What a link joins; empty where that is not known.
    #[must_use]
    pub fn link_name(&self, link: u32) -> &str {
        self.link_names.get(&link).map_or("", String::as_str)
    }

    /// Whether messages arrive with their last byte.
    #[must_use]
    pub const fn are_whole(&self) -> bool {
        self.whole
    }

    /// How long `cause` takes; saturating, and nothing where it goes back in time.
    #[must_use]
    pub fn length(&self, cause: Cause) -> Picos {
        let event = self.event(cause.from);
        let costs = self.costs(&event);
        let MessageCosts { overhead, overhead_bytes, gap, gap_bytes, latency, .. } = costs;
        let MessageCosts { receive_overhead, receive_overhead_bytes, .. } = costs;
        let parts = match cause.via {
            Via::Instant => [Picos::ZERO; 3],
            Via::Calc => [Picos(event.amount), event.noise, Picos::ZERO],
            Via::Send => [overhead, overhead_bytes, event.noise],
            Via::Receive if self.overlap || self.whole => {
                [receive_overhead, receive_overhead_bytes, event.noise]
            }
            Via::Receive => [receive_overhead, receive_overhead_bytes.max(gap_bytes), event.noise],
            Via::Delivery => [receive_overhead, gap_bytes, Picos::ZERO],
            Via::Flight => [overhead, latency, Picos::ZERO],
            Via::Transfer => [overhead, latency, self.transfer(&event).took],
            Via::FirstByte => [Picos::ZERO; 3],
            Via::LastByte => [receive_overhead, Picos::ZERO, event.noise],
            Via::ReceiveGap if self.whole => [gap, Picos::ZERO, Picos::ZERO],
            Via::SendGap | Via::ReceiveGap => [gap, gap_bytes, Picos::ZERO],
        };
        Picos(parts.iter().fold(0, |sum, message_kind| sum.saturating_add(message_kind.0)))
    }

    /// The instant before which `cause` lets nothing begin.
    #[must_use]
    pub fn instant(&self, cause: Cause) -> Picos {
        let event = self.event(cause.from);
        let start = event.time;
        if cause.via == Via::FirstByte {
            return start.since(self.costs(&event).gap_bytes);
        }
        Picos(start.0.saturating_add(self.length(cause).0))
    }

    /// Index of an event's operation on its rank.
    #[must_use]
    pub fn op_on_rank(&self, event: &Event) -> u32 {
        let first = self.first_ops.get(event.rank as usize).copied().unwrap_or_default();
        event.op.saturating_sub(first)
    }

    /// Whether interfaces take messages by themselves.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlap
    }

    /// Whether operations name several processors or interfaces.
    #[must_use]
    pub const fn has_several(&self) -> bool {
        self.several
    }

    /// Bytes of an event with its causes, as a run needs them.
    #[must_use]
    pub const fn bytes_an_event() -> usize {
        size_of::<Event>() + 4 * size_of::<Cause>()
    }
}

/// Whether a message of this part ends with a match.
pub(super) const fn is_data(message_kind: MessageKind) -> bool {
    matches!(message_kind, MessageKind::Whole | MessageKind::Data)
}
