//! Programs traced on few ranks, extrapolated, against what they do on many.

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use loggap_core::goal::{DependsOn, Lookup as _, OpIndex};
use loggap_core::sim::BuildError;
use loggap_core::trace::{Collective, Direction, NO_PEER, Outcome, Part};

use super::*;
use crate::trace::convert::Input;
use crate::trace::testing::*;

/// A schedule in memory: operations and dependencies of each rank.
#[derive(Debug, Default, PartialEq)]
struct Stored {
    ranks: Vec<(Vec<Op>, Vec<Edge>)>,
}

impl Sink for Stored {
    type Error = BuildError;

    fn begin_rank(&mut self, _rank: u32) -> Result<(), BuildError> {
        self.ranks.push(Default::default());
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let ops = &mut self.ranks.last_mut().unwrap().0;
        ops.push(op);
        Ok(ops.len() as u32 - 1)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        self.ranks.last_mut().unwrap().1.push(edge);
        Ok(())
    }
}

/// A message, and the messages of its rank that it waits for, by number; compute is left out.
type Seen = (OpKind, BTreeSet<(u32, bool)>);

impl Stored {
    fn of(conversion: &Conversion) -> Self {
        let mut stored = Self::default();
        conversion.feed(&mut stored).unwrap();
        stored
    }

    fn extrapolated(program: &Extrapolation) -> Self {
        let mut stored = Self::default();
        let tags = program.tags();
        program.feed_numbered(&mut stored).unwrap();
        for op in stored.ranks.iter_mut().flat_map(|(ops, _)| ops) {
            if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut op.kind {
                *tag = tags.tag(*tag);
            }
        }
        stored
    }

    /// Messages of each rank.
    fn seen(&self) -> Vec<Vec<Seen>> {
        let of_rank = |(ops, edges): &(Vec<Op>, Vec<Edge>)| {
            let mut waits: Vec<BTreeSet<(u32, bool)>> = vec![BTreeSet::new(); ops.len()];
            let (mut numbers, mut seen) = (Vec::new(), Vec::<Seen>::new());
            let mut edges = edges.iter().peekable();
            for (at, op) in ops.iter().enumerate() {
                while let Some(edge) = edges.next_if(|edge| edge.op as usize == at) {
                    let through = matches!(ops[edge.on as usize].kind, OpKind::Calc { .. });
                    let further = if through {
                        waits[edge.on as usize].clone()
                    } else {
                        [(numbers[edge.on as usize], edge.start)].into()
                    };
                    waits[at].extend(further);
                }
                numbers.push(seen.len() as u32);
                if !matches!(op.kind, OpKind::Calc { .. }) {
                    let mut kind = op.kind;
                    // Communicators of parts have other numbers where there are more of them.
                    if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = &mut kind {
                        *tag = *tag % (1 << 32) + ((*tag >> 32).min(1) << 32);
                    }
                    seen.push((kind, waits[at].clone()));
                }
            }
            seen
        };
        self.ranks.iter().map(of_rank).collect()
    }

    /// Messages from point to point, and of collective operations.
    fn sends(&self) -> [usize; 2] {
        let all = self.ranks.iter().flat_map(|(ops, _)| ops);
        let is_collective = |op: &Op| match op.kind {
            OpKind::Send { tag, .. } => Some(tag >> 31 & 1 != 0),
            _ => None,
        };
        let (collective, plain): (Vec<_>, Vec<_>) =
            all.filter_map(is_collective).partition(|is| *is);
        [plain.len(), collective.len()]
    }
}

/// Asserts that lookups and counts agree with what is fed.
fn assert_looked_up(program: &Extrapolation) {
    let mut fed = Stored::default();
    program.feed_numbered(&mut fed).unwrap();
    let ops = fed.ranks.iter().map(|(ops, _)| ops.len() as u64).sum();
    assert!(program.has_at_most(ops) && !program.has_at_most(ops - 1), "{ops}");
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    let mut note = |size, messages| *sizes.entry(size).or_default() += messages;
    if let Some(counts) = program.counts(&mut note).unwrap() {
        for (ops, expected) in fed.ranks.iter().map(|(ops, _)| ops).zip(counts) {
            let mut counts = [0; 3];
            ops.iter().for_each(|op| count(op.kind, &mut counts));
            assert_eq!(counts, expected);
        }
        for op in fed.ranks.iter().flat_map(|(ops, _)| ops) {
            if let OpKind::Send { size, .. } = op.kind {
                *sizes.get_mut(&size).unwrap() -= 1;
            }
        }
        assert!(sizes.values().all(|messages| *messages == 0), "{sizes:?}");
    }
    let under_way = UnderWay::new(program, 0..program.ranks()).unwrap();
    let lookup = ExtrapolatedLookup::new(program, &under_way);
    for (rank, (ops, edges)) in (0..).zip(&fed.ranks) {
        let mut waits: BTreeMap<u32, u32> = BTreeMap::new();
        let mut dependents: BTreeMap<u32, Vec<(u32, DependsOn)>> = BTreeMap::new();
        for edge in edges {
            *waits.entry(edge.op).or_default() += 1;
            let event = if edge.start { DependsOn::Start } else { DependsOn::End };
            dependents.entry(edge.on).or_default().push((edge.op, event));
        }
        let mut roots = Vec::new();
        lookup.roots(rank, |op| roots.push(op)).unwrap();
        let expected = (0..ops.len() as u32).filter(|op| !waits.contains_key(op));
        assert_eq!(roots, expected.collect::<Vec<_>>(), "{rank}");
        // Forth, back, and in leaps.
        let count = ops.len() as u32;
        let leaps = (0..count).map(|at| at * 7 % count);
        for op in (0..count).chain((0..count).rev()).chain(leaps) {
            let index = OpIndex { rank, op };
            assert_eq!(lookup.op(index), Some(ops[op as usize]), "{index:?}");
            assert_eq!(lookup.dependencies(index), Some(waits.get(&op).copied().unwrap_or(0)));
            let mut found = Vec::new();
            lookup.dependents(index, |op, event| found.push((op, event))).unwrap();
            assert_eq!(found, dependents.get(&op).cloned().unwrap_or_default(), "{index:?}");
        }
        assert_eq!(lookup.op(OpIndex { rank, op: count }), None);
    }
}

