//! A part of the ranks of a streamed schedule, window by window.
//!
//! No message arrives before o + L has passed since it left. So in a window of this length each rank
//! is simulated by itself, with the messages that left in windows before, and parts of the ranks run
//! side by side. What other ranks created is ordered by its [`Origin`].

use core::mem::take;
use core::num::NonZeroU64;

use super::engine::Engine;
use super::part_mail::{Content, Mail, Outbox, Reader};
use super::pending::Attempt;
use super::ranks::Ranks;
use crate::goal::Lookup;
use crate::sim::hooks::{Noise, Silent};
use crate::sim::implicit::RankRange;
use crate::sim::network::{Departure, InFlight, Network, NetworkStopped};
use crate::sim::origin::{Ancestor, BEYOND, Origin, START};
use crate::sim::outcome::{Finished, SimError};
use crate::sim::parameters::{Parameters, Settings};
use crate::sim::queues::chain::{self, Chain};
use crate::sim::queues::queue::Entry;
use crate::sim::rank::Class;
use crate::sim::record::{Kind, Mark, NONE, Record};
use crate::sim::records::Records;
use crate::sim::schedule::Schedule;
use crate::sim::storage::Storage;
use crate::sim::streamed::Streamed;
use crate::sim::unfinished::Unfinished;
use crate::units::Picos;

/// Why a part was given up: the schedule can run in order of events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum GivenUp {
    /// The order of two simultaneous events follows from a longer history than is kept.
    Tie,
    /// A message above S waits for its receiver.
    Rendezvous,
    /// There is no room in the mail.
    Room,
    /// Ranks have several processors or interfaces, or receive with overlap, or o + L is 0.
    Unsuitable,
}

/// The message that the present event sent.
#[derive(Debug, Default)]
struct Sent(Option<Departure>);

#[allow(private_bounds, reason = "as of the trait")]
impl Network for Sent {
    const SHARED: bool = false;

    #[inline]
    fn launch(
        &mut self,
        departure: &Departure,
        _messages: &mut impl InFlight,
    ) -> Result<(), NetworkStopped> {
        self.0 = Some(*departure);
        Ok(())
    }

    #[inline]
    fn first(
        &mut self,
        _next: u64,
        _messages: &impl InFlight,
    ) -> Result<Option<Entry>, NetworkStopped> {
        Ok(None)
    }

    #[inline]
    fn land(&mut self, _messages: &mut impl InFlight) {}
}

/// A part of the ranks. Messages on their way to a rank are the list `unexpected` of its state, as
/// unexpected ones are in the table.
#[derive(Debug)]
pub struct Part<'m, 'p, N, F> {
    engine: Engine<'m, 'p, N, Silent, Sent, Streamed<'m, F>>,
    range: RankRange,
    /// o + L, ps.
    width: NonZeroU64,
    /// First and last instant of the window.
    window: [u64; 2],
    /// First arrival of a message that the present rank sent to itself.
    own_arrival: Option<u64>,
    given_up: Option<GivenUp>,
}

impl<'m, 'p, N: Noise, F: Lookup> Part<'m, 'p, N, F> {
    /// Part of a simulation, with the ranks of `range`, which are those of the schedule.
    ///
    /// # Errors
    ///
    /// [`GivenUp::Unsuitable`].
    pub fn new(
        schedule: Schedule<'m, Streamed<'m, F>>,
        parameters: Parameters<'p>,
        settings: Settings,
        noise: N,
        range: RankRange,
    ) -> Result<Self, GivenUp> {
        let engine =
            Engine::on_network(schedule, parameters, settings, noise, Silent, Sent::default());
        let width = NonZeroU64::new(parameters.lookahead().0).filter(|_| engine.ranks.single);
        let width = width.ok_or(GivenUp::Unsuitable)?;
        Ok(Self { engine, range, width, window: [0; 2], own_arrival: None, given_up: None })
    }

    /// Next window in which a rank has an event without further messages; `None` if all ranks wait
    /// for messages or are done.
    #[must_use]
    pub fn next_window(&self) -> Option<u64> {
        if !self.engine.started {
            return Some(0);
        }
        self.engine.order.queue.first().map(|entry| entry.time / self.width)
    }

