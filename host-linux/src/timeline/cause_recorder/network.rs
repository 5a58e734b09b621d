//! Delays of messages on a network with shared links: rules 2, 4 and 5 of `docs/networks.md`.

use loggap_core::sim::{Arrived, Handled};

use super::super::causes::{Cause, Event, EventId, Kind, MessageCosts, Transfer, Via};
use super::{CauseRecorder, NONE};

impl CauseRecorder {
    /// Stores a message's transfer through the network, when it arrives.
    pub(super) fn arrived(&mut self, event: &Arrived) {
        self.graph.whole = true;
        let departure = self.graph.event(self.op(event.op).sent);
        let MessageCosts { overhead, latency, gap_bytes, .. } = self.graph.costs(&departure);
        let took = event.time.since(departure.time).since(overhead).since(latency);
        let alone = gap_bytes.min(took);
        let mut transfer = Transfer { took, alone, ..Transfer::default() };
        if let Some(holds) = &self.holds {
            let ended = holds.take(event.op).unwrap_or_default();
            let through = ended.at.since(departure.time).max(alone).min(took);
            transfer.behind = took.since(through);
            transfer.first_loss = self.graph.losses.len();
            self.graph.losses.append(&mut ended.losses(transfer.shared()));
            transfer.losses = self.graph.losses.len() - transfer.first_loss;
        }
        let index = u32::try_from(self.graph.transfers.len()).unwrap_or(NONE);
        self.graph.transfers.push(transfer);
        let sent = self.op(event.op).sent as usize;
        if let Some(departure) = self.graph.events.get_mut(sent) {
            departure.transfer = index;
        }
    }

    /// Cause for the arrival of the message that left in event `sent`.
    pub(super) fn arrival(&self, sent: EventId) -> Cause {
        let came_through = self.graph.event(sent).transfer != 0;
        Cause { from: sent, via: if came_through { Via::Transfer } else { Via::Flight } }
    }

    /// Handles a message that arrived with its last byte, and whose processor had its turn in event
    /// `id`; the processor may have begun to work on it earlier.
    pub(super) fn handled_whole(&mut self, id: EventId, event: &Handled) {
        let &Handled { rank, op, cpu, nic, noise, .. } = event;
        let taken = self.op(op).taken;
        let whole = if taken == NONE { id } else { taken };
        let busy = self.clocks(rank, cpu).cpu;
        let had_to_wait = self.graph.event(whole).time < self.graph.event(id).time;
        let causes = if had_to_wait {
            vec![Cause::instant(id)]
        } else {
            vec![busy, Cause { from: whole, via: Via::FirstByte }]
        };
        let begun = self.latest(Kind::Latest, rank, causes);
        debug_assert_eq!(self.graph.event(begun).time, event.start, "the processor begins");
        let message = self.graph.event(id);
        if let Some(begun) = self.graph.events.get_mut(begun as usize) {
            let Event { peer, op, creator, amount, costs, .. } = message;
            *begun = Event { peer, op, creator, amount, costs, noise, ..*begun };
        }
        let worked = Cause { from: begun, via: Via::Receive };
        let last = Cause { from: whole, via: Via::LastByte };
        let done = Cause::instant(self.latest(Kind::Latest, rank, vec![worked, last]));
        if taken == NONE {
            self.clocks(rank, cpu).cpu = done;
            self.clocks(rank, nic).into = Cause { from: id, via: Via::ReceiveGap };
        } else {
            self.clocks(rank, cpu).cpu = worked;
        }
        self.change(op, |op| op.done = done);
    }
}
