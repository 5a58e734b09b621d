//! Where the operations of a schedule are while it runs in global order: all of them
//! in records ([`Stored`]), or those that are under way, and the others in a file
//! ([`Streamed`](super::streamed::Streamed)).

use super::engine::SimError;
use super::hooks::MessageKind;
use super::lent::Checked;
use super::matching::slots::Found;
use super::matching::{Envelope, Waiting};
use super::queues::chain::Chain;
use super::rank::Rank;
use super::record::{Mark, Record, Successors};
use super::records::{Records, bounds, owner};
use super::release::{Operations, Reached, Ready};

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnRank {
    /// The rank.
    pub(super) rank: u32,
    /// The record of the operation.
    pub(super) op: u32,
}

/// Where the operations of a schedule are while it runs: [`Stored`], or
/// [`Streamed`](super::streamed::Streamed).
#[allow(private_bounds, reason = "what it does is between it and the engine")]
pub trait Storage: OperationStore {
    /// The most operations that had a record at a time, where not all have one.
    fn most_records(&self) -> Option<u32>;
}

/// What an engine asks of a [`Storage`].
pub(super) trait OperationStore {
    /// Whether nothing waits for an operation, where its record says so.
    #[inline]
    fn is_last(_record: &Record) -> bool {
        false
    }

    /// Tells those that wait for an operation what that has `reached`, first those that
    /// wait for the start; `satisfied` learns which, counted over the whole schedule, and whether
    /// they waited for the end. Those that are ready now come to `ready`.
    fn satisfy(
        &mut self,
        records: &mut Records<'_>,
        on: OnRank,
        reached: Reached,
        ready: &mut Ready,
        satisfied: impl FnMut(u32, bool),
    );

    /// Those of a rank that wait for nothing, by the first operations of all ranks.
    fn roots(&mut self, records: &mut Records<'_>, firsts: &[u32], rank: u32) -> Ready;

    /// The operation of a record, counted over the whole schedule.
    fn number(&self, records: &Records<'_>, op: u32) -> u32;

    /// Notes that an operation is released.
    fn note_released(&mut self, records: &mut Records<'_>, op: u32);

    /// Whether an operation, counted over the whole schedule, was released.
    fn is_released(&self, records: &Records<'_>, number: u32) -> bool;

    /// Notes the sender of an eager message, whose send is done.
    fn note_sender(record: &mut Record, rank: u32);

    /// The rank that sent a message.
    fn sender(&self, records: &Records<'_>, firsts: &[u32], op: u32) -> u32;

    /// Forgets an operation of which nothing is to come.
    #[inline]
    fn retire(&mut self, _records: &mut Records<'_>, _op: u32) {}

    /// What made it impossible to tell those that wait.
    ///
    /// # Errors
    ///
    /// [`SimError`].
    #[inline]
    fn check(&self) -> Result<(), SimError> {
        Ok(())
    }

    /// The first posted receive of `rank` that takes a message.
    #[inline]
    fn posted(
        &self,
        waiting: &mut Waiting<'_>,
        records: &mut Records<'_>,
        _rank: u32,
        state: &Rank,
        message: Envelope,
    ) -> Option<Found> {
        waiting.posted(records, state, message)
    }

    /// Posts a receive of `on.rank`.
    #[inline]
    fn post(
        &mut self,
        waiting: &mut Waiting<'_>,
        records: &mut Records<'_>,
        on: OnRank,
        state: &mut Rank,
    ) {
        waiting.post(records, state, on.op);
    }

    /// Takes a matched receive out.
    #[inline]
    fn take_posted(
        &mut self,
        waiting: &mut Waiting<'_>,
        records: &mut Records<'_>,
        state: &mut Rank,
        found: Found,
    ) {
        waiting.take(records, state, found);
    }

    /// Lets a message of `on.rank` wait for its receive.
    #[inline]
    fn await_receive(
        &mut self,
        waiting: &mut Waiting<'_>,
        records: &mut Records<'_>,
        on: OnRank,
        state: &mut Rank,
    ) {
        waiting.wait(records, state, on.op);
    }

    /// Takes out the oldest message of `rank` that `receive` takes.
    #[inline]
    fn take_message(
        &mut self,
        waiting: &mut Waiting<'_>,
        records: &mut Records<'_>,
        _rank: u32,
        state: &mut Rank,
        receive: Envelope,
    ) -> Option<u32> {
        waiting.meet(records, state, receive)
    }

    /// Moves all that waits, and is elsewhere, to the lists of its ranks.
    #[inline]
    fn list_waiting(&mut self, _records: &mut Records<'_>, _ranks: &mut Checked<'_, Rank>) {}

    /// Calls `tell` with every receive that is posted on a rank.
    fn posted_receives(
        waiting: &Waiting<'_>,
        _records: &Records<'_>,
        state: &Rank,
        tell: impl FnMut(u32),
    ) {
        waiting.receives(state).for_each(tell);
    }
}

/// All operations are in records.
#[derive(Debug)]
pub struct Stored<'m> {
    pub(super) edges: &'m [u32],
}

impl Storage for Stored<'_> {
    fn most_records(&self) -> Option<u32> {
        None
    }
}

impl OperationStore for Stored<'_> {
    #[inline]
    fn is_last(record: &Record) -> bool {
        record.successors() == Successors::None
    }

    #[inline]
    fn satisfy(
        &mut self,
        records: &mut Records<'_>,
        OnRank { op, .. }: OnRank,
        reached: Reached,
        ready: &mut Ready,
        satisfied: impl FnMut(u32, bool),
    ) {
        if records.successors(op) == Successors::Listed {
            records.satisfy_listed(op, self.edges, reached, ready, satisfied);
        } else if let Some(op) = records.satisfy_one(op, reached, satisfied) {
            ready.add(records, op);
        }
    }

    fn roots(&mut self, records: &mut Records<'_>, firsts: &[u32], rank: u32) -> Ready {
        let (first, end) = bounds(firsts, rank);
        records.roots(first..end)
    }

    #[inline]
    fn number(&self, _records: &Records<'_>, op: u32) -> u32 {
        op
    }

    #[inline]
    fn note_released(&mut self, records: &mut Records<'_>, op: u32) {
        records.at_mut(op).mark(Mark::Started);
    }

    fn is_released(&self, records: &Records<'_>, number: u32) -> bool {
        records.at(number).is(Mark::Started)
    }

    #[inline]
    fn note_sender(record: &mut Record, rank: u32) {
        record.set_successors(Successors::None, rank);
    }

    #[inline]
    fn sender(&self, records: &Records<'_>, firsts: &[u32], op: u32) -> u32 {
        let record = records.at(op);
        match record.message_kind() {
            MessageKind::Cts => owner(firsts, record.tag),
            // An eager send that has left.
            _ if record.successors() == Successors::None && record.next != Records::END => {
                record.next
            }
            _ => owner(firsts, op),
        }
    }
}
