//! Patterns and their names.

use core::fmt;
use core::str::FromStr;

use super::grid::Stencil;

/// Declares the patterns with their names; the help text is also the documentation.
macro_rules! patterns {
    (
        $($pattern:ident = $name:literal, $alias:literal, $help:literal;)*
        @mpi
        $($collective:ident = $mpi_name:literal, $mpi_alias:literal, $mpi_help:literal;)*
    ) => {
        /// A communication pattern. Behind each semicolon: the options that it uses besides ranks
        /// and size.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum Pattern {
            $(#[doc = $help] $pattern,)*
            /// A collective as written by Schedgen 2.
            Mpi(Collective),
        }

        /// A collective of Schedgen 2. Behind each semicolon: the options that it uses besides ranks
        /// and size.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum Collective {
            $(#[doc = $mpi_help] $collective,)*
        }

        /// All patterns with their names.
        static DESCRIPTIONS: &[Description] = &[
            $(Description {
                pattern: Pattern::$pattern, name: $name, alias: $alias, help: $help,
            },)*
            $(Description {
                pattern: Pattern::Mpi(Collective::$collective),
                name: $mpi_name, alias: $mpi_alias, help: $mpi_help,
            },)*
        ];
    };
}

patterns! {
    BinomialBroadcast = "binomialtreebcast", "binomial-broadcast",
        "broadcast along a binomial tree; root";
    BinomialReduce = "binomialtreereduce", "binomial-reduce",
        "reduction along a binomial tree; root";
    BinaryBroadcast = "binarytreebcast", "binary-broadcast", "broadcast along a binary tree; root";
    Dissemination = "dissemination", "barrier", "dissemination, log2 P rounds";
    NWayDissemination = "nwaydissemination", "n-way-dissemination",
        "dissemination to n ranks a round; nway";
    ChainedDissemination = "chained_dissem", "chained-dissemination",
        "two disseminations, one after the other";
    PipelinedRing = "pipelinedring", "pipelined-broadcast",
        "broadcast in segments along a ring; root, segment";
    PipelinedRingBlocking = "pipelinedringdep", "pipelined-broadcast-blocking",
        "pipelined broadcast, one segment at a time on each rank; root, segment";
    DoubleRing = "doublering", "double-ring", "a message each way around the ring";
    Gather = "gather", "linear-gather", "every rank sends to the root; root";
    Scatter = "scatter", "linear-scatter", "the root sends to every rank; root";
    LinearBarrier = "linbarrier", "linear-barrier", "barrier through rank 0";
    AllToAll = "linear_alltoall", "all-to-all", "equal messages between all pairs";
    AllToAllSkewed = "linear_alltoallv", "all-to-all-skewed",
        "large messages to the root, small ones else; root, skew, outcast";
    RecursiveDoubling = "allreduce_recdoub", "recursive-doubling",
        "allreduce by recursive halving and doubling; compute";
    RingAllreduce = "allreduce_ring", "ring-allreduce", "allreduce along a ring";
    ResNet = "resnet", "resnet-152",
        "training of ResNet-152: ten allreduces behind the backward pass; the size is its own";
    RandomPairs = "random_bisect", "random-pairs", "one message in each random pair; seed";
    RandomPairsBothWays = "random_bisect_fd_sym", "random-pairs-both-ways",
        "one message each way in each random pair; seed";
    Permutation = "permutation", "random-permutation",
        "one message from each rank to the next in a random order; seed";
    Tornado = "tornado", "half-ring-shift",
        "one message from each rank to the one nearly half around the ring";
    Halo2d = "halo2d", "halo-2d", "messages between 4 neighbours on a grid; grid, compute";
    Halo3d = "halo3d", "halo-3d", "messages between 6 neighbours on a grid; grid, compute";
    Halo26 = "halo26", "halo-3d-26", "messages between 26 neighbours on a grid; grid, compute";
    Sweep = "sweep", "wavefront", "from one corner of a grid to the opposite one; grid, compute";
    @mpi
    Broadcast = "bcast", "mpi-bcast", "Schedgen 2's broadcast; root, algorithm, window";
    Reduce = "reduce", "mpi-reduce", "Schedgen 2's reduction; root, algorithm";
    Allreduce = "allreduce", "mpi-allreduce", "Schedgen 2's allreduce; algorithm, compute";
    ReduceScatter = "reduce_scatter", "mpi-reduce-scatter",
        "Schedgen 2's reduce-scatter; algorithm, compute";
    Allgather = "allgather", "mpi-allgather", "Schedgen 2's allgather; algorithm, compute";
    AllToAll = "alltoall", "mpi-alltoall", "Schedgen 2's all-to-all; window";
    Incast = "incast", "mpi-incast", "all ranks send to the root";
    Outcast = "outcast", "mpi-outcast", "the root sends to all ranks; window";
}

