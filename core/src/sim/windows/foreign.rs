//! Messages of other processes, and the order of their creation.
//!
//! The history of a message is the chain of its creators up to an operation without dependencies.
//! Its part in another process cannot be read. Only messages created at one time need it: a run in
//! which such messages of several processes meet is aborted, and repeated with a summary in each:
//! its last creators with their creation times and names, a hash of all times, and the operation
//! without dependencies. Two chains are compared by the times, and at a common creator by its order;
//! if their hashes are equal, by the operations without dependencies. If that does not decide
//! either, the run is repeated with more creators.

use core::cmp::Ordering;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::mail::{END, Mail, Message};
use super::partition::Partition;
use super::shared::{Element, Shared};
use crate::halves::{halves, whole};
use crate::sim::hooks::{MessageKind, Noise, Observer};
use crate::sim::mail::Outbox;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::rules::Letter;
use crate::sim::records::{bounds, owner};
use crate::sim::word::Word32;

/// Room for messages of other processes and their histories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Away {
    /// Creators in a summary; without any it has nothing else of the history, either.
    pub creators: u32,
    /// Messages beyond its receives for which a process has records.
    pub spare: u32,
}

impl Away {
    /// Without histories, and with room for some messages that are not received.
    pub const FEW: Self = Self { creators: 0, spare: 64 };

    /// With the fewest creators, or more than now.
    #[must_use]
    pub const fn longer(self) -> Self {
        Self { creators: if self.creators == 0 { 3 } else { self.creators * 16 }, ..self }
    }
}

impl Default for Away {
    fn default() -> Self {
        Self::FEW
    }
}

/// Steps that abort a run: the order of events is unknown.
pub const UNKNOWN: u64 = 1 << 56;

/// Words of a [`Foreign`].
const WORDS: usize = 6;

/// Part of a summary of a history, as in a place of the mail. The first part is the `Summary`,
/// the others have the creators: creation time and name.
#[derive(Debug, Default)]
pub struct Foreign([Word32; WORDS]);

/// Parts of a summary with `creators`.
pub(super) fn parts_of(creators: u32) -> usize {
    1 + (creators as usize * CREATOR_WORDS).div_ceil(WORDS)
}

/// Words of a creator in a summary.
const CREATOR_WORDS: usize = 4;

/// First part of a summary.
#[derive(Clone, Copy, Debug)]
struct Summary {
    message_kind: MessageKind,
    /// Number of the operation's release on its rank.
    number: u32,
    /// Number of creation times up to the operation without dependencies, at most one more than
    /// the summary has room for.
    depth: u32,
    /// Hash of all creation times.
    hash: u64,
    /// Rank of the operation without dependencies, and its number there.
    root: [u32; 2],
}

impl Summary {
    const KINDS: [MessageKind; 4] =
        [MessageKind::Whole, MessageKind::Rts, MessageKind::Cts, MessageKind::Data];

    const fn words(self) -> [u32; WORDS] {
        let ([low, high], [rank, root]) = (halves(self.hash), self.root);
        [self.number << 2 | self.message_kind as u32, self.depth, low, high, rank, root]
    }

    fn of([number, depth, low, high, rank, root]: [u32; WORDS]) -> Self {
        let [message_kind, ..] = Self::KINDS;
        Self {
            message_kind: *Self::KINDS.get(number as usize & 3).unwrap_or(&message_kind),
            number: number >> 2,
            depth,
            hash: whole([low, high]),
            root: [rank, root],
        }
    }
}

/// Polynomial hash of a history modulo 2⁶¹ − 1: creation time + `BASE` · hash of the creator.
/// A run of several processes keeps that of each operation that it has met, with the operation
/// without dependencies: first that, then the hash, which is not 0.
#[derive(Debug, Default)]
pub struct End {
    root: AtomicU64,
    hash: AtomicU64,
}

struct Hash;

impl Hash {
    const MODULUS: u64 = (1 << 61) - 1;
    const BASE: u64 = 0x0b4e_8d2f_51a7_c693;
    /// By which a product with the base is undone.
    const INVERSE: u64 = {
        let (mut inverse, mut power, mut exponent) = (1, Self::BASE, Self::MODULUS - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                inverse = Self::times(inverse, power);
            }
            power = Self::times(power, power);
            exponent >>= 1;
        }
        inverse
    };
    /// Value of an operation without dependencies.
    const ROOT: u64 = 0x1234_5678_9abc_def1;

    /// Remainder of a number below twice the modulus, or of a time.
    const fn reduced(value: u64) -> u64 {
        let folded = (value & Self::MODULUS) + (value >> 61);
        if folded >= Self::MODULUS { folded - Self::MODULUS } else { folded }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the halves of the product are meant")]
    const fn times(a: u64, b: u64) -> u64 {
        let product = a as u128 * b as u128;
        Self::reduced((product as u64 & Self::MODULUS) + (product >> 61) as u64)
    }

    /// Hash of the creator of an element that was created at `time` and has this `hash`.
    const fn without(time: u64, hash: u64) -> u64 {
        Self::times(Self::INVERSE, hash + Self::MODULUS - Self::reduced(time))
    }
}

