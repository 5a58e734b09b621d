//! Dependencies: who is released by what.

use super::engine::{Engine, SimError};
use super::hooks::{Noise, Observer, Released, Satisfied};
use super::network::Network;
use super::operation::cpu_index;
use super::rank::Class;
use super::record::{Kind, NONE, Successors};

/// What an operation reaches, for those that wait for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reached {
    Start,
    End,
}

/// Operations of one rank that have become ready in this event: lists of
/// sends, receives and calculations, each in the order of becoming ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    rank: u32,
    lists: [u32; 3],
}

impl Ready {
    pub(super) const NOBODY: Self = Self { rank: NONE, lists: [NONE; 3] };
}

impl<N: Noise, O: Observer, W: Network> Engine<'_, '_, N, O, W> {
    /// Tells those that wait for `op` of `rank` that it has `reached` its
    /// start or end, and that they may not begin before `time`.
    #[inline]
    pub(super) fn satisfy(&mut self, rank: u32, op: u32, reached: Reached, time: u64) {
        let record = self.records.at(op);
        let next = record.next;
        match (record.successors(), reached) {
            (Successors::Ends, Reached::End) | (Successors::Starts, Reached::Start) => {
                self.count_down(rank, (next, op), (reached, time));
            }
            (Successors::Listed, _) => self.satisfy_listed(rank, (next, op), (reached, time)),
            _ => {}
        }
    }

    fn satisfy_listed(
        &mut self,
        rank: u32,
        (list, on): (u32, u32),
        (reached, time): (Reached, u64),
    ) {
        let edges = self.edges;
        let Some((&[ends, starts], all)) =
            edges.get(list as usize..).and_then(|words| words.split_first_chunk())
        else {
            return;
        };
        let (first, count) = match reached {
            Reached::End => (0, ends),
            Reached::Start => (ends as usize, starts),
        };
        debug_assert!(first + count as usize <= all.len(), "a list ends where it says");
        let some = all.get(first..first.saturating_add(count as usize)).unwrap_or_default();
        for &op in some {
            self.count_down(rank, (op, on), (reached, time));
        }
    }

    #[inline]
    fn count_down(&mut self, rank: u32, (op, on): (u32, u32), (reached, time): (Reached, u64)) {
        let end = reached == Reached::End;
        self.observer.satisfied(&Satisfied { rank, op, on, end });
        if let Some(not_before) = self.times.get_mut(op as usize) {
            *not_before = (*not_before).max(time);
        }
        let record = self.records.at_mut(op);
        debug_assert!(record.link > 0 && !record.started(), "it waits for one more");
        record.link = record.link.wrapping_sub(1);
        if record.link == 0 {
            self.ready(rank, op);
        }
    }

    /// Notes that an operation has become ready.
    #[inline]
    pub(super) fn ready(&mut self, rank: u32, op: u32) {
        let class = match self.records.at(op).kind() {
            Kind::Send => 0,
            Kind::Receive => 1,
            Kind::Calc => 2,
        };
        // An event touches its own rank, and at most one other as well.
        let [own, other] = &mut self.released;
        let ready = if own.rank == NONE || own.rank == rank { own } else { other };
        debug_assert!(ready.rank == NONE || ready.rank == rank, "an event touches two ranks");
        ready.rank = rank;
        if let Some(last) = ready.lists.get_mut(class) {
            self.records.push(last, op);
        }
    }

    /// Releases what has become ready, in ascending order of ranks.
    #[inline]
    pub(super) fn release(&mut self) -> Result<(), SimError> {
        let [own, other] = self.released;
        if own.rank == NONE {
            return Ok(());
        }
        self.released = [Ready::NOBODY; 2];
        let (first, second) = if other.rank < own.rank { (other, own) } else { (own, other) };
        self.release_one(first)?;
        if second.rank != NONE {
            self.release_one(second)?;
        }
        Ok(())
    }

    fn release_one(&mut self, ready: Ready) -> Result<(), SimError> {
        const CLASSES: [Class; 3] = [Class::Sends, Class::Receives, Class::Calcs];
        for (last, class) in ready.lists.into_iter().zip(CLASSES) {
            if last == NONE {
                continue;
            }
            let mut op = self.records.at(last).link;
            loop {
                let next = self.records.at(op).link;
                self.release_op(ready.rank, op, class)?;
                if op == last {
                    break;
                }
                op = next;
            }
        }
        self.changed(ready.rank);
        Ok(())
    }

    /// Draws a stamp for an operation and puts it into its list.
    #[inline]
    fn release_op(&mut self, rank: u32, op: u32, class: Class) -> Result<(), SimError> {
        let seq = self.draw()?;
        let created = self.now;
        let cpu = cpu_index(self.records.at(op).cpu());
        self.observer.released(&Released { rank, op, cpu });
        let posting = if class == Class::Receives {
            let cpu = self.records.at(op).cpu();
            Some(self.cpu(rank, cpu).max(self.time_of(op)))
        } else {
            None
        };
        let record = self.records.at_mut(op);
        record.created = created;
        record.seq = seq;
        record.set_started();
        if let Some(time) = posting {
            record.amount = time;
        }
        self.enlist(rank, class, op);
        Ok(())
    }
}