    /// Runs a window, which must be later than those before and not later than any named by
    /// [`Part::next_window`]; the next one if there is mail. Reads the messages of other parts from
    /// `inbox` and sends to `outbox`.
    ///
    /// # Errors
    ///
    /// [`SimError`]; the part cannot be used after it.
    pub fn run_window(
        &mut self,
        window: u64,
        inbox: &Mail<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), SimError> {
        let begin = window.saturating_mul(self.width.get());
        self.window = [begin, begin.saturating_add(self.width.get() - 1)];
        self.engine.start()?;
        let chain = self.range.own_chain();
        let (mut received, mut reader) = (Ok(()), Reader::default());
        inbox.collect(chain, |_, message| {
            if let Some(content) = reader.read(message)
                && received.is_ok()
            {
                received = self.receive(&content, reader.history());
            }
        });
        received?;
        outbox.release(inbox, chain);
        let [_, last] = self.window;
        while self.given_up().is_none()
            && let Some(entry) = self.engine.order.queue.first().filter(|next| next.time <= last)
        {
            self.engine.prefetch_events();
            self.turn(self.engine.ranks.states.rank(entry.index), outbox)?;
        }
        Ok(())
    }

    /// Operations released and messages created so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.engine.events()
    }

    /// Why the run must be given up, if it must.
    #[must_use]
    pub fn given_up(&self) -> Option<GivenUp> {
        let tie = self.engine.ranks.records.open_tie.get().then_some(GivenUp::Tie);
        self.given_up.or(tie)
    }

    /// Result for the ranks of this part.
    ///
    /// # Errors
    ///
    /// [`SimError::Defect`].
    pub fn finished(&self) -> Result<Finished, SimError> {
        self.engine.finished()
    }

    /// Finishing time of each of its ranks.
    pub fn finishes(&self) -> impl Iterator<Item = Picos> {
        self.engine.ranks.states.ranks().map(|rank| self.engine.finish(rank))
    }

    /// Calls `tell` with everything on its ranks that did not complete, as
    /// [`Engine::unfinished`].
    pub fn unfinished(&mut self, tell: impl FnMut(Unfinished)) {
        self.engine.unfinished(tell);
    }

    /// Largest number of records in use at a time.
    #[must_use]
    pub fn most_records(&self) -> u32 {
        self.engine.most_records().unwrap_or_default()
    }

    /// Receives a message of another part.
    fn receive(&mut self, content: &Content, history: &[Ancestor]) -> Result<(), SimError> {
        let &Content { target, tag, op, seq, size, created, arrival, by } = content;
        let Engine { ranks, storage, .. } = &mut self.engine;
        let at = storage.take(&mut ranks.records)?;
        let mut creator = BEYOND;
        for event in history {
            let event =
                if event.creator == START { *event } else { Ancestor { creator, ..*event } };
            creator = ranks.records.history.add(event);
        }
        let origin = Origin { arrival, by, creator };
        let sent =
            Record { amount: size, created, peer: by, tag, next: op, seq, ..Record::default() };
        *ranks.records.at_mut(at) = Record { meta: Kind::Send as u32, ..sent };
        self.expect(target, at, origin);
        Ok(())
    }

    /// Adds a message to those on their way to `rank`.
    #[inline]
    fn expect(&mut self, rank: u32, message: u32, origin: Origin) {
        let Engine { ranks, order, .. } = &mut self.engine;
        ranks.records.set_origin(message, origin);
        ranks.records.push(&mut ranks.states.at_mut(rank).unexpected, message);
        let index = ranks.states.place(rank);
        if order.queue.time_of(index).is_none_or(|time| origin.arrival < time) {
            order.queue.set(Entry { time: origin.arrival, index, ..Entry::default() });
        }
    }

    /// Runs a rank until the end of the window.
    fn turn(&mut self, rank: u32, outbox: &mut Outbox<'_>) -> Result<(), SimError> {
        let [begin, last] = self.window;
        self.engine.order.restart(begin);
        self.engine.ranks.now = begin;
        self.own_arrival = None;
        self.sort_expected(rank);
        let next = loop {
            let next = self.engine.ranks.candidate(rank);
            let time = next.map(|next| next.entry.time);
            let expected = self.first_expected(rank);
            let first = expected.filter(|first| time.is_none_or(|time| first.0 <= time));
            if let Some((arrival, before, message)) = first {
                if arrival > last {
                    break Some(arrival);
                }
                self.arrive(rank, arrival, before, message);
                continue;
            }
            let Some(next) = next.filter(|next| next.entry.time <= last) else { break time };
            self.advance(next.entry.time);
            let Engine { ranks: Ranks { records, .. }, .. } = &mut self.engine;
            records.begin(next.at, rank);
            self.engine.execute(rank, next).map_err(|error| error.on(rank))?;
            if let Some(departure) = self.engine.order.network.0.take() {
                self.deliver(&departure, outbox)?;
                if self.given_up.is_some() {
                    return Ok(());
                }
            }
            self.engine.storage.check()?;
            let [own, _] = take(&mut self.engine.touched);
            if own.rank != NONE {
                self.engine.release(own)?;
            }
        };
        let next = next.into_iter().chain(self.own_arrival).min();
        let index = self.engine.ranks.states.place(rank);
        let queue = &mut self.engine.order.queue;
        match next {
            None => queue.drop(index),
            Some(time) => queue.set(Entry { time, index, ..Entry::default() }),
        }
        Ok(())
    }

    fn advance(&mut self, time: u64) {
        self.engine.order.advance(time);
        self.engine.ranks.now = time;
    }

    /// Sorts the messages on their way to a rank by their arrivals, those of one time by age.
    fn sort_expected(&mut self, rank: u32) {
        let Ranks { records, states, .. } = &mut self.engine.ranks;
        let expected = &mut states.at_mut(rank).unexpected;
        if *expected == NONE || records.next(*expected) == *expected {
            return;
        }
        let first = records.next(*expected);
        records.set_next(*expected, NONE);
        let before = |records: &Records<'_>, a, b| {
            let [one, other] = [a, b].map(|message| records.origin_of(message).arrival);
            one < other || one == other && records.is_older(a, b)
        };
        let sorted = chain::sort(records, first, before);
        records.set_next(sorted.last, sorted.first);
        *expected = sorted.last;
    }

    /// Arrival of the first message on its way to a rank, its predecessor in the list, and itself.
    #[inline]
    fn first_expected(&self, rank: u32) -> Option<(u64, u32, u32)> {
        let Ranks { records, states, .. } = &self.engine.ranks;
        let before = states.at(rank).unexpected;
        if before == NONE {
            return None;
        }
        let message = records.next(before);
        Some((records.origin_of(message).arrival, before, message))
    }

    /// Delivers the first message on its way to a rank.
    fn arrive(&mut self, rank: u32, arrival: u64, before: u32, message: u32) {
        let now = self.engine.ranks.now.max(arrival);
        self.advance(now);
        let Ranks { records, states, .. } = &mut self.engine.ranks;
        records.remove(&mut states.at_mut(rank).unexpected, before, message);
        self.engine.ranks.wait(rank, message, &Attempt::at(now, Class::Arrived));
    }

    /// Sends a message to its receiver, in this part or another one.
    fn deliver(&mut self, departure: &Departure, outbox: &mut Outbox<'_>) -> Result<(), SimError> {
        let &Departure { op, source, target, now, .. } = departure;
        let Engine { ranks, storage, .. } = &mut self.engine;
        let record = ranks.records.at_mut(op);
        record.peer = source;
        if !record.is(Mark::Started) {
            self.given_up = Some(GivenUp::Rendezvous);
            return Ok(());
        }
        let Record { tag, seq, amount: size, created, .. } = *record;
        // The sum was checked when the message left.
        let arrival = now.wrapping_add(departure.delay);
        let origin = Origin { arrival, ..ranks.records.origin_of(op) };
        if target == source {
            self.own_arrival = self.own_arrival.into_iter().chain([arrival]).min();
        }
        if ranks.states.ranks().contains(&target) {
            self.expect(target, op, origin);
            return Ok(());
        }
        let number = storage.index_of(&ranks.records, source, op);
        let content = Content { target, tag, op: number, seq, size, created, arrival, by: source };
        let chain = self.range.chain(target);
        let written =
            content.write(ranks.records.history.back_from(origin.creator), || outbox.send(chain));
        if written.is_none() {
            self.given_up = Some(GivenUp::Room);
            return Ok(());
        }
        storage.retire(&mut ranks.records, op);
        Ok(())
    }
}