/// Place in a history.
#[derive(Clone, Copy)]
enum At {
    Here(Element),
    /// In the summary that the record `send` has: the number of the creator, from the newest.
    There {
        send: u32,
        creator: u32,
    },
}

/// What precedes a place in a history.
enum Before {
    /// Creation time, and the creator.
    Creator(u64, At),
    /// Nothing: the rank of the operation without dependencies, and its number there.
    Root([u32; 2]),
    Unknown,
}

/// Rank of an element, and its number there; the lowest bit is set for messages.
type Name = [u32; 2];

impl Shared<'_> {
    /// True for the send of another process.
    #[inline]
    pub(super) fn is_foreign(&self, op: u32) -> bool {
        op >= self.frame.first_foreign && (op < self.frame.further || self.at(op).is_foreign())
    }

    /// Words of the summary of the send of another process, from the word `first` on.
    fn summary<const COUNT: usize>(&self, send: u32, first: usize) -> [u32; COUNT] {
        let parts = self.parts_of(send);
        core::array::from_fn(|at| {
            let word = first + at;
            let part = parts.get(word / WORDS).and_then(|part| part.0.get(word % WORDS));
            part.map_or(0, Word32::get)
        })
    }

    /// Parts of that summary. A handshake has a place for its one message of another process that
    /// is not a request.
    fn parts_of(&self, send: u32) -> &[Foreign] {
        let place = match send.checked_sub(self.frame.further) {
            None => send.wrapping_sub(self.frame.first_foreign),
            Some(further) => {
                self.frame.further.wrapping_sub(self.frame.first_foreign) + further / 3
            }
        };
        let each = parts_of(self.frame.away.creators);
        let first = place as usize * each;
        self.foreign.get(first..first + each).unwrap_or_default()
    }

    /// A free record for a message of another process. Partitions share them, so that those in use
    /// follow each other in memory.
    fn take_record(&self) -> Option<u32> {
        let record = self.frame.first_foreign.checked_add(self.taken?.fetch_add(1, Relaxed))?;
        (record < self.frame.end_foreign).then_some(record)
    }

    /// Rank of an operation.
    fn rank_of(&self, op: u32) -> u32 {
        if self.is_foreign(op) {
            return self.at(op).peer.get();
        }
        let own = match self.message_kind(op) {
            MessageKind::Cts => self.handshake(op).met().0,
            _ => self.send_of(op),
        };
        self.frame.first_rank.wrapping_add(owner(self.frame.firsts, own))
    }

    /// Name of the rank of an operation without dependencies, and its number there.
    fn root(&self, op: u32) -> [u32; 2] {
        let rank = self.rank_of(op);
        let name = self.frame.names.get(rank as usize).copied().unwrap_or(rank);
        [name, self.at(op).number()]
    }

    fn name(&self, element: Element) -> Name {
        let (op, message) = match element {
            Element::Op(op) => (op, 0),
            Element::Message(op) => (op, 1),
        };
        [self.rank_of(op), self.at(op).number() << 1 | message]
    }

    /// Name of the element at a place; `None` beyond a summary.
    fn name_at(&self, at: At) -> Option<Name> {
        match at {
            At::Here(element) => Some(self.name(element)),
            At::There { send, creator: 0 } => Some(self.name(Element::Op(send))),
            At::There { creator, .. } if creator > self.frame.away.creators => None,
            At::There { send, creator } => {
                Some(self.summary(send, WORDS + (creator as usize - 1) * CREATOR_WORDS + 2))
            }
        }
    }

    fn before(&self, at: At) -> Before {
        let (send, creator) = match at {
            At::Here(Element::Op(op)) if self.is_foreign(op) => (op, 0),
            At::There { send, creator } => (send, creator),
            At::Here(element) => {
                return match (self.origin(element), element) {
                    (Some((time, creator)), _) => Before::Creator(time, At::Here(creator)),
                    (None, Element::Op(op)) => Before::Root(self.root(op)),
                    (None, Element::Message(_)) => Before::Unknown,
                };
            }
        };
        let summary = Summary::of(self.summary(send, 0));
        if creator == summary.depth {
            return Before::Root(summary.root);
        }
        if creator >= self.frame.away.creators {
            return Before::Unknown;
        }
        let time = self.summary(send, WORDS + creator as usize * CREATOR_WORDS);
        Before::Creator(whole(time), At::There { send, creator: creator + 1 })
    }

    /// Summary of an operation; `note` gets the creation times of its last creators, and the places
    /// of these. Adds the number of steps to `steps`.
    fn summarise(&self, of: u32, steps: &mut u64, mut note: impl FnMut(u64, At)) -> Summary {
        let (message_kind, number) = (self.message_kind(of), self.at(of).number());
        let (mut at, mut depth, creators) =
            (At::Here(Element::Op(of)), 0, self.frame.away.creators);
        if creators == 0 && !self.at(of).is_root() {
            return Summary { message_kind, number, depth: 1, hash: 0, root: [0; 2] };
        }
        let mut root = [0; 2];
        while depth <= creators {
            *steps += 1;
            match self.before(at) {
                Before::Creator(time, creator) => {
                    if depth < creators {
                        note(time, creator);
                    }
                    depth += 1;
                    at = creator;
                }
                Before::Root(found) => {
                    root = found;
                    break;
                }
                Before::Unknown => depth = creators + 1,
            }
        }
        let mut hash = 0;
        if creators > 0 {
            (hash, root) = self.end(Element::Op(of), steps);
        }
        Summary { message_kind, number, depth, hash, root }
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
        let (mut at_a, mut at_b) = (At::Here(a), At::Here(b));
        loop {
            *steps += 1;
            let [(time_a, next_a), (time_b, next_b)] = match (self.before(at_a), self.before(at_b))
            {
                (Before::Root(a), Before::Root(b)) if a != b => return a.cmp(&b),
                // What is unknown is more.
                (Before::Root(_), Before::Creator(..) | Before::Unknown) => return Ordering::Less,
                (Before::Creator(..) | Before::Unknown, Before::Root(_)) => {
                    return Ordering::Greater;
                }
                (Before::Creator(time_a, next_a), Before::Creator(time_b, next_b)) => {
                    [(time_a, next_a), (time_b, next_b)]
                }
                _ => break,
            };
            if time_a != time_b {
                return time_a.cmp(&time_b);
            }
            if let (Some(creator_a), Some(creator_b)) = (self.name_at(next_a), self.name_at(next_b))
                && creator_a == creator_b
                && let (Some([_, a]), Some([_, b])) = (self.name_at(at_a), self.name_at(at_b))
            {
                // The message precedes the operations that were released.
                return (a & 1 == 0, a).cmp(&(b & 1 == 0, b));
            }
            (at_a, at_b) = (next_a, next_b);
        }
        if self.frame.away.creators > 0 {
            let [a, b] = [a, b].map(|element| self.end(element, steps));
            if a.0 == b.0 && a.1 != b.1 {
                return a.1.cmp(&b.1);
            }
        }
        *steps += UNKNOWN;
        Ordering::Equal
    }

    /// Hash of the history of an element, and its operation without dependencies. Keeps those of
    /// its creators, so that each is computed once.
    fn end(&self, of: Element, steps: &mut u64) -> (u64, [u32; 2]) {
        let (mut at, mut hash, mut power, mut count) = (of, 0, 1, 0);
        let (older, root) = loop {
            *steps += 1;
            if let Element::Op(op) = at {
                if self.is_foreign(op) {
                    let summary = Summary::of(self.summary(op, 0));
                    break (summary.hash, summary.root);
                }
                if let Some(end) = self.ends.get(op as usize)
                    && let hash @ 1.. = end.hash.load(Acquire)
                {
                    break (hash, halves(end.root.load(Relaxed)));
                }
                if self.at(op).is_root() {
                    break (Hash::ROOT, self.root(op));
                }
            }
            let Some((time, creator)) = self.origin(at) else { break (Hash::ROOT, [0; 2]) };
            hash = Hash::reduced(hash + Hash::times(power, Hash::reduced(time)));
            power = Hash::times(power, Hash::BASE);
            count += 1;
            at = creator;
        };
        let hash = Hash::reduced(hash + Hash::times(power, older));
        let (mut at, mut rest) = (of, hash);
        for _ in 0..count {
            if let Element::Op(op) = at
                && let Some(end) = self.ends.get(op as usize)
            {
                end.root.store(whole(root), Relaxed);
                end.hash.store(rest, Release);
            }
            let Some((time, creator)) = self.origin(at) else { break };
            rest = Hash::without(time, rest);
            at = creator;
        }
        (hash, root)
    }
}

