//! Open MPI's own choice of algorithms, by its fixed rules (`coll_tuned_decision_fixed.c`), as far
//! as the messages of the algorithms are known: in place of a split binary tree stands a binary one.

use super::algorithm::{ALGORITHMS, Shape};
use super::fixed;
use super::operation::Operation;
use super::rounds::power_of_two;

/// Algorithm with its segment size in bytes; 0 for whole messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// Its name in Open MPI.
    pub name: &'static str,
    /// Communication pattern of the algorithm, or of one that stands for it.
    pub shape: Shape,
    /// Bytes of a segment.
    pub segment: u64,
}

impl Chosen {
    /// True if the messages are those of another algorithm that stands for it.
    #[must_use]
    pub fn is_stand_in(&self) -> bool {
        match self.name {
            "split_binary_tree" | "nonoverlapping" | "segmented_ring" | "linear_sync"
            | "in-order_binary" => true,
            "rabenseifner" => self.shape == Shape::ReduceBinomial,
            "scatter_allgather" => self.shape == Shape::BroadcastScatterRing,
            _ => false,
        }
    }

    /// What Open MPI takes in its place where a vector of `size` bytes has too few elements.
    #[must_use]
    pub fn for_elements(self, ranks: u32, size: u64) -> Self {
        let elements = size / ELEMENT;
        let number = match self.shape {
            Shape::AllreduceRing if elements < ranks.into() => 3,
            Shape::AllreduceRabenseifner if elements < power_of_two(ranks).into() => 1,
            _ => return self,
        };
        let other = Operation::Allreduce.algorithms().find(|known| known.number == number);
        other.map_or(self, |known| Self { name: known.name, shape: known.shape, segment: 0 })
    }
}

/// Algorithms of `MPI_Reduce`, in the order of Open MPI's numbers from 1 on.
pub const REDUCTIONS: [Chosen; 7] = [
    reduction("linear", Shape::ReduceLinear),
    reduction("chain", Shape::ReduceChain),
    reduction("pipeline", Shape::ReduceChain),
    reduction("binary", Shape::ReduceBinary),
    reduction("binomial", Shape::ReduceBinomial),
    reduction("in-order_binary", Shape::ReduceBinary),
    reduction("rabenseifner", Shape::ReduceBinomial),
];

const fn reduction(name: &'static str, shape: Shape) -> Chosen {
    Chosen { name, shape, segment: 0 }
}

/// Version of Open MPI whose fixed rules count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FixedRules {
    /// Of 4.0 and before.
    V40,
    /// From 4.1 on.
    #[default]
    V41,
}

/// Components of Open MPI, besides `tuned`, that may do collectives of any communicator: that of the
/// highest priority (`coll_NAME_priority`) does.
pub const COMPONENTS: [&str; 11] = [
    "adapt",
    "basic",
    "cuda",
    "han",
    "hcoll",
    "libnbc",
    "monitoring",
    "portals4",
    "sm",
    "ucc",
    "xhc",
];

/// Bytes of an element of a reduction, of which only the bytes of all elements are known.
const ELEMENT: u64 = 8;

impl FixedRules {
    /// Algorithm for a call whose vector, or block, has `size` bytes.
    #[must_use]
    pub fn choose(self, operation: Operation, ranks: u32, size: u64) -> Chosen {
        match self {
            Self::V40 => before_41(operation, ranks, size),
            Self::V41 => from_41(operation, ranks, size),
        }
    }

    /// Algorithm of a reduction whose vector has `size` bytes.
    #[must_use]
    pub fn reduce(self, ranks: u32, size: u64) -> Chosen {
        let few = size / ELEMENT < power_of_two(ranks).into();
        let number = match self {
            Self::V40 if ranks < 8 && size < 512 => 1,
            Self::V40 => 5,
            Self::V41 => fixed::reduce(ranks, size),
        };
        let number = if number == 7 && few { 1 } else { number };
        let [linear, ..] = REDUCTIONS;
        REDUCTIONS.into_iter().zip(1..).find(|(_, own)| *own == number).map_or(linear, |one| one.0)
    }
}

