//! Where the operations of a schedule are while it runs in global order: all of them
//! in records ([`Stored`]), or those that are under way, and the others in a file
//! ([`Streamed`](super::streamed::Streamed)).

use super::engine::SimError;
use super::hooks::MessageKind;
use super::matching::{Matching, OnRank, Waiting};
use super::queues::chain::Chain;
use super::record::{Mark, Record, Successors};
use super::records::{Records, bounds, owner};
use super::release::{Operations, Reached, Ready};

/// Where the operations of a schedule are while it runs: [`Stored`], or
/// [`Streamed`](super::streamed::Streamed).
#[allow(private_bounds, reason = "what it does is between it and the engine")]
pub trait Storage: OperationStore {
    /// The most operations that had a record at a time, where not all have one.
    fn most_records(&self) -> Option<u32>;
}

/// What an engine asks of a [`Storage`].
pub(super) trait OperationStore {
    /// What waits, and how it meets.
    type Matching: Matching;

    fn matching(&mut self) -> &mut Self::Matching;
    fn waiting(&self) -> &Self::Matching;

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
}

/// All operations are in records.
#[derive(Debug)]
pub struct Stored<'m> {
    pub(super) edges: &'m [u32],
    pub(super) waiting: Waiting<'m>,
}

impl Storage for Stored<'_> {
    fn most_records(&self) -> Option<u32> {
        None
    }
}

impl<'m> OperationStore for Stored<'m> {
    type Matching = Waiting<'m>;

    #[inline]
    fn matching(&mut self) -> &mut Waiting<'m> {
        &mut self.waiting
    }

    fn waiting(&self) -> &Waiting<'m> {
        &self.waiting
    }

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
