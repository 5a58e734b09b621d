//! Partition: a group of ranks that runs one window after the other.

use core::cmp::Ordering;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

use super::foreign::{Foreign, parts_of};
use super::incoming;
use super::mail::{END, Mail, Outbox};
use super::overlap::Receiving;
use super::rank::{Active, WindowRank};
use super::record::WindowRecord;
use super::shared::{Element, HeapLinks, Shared};
use super::step::Next;
use crate::sim::hooks::{Begun, Noise, Observed, Observer, Silent};
use crate::sim::mail::Block;
use crate::sim::outcome::{Finished, SimError};
use crate::sim::queues::chain::Chain;
use crate::sim::queues::heap::Heaps;
use crate::sim::queues::wheel::Wheel;
use crate::sim::rank::charge::Charges;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::matching::slots::Slots;
use crate::sim::rank::price::{Prices, sum};
use crate::sim::rank::rules::Letter;
use crate::sim::record::NONE;
use crate::sim::records::owner;
use crate::sim::unfinished::{Left, Unfinished};
use crate::units::Picos;

/// First event that failed because a time exceeds 2⁶⁴ ps.
#[derive(Clone, Copy, Debug)]
struct Failure {
    time: u64,
    element: Element,
    rank: u32,
}

/// Steps for each event above which a run in windows takes longer than one in global order.
pub const STEPS: u64 = 16;

/// Partition of the ranks of a schedule: a state machine that runs the window it is given, with the
/// messages that were sent in the previous window.
#[derive(Debug)]
pub struct Partition<'s, N, O = Silent> {
    pub(super) shared: Shared<'s>,
    index: u32,
    /// Partition of a rank: its number, shifted right by this.
    pub(super) shift: u32,
    /// Partitions of this process.
    block: Block,
    /// Number of records that messages of other processes took here.
    stood_in: u32,
    /// True if a message to or from another process found no room.
    pub(super) lost: bool,
    /// First rank of the partition.
    pub(super) first: u32,
    pub(super) ranks: &'s mut [WindowRank],
    pub(super) slots: Slots<'s>,
    pub(super) wheel: Wheel<'s>,
    pub(super) charges: Charges<'s, N, O>,
    /// True if there are several parameter sets, so that messages can take longer than a window.
    pub(super) several: bool,
    /// True if messages are received with overlap.
    pub(super) overlap: bool,
    /// Receiving state of each rank; `nowhere` is the sentinel for an invalid index.
    pub(super) receiving: &'s mut [Receiving],
    pub(super) nowhere: Receiving,
    pub(in crate::sim) heaps: HeapLinks<'s>,
    /// Number of messages collected so far, which numbers them; with overlap.
    pub(super) came: u32,
    /// Operations released plus messages created.
    pub(super) events: u64,
    /// Steps taken to order elements and to search lists.
    pub(super) steps: u64,
    /// Limit on `steps` for the next window, without the [`STEPS`] for each event after
    /// `events_before`.
    most_steps: u64,
    events_before: u64,
    gave_up: bool,
    failure: Option<Failure>,
}

/// Memory of one partition.
pub(super) struct Share<'s> {
    pub(super) index: u32,
    pub(super) shift: u32,
    pub(super) block: Block,
    pub(super) ranks: &'s mut [WindowRank],
    pub(super) slots: Slots<'s>,
    pub(super) words: &'s mut [u64],
    pub(super) links: &'s [AtomicU64],
    pub(super) receiving: &'s mut [Receiving],
}

impl<'s, N: Noise, O: Observer> Partition<'s, N, O> {
    pub(super) fn new(shared: Shared<'s>, share: Share<'s>, noise: N, observer: O) -> Self {
        let Share { index, shift, block, ranks, slots, words, links, receiving } = share;
        receiving.fill(Receiving::default());
        let overlap = !links.is_empty();
        // Least o + L; the requirements refuse 0.
        let width = NonZeroU64::new(shared.frame.parameters.lookahead().0);
        let mut wheel = Wheel::new(words, ranks.len(), width.unwrap_or(NonZeroU64::MIN));
        let first = shared.frame.first_rank + (index << shift);
        let mut events = 0;
        for (local, rank) in (0u32..).zip(ranks.iter()) {
            events += u64::from(rank.released);
            if rank.released > 0 {
                wheel.add_now(local);
            }
        }
        let several = shared.frame.parameters.delays().count() > 1;
        let prices = Prices::new(shared.frame.parameters);
        Self {
            shared,
            index,
            shift,
            block,
            stood_in: 0,
            lost: false,
            first,
            ranks,
            slots,
            wheel,
            charges: Charges { prices, noise, observer },
            several,
            overlap,
            receiving,
            nowhere: Receiving::default(),
            heaps: Heaps::new(links),
            came: 0,
            events,
            steps: 0,
            most_steps: u64::MAX,
            events_before: 0,
            gave_up: false,
            failure: None,
        }
    }

