//! The graph of Schedgen 1 (`process_trace.cpp`), to compare with.
//!
//! Behind each communication stands the calculation before it; waits are empty calculations; the
//! messages of collectives are those of its patterns, whatever the communicator. Copies of the traced
//! ranks have their messages among themselves, and collectives in common. What it ignores
//! becomes calculation: tests, completions by any other call than `Wait` and `Waitall`, collectives
//! without a pattern or on part of the ranks.

use std::collections::HashMap;

use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate_rank};
use loggap_core::goal::{ANY, ANY_TAG, DependsOn, Edge, Op, OpKind, Sink};
use loggap_core::trace::{ANY_PEER, Collective, Direction, Message, NO_PEER};
use loggap_core::units::Picos;

use super::rank::Converted;
use super::{Class, Conversion, ConvertError, Report, Strictness};
use crate::collective::Dependency;
use crate::trace::What;

/// Tag of the first collective operation.
const FIRST_COLLECTIVE: u64 = 1_000_000;

/// Converts the open rank of `sink`: what the traced rank of its copy did.
pub(super) fn convert<S: Sink>(
    conversion: &Conversion,
    rank: u32,
    sink: &mut S,
    report: &mut Report,
) -> Converted<(), S> {
    let (ranks, traced_ranks) = (conversion.ranks(), conversion.input.ranks());
    let traced = rank % traced_ranks.max(1);
    let mut graph = RankGraph {
        rank,
        ranks,
        shift: rank - traced,
        sink,
        time: 0,
        before: Vec::new(),
        requests: HashMap::new(),
        collectives: 0,
    };
    let (mut first, mut last) = (None, 0);
    for record in conversion.input.records(traced, conversion.options.strictness) {
        let record = match record {
            Ok(record) => record,
            Err(_) if conversion.options.strictness == Strictness::Lenient => break,
            Err(error) => return Err(error.into()),
        };
        first = first.or(Some(record.leave));
        last = record.leave;
        let (enter, leave) = (record.enter, record.leave);
        let failed = |error| ConvertError::Sink { rank, error };
        let converted = match (record.call, &record.what) {
            ("Init" | "Init_thread", _) => {
                graph.time = leave;
                true
            }
            ("Finalize", _) => graph.calculate(&[], enter, enter).map(|()| true).map_err(failed)?,
            (_, What::Messages(all)) => graph.messages(all, enter, leave).map_err(failed)?,
            ("Wait" | "Waitall", What::Completions(all)) => {
                let known = all.iter().filter_map(|one| graph.requests.remove(&one.request));
                let known: Vec<u32> = known.collect();
                let is_list = record.call == "Waitall";
                if is_list || !known.is_empty() {
                    graph.wait(&known, enter, leave).map_err(failed)?;
                }
                true
            }
            (call, What::Collective { operation, .. }) => {
                let communicators = conversion.input.communicators(traced);
                let group = communicators.and_then(|all| all.get(&operation.communicator));
                let is_whole = group.is_some_and(|group| group.size() == u64::from(traced_ranks));
                let known = pattern(call, operation).filter(|_| is_whole);
                if let Some(pattern) = known {
                    graph.collective(pattern, operation, enter, leave).map_err(failed)?;
                }
                known.is_some()
            }
            _ => true,
        };
        let class = if converted { Class::Converted } else { Class::Refused("Schedgen skips it") };
        if !record.is_own() {
            report.add(class, record.call, record.calls(), record.time());
        }
    }
    report.add_rank(first.unwrap_or(last), last, 0);
    Ok(())
}

/// Pattern and size of a collective operation.
fn pattern(call: &str, operation: &Collective) -> Option<(Pattern, u64)> {
    let size = operation.sent;
    Some(match call {
        "Barrier" => (Pattern::Dissemination, 1),
        "Allreduce" | "Iallreduce" | "Allgather" => (Pattern::Dissemination, size),
        "Bcast" => (Pattern::BinomialBroadcast, size),
        "Reduce" => (Pattern::BinomialReduce, size),
        "Alltoall" => (Pattern::AllToAll, size),
        _ => return None,
    })
}

struct RankGraph<'s, S> {
    rank: u32,
    ranks: u32,
    /// First rank of this rank's copy of the traced ones.
    shift: u32,
    sink: &'s mut S,
    /// Return of the last call.
    time: u64,
    /// Dependencies of the next calculation.
    before: Vec<Dependency>,
    requests: HashMap<u64, u32>,
    collectives: u64,
}