/// Writes a summary into the mail, part by part.
struct Writer<'o, 'm> {
    outbox: &'o mut Outbox<'m, Message>,
    chain: u32,
    part: [u32; WORDS],
    filled: usize,
    /// False if there was no room.
    fits: bool,
}

impl Writer<'_, '_> {
    fn push(&mut self, word: u32) {
        if let Some(place) = self.part.get_mut(self.filled) {
            *place = word;
            self.filled += 1;
        }
        if self.filled == WORDS {
            self.end_part();
        }
    }

    fn end_part(&mut self) {
        self.filled = 0;
        let part = core::mem::take(&mut self.part);
        match self.outbox.send(self.chain) {
            Some(place) => place.write_part(part),
            None => self.fits = false,
        }
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
        let (shared, chain, op) = (&self.shared, self.chain_of(target), letter.send);
        let [Some(place), Some(first)] = [outbox.send(chain), outbox.send(chain)] else {
            self.lost = true;
            return;
        };
        let mut writer = Writer { outbox, chain, part: [0; WORDS], filled: 0, fits: true };
        let summary = shared.summarise(op, &mut self.steps, |time, creator| {
            halves(time).into_iter().for_each(|word| writer.push(word));
            let name = shared.name_at(creator).into_iter().flatten();
            name.for_each(|word| writer.push(word));
        });
        if writer.filled > 0 {
            writer.end_part();
        }
        self.lost |= !writer.fits;
        first.write_part(summary.words());
        let local = letter.source.wrapping_sub(shared.frame.first_rank);
        let (send, tag) = match summary.message_kind {
            MessageKind::Whole | MessageKind::Rts => {
                (op.wrapping_sub(bounds(shared.frame.firsts, local).0), letter.tag)
            }
            // The sender's record, and the own one for the data.
            MessageKind::Cts => (halves(shared.handshake(op).time.get())[0], op),
            MessageKind::Data => (0, letter.tag),
        };
        place.write(target, &Letter { send, tag, ..*letter });
    }