/// Calls of a rank, one after the other, 1 µs each after 2 µs of calculation.
struct Program {
    stream: Stream,
    at: u64,
    request: u64,
}

impl Program {
    fn new() -> Self {
        Self { stream: Stream::new(), at: 0, request: 0 }
    }

    fn call(&mut self, name: &'static str, parts: &[Part<'static>]) {
        let stream = std::mem::replace(&mut self.stream, Stream { names: vec![], parts: vec![] });
        self.stream = stream.call(name, self.at + 2_000, self.at + 3_000, parts);
        self.at += 3_000;
    }

    /// Receives from and sends to all, and waits for all at once.
    fn exchange(&mut self, peers: &[i32], tags: &[[i32; 2]], bytes: u64) {
        let first = self.request + 1;
        let mut finished = Vec::new();
        for (peer, [_, tag]) in peers.iter().zip(tags) {
            self.request += 1;
            let at = envelope(*peer, *tag, bytes);
            self.call("Irecv", &[posted(at, self.request)]);
            finished.push(done(self.request, Outcome::Received(at)));
        }
        for (peer, [tag, _]) in peers.iter().zip(tags) {
            self.request += 1;
            self.call("Isend", &[isent(envelope(*peer, *tag, bytes), self.request)]);
            finished.push(done(self.request, Outcome::Done));
        }
        assert_eq!(self.request - first + 1, finished.len() as u64);
        self.call("Waitall", &finished);
    }

    fn rooted(&mut self, name: &'static str, root: i32, bytes: u64) {
        let Part::Collective(plain) = all(bytes, 0, None) else { unreachable!() };
        self.call(name, &[Part::Collective(Collective { root: Some(root), ..plain })]);
    }

    fn within(&mut self, name: &'static str, communicator: u32, bytes: u64) {
        let Part::Collective(plain) = all(bytes, 0, None) else { unreachable!() };
        self.call(name, &[Part::Collective(Collective { communicator, ..plain })]);
    }

    fn end(self) -> Stream {
        self.stream.end(self.at + 5_000)
    }
}

/// Ends of a grid.
#[derive(Clone, Copy)]
enum Ends {
    Open,
    Joined,
}

/// Number of the rank at these coordinates, or that of nobody.
fn at<const N: usize>(grid: [i32; N], ends: Ends, place: [i32; N]) -> i32 {
    let inside = |(at, extent): (i32, i32)| match ends {
        Ends::Joined => Some((at.rem_euclid(extent), extent)),
        Ends::Open => (0..extent).contains(&at).then_some((at, extent)),
    };
    let all: Option<Vec<_>> = place.into_iter().zip(grid).map(inside).collect();
    all.map_or(NO_PEER, |all| all.iter().fold(0, |rank, (at, extent)| rank * extent + at))
}

/// Coordinates of a rank.
fn place<const N: usize>(grid: [i32; N], mut rank: i32) -> [i32; N] {
    let mut place = grid;
    for extent in place.iter_mut().rev() {
        (*extent, rank) = (rank % *extent, rank / *extent);
    }
    place
}

fn extents<const N: usize>(grid: [i32; N]) -> Vec<u32> {
    grid.map(i32::cast_unsigned).to_vec()
}

fn converted(streams: Vec<Stream>, further: impl Fn(u32) -> Vec<Vec<Part<'static>>>) -> Conversion {
    let ranks: Vec<_> = streams.into_iter().map(|stream| vec![stream]).collect();
    let input: Input = traced_with(&ranks, further);
    Conversion::new(input, Options::default())
}

fn each<const N: usize>(
    grid: [i32; N],
    mut program: impl FnMut([i32; N], &mut Program),
) -> Vec<Stream> {
    let rank = |rank: i32| {
        let mut one = Program::new();
        program(place(grid, rank), &mut one);
        one.end()
    };
    (0..grid.iter().product()).map(rank).collect()
}

