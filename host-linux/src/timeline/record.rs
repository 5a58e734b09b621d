//! Observer that records a timeline while a simulation runs.

use std::collections::HashMap;
use std::sync::Arc;

use loggap_core::goal::ANY_TAG;
use loggap_core::sim::{Calculated, Handled, Matched, MessageKind, Observed, Observer, Sent};
use loggap_core::units::Picos;

use super::{Calc, Costs, End, Message, Selection, Timeline};

/// A message that left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Index of its send in the whole schedule.
    send: u32,
    message: Message,
}

/// A message at its receiver.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    op: u32,
    message_kind: MessageKind,
    to: End,
    taken: Picos,
    handled: Picos,
    held: Picos,
    noise: Picos,
    matched: Option<Picos>,
    done: Picos,
}

/// Observer that keeps what a [`Selection`] covers.
#[derive(Debug)]
pub struct Recorder {
    selection: Selection,
    /// Index of the first operation of each rank.
    first_ops: Arc<[u32]>,
    calcs: Vec<Calc>,
    departures: Vec<Departure>,
    arrivals: Vec<Arrival>,
    /// Index of the newest arrival of each send.
    newest: HashMap<u32, usize>,
}

impl Recorder {
    /// Memory for a message with its map entries, in bytes; an estimate for sizing runs.
    pub const MESSAGE_BYTES: usize = size_of::<Departure>() + size_of::<Arrival>() + 80;

    /// A recorder for the schedule whose ranks have these first operations; see
    /// [`Schedule::first_ops`](loggap_core::sim::Schedule::first_ops).
    #[must_use]
    pub fn new(first_ops: Arc<[u32]>, selection: Selection) -> Self {
        Self {
            selection,
            first_ops,
            calcs: Vec::new(),
            departures: Vec::new(),
            arrivals: Vec::new(),
            newest: HashMap::new(),
        }
    }

    /// The timeline, ordered by start, rank and operation.
    #[must_use]
    pub fn finish(self) -> Timeline {
        Self::join([self])
    }

    /// The timeline of several recorders, each for some of the ranks of one run.
    #[must_use]
    pub fn join(recorders: impl IntoIterator<Item = Self>) -> Timeline {
        let mut timeline = Timeline::default();
        let (mut departures, mut arrivals) = (Vec::new(), Vec::new());
        let mut selection = Selection::default();
        for mut recorder in recorders {
            let ranks = recorder.first_ops.len().saturating_sub(1);
            timeline.ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
            timeline.calcs.append(&mut recorder.calcs);
            departures.append(&mut recorder.departures);
            arrivals.append(&mut recorder.arrivals);
            selection = recorder.selection;
        }
        timeline.calcs.sort_by_key(|calc| (calc.start, calc.rank, calc.op));
        timeline.messages = joined(departures, arrivals);
        if selection == Selection::default() { timeline } else { timeline.selected(&selection) }
    }

    fn op_of(&self, rank: u32, op: u32) -> u32 {
        op.wrapping_sub(self.first_ops.get(rank as usize).copied().unwrap_or_default())
    }

    /// True if a message may be in the selection; its end is not known yet.
    fn keeps(&self, ends: [u32; 2], sent: Picos) -> bool {
        ends.iter().any(|&rank| self.selection.keeps(rank, sent, Picos::MAX))
    }
}

/// Messages in order, completed with their arrivals.
fn joined(mut departures: Vec<Departure>, arrivals: Vec<Arrival>) -> Vec<Message> {
    departures.sort_by_key(|&Departure { send, message }| {
        (message.sent, message.from.rank, send, message.message_kind)
    });
    let keys = departures.iter().map(|left| (left.send, left.message.message_kind));
    let places: HashMap<_, _> = keys.zip(0_usize..).collect();
    let mut messages: Vec<_> = departures.iter().map(|left| left.message).collect();
    for arrival in arrivals {
        let Some(message) =
            places.get(&(arrival.op, arrival.message_kind)).and_then(|&at| messages.get_mut(at))
        else {
            continue;
        };
        let Arrival { to, taken, handled, held, noise, matched, done, .. } = arrival;
        *message =
            Message { to, taken, handled, held, receive_noise: noise, matched, done, ..*message };
    }
    for (left, message) in departures.iter().zip(&mut messages) {
        if matches!(left.message.message_kind, MessageKind::Cts | MessageKind::Data) {
            let rts = places.get(&(left.send, MessageKind::Rts)).and_then(|&at| departures.get(at));
            message.tag = rts.map_or(ANY_TAG, |rts| rts.message.tag);
        }
    }
    messages
}

impl Observer for Recorder {
    fn observe(&mut self, event: Observed<'_>) {
        match event {
            Observed::Calculated(event) => self.calculated(event),
            Observed::Sent(event) => self.sent(event),
            Observed::Handled(event) => self.handled(event),
            Observed::Matched(event) => self.matched(event),
            _ => {}
        }
    }
}

impl Recorder {
    fn calculated(&mut self, event: &Calculated) {
        let &Calculated { rank, cpu, start, work, noise, .. } = event;
        let calc = Calc { rank, cpu, op: self.op_of(rank, event.op), start, work, noise };
        if self.selection.keeps(rank, calc.start, calc.end()) {
            self.calcs.push(calc);
        }
    }

    fn sent(&mut self, event: &Sent) {
        if !self.keeps([event.rank, event.to], event.start) {
            return;
        }
        let message_kind = event.message_kind;
        let owner = if message_kind == MessageKind::Cts { event.to } else { event.rank };
        let message = Message {
            from: End { rank: event.rank, cpu: event.cpu, nic: event.nic },
            to: End { rank: event.to, cpu: 0, nic: 0 },
            op: self.op_of(owner, event.op),
            message_kind,
            size: event.size,
            tag: event.tag,
            costs: Costs {
                overhead: event.overhead,
                overhead_bytes: event.overhead_bytes,
                gap: event.gap,
                gap_bytes: event.gap_bytes,
            },
            sent: event.start,
            send_noise: event.noise,
            arrived: event.arrival,
            ..Message::default()
        };
        self.departures.push(Departure { send: event.op, message });
    }

    fn handled(&mut self, event: &Handled) {
        if !self.keeps([event.rank, event.from], event.sent) {
            // A later match must not be attributed to an earlier arrival.
            self.newest.remove(&event.op);
            return;
        }
        if event.message_kind != MessageKind::Cts {
            self.newest.insert(event.op, self.arrivals.len());
        }
        self.arrivals.push(Arrival {
            op: event.op,
            message_kind: event.message_kind,
            to: End { rank: event.rank, cpu: event.cpu, nic: event.nic },
            taken: event.taken,
            handled: event.start,
            held: event.held,
            noise: event.noise,
            matched: None,
            done: event.done,
        });
    }

    fn matched(&mut self, event: &Matched) {
        let newest = self.newest.get(&event.send).and_then(|&at| self.arrivals.get_mut(at));
        if let Some(arrival) = newest {
            arrival.matched = Some(event.time);
        }
    }
}
