//! Collective operations as the messages of an algorithm.

use std::vec;

use loggap_core::goal::{DependsOn, Op, OpKind, Sink};
use loggap_core::trace::{Collective, Direction, Envelope, NO_PEER};
use loggap_core::units::{PerByte, Picos};

use super::rank::{Converted, Group, RankConverter, processor};
use super::{Algorithms, Class};
use crate::collective::{
    Call, Chosen, Dependency, Placement, Round, Shape, all_to_all, allgather, linear,
    reduce_scatter, write_op, write_rounds,
};
use crate::trace::Record;
use crate::trace::rank::Communicator;
use crate::trace::record::Counts;

/// Messages of a rank in a collective operation.
pub(in crate::trace) struct Plan {
    pub(in crate::trace) rounds: Vec<Round>,
    /// Rank of the group that the rounds count ranks from.
    pub(in crate::trace) root: u32,
}

impl Plan {
    /// Rank in a group of `size` that the rounds call `rank`.
    pub(in crate::trace) fn member(&self, rank: u32, size: u32) -> u32 {
        let member = (u64::from(rank) + u64::from(self.root)) % u64::from(size.max(1));
        u32::try_from(member).unwrap_or(u32::MAX)
    }
}

/// Arguments of a collective operation, without the group.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::trace) struct CollectiveCall {
    /// Name in lower case, without the `i` of an immediate operation.
    pub(in crate::trace) name: String,
    /// Rank of the root in the group; 0 without a root.
    pub(in crate::trace) root: u32,
    pub(in crate::trace) sent: u64,
    pub(in crate::trace) received: u64,
    in_place: bool,
    /// Bytes to each rank of the group, and from each, where the call has lists.
    pub(in crate::trace) lists: [Counts; 2],
}

impl CollectiveCall {
    fn new(
        name: &str,
        operation: &Collective,
        lists: [&Counts; 2],
        communicator: &Communicator,
    ) -> Self {
        let &Collective { root, sent, received, in_place, .. } = operation;
        let root = root.and_then(|root| communicator.rank_of(root)).unwrap_or(0);
        let lists = lists.map(Clone::clone);
        Self { name: name.to_owned(), root, sent, received, in_place, lists }
    }

    /// True if bytes differ from rank to rank.
    pub(in crate::trace) fn has_lists(&self) -> bool {
        self.lists.iter().any(|list| !list.is_empty())
    }

    fn barrier() -> Self {
        let (nothing, list) = (Collective::default(), Counts::default());
        Self::new("barrier", &nothing, [&list, &list], &Communicator::default())
    }

    /// Messages of `own` in a group of `ranks`, which takes `combine` for a byte of a reduction;
    /// `None` if no algorithm is known.
    pub(in crate::trace) fn plan(
        &self,
        algorithms: &Algorithms,
        combine: PerByte,
        [own, ranks]: [u32; 2],
    ) -> Option<Plan> {
        let &Self { root, in_place, .. } = self;
        let [sent, received] = &self.lists;
        // With MPI_IN_PLACE only the other count is significant.
        let size = self.sent.max(self.received);
        let of_shape = |shape, segment, root| {
            let call = Call { shape, ranks, size, segment, combine };
            let rounds = match ranks {
                0 | 1 => Vec::new(),
                _ => call.rounds(relative(own, root, ranks)),
            };
            Some(planned(rounds, root))
        };
        if let Some(Chosen { shape, segment, .. }) = algorithms.of_call(&self.name, ranks, size) {
            return of_shape(shape, segment, root);
        }
        let at_once = |rounds| Some(planned(rounds, 0));
        match self.name.as_str() {
            "scan" | "exscan" => of_shape(Shape::Scan, 0, 0),
            "gatherv" => {
                at_once(to_root([own, root, ranks], self.sent, received, Direction::Receive))
            }
            "scatterv" => {
                at_once(to_root([own, root, ranks], self.received, sent, Direction::Send))
            }
            "allgatherv" => at_once(allgather(own, ranks, &sizes(received, size, ranks))),
            "alltoallv" | "alltoallw" => {
                let received = sizes(received, self.received, ranks);
                let sent = if in_place { received.clone() } else { sizes(sent, self.sent, ranks) };
                at_once(match self.name.as_str() {
                    "alltoallv" => all_to_all(own, ranks, &sent, &received),
                    _ => linear(own, &sent, &received),
                })
            }
            "reduce_scatter" | "reduce_scatter_block" => {
                at_once(reduce_scatter(own, ranks, &sizes(received, size, ranks), combine))
            }
            _ => None,
        }
    }
}