/// Halos along all dimensions, reductions over all, over planes and lines, and one that goes on
/// meanwhile.
fn stencil<const N: usize>(grid: [i32; N], ends: Ends) -> Conversion {
    let ranks: i32 = grid.iter().product();
    let streams = each(grid, |place, program| {
        let side = |side: usize| {
            let mut place = place;
            place[side / 2] += [-1, 1][side % 2];
            at(grid, ends, place)
        };
        let peers: Vec<_> = (0..2 * N).map(side).collect();
        let tags: Vec<_> = (0..2 * N as i32).map(|side| [side, side ^ 1]).collect();
        program.rooted("Bcast", 0, 100);
        for _ in 0..3 {
            program.exchange(&peers, &tags, 4_096);
            program.within("Allreduce", 0, 8);
            (1..N).for_each(|fixed| program.within("Allreduce", fixed as u32, 16));
            program.within("Barrier", N as u32, 0);
            program.call("Iallreduce", &[all(24, 0, Some(1 << 40))]);
            program.exchange(&peers[..2], &tags, 64);
            program.call("Wait", &[done(1 << 40, Outcome::Done)]);
        }
        program.rooted("Reduce", ranks - 1, 1_000);
        program.within("Alltoall", 0, 10);
    });
    // Ranks with the same first coordinates, and lines along the first dimension.
    converted(streams, |rank| {
        let rank = rank as i32;
        let define = |number: usize, first: i32, stride: i32, count: i32| {
            let identity = 1_000 * number as u64 + first as u64;
            defined(number as u32, identity, first, stride, count as u32)
        };
        let with_same = |fixed: usize| {
            let count = grid[fixed..].iter().product();
            define(fixed, rank - rank % count, 1, count)
        };
        let plane = ranks / grid[0];
        (1..N).map(with_same).chain([define(N, rank % plane, plane, grid[0])]).collect()
    })
}

/// Sweeps from all four corners.
fn wavefront(grid: [i32; 2]) -> Conversion {
    let streams = each(grid, |[x, y], program| {
        for [dx, dy] in [[1, 1], [1, -1], [-1, 1], [-1, -1]] {
            for block in 0..4 {
                for from in [[x - dx, y], [x, y - dy]] {
                    let from = at(grid, Ends::Open, from);
                    program.call("Recv", &[received(envelope(from, block, 800))]);
                }
                for to in [[x + dx, y], [x, y + dy]] {
                    program.call("Send", &[sent(envelope(at(grid, Ends::Open, to), block, 800))]);
                }
            }
            program.within("Allreduce", 0, 8);
        }
    });
    converted(streams, |_| Vec::new())
}

/// A token that goes around in both directions.
fn ring(ranks: i32) -> Conversion {
    let streams = each([1, ranks], |[_, rank], program| {
        for (step, tag) in [(1, 1), (ranks - 1, 2), (2, 3)] {
            let (to, from) = ((rank + step) % ranks, (rank + ranks - step) % ranks);
            let parts = [sent(envelope(to, tag, 32)), received(envelope(from, tag, 32))];
            program.call("Sendrecv", &parts);
        }
    });
    converted(streams, |_| Vec::new())
}

fn onto(target: &[u32]) -> Scaling {
    Scaling::Grid(Grid { traced: None, target: target.to_vec() })
}

/// Asserts that a trace extrapolated is the program on more ranks.
fn assert_equal(trace: &Conversion, scaling: &Scaling, expected: &Conversion) {
    assert_all_equal(from_ref(trace), scaling, expected);
}

/// As [`assert_equal`], from several traces.
fn assert_all_equal(traces: &[Conversion], scaling: &Scaling, expected: &Conversion) {
    let program = Extrapolation::new(traces, scaling).unwrap();
    let (found, expected) = (Stored::extrapolated(&program).seen(), Stored::of(expected).seen());
    assert_eq!(found.len(), expected.len());
    for (rank, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "rank {rank}");
    }
    assert_looked_up(&program);
}

#[test]
fn a_stencil_of_9_and_of_16_ranks_is_on_64_what_it_does_there() {
    for rings in [Ends::Open, Ends::Joined] {
        assert_equal(&stencil([3, 3], rings), &onto(&[8, 8]), &stencil([8, 8], rings));
    }
    assert_equal(&stencil([4, 4], Ends::Open), &onto(&[8, 8]), &stencil([8, 8], Ends::Open));
    // Of a ring of four, two ways lead to the rank opposite; nobody goes there.
    assert_equal(&stencil([4, 4], Ends::Joined), &onto(&[8, 8]), &stencil([8, 8], Ends::Joined));
    assert_equal(&stencil([3, 4], Ends::Open), &onto(&[3, 20]), &stencil([3, 20], Ends::Open));
}

#[test]
fn a_wavefront_of_9_and_of_16_ranks_is_on_64_what_it_does_there() {
    for traced in [[3, 3], [4, 4]] {
        assert_equal(&wavefront(traced), &onto(&[8, 8]), &wavefront([8, 8]));
    }
}

/// Halos of all neighbours, also diagonal ones, by `MPI_Sendrecv` to one side and from the other.
fn shifts(grid: [i32; 2], distance: i32) -> Conversion {
    let sides = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [dx * distance, dy * distance]));
    let sides: Vec<_> = sides.filter(|side| *side != [0, 0]).collect();
    let streams = each(grid, |[x, y], program| {
        for (tag, [dx, dy]) in (0..).zip(&sides) {
            let to = envelope(at(grid, Ends::Open, [x + dx, y + dy]), tag, 100 + tag as u64);
            let from = envelope(at(grid, Ends::Open, [x - dx, y - dy]), tag, 100 + tag as u64);
            program.call("Sendrecv", &[sent(to), received(from)]);
        }
        program.rooted("Reduce", grid[0] * grid[1] - 1, 8);
    });
    converted(streams, |_| Vec::new())
}

