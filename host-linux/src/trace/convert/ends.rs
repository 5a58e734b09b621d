//! Messages of a schedule by their ends: which have both.

use std::collections::HashMap;

use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind};
use loggap_core::trace::Direction;
use loggap_core::units::Picos;

/// Sender, receiver and tag.
type Key = (u32, u32, u64);

/// Numbers of sends and of receives.
#[derive(Debug, Default)]
pub struct Ends {
    counts: HashMap<Key, [u64; 2]>,
    /// Receives from any source or of any tag, by receiver.
    wild: HashMap<u32, u64>,
}

/// Message of an operation of `rank`, and the end of it that this is.
fn end(rank: u32, kind: OpKind) -> Option<(Key, Direction)> {
    match kind {
        OpKind::Send { peer, tag, .. } => Some(((rank, peer, tag), Direction::Send)),
        OpKind::Receive { peer, tag, .. } => Some(((peer, rank, tag), Direction::Receive)),
        OpKind::Calc { .. } => None,
    }
}

impl Ends {
    /// Counts an operation of `rank`.
    pub fn add(&mut self, rank: u32, op: Op) {
        match end(rank, op.kind) {
            Some(((from, _, tag), Direction::Receive)) if from == ANY || tag == ANY_TAG => {
                *self.wild.entry(rank).or_default() += 1;
            }
            Some((key, direction)) => {
                let [sends, receives] = self.counts.entry(key).or_default();
                *(if direction == Direction::Send { sends } else { receives }) += 1;
            }
            None => {}
        }
    }

    /// Number of sends.
    #[must_use]
    pub fn sends(&self) -> u64 {
        self.counts.values().map(|[sends, _]| sends).sum()
    }

    /// Messages that are not received, or not sent.
    #[must_use]
    pub fn unmatched(&self) -> u64 {
        let of = |one: fn(&[u64; 2]) -> u64| self.counts.values().map(one).sum::<u64>();
        let sends = of(|[sends, receives]| sends.saturating_sub(*receives));
        let receives = of(|[sends, receives]| receives.saturating_sub(*sends));
        let wild: u64 = self.wild.values().sum();
        sends.abs_diff(wild.min(sends)).saturating_add(receives)
    }
}

/// The operations of a rank, but for those of messages without another end: the n-th send is received
/// by the n-th receive.
#[derive(Debug)]
pub(super) struct WithBothEnds<'e> {
    ends: &'e Ends,
    rank: u32,
    passed: HashMap<(Key, bool), u64>,
    /// Sends and receives that were kept, and those that were left out.
    pub(super) counted: [u64; 2],
}

impl<'e> WithBothEnds<'e> {
    pub(super) fn new(ends: &'e Ends, rank: u32) -> Self {
        Self { ends, rank, passed: HashMap::new(), counted: [0; 2] }
    }

    /// `op`, or where its message lacks the other end, nothing in its place.
    pub(super) fn pass(&mut self, op: Op) -> Op {
        let Some((key, direction)) = end(self.rank, op.kind) else { return op };
        let [kept, left_out] = &mut self.counted;
        *kept += 1;
        let is_send = direction == Direction::Send;
        // A receive from any source may take it.
        if is_send && self.ends.wild.contains_key(&key.1) {
            return op;
        }
        let Some([sends, receives]) = self.ends.counts.get(&key) else { return op };
        let passed = self.passed.entry((key, is_send)).or_default();
        *passed += 1;
        if *passed <= *sends.min(receives) {
            return op;
        }
        *kept -= 1;
        *left_out += 1;
        Op { kind: OpKind::Calc { duration: Picos::ZERO }, ..op }
    }
}