/// The table's algorithm, or the one that the library takes in its place.
fn from_41(operation: Operation, ranks: u32, size: u64) -> Chosen {
    use Operation as O;
    let plain = |name, shape| Chosen { name, shape, segment: 0 };
    let number = match (operation, fixed::choose(operation, ranks, size)) {
        // Without a fan-out, `chain` has one chain: a pipeline.
        (O::Bcast, 2) => 3,
        (O::Bcast, 8) if !ranks.is_power_of_two() => {
            return plain("scatter_allgather", Shape::BroadcastScatterRing);
        }
        (O::Allgather, 3) if !ranks.is_power_of_two() => 2,
        (O::Allgather, 5) if !ranks.is_multiple_of(2) => 4,
        (_, number) => number,
    };
    let found = operation.with_stand_ins().find(|known| known.number == number);
    let found = found.map(|known| plain(known.name, known.shape).for_elements(ranks, size));
    found.unwrap_or_else(|| plain("linear", Shape::BarrierLinear))
}

fn before_41(operation: Operation, ranks: u32, size: u64) -> Chosen {
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
    let known = ALGORITHMS.iter().find(|known| known.shape == shape);
    Chosen { name: known.map_or("", |known| known.name), shape, segment: 0 }
}

fn broadcast(ranks: u32, size: u64) -> Chosen {
    /// Slope in ranks per 10¹⁰ bytes, ranks in 10⁻⁴, and segment of each pipeline: it is used by
    /// fewer ranks than that line gives.
    const PIPELINES: [(u128, u128, u64); 3] =
        [(16_134, 21_102, 128 << 10), (23_679, 11_787, 64 << 10), (32_118, 87_936, 16 << 10)];
    let pipeline =
        |segment| Chosen { name: "pipeline", shape: Shape::BroadcastChains { chains: 1 }, segment };
    let split =
        |segment| Chosen { name: "split_binary_tree", shape: Shape::BroadcastBinary, segment };
    let fits = |&(slope, ranks_at_0, _): &(u128, u128, u64)| {
        u128::from(ranks) * 10_000_000_000 < slope * u128::from(size) + ranks_at_0 * 1_000_000
    };
    match size {
        0..2_048 => Chosen { name: "binomial", shape: Shape::BroadcastBinomial, segment: 0 },
        2_048..370_728 => split(1 << 10),
        _ => match PIPELINES.iter().find(|line| fits(line)) {
            Some(&(.., segment @ 0x20000)) => pipeline(segment),
            _ if ranks < 13 => split(8 << 10),
            Some(&(.., segment)) => pipeline(segment),
            None => pipeline(8 << 10),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Call;
    use loggap_core::units::PerByte;

    /// The choice is an algorithm of the operation that works for the number of ranks.
    #[test]
    fn every_choice_is_possible() {
        for operation in Operation::ALL {
            let others = [("knomial", Operation::Bcast, Shape::BroadcastKnomial)];
            for ranks in (2..80).chain([200, 300, 600, 1_500, 3_000, 5_000]) {
                for size in [0, 1, 8, 199, 500, 2_048, 5_000, 1 << 17, 1 << 19, 1 << 22] {
                    for rules in [FixedRules::V40, FixedRules::V41] {
                        let Chosen { name, shape, segment } = rules.choose(operation, ranks, size);
                        let found = ALGORITHMS.iter().find(|known| known.shape == shape);
                        let is_possible = found.is_some_and(|found| {
                            let whole = segment == 0 || found.segments;
                            found.operation == operation && found.condition.holds(ranks) && whole
                        });
                        let is_other = others.contains(&(name, operation, shape));
                        assert!(is_possible || is_other, "{name} of {operation} {ranks} {size}");
                        let call = Call { shape, ranks, size, segment, combine: PerByte::ZERO };
                        assert!(ranks > 80 || !call.rounds(1).is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn a_broadcast_is_a_pipeline_where_the_message_is_long_for_the_ranks() {
        let of = |ranks, size| {
            let Chosen { name, segment, .. } =
                FixedRules::V40.choose(Operation::Bcast, ranks, size);
            (name, segment)
        };
        // 1.6134e-6 · 4 MiB + 2.1102 is 8.9; 3.2118e-6 · 4 MiB + 8.7936 is 22.3.
        assert_eq!(of(8, 4 << 20), ("pipeline", 128 << 10));
        assert_eq!(of(12, 4 << 20), ("split_binary_tree", 8 << 10));
        assert_eq!(of(22, 4 << 20), ("pipeline", 16 << 10));
        assert_eq!(of(23, 4 << 20), ("pipeline", 8 << 10));
    }
}