/// Two ranks along a dimension show what those between them do: where one has `MPI_PROC_NULL`, the
/// other has the message.
#[test]
fn two_ranks_along_a_dimension_are_many_where_null_calls_tell() {
    for (traced, target) in
        [([2, 2], [8, 8]), ([2, 4], [8, 8]), ([4, 2], [4, 16]), ([3, 2], [3, 3]), ([2, 2], [2, 32])]
    {
        let given = Some(extents(traced)).filter(|_| traced[0] == 3);
        let onto = Scaling::Grid(Grid { traced: given, target: extents(target) });
        assert_equal(&stencil(traced, Ends::Open), &onto, &stencil(target, Ends::Open));
        assert_equal(&wavefront(traced), &onto, &wavefront(target));
        assert_equal(&shifts(traced, 1), &onto, &shifts(target, 1));
    }
    // The smaller trace gives the larger one.
    let traces = [wavefront([2, 2]), wavefront([2, 4])];
    assert_all_equal(&traces, &onto(&[4, 16]), &wavefront([4, 16]));
    let error = Extrapolation::new(&[shifts([2, 2], 1), wavefront([2, 4])], &onto(&[8, 8]));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("communication 1 of rank 0 is "), "{error}");
}

/// Along a dimension of one rank, all have `MPI_PROC_NULL`, which no other rank explains.
#[test]
fn a_dimension_of_one_rank_that_does_not_grow_needs_no_inner_rank() {
    for (traced, target) in [([2, 1], [8, 1]), ([1, 2], [1, 8]), ([3, 1], [8, 1])] {
        let onto = onto(&extents(target));
        assert_equal(&stencil(traced, Ends::Open), &onto, &stencil(target, Ends::Open));
        assert_equal(&wavefront(traced), &onto, &wavefront(target));
        assert_equal(&shifts(traced, 1), &onto, &shifts(target, 1));
    }
    let (traced, target) = (stencil([2, 1, 2], Ends::Open), stencil([5, 1, 4], Ends::Open));
    assert_equal(&traced, &onto(&[5, 1, 4]), &target);
    let traces = [wavefront([2, 1]), wavefront([4, 1])];
    assert_all_equal(&traces, &onto(&[16, 1]), &wavefront([16, 1]));
}

/// Where it may be that such a message goes over two ranks of the other dimension, that is told; it is
/// refused where a topology or another trace shows it.
#[test]
fn messages_that_reach_nobody_are_taken_for_a_dimension_of_one_rank_and_told() {
    let doubt = |traces: &[Conversion], target: &[u32]| {
        Extrapolation::new(traces, &onto(target)).map(|program| program.doubt())
    };
    let told = doubt(&[wavefront([2, 1])], &[8, 1]).unwrap().unwrap();
    assert!(told.starts_with("32 sends and receives") && told.contains("dimension 1,"), "{told}");
    assert_eq!(doubt(&[wavefront([4, 1])], &[8, 1]).unwrap(), None);
    assert_eq!(doubt(&[wavefront([2, 2])], &[8, 8]).unwrap(), None);
    assert_eq!(doubt(&[wavefront([3, 2])], &[8, 2]).unwrap(), None);
    let far = |ranks: i32, distance: i32, created: &'static [(u32, bool)]| {
        let streams = each([ranks, 1], |[x, y], program| {
            for distance in [1, distance] {
                let [from, to] =
                    [-distance, distance].map(|by| at([ranks, 1], Ends::Open, [x + by, y]));
                let parts = [sent(envelope(to, 0, 8)), received(envelope(from, 0, 8))];
                program.call("Sendrecv", &parts);
            }
        });
        converted(streams, |_| {
            let dimension = |&(extent, periodic)| Part::Dimension { extent, periodic };
            let dimensions: Vec<_> = created.iter().map(dimension).collect();
            let count = u32::try_from(ranks).unwrap();
            created
                .iter()
                .take(1)
                .map(|_| [defined(1, 100, 0, 1, count), dimensions.clone()].concat())
                .collect()
        })
    };
    let told = doubt(&[far(2, 2, &[])], &[8, 1]).unwrap().unwrap();
    assert!(told.starts_with("2 sends and receives"), "{told}");
    assert!(doubt(&[far(2, 2, &[(2, false), (1, false)])], &[8, 1]).unwrap().is_some());
    for created in [&[(2, false)][..], &[(2, false), (1, true)]] {
        let error = doubt(&[far(2, 2, created)], &[8, 1]).unwrap_err().to_string();
        assert!(error.contains("communication 3 of rank 0 is with MPI_PROC_NULL"), "{error}");
    }
    // Over three ranks, of three.
    let told = doubt(&[far(3, 3, &[(3, false)])], &[8, 1]).unwrap().unwrap();
    assert!(told.starts_with("2 sends and receives of a rank between others"), "{told}");
    // Where the trace has the message, the grid does not fit.
    for ranks in [3, 4] {
        let error = doubt(&[far(2, 2, &[]), far(ranks, 2, &[])], &[8, 1]).unwrap_err().to_string();
        assert!(error.contains(&format!("no grid of {ranks}x1: ")), "{error}");
    }
}