    /// Gives a message of another process a record here, as its send: a free one, or for the
    /// second and third of a handshake one of that. The parts of its summary begin with `part` in
    /// `inbox`. False if all records are taken.
    pub(super) fn stand_in(
        shared: &Shared<'_>,
        message: &Message,
        inbox: &Mail<'_>,
        part: u32,
    ) -> bool {
        let Some(first) = inbox.message(part) else { return false };
        let Summary { message_kind, number, .. } = Summary::of(first.read_part());
        let mut letter = message.read();
        let record = match message_kind {
            MessageKind::Whole | MessageKind::Rts => shared.take_record(),
            MessageKind::Cts => Some(letter.send),
            MessageKind::Data => {
                let record = letter.tag.wrapping_add(1);
                letter.tag = shared.handshake(record).met().0;
                Some(record)
            }
        };
        let Some(record) = record else { return false };
        match message_kind {
            MessageKind::Whole | MessageKind::Data => {}
            MessageKind::Rts => {
                let cts = shared.frame.further + 3 * (record - shared.frame.first_foreign);
                shared.at(cts).leave_to(letter.source);
                shared.handshake(cts).creator.set(record);
                shared.handshake(cts).time.set(letter.size);
                letter.size = cts.into();
            }
            MessageKind::Cts => shared.handshake(record).meet(letter.tag, 0),
        }
        letter.send = record;
        let own = message.send.get();
        message.write(message.target.get(), &letter);
        shared.at(record).stand_for(&Letter { send: own, ..letter }, number, message_kind);
        let mut part = part;
        for place in shared.parts_of(record) {
            let Some(from) = inbox.message(part) else { break };
            place.0.iter().zip(from.read_part()).for_each(|(place, word)| place.set(word));
            part = from.link.get();
        }
        true
    }
}

impl Message {
    fn write_part(&self, [a, b, c, d, e, f]: [u32; WORDS]) {
        let letter = Letter { created: whole([a, b]), send: c, source: d, tag: e, size: f.into() };
        self.write(END, &letter);
    }

    #[allow(clippy::cast_possible_truncation, reason = "it was written from 32 bits")]
    fn read_part(&self) -> [u32; WORDS] {
        let Letter { created, send, source, tag, size } = self.read();
        let [low, high] = halves(created);
        [low, high, send, source, tag, size as u32]
    }
}