impl<S: Sink> RankGraph<'_, S> {
    fn put(&mut self, kind: OpKind) -> Result<u32, S::Error> {
        self.sink.op(Op { kind, cpu: 0, nic: 0 })
    }

    /// Writes the calculation until `enter`, for which the operations `next` wait.
    fn calculate(&mut self, next: &[u32], enter: u64, leave: u64) -> Result<(), S::Error> {
        let nanos = enter.saturating_sub(self.time);
        let op = self.put(OpKind::Calc { duration: Picos(nanos.saturating_mul(1_000)) })?;
        for &next in next {
            self.sink.requires(next, op)?;
        }
        for (on, event) in std::mem::take(&mut self.before) {
            self.sink.edge(Edge { op, on, start: event == DependsOn::Start })?;
        }
        self.time = leave;
        Ok(())
    }

    /// True if there was a message.
    fn messages(&mut self, all: &[Message], enter: u64, leave: u64) -> Result<bool, S::Error> {
        let (mut next, mut after) = (Vec::new(), Vec::new());
        // Both halves of an exchange have the tag of the send.
        let tag = all.first().map_or(0, |message| message.envelope.tag);
        for message in all {
            let envelope = message.envelope;
            let peer = match envelope.peer {
                ANY_PEER => ANY,
                NO_PEER => continue,
                peer => u32::try_from(peer).map_or(ANY - 1, |peer| peer + self.shift),
            };
            let tag = match u64::try_from(tag) {
                Ok(tag) => u64::from(envelope.communicator & 0xff) << 24 | tag,
                Err(_) => ANY_TAG,
            };
            let size = envelope.bytes;
            let op = self.put(match message.direction {
                Direction::Send => OpKind::Send { peer, size, tag },
                Direction::Receive => OpKind::Receive { peer, size, tag },
            })?;
            next.push(op);
            let event = if message.request.is_some() { DependsOn::Start } else { DependsOn::End };
            after.push((op, event));
            if let Some(request) = message.request {
                self.requests.insert(request, op);
            }
        }
        if !next.is_empty() {
            self.calculate(&next, enter, leave)?;
            self.before = after;
        }
        Ok(!next.is_empty())
    }

    fn wait(&mut self, on: &[u32], enter: u64, leave: u64) -> Result<(), S::Error> {
        let op = self.put(OpKind::Calc { duration: Picos::ZERO })?;
        for &on in on {
            self.sink.requires(op, on)?;
        }
        self.calculate(&[op], enter, leave)?;
        self.before = vec![(op, DependsOn::End)];
        Ok(())
    }

    fn collective(
        &mut self,
        (pattern, size): (Pattern, u64),
        operation: &Collective,
        enter: u64,
        leave: u64,
    ) -> Result<(), S::Error> {
        let root = operation.root.and_then(|root| u32::try_from(root).ok()).unwrap_or(0);
        let options = Options { root, ..Options::new(self.ranks, size) };
        let tag = FIRST_COLLECTIVE.wrapping_add(self.collectives);
        self.collectives += 1;
        debug_assert!(self.rank < self.ranks);
        let mut part = Part { sink: self.sink, tag, first: Vec::new(), last: Vec::new() };
        match generate_rank(pattern, &options, self.rank, &mut [], &mut part) {
            // The options are those of a whole communicator, with a root in it.
            Ok(()) | Err(GenerateError::Options(_)) => {}
            Err(GenerateError::Sink(error)) => return Err(error),
        }
        let Part { first, last, .. } = part;
        let op = self.put(OpKind::Calc { duration: Picos::ZERO })?;
        for on in last {
            self.sink.requires(op, on)?;
        }
        self.calculate(&first, enter, leave)?;
        self.before = vec![(op, DependsOn::End)];
        if let Some(request) = operation.request {
            self.requests.insert(request, op);
        }
        Ok(())
    }
}

/// A pattern as a part of a rank, with its operations without predecessors, and those without
/// successors in it.
struct Part<'s, S> {
    sink: &'s mut S,
    tag: u64,
    first: Vec<u32>,
    last: Vec<u32>,
}

impl<S: Sink> Sink for Part<'_, S> {
    type Error = S::Error;

    fn op(&mut self, mut op: Op) -> Result<u32, S::Error> {
        if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind {
            *tag = self.tag;
        }
        let index = self.sink.op(op)?;
        self.first.push(index);
        self.last.push(index);
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), S::Error> {
        self.first.retain(|op| *op != edge.op);
        self.last.retain(|op| *op != edge.on);
        self.sink.edge(edge)
    }
}