/// Neighbourhood collectives of `MPI_Cart_create`'s grid.
fn neighbourhoods<const N: usize>(grid: [i32; N], ends: Ends) -> Conversion {
    let streams = each(grid, |_, program| {
        program.within("Neighbor_allgather", 1, 100);
        program.within("Neighbor_alltoall", 1, 64);
    });
    converted(streams, |_| {
        let periodic = matches!(ends, Ends::Joined);
        let dimension = |extent| Part::Dimension { extent, periodic };
        let count = grid.iter().product::<i32>().cast_unsigned();
        let dimensions = extents(grid).into_iter().map(dimension).collect();
        vec![[defined(1, 100, 0, 1, count), dimensions].concat()]
    })
}

#[test]
fn neighbourhood_collectives_of_two_ranks_along_a_dimension_are_many_where_it_is_open() {
    for (traced, target) in [([2, 2], [8, 8]), ([2, 3], [5, 4]), ([2, 1], [8, 1])] {
        let expected = neighbourhoods(target, Ends::Open);
        assert_equal(&neighbourhoods(traced, Ends::Open), &onto(&extents(target)), &expected);
    }
    let cube = neighbourhoods([2, 2, 2], Ends::Open);
    assert_equal(&cube, &onto(&[4, 3, 5]), &neighbourhoods([4, 3, 5], Ends::Open));
    let rings = neighbourhoods([3, 3], Ends::Joined);
    assert_equal(&rings, &onto(&[5, 6]), &neighbourhoods([5, 6], Ends::Joined));
    // Without the topology of MPI_Cart_create, a pair of neighbours may be anywhere.
    let pair =
        converted(each([2], |_, program| program.within("Neighbor_allgather", 1, 100)), |rank| {
            let neighbour = |direction| Part::Neighbour { direction, peer: 1 - rank as i32 };
            let both = [Direction::Send, Direction::Receive].map(neighbour).to_vec();
            vec![[defined(1, 100, 0, 1, 2), both].concat()]
        });
    let error = Extrapolation::new(&[pair], &onto(&[8])).unwrap_err().to_string();
    assert!(error.contains("a send of 100 B to rank 1, of a neighbourhood collective"), "{error}");
}

#[test]
fn a_cube_of_8_and_of_27_ranks_is_on_more_what_it_does_there() {
    for (traced, target, ends) in [
        ([2, 2, 2], [4, 4, 4], Ends::Open),
        ([2, 3, 2], [3, 5, 7], Ends::Open),
        ([3, 3, 3], [5, 5, 5], Ends::Open),
        ([3, 3, 3], [5, 4, 6], Ends::Joined),
    ] {
        let given = Some(extents(traced));
        let onto = Scaling::Grid(Grid { traced: given, target: extents(target) });
        assert_equal(&stencil(traced, ends), &onto, &stencil(target, ends));
    }
}

#[test]
fn a_ring_of_5_and_of_8_ranks_is_on_64_what_it_does_there() {
    for traced in [5, 8] {
        assert_equal(&ring(traced), &onto(&[64]), &ring(64));
    }
    let error = Extrapolation::new(&[ring(4)], &onto(&[64])).unwrap_err().to_string();
    assert!(error.contains("half a ring away"), "{error}");
    let error = Extrapolation::new(&[ring(4)], &Scaling::Ranks(64)).unwrap_err().to_string();
    assert!(error.contains("a ring to r+2 or a ring to r-2: give a further --trace"), "{error}");
    assert_all_equal(&[ring(8), ring(4)], &Scaling::Ranks(64), &ring(64));
}

/// A token around a ring, a sum to rank 0 and back along a binomial tree, exchanges, a binary tree.
fn tree(ranks: i32) -> Conversion {
    let streams = each([1, ranks], |[_, rank], program| {
        let send = |program: &mut Program, to, tag| {
            program.call("Send", &[sent(envelope(to, tag, 64))]);
        };
        let receive = |program: &mut Program, from, tag| {
            program.call("Recv", &[received(envelope(from, tag, 64))]);
        };
        let distances = || (0..).map(|bit| 1 << bit).take_while(|distance| *distance < ranks);
        let lowest = if rank == 0 { ranks } else { rank & -rank };
        for _ in 0..2 {
            if rank == 0 {
                send(program, 1, 1);
            }
            receive(program, (rank + ranks - 1) % ranks, 1);
            if rank != 0 {
                send(program, (rank + 1) % ranks, 1);
            }
            for distance in distances().take_while(|distance| *distance < lowest) {
                receive(program, rank + distance, 2);
            }
            if rank > 0 {
                send(program, rank - lowest, 2);
                receive(program, rank - lowest, 3);
            }
            for distance in
                distances().filter(|distance| *distance < lowest).collect::<Vec<_>>().iter().rev()
            {
                send(program, rank + distance, 3);
            }
            program.within("Allreduce", 0, 8);
            for distance in distances() {
                let at = envelope(rank ^ distance, 4, 100);
                program.call("Sendrecv", &[sent(at), received(at)]);
            }
            for child in [2 * rank + 1, 2 * rank + 2].into_iter().filter(|child| *child < ranks) {
                receive(program, child, 5);
            }
            if rank > 0 {
                send(program, (rank - 1) / 2, 5);
            }
        }
    });
    converted(streams, |_| Vec::new())
}