/// Algorithm of a collective of Schedgen 2.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Algorithm {
    /// Chosen by size and number of ranks.
    #[default]
    Auto,
    /// Directly between the root and each other rank.
    Linear,
    /// Along a binomial tree.
    BinomialTree,
    /// Recursive doubling or halving.
    RecursiveDoubling,
    /// Along a ring.
    Ring,
}

/// Names and help text of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Description {
    /// Pattern described.
    pub pattern: Pattern,
    /// Schedgen's name.
    pub name: &'static str,
    /// Readable alias; `_` and `-` are equivalent in both names.
    pub alias: &'static str,
    /// Help text: purpose, and options besides ranks and size.
    pub help: &'static str,
}

impl Pattern {
    /// All patterns with their names, in the order of the help text.
    #[must_use]
    pub const fn all() -> &'static [Description] {
        DESCRIPTIONS
    }

    /// Schedgen's name of this pattern.
    #[must_use]
    pub fn name(self) -> &'static str {
        let described = DESCRIPTIONS.iter().find(|description| description.pattern == self);
        described.map_or("", |description| description.name)
    }

    /// Neighbours of an exchange on a grid.
    pub(crate) const fn stencil(self) -> Stencil {
        if matches!(self, Self::Halo26) { Stencil::Around } else { Stencil::Faces }
    }

    /// Dimensions of the pattern's grid; 0 without one.
    pub(super) const fn dimensions(self) -> u32 {
        match self {
            Self::Halo2d | Self::Sweep => 2,
            Self::Halo3d | Self::Halo26 => 3,
            _ => 0,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Pattern::Mpi(*self).fmt(f)
    }
}

/// Error: no pattern or algorithm has this name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such name; the help text lists all")
    }
}

impl core::error::Error for UnknownName {}

impl FromStr for Pattern {
    type Err = UnknownName;

    /// Finds a pattern by either of its names.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = DESCRIPTIONS
            .iter()
            .find(|description| same(description.name, name) || same(description.alias, name));
        found.map(|description| description.pattern).ok_or(UnknownName)
    }
}

/// Algorithms by Schedgen 2's names.
const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("auto", Algorithm::Auto),
    ("linear", Algorithm::Linear),
    ("binomialtree", Algorithm::BinomialTree),
    ("recdoub", Algorithm::RecursiveDoubling),
    ("ring", Algorithm::Ring),
];

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = ALGORITHMS.iter().find(|(_, algorithm)| algorithm == self);
        f.pad(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;

    /// Finds an algorithm by Schedgen 2's name.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = ALGORITHMS.iter().find(|(known, _)| same(known, name));
        found.map(|(_, algorithm)| *algorithm).ok_or(UnknownName)
    }
}

/// True if the names are equal, with `_` and `-` equivalent.
fn same(a: &str, b: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.bytes().map(plain).eq(b.bytes().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_pattern_is_found_by_both_its_names() {
        for description in Pattern::all() {
            assert_eq!(description.name.parse(), Ok(description.pattern));
            assert_eq!(description.alias.parse(), Ok(description.pattern));
            assert_eq!(description.pattern.to_string(), description.name);
        }
        assert_eq!("linear-alltoall".parse(), Ok(Pattern::AllToAll));
        assert_eq!("nonsense".parse::<Pattern>(), Err(UnknownName));
    }

    #[test]
    fn no_two_patterns_share_a_name() {
        let all = Pattern::all();
        for (index, one) in all.iter().enumerate() {
            assert!(!same(one.name, one.alias));
            for other in &all[index + 1..] {
                for (a, b) in [
                    (one.name, other.name),
                    (one.name, other.alias),
                    (one.alias, other.name),
                    (one.alias, other.alias),
                ] {
                    assert!(!same(a, b), "{a}");
                }
            }
        }
    }

    #[test]
    fn algorithms_print_as_they_parse() {
        for (name, algorithm) in ALGORITHMS {
            assert_eq!(name.parse(), Ok(algorithm));
            assert_eq!(algorithm.to_string(), name);
        }
    }
}