    /// A window up to the first in which a rank has an event without further messages; `None` if
    /// only a message can wake a rank.
    #[must_use]
    pub const fn next(&self) -> Option<u64> {
        self.wheel.next()
    }

    /// Makes the next window give up after `free` steps plus [`STEPS`] for each event in it.
    pub const fn allow(&mut self, free: u64) {
        self.most_steps = self.steps.saturating_add(free);
        self.events_before = self.events;
    }

    /// True if a message to or from another process found no room.
    #[must_use]
    pub const fn lost(&self) -> bool {
        self.lost
    }

    /// True if a window gave up; the run cannot be continued.
    #[must_use]
    pub const fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Runs a window, which must be later than those before and not later than any named by
    /// [`Partition::next`]; the next one if there is mail. Reads the messages of other partitions
    /// from
    /// `inbox` and sends to `outbox`.
    pub fn run(&mut self, window: u64, inbox: &Mail<'_>, outbox: &mut Outbox<'_>) {
        self.wheel.go_to(window);
        while let Some(mut sweep) = self.wheel.nearer() {
            while let Some(local) = self.wheel.take(&mut sweep) {
                self.reschedule(local, inbox);
            }
        }
        self.collect(inbox);
        let mut sweep = self.wheel.due();
        loop {
            let batch = self.batch(&mut sweep);
            if batch.ranks().is_empty() {
                break;
            }
            self.prefetch(&batch, inbox);
            for &local in batch.ranks() {
                self.turn(local, inbox, outbox);
            }
        }
        outbox.release(inbox, self.index);
    }

    /// Distributes incoming messages to the ranks.
    fn collect(&mut self, inbox: &Mail<'_>) {
        let Self { shared, ranks, wheel, first, stood_in, lost, .. } = self;
        // First of the parts that follow a message of another process.
        let mut part = END;
        inbox.collect(self.index, |at, message| {
            if message.target.get() == END {
                message.link.set(core::mem::replace(&mut part, at));
                return;
            }
            let part = core::mem::replace(&mut part, END);
            if part != END {
                *stood_in += 1;
                if !Self::stand_in(shared, message, inbox, part) {
                    *lost = true;
                    return;
                }
            }
            let local = message.target.get().wrapping_sub(*first);
            debug_assert!((local as usize) < ranks.len(), "it came to the wrong partition");
            if let Some(state) = ranks.get_mut(local as usize) {
                message.link.set(core::mem::replace(&mut state.incoming, at));
                wheel.add_now(local);
            }
        });
        inbox.collect_spilled(self.index, |last| {
            let mut send = last;
            while send != END {
                let record = shared.at(send);
                let (next, local) = (record.link.get(), record.peer.get().wrapping_sub(*first));
                let source = match send < shared.frame.further {
                    true => owner(shared.frame.firsts, send),
                    // Stored there when the message left.
                    false => shared.handshake(send).link.get(),
                };
                record.keep(source, record.next.get().into());
                if let Some(state) = ranks.get_mut(local as usize) {
                    record.link.set(core::mem::replace(&mut state.spilled, send));
                    wheel.add_now(local);
                }
                send = next;
            }
        });
    }

    #[inline]
    fn put(&mut self, local: u32, rank: &Active) {
        if let Some(place) = self.ranks.get_mut(local as usize) {
            *place = rank.state;
        }
    }

    /// Enters a rank into the wheel for its next event.
    fn reschedule(&mut self, local: u32, inbox: &Mail<'_>) {
        let Some(&state) = self.ranks.get(local as usize) else { return };
        let mut rank = Active { number: self.first.wrapping_add(local), state };
        if let Some(next) = self.next_of(&mut rank, inbox) {
            self.wheel.add_at(local, next.time);
        }
        if self.overlap {
            self.put(local, &rank);
        }
    }

    /// Runs a rank until the end of the window.
    #[inline]
    fn turn(&mut self, local: u32, inbox: &Mail<'_>, outbox: &mut Outbox<'_>) {
        let Some(&state) = self.ranks.get(local as usize) else { return };
        let mut rank = Active { number: self.first.wrapping_add(local), state };
        self.sort(&mut rank, inbox);
        while let Some(next) = self.next_of(&mut rank, inbox) {
            let more = STEPS.saturating_mul(self.events - self.events_before);
            if self.lost || self.steps > self.most_steps.saturating_add(more) {
                self.gave_up = true;
                break;
            }
            if next.time > self.wheel.last {
                self.wheel.add_at(local, next.time);
                break;
            }
            let (op, turn) = (self.shared.send_of(next.op), next.class.turn());
            let begun = Begun { rank: rank.number, op, turn, time: Picos(next.time) };
            self.charges.observer.observe(Observed::Begun(&begun));
            if self.execute(&mut rank, &next, inbox, outbox).is_err() {
                self.fail(rank.number, &next);
                break;
            }
        }
        self.keep(&mut rank, inbox);
        self.put(local, &rank);
    }