#[test]
fn trees_of_4_and_8_ranks_are_on_64_what_they_do_there() {
    assert_all_equal(&[tree(4), tree(8)], &Scaling::Ranks(64), &tree(64));
    let program = Extrapolation::new(&[tree(4), tree(8)], &Scaling::Ranks(64)).unwrap();
    assert_eq!(
        program.summary(),
        "a ring to r+1, messages up a binomial tree (lowest bit), messages down a binomial tree (lowest \
         bit), exchanges with r xor 2^k, messages up a binary tree on 64 ranks from 8"
    );
    let error =
        Extrapolation::new(&[stencil([3, 3], Ends::Open)], &Scaling::Ranks(64)).unwrap_err();
    assert!(error.to_string().contains("belongs to no ring or tree"), "{error}");
}

/// Halos of a square that is cut into ever smaller ones, or of one that grows with the ranks.
fn halos(grid: [i32; 2], bytes: u64, nanos: u64) -> Conversion {
    let streams = each(grid, |[x, y], program| {
        let peers =
            [[x - 1, y], [x + 1, y], [x, y - 1], [x, y + 1]].map(|to| at(grid, Ends::Open, to));
        program.at += nanos;
        program.exchange(&peers, &[[0, 1], [1, 0], [2, 3], [3, 2]], bytes);
        program.within("Allreduce", 0, 8);
    });
    converted(streams, |_| Vec::new())
}

#[test]
fn sizes_and_computation_of_several_traces_grow_as_they_do() {
    // Strong scaling: the edge of a part is 7,200 B over the root of the number of ranks.
    let traces = [
        halos([3, 3], 2_400, 9_000_000),
        halos([4, 4], 1_800, 5_062_500),
        halos([5, 5], 1_440, 3_240_000),
    ];
    let onto = onto(&[9, 8]);
    let program = Extrapolation::new(&traces, &onto).unwrap();
    let stored = Stored::extrapolated(&program);
    let bytes = stored.ranks.iter().flat_map(|(ops, _)| ops).find_map(|op| match op.kind {
        OpKind::Send { size, tag, .. } if tag < 1 << 31 => Some(size),
        _ => None,
    });
    assert_eq!(bytes, Some(848), "7,200 B over the root of 72, in whole doubles");
    for (place, growth) in program.growths() {
        assert!((growth.factor / (25.0 / 72.0) - 1.0).abs() < 0.05, "{place}: {growth:?}");
        assert_eq!((growth.form, growth.interval), (Form::Power(-6), None));
        assert!(growth.left_out.unwrap() < 0.02, "{growth:?}");
    }
    assert_eq!(program.growths().len(), 9);
    let wrong = [halos([3, 3], 2_400, 0), halos([4, 4], 1_700, 0), halos([5, 5], 1_440, 0)];
    let error = Extrapolation::new(&wrong, &onto).unwrap_err().to_string();
    assert!(
        error.ends_with("2400 B on 9 ranks, 1700 B on 16 ranks, 1440 B on 25 ranks"),
        "{error}"
    );
    // A rule of a smaller trace that does not give the larger one.
    let wrong = [wavefront([3, 3]), stencil([4, 4], Ends::Open)];
    let error = Extrapolation::new(&wrong, &onto).unwrap_err().to_string();
    assert!(
        error.contains("the trace on 9 ranks, extrapolated to 16, is not the trace"),
        "{error}"
    );
    let copies = Extrapolation::new(&traces, &Scaling::Copies(3)).unwrap_err().to_string();
    assert!(copies.contains("--extrapolate copies one trace"), "{copies}");
}

/// Calculations of each rank together, in picoseconds.
fn computed(program: &Extrapolation) -> Vec<u64> {
    let time = |op: &Op| if let OpKind::Calc { duration } = op.kind { duration.0 } else { 0 };
    let of_rank = |(ops, _): &(Vec<Op>, Vec<Edge>)| ops.iter().map(time).sum();
    Stored::extrapolated(program).ranks.iter().map(of_rank).collect()
}

