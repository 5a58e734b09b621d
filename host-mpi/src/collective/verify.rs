//! Verification of results, whose expected contents are computed.
//!
//! Contents depend on the repetition, the first root, the sending rank and the
//! receiving rank, so that data left from an earlier repetition is wrong in
//! this one. Element `i` of the data from `source` to `target` is `start +
//! i·step` modulo 2³², with `start` and `step` from a generator; a byte is the
//! topmost eight bits of such a word. Sums of such words are such words.

use loggap_core::random::Random;

use super::buffers::Buffers;
use super::operation::Collective;

/// Parameters of a repetition that contents depend on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Round {
    /// Number of the repetition.
    pub(super) repetition: u64,
    /// Root of the first operation.
    pub(super) first_root: u32,
    /// Root of the last operation, which differs if the root moves.
    pub(super) last_root: u32,
}

/// Target of data that is the same for all ranks.
const EVERYBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Content {
    start: u32,
    step: u32,
}

impl Content {
    #[allow(clippy::cast_possible_truncation, reason = "halves of a random number")]
    fn new(round: Round, source: u32, target: u32) -> Self {
        let mut key = Random::stream(round.repetition, round.first_root.into());
        let place = u64::from(source) << 32 | u64::from(target);
        let bits = Random::stream(key.draw(), place).draw();
        Self { start: bits as u32, step: (bits >> 32) as u32 | 1 }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            start: self.start.wrapping_add(other.start),
            step: self.step.wrapping_add(other.step),
        }
    }

    /// Words from element `first` on.
    fn words(self, first: usize) -> impl Iterator<Item = u32> {
        let Self { start, step } = self;
        #[allow(clippy::cast_possible_truncation, reason = "modulo 2^32 is the definition")]
        let first = start.wrapping_add((first as u32).wrapping_mul(step));
        std::iter::successors(Some(first), move |word| Some(word.wrapping_add(step)))
    }

    fn bytes(self) -> impl Iterator<Item = u8> {
        self.words(0).map(|word| word.to_be_bytes()[0])
    }
}

/// Fills the buffers with the data that this rank sends in `round`.
pub(super) fn fill(buffers: &mut Buffers, round: Round) {
    let rank = buffers.standing.rank;
    let block = block(buffers);
    let pair = &mut buffers.bytes;
    match buffers.cell.operation.collective {
        Collective::Barrier => {}
        Collective::Bcast => {
            if rank == round.first_root {
                write(&mut pair.receive, Content::new(round, rank, EVERYBODY));
            }
        }
        Collective::Gather
        | Collective::Gatherv
        | Collective::Allgather
        | Collective::Allgatherv => write(&mut pair.send, Content::new(round, rank, EVERYBODY)),
        Collective::Scatter
        | Collective::Scatterv
        | Collective::Alltoall
        | Collective::Alltoallv => {
            for (target, block) in (0..).zip(pair.send.chunks_mut(block)) {
                write(block, Content::new(round, rank, target));
            }
        }
        Collective::Reduce
        | Collective::Allreduce
        | Collective::ReduceScatterBlock
        | Collective::Scan
        | Collective::Exscan => {
            let words = Content::new(round, rank, EVERYBODY).words(0);
            buffers.words.send.iter_mut().zip(words).for_each(|(place, word)| *place = word);
        }
    }
}

fn write(block: &mut [u8], content: Content) {
    block.iter_mut().zip(content.bytes()).for_each(|(place, byte)| *place = byte);
}

/// Elements of a block, at least one.
fn block(buffers: &Buffers) -> usize {
    usize::try_from(buffers.cell.elements).unwrap_or(usize::MAX).max(1)
}

/// Index of the first element that differs from the expected data of `round`.
pub(super) fn first_wrong(buffers: &Buffers, round: Round) -> Option<usize> {
    let rank = buffers.standing.rank;
    let block = block(buffers);
    let got = &buffers.bytes.receive;
    let from_each = |target| {
        let blocks = (0..).zip(got.chunks(block));
        let wrong = |(source, got)| wrong_byte(got, Content::new(round, source, target));
        blocks.enumerate().find_map(|(index, part)| Some(index * block + wrong(part)?))
    };
    match buffers.cell.operation.collective {
        Collective::Barrier => None,
        Collective::Bcast => wrong_byte(got, Content::new(round, round.first_root, EVERYBODY)),
        Collective::Scatter | Collective::Scatterv => {
            wrong_byte(got, Content::new(round, round.last_root, rank))
        }
        Collective::Gather | Collective::Gatherv if rank != round.last_root => None,
        Collective::Gather
        | Collective::Gatherv
        | Collective::Allgather
        | Collective::Allgatherv => from_each(EVERYBODY),
        Collective::Alltoall | Collective::Alltoallv => from_each(rank),
        Collective::Reduce if rank != round.last_root => None,
        Collective::Reduce | Collective::Allreduce => {
            wrong_word(buffers, round, buffers.standing.ranks, 0)
        }
        Collective::ReduceScatterBlock => {
            let first = usize::try_from(rank).unwrap_or(usize::MAX).saturating_mul(block);
            wrong_word(buffers, round, buffers.standing.ranks, first)
        }
        Collective::Scan => wrong_word(buffers, round, rank + 1, 0),
        // The result of rank 0 is undefined.
        Collective::Exscan if rank == 0 => None,
        Collective::Exscan => wrong_word(buffers, round, rank, 0),
    }
}

