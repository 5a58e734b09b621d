//! Messages of other processes, and the order of their creation.
//!
//! The history of a message is the chain of its creators up to an operation without dependencies.
//! Its part in another process cannot be read, so a message to another process carries a summary:
//! the creation times of its last creators, a hash of all times, and the operation without
//! dependencies. Two chains are compared by these times, which decide if they differ; if the hashes
//! are equal, so are all times, and the operations without dependencies decide. Where neither
//! decides, the order is unknown, and the run is aborted.

use core::cmp::Ordering;

use super::mail::{END, Message};
use super::partition::Partition;
use super::shared::{Element, Shared};
use crate::sim::hooks::{Noise, Observer};
use crate::sim::mail::Outbox;
use crate::sim::rank::rules::Letter;
use crate::sim::record::NONE;
use crate::sim::records::{bounds, owner};
use crate::sim::word::{Word32, Word64, halves, whole};

/// Creation times in a summary.
const TIMES: usize = 3;

/// Messages of other processes beyond its receives for which a partition has records: as many are
/// named if they are not received.
pub(super) const SPARE: u32 = 64;

/// Steps that abort a run: the order of events is unknown, or a message finds no room.
pub const UNKNOWN: u64 = 1 << 56;

/// Summary of the history of an operation.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// Creation times of the operation and of its last creators, ps.
    times: [u64; TIMES],
    /// Number of creation times up to the operation without dependencies; one more than [`TIMES`]
    /// if there are more.
    depth: u32,
    /// Hash of all creation times.
    hash: u64,
    /// Rank of the operation without dependencies, and its number there.
    root: [u32; 2],
}

/// Stored summary of the history of another process's send.
#[derive(Debug, Default)]
pub struct Foreign {
    times: [Word64; TIMES],
    hash: Word64,
    root: [Word32; 2],
    depth: Word32,
}

/// Polynomial hash of creation times modulo 2⁶¹ − 1: that of a chain is known from the hash of its
/// older part.
#[derive(Clone, Copy)]
struct Hash {
    sum: u64,
    power: u64,
}

impl Hash {
    const MODULUS: u64 = (1 << 61) - 1;
    const BASE: u64 = 0x0b4e_8d2f_51a7_c693;
    /// Value of the end of a chain.
    const ROOT: u64 = 0x1234_5678_9abc_def1;
    const NEW: Self = Self { sum: 0, power: 1 };

    #[allow(clippy::cast_possible_truncation, reason = "less than the modulus")]
    const fn times(a: u64, b: u64) -> u64 {
        (a as u128 * b as u128 % Self::MODULUS as u128) as u64
    }

    /// Adds the next value, or the hash of the rest of the chain.
    const fn add(&mut self, value: u64) {
        let term = Self::times(self.power, value % Self::MODULUS);
        self.sum = (self.sum + term) % Self::MODULUS;
        self.power = Self::times(self.power, Self::BASE);
    }
}

impl Foreign {
    fn get(&self) -> History {
        History {
            times: self.times.each_ref().map(Word64::get),
            depth: self.depth.get(),
            hash: self.hash.get(),
            root: self.root.each_ref().map(Word32::get),
        }
    }

    fn set(&self, history: &History) {
        let History { times, depth, hash, root } = history;
        for (place, time) in self.times.iter().zip(times) {
            place.set(*time);
        }
        for (place, number) in self.root.iter().zip(root) {
            place.set(*number);
        }
        self.depth.set(*depth);
        self.hash.set(*hash);
    }
}

impl History {
    /// Writes the summary into the two messages that follow the one of a send with `number`.
    fn write(&self, [first, second]: [&Message; 2], number: u32) {
        let [newest, middle, oldest] = self.times;
        let [rank, root] = self.root;
        first.write_more(self.hash, newest, [rank, root]);
        second.write_more(middle, oldest, [self.depth, number]);
    }

    /// Reads what [`History::write`] wrote, with the number of the send.
    fn read([first, second]: [&Message; 2]) -> (Self, u32) {
        let (hash, newest, root) = first.read_more();
        let (middle, oldest, [depth, number]) = second.read_more();
        (Self { times: [newest, middle, oldest], depth, hash, root }, number)
    }
}

impl Message {
    fn write_more(&self, first: u64, second: u64, [third, fourth]: [u32; 2]) {
        let [low, high] = halves(second);
        let letter =
            Letter { created: first, send: low, source: high, tag: third, size: fourth.into() };
        self.write(NONE, &letter);
    }

    #[allow(clippy::cast_possible_truncation, reason = "it was written from 32 bits")]
    fn read_more(&self) -> (u64, u64, [u32; 2]) {
        let Letter { created, send, source, tag, size } = self.read();
        (created, whole([send, source]), [tag, size as u32])
    }
}