/// A rank computes what the traced one with its place does, times the growth from several traces.
#[test]
fn ranks_compute_what_their_place_does_scaled_by_the_fit() {
    // Inside four times of what it is in corners, and twice at edges, over the number of ranks.
    let traced = |[rows, columns]: [i32; 2], total: u64| {
        let streams = each([rows, columns], |[x, y], program| {
            let ends = u32::from(x == 0 || x == rows - 1) + u32::from(y == 0 || y == columns - 1);
            program.at += (total << (2 - ends)) / (rows * columns) as u64 - 2_000;
            for from in [[x - 1, y], [x, y - 1]] {
                let from = at([rows, columns], Ends::Open, from);
                program.call("Recv", &[received(envelope(from, 0, 8))]);
                program.at -= 2_000;
            }
            for to in [[x + 1, y], [x, y + 1]] {
                let to = at([rows, columns], Ends::Open, to);
                program.call("Send", &[sent(envelope(to, 0, 8))]);
                program.at -= 2_000;
            }
            program.at -= 3_000;
        });
        converted(streams, |_| Vec::new())
    };
    // Rows of five of these, from rows of four.
    let place = |rank: usize| {
        let ends = [rank / 5, rank % 5].map(|at| u32::from(at == 0 || at == 4));
        1 << (2 - ends[0] - ends[1])
    };
    let one = Extrapolation::new(&[traced([4, 4], 16_000_000)], &onto(&[5, 5])).unwrap();
    let expected = (0..25).map(|rank| place(rank) * 1_000_000_000);
    assert_eq!(computed(&one), expected.collect::<Vec<u64>>());
    let all = [[2, 4], [4, 4], [4, 8]].map(|grid| traced(grid, 16_000_000));
    let grown = Extrapolation::new(&all, &onto(&[8, 16])).unwrap();
    for (name, growth) in grown.growths() {
        assert!((growth.factor - 0.25).abs() < 1e-9 && growth.form == Form::Power(-6), "{name}");
    }
    let expected = (0..128).map(|rank| {
        let ends = [rank / 16 % 7, rank % 16 % 15].map(|at| u32::from(at == 0));
        125_000_000 << (2 - ends[0] - ends[1])
    });
    assert_eq!(computed(&grown), expected.collect::<Vec<u64>>());
    // Ranks between two rows compute as the first of these.
    let two = [[2, 4], [2, 8], [2, 16]].map(|grid| traced(grid, 16_000_000));
    let grown = Extrapolation::new(&two, &onto(&[4, 32])).unwrap();
    let expected = (0..128).map(|rank| 125_000_000 << u32::from(rank % 32 % 31 != 0));
    assert_eq!(computed(&grown), expected.collect::<Vec<u64>>());
}

/// How lists of counts grow is not fitted: they are the same in all traces, or refused.
#[test]
fn lists_of_counts_that_differ_between_traces_are_refused() {
    let traced = |ranks: i32, to_each: u64, from_each: u64| {
        let list = |direction, bytes| Part::Each { direction, peers: ranks as u64, bytes };
        let [to, from] = [list(Direction::Send, to_each), list(Direction::Receive, from_each)];
        let streams = each([1, ranks], |_, program| {
            program.call("Alltoallv", &[all(0, 0, None), to, from]);
        });
        converted(streams, |_| Vec::new())
    };
    let extrapolated = |larger| Extrapolation::new(&[traced(4, 8, 8), larger], &Scaling::Ranks(16));
    let program = extrapolated(traced(8, 8, 8)).unwrap();
    assert_eq!(Stored::extrapolated(&program).sends(), [0, 16 * 15]);
    for larger in [traced(8, 16, 16), traced(8, 8, 9), traced(8, 0, 8)] {
        let error = extrapolated(larger).unwrap_err().to_string();
        assert!(error.starts_with("the lists of counts of Alltoallv differ between"), "{error}");
    }
}

/// On a ring, too, computation before and inside of patterns is scaled. Rank 0, where the token begins,
/// computes three times as long meanwhile.
#[test]
fn ranks_of_a_ring_compute_what_they_did_scaled_by_the_fit() {
    // The work of the others is divided among all ranks; that of rank 0 may be its own.
    let traced = |ranks: i32, own: Option<u64>| {
        let streams = each([1, ranks], |[_, rank], program| {
            let part = 64_000_000 / u64::from(ranks.unsigned_abs());
            let [before, between] = match (rank, own) {
                (0, Some(own)) => [own; 2],
                (0, None) => [part, 3 * part],
                _ => [part; 2],
            };
            for _ in 0..3 {
                program.at += before;
                let to = sent(envelope((rank + 1) % ranks, 1, 64));
                let from = received(envelope((rank + ranks - 1) % ranks, 1, 64));
                let both = [("Send", to), ("Recv", from)];
                let [first, second] = if rank == 0 { [0, 1] } else { [1, 0] }.map(|at| &both[at]);
                program.call(first.0, from_ref(&first.1));
                program.at += between;
                program.call(second.0, from_ref(&second.1));
            }
        });
        converted(streams, |_| Vec::new())
    };
    for (own, factor, of_first) in [(None, 0.25, 12e9), (Some(7_000_000), 1.0, 42e9)] {
        let all = [4, 8, 16].map(|ranks| traced(ranks, own));
        let grown = Extrapolation::new(&all, &Scaling::Ranks(64)).unwrap();
        for ((_, growth), factor) in grown.growths().iter().zip([factor, 0.25]) {
            assert!((growth.factor - factor).abs() < 0.01, "{growth:?}");
        }
        assert_eq!(grown.growths().len(), 2);
        for (rank, computed) in computed(&grown).into_iter().enumerate() {
            let expected = if rank == 0 { of_first } else { 6e9 };
            assert!((computed as f64 / expected - 1.0).abs() < 0.02, "{rank}: {computed}");
        }
    }
}