/// Plan whose calculations last whole nanoseconds, which texts hold.
fn planned(mut rounds: Vec<Round>, root: u32) -> Plan {
    for round in &mut rounds {
        round.calc = Picos(round.calc.0.saturating_add(500) / 1_000 * 1_000);
    }
    Plan { rounds, root }
}

/// A collective operation in whose place a schedule has an empty calculation.
#[derive(Debug)]
pub(in crate::trace) struct NotedCall<'t> {
    /// The calculation.
    pub(in crate::trace) op: u32,
    pub(in crate::trace) call: CollectiveCall,
    /// Name in the trace.
    pub(in crate::trace) name: String,
    pub(in crate::trace) communicator: &'t Communicator,
    pub(in crate::trace) tag: u64,
    pub(in crate::trace) is_immediate: bool,
    /// Time inside the call, in nanoseconds.
    pub(in crate::trace) nanos: u64,
}

/// A message to or from `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct NullMessage {
    /// Number of operations before it.
    pub(in crate::trace) op: u32,
    pub(in crate::trace) direction: Direction,
}

/// Notes of the conversion of a rank for an extrapolation.
#[derive(Debug, Default)]
pub(in crate::trace) struct Notes<'t> {
    /// Collective operations, which are noted and not written.
    pub(in crate::trace) calls: Vec<NotedCall<'t>>,
    /// Messages to and from `MPI_PROC_NULL`.
    pub(in crate::trace) nulls: Vec<NullMessage>,
    /// Messages that are written in place of those, one after the other; `None` for nothing.
    pub(in crate::trace) instead: vec::IntoIter<Option<Envelope>>,
}

/// Bytes to or from each rank: a list, or the same for all.
fn sizes(list: &Counts, each: u64, ranks: u32) -> Vec<u64> {
    if list.is_empty() {
        return vec![each; ranks as usize];
    }
    list.iter().take(ranks as usize).collect()
}

/// A group, and the tag of the messages of an operation in it.
#[derive(Clone, Copy)]
struct Tagged<'g, 't> {
    group: &'g Group<'t>,
    tag: u64,
}

