//! Some of the ranks, window after window.

use core::cmp::Ordering;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

use super::incoming;
use super::mail::{END, Mail, Outbox};
use super::overlap::Receiving;
use super::rank::{Active, WindowRank};
use super::shared::{Element, HeapLinks, Shared};
use super::step::Next;
use crate::sim::charge::Charges;
use crate::sim::engine::{Finished, SimError};
use crate::sim::hooks::{Begun, Noise, Observer, Silent};
use crate::sim::matching::slots::Slots;
use crate::sim::price::{Prices, sum};
use crate::sim::queues::chain::Chain;
use crate::sim::queues::heap::Heaps;
use crate::sim::queues::wheel::Wheel;
use crate::sim::record::NONE;
use crate::sim::records::owner;
use crate::sim::release::Operations;
use crate::sim::rules::Letter;
use crate::sim::unfinished::{Left, Unfinished};
use crate::units::Picos;

/// What could not happen because its time is past 2⁶⁴ ps.
#[derive(Clone, Copy, Debug)]
struct Failure {
    time: u64,
    element: Element,
    rank: u32,
}

/// Steps for each event from which on a run in windows takes longer than one
/// event by event.
pub const STEPS: u64 = 16;

/// Some of the ranks of a schedule: a state machine that is told which
/// window to run, and is given the messages that were sent in the last one.
#[derive(Debug)]
pub struct Partition<'s, N, O = Silent> {
    pub(super) shared: Shared<'s>,
    index: u32,
    /// A rank's number, shifted by this, is that of its partition.
    pub(super) shift: u32,
    /// Its first rank.
    pub(super) first: u32,
    pub(super) ranks: &'s mut [WindowRank],
    pub(super) slots: Slots<'s>,
    pub(super) wheel: Wheel<'s>,
    pub(super) charges: Charges<'s, N, O>,
    /// Whether messages can take longer than a window, because there are
    /// several protocols.
    pub(super) several: bool,
    /// Whether messages are received with overlap.
    pub(super) overlap: bool,
    /// In place of what a rank receives that there is not.
    pub(super) receiving: &'s mut [Receiving],
    pub(super) nowhere: Receiving,
    pub(in crate::sim) heaps: HeapLinks<'s>,
    /// With overlap: messages that have come, which numbers them.
    pub(super) came: u32,
    /// Operations released and messages created.
    pub(super) events: u64,
    /// Steps that orders and searches took.
    pub(super) steps: u64,
    /// How many the next window may take in all, and [`STEPS`] more for each
    /// event after so many.
    most_steps: u64,
    events_before: u64,
    gave_up: bool,
    failure: Option<Failure>,
}

/// The part of the memory that a partition has for itself.
pub(super) struct Share<'s> {
    pub(super) index: u32,
    pub(super) shift: u32,
    pub(super) ranks: &'s mut [WindowRank],
    pub(super) slots: Slots<'s>,
    pub(super) words: &'s mut [u64],
    pub(super) links: &'s [AtomicU64],
    pub(super) receiving: &'s mut [Receiving],
}