fn wrong_byte(got: &[u8], content: Content) -> Option<usize> {
    got.iter().zip(content.bytes()).position(|(got, byte)| *got != byte)
}

/// Index of the first word that differs from the sum over the ranks below
/// `ranks`, whose data starts at element `first` here.
fn wrong_word(buffers: &Buffers, round: Round, ranks: u32, first: usize) -> Option<usize> {
    let contents = (0..ranks).map(|rank| Content::new(round, rank, EVERYBODY));
    let sum = contents.fold(Content::default(), Content::plus);
    let got = &buffers.words.receive;
    got.iter().zip(sum.words(first)).position(|(got, word)| *got != word)
}

#[cfg(test)]
mod tests {
    use super::super::buffers::Standing;
    use super::super::operation::{Cell, Operation};
    use super::*;
    use loggap::machine::buffer::Alignment;

    const ROUND: Round = Round { repetition: 7, first_root: 1, last_root: 1 };
    const RANKS: u32 = 3;
    const ELEMENTS: usize = 5;

    fn buffers(operation: Operation, round: Round) -> Vec<Buffers> {
        let cell = Cell { operation, elements: ELEMENTS as u64 };
        let standing = |rank| Standing { rank, ranks: RANKS };
        let mut all: Vec<_> = (0..RANKS)
            .map(|rank| Buffers::new(cell, standing(rank), Alignment::default()).unwrap())
            .collect();
        all.iter_mut().for_each(|buffers| fill(buffers, round));
        all
    }

    /// Carries out the operation as MPI defines it, without MPI.
    fn carry_out(all: &mut [Buffers], root: usize) {
        let sends: Vec<Vec<u8>> = all.iter().map(|b| b.bytes.send.to_vec()).collect();
        let words: Vec<Vec<u32>> = all.iter().map(|b| b.words.send.to_vec()).collect();
        let bcast = all[root].bytes.receive.to_vec();
        let sum = |below: usize, index: usize| {
            words[..below].iter().fold(0_u32, |sum, words| sum.wrapping_add(words[index]))
        };
        let part = |source: usize, at: usize| sends[source][at * ELEMENTS..][..ELEMENTS].to_vec();
        let ranks = all.len();
        for (rank, buffers) in all.iter_mut().enumerate() {
            let (bytes, get) = (&mut buffers.bytes.receive, &mut buffers.words.receive);
            let mut sums = |below: usize, first: usize| {
                get.iter_mut().enumerate().for_each(|(i, word)| *word = sum(below, first + i));
            };
            match buffers.cell.operation.collective {
                Collective::Barrier => {}
                Collective::Bcast => bytes.copy_from_slice(&bcast),
                Collective::Gather | Collective::Gatherv if rank != root => {}
                Collective::Gather
                | Collective::Gatherv
                | Collective::Allgather
                | Collective::Allgatherv => bytes.copy_from_slice(&sends.concat()),
                Collective::Scatter | Collective::Scatterv => {
                    bytes.copy_from_slice(&part(root, rank))
                }
                Collective::Alltoall | Collective::Alltoallv => {
                    let all: Vec<u8> = (0..ranks).flat_map(|source| part(source, rank)).collect();
                    bytes.copy_from_slice(&all);
                }
                Collective::Reduce if rank != root => {}
                Collective::Reduce | Collective::Allreduce => sums(ranks, 0),
                Collective::ReduceScatterBlock => sums(ranks, rank * ELEMENTS),
                Collective::Scan => sums(rank + 1, 0),
                Collective::Exscan => sums(rank, 0),
            }
        }
    }

    #[test]
    fn what_an_operation_gives_is_right() {
        for operation in Operation::all() {
            let mut all = buffers(operation, ROUND);
            carry_out(&mut all, 1);
            for buffers in &all {
                assert_eq!(first_wrong(buffers, ROUND), None, "{operation}");
            }
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        for operation in Operation::all().filter(|o| o.collective != Collective::Barrier) {
            let mut all = buffers(operation, ROUND);
            carry_out(&mut all, 1);
            let root = &mut all[1];
            if operation.reduces() {
                root.words.receive[3] ^= 1 << 31;
            } else {
                root.bytes.receive[3] ^= 1;
            }
            assert_eq!(first_wrong(root, ROUND), Some(3), "{operation}");
        }
    }

    #[test]
    fn what_is_left_of_another_repetition_or_root_is_wrong() {
        let other_repetition = Round { repetition: 8, ..ROUND };
        let other_root = Round { first_root: 2, last_root: 1, ..ROUND };
        for operation in Operation::all().filter(|o| o.collective != Collective::Barrier) {
            let mut all = buffers(operation, ROUND);
            carry_out(&mut all, 1);
            for round in [other_repetition, other_root] {
                assert!(first_wrong(&all[1], round).is_some(), "{operation}");
            }
        }
    }

    #[test]
    fn a_root_that_has_moved_gives_what_it_has() {
        let moved = Round { last_root: 2, ..ROUND };
        let scatter = Operation::all().find(|o| o.collective == Collective::Scatter).unwrap();
        let mut all = buffers(scatter, moved);
        carry_out(&mut all, 2);
        assert!(all.iter().all(|buffers| first_wrong(buffers, moved).is_none()));
    }
}
