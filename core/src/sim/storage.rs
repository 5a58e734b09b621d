//! Storage of a schedule's operations during a run in global order: all of them in records
//! ([`Stored`]), or those under way in records and the others in a file
//! ([`Streamed`](super::streamed::Streamed)).

use super::hooks::MessageKind;
use super::in_order::waiting::OnRank;
use super::outcome::SimError;
use super::queues::chain::Chain;
use super::rank::dependencies::{Operations, Reached, Ready};
use super::record::{Mark, Record, Successors};
use super::records::{Records, bounds, owner};

/// Storage of a schedule's operations: [`Stored`] or [`Streamed`](super::streamed::Streamed).
#[allow(private_interfaces, reason = "what it does is between it and the engine")]
pub trait Storage {
    /// Largest number of records in use at a time; `None` if every operation has a record.
    fn most_records(&self) -> Option<u32>;

    /// True if the record shows that no operation waits for this one.
    #[inline]
    fn is_last(_record: &Record) -> bool {
        false
    }

    /// Fulfils the dependencies on an operation that has `reached` its start or end, those on its
    /// start first. `satisfied` is called with the index of each waiting operation in the whole
    /// schedule, and true if it waited for the end. Operations that are ready now are added to
    /// `ready`.
    fn satisfy(
        &mut self,
        records: &mut Records<'_>,
        on: OnRank,
        reached: Reached,
        ready: &mut Ready,
        satisfied: impl FnMut(u32, bool),
    );

    /// Operations of a rank that have no dependencies; `firsts` has the first operations of all
    /// ranks.
    fn roots(&mut self, records: &mut Records<'_>, firsts: &[u32], rank: u32) -> Ready;

    /// Index in the whole schedule of the operation of a record.
    fn number(&self, records: &Records<'_>, op: u32) -> u32;

    /// Notes that an operation is released.
    fn note_released(&mut self, records: &mut Records<'_>, op: u32);

    /// True if an operation, by its index in the whole schedule, was released.
    fn is_released(&self, records: &Records<'_>, number: u32) -> bool;

    /// Stores in the record of an eager message that its send is complete, or the sender.
    fn note_sender(record: &mut Record, rank: u32);

    /// Rank that sent a message.
    fn sender(&self, records: &Records<'_>, firsts: &[u32], op: u32) -> u32;

    /// Releases the record of an operation that is complete.
    #[inline]
    fn retire(&mut self, _records: &mut Records<'_>, _op: u32) {}

    /// True if it prefetches: the three calls below do something.
    const PREFETCHES: bool = false;

    /// Reads `place`, which is used soon, into the processor's cache, where the host can.
    #[inline]
    fn prefetch<T>(_place: &T) {}

    /// As [`Storage::prefetch`], for what is kept of `rank`.
    #[inline]
    fn prefetch_rank(&self, _rank: u32) {}

    /// As [`Storage::prefetch`], for what is kept of an operation, by its record.
    #[inline]
    fn prefetch_op(&self, _record: &Record) {}

    /// Reports an error that occurred in `satisfy` or `roots`.
    ///
    /// # Errors
    ///
    /// [`SimError`] of the first such failure.
    #[inline]
    fn check(&self) -> Result<(), SimError> {
        Ok(())
    }
}

/// Storage with a record for every operation.
#[derive(Debug)]
pub struct Stored<'m> {
    pub(super) edges: &'m [u32],
}

#[allow(private_interfaces, reason = "as of the trait")]
impl Storage for Stored<'_> {
    fn most_records(&self) -> Option<u32> {
        None
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