    /// Sorts the messages that came in the mail.
    #[inline]
    fn sort(&mut self, rank: &mut Active, inbox: &Mail<'_>) {
        let state = &mut rank.state;
        if state.spilled != NONE {
            self.keep_spilled(rank, inbox);
            return;
        }
        if let Some(message) = inbox.message(state.incoming)
            && message.link.get() != END
        {
            let mut messages = *inbox;
            state.incoming =
                incoming::sort_mail(&self.shared, &mut messages, state.incoming, &mut self.steps);
        }
        if self.several || self.overlap {
            self.keep(rank, inbox);
        }
    }

    /// Chain of the mail for a rank.
    #[inline]
    pub(super) const fn chain_of(&self, rank: u32) -> u32 {
        self.block.chain(rank >> self.shift)
    }

    /// True for a rank of another process.
    #[inline]
    pub(super) const fn is_away(&self, rank: u32) -> bool {
        self.chain_of(rank) >= self.block.each
    }

    /// Memory for messages of other processes, bytes.
    #[must_use]
    pub fn foreign_bytes(&self) -> u64 {
        let used = u64::from(self.stood_in);
        let parts = parts_of(self.shared.frame.away.creators) * size_of::<Foreign>();
        let each = size_of::<WindowRecord>() + parts;
        // With handshakes, each may take three records more, one of them of another process.
        let more = if self.shared.frame.further == NONE {
            0
        } else {
            each + 2 * size_of::<WindowRecord>()
        };
        used * (each + more) as u64
    }

    /// Arrival time of the stored message of `send` at `rank`; it was checked for overflow when it
    /// left.
    pub(super) fn arrival(&self, rank: u32, send: u32) -> u64 {
        let Letter { created, source, size, .. } = self.shared.kept(send);
        let (parameters, bytes) =
            (&self.shared.frame.parameters, self.shared.message_kind(send).bytes(size));
        let delay = parameters.delay(parameters.level(rank, source), bytes);
        let arrival = delay.and_then(|delay| sum(created, delay));
        debug_assert!(arrival.is_ok(), "it was checked when the message left");
        arrival.unwrap_or(u64::MAX)
    }

    /// Stores a failure, unless an earlier one is stored.
    #[cold]
    fn fail(&mut self, rank: u32, next: &Next) {
        let failure = Failure { time: next.time, element: next.element(), rank };
        if self.failure.is_none_or(|first| self.is_before(&failure, &first)) {
            self.failure = Some(failure);
        }
    }

    fn is_before(&self, a: &Failure, b: &Failure) -> bool {
        let order = || self.shared.order(a.element, b.element, &mut 0);
        a.time.cmp(&b.time).then_with(order) == Ordering::Less
    }

    /// Error of the run after a window: the first failure of all partitions.
    #[must_use]
    pub fn error<'p>(partitions: impl IntoIterator<Item = &'p Self>) -> Option<SimError>
    where
        Self: 'p,
    {
        let mut first: Option<Failure> = None;
        for partition in partitions {
            let Some(failure) = partition.failure else { continue };
            if first.is_none_or(|first| partition.is_before(&failure, &first)) {
                first = Some(failure);
            }
        }
        first.map(|failure| SimError::Overflow { rank: failure.rank })
    }

    /// The observer, with its results.
    pub fn into_observer(self) -> O {
        self.charges.observer
    }

    /// True if an event failed.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Operations released and messages created so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Steps taken so far to order what was created at the same instant, and to search receives and
    /// messages. If they are many times the events, the engine in global order is faster.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Finishing time of each rank.
    pub fn finish(&self) -> impl Iterator<Item = (u32, Picos)> {
        let done = self.receiving.iter().map(|rank| rank.done).chain(core::iter::repeat(0));
        let times = self.ranks.iter().zip(done).map(|(rank, done)| Picos(rank.free.cpu.max(done)));
        (self.first..).zip(times)
    }

    /// Result of this partition's ranks.
    #[must_use]
    pub fn finished(&self) -> Finished {
        let mut finished = Finished { events: self.events, ..Finished::default() };
        for (rank, finish) in self.finish() {
            finished.add(rank, finish);
        }
        finished
    }

    /// Calls `tell` with everything that did not complete, by rank, as
    /// [`Engine::unfinished`](crate::sim::Engine::unfinished).
    pub fn unfinished(&self, mut tell: impl FnMut(Unfinished)) {
        for (rank, state) in (self.first..).zip(self.ranks.iter()) {
            let unexpected = self.shared.walk(state.unexpected).map(|(_, message)| message);
            let posted = self.slots.receives(state.posted);
            let (ops, firsts, first_rank) =
                (&self.shared, self.shared.frame.firsts, self.shared.frame.first_rank);
            let number = |op| if ops.is_foreign(op) { ops.at(op).creator.get() } else { op };
            let mut left = Left { ops, firsts, first_rank, rank, number, tell: &mut tell };
            left.unreceived(unexpected);
            posted.for_each(|receive| left.waiting(receive));
            left.never_ready(|op| ops.at(op).released());
        }
    }
}