impl<'t, S: Sink> RankConverter<'_, 't, S> {
    pub(super) fn collective(
        &mut self,
        record: &Record<'_>,
        operation: &Collective,
        lists: [&Counts; 2],
    ) -> Converted<Class, S> {
        if let Some(request) = operation.request {
            self.post(request, None);
        }
        let name = record.call.to_ascii_lowercase();
        let name = match (operation.request, name.strip_prefix('i')) {
            (Some(_), Some(blocking)) => blocking,
            _ => &name,
        };
        let Some(group) = self.group(operation.communicator) else {
            return Ok(Class::Refused("the members of the communicator are not known"));
        };
        let tag = Self::collective_tag(group);
        let group = *group;
        if group.communicator.is_inter() {
            return Ok(Class::Refused("collective between two groups"));
        }
        if group.size > self.conversion.ranks() {
            return Ok(Class::Refused("its communicator has ranks of other jobs"));
        }
        if let Some(kind) = name.strip_prefix("neighbor_") {
            return self.neighbours(record, kind, operation, lists, Tagged { group: &group, tag });
        }
        let call = CollectiveCall::new(name, operation, lists, group.communicator);
        let size = call.sent.max(call.received);
        let class = self.call(record, operation.request, call, Tagged { group: &group, tag })?;
        let unlike = self.conversion.options.algorithms.unlike(name, group.size, size);
        Ok(match (class, unlike) {
            (Class::Converted, Some(reason)) => Class::Approximated(reason),
            (class, _) => class,
        })
    }

    /// Communicators are made together: the members of the new one meet in a barrier.
    pub(super) fn create(&mut self, record: &Record<'_>, number: u32) -> Converted<Class, S> {
        let Some(group) = self.group(number) else { return Ok(Class::Converted) };
        let tag = Self::collective_tag(group);
        let group = *group;
        if !group.communicator.is_inter() && group.size <= self.conversion.ranks() {
            self.call(record, None, CollectiveCall::barrier(), Tagged { group: &group, tag })?;
        }
        Ok(Class::Approximated("a barrier of the new communicator"))
    }

    /// Writes the messages of an operation, or notes it.
    fn call(
        &mut self,
        record: &Record<'_>,
        request: Option<u64>,
        call: CollectiveCall,
        at: Tagged<'_, 't>,
    ) -> Converted<Class, S> {
        let Tagged { group, tag } = at;
        let algorithms = &self.conversion.options.algorithms;
        let Some(plan) = call.plan(algorithms, self.combine, [group.own, group.size]) else {
            return Ok(Class::Refused("no algorithm is known"));
        };
        let is_alone = group.size < 2 && self.conversion.ranks() > 1;
        if self.notes.is_none() || is_alone {
            self.write(record, request, &plan, at)?;
            return Ok(Class::Converted);
        }
        let thread = record.thread as usize;
        let cpu = processor(thread) + u16::from(request.is_some());
        let before = self.before(thread)?;
        let kind = OpKind::Calc { duration: Picos::ZERO };
        let op = self.waiting(Op { kind, cpu, nic: 0 }, &before)?;
        if let Some(notes) = &mut self.notes {
            notes.calls.push(NotedCall {
                op,
                call,
                name: record.call.to_owned(),
                communicator: group.communicator,
                tag,
                is_immediate: request.is_some(),
                nanos: record.time(),
            });
        }
        self.ended(thread, request, &[(op, DependsOn::End)])?;
        Ok(Class::Converted)
    }

    /// Writes an operation that waits for `before`.
    fn waiting(&mut self, op: Op, before: &[Dependency]) -> Converted<u32, S> {
        let op = write_op(op, before, self.sink).map_err(self.failed())?;
        self.ops = op.wrapping_add(1);
        Ok(op)
    }

    /// Writes the messages of a plan: behind those before, or beside what follows until the
    /// completion of `request`.
    fn write(
        &mut self,
        record: &Record<'_>,
        request: Option<u64>,
        plan: &Plan,
        Tagged { group, tag }: Tagged<'_, '_>,
    ) -> Converted<(), S> {
        let thread = record.thread as usize;
        let cpu = processor(thread) + u16::from(request.is_some());
        let before = self.before(thread)?;
        let world = |rank: u32| {
            let member = group.communicator.member(plan.member(rank, group.size));
            member.map_or(u32::MAX, i32::cast_unsigned)
        };
        let placement = Placement { rank: world, tag, cpu };
        let failed = self.failed();
        let ends = write_rounds(&plan.rounds, &placement, before, self.sink).map_err(failed)?;
        self.ended(thread, request, &ends)
    }

    /// The collective operation of a thread ends with `ends`.
    fn ended(
        &mut self,
        thread: usize,
        request: Option<u64>,
        ends: &[Dependency],
    ) -> Converted<(), S> {
        let Some(request) = request else {
            self.then(thread, ends);
            return Ok(());
        };
        let op = match ends {
            [] => None,
            [(one, DependsOn::End)] => Some(*one),
            several => {
                let kind = OpKind::Calc { duration: Picos::ZERO };
                let cpu = processor(thread) + 1;
                Some(self.waiting(Op { kind, cpu, nic: 0 }, several)?)
            }
        };
        self.post(request, op);
        Ok(())
    }

    /// All messages among neighbours at once. Those between two ranks that are neighbours twice are
    /// told apart by the place in the list, also a neighbour that only a larger grid has
    /// (`Notes::instead`).
    fn neighbours(
        &mut self,
        record: &Record<'_>,
        kind: &str,
        operation: &Collective,
        [sent, received]: [&Counts; 2],
        Tagged { group, tag }: Tagged<'_, '_>,
    ) -> Converted<Class, S> {
        if !matches!(kind, "allgather" | "allgatherv" | "alltoall" | "alltoallv" | "alltoallw") {
            return Ok(Class::Refused("no algorithm is known"));
        }
        let thread = record.thread as usize;
        let cpu = processor(thread) + u16::from(operation.request.is_some());
        let before = self.before(thread)?;
        let mut ends = Vec::new();
        for direction in [Direction::Send, Direction::Receive] {
            let (list, each) = match direction {
                Direction::Send => (sent, operation.sent),
                Direction::Receive => (received, operation.received),
            };
            let peers = neighbours(group, direction);
            let count = u32::try_from(peers.len()).unwrap_or(u32::MAX);
            for ((peer, slot), size) in peers.into_iter().zip(sizes(list, each, count)) {
                let at = Envelope { peer, tag: 0, bytes: size, communicator: 0 };
                let at = if peer == NO_PEER { self.instead(direction, at) } else { Some(at) };
                let Some(Envelope { peer, bytes: size, .. }) = at else { continue };
                let Ok(peer) = u32::try_from(peer) else { continue };
                let tag = tag | slot;
                let kind = match direction {
                    Direction::Send => OpKind::Send { peer, size, tag },
                    Direction::Receive => OpKind::Receive { peer, size, tag },
                };
                ends.push((self.waiting(Op { kind, cpu, nic: 0 }, &before)?, DependsOn::End));
            }
        }
        let ends = if ends.is_empty() { before } else { ends };
        self.ended(thread, operation.request, &ends)?;
        Ok(Class::Converted)
    }
}

