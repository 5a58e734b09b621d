//! Records a timeline while a simulation runs.

use std::collections::HashMap;

use loggap_core::goal::ANY;
use loggap_core::sim::{self, Calculated, Handled, Matched, Observer, Sent};
use loggap_core::units::Picos;

use super::{Calc, Costs, End, Message, Part, Selection, Timeline};

/// An observer that keeps what `Selection` wants.
#[derive(Debug)]
pub struct Recorder {
    timeline: Timeline,
    selection: Selection,
    /// First operation of each rank.
    first_ops: Vec<u32>,
    /// The newest message of each send that is kept.
    messages: HashMap<u32, usize>,
}

impl Recorder {
    /// For the schedule whose ranks have these first operations; see
    /// [`Schedule::first_ops`](loggap_core::sim::Schedule::first_ops).
    #[must_use]
    pub fn new(first_ops: &[u32], selection: Selection) -> Self {
        let ranks = u32::try_from(first_ops.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Self {
            timeline: Timeline { ranks, ..Timeline::default() },
            selection,
            first_ops: first_ops.to_vec(),
            messages: HashMap::new(),
        }
    }

    /// What was recorded, in the order of events.
    #[must_use]
    pub fn finish(self) -> Timeline {
        if self.selection == Selection::default() {
            self.timeline
        } else {
            self.timeline.selected(&self.selection)
        }
    }

    fn op_of(&self, rank: u32, op: u32) -> u32 {
        op.wrapping_sub(self.first_ops.get(rank as usize).copied().unwrap_or_default())
    }

    fn message(&mut self, op: u32) -> Option<&mut Message> {
        self.timeline.messages.get_mut(*self.messages.get(&op)?)
    }
}

impl From<sim::Part> for Part {
    fn from(part: sim::Part) -> Self {
        match part {
            sim::Part::Whole => Self::Whole,
            sim::Part::Rts => Self::Rts,
            sim::Part::Cts => Self::Cts,
            sim::Part::Data => Self::Data,
        }
    }
}

impl Observer for Recorder {
    fn calculated(&mut self, event: &Calculated) {
        let &Calculated { rank, cpu, start, work, noise, .. } = event;
        let calc = Calc { rank, cpu, op: self.op_of(rank, event.op), start, work, noise };
        if self.selection.keeps(rank, calc.start, calc.end()) {
            self.timeline.calcs.push(calc);
        }
    }

    fn sent(&mut self, event: &Sent) {
        // When it will be over is not known yet.
        let kept = [event.rank, event.to];
        if !kept.iter().any(|&rank| self.selection.keeps(rank, event.start, Picos::MAX)) {
            return;
        }
        let part = Part::from(event.part);
        let owner = if part == Part::Cts { event.to } else { event.rank };
        let tag = match part {
            Part::Whole | Part::Rts => event.tag,
            Part::Cts | Part::Data => self.message(event.op).map_or(ANY, |asked| asked.tag),
        };
        self.messages.insert(event.op, self.timeline.messages.len());
        self.timeline.messages.push(Message {
            from: End { rank: event.rank, cpu: event.cpu, nic: event.nic },
            to: End { rank: event.to, cpu: 0, nic: 0 },
            op: self.op_of(owner, event.op),
            part,
            size: event.size,
            tag,
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
        });
    }

    fn handled(&mut self, event: &Handled) {
        let Some(message) = self.message(event.op) else { return };
        message.to = End { rank: event.rank, cpu: event.cpu, nic: event.nic };
        message.taken = event.taken;
        message.handled = event.start;
        message.held = event.held;
        message.receive_noise = event.noise;
        message.done = event.done;
    }

    fn matched(&mut self, event: &Matched) {
        if let Some(message) = self.message(event.send) {
            message.matched = Some(event.time);
        }
    }
}