impl<'s, N: Noise, O: Observer> Partition<'s, N, O> {
    pub(super) fn new(shared: Shared<'s>, share: Share<'s>, noise: N, observer: O) -> Self {
        let Share { index, shift, ranks, slots, words, links, receiving } = share;
        receiving.fill(Receiving::default());
        let overlap = !links.is_empty();
        // The least o + L; the requirements refuse 0.
        let width = NonZeroU64::new(shared.parameters.lookahead().0);
        let mut wheel = Wheel::new(words, ranks.len(), width.unwrap_or(NonZeroU64::MIN));
        let mut events = 0;
        for (local, rank) in (0u32..).zip(ranks.iter()) {
            events += u64::from(rank.released);
            if rank.released > 0 {
                wheel.add_now(local);
            }
        }
        let several = shared.parameters.delays().count() > 1;
        let prices = Prices::new(shared.parameters);
        Self {
            shared,
            index,
            shift,
            first: index << shift,
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

    /// A window in which a rank has something to do of its own accord, or
    /// one before that; `None` when only a message can wake it.
    #[must_use]
    pub const fn next(&self) -> Option<u64> {
        self.wheel.next()
    }

    /// Has the next window given up after `free` steps, and [`STEPS`] more for
    /// each event in it.
    pub const fn allow(&mut self, free: u64) {
        self.most_steps = self.steps.saturating_add(free);
        self.events_before = self.events;
    }

    /// Whether a window was given up; the run is of no use then.
    #[must_use]
    pub const fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Runs a window: later than those before, not after any that
    /// [`Partition::next`] named, and the very next if there is mail. Reads
    /// what other partitions sent from `inbox`, sends with `outbox`.
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
    }

    /// Gives every rank what has come for it.
    fn collect(&mut self, inbox: &Mail<'_>) {
        let Self { shared, ranks, wheel, first, .. } = self;
        inbox.collect(self.index, |at, message| {
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
                let source = match send < shared.further {
                    true => owner(shared.firsts, send),
                    // Noted there as it left.
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

    /// Sees to it that a rank is run when its next event is due.
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

    /// Runs a rank to the end of the window.
    #[inline]
    fn turn(&mut self, local: u32, inbox: &Mail<'_>, outbox: &mut Outbox<'_>) {
        let Some(&state) = self.ranks.get(local as usize) else { return };
        let mut rank = Active { number: self.first.wrapping_add(local), state };
        self.sort(&mut rank, inbox);
        while let Some(next) = self.next_of(&mut rank, inbox) {
            let more = STEPS.saturating_mul(self.events - self.events_before);
            if self.steps > self.most_steps.saturating_add(more) {
                self.gave_up = true;
                break;
            }
            if next.time > self.wheel.last {
                self.wheel.add_at(local, next.time);
                break;
            }
            let (op, turn) = (self.shared.send_of(next.op), next.class.turn());
            self.charges.observer.begun(&Begun {
                rank: rank.number,
                op,
                turn,
                time: Picos(next.time),
            });
            if self.execute(&mut rank, &next, inbox, outbox).is_err() {
                self.fail(rank.number, &next);
                break;
            }
        }
        self.keep(&mut rank, inbox);
        self.put(local, &rank);
    }

    /// Brings what came in the mail in order.
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

    /// When the kept message of `send` arrives at `rank`; checked when it left.
    pub(super) fn arrival(&self, rank: u32, send: u32) -> u64 {
        let Letter { created, source, size, .. } = self.shared.kept(send);
        let (parameters, bytes) =
            (&self.shared.parameters, self.shared.message_kind(send).bytes(size));
        let delay = parameters.delay(parameters.level(rank, source), bytes);
        let arrival = delay.and_then(|delay| sum(created, delay));
        debug_assert!(arrival.is_ok(), "it was checked when the message left");
        arrival.unwrap_or(u64::MAX)
    }

    /// Notes what failed, if nothing did before.
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

    /// What the run of all partitions has to stop with after a window: the
    /// first failure of all.
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

    /// The observer, with what it was told.
    pub fn into_observer(self) -> O {
        self.charges.observer
    }

    /// Whether there is a failure.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Operations released and messages created until now.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Steps taken until now to find the order of what was created at the
    /// same instant, and to find receives and messages among many that wait.
    /// Where they are many times the events, the engine that runs event by
    /// event is quicker.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// The ranks, and when each was done.
    pub fn finish(&self) -> impl Iterator<Item = (u32, Picos)> {
        let done = self.receiving.iter().map(|rank| rank.done).chain(core::iter::repeat(0));
        let times = self.ranks.iter().zip(done).map(|(rank, done)| Picos(rank.cpu.max(done)));
        (self.first..).zip(times)
    }

    /// How this partition's part of the run ended.
    #[must_use]
    pub fn finished(&self) -> Finished {
        Finished::of(self.events, self.finish())
    }

    /// Calls `tell` with everything that never came to its end, by rank, as
    /// [`Engine::unfinished`](crate::sim::Engine::unfinished) does.
    pub fn unfinished(&self, mut tell: impl FnMut(Unfinished)) {
        for (rank, state) in (self.first..).zip(self.ranks.iter()) {
            let unexpected = self.shared.walk(state.unexpected).map(|(_, message)| message);
            let posted = self.slots.receives(state.posted);
            let (ops, firsts) = (&self.shared, self.shared.firsts);
            let mut left = Left { ops, firsts, rank, number: |op| op, tell: &mut tell };
            left.unreceived(unexpected);
            posted.for_each(|receive| left.waiting(receive));
            left.never_ready(|op| ops.at(op).released());
        }
    }
}