/// Rank counted from the root.
fn relative(rank: u32, root: u32, ranks: u32) -> u32 {
    if rank >= root { rank - root } else { ranks - root + rank }
}

/// Messages between the root, which has a list, and each other rank.
fn to_root(
    [own, root, ranks]: [u32; 3],
    size: u64,
    list: &Counts,
    at_root: Direction,
) -> Vec<Round> {
    if own != root {
        if size == 0 {
            return Vec::new();
        }
        return vec![match at_root {
            Direction::Receive => Round::send(root, size),
            Direction::Send => Round::receive(root, size),
        }];
    }
    let all: Vec<u64> = list.iter().take(ranks as usize).collect();
    match at_root {
        Direction::Receive => linear(own, &[], &all),
        Direction::Send => linear(own, &all, &[]),
    }
}

/// Neighbours of the own rank in the topology of a communicator, as ranks of `MPI_COMM_WORLD`, each
/// with the number that its message has at the sender.
fn neighbours(group: &Group<'_>, direction: Direction) -> Vec<(i32, u64)> {
    let communicator: &Communicator = group.communicator;
    if communicator.dimensions.is_empty() {
        let all = communicator.neighbours.iter().filter(|(which, _)| *which == direction);
        return all.map(|(_, peer)| (*peer, 0)).collect();
    }
    let mut found = Vec::new();
    let mut stride = u64::from(group.size);
    for (dimension, &(extent, periodic)) in (0u64..).zip(&communicator.dimensions) {
        let extent = u64::from(extent.max(1));
        stride /= extent;
        let own = u64::from(group.own);
        let place = own / stride.max(1) % extent;
        for (side, step) in [(0, extent - 1), (1, 1)] {
            let beyond = if side == 0 { place == 0 } else { place == extent - 1 };
            let next = (place + step) % extent;
            let peer = (own + next * stride).checked_sub(place * stride);
            let peer = peer
                .filter(|_| periodic || !beyond)
                .and_then(|peer| communicator.member(u32::try_from(peer).ok()?));
            // The neighbour sends to the other side.
            let slot = 2 * dimension + if direction == Direction::Send { side } else { 1 - side };
            found.push((peer.unwrap_or(NO_PEER), slot % 256));
        }
    }
    found
}