/// Each copy has the messages of the trace, and collective operations are among all.
#[test]
fn copies_have_their_messages_among_themselves_and_collectives_in_common() {
    let traced = wavefront([5, 8]);
    let program = Extrapolation::new(from_ref(&traced), &Scaling::Copies(7)).unwrap();
    let (stored, before) = (Stored::extrapolated(&program), Stored::of(&traced));
    assert_eq!(before.sends()[0], 67 * 4 * 4);
    assert_eq!(stored.sends()[0], 7 * before.sends()[0]);
    assert_eq!(program.messages(), 7 * 67 * 4 * 4);
    // Doubling among 280 ranks: 24 pairs first and last, 8 rounds of 256.
    assert_eq!(stored.sends()[1], 4 * (2 * 24 + 8 * 256));
    for (rank, (ops, _)) in (0u32..).zip(&stored.ranks) {
        let within = |op: &Op| match op.kind {
            OpKind::Send { peer, tag, .. } => tag >> 31 & 1 != 0 || peer / 40 == rank / 40,
            _ => true,
        };
        assert!(ops.iter().all(within), "{rank}");
    }
    assert_looked_up(&program);
    let program = Extrapolation::new(from_ref(&traced), &onto(&[10, 14])).unwrap();
    assert_eq!(Stored::extrapolated(&program).sends()[0], (9 * 14 + 10 * 13) * 4 * 4);
    assert_eq!(program.summary(), "a grid of 10x14 from 5x8 ranks");
}

#[test]
fn what_does_not_suffice_is_refused_with_what_to_give() {
    let refused = |trace: &Conversion, scaling: &Scaling| {
        Extrapolation::new(from_ref(trace), scaling).unwrap_err().to_string()
    };
    // Of a ring of two, both neighbours are one rank; the grid of MPI_Cart_create is one of rings.
    let streams = each([2, 4], |[x, y], program| {
        let around =
            [(0, 1), (0, 3), (1, 0)].map(|(dx, dy)| at([2, 4], Ends::Joined, [x + dx, y + dy]));
        program.exchange(&around, &[[0, 1], [1, 0], [2, 2]], 800);
    });
    let cartesian = converted(streams, |_| {
        let dimension = |extent| Part::Dimension { extent, periodic: true };
        vec![[defined(1, 100, 0, 1, 8), vec![dimension(2), dimension(4)]].concat()]
    });
    let from = |target| Scaling::Grid(Grid { traced: Some(vec![2, 4]), target });
    let error = refused(&cartesian, &from(vec![8, 8]));
    assert!(
        error.starts_with("the traced grid 2x4 has fewer than 3 ranks along dimension 1"),
        "{error}"
    );
    let program = Extrapolation::new(&[cartesian], &from(vec![2, 32])).unwrap();
    assert!(program.dimensions().iter().all(|one| one.is_ring));
    // What is nowhere a message, and what is none on both sides.
    let error = refused(&shifts([2, 2], 2), &onto(&[8, 8]));
    assert!(
        error.contains("communication 1 of rank 0 is with MPI_PROC_NULL on all ranks"),
        "{error}"
    );
    let error = refused(&tree(2), &onto(&[64]));
    assert!(
        error.contains("communication 1 of rank 0 is a send of 64 B to rank 1, tag 1, and that of rank 1 a receive of 64 B from rank 0, tag 1;")
            && error.ends_with("trace on 3 or more ranks along each dimension that grows"),
        "{error}"
    );
    let wrong = Scaling::Grid(Grid { traced: Some(vec![4, 3]), target: vec![8, 8] });
    let error = refused(&wavefront([3, 4]), &wrong);
    assert!(error.contains("no grid of 4x3: "), "{error}");
    let error = refused(&wavefront([3, 3]), &onto(&[16]));
    let expected = "the traced ranks are a grid of 3x3: give as many extents, such as --grid 4x4";
    assert_eq!(error, expected);
    let line = each([1, 5], |[_, rank], program| {
        let bytes = if rank == 2 { 200 } else { 100 };
        let to = envelope(at([1, 5], Ends::Open, [0, rank + 1]), 3, bytes);
        program.call("Send", &[sent(to)]);
    });
    let error = refused(&converted(line, |_| Vec::new()), &onto(&[1, 9]));
    let differ = "communication 1 of rank 1 is a send of 100 B to rank 2, tag 3, and that of rank 2 a send of 200 B to rank 3, tag 3";
    assert!(error.ends_with(&format!("no grid of 1x5: of equal places, {differ}")), "{error}");
    // Nothing but collective operations: all grids of 36 ranks do.
    let quiet = each([6, 6], |_, program| program.within("Allreduce", 0, 8));
    let error = refused(&converted(quiet, |_| Vec::new()), &onto(&[40, 40]));
    assert!(error.contains("may be a grid of") && error.contains("--grid 2x18:"), "{error}");
}

#[test]
fn what_is_not_understood_is_left_out_and_listed_with_its_time() {
    // Ranks 0 to 2 of 9, which are the first row, have a communicator with the wrong order.
    let streams = each([3, 3], |[x, _], program| {
        program.within("Allreduce", 0, 8);
        if x == 0 {
            program.within("Barrier", 1, 0);
        }
    });
    let trace = converted(streams, |rank| match rank {
        0..3 => vec![defined(1, 100, 2, -1, 3)],
        _ => Vec::new(),
    });
    let grid = Scaling::Grid(Grid { traced: Some(vec![3, 3]), target: vec![4, 4] });
    let program = Extrapolation::new(&[trace], &grid).unwrap();
    let refused = program.report().refused();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].call.as_str(), refused[0].calls), ("Barrier", 3));
    assert!((refused[0].time_s - 3e-6).abs() < 1e-12 && refused[0].share > 0.0);
    assert_looked_up(&program);
}

#[test]
fn ranks_without_memory_are_an_error() {
    assert!(room::<[u64; 1 << 20]>(u32::MAX).is_err());
    assert_eq!(room::<u32>(7).unwrap().capacity(), 7);
}
