//! Open MPI's own choice of algorithms, by its fixed rules of version 4.0
//! (`coll_tuned_decision_fixed.c`), as far as the messages of the algorithms are known: in place of
//! a split binary tree stands a binary one, and two ranks are not treated apart.

use super::algorithm::Shape;
use super::operation::Operation;

/// Algorithm with its segment size in bytes; 0 for whole messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// Communication pattern of the algorithm.
    pub shape: Shape,
    /// Bytes of a segment.
    pub segment: u64,
}

/// Algorithm for a call whose vector, or block, has `size` bytes.
#[must_use]
pub fn known(operation: Operation, ranks: u32, size: u64) -> Chosen {
    let all = operation.rule_size(size, ranks);
    let shape = match operation {
        Operation::Bcast => return broadcast(ranks, size),
        Operation::Allreduce if size < 10_000 => Shape::AllreduceDoubling,
        Operation::Allreduce => Shape::AllreduceRing,
        Operation::Allgather if all < 50_000 && ranks.is_power_of_two() => Shape::AllgatherDoubling,
        Operation::Allgather if all < 50_000 => Shape::AllgatherBruck,
        Operation::Allgather if ranks.is_multiple_of(2) => Shape::AllgatherNeighbour,
        Operation::Allgather => Shape::AllgatherRing,
        Operation::Alltoall if size < 200 && ranks > 12 => Shape::AlltoallBruck,
        Operation::Alltoall if size < 3_000 => Shape::AlltoallLinear,
        Operation::Alltoall => Shape::AlltoallPairwise,
        Operation::Barrier if ranks.is_power_of_two() => Shape::BarrierDoubling,
        Operation::Barrier => Shape::BarrierDissemination,
        Operation::Gather if size <= 6_000 && (ranks > 60 || ranks > 10 && size < 1_024) => {
            Shape::GatherBinomial
        }
        Operation::Gather => Shape::GatherLinear,
        Operation::Scatter if ranks > 10 && size < 300 => Shape::ScatterBinomial,
        Operation::Scatter => Shape::ScatterLinear,
    };
    Chosen { shape, segment: 0 }
}

fn broadcast(ranks: u32, size: u64) -> Chosen {
    /// Slope in ranks per 10¹⁰ bytes, ranks in 10⁻⁴, and segment of each pipeline: it is used by
    /// fewer ranks than that line gives.
    const PIPELINES: [(u128, u128, u64); 3] =
        [(16_134, 21_102, 128 << 10), (23_679, 11_787, 64 << 10), (32_118, 87_936, 16 << 10)];
    let pipeline = |segment| Chosen { shape: Shape::BroadcastChains { chains: 1 }, segment };
    let fits = |&(slope, ranks_at_0, _): &(u128, u128, u64)| {
        u128::from(ranks) * 10_000_000_000 < slope * u128::from(size) + ranks_at_0 * 1_000_000
    };
    match size {
        0..2_048 => Chosen { shape: Shape::BroadcastBinomial, segment: 0 },
        2_048..370_728 => Chosen { shape: Shape::BroadcastBinary, segment: 1 << 10 },
        _ => match PIPELINES.iter().find(|line| fits(line)) {
            Some(&(.., segment @ 0x20000)) => pipeline(segment),
            _ if ranks < 13 => Chosen { shape: Shape::BroadcastBinary, segment: 8 << 10 },
            Some(&(.., segment)) => pipeline(segment),
            None => pipeline(8 << 10),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{ALGORITHMS, Call};
    use loggap_core::units::PerByte;

    /// The choice is an algorithm of the operation that works for the number of ranks.
    #[test]
    fn every_choice_is_possible() {
        for operation in Operation::ALL {
            for ranks in 2..80 {
                for size in [0, 1, 199, 500, 2_048, 5_000, 1 << 17, 1 << 19, 1 << 22] {
                    let Chosen { shape, segment } = known(operation, ranks, size);
                    let found = ALGORITHMS.iter().find(|known| known.shape == shape).unwrap();
                    assert_eq!(found.operation, operation);
                    assert!(found.condition.holds(ranks), "{operation} {ranks} {size}");
                    assert!(segment == 0 || found.segments);
                    let call = Call { shape, ranks, size, segment, combine: PerByte::ZERO };
                    assert!(!call.rounds(1).is_empty());
                }
            }
        }
    }

    #[test]
    fn a_broadcast_is_a_pipeline_where_the_message_is_long_for_the_ranks() {
        let of = |ranks, size| known(Operation::Bcast, ranks, size);
        let pipeline = |segment| Chosen { shape: Shape::BroadcastChains { chains: 1 }, segment };
        // 1.6134e-6 · 4 MiB + 2.1102 is 8.9; 3.2118e-6 · 4 MiB + 8.7936 is 22.3.
        assert_eq!(of(8, 4 << 20), pipeline(128 << 10));
        assert_eq!(of(12, 4 << 20), Chosen { shape: Shape::BroadcastBinary, segment: 8 << 10 });
        assert_eq!(of(22, 4 << 20), pipeline(16 << 10));
        assert_eq!(of(23, 4 << 20), pipeline(8 << 10));
    }
}
