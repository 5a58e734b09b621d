//! Records of a schedule, for the engine in global order.

use core::cell::Cell;
use core::cmp::Ordering;

use super::hooks::MessageKind;
use super::lent::Checked;
use super::network::InFlight;
use super::origin::{Ancestor, History, Origin};
use super::queues::chain::Chain;
use super::queues::queue::Entry;
use super::rank::Units;
use super::rank::dependencies::Operations;
use super::record::{Kind, NONE, Record, Successors};

/// Records of a schedule. Every index in a list, an edge or a slot is valid here.
#[derive(Debug)]
pub(super) struct Records<'m> {
    all: Checked<'m, Record>,
    /// See [`Operations::time_of`]. Empty where the processor's clock holds the same time.
    times: &'m mut [u64],
    /// [`Units::wide`] of each operation; empty if all fit into their records.
    units: &'m mut [u32],
    /// Origins of operations and messages; empty where stamps order all.
    origins: &'m mut [Origin],
    /// Origin of what the present event creates.
    pub(super) origin: Origin,
    /// True if the order of two is not known that were created at one time.
    pub(super) open_tie: Cell<bool>,
    pub(super) history: History<'m>,
}

impl<'m> Records<'m> {
    pub(super) fn new(
        all: &'m mut [Record],
        times: &'m mut [u64],
        units: &'m mut [u32],
        origins: &'m mut [Origin],
        history: &'m mut [Ancestor],
    ) -> Self {
        let (origin, open_tie) = (Origin::default(), Cell::new(false));
        let history = History::new(history);
        Self { all: Checked::new(all), times, units, origins, origin, open_tie, history }
    }

    /// Origin of an operation or message; where stamps order all, that of nothing.
    #[inline]
    pub(super) fn origin_of(&self, op: u32) -> Origin {
        self.origins.get(op as usize).copied().unwrap_or_default()
    }

    /// Stores the origin of an operation or message, where it is needed.
    #[inline]
    pub(super) fn set_origin(&mut self, op: u32, origin: Origin) {
        if let Some(place) = self.origins.get_mut(op as usize) {
            *place = origin;
        }
    }

    /// Notes that an operation or message was created by the present event.
    #[inline]
    pub(super) fn stamp(&mut self, op: u32, now: u64, seq: u32) {
        self.set_origin(op, self.origin);
        let record = self.at_mut(op);
        record.created = now;
        record.seq = seq;
    }

    /// True if stamps order all.
    #[inline]
    pub(super) const fn are_stamped(&self) -> bool {
        self.origins.is_empty()
    }

    /// True if an operation or message was created before another one on its rank.
    #[inline]
    pub(super) fn is_older(&self, op: u32, other: u32) -> bool {
        if self.are_stamped() {
            return self.at(op).stamp() < self.at(other).stamp();
        }
        self.is_older_apart(op, other)
    }

    fn is_older_apart(&self, op: u32, other: u32) -> bool {
        let order = self.history.compare(self.ancestor(op), self.ancestor(other));
        self.open_tie.set(self.open_tie.get() || order.is_none());
        order.is_some_and(Ordering::is_lt)
    }

    /// An operation or message, as the history has it when it is executed.
    #[inline]
    fn ancestor(&self, op: u32) -> Ancestor {
        let &Record { created, seq, .. } = self.at(op);
        let Origin { by, creator, .. } = self.origin_of(op);
        Ancestor { created, seq, by, creator }
    }

    /// Notes that an operation or message is executed on a rank.
    #[inline]
    pub(super) fn begin(&mut self, op: u32, rank: u32) {
        let creator = self.history.add(self.ancestor(op));
        self.origin = Origin { arrival: 0, by: rank, creator };
    }

    /// Processor and interface of an operation.
    #[inline]
    pub(super) fn units_of(&self, op: u32) -> Units {
        let packed = self.at(op).packed_units();
        if packed == 0 {
            return Units::default();
        }
        let wide = self.units.get(op as usize).copied();
        wide.map_or(Units::of_packed(packed), Units::of_wide)
    }

    /// Stores the processor and interface of an operation.
    pub(super) fn set_units(&mut self, op: u32, units: Units) {
        if let Some(place) = self.units.get_mut(op as usize) {
            *place = units.wide();
        }
    }

    /// Capacity in records.
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// True if a record was written that does not exist.
    pub(super) const fn lost(&self) -> bool {
        self.all.lost()
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Record {
        self.all.at(index)
    }

    /// The record at an index, if there is one.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&Record> {
        self.all.get(index)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Record {
        self.all.at_mut(index)
    }

    /// Inserts a record into a list in stamp order; usually at the end.
    pub(super) fn insert_by_stamp(&mut self, last: &mut u32, index: u32) {
        self.insert(last, index, |records, a, b| records.is_older(a, b));
    }
}

impl Chain for Records<'_> {
    const END: u32 = NONE;

    #[inline]
    fn next(&self, at: u32) -> u32 {
        self.at(at).link
    }

    #[inline]
    fn set_next(&mut self, at: u32, next: u32) {
        self.at_mut(at).link = next;
    }
}

impl InFlight for Records<'_> {
    #[inline]
    fn arrival(&self, message: u32, delay: u64) -> Entry {
        let record = self.at(message);
        // The sum was checked when the message left.
        record.entry(record.created.wrapping_add(delay), message)
    }
}

impl Operations for Records<'_> {
    #[inline]
    fn kind(&self, op: u32) -> Kind {
        self.at(op).kind()
    }

    #[inline]
    fn successors(&self, op: u32) -> Successors {
        self.at(op).successors()
    }

    #[inline]
    fn successor(&self, op: u32) -> u32 {
        self.at(op).next
    }

    #[inline]
    fn message_kind(&self, op: u32) -> MessageKind {
        self.at(op).message_kind()
    }

    #[inline]
    fn units(&self, op: u32) -> Units {
        let record = self.at(op);
        let answers = record.message_kind() == MessageKind::Cts;
        self.units_of(if answers { record.tag } else { op })
    }

    #[inline]
    fn peer(&self, op: u32) -> u32 {
        self.at(op).peer
    }

    #[inline]
    fn tag(&self, op: u32) -> u32 {
        self.at(op).tag
    }

    #[inline]
    fn amount(&self, op: u32) -> u64 {
        self.at(op).amount
    }

    #[inline]
    fn time_of(&self, op: u32) -> u64 {
        self.times.get(op as usize).copied().unwrap_or_default()
    }

    #[inline]
    fn set_time(&mut self, op: u32, time: u64) {
        if let Some(place) = self.times.get_mut(op as usize) {
            *place = time;
        }
    }
}

/// Rank of an operation, by binary search in the first operations of all ranks.
#[allow(clippy::cast_possible_truncation, reason = "at most one for each rank")]
#[inline]
pub(super) fn owner(firsts: &[u32], op: u32) -> u32 {
    firsts.partition_point(|&first| first <= op).saturating_sub(1) as u32
}

/// First operation of a rank, and one past its last.
pub(super) fn bounds(firsts: &[u32], rank: u32) -> (u32, u32) {
    let at = |rank: usize| firsts.get(rank).copied().unwrap_or_default();
    (at(rank as usize), at(rank as usize + 1))
}