impl Shared<'_> {
    /// True for the send of another process.
    #[inline]
    pub(super) const fn is_foreign(&self, op: u32) -> bool {
        op >= self.first_foreign
    }

    /// Summary of the send of another process.
    fn foreign(&self, op: u32) -> Option<&Foreign> {
        self.foreign.get(op.wrapping_sub(self.first_foreign) as usize)
    }

    /// Rank of an operation of this process.
    fn rank_of(&self, op: u32) -> u32 {
        self.first_rank.wrapping_add(owner(self.firsts, op))
    }

    /// Summary of the history of an element, of which the hash and the end matter only if it has at
    /// most `most` creation times. Adds the number of steps to `steps`.
    fn history(&self, of: Element, most: usize, steps: &mut u64) -> History {
        let (mut history, mut hash, mut at, mut depth) = (History::default(), Hash::NEW, of, 0);
        let mut note = |depth: &mut usize, time| {
            if let Some(place) = history.times.get_mut(*depth) {
                *place = time;
            }
            *depth += 1;
        };
        let root = loop {
            *steps += 1;
            if depth > most {
                break [0; 2];
            }
            if let Element::Op(op) = at
                && let Some(foreign) = self.foreign(op)
            {
                let older = foreign.get();
                let known = older.times.into_iter().take(older.depth as usize);
                known.for_each(|time| note(&mut depth, time));
                depth += usize::from(older.depth as usize > TIMES);
                hash.add(older.hash);
                break older.root;
            }
            let Some((time, creator)) = self.origin(at) else {
                hash.add(Hash::ROOT);
                let Element::Op(op) = at else { break [0; 2] };
                break [self.rank_of(op), self.at(op).number()];
            };
            note(&mut depth, time);
            hash.add(time);
            at = creator;
        };
        let depth = u32::try_from(depth.min(TIMES + 1)).unwrap_or_default();
        History { depth, hash: hash.sum, root, ..history }
    }

    /// As [`Shared::order`], if one of the elements is the send of another process.
    #[cold]
    pub(super) fn order_foreign(&self, a: Element, b: Element, steps: &mut u64) -> Ordering {
        if let (Element::Op(a), Element::Op(b)) = (a, b)
            && self.is_foreign(a)
            && self.is_foreign(b)
            && self.at(a).peer.get() == self.at(b).peer.get()
        {
            return self.at(a).number().cmp(&self.at(b).number());
        }
        let elements = [a, b];
        let [a, b] = elements.map(|element| self.history(element, TIMES, steps));
        let [known_a, known_b] =
            [&a, &b].map(|history| history.times.iter().take(history.depth as usize));
        // The end of a chain precedes everything.
        let by_times = known_a.cmp(known_b).then_with(|| a.depth.cmp(&b.depth));
        if by_times.is_ne() {
            return by_times;
        }
        let [a, b] = elements.map(|element| self.history(element, usize::MAX, steps));
        if a.hash == b.hash && a.root != b.root {
            return a.root.cmp(&b.root);
        }
        *steps += UNKNOWN;
        Ordering::Equal
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// Sends a message to a rank of another process, with the summary of its history.
    #[cold]
    pub(super) fn send_away(
        &mut self,
        target: u32,
        letter: &Letter,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let chain = self.chain_of(target);
        let places = [outbox.send(chain), outbox.send(chain), outbox.send(chain)];
        let [Some(place), Some(first), Some(second)] = places else {
            self.steps += UNKNOWN;
            return;
        };
        let history = self.shared.history(Element::Op(letter.send), usize::MAX, &mut self.steps);
        history.write([first, second], self.shared.at(letter.send).number());
        let local = letter.source.wrapping_sub(self.shared.first_rank);
        let send = letter.send.wrapping_sub(bounds(self.shared.firsts, local).0);
        place.write(target, &Letter { send, ..*letter });
    }

    /// Gives a message of another process, with the two that follow it, a record of its own as its
    /// send. False if all are taken.
    pub(super) fn stand_in(
        shared: &Shared<'_>,
        records: &mut core::ops::Range<u32>,
        message: &Message,
        more: [&Message; 2],
    ) -> bool {
        let Some(record) = records.next() else { return false };
        let (letter, (history, number)) = (message.read(), History::read(more));
        shared.at(record).stand_for(&letter, number);
        if let Some(foreign) = shared.foreign(record) {
            foreign.set(&history);
        }
        message.send.set(record);
        true
    }
}

const _: () = assert!(END == NONE, "no rank has this number");
