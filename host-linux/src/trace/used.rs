//! Algorithms that the MPI library used for collective operations.

use std::collections::BTreeMap;

use serde::Serialize;

use super::convert::Algorithms;
use super::{RankTrace, Record, Trace, What};

/// Calls of a collective operation for which the library used one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlgorithmUse {
    /// Name in lower case, without `MPI_`.
    pub operation: String,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Smallest size of a vector or a block, in bytes.
    pub first_bytes: u64,
    /// Largest size.
    pub last_bytes: u64,
    /// Calls of all ranks together.
    pub calls: u64,
    /// Name of the algorithm in Open MPI; `None` if it is not known.
    pub algorithm: Option<&'static str>,
    /// Bytes of a segment; 0 for whole messages.
    pub segment_bytes: u64,
    /// Why it is not known.
    pub reason: Option<String>,
}

/// Calls of the collective operations of a trace, by name, ranks of the communicator, and bytes.
#[derive(Debug, Default)]
pub(super) struct Calls<'t>(BTreeMap<(&'t str, u32, u64), u64>);

impl<'t> Calls<'t> {
    pub(super) fn add(&mut self, rank: &RankTrace, record: &Record<'t>) {
        let What::Collective { operation, sent, received } = &record.what else { return };
        let communicator = rank.communicators().get(&operation.communicator);
        let Some(communicator) = communicator.filter(|one| !one.is_inter()) else { return };
        let ranks = u32::try_from(communicator.size()).unwrap_or(u32::MAX);
        if ranks < 2 || record.call.contains("eighbor_") {
            return;
        }
        let has_lists = !sent.is_empty() || !received.is_empty();
        let size = if has_lists { 0 } else { operation.sent.max(operation.received) };
        *self.0.entry((record.call, ranks, size)).or_default() += 1;
    }

    /// Algorithms, those of neighbouring sizes in one.
    pub(super) fn used(self, trace: &Trace) -> Vec<AlgorithmUse> {
        let mut algorithms = Algorithms::default();
        algorithms.set_library(trace.description());
        let mut all: Vec<AlgorithmUse> = Vec::new();
        for ((name, ranks, size), calls) in self.0 {
            let operation = name.to_ascii_lowercase();
            let chosen = algorithms.of_call(&operation, ranks, size);
            let why = match chosen {
                Some(_) => algorithms.unknown(&operation, ranks),
                None => Some("its rules are not known"),
            };
            let reason = why.map(str::to_owned);
            let known = chosen.filter(|_| reason.is_none());
            let next = AlgorithmUse {
                operation,
                ranks,
                first_bytes: size,
                last_bytes: size,
                calls,
                algorithm: known.map(|chosen| chosen.name),
                segment_bytes: known.map_or(0, |chosen| chosen.segment),
                reason,
            };
            match all.last_mut() {
                Some(last) if last.is_of(&next) => {
                    last.last_bytes = size;
                    last.calls += calls;
                }
                _ => all.push(next),
            }
        }
        all
    }
}

impl AlgorithmUse {
    /// True if `next` is the same algorithm for other sizes.
    fn is_of(&self, next: &Self) -> bool {
        let Self { operation, ranks, algorithm, segment_bytes, reason, .. } = next;
        (&self.operation, self.ranks, self.segment_bytes) == (operation, *ranks, *segment_bytes)
            && (self.algorithm, &self.reason) == (*algorithm, reason)
    }
}
