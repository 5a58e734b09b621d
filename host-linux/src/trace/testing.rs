//! Traces made by hand.

use std::path::PathBuf;

use loggap_core::trace::{
    BlockHeader, Collective, Completed, DEFINITIONS, Direction, Encoder, Envelope, FileHeader,
    MAX_PART, Message, Mode, Outcome, Part,
};

use super::convert::Input;
use super::{Description, RankTrace, Trace};

/// Records of a rank, made call by call. The first is `MPI_Init`, which returns at 0.
#[derive(Clone, Debug)]
pub(in crate::trace) struct Stream {
    pub(in crate::trace) names: Vec<&'static str>,
    pub(in crate::trace) parts: Vec<Part<'static>>,
}

impl Stream {
    pub(in crate::trace) fn new() -> Self {
        Self { names: Vec::new(), parts: Vec::new() }.call("Init", 0, 0, &[])
    }

    pub(in crate::trace) fn call(
        mut self,
        name: &'static str,
        enter: u64,
        leave: u64,
        parts: &[Part<'static>],
    ) -> Self {
        let known = self.names.iter().position(|known| *known == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name);
            self.parts.push(Part::Name(name));
            self.names.len() - 1
        });
        self.parts.push(Part::Call { name: number as u32, enter, leave });
        self.parts.extend_from_slice(parts);
        self
    }

    pub(in crate::trace) fn end(self, at: u64) -> Self {
        self.call("Finalize", at, at + 1_000, &[])
    }
}

pub(in crate::trace) const fn envelope(peer: i32, tag: i32, bytes: u64) -> Envelope {
    Envelope { peer, tag, bytes, communicator: 0 }
}

pub(in crate::trace) const fn one(
    direction: Direction,
    mode: Mode,
    at: Envelope,
    request: Option<u64>,
) -> Part<'static> {
    Part::Message(Message { direction, mode, envelope: at, request })
}

pub(in crate::trace) const fn sent(at: Envelope) -> Part<'static> {
    one(Direction::Send, Mode::Standard, at, None)
}

pub(in crate::trace) const fn received(at: Envelope) -> Part<'static> {
    one(Direction::Receive, Mode::Standard, at, None)
}

pub(in crate::trace) const fn isent(at: Envelope, request: u64) -> Part<'static> {
    one(Direction::Send, Mode::Standard, at, Some(request))
}

pub(in crate::trace) const fn posted(at: Envelope, request: u64) -> Part<'static> {
    one(Direction::Receive, Mode::Standard, at, Some(request))
}

pub(in crate::trace) const fn done(request: u64, outcome: Outcome) -> Part<'static> {
    Part::Completed(Completed { request, outcome })
}

pub(in crate::trace) const fn all(sent: u64, received: u64, request: Option<u64>) -> Part<'static> {
    let (communicator, root, in_place) = (0, None, false);
    Part::Collective(Collective { communicator, root, sent, received, in_place, request })
}

pub(in crate::trace) fn block(thread: u32, parts: &[Part<'_>]) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(0), Vec::new());
    for part in parts {
        let mut one = [0; MAX_PART];
        let length = encoder.put(part, &mut one).unwrap();
        bytes.extend_from_slice(&one[..length]);
    }
    [BlockHeader::of(thread, 0, &bytes).emit().to_vec(), bytes].concat()
}

/// Definition of a communicator with this number and identity, whose `count` members have numbers
/// from `first` on in steps of `stride`.
pub(in crate::trace) fn defined(
    number: u32,
    identity: u64,
    first: i32,
    stride: i32,
    count: u32,
) -> Vec<Part<'static>> {
    let members = Part::Members { remote: false, first, stride, count };
    vec![Part::Define { number, identity }, members]
}

/// Trace of ranks with these streams of their threads, and definitions of communicators besides the
/// world.
pub(in crate::trace) fn traced(ranks: &[Vec<Stream>], further: &[Vec<Part<'static>>]) -> Input {
    traced_with(ranks, |_| further.to_vec())
}

/// As [`traced`], with further communicators of each rank.
pub(in crate::trace) fn traced_with(
    ranks: &[Vec<Stream>],
    further: impl Fn(u32) -> Vec<Vec<Part<'static>>>,
) -> Input {
    let count = ranks.len() as u32;
    let rank = |(rank, threads): (u32, &Vec<Stream>)| {
        let mut bytes = FileHeader { run: 5, rank, ranks: count }.emit().to_vec();
        for parts in [vec![defined(0, 77, 0, 1, count)], further(rank)].concat() {
            bytes.extend(block(DEFINITIONS, &parts));
        }
        for (thread, stream) in (0..).zip(threads) {
            bytes.extend(block(thread, &stream.parts));
        }
        RankTrace::parse(PathBuf::from(format!("{rank}.trace")), bytes).unwrap()
    };
    let description = Description { ranks: count, ..Description::default() };
    let ranks = (0..).zip(ranks).map(rank).collect();
    Input::Trace(Box::new(Trace { description, ranks, missing: Vec::new() }))
}
